/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events that the kernel prints by functions of their own, not by their print
 * fmt: system calls (kernel/trace/trace_syscalls.c), probes (trace_kprobe.c,
 * trace_uprobe.c, trace_fprobe.c), synthetic events (trace_events_synth.c).
 */
#include <string.h>

#include "print/builtin.h"
#include "print/compile.h"

static void literal(struct compiler *c, const char *s)
{
	compiler_literal(c, s, strlen(s));
}

static const struct field *find_field(const struct event *ev, const char *name)
{
	for (size_t i = 0; i < ev->field_count; i++)
		if (!strcmp(ev->fields[i].name, name))
			return &ev->fields[i];
	return NULL;
}

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* "__name_val" of an argument: the user memory that it points to, since 6.19. */
static const struct field *user_data(const struct event *ev, const struct field *arg)
{
	char name[128];

	snprintf(name, sizeof(name), "__%s_val", arg->name);
	return find_field(ev, name);
}

static void syscall_user_data(struct compiler *c, const struct field *data,
			      const struct field *next, bool is_text)
{
	struct op *op;

	literal(c, is_text ? " \"" : " (");
	op = compiler_add(c, is_text ? OP_STR_DYNAMIC : OP_SYSCALL_BYTES);
	c->bound += OP_SHORT_STRING;
	op->offset = data->offset;
	op->need = data->offset + 4;
	if (!is_text && next) { /* its value says how much there was */
		op->imm = next->offset;
		op->size = (uint8_t)next->size;
		op->need = MAX(op->need, next->offset + next->size);
	}
	literal(c, is_text ? "\"" : ")");
}

static int syscall_enter(struct compiler *c, const struct expr *format)
{
	const struct event *ev = c->env->expr.event;
	bool first = true;

	literal(c, "sys_");
	literal(c, ev->name + strlen("sys_enter_"));
	literal(c, "(");
	for (size_t i = 0; i < ev->field_count; i++) {
		const struct field *f = &ev->fields[i], *data;
		char quoted[128];
		struct op *op;

		if (!strcmp(f->name, "__syscall_nr") || f->is_dynamic)
			continue;
		if (!first)
			literal(c, ", ");
		first = false;
		literal(c, f->name);
		literal(c, ": ");
		op = compiler_add(c, OP_SYSCALL_ARG);
		op->offset = f->offset;
		op->size = (uint8_t)f->size;
		op->need = f->offset + f->size;
		/* Small values in decimal, others with 0x since 6.18; bare hexadecimal before. */
		op->arg = !c->env->kernel || c->env->kernel >= (6 << 16 | 18);
		c->bound += INT_TEXT_MAX;
		data = user_data(ev, f);
		snprintf(quoted, sizeof(quoted), "%s: 0x%%0%ulx \"%%s\"", f->name,
			 c->env->expr.word_size);
		if (data)
			syscall_user_data(c, data,
					  i + 1 < ev->field_count ? &ev->fields[i + 1] : NULL,
					  strstr(format->text, quoted) != NULL);
	}
	literal(c, ")");
	return 1;
}

static int syscall_exit(struct compiler *c)
{
	const struct event *ev = c->env->expr.event;
	const struct field *ret = find_field(ev, "ret");

	if (!ret)
		return 0;
	literal(c, "sys_");
	literal(c, ev->name + strlen("sys_exit_"));
	literal(c, " -> 0x");
	compiler_field(c, ret);
	compiler_add(c, OP_NORMALIZE)->size = (uint8_t)ret->size;
	compiler_add(c, OP_HEX);
	c->bound += INT_TEXT_MAX;
	c->depth--;
	return 1;
}

/* An address where a probe sits: with its offset from a symbol. */
static void probe_address(struct compiler *c, const struct field *f, char kind)
{
	struct op *op;

	compiler_field(c, f);
	op = compiler_add(c, OP_SYMBOL);
	op->size = (uint8_t)c->env->expr.word_size;
	op->arg = (uint8_t)kind;
	c->bound += INT_TEXT_MAX;
	c->depth--;
}

static int probe(struct compiler *c, const struct expr *format, const struct expr *args)
{
	const struct event *ev = c->env->expr.event;
	const struct field *ip = find_field(ev, "__probe_ip");
	const struct field *func = find_field(ev, "__probe_func");
	const struct field *ret_ip = find_field(ev, "__probe_ret_ip");
	const char *rest = format->text;

	if (ip && starts_with(rest, "(%lx)")) {
		rest += strlen("(%lx)");
	} else if (func && ret_ip && starts_with(rest, "(%lx <- %lx)")) {
		rest += strlen("(%lx <- %lx)");
	} else {
		return 0;
	}
	literal(c, ev->name);
	literal(c, ": (");
	probe_address(c, ip ? ip : ret_ip, 'F');
	args = args ? args->next : NULL;
	if (!ip) {
		literal(c, " <- ");
		probe_address(c, func, 'f');
		args = args ? args->next : NULL;
	}
	literal(c, ")");
	compiler_format(c, rest, strlen(rest), args);
	return 1;
}

/*
 * "a=%d, b=%.*s" in the print fmt; the kernel parts the fields by a space and
 * passes the longest string itself (STR_VAR_LEN_MAX), one argument a field.
 */
static int synthetic(struct compiler *c, const struct expr *format, const struct expr *args)
{
	const struct event *ev = c->env->expr.event;
	const char *p = format->text;

	literal(c, ev->name);
	literal(c, ": ");
	for (; args; args = args->next) {
		const char *comma = strstr(p, ", ");
		size_t len = comma ? (size_t)(comma - p) : strlen(p);
		struct expr one = *args;
		const char *star = memmem(p, len, "%.*s", 4);

		one.next = NULL;
		if (star) {
			compiler_literal(c, p, (size_t)(star - p));
			compiler_format(c, "%.256s", 6, &one);
		} else {
			compiler_format(c, p, len, &one);
		}
		p += len + (comma ? 2 : 0);
		if (args->next)
			literal(c, " ");
	}
	return 1;
}

int compile_special(struct compiler *c, const struct expr *format, const struct expr *args)
{
	const struct event *ev = c->env->expr.event;
	enum builtin builtin = builtin_find(ev);

	if (builtin != BUILTIN_NONE) {
		compiler_add(c, OP_BUILTIN)->arg = (uint8_t)builtin;
		return 1;
	}
	if (!strcmp(ev->system, "syscalls") && starts_with(ev->name, "sys_enter_"))
		return syscall_enter(c, format);
	if (!strcmp(ev->system, "syscalls") && starts_with(ev->name, "sys_exit_"))
		return syscall_exit(c);
	if (!strcmp(ev->system, "synthetic"))
		return synthetic(c, format, args);
	return probe(c, format, args);
}
