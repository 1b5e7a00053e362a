/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiles expressions to ops: numbers go onto the stack, strings into the output. */
#include "print/compile.h"

#include <string.h>

#include "base/vec.h"

/* Kernel formats need a few hundred ops and print lines of at most 8 KiB. */
#define OPS_MAX 16384
#define LINE_BYTES_MAX (1U << 20)

bool compiler_fail(struct compiler *c, const char *why)
{
	if (!c->why)
		c->why = why;
	return false;
}

bool compiler_no_memory(struct compiler *c)
{
	c->no_memory = true;
	return compiler_fail(c, "out of memory");
}

/* Moves the pending literal into op. */
static bool compiler_attach_literal(struct compiler *c, struct op *op)
{
	size_t len = c->literal.len;
	char *text;

	if (!len)
		return true;
	text = arena_alloc(c->env->expr.arena, len + OP_TEXT_SLACK);
	if (!text || c->literal.failed)
		return compiler_no_memory(c);
	memcpy(text, c->literal.data, len);
	op->text = text;
	op->text_len = (uint16_t)len;
	c->bound += len;
	buf_clear(&c->literal);
	return true;
}

static struct op *compiler_append_op(struct compiler *c, enum op_code code)
{
	static struct op nowhere;
	struct op *op;

	if (c->count >= OPS_MAX) {
		compiler_fail(c, "the program is too long");
		return &nowhere;
	}
	op = vec_add(c->ops, c->count, c->cap);
	if (!op) {
		compiler_no_memory(c);
		return &nowhere;
	}
	*op = (struct op){ .code = (uint8_t)code };
	return op;
}

static bool op_makes_text(enum op_code code)
{
	return code >= OP_DEC || code == OP_NOTHING || code == OP_END;
}

struct op *compiler_add(struct compiler *c, enum op_code code)
{
	struct op *op = compiler_append_op(c, code);

	if (op_makes_text(code))
		compiler_attach_literal(c, op);
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
	return event_field(c->env->expr.event, name);
}

static void compiler_flush_literal(struct compiler *c)
{
	if (c->literal.len)
		compiler_add(c, OP_NOTHING);
}

bool compiler_stack(struct compiler *c, unsigned pops, unsigned pushes)
{
	c->depth = c->depth - pops + pushes;
	return c->depth <= OP_STACK_MAX || compiler_fail(c, "an expression is nested too deeply");
}

static bool compiler_field_op(struct compiler *c, enum op_code code, const struct field *f,
			      uint32_t size)
{
	struct op *op = compiler_add(c, code);

	op->offset = f->offset;
	op->size = (uint8_t)size;
	op->is_signed = f->is_signed;
	op->need = f->offset + size;
	/* A relative location counts from its own end. */
	op->imm = f->is_relative ? f->offset + f->size : 0;
	return true;
}

bool compiler_field(struct compiler *c, const struct field *f)
{
	if (!is_number_size(f->size))
		return compiler_fail(c, "a number of unsupported size");
	compiler_field_op(c, OP_LOAD, f, f->size);
	return compiler_stack(c, 0, 1);
}

static bool compiler_constant(struct compiler *c, uint64_t v)
{
	compiler_add(c, OP_CONST)->imm = v;
	return compiler_stack(c, 0, 1);
}

static bool compiler_unary(struct compiler *c, const struct expr *e, enum op_code code)
{
	struct op *op;

	if (!compiler_value(c, e->a))
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

static bool compiler_binary(struct compiler *c, const struct expr *e)
{
	bool immediate = e->b->kind == EXPR_CONST;
	struct op *op;

	if (!compiler_value(c, e->a) || (!immediate && !compiler_value(c, e->b)))
		return false;
	op = compiler_add(c, immediate ? OP_BINARY_IMM : OP_BINARY);
	if (immediate) {
		op->imm = e->b->value;
		c->depth++; /* compiler_stack() below pops two */
	}
	op->arg = (uint8_t)e->op;
	op->size = (uint8_t)(e->value & 0xff);
	op->is_signed = e->value & EXPR_SIGNED;
	if (e->type.class == TYPE_RECORD)
		op->size = 8;
	return compiler_stack(c, 2, 1);
}

bool compiler_address(const struct expr *e, unsigned len, uint32_t *ret)
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

static bool compiler_load(struct compiler *c, const struct expr *e)
{
	unsigned size = e->value & 0xff;
	uint32_t offset;
	struct op *op;

	if (!compiler_address(e->a, size, &offset))
		return compiler_unary(c, e, OP_DEREF);
	op = compiler_add(c, OP_LOAD);
	op->offset = offset;
	op->size = (uint8_t)size;
	op->is_signed = e->value & EXPR_SIGNED;
	op->need = offset + size;
	return compiler_stack(c, 0, 1);
}

static bool compiler_cond(struct compiler *c, const struct expr *e)
{
	if (!compiler_value(c, e->a) || !compiler_value(c, e->b) || !compiler_value(c, e->c))
		return false;
	compiler_add(c, OP_SELECT);
	return compiler_stack(c, 3, 1);
}

bool compiler_value(struct compiler *c, const struct expr *e)
{
	switch (e->kind) {
	case EXPR_CONST:
		return compiler_constant(c, e->value);
	case EXPR_FIELD:
		return compiler_field(c, e->field);
	case EXPR_ARRAY:
		return compiler_constant(c, e->field->offset);
	case EXPR_DYNAMIC:
		compiler_field_op(c, OP_DYNAMIC, e->field, 4);
		return compiler_stack(c, 0, 1);
	case EXPR_DYNAMIC_LEN:
		compiler_field_op(c, OP_DYNAMIC_LEN, e->field, 4);
		return compiler_stack(c, 0, 1);
	case EXPR_LOAD:
		return compiler_load(c, e);
	case EXPR_UNARY:
		return compiler_unary(c, e, OP_UNARY);
	case EXPR_CAST:
		return compiler_unary(c, e, OP_NORMALIZE);
	case EXPR_BOOL:
		return compiler_unary(c, e, OP_BOOL);
	case EXPR_MSECS:
		return compiler_unary(c, e, OP_MSECS);
	case EXPR_BINARY:
		return compiler_binary(c, e);
	case EXPR_COND:
		if (e->type.class == TYPE_TEXT)
			break;
		return compiler_cond(c, e);
	default:
		break;
	}
	return compiler_fail(c, "a string where a number belongs");
}

static size_t compiler_jump(struct compiler *c, enum op_code code)
{
	compiler_add(c, code);
	return c->count - 1;
}

static void compiler_land(struct compiler *c, size_t from)
{
	compiler_flush_literal(c);
	if (!c->no_memory)
		c->ops[from].offset = (uint32_t)c->count;
}

bool compiler_branches(struct compiler *c, const struct expr *e, emit_fn *emit, const void *arg)
{
	const struct expr *condition = e->a->kind == EXPR_BOOL ? e->a->a : e->a;
	size_t to_else, to_end;

	if (!compiler_value(c, condition))
		return false;
	to_else = compiler_jump(c, OP_JUMP_ZERO);
	if (!compiler_stack(c, 1, 0) || !emit(c, e->b, arg))
		return false;
	to_end = compiler_jump(c, OP_JUMP);
	compiler_land(c, to_else);
	if (!emit(c, e->c, arg))
		return false;
	compiler_land(c, to_end);
	return true;
}

bool compiler_unknown(struct compiler *c)
{
	compiler_add(c, OP_UNKNOWN);
	c->bound += 16;
	return true;
}

static bool compiler_table_text(struct compiler *c, const struct expr *e, enum op_code code)
{
	struct op *op;

	if (!compiler_value(c, e->a))
		return false;
	op = compiler_add(c, code);
	op->table = e->table;
	op->size = e->table->wide ? 8 : (uint8_t)c->env->expr.word_size;
	c->bound += e->table->longest + INT_TEXT_MAX;
	return compiler_stack(c, 1, 0);
}

static bool compiler_memory_text(struct compiler *c, const struct expr *e, enum op_code code)
{
	unsigned pops = e->c ? 3 : 2;

	if (!compiler_value(c, e->a) || !compiler_value(c, e->b) ||
	    (e->c && !compiler_value(c, e->c)))
		return false;
	compiler_add(c, code)->imm = e->value;
	return compiler_stack(c, pops, 0);
}

bool compiler_mark(struct compiler *c, unsigned *ret)
{
	if (c->slots == OP_SLOTS)
		return compiler_fail(c, "formats are nested too deeply");
	*ret = c->slots++;
	compiler_add(c, OP_MARK)->arg = (uint8_t)*ret;
	return true;
}

/* The text of earlier trace_seq_printf() calls, used as a string. */
static bool compiler_written_text(struct compiler *c, const struct expr *e)
{
	unsigned slot;

	if (!compiler_mark(c, &slot))
		return false;
	for (; e; e = e->b)
		if (!compiler_format(c, e->text, e->text_len, e->a))
			return false;
	compiler_add(c, OP_CUT)->arg = (uint8_t)slot;
	c->slots--;
	return true;
}

static bool compiler_text_at(struct compiler *c, const struct expr *e)
{
	c->bound += OP_SHORT_STRING;
	if (e->kind == EXPR_ARRAY)
		return compiler_field_op(c, OP_STR_STATIC, e->field, 0);
	if (e->kind == EXPR_DYNAMIC)
		return compiler_field_op(c, OP_STR_DYNAMIC, e->field, 4);
	if (!compiler_value(c, e))
		return false;
	compiler_add(c, OP_STR_ADDRESS);
	return compiler_stack(c, 1, 0);
}

bool compiler_string(struct compiler *c, const struct expr *e, const void *arg)
{
	if (e->kind == EXPR_COND && expr_is_unknown(e->a))
		return compiler_unknown(c);
	switch (e->kind) {
	case EXPR_STRING:
		compiler_literal(c, e->text, strnlen(e->text, e->text_len));
		return true;
	case EXPR_COND:
		return compiler_branches(c, e, compiler_string, arg);
	case EXPR_SYMBOLIC:
	case EXPR_FLAGS:
	case EXPR_SELECT:
		if (!e->a)
			return compiler_fail(c, "an array of strings as a string");
		if (expr_is_unknown(e->a))
			return compiler_unknown(c);
		return compiler_table_text(c, e,
					   e->kind == EXPR_SYMBOLIC ? OP_SYMBOLIC
					   : e->kind == EXPR_FLAGS  ? OP_FLAGS
								    : OP_NAME);
	case EXPR_HEX:
		return compiler_memory_text(c, e, OP_BYTES);
	case EXPR_INT_ARRAY:
		return compiler_memory_text(c, e, OP_INT_ARRAY);
	case EXPR_BITMASK:
		return compiler_memory_text(c, e, OP_BITMASK);
	case EXPR_STACK:
		return compiler_memory_text(c, e, OP_STACK);
	case EXPR_FORMAT:
		return compiler_written_text(c, e);
	case EXPR_UNKNOWN:
		return compiler_unknown(c);
	default:
		break;
	}
	if (e->type.class == TYPE_RECORD)
		return compiler_text_at(c, e);
	if (!compiler_value(c, e))
		return false;
	compiler_add(c, OP_STR_POINTER);
	c->bound += INT_TEXT_MAX;
	return compiler_stack(c, 1, 0);
}

static int compiler_finish(struct compiler *c, const struct program **ret)
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
		.bound = (uint32_t)c->bound + OP_TEXT_SLACK + 64,
		.name_len = c->name_len,
		.name = c->env->expr.event->name,
		.plain = c->name_len && ops_are_plain(ops, c->count),
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
	const char *name = env->expr.event->name;
	int r = expr_parse_print_fmt(&env->expr, print_fmt, len, &format, &args, ret_why);

	if (!r)
		r = compile_special(&c, format, args);
	if (!r) {
		c.name_len = (uint32_t)strlen(name) + 2;
		compiler_text(&c, name);
		compiler_text(&c, ": ");
		compiler_format(&c, format->text, format->text_len, args);
	}
	if (r >= 0 && c.bound > LINE_BYTES_MAX)
		compiler_fail(&c, "the line may be too long");
	if (r >= 0 && c.why) {
		*ret_why = c.why;
		r = c.no_memory ? -ENOMEM : -EBADMSG;
	}
	if (r >= 0)
		r = compiler_finish(&c, ret);
	/*
	 * If an allocation failed, the parser's reason is wrong: the format itself may be fine.
	 */
	if (env->expr.arena->failed)
		r = -ENOMEM;
	free(c.ops);
	buf_deinit(&c.literal);
	return r;
}
