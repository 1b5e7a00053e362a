/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sink for the JSON object: the kernel's text as one string, "systemTraceEvents", written as events
 * come; then names and the other elements of traceEvents. A function tracer's recording is almost
 * only such elements: then those are written as they come, and the text follows. Readers are
 * Catapult's Trace Viewer and Perfetto's trace processor. Both are strict; docs/json.md lists the
 * differences to the kernel's text.
 *
 * The HTML page (formats/html) has the same content: the text as lines, the rest of the object in
 * another block.
 */
#include "formats/json/sink.h"

#include "base/thread.h"
#include "formats/html/html.h"
#include "formats/json/join.h"

/*
 * The writer for lines that depend on their order. It may be used by the thread that has the turn,
 * once all earlier output was written.
 */
static struct json_writer *json_line_writer(const struct sink_json *s)
{
	return s->elements_first ? s->aside : render_state(s->render);
}

static void json_free(struct sink *s)
{
	render_free(to_json(s)->render);
	json_functions_free(to_json(s)->functions);
	json_atrace_free(to_json(s)->atrace);
	json_spool_free(to_json(s)->spool);
	json_writer_free(to_json(s)->aside);
	json_tail_deinit(&to_json(s)->tail);
	free(to_json(s));
}

/* Only clocks in units of time: a line's timestamp is seconds and a fraction. */
static const char *const json_clocks[] = { "boot",   "mono", "mono_raw", "tai", "local",
					   "global", "perf", "uptime",	 NULL };

static void json_put_text_head(struct sink_json *s, struct buf *out)
{
	if (s->page) {
		/* Perfetto's trace processor requires the legend. */
		buf_puts(out, "# tracer: nop\n#\n");
		line_legend(json_line_writer(s)->line, out);
		return;
	}
	/* Readers detect the text by these first characters. */
	buf_puts(out, "# tracer: nop\\n");
	s->units += s->elements_first ? 0 : sizeof("# tracer: nop\\n") - 1;
}

enum page_place { PAGE_FRAME, PAGE_TEXT, PAGE_MORE };

/* The output that follows belongs there. */
static int json_enter_page(struct sink_json *s, enum page_place place, struct error *err)
{
	void (*rewrite)(struct buf *, size_t *) = NULL;
	int r;

	/* A part is put into a page later, which is divided then. */
	if (place == PAGE_MORE)
		rewrite = s->info->host ? html_hide_markup : html_divide_more;
	else if (place == PAGE_TEXT && !s->info->host)
		rewrite = html_divide_text;
	r = output_rewrite(s->out, rewrite);
	return r < 0 ? error_errno(err, r, "can't write the HTML") : 0;
}

/* Room is left for marks of the threads' last batches, for names and for the account. */
static void json_begin_room(struct sink_json *s)
{
	s->units = s->events = 0;
	s->room = s->segment ? s->string_max / 16 * 15 : s->string_max;
	s->from = s->out->raw_bytes;
}

/* Writes everything before the first line or element. */
static int json_put_header(struct sink_json *s, struct error *err)
{
	struct buf *b = &s->out->buf;
	int r = 0;

	json_begin_room(s);
	if (s->page && !s->info->host)
		html_put_page(b);
	if (s->page)
		buf_puts(b, s->elements_first ? HTML_MORE_BEGIN : HTML_TEXT_BEGIN);
	if (s->page)
		r = json_enter_page(s, s->elements_first ? PAGE_MORE : PAGE_TEXT, err);
	if (s->elements_first)
		json_tail_events_first(&s->tail);
	else if (!s->page)
		buf_puts(b, JSON_TEXT_HEAD);
	if (!s->array)
		json_put_text_head(s, s->elements_first ? json_spool_buf(s->spool) : b);
	return r;
}

/* Allocates the parts that each file has of its own. */
static int json_begin_parts(struct sink_json *s, struct json_parts *ret)
{
	int r;

	s->functions = json_functions_free(s->functions);
	s->atrace = json_atrace_free(s->atrace);
	s->spool = json_spool_free(s->spool);
	r = json_spool_new(&s->spool);
	if (r == 0)
		r = json_functions_new(&s->functions, s->info, s->function_view, json_put_element,
				       s);
	if (r == 0)
		r = json_atrace_new(&s->atrace, s->info, s->print);
	if (r == 0)
		*ret = (struct json_parts){ s->spool, s->functions };
	return r;
}

/* Write the larger part of the trace directly, and spool the other. */
static bool json_wants_elements_first(const struct sink_json *s, const struct export_options *o)
{
	const char *tracer = s->info->header->tracer;

	/* The lines of several machines are joined first. */
	if (s->info->host)
		return false;

	/* A truncated page must have the text first: only the text can be mended. */
	if (s->page && (s->followed || segment_wanted(&o->rotate)))
		return false;
	return s->array || strcmp(tracer, "function") == 0 || strcmp(tracer, "function_graph") == 0;
}

static int json_open_as(struct sink **ret, const struct sink_env *env, bool page, struct error *err)
{
	const struct trace_info *info = env->info;
	const struct export_options *o = env->options;
	struct json_parts parts;
	struct sink_json *s;
	int r;

	s = cache_lines_new(sizeof(*s));
	r = s ? 0 : -ENOMEM;
	if (s) {
		s->info = info;
		s->out = env->out;
		s->followed = env->followed;
		s->function_view = o->function_view;
		s->segment = env->segment;
		s->string_max = o->json_string_max ?: EXPORT_JSON_MAX;
		s->page = page;
		if (page && o->page.bytes)
			s->string_max = MIN(s->string_max, o->page.bytes);
		if (page)
			s->events_max = o->page.events ?: s->segment ? EXPORT_PAGE_EVENTS : 0;
		/* Readers of the text alone identify processes by this column. */
		s->tgid = o->tgid || page;
		s->array = o->json_array && !page;
		s->elements_first = json_wants_elements_first(s, o);
		s->print = event_table_find_name(info->events, "ftrace", "print");
		/* One thread where a line depends on the previous one. */
		r = render_new(&s->render,
			       s->elements_first ? &json_element_render_ops : &json_text_render_ops,
			       &s->sink, env,
			       env->followed || segment_wanted(&o->rotate) ? 1 : o->threads);
	}
	if (r == 0)
		r = json_writer_new(&s->aside, info, s->tgid, s->page);
	if (r == 0)
		r = json_begin_parts(s, &parts);
	if (r == 0)
		json_tail_init(&s->tail, env, &json_line_writer(s)->portable.sync, &parts, s->array,
			       s->page);
	if (r < 0) {
		if (s)
			json_free(&s->sink);
		return error_errno(err, r, "can't begin the JSON");
	}
	r = json_put_header(s, err);
	if (r < 0) {
		json_free(&s->sink);
		return r;
	}
	*ret = &s->sink;
	return 0;
}

static int json_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	return json_open_as(ret, env, false, err);
}

static int html_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	return json_open_as(ret, env, true, err);
}

static int json_run(struct sink *sink, int (*give)(void *userdata, struct error *err),
		    void *userdata, struct error *err)
{
	return render_run(to_json(sink)->render, give, userdata, err);
}

/* After the last event. */
static int json_end_events(struct sink_json *s, struct error *err)
{
	int r = s->events_ended ? 0 : render_drain(s->render, err);

	if (s->events_ended || r < 0)
		return r;
	if (s->page && !s->elements_first) {
		r = json_enter_page(s, PAGE_FRAME, err);
		buf_puts(&s->out->buf, HTML_BLOCK_END HTML_MORE_BEGIN);
		r = r ?: json_enter_page(s, PAGE_MORE, err);
	} else if (!s->elements_first) {
		buf_puts(&s->out->buf, "\"");
	}
	s->events_ended = true;
	if (r == 0)
		r = json_functions_end(s->functions, err);
	/* Its elements may wait in a batch. */
	return r < 0 ? r : render_drain(s->render, err);
}

/* After a mark behind all events: marks can fill a file, too. */
static void json_check_marks(struct sink_json *s)
{
	const struct output *out = s->out;
	uint64_t used = out->raw_bytes + out->buf.len - s->from + json_tail_frames(&s->tail);

	if (s->elements_first)
		used += json_spool_bytes(s->spool);
	if (s->segment && used > s->room)
		segment_fill(s->segment);
}

static int json_mark(struct sink *sink, const struct mark *mark, struct error *err)
{
	struct sink_json *s = to_json(sink);
	bool early = s->followed && !s->events_ended;
	int r = early ? 0 : json_end_events(s, err);

	if (r < 0)
		return r;
	r = early ? json_tail_early_mark(&s->tail, mark, &s->units)
		  : json_tail_mark(&s->tail, mark);
	if (r < 0)
		return error_errno(err, r, "can't write the trace");
	if (early)
		return json_check_room(s, err);
	json_check_marks(s);
	return 0;
}

static uint64_t json_marks_left_out(struct sink *sink)
{
	return to_json(sink)->tail.left_out;
}

static int json_warn(struct sink *sink, struct stream_index *index)
{
	return json_marks_warn(&to_json(sink)->tail.written, index);
}

static void json_forget_tasks(struct sink_json *s)
{
	render_forget(s->render, json_writer_forget);
	json_writer_forget(s->aside);
}

static int json_sync(struct sink *sink, struct error *err)
{
	struct sink_json *s = to_json(sink);
	int r = render_drain(s->render, err);

	json_forget_tasks(s);
	return r;
}

/* After the JSON block; the text's block is before it or follows. */
static int json_end_page(struct sink_json *s, struct error *err)
{
	struct buf *b = &s->out->buf;
	int r = json_enter_page(s, PAGE_FRAME, err);

	if (r == 0 && s->elements_first) {
		buf_puts(b, HTML_BLOCK_END HTML_TEXT_BEGIN);
		r = json_enter_page(s, PAGE_TEXT, err);
		if (r == 0)
			r = json_spool_write(s->spool, s->out);
		if (r == 0)
			r = output_rewrite(s->out, NULL);
		if (r < 0)
			return error_errno(err, r, "can't write the HTML");
	}
	buf_puts(b, HTML_END);
	return r;
}

static int json_end_object(struct sink_json *s, const struct export_result *result,
			   struct error *err)
{
	int r = json_end_events(s, err);

	if (r < 0)
		return r;
	r = json_tail_close(&s->tail, result);
	buf_puts(&s->out->buf, s->array ? "\n" : "}\n");
	if (r < 0)
		return error_errno(err, r, "can't write the trace");
	return s->page ? json_end_page(s, err) : 0;
}

static uint64_t json_held(const struct sink *sink)
{
	return json_spool_bytes(container_of(sink, struct sink_json, sink)->spool);
}

static int json_cut(struct sink *sink, const struct export_result *result, struct error *err)
{
	struct sink_json *s = to_json(sink);
	int r = json_end_object(s, result, err);
	struct json_parts parts;

	if (r < 0)
		return r;
	r = output_cut(s->out, false);
	if (r == 0)
		r = json_begin_parts(s, &parts);
	if (r < 0)
		return error_errno(err, r, "can't write the trace");
	json_tail_restart(&s->tail, &parts);
	s->events_ended = false;
	portable_restart(&json_line_writer(s)->portable);
	/* In a complete stream, marks of dead threads follow. */
	if (s->followed)
		task_table_forget(s->info->tasks, s->last_ts);
	task_table_forget_seen(s->info->tasks);
	json_forget_tasks(s);
	return json_put_header(s, err);
}

static int json_close(struct sink *sink, const struct export_result *result, struct error *err)
{
	struct sink_json *s = to_json(sink);
	int r = json_end_object(s, result, err);

	if (r < 0)
		return r;
	r = output_flush(s->out, true);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

/* Within a JSON's lines a newline is escaped; a page's lines all have a task. */
static const char *const json_borders[] = { "}\n" JSON_TEXT_HEAD, "}\n" JSON_EVENTS_HEAD,
					    "]\n[" JSON_FIRST_EVENT, NULL };
static const char *const html_borders[] = { "</html>\n<!-- SPDX", NULL };

/* Shared by all formats. */
#define OPEN_HINT "open it in https://ui.perfetto.dev or chrome://tracing"
#define OPS                                                                                        \
	.run = json_run, .event = json_event, .loss = json_loss, .mark = json_mark,                \
	.marks_last = true, .marks_left_out = json_marks_left_out, .warn = json_warn,              \
	.sync = json_sync, .cut = json_cut, .held = json_held, .string_bound = true,               \
	.shows_state = true, .close = json_close, .free = json_free

const struct sink_ops sink_json_ops = {
	.format = {
		.name = "json",
		.extension = ".json",
		.summary = "JSON for Trace Viewer and the Perfetto UI",
		.open_hint = OPEN_HINT,
		.clocks = json_clocks,
		.for_terminal = true,
		.one_string = true,
		.has_array = true,
		.borders = json_borders,
		.join = json_join,
		.part = "json",
		.host_numbers = true,
		.mend = json_mend,
	},
	.open = json_open,
	OPS,
};

const struct sink_ops sink_json_gz_ops = {
	.format = {
		.name = "json.gz",
		.extension = ".json.gz",
		.summary = "JSON for Trace Viewer and the Perfetto UI, compressed",
		.open_hint = OPEN_HINT,
		.clocks = json_clocks,
		.one_string = true,
		.has_array = true,
		.join = json_join,
		.part = "json",
		.host_numbers = true,
	},
	.gzip = true,
	.open = json_open,
	OPS,
};

const struct sink_ops sink_html_ops = {
	.format = {
		.name = "html",
		.extension = ".html",
		.summary = "a page that shows the trace in a browser",
		.open_hint = "open it in a browser",
		.clocks = json_clocks,
		.has_tables = true,
		.one_string = true,
		.borders = html_borders,
		.join = html_join,
		.part = "html",
		.host_numbers = true,
		.mend = html_mend,
	},
	.open = html_open,
	OPS,
};
