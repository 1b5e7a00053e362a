/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON object trace: the kernel's text in one string, "systemTraceEvents", written as the
 * events come, and after it what names them. Readers: Catapult's Trace
 * Viewer and Perfetto's trace processor. Neither forgives much; docs/json.md
 * tells what is written differently from the kernel for their sake.
 *
 * The same in a page (export/html): the text as lines, and the rest of the object by itself.
 */
#include "export/html/html.h"
#include "export/json/atrace.h"
#include "export/json/functions.h"
#include "export/json/json.h"
#include "export/json/portable.h"
#include "export/json/tail.h"
#include "export/render.h"
#include "export/segment.h"
#include "export/sinks.h"
#include "export/text/line.h"
#include "util/plain.h"

/* What one thread needs for the text. */
struct text_state {
	struct line *line;
	struct printer *printer;
	struct portable portable;
	struct buf scratch; /* one line, before it is escaped */
	bool page;
};

struct sink_json {
	struct sink sink;
	const struct trace_info *info;
	struct output *out;
	bool tgid;
	struct render *render;
	const struct event *print;
	struct printer *printer;  /* of the functions */
	struct json_spool *spool; /* what has its place behind the text */
	struct json_functions *functions;
	struct json_atrace *atrace;
	enum function_view function_view;
	uint64_t units;	  /* UTF-16 units of the string so far */
	uint64_t last_ts; /* no line goes back in time */
	uint64_t string_max;
	bool text_ended;
	struct json_tail tail;
	bool array; /* the events alone */
	bool page;  /* HTML */
};

static struct sink_json *json(struct sink *s)
{
	return container_of(s, struct sink_json, sink);
}

static void text_end(void *userdata)
{
	struct text_state *s = userdata;

	printer_free(s->printer);
	line_free(s->line);
	portable_deinit(&s->portable);
	buf_deinit(&s->scratch);
	free(s);
}

static int text_begin(void **ret, struct sink *sink)
{
	const struct trace_info *info = json(sink)->info;
	struct text_state *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->page = json(sink)->page;
	portable_init(&s->portable, info);
	r = line_new(&s->line, info, json(sink)->tgid, LINE_PORTABLE);
	if (r == 0)
		r = printer_new(&s->printer, info->events);
	if (r < 0) {
		text_end(s);
		return r;
	}
	*ret = s;
	return 0;
}

_cold_ static int escape_line(struct text_state *s, struct buf *out, size_t start, uint64_t *units)
{
	buf_clear(&s->scratch);
	buf_append(&s->scratch, out->data + start, out->len - start);
	out->len = start;
	*units += json_escape_line(out, s->scratch.data, s->scratch.len);
	return buf_error(&s->scratch);
}

/* Escapes what out holds from start, as one line, and ends it; before `plain` nothing needs it. */
_hot_ static int end_line(struct text_state *s, struct buf *out, size_t start, size_t plain,
			  uint64_t *units)
{
	int r = 0;

	if (unlikely(s->page))
		return html_end_line(out, start, &s->scratch, units);
	if (unlikely(out->failed))
		return -ENOMEM;
	if (likely(plain == out->len || is_plain(out->data + plain, out->len - plain)))
		*units += out->len - start;
	else
		r = escape_line(s, out, start, units);
	buf_append(out, "\\n", 2);
	++*units;
	return r;
}

_hot_ static int text_event(void *state, const struct trace_event *ev, struct buf *out,
			    uint64_t *units)
{
	struct text_state *s = state;
	size_t start = out->len, name, plain;
	bool prefix_plain = line_prefix(s->line, ev, out);
	int r;

	name = out->len;
	r = sink_print(s->printer, ev, out);
	if (unlikely(r < 0))
		return r;
	if (likely(portable_fix(&s->portable, ev, out, name) == PORTABLE_EVENT)) {
		plain = !prefix_plain			       ? start
			: ev->desc && event_is_plain(ev->desc) ? out->len
							       : name;
		return end_line(s, out, start, plain, units);
	}
	/* A mark of free text: a slice without length is what both readers show of it. */
	r = end_line(s, out, start, start, units);
	if (r < 0)
		return r;
	start = out->len;
	line_prefix(s->line, ev, out);
	portable_end_mark(&s->portable, out);
	return end_line(s, out, start, start, units);
}

static int text_loss(void *state, uint32_t cpu, uint64_t count, struct buf *out, uint64_t *units)
{
	size_t start = out->len;

	/* As a comment: trace processor refuses the load for any other line that is no event. */
	if (count == UINT64_MAX)
		buf_printf(out, "# CPU:%u [LOST EVENTS]", cpu);
	else
		buf_printf(out, "# CPU:%u [LOST %llu EVENTS]", cpu, (unsigned long long)count);
	return end_line(state, out, start, start, units);
}

_cold_ static int full(const struct sink_json *s, struct error *err)
{
	error_set(err, -EOVERFLOW,
		  "the trace's text is longer than the %llu characters that a viewer can open",
		  (unsigned long long)s->string_max);
	error_hint(err, "write it as .pftrace or .txt, or record for a shorter time or fewer "
			"events");
	return -EOVERFLOW;
}

/* A file of more characters is no use, wherever they stand. */
static int check_room(const struct sink_json *s, struct error *err)
{
	return unlikely(s->units + json_spool_bytes(s->spool) > s->string_max) ? full(s, err) : 0;
}

static int text_took(struct sink *sink, uint64_t units, struct error *err)
{
	json(sink)->units += units;
	return check_room(json(sink), err);
}

static const struct render_ops text_render_ops = {
	.begin = text_begin,
	.end = text_end,
	.event = text_event,
	.loss = text_loss,
	.took = text_took,
	.failure = "can't write the trace",
};

/* What marks of clock syncs are rendered with, when all that came before is with the output. */
static struct text_state *own_text(const struct sink_json *s)
{
	return render_state(s->render);
}

static void json_free(struct sink *s)
{
	render_free(json(s)->render);
	json_functions_free(json(s)->functions);
	json_atrace_free(json(s)->atrace);
	json_spool_free(json(s)->spool);
	printer_free(json(s)->printer);
	json_tail_deinit(&json(s)->tail);
	free(json(s));
}

/* Those that count time: a line's time stamp must be seconds and a fraction. */
static const char *const json_clocks[] = { "boot",   "mono", "mono_raw", "tai", "local",
					   "global", "perf", "uptime",	 NULL };

static void put_header(struct sink_json *s)
{
	struct buf *b = &s->out->buf;

	if (s->array)
		return;
	if (s->page) {
		html_put_head(b);
		/* Perfetto's trace processor waits for the legend. */
		buf_puts(b, "# tracer: nop\n#\n");
		line_legend(own_text(s)->line, b);
		return;
	}
	/* A reader knows the text by these first characters. */
	buf_puts(b, "{\"systemTraceEvents\":\"");
	buf_puts(b, "# tracer: nop\\n");
	s->units += sizeof("# tracer: nop\n") - 1;
}

/* What a file has behind its text. */
static int begin_elements(struct sink_json *s)
{
	int r;

	s->functions = json_functions_free(s->functions);
	s->atrace = json_atrace_free(s->atrace);
	s->spool = json_spool_free(s->spool);
	r = json_spool_new(&s->spool);
	if (r == 0)
		r = json_functions_new(&s->functions, s->info, s->printer, s->spool,
				       s->function_view);
	if (r == 0)
		r = json_atrace_new(&s->atrace, s->info, s->print, s->spool);
	return r;
}

static int open_as(struct sink **ret, const struct trace_info *info, const struct export_options *o,
		   struct output *out, bool page, struct error *err)
{
	struct sink_json *s;
	int r = export_format_check_clock(&sink_json_ops.format, info->header->trace_clock, err);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	r = s ? 0 : -ENOMEM;
	if (s) {
		s->info = info;
		s->out = out;
		s->function_view = o->function_view;
		s->string_max = o->json_string_max ?: EXPORT_JSON_MAX;
		s->page = page;
		/* Who reads the text alone knows processes by that column. */
		s->tgid = o->tgid || page;
		s->array = o->json_array && !page;
		s->print = event_table_find_name(info->events, "ftrace", "print");
		/* Where one event's line decides what becomes of the next, they come one by one. */
		r = render_new(&s->render, &text_render_ops, &s->sink, info, out,
			       info->followed || segment_wanted(&o->rotate) ? 1 : o->threads);
	}
	if (r == 0)
		r = printer_new(&s->printer, info->events);
	if (r == 0)
		r = begin_elements(s);
	if (r == 0)
		json_tail_init(&s->tail, s->out, s->info, &own_text(s)->portable.sync, s->spool,
			       s->array);
	if (r < 0) {
		if (s)
			json_free(&s->sink);
		return error_errno(err, r, "can't begin the JSON");
	}
	put_header(s);
	*ret = &s->sink;
	return 0;
}

static int json_open(struct sink **ret, const struct trace_info *info,
		     const struct export_options *o, struct output *out, struct error *err)
{
	return open_as(ret, info, o, out, false, err);
}

static int html_open(struct sink **ret, const struct trace_info *info,
		     const struct export_options *o, struct output *out, struct error *err)
{
	return open_as(ret, info, o, out, true, err);
}

static int put_function(struct sink_json *s, const struct trace_event *ev, struct error *err)
{
	int r = render_learn(s->render, ev, err);

	if (r < 0)
		return r;
	if (json_functions_event(s->functions, ev) < 0)
		return error_errno(err, -ENOMEM, "can't write the trace");
	return check_room(s, err);
}

/* 1: it is no line of the text. */
static int put_atrace(struct sink_json *s, const struct trace_event *ev, struct error *err)
{
	int r = render_learn(s->render, ev, err);

	if (r < 0)
		return r;
	r = json_atrace_event(s->atrace, ev);
	if (r < 0)
		return error_errno(err, r, "can't write the trace");
	return r ? check_room(s, err) ?: 1 : 0;
}

_hot_ static int json_event(struct sink *sink, const struct trace_event *given, struct error *err)
{
	struct sink_json *s = json(sink);
	struct trace_event ev = *given;

	/* Trace Viewer refuses the whole trace if a CPU's time runs backwards. */
	ev.rec.ts = s->last_ts = MAX(s->last_ts, ev.rec.ts);
	if (json_functions_has(s->functions, &ev))
		return put_function(s, &ev, err);
	if (unlikely(ev.desc && ev.desc == s->print)) {
		int r = put_atrace(s, &ev, err);

		if (r)
			return MIN(r, 0);
	}
	if (s->array)
		return 0;
	/* Of these the first of each id counts: one thread has to see them all. */
	if (unlikely(ev.desc && ev.desc == s->print && portable_may_sync(&ev.rec)))
		return render_event_now(s->render, &ev, err);
	return render_event(s->render, &ev, err);
}

static int json_run(struct sink *sink, int (*give)(void *userdata, struct error *err),
		    void *userdata, struct error *err)
{
	return render_run(json(sink)->render, give, userdata, err);
}

static int json_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts _unused_,
		     uint64_t after_ts _unused_, uint64_t count, struct error *err)
{
	struct sink_json *s = json(sink);

	json_functions_loss(s->functions, s->last_ts);
	return s->array ? 0 : render_loss(s->render, cpu, count, err);
}

/* All events were given. */
static int end_text(struct sink_json *s, struct error *err)
{
	int r = s->text_ended ? 0 : render_drain(s->render, err);

	if (s->text_ended || r < 0)
		return r;
	if (s->page) {
		html_put_middle(&s->out->buf);
		r = output_flush(s->out, false);
		s->out->rewrite = html_hide_markup;
	} else if (!s->array) {
		buf_puts(&s->out->buf, "\"");
	}
	s->text_ended = true;
	if (r < 0)
		return error_errno(err, r, "can't write the HTML");
	r = json_functions_end(s->functions);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static int json_mark(struct sink *sink, const struct mark *mark, struct error *err)
{
	struct sink_json *s = json(sink);
	bool early = s->info->followed && !s->text_ended;
	int r = early ? 0 : end_text(s, err);

	if (r < 0)
		return r;
	r = early ? json_tail_early_mark(&s->tail, mark) : json_tail_mark(&s->tail, mark);
	if (r < 0)
		return error_errno(err, r, "can't write the trace");
	return early ? check_room(s, err) : 0;
}

static uint64_t json_marks_left_out(struct sink *sink)
{
	return json(sink)->tail.left_out;
}

static int json_sync(struct sink *sink, struct error *err)
{
	struct sink_json *s = json(sink);
	int r = render_drain(s->render, err);

	line_forget(own_text(s)->line);
	json_functions_forget(s->functions);
	return r;
}

static int end_object(struct sink_json *s, const struct export_result *result, struct error *err)
{
	int r = end_text(s, err);

	if (r < 0)
		return r;
	r = json_tail_close(&s->tail, result);
	buf_puts(&s->out->buf, s->array ? "\n" : "}\n");
	if (s->page && r >= 0) {
		r = output_flush(s->out, false);
		s->out->rewrite = NULL;
		html_put_end(&s->out->buf);
	}
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static uint64_t json_held(const struct sink *sink)
{
	return json_spool_bytes(container_of(sink, struct sink_json, sink)->spool);
}

static int json_cut(struct sink *sink, const struct export_result *result, struct error *err)
{
	struct sink_json *s = json(sink);
	int r = end_object(s, result, err);

	if (r < 0)
		return r;
	r = output_cut(s->out, false);
	if (r == 0)
		r = begin_elements(s);
	if (r < 0)
		return error_errno(err, r, "can't write the trace");
	json_tail_restart(&s->tail, s->spool);
	s->units = 0;
	s->text_ended = false;
	portable_restart(&own_text(s)->portable);
	task_table_forget(s->info->tasks, s->last_ts);
	task_table_forget_seen(s->info->tasks);
	line_forget(own_text(s)->line);
	put_header(s);
	return 0;
}

static int json_close(struct sink *sink, const struct export_result *result, struct error *err)
{
	struct sink_json *s = json(sink);
	int r = end_object(s, result, err);

	if (r < 0)
		return r;
	r = output_flush(s->out, true);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

/* Of all formats. */
#define OPS                                                                                        \
	.run = json_run, .event = json_event, .loss = json_loss, .mark = json_mark,                \
	.marks_last = true, .marks_left_out = json_marks_left_out, .sync = json_sync,              \
	.cut = json_cut, .held = json_held, .string_bound = true, .close = json_close,             \
	.free = json_free

const struct sink_ops sink_json_ops = {
	.format = { "json", ".json", "JSON for Trace Viewer and the Perfetto UI", json_clocks },
	.open = json_open,
	OPS,
};

const struct sink_ops sink_json_gz_ops = {
	.format = { "json.gz", ".json.gz", "JSON for Trace Viewer and the Perfetto UI, compressed",
		    json_clocks },
	.gzip = true,
	.open = json_open,
	OPS,
};

const struct sink_ops sink_html_ops = {
	.format = { "html", ".html", "a page that shows the trace in a browser", json_clocks },
	.open = html_open,
	OPS,
};
