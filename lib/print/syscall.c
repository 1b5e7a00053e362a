/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiles system calls, printed as in kernel/trace/trace_syscalls.c. */
#include <string.h>

#include "print/compile.h"
#include "print/expr_build.h"

/*
 * Since 6.18 values below 10 are decimal and others have 0x; before, all are hexadecimal without
 * it.
 */
static bool syscall_prefixes_hex(const struct compiler *c)
{
	return !c->env->kernel || c->env->kernel >= (6 << 16 | 18);
}

/* "__name_val" of an argument: the user memory it points to, since 6.19. */
static const struct field *syscall_user_data(const struct compiler *c, const struct field *arg)
{
	char name[128];

	snprintf(name, sizeof(name), "__%s_val", arg->name);
	return compiler_find_field(c, name);
}

static void syscall_user_text(struct compiler *c, const struct field *data)
{
	struct op *op;

	compiler_text(c, " \"");
	op = compiler_add(c, OP_SYSCALL_TEXT);
	op->offset = data->offset;
	op->need = data->offset + 4;
	compiler_text(c, "\"");
}

/* size: the argument that holds the full length, or NULL. */
static void syscall_user_bytes(struct compiler *c, const struct field *data,
			       const struct field *size)
{
	struct op *op;

	compiler_text(c, " ");
	op = compiler_add(c, OP_SYSCALL_BYTES);
	op->offset = data->offset;
	op->need = data->offset + 4;
	if (size && is_number_size(size->size)) {
		op->imm = size->offset;
		op->size = (uint8_t)size->size;
		op->need = MAX(op->need, size->offset + size->size);
	}
}

static void syscall_argument(struct compiler *c, const struct field *f, const struct field *next,
			     const struct expr *format)
{
	const struct field *data = syscall_user_data(c, f);
	char quoted[128];
	struct op *op;

	if (!is_number_size(f->size)) {
		compiler_fail(c, "an argument of unsupported size");
		return;
	}
	compiler_text(c, f->name);
	compiler_text(c, ": ");
	op = compiler_add(c, OP_SYSCALL_ARG);
	op->offset = f->offset;
	op->size = (uint8_t)f->size;
	op->need = f->offset + f->size;
	op->arg = syscall_prefixes_hex(c);
	c->bound += INT_TEXT_MAX;
	if (!data)
		return;
	snprintf(quoted, sizeof(quoted), "%s: 0x%%0%ulx \"%%s\"", f->name, c->env->expr.word_size);
	if (strstr(format->text, quoted))
		syscall_user_text(c, data);
	else
		syscall_user_bytes(c, data, next);
}

static int syscall_enter(struct compiler *c, const struct expr *format)
{
	const struct event *ev = c->env->expr.event;
	bool first = true;

	compiler_text(c, "(");
	for (size_t i = 0; i < ev->field_count; i++) {
		const struct field *f = &ev->fields[i];

		if (!strcmp(f->name, "__syscall_nr") || f->is_dynamic)
			continue;
		if (!first)
			compiler_text(c, ", ");
		first = false;
		syscall_argument(c, f, i + 1 < ev->field_count ? f + 1 : NULL, format);
	}
	compiler_text(c, ")");
	return 1;
}

static uint64_t syscall_flag(const struct name_table *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->entries[i].text, name))
			return t->entries[i].mask;
	return 0;
}

/* The print fmt of openat lacks O_TMPFILE; the kernel's function checks it first. */
static struct name_table *syscall_with_tmpfile(const struct expr_env *env,
					       const struct name_table *t)
{
	struct name_table *all = arena_alloc(env->arena, sizeof(*all));
	struct name_entry *entries = arena_alloc(env->arena, (t->count + 1) * sizeof(*entries));

	if (!all || !entries)
		return NULL;
	entries[0] =
		(struct name_entry){ 020000000 | syscall_flag(t, "O_DIRECTORY"), "O_TMPFILE", 9 };
	memcpy(entries + 1, t->entries, t->count * sizeof(*entries));
	*all = *t;
	all->entries = entries;
	all->count++;
	all->longest = MAX(t->longest, entries[0].len);
	return all;
}

/* The first argument of the print fmt that prints flags by name. */
static const struct expr *syscall_find_flags(const struct expr *args)
{
	for (; args; args = args->next)
		if (args->kind == EXPR_COND && args->b->kind == EXPR_FLAGS)
			return args->b;
	return NULL;
}

static struct expr *syscall_mask(const struct expr_env *env, struct expr *bits, uint64_t mask)
{
	return expr_make_binary(env, '&', bits, expr_const(env, mask, 4, true));
}

/* O_RDONLY is no bit: it is printed if neither O_WRONLY nor O_RDWR is set. */
static struct expr *syscall_read_only(const struct expr_env *env, struct expr *bits)
{
	struct expr *alone = expr_text(env, "O_RDONLY", 8);
	struct expr *with_others = expr_text(env, "O_RDONLY|", 9);

	return expr_cond(env, syscall_mask(env, bits, 3), expr_text(env, "", 0),
			 expr_cond(env, bits, with_others, alone));
}

/* The mode, if a flag that may create a file is set. */
static struct expr *syscall_file_mode(const struct expr_env *env, struct expr *bits,
				      uint64_t making, const struct field *f)
{
	struct expr *e = expr_new(env, EXPR_FORMAT, (struct expr_type){ .class = TYPE_TEXT });

	if (!e)
		return NULL;
	e->text = ", mode: 0%03o";
	e->text_len = (uint32_t)strlen(e->text);
	e->a = expr_field(env, f);
	return e->a ? expr_cond(env, syscall_mask(env, bits, making), e, expr_text(env, "", 0))
		    : NULL;
}

/*
 * sys_enter_openat_print(), since 6.19: numbers in decimal, flags by name, the mode only if it
 * counts. The print fmt is nearly the same.
 */
static int syscall_enter_openat(struct compiler *c, const struct expr *format,
				const struct expr *args)
{
	const struct expr_env *env = &c->env->expr;
	const struct field *flags = compiler_find_field(c, "flags");
	const struct field *mode = compiler_find_field(c, "mode");
	const struct field *filename = compiler_find_field(c, "__filename_val");
	const struct expr *named = syscall_find_flags(args);
	struct expr *bits, *access, *names;
	struct name_table *t;

	if (!named || !flags || !mode || !filename)
		return syscall_enter(c, format);
	t = syscall_with_tmpfile(env, named->table);
	bits = expr_cast(env, expr_field(env, flags), int_type(4, true));
	access = syscall_read_only(env, bits);
	names = expr_new(env, EXPR_FLAGS, named->type);
	if (!t || !names) {
		compiler_no_memory(c);
		return 1;
	}
	names->table = t;
	names->a = expr_cast(env, bits, int_type(env->word_size, false));
	names->next =
		syscall_file_mode(env, bits, t->entries[0].mask | syscall_flag(t, "O_CREAT"), mode);
	if (!access || !names->a || !names->next) {
		compiler_fail(c, "flags that are not a number");
		return 1;
	}
	access->next = names;
	compiler_format(c, "(dfd: %lu, filename: %lu", SIZE_MAX, args);
	syscall_user_text(c, filename);
	compiler_format(c, ", flags: %s%s%s)", SIZE_MAX, access);
	return 1;
}

static int syscall_exit(struct compiler *c)
{
	const struct field *ret = compiler_find_field(c, "ret");

	compiler_text(c, " -> 0x");
	compiler_field(c, ret);
	compiler_add(c, OP_NORMALIZE)->size = (uint8_t)ret->size;
	compiler_add(c, OP_HEX);
	c->bound += INT_TEXT_MAX;
	c->depth--;
	return 1;
}

int compile_syscall(struct compiler *c, const struct expr *format, const struct expr *args)
{
	static const char entry[] = "sys_enter_", exit[] = "sys_exit_";
	const char *name = c->env->expr.event->name;

	if (!strncmp(name, entry, strlen(entry))) {
		name += strlen(entry);
		compiler_text(c, "sys_");
		compiler_text(c, name);
		return strcmp(name, "openat") ? syscall_enter(c, format)
					      : syscall_enter_openat(c, format, args);
	}
	if (strncmp(name, exit, strlen(exit)) || !compiler_find_field(c, "ret"))
		return 0;
	compiler_text(c, "sys_");
	compiler_text(c, name + strlen(exit));
	return syscall_exit(c);
}
