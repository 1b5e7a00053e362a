/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program compiler's internals, shared by the files that compile. */
#pragma once

#include "print/program.h"

struct compiler {
	const struct compile_env *env;
	struct op *ops; /* allocated with malloc while it grows */
	size_t count, cap;
	struct buf literal; /* text for the next op */
	unsigned depth;	    /* depth of the value stack */
	unsigned slots;	    /* slots in use */
	uint64_t bound;	    /* bytes; 64 bits, as hostile formats can make large sums */
	const char *why;
	uint32_t name_len; /* see struct program */
	bool no_memory;
};

/* Keeps the first reason. Always returns false. */
bool compiler_fail(struct compiler *c, const char *why);
bool compiler_no_memory(struct compiler *c);
/* The op stays valid until the next one is added. */
struct op *compiler_add(struct compiler *c, enum op_code code);
void compiler_literal(struct compiler *c, const char *text, size_t len);
/* compile_format.c: adds ops for every conversion of format with args. */
bool compiler_format(struct compiler *c, const char *format, size_t len, const struct expr *args);
void compiler_text(struct compiler *c, const char *text);
const struct field *compiler_find_field(const struct compiler *c, const char *name);
/* Pushes a field's value. */
bool compiler_field(struct compiler *c, const struct field *f);
/* Pushes a number, or an address in the record. */
bool compiler_value(struct compiler *c, const struct expr *e);
/* Accounts for an op's pops and pushes. */
bool compiler_stack(struct compiler *c, unsigned pops, unsigned pushes);
/* True if e is a record offset known now, with len bytes inside its field. */
bool compiler_address(const struct expr *e, unsigned len, uint32_t *ret);

/* Adds ops that print e; arg says how. */
typedef bool emit_fn(struct compiler *c, const struct expr *e, const void *arg);
/* Prints as %s does, without padding. arg is unused. */
emit_fn compiler_string;
/* Prints e or, for a ? b : c, the branch taken, each by emit. */
bool compiler_branches(struct compiler *c, const struct expr *e, emit_fn *emit, const void *arg);
/* Prints "<unknown>". Always returns true. */
bool compiler_unknown(struct compiler *c);
/* Takes a mark slot. The caller returns it by lowering c->slots. */
bool compiler_mark(struct compiler *c, unsigned *ret);

/* compile_plain.c: true if the output is plain (base/plain.h) for every record. */
bool ops_are_plain(const struct op *ops, size_t count);

/*
 * special.c: events that the kernel prints with functions of their own, not by their print fmt:
 * probes, synthetic events, ftrace's own. Returns 1 if compiled, 0 if e is no such event, or less
 * than 0 on failure.
 */
int compile_special(struct compiler *c, const struct expr *format, const struct expr *args);
/* syscall.c: like compile_special(), for system calls. */
int compile_syscall(struct compiler *c, const struct expr *format, const struct expr *args);
