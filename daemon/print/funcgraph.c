/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/funcgraph.h"

#include <string.h>

#include "print/printer.h"

/* The kernel keeps 50, or what fits in a page of return addresses. */
#define DEPTH_MAX 4096

static const struct field *number(const struct event *ev, const char *name)
{
	const struct field *f = event_field(ev, name);

	return f && is_number_size(f->size) ? f : NULL;
}

bool funcgraph_layout_find(const struct event *ev, struct funcgraph_layout *ret)
{
	bool exit = !strcmp(ev->name, "funcgraph_exit");

	if (strcmp(ev->system, "ftrace") || (!exit && strcmp(ev->name, "funcgraph_entry") &&
					     strcmp(ev->name, "fgraph_retaddr_entry")))
		return false;
	*ret = (struct funcgraph_layout){
		.kind = exit ? FUNCGRAPH_EXIT : FUNCGRAPH_ENTRY,
		.func = number(ev, "func"),
		.depth = number(ev, "depth"),
		.retaddr = number(ev, "retaddr"),
		.args = event_field(ev, "args"),
		.calltime = number(ev, "calltime"),
		.rettime = number(ev, "rettime"),
		.overrun = number(ev, "overrun"),
		.retval = number(ev, "retval"),
	};
	return ret->func && ret->depth && (!exit || (ret->calltime && ret->rettime));
}

/* 0 where the field or the record does not reach so far. */
static uint64_t get(const struct event_table *t, const struct record *rec, const struct field *f,
		    bool *short_record)
{
	if (!f)
		return 0;
	if (unlikely(f->size > rec->len || f->offset > rec->len - f->size)) {
		*short_record = true;
		return 0;
	}
	return load_uint(rec->data + f->offset, f->size, t->swap);
}

bool funcgraph_read(const struct event_table *t, const struct event *ev, const struct record *rec,
		    struct funcgraph *ret)
{
	const struct funcgraph_layout *l = ev->funcgraph;
	unsigned word = t->env.word_size;
	bool too_short = false;
	int64_t depth;

	if (!l)
		return false;
	ret->kind = l->kind;
	ret->func = get(t, rec, l->func, &too_short);
	depth = (int32_t)get(t, rec, l->depth, &too_short);
	ret->depth = (int32_t)MAX(MIN(depth, DEPTH_MAX), -1);
	ret->has_retval = ret->has_retaddr = false;
	ret->args = NULL;
	ret->arg_count = 0;
	if (l->kind == FUNCGRAPH_EXIT) {
		ret->calltime = get(t, rec, l->calltime, &too_short);
		ret->rettime = get(t, rec, l->rettime, &too_short);
		ret->overrun = (uint32_t)get(t, rec, l->overrun, &too_short);
		ret->has_retval = l->retval;
		ret->retval = get(t, rec, l->retval, &too_short);
		return !too_short;
	}
	ret->has_retaddr = l->retaddr;
	ret->retaddr = get(t, rec, l->retaddr, &too_short);
	if (l->args && l->args->offset < rec->len) {
		ret->args = rec->data + l->args->offset;
		ret->arg_count = (rec->len - l->args->offset) / word;
	}
	return !too_short;
}

bool funcgraph_read_leaf(const struct event_table *t, const struct record *rec,
			 const struct record *next, const struct funcgraph *entry,
			 struct funcgraph *ret)
{
	const struct event *ev;
	uint64_t id, pid, next_pid;

	if (!next || !record_read_uint(t, next, 0, 2, &id) ||
	    !record_read_uint(t, rec, t->common.pid_offset, 4, &pid) ||
	    !record_read_uint(t, next, t->common.pid_offset, 4, &next_pid) || pid != next_pid)
		return false;
	ev = event_table_find(t, (uint16_t)id);
	return ev && funcgraph_read(t, ev, next, ret) && ret->kind == FUNCGRAPH_EXIT &&
	       ret->func == entry->func;
}
