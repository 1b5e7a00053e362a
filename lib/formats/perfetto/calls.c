/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/calls.h"

#include <inttypes.h>

#include "formats/perfetto/track_event.h"
#include "print/arguments.h"
#include "print/funcgraph.h"

bool pf_calls_wanted(const struct trace_info *info)
{
	return info->text.graph & (GRAPH_RETVAL | GRAPH_RETADDR | GRAPH_ARGS);
}

void pf_calls_deinit(struct pf_calls *c)
{
	buf_deinit(&c->name);
	buf_deinit(&c->args);
	buf_deinit(&c->text);
}

static struct text calls_text(const struct buf *b)
{
	return (struct text){ b->data, (uint32_t)b->len };
}

static void calls_put_text(struct pf_calls *c, struct text key)
{
	value_put_text(&c->args, &key, calls_text(&c->text));
}

static void calls_put_caller(struct pf_calls *c, const struct funcgraph *entry)
{
	char *p;

	buf_clear(&c->text);
	p = buf_reserve(&c->text, SYMBOL_TEXT_MAX);
	if (!p)
		return;
	c->text.len = (size_t)(print_ip_by(c->printer, p, entry->retaddr, true) - p);
	calls_put_text(c, TEXT("from"));
}

static void calls_put_arguments(struct pf_calls *c, const struct funcgraph *entry)
{
	struct argument_iter it;
	bool any = false;

	argument_iter_init(&it, c->printer, entry->func, entry->args, entry->arg_count);
	for (; argument_next(&it); any = true) {
		if (!any)
			value_put(&c->args, &TEXT("arguments"), VALUE_DICT);
		buf_clear(&c->text);
		if (it.type)
			argument_put(&it, &c->text);
		else
			buf_puts(&c->text, "not recorded");
		calls_put_text(c, (struct text){ it.name, (uint32_t)it.name_len });
	}
	if (any)
		value_put(&c->args, NULL, VALUE_END);
}

static void calls_put_retval(struct pf_calls *c, const struct funcgraph *exit)
{
	char value[32];
	char *end = funcgraph_put_retval(c->printer, value, exit->retval,
					 c->info->text.graph & GRAPH_RETVAL_HEX);

	value_put_text(&c->args, &TEXT("ret"), (struct text){ value, (uint32_t)(end - value) });
}

static int calls_put_name(struct pf_calls *c, uint64_t func)
{
	char *p;

	buf_clear(&c->name);
	p = buf_reserve(&c->name, SYMBOL_TEXT_MAX);
	if (!p)
		return -ENOMEM;
	c->name.len = (size_t)(print_symbol(c->printer, p, func, 's') - p);
	return 0;
}

/* Below the thread; of idle tasks below the CPU's number. Both have the names that readers use. */
static int calls_find_track(const struct pf_calls *c, struct pf_marks *m,
			    const struct trace_event *ev, uint64_t *ret, struct buf *out)
{
	struct pf_track_form form = { .name = TEXT("Funcgraph") };
	struct pf_track *track;
	char idle[40];
	int r = 0;

	m->tracks.ts = ev->rec.ts;
	if (ev->pid > 0) {
		const struct task *task = task_table_find(c->info->tasks, ev->pid, ev->rec.ts);

		r = pf_track_describe_actor(&m->tracks, task && task->tgid ? task->tgid : ev->pid,
					    ev->pid, &form.parent, out);
	} else {
		int len = snprintf(idle, sizeof(idle), "swapper%" PRIu32 " -funcgraph", ev->cpu);

		form.name = (struct text){ idle, (uint32_t)len };
	}
	if (r < 0)
		return r;
	*ret = pf_track_uuid('g', form.parent ? 0 : ev->cpu, 0, TEXT(""), form.parent);
	track = pf_track_get(&m->tracks, *ret);
	return track ? pf_track_describe(&m->tracks, track, &form, out) : -ENOMEM;
}

int pf_calls_put(struct pf_calls *c, struct pf_marks *m, const struct trace_event *ev,
		 struct buf *out)
{
	struct mark call = { .phase = PHASE_BEGIN };
	struct funcgraph g = { 0 };
	uint64_t track;
	int r;

	if (!funcgraph_read(ev->desc, &ev->rec, &g))
		return 0;
	r = calls_put_name(c, g.func);
	if (r == 0)
		r = calls_find_track(c, m, ev, &track, out);
	if (r < 0)
		return r;
	buf_clear(&c->args);
	if (g.retaddr)
		calls_put_caller(c, &g);
	if (g.arg_count)
		calls_put_arguments(c, &g);
	if (g.has_retval && c->info->text.graph & GRAPH_RETVAL)
		calls_put_retval(c, &g);
	call.part[PART_NAME] = calls_text(&c->name);
	call.part[PART_ARGS] = calls_text(&c->args);
	/* Readers end the slice of that name: after a loss, another one may be open. */
	pf_event_begin(m, g.kind == FUNCGRAPH_ENTRY ? SLICE_BEGIN : SLICE_END, track);
	pf_event_put(m, &call);
	return buf_error(&c->text) ?: buf_error(&c->args) ?: pf_event_end(m, ev->rec.ts, out);
}
