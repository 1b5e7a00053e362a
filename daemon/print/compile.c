/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Expressions and formats to ops. */
#include "print/compile.h"

#include <string.h>

bool compiler_fail(struct compiler *c, const char *why)
{
	if (!c->why)
		c->why = why;
	return false;
}

static bool no_memory(struct compiler *c)
{
	c->no_memory = true;
	return compiler_fail(c, "out of memory");
}

/* Gives the pending literal to op. */
static bool attach_literal(struct compiler *c, struct op *op)
{
	size_t len = c->literal.len;
	char *text;

	if (!len)
		return true;
	text = arena_alloc(c->env->expr.arena, len + OP_TEXT_SLACK);
	if (!text || c->literal.failed)
		return no_memory(c);
	memcpy(text, c->literal.data, len);
	op->text = text;
	op->text_len = (uint16_t)len;
	c->bound += (uint32_t)len;
	buf_clear(&c->literal);
	return true;
}

static struct op *append_op(struct compiler *c, enum op_code code)
{
	static struct op nowhere;

	if (c->count == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 32;
		struct op *ops = reallocarray(c->ops, cap, sizeof(*ops));

		if (!ops) {
			no_memory(c);
			return &nowhere;
		}
		c->ops = ops;
		c->cap = cap;
	}
	c->ops[c->count] = (struct op){ .code = (uint8_t)code };
	return &c->ops[c->count++];
}

static bool makes_text(enum op_code code)
{
	return code >= OP_DEC || code == OP_NOTHING || code == OP_END;
}

struct op *compiler_add(struct compiler *c, enum op_code code)
{
	struct op *op = append_op(c, code);

	if (makes_text(code))
		attach_literal(c, op);
	return op;
}

void compiler_literal(struct compiler *c, const char *text, size_t len)
{
	while (c->literal.len + len > UINT16_MAX) {
		size_t part = UINT16_MAX - c->literal.len;

		buf_append(&c->literal, text, part);
		compiler_add(c, OP_NOTHING);
		text += part;
		len -= part;
	}
	buf_append(&c->literal, text, len);
}

void compiler_text(struct compiler *c, const char *text)
{
	compiler_literal(c, text, strlen(text));
}

const struct field *compiler_find_field(const struct compiler *c, const char *name)
{
	const struct event *ev = c->env->expr.event;

	for (size_t i = 0; i < ev->field_count; i++)
		if (!strcmp(ev->fields[i].name, name))
			return &ev->fields[i];
	return NULL;
}

static void flush_literal(struct compiler *c)
{
	if (c->literal.len)
		compiler_add(c, OP_NOTHING);
}

/* The op pops some values and pushes some. */
static bool stack_effect(struct compiler *c, unsigned pops, unsigned pushes)
{
	c->depth = c->depth - pops + pushes;
	return c->depth <= OP_STACK_MAX || compiler_fail(c, "an expression that is too deep");
}

static bool value(struct compiler *c, const struct expr *e);

static bool field_op(struct compiler *c, enum op_code code, const struct field *f, uint32_t size)
{
	struct op *op = compiler_add(c, code);

	op->offset = f->offset;
	op->size = (uint8_t)size;
	op->is_signed = f->is_signed;
	op->need = f->offset + size;
	/* A relative location counts from the end of itself. */
	op->imm = f->is_relative ? f->offset + f->size : 0;
	return true;
}

bool compiler_field(struct compiler *c, const struct field *f)
{
	field_op(c, OP_LOAD, f, f->size);
	return stack_effect(c, 0, 1);
}

static bool constant(struct compiler *c, uint64_t v)
{
	compiler_add(c, OP_CONST)->imm = v;
	return stack_effect(c, 0, 1);
}

static bool unary_value(struct compiler *c, const struct expr *e, enum op_code code)
{
	struct op *op;

	if (!value(c, e->a))
		return false;
	op = compiler_add(c, code);
	op->arg = (uint8_t)e->op;
	if (code == OP_NORMALIZE) {
		op->size = e->type.size;
		op->is_signed = e->type.is_signed;
	} else if (code == OP_MSECS) {
		op->imm = e->value;
	} else {
		op->size = (uint8_t)(e->value & 0xff);
		op->is_signed = e->value & EXPR_SIGNED;
	}
	return true;
}

static bool binary_value(struct compiler *c, const struct expr *e)
{
	bool immediate = e->b->kind == EXPR_CONST;
	struct op *op;

	if (!value(c, e->a) || (!immediate && !value(c, e->b)))
		return false;
	op = compiler_add(c, immediate ? OP_BINARY_IMM : OP_BINARY);
	if (immediate) {
		op->imm = e->b->value;
		c->depth++; /* as if it had been pushed */
	}
	op->arg = (uint8_t)e->op;
	op->size = (uint8_t)(e->value & 0xff);
	op->is_signed = e->value & EXPR_SIGNED;
	if (e->type.class == TYPE_RECORD)
		op->size = 8;
	return stack_effect(c, 2, 1);
}

/* Whether e is a place in the record that is known now, len bytes inside its field. */
static bool static_address(const struct expr *e, unsigned len, uint32_t *ret)
{
	uint64_t at = 0;

	if (e->kind == EXPR_BINARY && e->op == '+' && e->b->kind == EXPR_CONST) {
		at = e->b->value;
		e = e->a;
	}
	if (e->kind != EXPR_ARRAY || len > e->field->size || at > e->field->size - len)
		return false;
	*ret = e->field->offset + (uint32_t)at;
	return true;
}

static bool load_value(struct compiler *c, const struct expr *e)
{
	unsigned size = e->value & 0xff;
	uint32_t offset;
	struct op *op;

	if (!static_address(e->a, size, &offset))
		return unary_value(c, e, OP_DEREF);
	op = compiler_add(c, OP_LOAD);
	op->offset = offset;
	op->size = (uint8_t)size;
	op->is_signed = e->value & EXPR_SIGNED;
	op->need = offset + size;
	return stack_effect(c, 0, 1);
}

static bool cond_value(struct compiler *c, const struct expr *e)
{
	if (!value(c, e->a) || !value(c, e->b) || !value(c, e->c))
		return false;
	compiler_add(c, OP_SELECT);
	return stack_effect(c, 3, 1);
}

/* Pushes a number, or an address in the record. */
static bool value(struct compiler *c, const struct expr *e)
{
	switch (e->kind) {
	case EXPR_CONST:
		return constant(c, e->value);
	case EXPR_FIELD:
		return compiler_field(c, e->field);
	case EXPR_ARRAY:
		return constant(c, e->field->offset);
	case EXPR_DYNAMIC:
		field_op(c, OP_DYNAMIC, e->field, 4);
		return stack_effect(c, 0, 1);
	case EXPR_DYNAMIC_LEN:
		field_op(c, OP_DYNAMIC_LEN, e->field, 4);
		return stack_effect(c, 0, 1);
	case EXPR_LOAD:
		return load_value(c, e);
	case EXPR_UNARY:
		return unary_value(c, e, OP_UNARY);
	case EXPR_CAST:
		return unary_value(c, e, OP_NORMALIZE);
	case EXPR_BOOL:
		return unary_value(c, e, OP_BOOL);
	case EXPR_MSECS:
		return unary_value(c, e, OP_MSECS);
	case EXPR_BINARY:
		return binary_value(c, e);
	case EXPR_COND:
		if (e->type.class == TYPE_TEXT)
			break;
		return cond_value(c, e);
	default:
		break;
	}
	return compiler_fail(c, "a string where a number belongs");
}

static size_t jump(struct compiler *c, enum op_code code)
{
	compiler_add(c, code);
	return c->count - 1;
}

static void land(struct compiler *c, size_t from)
{
	flush_literal(c);
	if (!c->no_memory)
		c->ops[from].offset = (uint32_t)c->count;
}

typedef bool emit_fn(struct compiler *c, const struct expr *e, const void *arg);

/* c ? a : b where each branch is printed by emit. */
static bool branches(struct compiler *c, const struct expr *e, emit_fn *emit, const void *arg)
{
	const struct expr *condition = e->a->kind == EXPR_BOOL ? e->a->a : e->a;
	size_t to_else, to_end;

	if (!value(c, condition))
		return false;
	to_else = jump(c, OP_JUMP_ZERO);
	if (!stack_effect(c, 1, 0) || !emit(c, e->b, arg))
		return false;
	to_end = jump(c, OP_JUMP);
	land(c, to_else);
	if (!emit(c, e->c, arg))
		return false;
	land(c, to_end);
	return true;
}

static bool unknown(struct compiler *c, const struct expr *e)
{
	const struct expr *part = expr_unknown_part(e);

	if (!c->unknown)
		c->unknown = part && part->text ? part->text : "";
	compiler_add(c, OP_UNKNOWN);
	c->bound += 16;
	return true;
}

static bool table_text(struct compiler *c, const struct expr *e, enum op_code code)
{
	struct op *op;

	if (!value(c, e->a))
		return false;
	op = compiler_add(c, code);
	op->table = e->table;
	op->size = e->table->wide ? 8 : (uint8_t)c->env->expr.word_size;
	c->bound += e->table->longest + INT_TEXT_MAX;
	return stack_effect(c, 1, 0);
}

static bool memory_text(struct compiler *c, const struct expr *e, enum op_code code)
{
	unsigned pops = e->c ? 3 : 2;

	if (!value(c, e->a) || !value(c, e->b) || (e->c && !value(c, e->c)))
		return false;
	compiler_add(c, code)->imm = e->value;
	return stack_effect(c, pops, 0);
}

static bool take_slot(struct compiler *c, unsigned *ret)
{
	if (c->slots == OP_SLOTS)
		return compiler_fail(c, "formats within formats, too deep");
	*ret = c->slots++;
	compiler_add(c, OP_MARK)->arg = (uint8_t)*ret;
	return true;
}

/* What trace_seq_printf() wrote, read back as a string. */
static bool written_text(struct compiler *c, const struct expr *e)
{
	unsigned slot;

	if (!take_slot(c, &slot))
		return false;
	for (; e; e = e->b)
		if (!compiler_format(c, e->text, e->text_len, e->a))
			return false;
	compiler_add(c, OP_CUT)->arg = (uint8_t)slot;
	c->slots--;
	return true;
}

static bool text_at(struct compiler *c, const struct expr *e)
{
	c->bound += OP_SHORT_STRING;
	if (e->kind == EXPR_ARRAY)
		return field_op(c, OP_STR_STATIC, e->field, 0);
	if (e->kind == EXPR_DYNAMIC)
		return field_op(c, OP_STR_DYNAMIC, e->field, 4);
	if (!value(c, e))
		return false;
	compiler_add(c, OP_STR_ADDRESS);
	return stack_effect(c, 1, 0);
}

/* What %s prints, as it is. */
static bool text(struct compiler *c, const struct expr *e, const void *arg)
{
	if (e->kind == EXPR_COND && expr_unknown_part(e->a))
		return unknown(c, e);
	switch (e->kind) {
	case EXPR_STRING:
		compiler_literal(c, e->text, strnlen(e->text, e->text_len));
		return true;
	case EXPR_COND:
		return branches(c, e, text, arg);
	case EXPR_SYMBOLIC:
	case EXPR_FLAGS:
	case EXPR_SELECT:
		if (!e->a)
			return compiler_fail(c, "an array of strings as a string");
		if (expr_unknown_part(e->a))
			return unknown(c, e);
		return table_text(c, e,
				  e->kind == EXPR_SYMBOLIC ? OP_SYMBOLIC
				  : e->kind == EXPR_FLAGS  ? OP_FLAGS
							   : OP_NAME);
	case EXPR_HEX:
		return memory_text(c, e, OP_BYTES);
	case EXPR_INT_ARRAY:
		return memory_text(c, e, OP_INT_ARRAY);
	case EXPR_BITMASK:
		return memory_text(c, e, OP_BITMASK);
	case EXPR_STACK:
		return memory_text(c, e, OP_STACK);
	case EXPR_FORMAT:
		return written_text(c, e);
	case EXPR_UNKNOWN:
		return unknown(c, e);
	default:
		break;
	}
	if (e->type.class == TYPE_RECORD)
		return text_at(c, e);
	if (!value(c, e))
		return false;
	compiler_add(c, OP_STR_POINTER);
	c->bound += INT_TEXT_MAX;
	return stack_effect(c, 1, 0);
}

/* A conversion on its way into ops. */
struct item {
	struct conversion spec;
	const struct expr *width, *precision;
};

static const struct conversion *keep_spec(struct compiler *c, const struct item *it)
{
	struct conversion *spec = arena_alloc(c->env->expr.arena, sizeof(*spec));

	if (!spec) {
		no_memory(c);
		return &it->spec;
	}
	*spec = it->spec;
	c->bound += (uint32_t)MAX(spec->format.width, 0) +
		    (spec->kind == 'd' ? (uint32_t)MAX(spec->format.precision, 0) : 0);
	return spec;
}

static bool star_values(struct compiler *c, const struct item *it)
{
	if (it->width && (expr_unknown_part(it->width) || !value(c, it->width)))
		return compiler_fail(c, "a width that is not known");
	if (it->precision && (expr_unknown_part(it->precision) || !value(c, it->precision)))
		return compiler_fail(c, "a precision that is not known");
	return true;
}

/* Gives spec and stars to the last op, which pops the stars' values. */
static bool with_spec(struct compiler *c, struct op *op, const struct item *it)
{
	op->spec = keep_spec(c, it);
	op->stars = (uint16_t)((it->width ? OP_STAR_WIDTH : 0) |
			       (it->precision ? OP_STAR_PRECISION : 0));
	return stack_effect(c, (it->width != NULL) + (it->precision != NULL), 0);
}

static bool is_plain(const struct item *it)
{
	const struct int_format *f = &it->spec.format;

	return f->width < 0 && f->precision < 0 && !it->width && !it->precision && !f->plus &&
	       !f->space && !f->special && !f->upper && f->base != 8;
}

/* %d and %x of a field in this machine's byte order: one op. */
static bool fused_number(struct compiler *c, const struct expr *e, const struct item *it)
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

	if (c->env->big_endian || !is_plain(it) || size < 4)
		return false;
	if (e->kind == EXPR_FIELD && e->field->size == size)
		offset = e->field->offset;
	else if (e->kind != EXPR_LOAD || (e->value & 0xff) != size ||
		 !static_address(e->a, size, &offset))
		return false;
	op = compiler_add(c, codes[row][size == 8]);
	op->offset = offset;
	op->need = offset + size;
	c->bound += INT_TEXT_MAX;
	return true;
}

static bool number(struct compiler *c, const struct expr *e, const void *arg)
{
	const struct item *it = arg;
	const struct int_format *f = &it->spec.format;
	bool is_signed = f->is_signed;
	struct op *op;

	if (e->kind == EXPR_COND && expr_unknown_part(e) && !expr_unknown_part(e->a))
		return branches(c, e, number, arg);
	if (expr_unknown_part(e))
		return unknown(c, e);
	if (fused_number(c, e, it))
		return true;
	if (!value(c, e))
		return false;
	op = compiler_add(c, OP_NORMALIZE);
	op->size = it->spec.size;
	op->is_signed = is_signed;
	c->bound += INT_TEXT_MAX;
	if (is_plain(it)) {
		compiler_add(c, f->base == 16 ? OP_HEX : OP_DEC)->is_signed = is_signed;
		return stack_effect(c, 1, 0);
	}
	if (!star_values(c, it))
		return false;
	op = compiler_add(c, OP_NUMBER);
	return with_spec(c, op, it) && stack_effect(c, 1, 0);
}

static bool character(struct compiler *c, const struct expr *e, const void *arg)
{
	const struct item *it = arg;

	if (expr_unknown_part(e))
		return unknown(c, e);
	if (!value(c, e) || !star_values(c, it))
		return false;
	c->bound += 1;
	return with_spec(c, compiler_add(c, OP_CHAR), it) && stack_effect(c, 1, 0);
}

/* emit's text, cut and padded as spec says. */
static bool padded(struct compiler *c, const struct expr *e, const struct item *it, emit_fn *emit)
{
	unsigned slot;
	struct op *op;

	if (it->spec.format.width < 0 && it->spec.format.precision < 0 && !it->width &&
	    !it->precision)
		return emit(c, e, it);
	if (!take_slot(c, &slot) || !emit(c, e, it) || !star_values(c, it))
		return false;
	op = compiler_add(c, OP_PAD);
	op->arg = (uint8_t)slot;
	c->slots--;
	return with_spec(c, op, it);
}

static bool pointer_value(struct compiler *c, const struct expr *e, const void *arg)
{
	const struct item *it = arg;
	char kind = it->spec.suffix_len ? it->spec.suffix[0] : 'x';
	bool symbol = kind == 's' || kind == 'S' || kind == 'B';
	struct op *op;

	if (e->kind == EXPR_COND && expr_unknown_part(e) && !expr_unknown_part(e->a))
		return branches(c, e, pointer_value, arg);
	if (expr_unknown_part(e))
		return unknown(c, e);
	if (!value(c, e))
		return false;
	op = compiler_add(c, symbol ? OP_SYMBOL : OP_POINTER);
	op->size = (uint8_t)c->env->expr.word_size;
	op->arg = (uint8_t)kind;
	c->bound += INT_TEXT_MAX;
	if (symbol)
		return stack_effect(c, 1, 0);
	op->spec = keep_spec(c, it);
	return stack_effect(c, 1, 0);
}

/* %pI4, %pU and the like of memory in the record. */
static bool object(struct compiler *c, const struct expr *e, const void *arg)
{
	const struct item *it = arg;
	struct op *op;

	if (!value(c, e) || !star_values(c, it))
		return false;
	op = compiler_add(c, OP_OBJECT);
	c->bound += 96;
	return with_spec(c, op, it) && stack_effect(c, 1, 0);
}

static bool pointer(struct compiler *c, const struct expr *e, const struct item *it)
{
	static const char known[] = "IiMmUhba";
	char kind = it->spec.suffix_len ? it->spec.suffix[0] : 'x';

	if (kind == 'h' || kind == 'b') /* the width counts bytes or bits */
		return e->type.class == TYPE_RECORD ? object(c, e, it) : unknown(c, e);
	if (strchr(known, kind)) {
		struct item plain = *it;

		if (e->type.class != TYPE_RECORD)
			return unknown(c, e);
		plain.width = plain.precision = NULL;
		plain.spec.format.width = plain.spec.format.precision = -1;
		if (it->spec.format.width < 0 && !it->width)
			return object(c, e, &plain);
		return compiler_fail(c, "a width with %p");
	}
	if (kind == 's' || kind == 'S' || kind == 'B')
		return padded(c, e, it, pointer_value);
	if (kind == 'x' || kind == 'K') {
		if (it->width || it->precision)
			return compiler_fail(c, "a width from an argument with %p");
		if (e->type.class == TYPE_RECORD)
			return unknown(c, e);
		return pointer_value(c, e, it);
	}
	return unknown(c, e);
}

static bool convert(struct compiler *c, const struct item *it, const struct expr *e)
{
	if (e->type.class == TYPE_TEXT && it->spec.kind != 's' && e->kind != EXPR_COND &&
	    e->kind != EXPR_UNKNOWN)
		return compiler_fail(c, "a string where a number belongs");
	switch (it->spec.kind) {
	case 'd':
		return e->type.class == TYPE_RECORD ? unknown(c, e) : number(c, e, it);
	case 'c':
		return character(c, e, it);
	case 's':
		return padded(c, e, it, text);
	default:
		return pointer(c, e, it);
	}
}

static const struct expr *next_arg(struct compiler *c, const struct expr **args)
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
		if (it.spec.star_width && !(it.width = next_arg(c, &args)))
			return false;
		if (it.spec.star_precision && !(it.precision = next_arg(c, &args)))
			return false;
		e = next_arg(c, &args);
		if (!e || !convert(c, &it, e))
			return false;
	}
	return true;
}

static int finish(struct compiler *c, const struct program **ret)
{
	struct program *prog = arena_alloc(c->env->expr.arena, sizeof(*prog));
	struct op *ops;

	compiler_add(c, OP_END);
	ops = arena_alloc(c->env->expr.arena, c->count * sizeof(*ops));
	if (!prog || !ops || c->no_memory)
		return -ENOMEM;
	memcpy(ops, c->ops, c->count * sizeof(*ops));
	*prog = (struct program){
		.ops = ops,
		.count = c->count,
		.bound = c->bound + OP_TEXT_SLACK + 64,
		.unknown = c->unknown,
	};
	for (size_t i = 0; i < c->count; i++)
		prog->need = MAX(prog->need, ops[i].need);
	*ret = prog;
	return 0;
}

int program_compile(const struct compile_env *env, const char *print_fmt, size_t len,
		    const struct program **ret, const char **ret_why)
{
	struct compiler c = { .env = env };
	struct expr *format = NULL, *args = NULL;
	int r = expr_parse_print_fmt(&env->expr, print_fmt, len, &format, &args, ret_why);

	if (!r)
		r = compile_special(&c, format, args);
	if (!r) {
		compiler_text(&c, env->expr.event->name);
		compiler_text(&c, ": ");
		compiler_format(&c, format->text, format->text_len, args);
	}
	if (r >= 0 && c.why) {
		*ret_why = c.why;
		r = c.no_memory ? -ENOMEM : -EBADMSG;
	}
	if (r >= 0)
		r = finish(&c, ret);
	free(c.ops);
	buf_deinit(&c.literal);
	return r;
}
