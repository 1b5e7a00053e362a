/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/expr_build.h"

#include <string.h>

struct expr *expr_new(const struct expr_env *env, enum expr_kind kind, struct expr_type type)
{
	struct expr *e = arena_alloc(env->arena, sizeof(*e));

	if (e) {
		e->kind = kind;
		e->type = type;
	}
	return e;
}

struct expr *expr_const(const struct expr_env *env, uint64_t v, unsigned size, bool is_signed)
{
	struct expr *e = expr_new(env, EXPR_CONST, int_type(size, is_signed));

	if (e)
		e->value = expr_normalize(v, size, is_signed);
	return e;
}

struct expr *expr_text(const struct expr_env *env, const char *text, size_t len)
{
	struct expr *e = expr_new(env, EXPR_STRING, (struct expr_type){ .class = TYPE_TEXT });

	if (e) {
		e->text = text;
		e->text_len = (uint32_t)len;
	}
	return e;
}

struct expr *expr_unknown(const struct expr_env *env)
{
	return expr_new(env, EXPR_UNKNOWN, int_type(env->word_size, false));
}

struct expr *expr_field_address(const struct expr_env *env, const struct field *f)
{
	unsigned size = f->is_array ? f->element_size : f->size;
	struct expr *e = expr_new(
		env, EXPR_ARRAY,
		(struct expr_type){ TYPE_RECORD, (uint8_t)MIN(size, 255U), f->is_signed, 0 });

	if (e)
		e->field = f;
	return e;
}

struct expr *expr_field(const struct expr_env *env, const struct field *f)
{
	struct expr *e;

	if (f->is_array || (f->size != 1 && f->size != 2 && f->size != 4 && f->size != 8))
		return expr_field_address(env, f);
	e = expr_new(env, EXPR_FIELD, int_type(f->size, f->is_signed));
	if (!e)
		return NULL;
	e->field = f;
	if (f->is_pointer) {
		e->type.class = TYPE_POINTER;
		if (strstr(f->type, "void *") || strstr(f->type, "char *"))
			e->type.scale = 1;
	}
	return e;
}

struct expr *expr_dynamic(const struct expr_env *env, const struct field *f)
{
	struct expr *e = expr_new(
		env, EXPR_DYNAMIC,
		(struct expr_type){ TYPE_RECORD, (uint8_t)f->element_size, f->is_signed, 0 });

	if (e)
		e->field = f;
	return e;
}

static struct expr *expr_new_unary(const struct expr_env *env, enum expr_kind kind, int op,
				   struct expr *a, struct expr_type type)
{
	struct expr *e = expr_new(env, kind, type);

	if (e) {
		e->op = op;
		e->a = a;
	}
	return e;
}

/* True if a value of one type, extended to 64 bits, has the same bits in the other. */
static bool expr_type_keeps_value(const struct expr_type *from, const struct expr_type *to)
{
	if (from->size == to->size)
		return from->is_signed == to->is_signed || from->size == 8;
	return from->size < to->size && (!from->is_signed || to->is_signed || to->size == 8);
}

static struct expr *expr_retyped(const struct expr_env *env, const struct expr *e,
				 struct expr_type to)
{
	struct expr *copy = expr_new(env, e->kind, to);

	if (copy) {
		*copy = *e;
		copy->type = to;
		copy->next = NULL;
	}
	return copy;
}

struct expr *expr_cast(const struct expr_env *env, struct expr *e, struct expr_type to)
{
	if (!e)
		return NULL;
	if (e->type.class == TYPE_TEXT)
		return to.class == TYPE_POINTER || to.class == TYPE_RECORD ? e : NULL;
	if (e->type.class == TYPE_RECORD) {
		if (to.class == TYPE_POINTER)
			return e;
		return to.class == TYPE_RECORD ? expr_retyped(env, e, to) : NULL;
	}
	if (to.class == TYPE_RECORD)
		to = (struct expr_type){ TYPE_POINTER, (uint8_t)env->word_size, false,
					 to.size ? to.size : 1 };
	if (e->kind == EXPR_CONST) {
		uint64_t v = expr_normalize(e->value, to.size, to.is_signed);

		e = expr_retyped(env, e, to);
		if (e)
			e->value = v;
		return e;
	}
	if (e->kind == EXPR_UNKNOWN ||
	    (e->kind != EXPR_CAST && expr_type_keeps_value(&e->type, &to)))
		return expr_retyped(env, e, to);
	return expr_new_unary(env, EXPR_CAST, 0, e, to);
}

struct expr *expr_bool(const struct expr_env *env, struct expr *e)
{
	if (!e)
		return NULL;
	if (e->type.class == TYPE_RECORD || e->type.class == TYPE_TEXT)
		return expr_const(env, 1, 4, true);
	if (e->kind == EXPR_CONST)
		return expr_const(env, e->value != 0, 4, true);
	return expr_new_unary(env, EXPR_BOOL, 0, e, int_type(4, true));
}

static struct expr_type expr_type_promoted(struct expr_type t)
{
	return t.size < 4 ? int_type(4, true) : int_type(t.size, t.is_signed);
}

static struct expr_type expr_type_common(struct expr_type a, struct expr_type b)
{
	a = expr_type_promoted(a);
	b = expr_type_promoted(b);
	if (a.size != b.size)
		return a.size > b.size ? a : b;
	return int_type(a.size, a.is_signed && b.is_signed);
}

static bool expr_is_number(const struct expr *e)
{
	return e->type.class == TYPE_INT || e->type.class == TYPE_POINTER;
}

struct expr *expr_unary(const struct expr_env *env, int op, struct expr *e)
{
	struct expr_type type;

	if (!e)
		return NULL;
	if (op == '!') {
		e = expr_bool(env, e);
		return expr_make_binary(env, OP_EQ, e, expr_const(env, 0, 4, true));
	}
	if (!expr_is_number(e))
		return NULL;
	type = expr_type_promoted(e->type);
	if (op == '+')
		return expr_cast(env, e, type);
	if (e->kind == EXPR_CONST)
		return expr_const(env, op == '-' ? 0 - e->value : ~e->value, type.size,
				  type.is_signed);
	e = expr_new_unary(env, EXPR_UNARY, op, expr_cast(env, e, type), type);
	if (e)
		e->value = type.size | (type.is_signed ? EXPR_SIGNED : 0);
	return e;
}

/* address + n elements */
static struct expr *expr_offset_address(const struct expr_env *env, int op, struct expr *address,
					struct expr *n)
{
	struct expr *e;

	if (!expr_is_number(n) || (op != '+' && op != '-'))
		return NULL;
	n = expr_cast(env, n, int_type(8, true));
	n = expr_make_binary(env, '*', n, expr_const(env, MAX(address->type.size, 1), 8, true));
	e = expr_new_unary(env, EXPR_BINARY, op, address, address->type);
	if (!e || !n)
		return NULL;
	e->b = n;
	return e;
}

/* pointer + n gives a pointer. Fails if the size of the structure is unknown. */
static struct expr *expr_move_pointer(const struct expr_env *env, int op, struct expr *pointer,
				      struct expr *n)
{
	struct expr_type type = pointer->type;
	struct expr *e;

	if (pointer->kind == EXPR_UNKNOWN)
		return pointer;
	if (!type.scale || n->type.class != TYPE_INT)
		return NULL;
	n = expr_cast(env, n, int_type(8, true));
	n = expr_make_binary(env, '*', n, expr_const(env, type.scale, 8, true));
	pointer = expr_cast(env, pointer, int_type(type.size, false));
	e = expr_make_binary(env, op, pointer, expr_cast(env, n, int_type(type.size, false)));
	return expr_cast(env, e, type);
}

static struct expr_type expr_type_binary(int op, const struct expr *a, const struct expr *b)
{
	if (op == OP_SHL || op == OP_SHR)
		return expr_type_promoted(a->type);
	return expr_type_common(a->type, b->type);
}

struct expr *expr_make_binary(const struct expr_env *env, int op, struct expr *a, struct expr *b)
{
	struct expr_type type;
	struct expr *e;

	if (!a || !b)
		return NULL;
	if (op == OP_LAND || op == OP_LOR) {
		a = expr_bool(env, a);
		b = expr_bool(env, b);
		if (!a || !b)
			return NULL;
	}
	if (a->type.class == TYPE_RECORD)
		return expr_offset_address(env, op, a, b);
	if (!expr_is_number(a) || !expr_is_number(b))
		return NULL;
	if ((op == '+' || op == '-') && a->type.class == TYPE_POINTER)
		return expr_move_pointer(env, op, a, b);
	if (op == '+' && b->type.class == TYPE_POINTER)
		return expr_move_pointer(env, op, b, a);
	type = expr_type_binary(op, a, b);
	if (a->kind == EXPR_UNKNOWN || b->kind == EXPR_UNKNOWN)
		return a->kind == EXPR_UNKNOWN ? a : b;
	a = expr_cast(env, a, type);
	if (op != OP_SHL && op != OP_SHR)
		b = expr_cast(env, b, type);
	if (!a || !b)
		return NULL;
	if (a->kind == EXPR_CONST && b->kind == EXPR_CONST) {
		uint64_t v = expr_binary(op, a->value, b->value, type.size, type.is_signed);

		return expr_is_comparison(op) ? expr_const(env, v, 4, true)
					      : expr_const(env, v, type.size, type.is_signed);
	}
	e = expr_new_unary(env, EXPR_BINARY, op, a,
			   expr_is_comparison(op) ? int_type(4, true) : type);
	if (e) {
		e->b = b;
		e->value = type.size | (type.is_signed ? EXPR_SIGNED : 0);
	}
	return e;
}

struct expr *expr_cond(const struct expr_env *env, struct expr *c, struct expr *a, struct expr *b)
{
	struct expr_type type = { .class = TYPE_TEXT };
	struct expr *e;

	c = expr_bool(env, c);
	if (!c || !a || !b)
		return NULL;
	if (expr_is_number(a) && expr_is_number(b)) {
		type = expr_type_common(a->type, b->type);
		if (a->type.class == TYPE_POINTER || b->type.class == TYPE_POINTER)
			type.class = TYPE_POINTER;
		a = expr_cast(env, a, type);
		b = expr_cast(env, b, type);
		if (!a || !b)
			return NULL;
	} else if (a->type.class == TYPE_RECORD && b->type.class == TYPE_RECORD) {
		type = a->type;
	}
	if (c->kind == EXPR_CONST)
		return c->value ? a : b;
	e = expr_new_unary(env, EXPR_COND, 0, c, type);
	if (e) {
		e->b = a;
		e->c = b;
	}
	return e;
}

struct expr *expr_index(const struct expr_env *env, struct expr *address, struct expr *index)
{
	struct expr_type type;
	struct expr *e;

	if (!address || !index)
		return NULL;
	if (address->kind == EXPR_SELECT && !address->a) {
		e = expr_new_unary(env, EXPR_SELECT, 0, expr_cast(env, index, int_type(8, true)),
				   address->type);
		if (e)
			e->table = address->table;
		return e;
	}
	type = address->type;
	if (type.class != TYPE_RECORD ||
	    (type.size != 1 && type.size != 2 && type.size != 4 && type.size != 8))
		return NULL;
	type.class = TYPE_INT;
	e = expr_new_unary(env, EXPR_LOAD, 0, expr_offset_address(env, '+', address, index), type);
	if (e)
		e->value = type.size | (type.is_signed ? EXPR_SIGNED : 0);
	return e;
}
