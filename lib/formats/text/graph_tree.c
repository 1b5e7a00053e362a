/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/text/graph_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "formats/text/line.h"
#include "print/funcgraph.h"

#define FUNCS_MAX 50 /* FTRACE_RETFUNC_DEPTH */
#define CPUS (CPU_LIST_MAX + 1)

/* The kernel's state for a CPU's lines: struct fgraph_cpu_data. */
struct cpu_state {
	int32_t last_pid;
	bool begun; /* last_pid is valid */
	bool leaf;  /* the next exit was already shown with its entry */
	int32_t depth;
	int32_t depth_irq; /* depth of a hidden interrupt's begin; -1: none */
	uint64_t funcs[FUNCS_MAX];
};

struct graph_tree {
	const struct trace_info *info;
	struct graph_form form;
	uint64_t irq_start, irq_end;
	bool irqs_known;
	struct cpu_state *cpus[CPUS]; /* owned; NULL: no event yet */
};

void graph_form_get(struct graph_form *ret, const struct trace_info *info)
{
	const char *release = info->header->release;

	*ret = (struct graph_form){
		.is_tracer = strcmp(info->header->tracer, "function_graph") == 0,
		.flags = info->text.graph,
		.old_retval = !release_at_least(release, 6, 13),
	};
	/* Another tracer's flags mean something else; until 6.18 the graph tracer's were global. */
	if (!ret->is_tracer)
		ret->flags = release_at_least(release, 6, 19) ? 0 : GRAPH_DEFAULT;
}

int graph_tree_new(struct graph_tree **ret, const struct trace_info *info,
		   const struct graph_form *form)
{
	struct graph_tree *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->info = info;
	t->form = *form;
	*ret = t;
	return 0;
}

struct graph_tree *graph_tree_free(struct graph_tree *t)
{
	if (t) {
		for (size_t i = 0; i < CPUS; i++)
			free(t->cpus[i]);
		free(t);
	}
	return NULL;
}

unsigned graph_tree_tasks(const struct graph_tree *t, const struct trace_event *ev,
			  int32_t pids[static 2])
{
	const struct cpu_state *c = ev->cpu < CPUS ? t->cpus[ev->cpu] : NULL;

	pids[0] = ev->pid;
	/* Only another tracer's line begins with it. */
	if (!t->form.is_tracer)
		return 1;
	if (c && c->begun && c->last_pid != ev->pid) {
		pids[1] = c->last_pid;
		return 2;
	}
	return t->form.flags & GRAPH_PROC ? 1 : 0;
}

/* No stream has a higher CPU number. */
static struct cpu_state *graph_state_of(struct graph_tree *t, uint32_t cpu)
{
	if (unlikely(!t->cpus[cpu])) {
		t->cpus[cpu] = calloc(1, sizeof(struct cpu_state));
		if (t->cpus[cpu])
			t->cpus[cpu]->depth_irq = -1;
	}
	return t->cpus[cpu];
}

static void graph_find_irqs(struct graph_tree *t)
{
	t->irqs_known = true;
	/* Unknown: then no function counts as an interrupt's entry. */
	symbols_irq_entries(event_table_symbols(t->info->events), &t->irq_start, &t->irq_end);
}

static bool graph_is_irq(struct graph_tree *t, uint64_t func)
{
	if (unlikely(!t->irqs_known))
		graph_find_irqs(t);
	return func >= t->irq_start && func < t->irq_end;
}

/* Notes whether the CPU switched to another task. */
static void graph_note_switch(struct cpu_state *c, struct graph_line *line)
{
	line->switches = c->begun && c->last_pid != line->pid;
	line->pid_before = c->last_pid;
	c->last_pid = line->pid;
	/* The kernel's "none yet" is -1. */
	c->begun = line->pid != -1;
}

/* Slot of the open function at this depth; NULL: too deep. */
static uint64_t *graph_open_function(struct cpu_state *c, int32_t depth)
{
	return depth >= 0 && depth < FUNCS_MAX ? &c->funcs[depth] : NULL;
}

/* Whether the function belongs to a hidden interrupt. */
static bool graph_hides_entry(const struct graph_tree *t, struct cpu_state *c,
			      const struct graph_line *line)
{
	if ((t->form.flags & GRAPH_IRQS) || !t->form.is_tracer)
		return false;
	if (c->depth_irq >= 0)
		return true;
	if (!line->is_irq)
		return false;
	c->depth_irq = line->depth;
	return true;
}

static bool graph_hides_exit(const struct graph_tree *t, struct cpu_state *c,
			     const struct graph_line *line)
{
	if ((t->form.flags & GRAPH_IRQS) || !t->form.is_tracer || c->depth_irq == -1)
		return false;
	if (c->depth_irq >= line->depth)
		c->depth_irq = -1;
	return true;
}

static void graph_enter(struct graph_tree *t, struct cpu_state *c, const struct trace_event *exit,
			uint64_t func, struct graph_line *line)
{
	uint64_t *open;

	c->leaf = exit;
	line->kind = exit ? GRAPH_LEAF : GRAPH_ENTRY;
	if (exit) {
		line->exit = exit->desc;
		line->exit_len = exit->rec.len;
	}
	if (!t->form.is_tracer)
		return;
	c->depth = exit ? line->depth - 1 : line->depth;
	open = graph_open_function(c, line->depth);
	if (open)
		*open = exit ? 0 : func;
}

static void graph_leave(struct graph_tree *t, struct cpu_state *c, uint64_t func,
			struct graph_line *line)
{
	uint64_t *open;

	line->kind = GRAPH_EXIT;
	if (!t->form.is_tracer)
		return;
	c->depth = line->depth - 1;
	open = graph_open_function(c, line->depth);
	if (open) {
		line->names = *open != func;
		*open = 0;
	}
}

/* Functions and stacks are not shown as comments but as ordinary lines. */
static bool graph_is_plain_print(const struct event *ev)
{
	return !strcmp(ev->system, "ftrace") &&
	       (!strcmp(ev->name, "function") || !strcmp(ev->name, "kernel_stack"));
}

/* Assign field by field: copying a whole struct would stall on its own stores. */
static void graph_begin_line(struct graph_line *line, const struct trace_event *ev)
{
	line->desc = ev->desc;
	line->exit = NULL;
	line->ts = ev->rec.ts;
	line->cpu = ev->cpu;
	line->pid = ev->pid;
	line->pid_before = 0;
	line->depth = 0;
	line->flags = ev->flags;
	line->preempt_count = ev->preempt_count;
	line->kind = GRAPH_COMMENT;
	line->switches = line->names = line->is_irq = false;
	line->len = ev->rec.len;
	line->exit_len = 0;
}

static int graph_take_comment(const struct graph_tree *t, struct cpu_state *c,
			      const struct trace_event *ev, struct graph_line *ret)
{
	if (!t->form.is_tracer || graph_is_plain_print(ev->desc))
		return GRAPH_OTHER;
	graph_begin_line(ret, ev);
	ret->depth = c->depth;
	graph_note_switch(c, ret);
	return 1;
}

int graph_tree_take(struct graph_tree *t, const struct trace_event *ev, struct graph_line *ret)
{
	bool is_exit, shown;
	struct cpu_state *c;
	uint64_t func;

	if (!ev->desc || ev->cpu >= CPUS)
		return GRAPH_OTHER;
	c = graph_state_of(t, ev->cpu);
	if (unlikely(!c))
		return -ENOMEM;
	if (!funcgraph_read_func(ev->desc, &ev->rec, &func))
		return graph_take_comment(t, c, ev, ret);
	is_exit = funcgraph_is(ev->desc, FUNCGRAPH_EXIT);
	shown = c->leaf && is_exit;
	c->leaf = false;
	if (shown)
		return 0;
	graph_begin_line(ret, ev);
	ret->depth = funcgraph_depth(ev->desc, &ev->rec);
	ret->is_irq = graph_is_irq(t, func);
	if (is_exit ? graph_hides_exit(t, c, ret) : graph_hides_entry(t, c, ret))
		return 0;
	if (is_exit)
		graph_leave(t, c, func, ret);
	else
		graph_enter(t, c, ev->exit, func, ret);
	if (t->form.is_tracer)
		graph_note_switch(c, ret);
	return 1;
}
