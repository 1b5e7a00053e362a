/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text that the kernel's own `trace` file would show. */
#include <inttypes.h>

#include "export/graph_text.h"
#include "export/ledger.h"
#include "export/line.h"
#include "export/segment.h"
#include "export/sinks.h"

struct sink_text {
	struct sink sink;
	struct output *out;
	struct line *line;
	struct printer *printer;
	struct graph_text *graph;
	bool is_graph; /* function_graph is the recording's tracer */
};

static struct sink_text *text(struct sink *s)
{
	return container_of(s, struct sink_text, sink);
}

static void text_free(struct sink *s)
{
	graph_text_free(text(s)->graph);
	printer_free(text(s)->printer);
	line_free(text(s)->line);
	free(text(s));
}

static void put_header(struct sink_text *s, const struct ledger_totals *totals)
{
	if (s->is_graph)
		graph_text_header(s->graph, &s->out->buf);
	else
		line_header(s->line, totals->in_buffer, totals->written, &s->out->buf);
}

static int text_open(struct sink **ret, const struct trace_info *info,
		     const struct export_options *o, struct output *out, struct error *err)
{
	struct sink_text *s = calloc(1, sizeof(*s));
	struct ledger_totals totals = { 0 };
	int r = s ? 0 : -ENOMEM;

	if (s) {
		s->out = out;
		r = line_new(&s->line, info, o->tgid, LINE_KERNEL);
	}
	if (r == 0)
		r = printer_new(&s->printer, info->events);
	if (r == 0)
		r = graph_text_new(&s->graph, info, s->line, s->printer);
	if (r < 0) {
		if (s)
			text_free(&s->sink);
		return error_errno(err, r, "can't begin the text");
	}
	s->is_graph = graph_text_is_tracer(s->graph);
	/* How many of them are in which of several files is not known before they are written. */
	if (!segment_wanted(&o->rotate))
		ledger_totals_get(&totals, info);
	put_header(s, &totals);
	*ret = &s->sink;
	return 0;
}

_hot_ static int text_event(struct sink *sink, const struct trace_event *ev, struct error *err)
{
	struct sink_text *s = text(sink);
	struct buf *b = &s->out->buf;
	int r;

	if (unlikely(s->is_graph || (ev->desc && ev->desc->funcgraph)) &&
	    graph_text_event(s->graph, ev, b)) {
		r = buf_error(b);
	} else {
		line_prefix(s->line, ev, b);
		r = sink_print(s->printer, ev, b);
		buf_putc(b, '\n');
	}
	if (likely(r == 0))
		r = output_settle(s->out);
	return likely(r == 0) ? 0 : error_errno(err, r, "can't write the text");
}

static int text_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts _unused_,
		     uint64_t after_ts _unused_, uint64_t count, struct error *err)
{
	struct sink_text *s = text(sink);
	int r;

	/* As print_trace_line() of kernel/trace/trace.c. */
	if (count == UINT64_MAX)
		buf_printf(&s->out->buf, "CPU:%u [LOST EVENTS]\n", cpu);
	else
		buf_printf(&s->out->buf, "CPU:%u [LOST %" PRIu64 " EVENTS]\n", cpu, count);
	r = output_settle(s->out);
	return r < 0 ? error_errno(err, r, "can't write the text") : 0;
}

static int text_sync(struct sink *sink, struct error *err _unused_)
{
	line_forget(text(sink)->line);
	return 0;
}

static int text_cut(struct sink *sink, const struct export_result *result _unused_,
		    struct error *err)
{
	struct sink_text *s = text(sink);
	int r = output_cut(s->out, false);

	put_header(s, &(struct ledger_totals){ 0 });
	return r < 0 ? error_errno(err, r, "can't write the text") : 0;
}

static int text_close(struct sink *sink, const struct export_result *result _unused_,
		      struct error *err)
{
	int r = output_flush(text(sink)->out, true);

	return r < 0 ? error_errno(err, r, "can't write the text") : 0;
}

const struct sink_ops sink_text_ops = {
	.format = { "txt", ".txt", "the text of the kernel's trace file", NULL },
	.open = text_open,
	.event = text_event,
	.loss = text_loss,
	.sync = text_sync,
	.cut = text_cut,
	.close = text_close,
	.free = text_free,
};

const struct sink_ops sink_text_gz_ops = {
	.format = { "txt.gz", ".txt.gz", "the text of the kernel's trace file, compressed", NULL },
	.gzip = true,
	.open = text_open,
	.event = text_event,
	.loss = text_loss,
	.sync = text_sync,
	.cut = text_cut,
	.close = text_close,
	.free = text_free,
};
