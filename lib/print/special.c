/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiles events that the kernel prints with functions of their own: probes
 * (kernel/trace/trace_kprobe.c, trace_uprobe.c, trace_fprobe.c), synthetic events
 * (trace_events_synth.c) and user events (print_fields() of trace_output.c). System calls are in
 * syscall.c.
 */
#include <string.h>

#include "print/builtin.h"
#include "print/compile.h"
#include "print/printer.h"

static bool special_starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Prints a probe's address as symbol and offset. */
static void compile_probe_address(struct compiler *c, const struct field *f, char kind)
{
	struct op *op;

	compiler_field(c, f);
	op = compiler_add(c, OP_SYMBOL);
	op->size = (uint8_t)c->env->expr.word_size;
	op->arg = (uint8_t)kind;
	c->bound += INT_TEXT_MAX;
	c->depth--;
}

static int compile_probe(struct compiler *c, const struct expr *format, const struct expr *args)
{
	const struct event *ev = c->env->expr.event;
	const struct field *ip = compiler_find_field(c, "__probe_ip");
	const struct field *func = compiler_find_field(c, "__probe_func");
	const struct field *ret_ip = compiler_find_field(c, "__probe_ret_ip");
	const char *rest = format->text;

	if (ip && special_starts_with(rest, "(%lx)")) {
		rest += strlen("(%lx)");
	} else if (func && ret_ip && special_starts_with(rest, "(%lx <- %lx)")) {
		rest += strlen("(%lx <- %lx)");
	} else {
		return 0;
	}
	compiler_text(c, ev->name);
	compiler_text(c, ": (");
	compile_probe_address(c, ip ? ip : ret_ip, 'F');
	args = args ? args->next : NULL;
	if (!ip) {
		compiler_text(c, " <- ");
		compile_probe_address(c, func, 'f');
		args = args ? args->next : NULL;
	}
	compiler_text(c, ")");
	compiler_format(c, rest, strlen(rest), args);
	return 1;
}

/*
 * The print fmt has "a=%d, b=%.*s", since Linux 7 "a=%d b=%s". The kernel separates fields by a
 * space and passes the longest length (STR_VAR_LEN_MAX) itself: each field has one argument.
 */
static int compile_synthetic(struct compiler *c, const struct expr *format, const struct expr *args)
{
	const struct event *ev = c->env->expr.event;
	const char *p = format->text, *between = strstr(p, ", ") ? ", " : " ";

	compiler_text(c, ev->name);
	compiler_text(c, ": ");
	for (; args; args = args->next) {
		const char *end = strstr(p, between);
		size_t len = end ? (size_t)(end - p) : strlen(p);
		struct expr one = *args;
		const char *star = memmem(p, len, "%.*s", 4);

		one.next = NULL;
		if (star) {
			compiler_literal(c, p, (size_t)(star - p));
			compiler_format(c, "%.256s", 6, &one);
		} else {
			compiler_format(c, p, len, &one);
		}
		p += len + (end ? strlen(between) : 0);
		if (args->next)
			compiler_text(c, " ");
	}
	return 1;
}

/* The format of a user event's field. Empty: it has an op of its own. NULL: it can't be printed. */
static const char *special_field_format(const struct compiler *c, const struct field *f)
{
	/* Since 6.19 the kernel shows the bytes of a string that is not printable. */
	if (f->is_string)
		return f->is_dynamic && (!c->env->kernel || c->env->kernel >= (6 << 16 | 19))
			       ? ""
			       : "%s";
	if (f->is_array || f->is_dynamic)
		return NULL;
	switch (f->size) {
	case 8:
		return "0x%llx (%lld)";
	case 4:
		return "0x%x (%d)";
	case 2:
		return "0x%hx (%hu)";
	case 1:
		return "";
	default:
		return NULL;
	}
}

static void special_field(struct compiler *c, const struct field *f, const struct expr *arg)
{
	const char *format = special_field_format(c, f);
	struct expr decimal = *arg, value = *arg;
	struct op *op;

	compiler_text(c, " ");
	compiler_text(c, f->name);
	compiler_text(c, "=");
	if (format && *format) {
		decimal.next = NULL;
		value.next = f->is_string ? NULL : &decimal;
		compiler_format(c, format, strlen(format), &value);
		return;
	}
	op = compiler_add(c, f->is_string ? OP_USER_TEXT : OP_USER_BYTE);
	op->offset = f->offset;
	op->need = f->offset + (f->is_string ? 4 : 1);
	op->imm = f->is_relative ? f->offset + f->size : 0;
}

/*
 * The kernel prints each field by its type, and does not use the print fmt, which has one argument
 * for each field.
 */
static int compile_user_event(struct compiler *c, const struct expr *args)
{
	const struct event *ev = c->env->expr.event;
	const struct expr *arg = args;
	size_t count = 0;

	for (; arg && count < ev->field_count; arg = arg->next)
		if (!special_field_format(c, &ev->fields[count++]))
			return 0;
	if (arg || count < ev->field_count)
		return 0;
	compiler_text(c, ev->name);
	compiler_text(c, ":");
	for (size_t i = 0; i < count; i++, args = args->next)
		special_field(c, &ev->fields[i], args);
	return 1;
}

/* The function tracer's event: the most frequent one by far. */
static bool compile_function(struct compiler *c)
{
	const struct field *ip = compiler_find_field(c, "ip");
	const struct field *parent = compiler_find_field(c, "parent_ip");
	const struct field *args = compiler_find_field(c, "args");
	uint8_t size = (uint8_t)c->env->expr.word_size;
	struct op *op;

	if (!ip || !parent || ip->size != size || parent->size != size)
		return false;
	op = compiler_add(c, OP_FUNCTION);
	op->size = size;
	op->offset = ip->offset;
	op->imm = parent->offset;
	op->need = MAX(ip->offset, parent->offset) + size;
	op->arg = args && args->offset == op->need;
	c->bound += 2 * SYMBOL_TEXT_MAX + sizeof(" <-");
	return true;
}

int compile_special(struct compiler *c, const struct expr *format, const struct expr *args)
{
	const struct event *ev = c->env->expr.event;
	enum builtin builtin = builtin_find(ev);

	if (builtin == BUILTIN_FUNCTION && compile_function(c))
		return 1;
	if (builtin != BUILTIN_NONE) {
		compiler_add(c, OP_BUILTIN)->arg = (uint8_t)builtin;
		return 1;
	}
	if (!strcmp(ev->system, "syscalls"))
		return compile_syscall(c, format, args);
	if (!strcmp(ev->system, "synthetic"))
		return compile_synthetic(c, format, args);
	if (!strcmp(ev->system, "user_events"))
		return compile_user_event(c, args);
	return compile_probe(c, format, args);
}
