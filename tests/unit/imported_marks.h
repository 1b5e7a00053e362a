/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of marks through the Perfetto trace and back. Every failure fails the test. */
#pragma once

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "formats/perfetto_read/marks.h"

/*
 * A file of all that a Perfetto trace holds of marks: samples; names; slices, nested, in a moment,
 * with all kinds of arguments; complete ones that end at one time; instants; counters; async ones
 * of one process, of all, and two of one id in categories of their own; flows to what comes next
 * and to what is there; objects, contexts and dumps; pids and tids that readers do not take. Times
 * come in order, so that none has to be looked for elsewhere.
 */
void read_rich_marks(struct buf *out);

/* A file of marks, merged into a recording with a sampler, as a Perfetto trace. */
void export_marks(const char *text, size_t len, struct buf *out);

struct import {
	struct pf_mark_writer *writer;
	int fd;
	struct error err;
	uint64_t count, left_out;
	const char *why;
	struct buf text;
	json_t *json;
};

/* In this order: begin, packets, then close, or end, which reads what was written, too. */
void import_begin(struct import *i, uint64_t limit);
void import_add(struct import *i, const struct pf_packet *p);
void import_close(struct import *i);
void import_end(struct import *i);
void import_deinit(struct import *i);
#define _cleanup_import_ _cleanup_(import_deinit)

/* All of a trace's packets, from begin to end. */
void import_file(struct import *i, const struct buf *file);

/* What was written is a file of the Trace Event Format, of which all is taken. */
void check_readable(const struct import *i);

/* Of a JSON object; what is not there, or no such thing: "" and -1. */
const char *string_of(const json_t *e, const char *key);
int64_t integer_of(const json_t *e, const char *key);
json_t *rows_of(const json_t *file, const char *key);
