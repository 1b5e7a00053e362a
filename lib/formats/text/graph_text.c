/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/text/graph_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "export/sink.h"
#include "print/builtin.h"
#include "print/format_int.h"
#include "print/funcgraph.h"
#include "print/printer.h"

#define INDENT 2 /* TRACE_GRAPH_INDENT */
#define COMM_MAX 64
#define CPU_TEXT_MAX 32

struct graph_text {
	const struct trace_info *info;
	struct line *line;
	struct printer *printer;
	struct graph_form form; /* a copy: the cache line of the original is written all the time */
	int cpu_width;
};

int graph_text_new(struct graph_text **ret, const struct trace_info *info,
		   const struct graph_form *form, struct line *line, struct printer *printer)
{
	struct graph_text *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->info = info;
	g->line = line;
	g->printer = printer;
	g->form = *form;
	g->cpu_width = snprintf(NULL, 0, "%u", info->header->cpus ? info->header->cpus - 1 : 0);
	*ret = g;
	return 0;
}

struct graph_text *graph_text_free(struct graph_text *g)
{
	free(g);
	return NULL;
}

void graph_text_header(const struct graph_text *g, struct buf *out)
{
	static const struct {
		unsigned flag;
		const char *lines[2];
	} columns[] = {
		{ GRAPH_ABSTIME, { "     TIME       ", "      |         " } },
		{ GRAPH_CPU, { " CPU", " |  " } },
		{ GRAPH_PROC, { "  TASK/PID       ", "   |    |        " } },
		{ GRAPH_DURATION, { "  DURATION   ", "   |   |      " } },
	};
	static const char *const last[] = { "               FUNCTION CALLS\n",
					    "               |   |   |   |\n" };

	buf_puts(out, "# tracer: function_graph\n#\n");
	for (int line = 0; line < 2 && !g->info->text.no_context; line++) {
		buf_putc(out, '#');
		for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
			if (g->form.flags & columns[i].flag)
				buf_puts(out, columns[i].lines[line]);
		buf_puts(out, last[line]);
	}
}

static void graph_put_spaces(struct buf *out, size_t n)
{
	char *p = buf_reserve(out, n);

	if (p) {
		memset(p, ' ', n);
		out->len += n;
	}
}

/* %ps */
static void graph_put_symbol(struct graph_text *g, uint64_t address, struct buf *out)
{
	char *p = buf_reserve(out, SYMBOL_TEXT_MAX);

	if (p)
		out->len += (size_t)(print_symbol(g->printer, p, address, 's') - p);
}

static void graph_put_cpu(const struct graph_text *g, uint32_t cpu, struct buf *out)
{
	char *start = buf_reserve(out, CPU_TEXT_MAX), *w = start, digits[INT_TEXT_MAX];
	int len;

	if (!start)
		return;
	len = (int)(format_dec(digits, cpu) - digits);
	*w++ = ' ';
	for (int i = len; i < g->cpu_width; i++)
		*w++ = ' ';
	memcpy(w, digits, (size_t)len);
	memcpy(w + len, ") ", 2);
	out->len += (size_t)(w - start + len + 2);
}

/* The first seven letters of the name, centred in 14 columns. */
static void graph_put_task(struct graph_text *g, int32_t pid, uint64_t ts, struct buf *out)
{
	char comm[COMM_MAX], text[COMM_MAX];
	int len, spaces;

	line_comm(g->line, pid, ts, comm);
	len = snprintf(text, sizeof(text), "%.7s-%d", comm, pid);
	spaces = MAX(14 - len, 0);
	graph_put_spaces(out, (size_t)(spaces / 2));
	buf_append(out, text, (size_t)len);
	graph_put_spaces(out, (size_t)(spaces - spaces / 2));
}

/* Two rules with the tasks' names in between. */
static void graph_put_switch(struct graph_text *g, const struct graph_line *l, struct buf *out)
{
	static const char rule[] = " ------------------------------------------\n";

	buf_puts(out, rule);
	graph_put_cpu(g, l->cpu, out);
	graph_put_task(g, l->pid_before, l->ts, out);
	buf_puts(out, " => ");
	graph_put_task(g, l->pid, l->ts, out);
	buf_putc(out, '\n');
	buf_puts(out, rule);
	buf_putc(out, '\n');
}

static void graph_put_context(struct graph_text *g, const struct graph_line *l, struct buf *out)
{
	if (g->info->text.no_context)
		return;
	if (g->form.flags & GRAPH_ABSTIME)
		buf_printf(out, "%5" PRIu64 ".%06" PRIu64 " |  ", l->ts / NSEC_PER_SEC,
			   l->ts % NSEC_PER_SEC / 1000);
	if (g->form.flags & GRAPH_CPU)
		graph_put_cpu(g, l->cpu, out);
	if (g->form.flags & GRAPH_PROC) {
		graph_put_task(g, l->pid, l->ts, out);
		buf_puts(out, " | ");
	}
}

/* Fills the duration column. */
static void graph_put_fill(const struct graph_text *g, const char *text, struct buf *out)
{
	if ((g->form.flags & GRAPH_DURATION) && !g->info->text.no_context)
		buf_puts(out, text);
}

#define NO_DURATION "              |  "

/* trace_find_mark() */
static char graph_mark_of(uint64_t ns)
{
	static const struct {
		uint64_t above;
		char mark;
	} marks[] = {
		{ 1000000000, '$' }, { 100000000, '@' }, { 10000000, '*' },
		{ 1000000, '#' },    { 100000, '!' },	 { 10000, '+' },
	};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (ns > marks[i].above)
			return marks[i].mark;
	return ' ';
}

/* Up to seven digits, the fraction as long as they allow. */
static void graph_put_duration(const struct graph_text *g, uint64_t ns, struct buf *out)
{
	unsigned rest = (unsigned)(ns % 1000), digits;
	uint64_t us = ns / 1000;
	char *start, *w;

	if (!(g->form.flags & GRAPH_DURATION) || g->info->text.no_context)
		return;
	if (g->info->header->word_size == 4)
		us = (uint32_t)us;
	w = buf_reserve(out, 64);
	if (!w)
		return;
	*w++ = g->form.flags & GRAPH_OVERHEAD ? graph_mark_of(ns) : ' ';
	*w++ = ' ';
	start = w;
	w = format_dec(w, us);
	digits = (unsigned)(w - start);
	if (digits < 7) {
		*w++ = '.';
		*w++ = (char)('0' + rest / 100);
		if (digits < 6)
			*w++ = (char)('0' + rest / 10 % 10);
		if (digits < 5)
			*w++ = (char)('0' + rest % 10);
	}
	digits = (unsigned)(w - start);
	memcpy(w, " us ", 4);
	w += 4;
	for (; digits < 8; digits++)
		*w++ = ' ';
	memcpy(w, "|  ", 3);
	out->len = (size_t)(w + 3 - out->data);
}

/* Writes a separate line where an interrupt begins or ends. */
static void graph_put_irq(struct graph_text *g, const struct graph_line *l, const char *arrow,
			  struct buf *out)
{
	if (likely(!l->is_irq))
		return;
	graph_put_context(g, l, out);
	graph_put_fill(g, "  ", out);
	buf_puts(out, arrow);
	graph_put_fill(g, " |", out);
	buf_putc(out, '\n');
}

static void graph_put_retval(const struct graph_text *g, uint64_t retval, struct buf *out)
{
	char *p;

	buf_puts(out, g->form.old_retval ? " = " : " ret=");
	p = buf_reserve(out, 32);
	if (p)
		out->len += (size_t)(funcgraph_put_retval(g->printer, p, retval,
							  g->form.flags & GRAPH_RETVAL_HEX) -
				     p);
}

static void graph_put_retaddr(struct graph_text *g, uint64_t retaddr, struct buf *out)
{
	char *p;

	buf_puts(out, " <-");
	p = buf_reserve(out, SYMBOL_TEXT_MAX);
	if (p)
		out->len += (size_t)(print_ip_by(g->printer, p, retaddr, true) - p);
}

static void graph_put_arguments(struct graph_text *g, const struct funcgraph *entry,
				struct buf *out)
{
	if (entry->arg_count)
		print_arguments(g->printer, entry->func, entry->args, entry->arg_count, out);
	else
		buf_puts(out, "()");
}

static void graph_put_indent(int32_t depth, struct buf *out)
{
	graph_put_spaces(out, (size_t)MAX(depth, 0) * INDENT);
}

static void graph_put_leaf(struct graph_text *g, const struct graph_line *l,
			   const struct funcgraph *entry, const struct funcgraph *exit,
			   struct buf *out)
{
	bool retval = (g->form.flags & GRAPH_RETVAL) && exit->has_retval;
	bool retaddr = (g->form.flags & GRAPH_RETADDR) && entry->has_retaddr;

	graph_put_duration(g, exit->rettime - exit->calltime, out);
	graph_put_indent(entry->depth, out);
	graph_put_symbol(g, entry->func, out);
	graph_put_arguments(g, entry, out);
	buf_putc(out, ';');
	if (retval || retaddr) {
		buf_puts(out, " /*");
		if (retaddr)
			graph_put_retaddr(g, entry->retaddr, out);
		if (retval)
			graph_put_retval(g, exit->retval, out);
		buf_puts(out, " */");
	}
	buf_putc(out, '\n');
	graph_put_irq(g, l, "<==========", out);
}

static void graph_put_nested(struct graph_text *g, const struct funcgraph *entry, struct buf *out)
{
	graph_put_fill(g, NO_DURATION, out);
	graph_put_indent(entry->depth, out);
	graph_put_symbol(g, entry->func, out);
	graph_put_arguments(g, entry, out);
	buf_puts(out, " {");
	if ((g->form.flags & GRAPH_RETADDR) && entry->has_retaddr) {
		buf_puts(out, " /*");
		graph_put_retaddr(g, entry->retaddr, out);
		buf_puts(out, " */");
	}
	buf_putc(out, '\n');
}

static void graph_put_exit(struct graph_text *g, const struct graph_line *l,
			   const struct funcgraph *exit, struct buf *out)
{
	graph_put_context(g, l, out);
	graph_put_duration(g, exit->rettime - exit->calltime, out);
	graph_put_indent(exit->depth, out);
	buf_putc(out, '}');
	if ((g->form.flags & GRAPH_RETVAL) && exit->has_retval) {
		buf_puts(out, " /* ");
		graph_put_symbol(g, exit->func, out);
		graph_put_retval(g, exit->retval, out);
		buf_puts(out, " */");
	} else if (l->names || (g->form.flags & GRAPH_TAIL)) {
		buf_puts(out, " /* ");
		graph_put_symbol(g, exit->func, out);
		buf_puts(out, " */");
	}
	buf_putc(out, '\n');
	if (g->form.flags & GRAPH_OVERRUN)
		buf_printf(out, " (Overruns: %u)\n", exit->overrun);
	graph_put_irq(g, l, "<==========", out);
}

static void graph_put_comment(struct graph_text *g, const struct graph_line *l,
			      const struct trace_event *ev, struct buf *out)
{
	graph_put_context(g, l, out);
	graph_put_fill(g, NO_DURATION, out);
	if (l->depth > 0)
		graph_put_indent(l->depth + 1, out);
	buf_puts(out, "/* ");
	if (!builtin_print_message(g->printer, ev->desc, &ev->rec, out))
		sink_print(g->printer, ev, out);
	buf_puts(out, " */\n");
}

/* Cannot fail: the tree has read these records. */
static void graph_put_leaf_of(struct graph_text *g, const struct graph_line *l,
			      const uint8_t *record, const struct funcgraph *entry, struct buf *out)
{
	const struct record rec = { l->ts, record + l->len, l->exit_len };
	struct funcgraph exit;

	if (funcgraph_read(l->exit, &rec, &exit))
		graph_put_leaf(g, l, entry, &exit, out);
}

static void graph_put_function(struct graph_text *g, const struct graph_line *l,
			       const struct trace_event *ev, struct buf *out)
{
	struct funcgraph f;

	if (!funcgraph_read(l->desc, &ev->rec, &f))
		return;
	if (l->kind == GRAPH_EXIT) {
		graph_put_exit(g, l, &f, out);
		return;
	}
	graph_put_irq(g, l, "==========>", out);
	graph_put_context(g, l, out);
	if (l->kind == GRAPH_LEAF)
		graph_put_leaf_of(g, l, ev->rec.data, &f, out);
	else
		graph_put_nested(g, &f, out);
}

int graph_text_line(struct graph_text *g, const struct graph_line *l, const uint8_t *record,
		    struct buf *out)
{
	const struct trace_event ev = {
		.desc = l->desc,
		.rec = { l->ts, record, l->len },
		.cpu = l->cpu,
		.pid = l->pid,
		.id = l->desc->id,
		.flags = l->flags,
		.preempt_count = l->preempt_count,
	};

	if (!g->form.is_tracer)
		line_prefix(g->line, &ev, out);
	if (l->switches)
		graph_put_switch(g, l, out);
	if (l->kind == GRAPH_COMMENT)
		graph_put_comment(g, l, &ev, out);
	else
		graph_put_function(g, l, &ev, out);
	return buf_error(out);
}
