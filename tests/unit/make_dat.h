/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small trace.dat of any word size and byte order, version 6 or 7, uncompressed. A struct maker
 * holds its sub-buffers: page_begin to page_end. Every failure fails the test.
 */
#pragma once

#include "make_stream.h"

struct dat_option {
	unsigned id;
	const void *value;
	size_t len;
};

struct dat_maker {
	const struct maker *m; /* the machine, and CPU 0's sub-buffers */
	unsigned version;
	const struct dat_option *options;
	size_t option_count;
	/* Instances "one", "two", ... with the same sub-buffers as the top-level buffer. */
	unsigned instances;
};

/* Appends the file. All events are ID_NUMBER of maker_head. */
void make_dat(const struct dat_maker *d, struct buf *out);
