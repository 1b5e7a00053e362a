/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * These functions make typed nodes and fold constants. They return NULL if out of memory, or if an
 * operand is NULL.
 */
#pragma once

#include "print/expr.h"

/* Allocates from the arena of env. */
struct expr *expr_new(const struct expr_env *env, enum expr_kind kind, struct expr_type type);
struct expr *expr_const(const struct expr_env *env, uint64_t v, unsigned size, bool is_signed);
struct expr *expr_text(const struct expr_env *env, const char *text, size_t len);
struct expr *expr_unknown(const struct expr_env *env);
/* The value of a field, or its address. */
struct expr *expr_field(const struct expr_env *env, const struct field *f);
struct expr *expr_field_address(const struct expr_env *env, const struct field *f);
struct expr *expr_dynamic(const struct expr_env *env, const struct field *f);

struct expr *expr_cast(const struct expr_env *env, struct expr *e, struct expr_type to);
struct expr *expr_bool(const struct expr_env *env, struct expr *e);
struct expr *expr_unary(const struct expr_env *env, int op, struct expr *e);
/* NULL also if the operands' types do not fit. */
struct expr *expr_make_binary(const struct expr_env *env, int op, struct expr *a, struct expr *b);
struct expr *expr_cond(const struct expr_env *env, struct expr *c, struct expr *a, struct expr *b);
/* *(address + index) */
struct expr *expr_index(const struct expr_env *env, struct expr *address, struct expr *index);

static inline struct expr_type int_type(unsigned size, bool is_signed)
{
	return (struct expr_type){ TYPE_INT, (uint8_t)size, is_signed, 0 };
}
