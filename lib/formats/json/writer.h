/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * State of one thread that writes lines of the kernel's text for the JSON string or the page, and
 * functions' elements. Each call adds its length in the file to *units: bytes, or UTF-16 units for
 * lines of the page.
 *
 * In a part of a file of several machines, HOST_TIME_LEN hexadecimal digits are before each line:
 * its time, by which the lines are joined.
 */
#pragma once

#include "formats/json/function_element.h"
#include "formats/json/host_fields.h"
#include "formats/json/portable.h"
#include "formats/text/line.h"

#define HOST_TIME_LEN 16

struct json_writer {
	struct line *line;
	struct printer *printer;
	struct function_writer *functions;
	struct function_hits hits;
	struct portable portable;
	struct host_fields fields;
	struct buf scratch; /* one line, before escaping */
	bool page;
};

/* Borrows info. page: for HTML. */
int json_writer_new(struct json_writer **ret, const struct trace_info *info, bool tgid, bool page);
struct json_writer *json_writer_free(struct json_writer *w);
DEFINE_CLEANUP_FUNC(struct json_writer *, json_writer_free);

/* Each appends, and returns 0 or -errno. The functions with a void pointer are render_ops. */
int json_writer_line(void *writer, const struct trace_event *ev, struct buf *out, uint64_t *units);
int json_writer_loss(void *writer, uint32_t cpu, uint64_t count, struct buf *out, uint64_t *units);
/* Writes an event of the function tracer. */
int json_writer_hit(void *writer, const struct trace_event *ev, struct buf *out, uint64_t *units);
/* more: function_more_size() bytes. */
int json_writer_element(struct json_writer *w, const struct function_element *e, const void *more,
			struct buf *out, uint64_t *units);

/* Drops cached task names: they may have changed. */
void json_writer_forget(void *writer);
