/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functions that print formats call, from the kernel's include/trace/stages/stage3_*.h. */
#include <string.h>

#include "print/parser.h"

static const struct expr_type text_type = { .class = TYPE_TEXT };

/* The field named in __get_*(name). */
static const struct field *call_named_field(struct parser *p)
{
	const struct token t = p->lexer.token;

	if (t.kind != TOKEN_NAME) {
		parser_fail(p, "expected the name of a field");
		return NULL;
	}
	lexer_next(&p->lexer);
	return parser_field(p, &t);
}

static const struct field *call_dynamic_field(struct parser *p)
{
	const struct field *f = call_named_field(p);

	if (f && !f->is_dynamic && !f->is_relative) {
		parser_unsupported(p, "%s is not a dynamic array", f->name);
		return NULL;
	}
	return f;
}

static struct expr *call_get_data(struct parser *p)
{
	const struct field *f = call_dynamic_field(p);

	return f ? parser_made(p, expr_dynamic(p->env, f)) : NULL;
}

/* The result of __get_str() is a char *, whatever type the field has. */
static struct expr *call_get_str(struct parser *p)
{
	struct expr *e = call_get_data(p);

	if (e)
		e->type.size = 1;
	return e;
}

static struct expr *call_get_len(struct parser *p)
{
	const struct field *f = call_dynamic_field(p);
	struct expr *e;

	if (!f)
		return NULL;
	e = parser_made(p, expr_new(p->env, EXPR_DYNAMIC_LEN, int_type(4, false)));
	if (e)
		e->field = f;
	return e;
}

static struct expr *call_pair_node(struct parser *p, enum expr_kind kind, struct expr *a,
				   struct expr *b)
{
	struct expr *e;

	if (!a || !b)
		return NULL;
	if (a->type.class != TYPE_RECORD) {
		parser_unsupported(p, "prints memory that is not in the record");
		return NULL;
	}
	e = parser_made(p, expr_new(p->env, kind, text_type));
	if (!e)
		return NULL;
	e->a = a;
	e->b = parser_made(p, expr_cast(p->env, b, int_type(4, true)));
	return e->b ? e : NULL;
}

static struct expr *call_get_bitmask(struct parser *p)
{
	const struct field *f = call_dynamic_field(p);
	struct expr *len;

	if (!f)
		return NULL;
	len = parser_made(p, expr_new(p->env, EXPR_DYNAMIC_LEN, int_type(4, false)));
	if (!len)
		return NULL;
	len->field = f;
	return call_pair_node(p, EXPR_BITMASK, expr_dynamic(p->env, f), len);
}

static struct expr *call_get_stack(struct parser *p)
{
	struct expr *e = call_get_bitmask(p);

	if (e)
		e->kind = EXPR_STACK;
	return e;
}

static struct expr *call_print_hex(struct parser *p, bool concatenate)
{
	struct expr *a = parser_expr(p), *b, *e;

	if (!a || !parser_expect(p, ','))
		return NULL;
	b = parser_expr(p);
	e = call_pair_node(p, EXPR_HEX, a, b);
	if (e)
		e->value = concatenate;
	return e;
}

static struct expr *call_print_hex_spaced(struct parser *p)
{
	return call_print_hex(p, false);
}

static struct expr *call_print_hex_str(struct parser *p)
{
	return call_print_hex(p, true);
}

static struct expr *call_print_array(struct parser *p)
{
	struct expr *a = parser_expr(p), *b, *c, *e;

	if (!a || !parser_expect(p, ','))
		return NULL;
	b = parser_expr(p);
	if (!b || !parser_expect(p, ','))
		return NULL;
	c = parser_expr(p);
	if (!c)
		return NULL;
	e = call_pair_node(p, EXPR_INT_ARRAY, a, b);
	if (e)
		e->c = parser_made(p, expr_cast(p->env, c, int_type(4, false)));
	return e && e->c ? e : NULL;
}

/* __print_dynamic_array(name, element size) */
static struct expr *call_print_dynamic_array(struct parser *p)
{
	const struct field *f = call_dynamic_field(p);
	struct expr *size, *len, *e;

	if (!f || !parser_expect(p, ','))
		return NULL;
	size = parser_expr(p);
	len = expr_new(p->env, EXPR_DYNAMIC_LEN, int_type(4, false));
	if (!size || !parser_made(p, len))
		return NULL;
	len->field = f;
	e = call_pair_node(p, EXPR_INT_ARRAY, expr_dynamic(p->env, f),
			   expr_make_binary(p->env, '/', len, size));
	if (e)
		e->c = parser_made(p, expr_cast(p->env, size, int_type(4, false)));
	return e && e->c ? e : NULL;
}

/*
 * "{ value, text }". A NULL text ends the table in the kernel, even if the source has more entries.
 */
static bool call_table_entry(struct parser *p, struct name_entry *ret, bool *ret_last,
			     bool *incomplete)
{
	struct expr *value, *name;

	if (!parser_expect(p, '{'))
		return false;
	if (parser_accept(p, '}')) { /* all zero: the table is empty */
		*ret_last = true;
		return true;
	}
	value = parser_expr(p);
	if (!value || !parser_expect(p, ','))
		return false;
	name = parser_expr(p);
	if (!name || !parser_expect(p, '}'))
		return false;
	*ret_last = name->kind == EXPR_CONST && !name->value;
	if (*ret_last)
		return true;
	if (name->kind != EXPR_STRING)
		return parser_unsupported(p, "a table name that is not a string");
	if (value->kind == EXPR_UNKNOWN) {
		*incomplete = true;
		ret->text = NULL;
		return true;
	}
	if (value->kind != EXPR_CONST)
		return parser_unsupported(p, "a table value that is not a constant");
	*ret = (struct name_entry){ .mask = value->value,
				    .text = name->text,
				    .len = name->text_len };
	return true;
}

/* The table ends up in the arena, which cannot reallocate: vec.h does not fit. */
static bool call_table_add(struct parser *p, struct name_table *t, size_t *cap,
			   const struct name_entry *entry)
{
	if (t->count == *cap) {
		size_t bigger = *cap ? *cap * 2 : 16;
		struct name_entry *entries = arena_alloc(p->env->arena, bigger * sizeof(*entries));

		if (!entries)
			return parser_fail(p, "out of memory");
		if (t->count)
			memcpy(entries, t->entries, t->count * sizeof(*entries));
		t->entries = entries;
		*cap = bigger;
	}
	t->entries[t->count++] = *entry;
	return true;
}

static struct name_table *call_table(struct parser *p)
{
	struct name_table *t = arena_alloc(p->env->arena, sizeof(*t));
	bool ended = false;
	size_t cap = 0;

	if (!t) {
		parser_fail(p, "out of memory");
		return NULL;
	}
	while (parser_accept(p, ',')) {
		struct name_entry entry = { 0 };
		bool last = false;

		if (parser_is(p, ')')) /* older kernels have a comma at the end */
			break;
		if (!call_table_entry(p, &entry, &last, &t->incomplete))
			return NULL;
		ended |= last;
		if (ended || !entry.text)
			continue;
		if (!call_table_add(p, t, &cap, &entry))
			return NULL;
		t->longest = MAX(t->longest, entry.len);
	}
	return t;
}

static struct expr *call_table_node(struct parser *p, enum expr_kind kind, struct expr *value,
				    struct name_table *t, bool wide)
{
	unsigned word = wide ? 8 : p->env->word_size;
	struct expr *e;

	if (!value || !t)
		return NULL;
	for (size_t i = 0; i < t->count; i++)
		t->entries[i].mask = expr_normalize(t->entries[i].mask, word, false);
	t->wide = wide;
	e = parser_made(p, expr_new(p->env, kind, text_type));
	if (!e)
		return NULL;
	e->a = parser_made(p, expr_cast(p->env, value, int_type(word, false)));
	e->table = t;
	return e->a ? e : NULL;
}

static struct expr *call_print_flags(struct parser *p, bool wide)
{
	struct expr *value = parser_expr(p), *delim;
	struct name_table *t;

	if (!value || !parser_expect(p, ','))
		return NULL;
	delim = parser_expr(p);
	if (!delim)
		return NULL;
	t = call_table(p);
	if (!t)
		return NULL;
	if (delim->kind == EXPR_STRING) {
		t->delim = delim->text;
		t->delim_len = delim->text_len;
	} else if (delim->kind == EXPR_CONST && !delim->value) {
		t->delim = ""; /* the kernel does the same */
	} else {
		parser_unsupported(p, "a delimiter that is not a string");
		return NULL;
	}
	return call_table_node(p, EXPR_FLAGS, value, t, wide);
}

static struct expr *call_print_flags_word(struct parser *p)
{
	return call_print_flags(p, false);
}

static struct expr *call_print_flags_u64(struct parser *p)
{
	return call_print_flags(p, true);
}

static struct expr *call_print_symbolic(struct parser *p)
{
	struct expr *value = parser_expr(p);

	return value ? call_table_node(p, EXPR_SYMBOLIC, value, call_table(p), false) : NULL;
}

static struct expr *call_print_symbolic_u64(struct parser *p)
{
	struct expr *value = parser_expr(p);

	return value ? call_table_node(p, EXPR_SYMBOLIC, value, call_table(p), true) : NULL;
}

static struct expr *call_builtin_expect(struct parser *p)
{
	struct expr *e = parser_expr(p);

	if (!e || !parser_expect(p, ',') || !parser_expr(p))
		return NULL;
	return parser_made(p, expr_cast(p->env, e, int_type(p->env->word_size, true)));
}

/* Follows include/linux/jiffies.h. The stream holds HZ as a constant. */
static struct expr *call_to_msecs(struct parser *p)
{
	struct expr *a = parser_expr(p), *e;
	int64_t hz;

	if (!a)
		return NULL;
	if (!constants_find(p->env->constants, "HZ", 2, &hz) || hz <= 0 || hz > 12000)
		return parser_made(p, expr_unknown(p->env));
	e = parser_made(p, expr_new(p->env, EXPR_MSECS, int_type(4, false)));
	if (!e)
		return NULL;
	e->a = parser_made(p, expr_cast(p->env, a, int_type(p->env->word_size, false)));
	e->value = (uint64_t)hz;
	return e->a ? e : NULL;
}

/*
 * Follows mc_event_error_type() of EDAC drivers, include/linux/edac.h: enum hw_event_mc_err_type.
 */
static struct expr *call_mc_error_type(struct parser *p)
{
	static const char *const names[] = { "Corrected", "Uncorrected", "Deferred", "Fatal" };
	struct expr *value = parser_expr(p), *e;

	if (!value)
		return NULL;
	e = expr_text(p->env, "Info", 4);
	for (unsigned i = ARRAY_SIZE(names); i-- > 0;)
		e = expr_cond(
			p->env,
			expr_make_binary(p->env, OP_EQ, value, expr_const(p->env, i, 4, true)),
			expr_text(p->env, names[i], strlen(names[i])), e);
	return parser_made(p, e);
}

/* trace_seq_printf(p, format, args...) writes text; a local name stands for that text. */
static struct expr *call_seq_printf(struct parser *p)
{
	struct expr *format, *e;

	lexer_next(&p->lexer);
	if (!parser_expect(p, ','))
		return NULL;
	format = parser_expr(p);
	if (!format || format->kind != EXPR_STRING) {
		parser_fail(p, "trace_seq_printf without a format");
		return NULL;
	}
	e = parser_made(p, expr_new(p->env, EXPR_FORMAT, text_type));
	if (!e || !parser_list(p, &e->a))
		return NULL;
	e->text = format->text;
	e->text_len = format->text_len;
	if (p->written_last)
		p->written_last->b = e;
	else
		p->written = e;
	p->written_last = e;
	return e;
}

static const struct {
	const char *name;
	struct expr *(*parse)(struct parser *p);
} functions[] = {
	{ "__print_symbolic", call_print_symbolic },
	{ "__print_flags", call_print_flags_word },
	{ "__print_symbolic_u64", call_print_symbolic_u64 },
	{ "__print_flags_u64", call_print_flags_u64 },
	{ "__get_str", call_get_str },
	{ "__get_rel_str", call_get_str },
	{ "__get_dynamic_array", call_get_data },
	{ "__get_rel_dynamic_array", call_get_data },
	{ "__get_dynamic_array_len", call_get_len },
	{ "__get_rel_dynamic_array_len", call_get_len },
	{ "__get_bitmask", call_get_bitmask },
	{ "__get_rel_bitmask", call_get_bitmask },
	{ "__get_cpumask", call_get_bitmask },
	{ "__get_rel_cpumask", call_get_bitmask },
	{ "__get_sockaddr", call_get_str },
	{ "__get_rel_sockaddr", call_get_str },
	{ "__get_stacktrace", call_get_stack },
	{ "__print_hex", call_print_hex_spaced },
	{ "__print_hex_str", call_print_hex_str },
	{ "__print_array", call_print_array },
	{ "__print_dynamic_array", call_print_dynamic_array },
	{ "__builtin_expect", call_builtin_expect },
	{ "jiffies_to_msecs", call_to_msecs },
	{ "mc_event_error_type", call_mc_error_type },
	{ "trace_seq_printf", call_seq_printf },
};

struct expr *parser_call(struct parser *p, const struct token *name)
{
	struct expr *e = NULL;
	bool found = false;

	parser_expect(p, '(');
	for (size_t i = 0; i < ARRAY_SIZE(functions) && !found; i++)
		if (token_is(name, functions[i].name)) {
			e = functions[i].parse(p);
			found = true;
		}
	if (!found)
		parser_unsupported(p, "calls %.*s()", (int)MIN(name->len, (size_t)80), name->text);
	return e && parser_expect(p, ')') ? e : NULL;
}

struct expr *parser_sizeof(struct parser *p)
{
	struct expr_type type;
	struct lexer ahead = p->lexer;

	lexer_next(&ahead);
	if (parser_is(p, '(') && parser_starts_type(p, &ahead.token)) {
		lexer_next(&p->lexer);
		if (!parser_type(p, &type) || !parser_expect(p, ')'))
			return NULL;
	} else {
		struct expr *e = parser_unary(p);

		if (!e)
			return NULL;
		type = e->type;
		if (e->kind == EXPR_ARRAY)
			return parser_made(
				p, expr_const(p->env, e->field->size, p->env->word_size, false));
	}
	if (type.class == TYPE_RECORD || type.class == TYPE_POINTER)
		type.size = (uint8_t)p->env->word_size;
	return parser_made(p, expr_const(p->env, type.size, p->env->word_size, false));
}
