/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one thread needs to write lines of the kernel's text as they stand in the JSON's string or
 * in the page, and elements of functions. All that is written adds its length to *units: of lines
 * in UTF-16 units, of elements in bytes.
 */
#pragma once

#include "formats/json/function_element.h"
#include "formats/json/portable.h"
#include "formats/text/line.h"

struct json_writer {
	struct line *line;
	struct printer *printer;
	struct function_writer *functions;
	struct function_hits hits;
	struct portable portable;
	struct buf scratch; /* one line, before it is escaped */
	bool page;
};

/* Borrows info. page: HTML. */
int json_writer_new(struct json_writer **ret, const struct trace_info *info, bool tgid, bool page);
struct json_writer *json_writer_free(struct json_writer *w);
DEFINE_CLEANUP_FUNC(struct json_writer *, json_writer_free);

/* Each appends, and returns 0 or -errno. Those that are render_ops take a writer as such. */
int json_writer_line(void *writer, const struct trace_event *ev, struct buf *out, uint64_t *units);
int json_writer_loss(void *writer, uint32_t cpu, uint64_t count, struct buf *out, uint64_t *units);
/* An event of the function tracer's. */
int json_writer_hit(void *writer, const struct trace_event *ev, struct buf *out, uint64_t *units);
/* calls: of a run, as many as it counts. */
int json_writer_element(struct json_writer *w, const struct function_element *e,
			const struct function_calls *calls, struct buf *out, uint64_t *units);

/* Tasks may be others from here on. */
void json_writer_forget(struct json_writer *w);
