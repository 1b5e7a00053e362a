/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Building programs: what the files that compile share. */
#pragma once

#include "print/program.h"

struct compiler {
	const struct compile_env *env;
	struct op *ops; /* malloc'd while it grows */
	size_t count, cap;
	struct buf literal; /* not yet given to an op */
	unsigned depth;	    /* of the value stack */
	unsigned slots;	    /* marks in use */
	uint64_t bound;	    /* bytes; sums of what hostile formats say */
	const char *why, *unknown;
	uint32_t name_len; /* as struct program's */
	bool no_memory;
};

/* Keep the first reason; always false. */
bool compiler_fail(struct compiler *c, const char *why);
bool compiler_no_memory(struct compiler *c);
/* The op is good until the next one is added. */
struct op *compiler_add(struct compiler *c, enum op_code code);
void compiler_literal(struct compiler *c, const char *text, size_t len);
/* compile_format.c: ops for every conversion of format with args. */
bool compiler_format(struct compiler *c, const char *format, size_t len, const struct expr *args);
void compiler_text(struct compiler *c, const char *text);
const struct field *compiler_find_field(const struct compiler *c, const char *name);
/* A field's value on the stack. */
bool compiler_field(struct compiler *c, const struct field *f);
/* Pushes a number, or an address in the record. */
bool compiler_value(struct compiler *c, const struct expr *e);
/* The op pops some values and pushes some. */
bool compiler_stack(struct compiler *c, unsigned pops, unsigned pushes);
/* Whether e is a place in the record that is known now, len bytes inside its field. */
bool compiler_address(const struct expr *e, unsigned len, uint32_t *ret);

/* Ops that print e in some way; arg: how. */
typedef bool emit_fn(struct compiler *c, const struct expr *e, const void *arg);
/* What %s prints, as it is. arg: not used. */
emit_fn compiler_string;
/* e, a ? b : c, where each branch is printed by emit. */
bool compiler_branches(struct compiler *c, const struct expr *e, emit_fn *emit, const void *arg);
/* What stands for e where a part of it is not to be known. */
bool compiler_unknown(struct compiler *c, const struct expr *e);
/* Takes a slot of marks; who takes it gives it back (c->slots). */
bool compiler_mark(struct compiler *c, unsigned *ret);

/* compile_plain.c: whether all that they print is plain (base/plain.h), whatever the record. */
bool ops_are_plain(const struct op *ops, size_t count);

/*
 * special.c: events whose own print function in the kernel does not follow the
 * print fmt: probes, synthetic events, ftrace's own. 1: compiled; 0: not one of them;
 * negative: failed.
 */
int compile_special(struct compiler *c, const struct expr *format, const struct expr *args);
/* syscall.c: the same for the system calls. */
int compile_syscall(struct compiler *c, const struct expr *format, const struct expr *args);
