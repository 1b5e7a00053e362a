/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/writer.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/plain.h"
#include "base/thread.h"
#include "export/sink.h"
#include "formats/html/html.h"

struct json_writer *json_writer_free(struct json_writer *w)
{
	if (!w)
		return NULL;
	function_writer_free(w->functions);
	printer_free(w->printer);
	line_free(w->line);
	portable_deinit(&w->portable);
	host_fields_deinit(&w->fields);
	buf_deinit(&w->scratch);
	free(w);
	return NULL;
}

int json_writer_new(struct json_writer **ret, const struct trace_info *info, bool tgid, bool page)
{
	_cleanup_(json_writer_freep) struct json_writer *w = cache_lines_new(sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->page = page;
	w->hits = function_hits_of(info);
	portable_init(&w->portable, info);
	host_fields_init(&w->fields, info);
	r = line_new(&w->line, info, tgid, LINE_PORTABLE);
	if (r == 0)
		r = printer_new(&w->printer, info->events);
	if (r == 0)
		r = function_writer_new(&w->functions, info, w->printer);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

void json_writer_forget(void *writer)
{
	struct json_writer *w = writer;

	line_forget(w->line);
	function_writer_forget(w->functions);
}

_cold_ static int escape_line(struct json_writer *w, struct buf *out, size_t start)
{
	buf_clear(&w->scratch);
	buf_append(&w->scratch, out->data + start, out->len - start);
	out->len = start;
	json_escape_line(out, w->scratch.data, w->scratch.len);
	return buf_error(&w->scratch);
}

/* Turns out from `start` on into one escaped line; bytes before `plain` need no escaping. */
_hot_ static int end_line(struct json_writer *w, struct buf *out, size_t start, size_t plain,
			  uint64_t *units)
{
	int r = 0;

	if (unlikely(w->page))
		return html_end_line(out, start, &w->scratch, units);
	if (unlikely(out->failed))
		return -ENOMEM;
	if (unlikely(plain != out->len && !is_plain(out->data + plain, out->len - plain)))
		r = escape_line(w, out, start);
	buf_append(out, "\\n", 2);
	*units += out->len - start;
	return r;
}

/* ts 0: the line belongs to the next one. */
_cold_ static void put_host_time(const struct json_writer *w, uint64_t ts, struct buf *out)
{
	if (w->fields.host)
		buf_printf(out, "%0*" PRIx64, HOST_TIME_LEN, ts);
}

_hot_ int json_writer_line(void *writer, const struct trace_event *ev, struct buf *out,
			   uint64_t *units)
{
	struct json_writer *w = writer;
	struct trace_event moved;
	size_t start, name, plain;
	bool prefix_plain;
	int r;

	if (unlikely(w->fields.host)) {
		put_host_time(w, ev->rec.ts, out);
		ev = host_fields_move(&w->fields, ev, &moved);
		if (!ev)
			return -ENOMEM;
	}
	start = out->len;
	prefix_plain = line_prefix(w->line, ev, out);
	name = out->len;
	r = sink_print(w->printer, ev, out);
	if (unlikely(r < 0))
		return r;
	if (likely(portable_fix(&w->portable, ev, out, name) == PORTABLE_EVENT)) {
		plain = !prefix_plain			       ? start
			: ev->desc && event_is_plain(ev->desc) ? out->len
							       : name;
		return end_line(w, out, start, plain, units);
	}
	/* A free-text mark: readers show it as a slice of length 0. */
	r = end_line(w, out, start, start, units);
	if (r < 0)
		return r;
	put_host_time(w, ev->rec.ts, out);
	start = out->len;
	line_prefix(w->line, ev, out);
	portable_end_mark(&w->portable, out);
	return end_line(w, out, start, start, units);
}

int json_writer_loss(void *writer, uint32_t cpu, uint64_t count, struct buf *out, uint64_t *units)
{
	struct json_writer *w = writer;
	size_t start;

	put_host_time(w, 0, out);
	start = out->len;
	cpu = host_cpu(w->fields.host, cpu);
	/* Written as a comment: trace processor rejects the file for any other line that is no
	 * event. */
	if (count == UINT64_MAX)
		buf_printf(out, "# CPU:%u [LOST EVENTS]", cpu);
	else
		buf_printf(out, "# CPU:%u [LOST %llu EVENTS]", cpu, (unsigned long long)count);
	return end_line(w, out, start, start, units);
}

_hot_ int json_writer_element(struct json_writer *w, const struct function_element *e,
			      const void *more, struct buf *out, uint64_t *units)
{
	size_t start = out->len;

	function_writer_put(w->functions, e, more, out);
	*units += out->len - start;
	return buf_error(out);
}

_hot_ int json_writer_hit(void *writer, const struct trace_event *ev, struct buf *out,
			  uint64_t *units)
{
	struct json_writer *w = writer;
	struct function_element e;

	return function_hit_read(&w->hits, ev, &e) ? json_writer_element(w, &e, NULL, out, units)
						   : 0;
}
