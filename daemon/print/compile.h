/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Building programs: shared by compile.c and special.c. */
#pragma once

#include "print/program.h"

struct compiler {
	const struct compile_env *env;
	struct op *ops; /* malloc'd while it grows */
	size_t count, cap;
	struct buf literal; /* not yet given to an op */
	unsigned depth;	    /* of the value stack */
	unsigned slots;	    /* marks in use */
	uint32_t bound;
	const char *why, *unknown;
	bool no_memory;
};

bool compiler_fail(struct compiler *c, const char *why);
/* The op is good until the next one is added. */
struct op *compiler_add(struct compiler *c, enum op_code code);
void compiler_literal(struct compiler *c, const char *text, size_t len);
/* Ops for every conversion of format with args. */
bool compiler_format(struct compiler *c, const char *format, size_t len, const struct expr *args);
void compiler_text(struct compiler *c, const char *text);
const struct field *compiler_find_field(const struct compiler *c, const char *name);
/* A field's value on the stack. */
bool compiler_field(struct compiler *c, const struct field *f);

/*
 * special.c: events whose own print function in the kernel does not follow the
 * print fmt: probes, synthetic events, ftrace's own. 1: compiled; 0: not one of them;
 * negative: failed.
 */
int compile_special(struct compiler *c, const struct expr *format, const struct expr *args);
/* syscall.c: the same for the system calls. */
int compile_syscall(struct compiler *c, const struct expr *format, const struct expr *args);
