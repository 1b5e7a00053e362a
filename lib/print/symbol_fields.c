/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "print/builtin.h"
#include "print/printer.h"

static char builtin_symbol_kind(enum builtin b, const struct field *f)
{
	bool ip = !strcmp(f->name, "ip") || !strcmp(f->name, "parent_ip");

	switch (b) {
	case BUILTIN_FUNCTION:
	case BUILTIN_FUNC_REPEATS:
		return ip ? 'f' : 0;
	case BUILTIN_BPUTS:
	case BUILTIN_BPRINT:
		return !strcmp(f->name, "ip") ? 'f' : 0;
	case BUILTIN_KERNEL_STACK:
		return !strcmp(f->name, "caller") ? SYMBOL_STACK : 0;
	default:
		return 0;
	}
}

static char program_symbol_kind(const struct program *p, const struct field *f)
{
	for (size_t i = 1; i < p->count; i++) {
		const struct op *op = &p->ops[i], *before = op - 1;

		if (before->code == OP_NORMALIZE && i > 1) /* a cast */
			before--;
		if (op->code == OP_SYMBOL && before->code == OP_LOAD &&
		    before->offset == f->offset && before->size == f->size)
			return (char)op->arg;
		/* The array's address, then its length. */
		if (op->code == OP_STACK && i > 1 && before[-1].code == OP_DYNAMIC &&
		    before[-1].offset == f->offset)
			return SYMBOL_STACK;
	}
	return 0;
}

char event_symbol_kind(const struct event *ev, const struct field *f)
{
	enum builtin b = builtin_find(ev);

	if (b != BUILTIN_NONE)
		return builtin_symbol_kind(b, f);
	return ev->program ? program_symbol_kind(ev->program, f) : 0;
}
