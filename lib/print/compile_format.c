/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiles the conversions of a printf format and their arguments. */
#include "print/compile.h"

#include <string.h>

/* The conversion being compiled. */
struct item {
	struct conversion spec;
	const struct expr *width, *precision;
};

static const struct conversion *item_keep_spec(struct compiler *c, const struct item *it)
{
	struct conversion *spec = arena_alloc(c->env->expr.arena, sizeof(*spec));

	if (!spec) {
		compiler_no_memory(c);
		return &it->spec;
	}
	*spec = it->spec;
	c->bound += (uint32_t)MAX(spec->format.width, 0) +
		    (spec->kind == 'd' ? (uint32_t)MAX(spec->format.precision, 0) : 0);
	return spec;
}

static bool item_star_values(struct compiler *c, const struct item *it)
{
	if (it->width && (expr_is_unknown(it->width) || !compiler_value(c, it->width)))
		return compiler_fail(c, "a width that is unknown");
	if (it->precision && (expr_is_unknown(it->precision) || !compiler_value(c, it->precision)))
		return compiler_fail(c, "a precision that is unknown");
	return true;
}

/* Gives the spec and the stars to the last op, which then pops the stars' values. */
static bool item_give_spec(struct compiler *c, struct op *op, const struct item *it)
{
	op->spec = item_keep_spec(c, it);
	op->stars = (uint16_t)((it->width ? OP_STAR_WIDTH : 0) |
			       (it->precision ? OP_STAR_PRECISION : 0));
	return compiler_stack(c, (it->width != NULL) + (it->precision != NULL), 0);
}

static bool item_is_bare(const struct item *it)
{
	const struct int_format *f = &it->spec.format;

	return f->width < 0 && f->precision < 0 && !it->width && !it->precision && !f->plus &&
	       !f->space && !f->special && !f->upper && f->base != 8;
}

/*
 * The kernel prints some addresses as numbers, in hexadecimal. Arguments of system calls are values
 * of programs.
 */
static bool item_hides(const struct compiler *c, const struct item *it)
{
	const char *system = c->env->expr.event->system;

	return it->spec.format.base == 16 && it->spec.size == 8 && c->env->expr.word_size == 8 &&
	       (!system || (strcmp(system, "syscalls") && strcmp(system, "raw_syscalls")));
}

/* One op prints %d or %x of a field in this machine's byte order. */
static bool compile_fused_number(struct compiler *c, const struct expr *e, const struct item *it)
{
	static const uint8_t codes[3][2] = {
		{ OP_DEC_U32, OP_DEC_U64 },
		{ OP_DEC_S32, OP_DEC_S64 },
		{ OP_HEX_U32, OP_HEX_U64 },
	};
	const struct int_format *f = &it->spec.format;
	unsigned row = f->base == 16 ? 2 : f->is_signed;

	unsigned size = it->spec.size;
	uint32_t offset;
	struct op *op;

	if (c->env->big_endian || !item_is_bare(it) || size < 4 || item_hides(c, it))
		return false;
	if (e->kind == EXPR_FIELD && e->field->size == size)
		offset = e->field->offset;
	else if (e->kind != EXPR_LOAD || (e->value & 0xff) != size ||
		 !compiler_address(e->a, size, &offset))
		return false;
	op = compiler_add(c, codes[row][size == 8]);
	op->offset = offset;
	op->need = offset + size;
	c->bound += INT_TEXT_MAX;
	return true;
}

static bool compile_number(struct compiler *c, const struct expr *e, const void *arg)
{
	const struct item *it = arg;
	const struct int_format *f = &it->spec.format;
	bool is_signed = f->is_signed;
	struct op *op;

	if (e->kind == EXPR_COND && expr_is_unknown(e) && !expr_is_unknown(e->a))
		return compiler_branches(c, e, compile_number, arg);
	if (expr_is_unknown(e))
		return compiler_unknown(c);
	if (compile_fused_number(c, e, it))
		return true;
	if (!compiler_value(c, e))
		return false;
	op = compiler_add(c, OP_NORMALIZE);
	op->size = it->spec.size;
	op->is_signed = is_signed;
	if (item_hides(c, it))
		compiler_add(c, OP_HIDE);
	c->bound += INT_TEXT_MAX;
	if (item_is_bare(it)) {
		compiler_add(c, f->base == 16 ? OP_HEX : OP_DEC)->is_signed = is_signed;
		return compiler_stack(c, 1, 0);
	}
	if (!item_star_values(c, it))
		return false;
	op = compiler_add(c, OP_NUMBER);
	return item_give_spec(c, op, it) && compiler_stack(c, 1, 0);
}

static bool compile_character(struct compiler *c, const struct expr *e, const void *arg)
{
	const struct item *it = arg;

	if (expr_is_unknown(e))
		return compiler_unknown(c);
	if (!compiler_value(c, e) || !item_star_values(c, it))
		return false;
	c->bound += 1;
	return item_give_spec(c, compiler_add(c, OP_CHAR), it) && compiler_stack(c, 1, 0);
}

/* Prints with emit, then cuts and pads as the spec says. */
static bool compile_padded(struct compiler *c, const struct expr *e, const struct item *it,
			   emit_fn *emit)
{
	unsigned slot;
	struct op *op;

	if (it->spec.format.width < 0 && it->spec.format.precision < 0 && !it->width &&
	    !it->precision)
		return emit(c, e, it);
	if (!compiler_mark(c, &slot) || !emit(c, e, it) || !item_star_values(c, it))
		return false;
	op = compiler_add(c, OP_PAD);
	op->arg = (uint8_t)slot;
	c->slots--;
	return item_give_spec(c, op, it);
}

static bool compile_pointer_value(struct compiler *c, const struct expr *e, const void *arg)
{
	const struct item *it = arg;
	char kind = it->spec.suffix_len ? it->spec.suffix[0] : 'x';
	bool symbol = kind == 's' || kind == 'S' || kind == 'B';
	struct op *op;

	if (e->kind == EXPR_COND && expr_is_unknown(e) && !expr_is_unknown(e->a))
		return compiler_branches(c, e, compile_pointer_value, arg);
	if (expr_is_unknown(e))
		return compiler_unknown(c);
	if (!compiler_value(c, e))
		return false;
	op = compiler_add(c, symbol ? OP_SYMBOL : OP_POINTER);
	op->size = (uint8_t)c->env->expr.word_size;
	op->arg = (uint8_t)kind;
	c->bound += INT_TEXT_MAX;
	if (symbol)
		return compiler_stack(c, 1, 0);
	op->spec = item_keep_spec(c, it);
	return compiler_stack(c, 1, 0);
}

/* Prints %pI4, %pU and similar conversions of memory in the record. */
static bool compile_object(struct compiler *c, const struct expr *e, const void *arg)
{
	const struct item *it = arg;
	struct op *op;

	if (!compiler_value(c, e) || !item_star_values(c, it))
		return false;
	op = compiler_add(c, OP_OBJECT);
	c->bound += 96;
	return item_give_spec(c, op, it) && compiler_stack(c, 1, 0);
}

static bool compile_pointer(struct compiler *c, const struct expr *e, const struct item *it)
{
	static const char known[] = "IiMmUhba";
	char kind = it->spec.suffix_len ? it->spec.suffix[0] : 'x';

	if (kind == 'h' || kind == 'b') /* the width is a count of bytes or bits */
		return e->type.class == TYPE_RECORD ? compile_object(c, e, it)
						    : compiler_unknown(c);
	if (strchr(known, kind)) {
		struct item plain = *it;

		if (e->type.class != TYPE_RECORD)
			return compiler_unknown(c);
		plain.width = plain.precision = NULL;
		plain.spec.format.width = plain.spec.format.precision = -1;
		if (it->spec.format.width < 0 && !it->width)
			return compile_object(c, e, &plain);
		return compiler_fail(c, "a width with %p");
	}
	if (kind == 's' || kind == 'S' || kind == 'B')
		return compile_padded(c, e, it, compile_pointer_value);
	if (kind == 'x' || kind == 'K') {
		if (it->width || it->precision)
			return compiler_fail(c, "a width from an argument with %p");
		if (e->type.class == TYPE_RECORD)
			return compiler_unknown(c);
		return compile_pointer_value(c, e, it);
	}
	return compiler_unknown(c);
}

static bool compile_conversion(struct compiler *c, const struct item *it, const struct expr *e)
{
	if (e->type.class == TYPE_TEXT && it->spec.kind != 's' && e->kind != EXPR_COND &&
	    e->kind != EXPR_UNKNOWN)
		return compiler_fail(c, "a string where a number belongs");
	switch (it->spec.kind) {
	case 'd':
		return e->type.class == TYPE_RECORD ? compiler_unknown(c)
						    : compile_number(c, e, it);
	case 'c':
		return compile_character(c, e, it);
	case 's':
		return compile_padded(c, e, it, compiler_string);
	default:
		return compile_pointer(c, e, it);
	}
}

static const struct expr *compile_next_arg(struct compiler *c, const struct expr **args)
{
	const struct expr *e = *args;

	if (e)
		*args = e->next;
	else
		compiler_fail(c, "more conversions than arguments");
	return e;
}

bool compiler_format(struct compiler *c, const char *format, size_t len, const struct expr *args)
{
	const char *p = format, *end = format + strnlen(format, len);

	while (p < end) {
		const char *percent = memchr(p, '%', (size_t)(end - p));
		struct item it = { 0 };
		const struct expr *e;

		if (percent != p) {
			size_t n = (size_t)((percent ? percent : end) - p);

			compiler_literal(c, p, n);
			p += n;
			continue;
		}
		p += conversion_parse(p, c->env->expr.word_size, &it.spec);
		if (!it.spec.kind)
			return compiler_fail(c, "an unknown conversion");
		if (it.spec.kind == '%') {
			compiler_literal(c, "%", 1);
			continue;
		}
		if (it.spec.star_width && !(it.width = compile_next_arg(c, &args)))
			return false;
		if (it.spec.star_precision && !(it.precision = compile_next_arg(c, &args)))
			return false;
		e = compile_next_arg(c, &args);
		if (!e || !compile_conversion(c, &it, e))
			return false;
	}
	return true;
}
