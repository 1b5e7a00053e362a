/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/funcgraph.h"

#include <string.h>

#include "print/format_int.h"
#include "print/printer.h"

/* The kernel keeps 50 levels, or as many return addresses as fit in a page. */
#define DEPTH_MAX 4096

/* Finds a number field of ev. Raises *least to the field's end. */
static struct number_at funcgraph_find_number(const struct event *ev, const char *name,
					      uint32_t *least)
{
	const struct field *f = event_field(ev, name);
	uint64_t end;

	if (!f || !is_number_size(f->size))
		return (struct number_at){ 0 };
	end = (uint64_t)f->offset + f->size;
	*least = MAX(*least, (uint32_t)MIN(end, (uint64_t)UINT32_MAX));
	return (struct number_at){ f->offset, f->size };
}

/* Linux 6.19: the return address is the first word of args. */
static void funcgraph_take_first_word(struct funcgraph_layout *l)
{
	uint64_t end = (uint64_t)l->args_offset + l->word_size;

	if (end >= UINT32_MAX)
		return;
	l->retaddr = (struct number_at){ l->args_offset, l->word_size };
	l->args_offset = (uint32_t)end;
	l->least = MAX(l->least, l->args_offset);
}

bool funcgraph_layout_find(const struct event_table *t, const struct event *ev,
			   struct funcgraph_layout *ret)
{
	bool exit = !strcmp(ev->name, "funcgraph_exit");
	const struct field *args;

	if (strcmp(ev->system, "ftrace") || (!exit && strcmp(ev->name, "funcgraph_entry") &&
					     strcmp(ev->name, "fgraph_retaddr_entry")))
		return false;
	*ret = (struct funcgraph_layout){
		.kind = exit ? FUNCGRAPH_EXIT : FUNCGRAPH_ENTRY,
		.swap = t->swap,
		.word_size = t->env.word_size,
	};
	ret->func = funcgraph_find_number(ev, "func", &ret->least);
	ret->depth = funcgraph_find_number(ev, "depth", &ret->least);
	if (exit) {
		ret->calltime = funcgraph_find_number(ev, "calltime", &ret->least);
		ret->rettime = funcgraph_find_number(ev, "rettime", &ret->least);
		ret->overrun = funcgraph_find_number(ev, "overrun", &ret->least);
		ret->retval = funcgraph_find_number(ev, "retval", &ret->least);
	} else {
		ret->retaddr = funcgraph_find_number(ev, "retaddr", &ret->least);
		args = event_field(ev, "args");
		ret->args_offset = args ? args->offset : UINT32_MAX;
		if (args && !strcmp(ev->name, "fgraph_retaddr_entry") && !ret->retaddr.size)
			funcgraph_take_first_word(ret);
	}
	return ret->func.size && ret->depth.size &&
	       (!exit || (ret->calltime.size && ret->rettime.size));
}

/* Most fields have 8 bytes. */
static inline uint64_t funcgraph_get(const struct funcgraph_layout *l, const struct record *rec,
				     struct number_at at)
{
	if (likely(at.size == 8))
		return load_uint(rec->data + at.offset, 8, l->swap);
	return at.size ? load_uint(rec->data + at.offset, at.size, l->swap) : 0;
}

static inline int32_t funcgraph_get_depth(const struct funcgraph_layout *l,
					  const struct record *rec)
{
	int32_t depth = (int32_t)funcgraph_get(l, rec, l->depth);

	return MAX(MIN(depth, DEPTH_MAX), -1);
}

_hot_ bool funcgraph_read(const struct event *ev, const struct record *rec, struct funcgraph *ret)
{
	const struct funcgraph_layout *l = ev->funcgraph;

	if (!l || rec->len < l->least)
		return false;
	ret->kind = l->kind;
	ret->func = funcgraph_get(l, rec, l->func);
	ret->depth = funcgraph_get_depth(l, rec);
	ret->has_retval = l->retval.size;
	ret->has_retaddr = l->retaddr.size;
	ret->args = NULL;
	ret->arg_count = 0;
	if (l->kind == FUNCGRAPH_EXIT) {
		ret->calltime = funcgraph_get(l, rec, l->calltime);
		ret->rettime = funcgraph_get(l, rec, l->rettime);
		ret->overrun = (uint32_t)funcgraph_get(l, rec, l->overrun);
		ret->retval = funcgraph_get(l, rec, l->retval);
		return true;
	}
	ret->retaddr = funcgraph_get(l, rec, l->retaddr);
	if (l->args_offset < rec->len) {
		ret->args = rec->data + l->args_offset;
		ret->arg_count = (rec->len - l->args_offset) / l->word_size;
	}
	return true;
}

bool funcgraph_read_func(const struct event *ev, const struct record *rec, uint64_t *ret)
{
	const struct funcgraph_layout *l = ev->funcgraph;

	if (!l || rec->len < l->least)
		return false;
	*ret = funcgraph_get(l, rec, l->func);
	return true;
}

int32_t funcgraph_depth(const struct event *ev, const struct record *rec)
{
	return funcgraph_get_depth(ev->funcgraph, rec);
}

/* Whatever the function's type: a function may return the place of the kernel's own data. */
static uint64_t funcgraph_hide(const struct printer *p, uint64_t retval)
{
	const bool is_address =
		p->table->env.word_size == 8 ? number_is_address(retval) : (int32_t)retval < 0;

	return is_address ? printer_pointer(p, retval) : retval;
}

char *funcgraph_put_retval(const struct printer *p, char *to, uint64_t retval, bool hex)
{
	const unsigned word_size = p->table->env.word_size;
	uint64_t code = 0;

	if (retval && !hex) {
		/* An int in a long. */
		code = word_size == 8 && retval >> 32 ? retval : (uint64_t)(int64_t)(int32_t)retval;
		if (code < (uint64_t)-4095)
			code = 0;
	}
	if (!code)
		return format_hex(stpcpy(to, "0x"), funcgraph_hide(p, retval));
	*to++ = '-';
	return format_dec(to, -code);
}
