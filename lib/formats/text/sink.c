/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the text that the kernel's own `trace` file would show. */
#include <inttypes.h>

#include "base/io.h"
#include "base/thread.h"
#include "base/visible.h"
#include "export/mend.h"
#include "export/render.h"
#include "export/segment.h"
#include "export/selection.h"
#include "export/sink.h"
#include "formats/text/graph_text.h"
#include "formats/text/join.h"
#include "formats/text/line.h"
#include "trace/ledger.h"

/* State of one thread. */
struct text_state {
	struct line *line;
	struct printer *printer;
	struct graph_text *graph;
};

struct sink_text {
	struct sink sink;
	const struct trace_info *info;
	bool followed;
	bool is_part;		      /* of a recording: the kernel's counts are of all */
	const struct selection *part; /* what was asked for, borrowed; NULL: the whole */
	struct output *out;
	bool tgid;
	uint64_t last_ts;
	struct render *render;
	struct graph_form form;
	struct graph_tree *tree;
};

static struct sink_text *to_text(struct sink *s)
{
	return container_of(s, struct sink_text, sink);
}

static void text_end(void *userdata)
{
	struct text_state *s = userdata;

	graph_text_free(s->graph);
	printer_free(s->printer);
	line_free(s->line);
	free(s);
}

static int text_begin(void **ret, struct sink *sink)
{
	const struct trace_info *info = to_text(sink)->info;
	struct text_state *s = cache_lines_new(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = line_new(&s->line, info, to_text(sink)->tgid, LINE_KERNEL);
	if (r == 0)
		r = printer_new(&s->printer, info->events);
	if (r == 0)
		r = graph_text_new(&s->graph, info, &to_text(sink)->form, s->line, s->printer);
	if (r < 0) {
		text_end(s);
		return r;
	}
	*ret = s;
	return 0;
}

_hot_ static int text_render(void *state, const struct trace_event *ev, struct buf *out,
			     uint64_t *weight _unused_)
{
	struct text_state *s = state;
	int r;

	line_prefix(s->line, ev, out);
	r = sink_print(s->printer, ev, out);
	buf_putc(out, '\n');
	return r;
}

/* Renders a line of a graph. */
static int text_render_note(void *state, const void *note, size_t len _unused_, struct buf *out,
			    uint64_t *weight _unused_)
{
	const struct graph_line *line = note;

	return graph_text_line(((struct text_state *)state)->graph, line,
			       (const uint8_t *)(line + 1), out);
}

/* Like print_trace_line() of kernel/trace/trace.c. */
static int text_render_loss(void *state _unused_, uint32_t cpu, uint64_t count, struct buf *out,
			    uint64_t *weight _unused_)
{
	if (count == UINT64_MAX)
		buf_printf(out, "CPU:%u [LOST EVENTS]\n", cpu);
	else
		buf_printf(out, "CPU:%u [LOST %" PRIu64 " EVENTS]\n", cpu, count);
	return buf_error(out);
}

static const struct render_ops text_render_ops = {
	.begin = text_begin,
	.end = text_end,
	.event = text_render,
	.loss = text_render_loss,
	.note = text_render_note,
	.failure = "can't write the text",
};

static void text_free(struct sink *s)
{
	render_free(to_text(s)->render);
	graph_tree_free(to_text(s)->tree);
	free(to_text(s));
}

/* The kernel has no such line. What people typed must stay on it. */
static void text_put_part(const struct selection *part, struct buf *out)
{
	_cleanup_buf_ struct buf what = BUF_INIT;

	selection_describe(part, &what);
	buf_puts(out, "# a part of the recording: ");
	buf_visible(out, buf_string(&what) ?: "", VISIBLE_MAX);
	buf_putc(out, '\n');
}

static void text_put_header(struct sink_text *s, const struct ledger_totals *totals)
{
	const struct text_state *state = render_state(s->render);

	if (s->form.is_tracer)
		graph_text_header(state->graph, &s->out->buf);
	else
		line_header(state->line, s->followed || s->is_part ? NULL : totals, &s->out->buf);
	if (s->part)
		text_put_part(s->part, &s->out->buf);
}

static int text_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	const struct trace_info *info = env->info;
	const struct export_options *o = env->options;
	struct output *out = env->out;
	struct sink_text *s = cache_lines_new(sizeof(*s));
	bool segments = segment_wanted(&o->rotate);
	struct ledger_totals totals = { 0 };
	int r = s ? 0 : -ENOMEM;

	if (s) {
		s->info = info;
		s->out = out;
		s->followed = env->followed;
		s->is_part = env->selection;
		s->part = o->selection.is_whole ? NULL : env->selection;
		s->tgid = o->tgid;
		graph_form_get(&s->form, info);
		r = graph_tree_new(&s->tree, info, &s->form);
	}
	/* One thread where a line depends on the output so far. */
	if (r == 0)
		r = render_new(&s->render, &text_render_ops, &s->sink, env,
			       env->followed || segments ? 1 : o->threads);
	if (r < 0) {
		if (s)
			text_free(&s->sink);
		return error_errno(err, r, "can't begin the text");
	}
	/* With several files, the counts for each are not yet known. */
	if (!segments)
		ledger_totals_get(&totals, info);
	text_put_header(s, &totals);
	*ret = &s->sink;
	return 0;
}

/* Looks up the tasks whose names ev's line may show. */
static inline int text_learn_tasks(struct sink_text *s, const struct trace_event *ev,
				   struct error *err)
{
	int32_t pids[2];
	unsigned count = graph_tree_tasks(s->tree, ev, pids);
	int r = 0;

	for (unsigned i = 0; r == 0 && i < count; i++)
		r = render_learn(s->render, pids[i], ev->rec.ts, err);
	return r;
}

/* A note: the line, the record, and a leaf's exit record. */
static size_t text_note_size(const struct trace_event *ev)
{
	return sizeof(struct graph_line) + ev->rec.len + (ev->exit ? ev->exit->rec.len : 0);
}

/* An event of a graph's tree, or an ordinary one among them. */
static _noinline_ int text_graph_event(struct sink_text *s, const struct trace_event *ev,
				       struct error *err)
{
	struct graph_line *line;
	uint8_t *records;
	void *room;
	int r = text_learn_tasks(s, ev, err);

	if (r == 0)
		r = render_note_room(s->render, text_note_size(ev), &room, err);
	if (r < 0)
		return r;
	line = room;
	r = graph_tree_take(s->tree, ev, line);
	if (r == GRAPH_OTHER)
		return render_event(s->render, ev, err);
	if (r <= 0)
		return r < 0 ? error_errno(err, r, "can't write the text") : 0;
	records = (uint8_t *)(line + 1);
	memcpy(records, ev->rec.data, line->len);
	if (ev->exit)
		memcpy(records + line->len, ev->exit->rec.data, line->exit_len);
	return render_note_put(s->render, sizeof(*line) + line->len + line->exit_len, err);
}

_hot_ static int text_event(struct sink *sink, const struct trace_event *ev, struct error *err)
{
	struct sink_text *s = to_text(sink);

	s->last_ts = ev->rec.ts;
	if (unlikely(s->form.is_tracer || (ev->desc && ev->desc->funcgraph)))
		return text_graph_event(s, ev, err);
	return render_event(s->render, ev, err);
}

static int text_run(struct sink *sink, int (*give)(void *userdata, struct error *err),
		    void *userdata, struct error *err)
{
	return render_run(to_text(sink)->render, give, userdata, err);
}

static int text_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts _unused_,
		     uint64_t after_ts _unused_, uint64_t count, struct error *err)
{
	return render_loss(to_text(sink)->render, cpu, count, err);
}

static int text_sync(struct sink *sink, struct error *err)
{
	struct render *render = to_text(sink)->render;
	const struct text_state *state = render_state(render);
	int r = render_drain(render, err);

	line_forget(state->line);
	task_table_forget(to_text(sink)->info->tasks, to_text(sink)->last_ts);
	return r;
}

static int text_cut(struct sink *sink, const struct export_result *result _unused_,
		    struct error *err)
{
	struct sink_text *s = to_text(sink);
	int r = render_drain(s->render, err);

	if (r < 0)
		return r;
	r = output_cut(s->out, false);
	if (s->followed)
		task_table_forget(s->info->tasks, s->last_ts);
	text_put_header(s, &(struct ledger_totals){ 0 });
	return r < 0 ? error_errno(err, r, "can't write the text") : 0;
}

static int text_close(struct sink *sink, const struct export_result *result _unused_,
		      struct error *err)
{
	int r = render_drain(to_text(sink)->render, err);

	if (r < 0)
		return r;
	r = output_flush(to_text(sink)->out, true);
	return r < 0 ? error_errno(err, r, "can't write the text") : 0;
}

/* Shared by the plain and the compressed format. */
/* Larger than the head. */
#define HEAD_MAX 4096

/* Whether a line before end is not the head's. */
static int text_has_event(int fd, off_t end)
{
	char head[HEAD_MAX];
	ssize_t n = pread_full(fd, head, sizeof(head), 0);
	size_t len = n < 0 ? 0 : (size_t)MIN((off_t)n, end);

	if (n < 0)
		return (int)n;
	for (const char *p = head; p && p < head + len;) {
		if (*p != '#')
			return 1;
		p = memchr(p, '\n', (size_t)(head + len - p));
		p = p ? p + 1 : NULL;
	}
	return end > (off_t)len;
}

/* Keeps the whole lines. 0: none is an event's. */
static int text_mend(int fd, off_t size)
{
	off_t end = mend_last_line(fd, size);
	int r = end < 0 ? (int)end : text_has_event(fd, end);

	return r < 0 ? r : mend_cut(fd, r ? end : 0);
}

#define OPS                                                                                        \
	.open = text_open, .run = text_run, .event = text_event, .loss = text_loss,                \
	.sync = text_sync, .cut = text_cut, .close = text_close, .free = text_free

const struct sink_ops sink_text_ops = {
	.format = {
		.name = "txt",
		.extension = ".txt",
		.summary = "the text of the kernel's trace file",
		.for_terminal = true,
		.begins = "# ",
		.mend = text_mend,
		.join = text_join,
		.part = "txt",
	},
	OPS,
};

const struct sink_ops sink_text_gz_ops = {
	.format = {
		.name = "txt.gz",
		.extension = ".txt.gz",
		.summary = "the text of the kernel's trace file, compressed",
		.join = text_join,
		.part = "txt",
	},
	.gzip = true,
	OPS,
};
