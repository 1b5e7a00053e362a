/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/text/graph_text.h"

#include <inttypes.h>
#include <string.h>

#include "export/sinks.h"
#include "print/builtin.h"
#include "print/funcgraph.h"
#include "print/printer.h"
#include "util/io.h"

#define INDENT 2      /* TRACE_GRAPH_INDENT */
#define FUNCS_MAX 50  /* FTRACE_RETFUNC_DEPTH */
#define CPUS_MAX 8192 /* CONFIG_NR_CPUS at most */
#define COMM_MAX 64

/* What the kernel knows of a CPU's lines so far: struct fgraph_cpu_data. */
struct cpu_state {
	int32_t last_pid;
	char number[16]; /* the CPU's, with what stands around it */
	uint32_t number_len;
	bool begun; /* last_pid is one */
	bool leaf;  /* the exit that comes next was printed with its entry */
	int32_t depth;
	int32_t depth_irq; /* where the interrupt that is not shown began; -1: none */
	uint64_t funcs[FUNCS_MAX];
};

struct graph_text {
	const struct trace_info *info;
	struct line *line;
	struct printer *printer;
	unsigned flags;
	bool is_tracer;
	bool old_retval; /* until 6.12 */
	int cpu_width;
	uint64_t irq_start, irq_end;
	bool irqs_known;
	struct cpu_state *cpus[CPUS_MAX]; /* owned */
};

static bool since(const struct trace_info *info, unsigned major, unsigned minor)
{
	unsigned a = 0, b = 0;

	return sscanf(info->header->release, "%u.%u", &a, &b) != 2 || a > major ||
	       (a == major && b >= minor);
}

int graph_text_new(struct graph_text **ret, const struct trace_info *info, struct line *line,
		   struct printer *printer)
{
	struct graph_text *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->info = info;
	g->line = line;
	g->printer = printer;
	g->is_tracer = !strcmp(info->header->tracer, "function_graph");
	g->flags = info->text.graph;
	/* Another tracer's flags are not these; until 6.18 the graph tracer's were global. */
	if (!g->is_tracer)
		g->flags = since(info, 6, 19) ? 0 : GRAPH_DEFAULT;
	g->old_retval = !since(info, 6, 13);
	g->cpu_width = snprintf(NULL, 0, "%u", info->header->cpus ? info->header->cpus - 1 : 0);
	*ret = g;
	return 0;
}

struct graph_text *graph_text_free(struct graph_text *g)
{
	if (g) {
		for (size_t i = 0; i < CPUS_MAX; i++)
			free(g->cpus[i]);
		free(g);
	}
	return NULL;
}

bool graph_text_is_tracer(const struct graph_text *g)
{
	return g->is_tracer;
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
			if (g->flags & columns[i].flag)
				buf_puts(out, columns[i].lines[line]);
		buf_puts(out, last[line]);
	}
}

static struct cpu_state *state_of(struct graph_text *g, uint32_t cpu)
{
	if (cpu >= CPUS_MAX)
		return NULL;
	if (!g->cpus[cpu]) {
		g->cpus[cpu] = calloc(1, sizeof(struct cpu_state));
		if (!g->cpus[cpu])
			return NULL;
		g->cpus[cpu]->depth_irq = -1;
		g->cpus[cpu]->number_len =
			(uint32_t)snprintf(g->cpus[cpu]->number, sizeof(g->cpus[cpu]->number),
					   " %*u) ", g->cpu_width, cpu);
	}
	return g->cpus[cpu];
}

static void put_spaces(struct buf *out, size_t n)
{
	char *p = buf_reserve(out, n);

	if (p) {
		memset(p, ' ', n);
		out->len += n;
	}
}

/* %ps */
static void put_symbol(struct graph_text *g, uint64_t address, struct buf *out)
{
	char *p = buf_reserve(out, SYMBOL_TEXT_MAX);

	if (p)
		out->len += (size_t)(print_symbol(g->printer, p, address, 's') - p);
}

/* Of a CPU that has a state. */
static void put_cpu(const struct graph_text *g, uint32_t cpu, struct buf *out)
{
	buf_append(out, g->cpus[cpu]->number, g->cpus[cpu]->number_len);
}

/* Seven letters of the name, centred in 14 columns. */
static void put_task(struct graph_text *g, int32_t pid, uint64_t ts, struct buf *out)
{
	char comm[COMM_MAX], text[COMM_MAX];
	int len, spaces;

	line_comm(g->line, pid, ts, comm);
	len = snprintf(text, sizeof(text), "%.7s-%d", comm, pid);
	spaces = MAX(14 - len, 0);
	put_spaces(out, (size_t)(spaces / 2));
	buf_append(out, text, (size_t)len);
	put_spaces(out, (size_t)(spaces - spaces / 2));
}

/* Two lines and the tasks' names between them where a CPU goes on with another task. */
static void put_switch(struct graph_text *g, struct cpu_state *c, const struct trace_event *ev,
		       struct buf *out)
{
	static const char rule[] = " ------------------------------------------\n";
	int32_t before = c->last_pid;
	bool begun = c->begun;

	if (begun && before == ev->pid)
		return;
	c->last_pid = ev->pid;
	/* The kernel's mark of "none yet" is the number -1. */
	c->begun = ev->pid != -1;
	if (!begun)
		return;
	buf_puts(out, rule);
	put_cpu(g, ev->cpu, out);
	put_task(g, before, ev->rec.ts, out);
	buf_puts(out, " => ");
	put_task(g, ev->pid, ev->rec.ts, out);
	buf_putc(out, '\n');
	buf_puts(out, rule);
	buf_putc(out, '\n');
}

static void put_context(struct graph_text *g, const struct trace_event *ev, struct buf *out)
{
	if (g->info->text.no_context)
		return;
	if (g->flags & GRAPH_ABSTIME)
		buf_printf(out, "%5" PRIu64 ".%06" PRIu64 " |  ", ev->rec.ts / NSEC_PER_SEC,
			   ev->rec.ts % NSEC_PER_SEC / 1000);
	if (g->flags & GRAPH_CPU)
		put_cpu(g, ev->cpu, out);
	if (g->flags & GRAPH_PROC) {
		put_task(g, ev->pid, ev->rec.ts, out);
		buf_puts(out, " | ");
	}
}

/* What stands in the place of a duration. */
static void put_fill(const struct graph_text *g, const char *text, struct buf *out)
{
	if ((g->flags & GRAPH_DURATION) && !g->info->text.no_context)
		buf_puts(out, text);
}

#define NO_DURATION "              |  "

/* trace_find_mark() */
static char mark_of(uint64_t ns)
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

/* Seven digits at most, as many of them as fit behind the dot. */
static void put_duration(const struct graph_text *g, uint64_t ns, struct buf *out)
{
	unsigned rest = (unsigned)(ns % 1000), digits;
	uint64_t us = ns / 1000;
	char *start, *w;

	if (!(g->flags & GRAPH_DURATION) || g->info->text.no_context)
		return;
	if (g->info->header->word_size == 4)
		us = (uint32_t)us;
	w = buf_reserve(out, 64);
	if (!w)
		return;
	*w++ = g->flags & GRAPH_OVERHEAD ? mark_of(ns) : ' ';
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

static void find_irqs(struct graph_text *g)
{
	const struct symbols *symbols = event_table_symbols(g->info->events);

	g->irqs_known = true;
	if (!symbols_find_name(symbols, "__irqentry_text_start", &g->irq_start) ||
	    !symbols_find_name(symbols, "__irqentry_text_end", &g->irq_end))
		g->irq_start = g->irq_end = 0;
}

static bool is_irq(struct graph_text *g, uint64_t func)
{
	if (unlikely(!g->irqs_known))
		find_irqs(g);
	return func >= g->irq_start && func < g->irq_end;
}

/* A line of its own where an interrupt begins or ends. */
static void put_irq(struct graph_text *g, const struct trace_event *ev, uint64_t func,
		    const char *arrow, struct buf *out)
{
	if (likely(!is_irq(g, func)))
		return;
	put_context(g, ev, out);
	put_fill(g, "  ", out);
	buf_puts(out, arrow);
	put_fill(g, " |", out);
	buf_putc(out, '\n');
}

/* print_graph_retval(), but for the name before it and the mark that ends the comment. */
static void put_retval(const struct graph_text *g, uint64_t retval, struct buf *out)
{
	bool wide = g->info->header->word_size == 8;
	uint64_t code = 0;

	if (retval && !(g->flags & GRAPH_RETVAL_HEX)) {
		/* An int, in a long. */
		code = wide && retval >> 32 ? retval : (uint64_t)(int64_t)(int32_t)retval;
		if (code < (uint64_t)-4095)
			code = 0;
	}
	buf_puts(out, g->old_retval ? " = " : " ret=");
	if (code)
		buf_printf(out, "%" PRId64, (int64_t)code);
	else
		buf_printf(out, "0x%" PRIx64, retval);
}

static void put_retaddr(struct graph_text *g, uint64_t retaddr, struct buf *out)
{
	char *p;

	buf_puts(out, " <-");
	p = buf_reserve(out, SYMBOL_TEXT_MAX);
	if (p)
		out->len += (size_t)(print_ip_by(g->printer, p, retaddr, true) - p);
}

static void put_arguments(struct graph_text *g, const struct funcgraph *entry, struct buf *out)
{
	if (entry->arg_count)
		print_arguments(g->printer, entry->func, entry->args, entry->arg_count, out);
	else
		buf_puts(out, "()");
}

static void put_leaf(struct graph_text *g, struct cpu_state *c, const struct trace_event *ev,
		     const struct funcgraph *entry, const struct funcgraph *exit, struct buf *out)
{
	bool retval = (g->flags & GRAPH_RETVAL) && exit->has_retval;
	bool retaddr = (g->flags & GRAPH_RETADDR) && entry->has_retaddr;

	c->leaf = true;
	if (g->is_tracer) {
		c->depth = entry->depth - 1;
		if (entry->depth >= 0 && entry->depth < FUNCS_MAX)
			c->funcs[entry->depth] = 0;
	}
	put_duration(g, exit->rettime - exit->calltime, out);
	put_spaces(out, (size_t)MAX(entry->depth, 0) * INDENT);
	put_symbol(g, entry->func, out);
	put_arguments(g, entry, out);
	buf_putc(out, ';');
	if (retval || retaddr) {
		buf_puts(out, " /*");
		if (retaddr)
			put_retaddr(g, entry->retaddr, out);
		if (retval)
			put_retval(g, exit->retval, out);
		buf_puts(out, " */");
	}
	buf_putc(out, '\n');
	put_irq(g, ev, exit->func, "<==========", out);
}

static void put_nested(struct graph_text *g, struct cpu_state *c, const struct funcgraph *entry,
		       struct buf *out)
{
	if (g->is_tracer) {
		c->depth = entry->depth;
		if (entry->depth >= 0 && entry->depth < FUNCS_MAX)
			c->funcs[entry->depth] = entry->func;
	}
	put_fill(g, NO_DURATION, out);
	put_spaces(out, (size_t)MAX(entry->depth, 0) * INDENT);
	put_symbol(g, entry->func, out);
	put_arguments(g, entry, out);
	buf_puts(out, " {");
	if ((g->flags & GRAPH_RETADDR) && entry->has_retaddr) {
		buf_puts(out, " /*");
		put_retaddr(g, entry->retaddr, out);
		buf_puts(out, " */");
	}
	buf_putc(out, '\n');
}

/* Whether the function belongs to an interrupt that is not to be shown. */
static bool hides_entry(struct graph_text *g, struct cpu_state *c, const struct funcgraph *f)
{
	if ((g->flags & GRAPH_IRQS) || !g->is_tracer)
		return false;
	if (c->depth_irq >= 0)
		return true;
	if (!is_irq(g, f->func))
		return false;
	c->depth_irq = f->depth;
	return true;
}

static bool hides_exit(const struct graph_text *g, struct cpu_state *c, const struct funcgraph *f)
{
	if ((g->flags & GRAPH_IRQS) || !g->is_tracer || c->depth_irq == -1)
		return false;
	if (c->depth_irq >= f->depth)
		c->depth_irq = -1;
	return true;
}

static void put_entry(struct graph_text *g, struct cpu_state *c, const struct trace_event *ev,
		      const struct funcgraph *entry, struct buf *out)
{
	struct funcgraph exit;

	if (hides_entry(g, c, entry))
		return;
	if (g->is_tracer)
		put_switch(g, c, ev, out);
	put_irq(g, ev, entry->func, "==========>", out);
	put_context(g, ev, out);
	if (funcgraph_read_leaf(g->info->events, &ev->rec, ev->next, entry, &exit))
		put_leaf(g, c, ev, entry, &exit, out);
	else
		put_nested(g, c, entry, out);
}

static void put_exit(struct graph_text *g, struct cpu_state *c, const struct trace_event *ev,
		     const struct funcgraph *exit, struct buf *out)
{
	bool matches = true;

	if (hides_exit(g, c, exit))
		return;
	if (g->is_tracer) {
		c->depth = exit->depth - 1;
		if (exit->depth >= 0 && exit->depth < FUNCS_MAX) {
			matches = c->funcs[exit->depth] == exit->func;
			c->funcs[exit->depth] = 0;
		}
		put_switch(g, c, ev, out);
	}
	put_context(g, ev, out);
	put_duration(g, exit->rettime - exit->calltime, out);
	put_spaces(out, (size_t)MAX(exit->depth, 0) * INDENT);
	if ((g->flags & GRAPH_RETVAL) && exit->has_retval) {
		buf_puts(out, "} /* ");
		put_symbol(g, exit->func, out);
		put_retval(g, exit->retval, out);
		buf_puts(out, " */");
	} else if (matches && !(g->flags & GRAPH_TAIL)) {
		buf_putc(out, '}');
	} else {
		buf_puts(out, "} /* ");
		put_symbol(g, exit->func, out);
		buf_puts(out, " */");
	}
	buf_putc(out, '\n');
	if (g->flags & GRAPH_OVERRUN)
		buf_printf(out, " (Overruns: %u)\n", exit->overrun);
	put_irq(g, ev, exit->func, "<==========", out);
}

static void put_comment(struct graph_text *g, struct cpu_state *c, const struct trace_event *ev,
			struct buf *out)
{
	put_switch(g, c, ev, out);
	put_context(g, ev, out);
	put_fill(g, NO_DURATION, out);
	if (c->depth > 0)
		put_spaces(out, (size_t)(c->depth + 1) * INDENT);
	buf_puts(out, "/* ");
	if (!builtin_print_message(g->printer, ev->desc, &ev->rec, out))
		sink_print(g->printer, ev, out);
	buf_puts(out, " */\n");
}

/* Functions and stacks are no comments: they have the line of any tracer. */
static bool is_plain_print(const struct event *ev)
{
	return !strcmp(ev->system, "ftrace") &&
	       (!strcmp(ev->name, "function") || !strcmp(ev->name, "kernel_stack"));
}

/* Not within its caller, whose way with any other event is short. */
_noinline_ bool graph_text_event(struct graph_text *g, const struct trace_event *ev,
				 struct buf *out)
{
	struct cpu_state *c = ev->desc ? state_of(g, ev->cpu) : NULL;
	struct funcgraph f;

	if (!c)
		return false;
	if (funcgraph_read(g->info->events, ev->desc, &ev->rec, &f)) {
		bool printed = c->leaf && f.kind == FUNCGRAPH_EXIT;

		c->leaf = false;
		if (printed)
			return true;
		if (!g->is_tracer)
			line_prefix(g->line, ev, out);
		if (f.kind == FUNCGRAPH_ENTRY)
			put_entry(g, c, ev, &f, out);
		else
			put_exit(g, c, ev, &f, out);
		return true;
	}
	if (!g->is_tracer || is_plain_print(ev->desc))
		return false;
	put_comment(g, c, ev, out);
	return true;
}
