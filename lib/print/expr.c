/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recursive-descent parser for C expressions. The kernel's __print_*() and __get_*() are built-in
 * functions (call.c); statement.c parses statement expressions.
 */
#include "print/expr.h"

#include <stdarg.h>
#include <string.h>

#include "print/parser.h"

static void parser_set_why(struct parser *p, const char *fmt, va_list ap)
{
	char text[200];
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	p->why = arena_strndup(p->env->arena, text, MIN(n > 0 ? (size_t)n : 0, sizeof(text) - 1));
	if (!p->why)
		p->why = "out of memory";
}

bool parser_fail(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!p->why)
		parser_set_why(p, fmt, ap);
	va_end(ap);
	return false;
}

bool parser_unsupported(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!p->why) {
		parser_set_why(p, fmt, ap);
		p->unsupported = true;
	}
	va_end(ap);
	return false;
}

struct expr *parser_made(struct parser *p, struct expr *e)
{
	if (!e)
		parser_fail(p, "operands of types that do not fit near '%.*s'",
			    (int)MIN(p->lexer.token.len, (size_t)40), p->lexer.token.text);
	return p->why ? NULL : e;
}

bool parser_is(const struct parser *p, int op)
{
	return p->lexer.token.kind == TOKEN_PUNCT && p->lexer.token.op == op;
}

bool parser_accept(struct parser *p, int op)
{
	if (!parser_is(p, op))
		return false;
	lexer_next(&p->lexer);
	return true;
}

bool parser_expect(struct parser *p, int op)
{
	if (parser_accept(p, op))
		return true;
	return parser_fail(p, "expected '%c' near '%.*s'", op,
			   (int)MIN(p->lexer.token.len, (size_t)40), p->lexer.token.text);
}

bool token_is(const struct token *t, const char *name)
{
	return t->kind == TOKEN_NAME && t->len == strlen(name) && !memcmp(t->text, name, t->len);
}

const struct field *parser_field(struct parser *p, const struct token *t)
{
	const struct event *ev = p->env->event;

	for (size_t i = 0; i < ev->field_count; i++)
		if (token_is(t, ev->fields[i].name))
			return &ev->fields[i];
	for (size_t i = 0; i < ev->common_count; i++)
		if (token_is(t, ev->common[i].name))
			return &ev->common[i];
	parser_fail(p, "no field %.*s", (int)MIN(t->len, (size_t)80), t->text);
	return NULL;
}

/* Joins adjacent string literals. */
struct expr *parser_string(struct parser *p)
{
	struct lexer ahead = p->lexer;
	size_t room = 0, len = 0;
	char *text;

	while (ahead.token.kind == TOKEN_STRING) {
		room += ahead.token.len;
		lexer_next(&ahead);
	}
	text = arena_alloc(p->env->arena, room + 1);
	if (!text)
		return parser_made(p, NULL);
	while (p->lexer.token.kind == TOKEN_STRING) {
		len += lexer_unescape(&p->lexer.token, text + len);
		lexer_next(&p->lexer);
	}
	return parser_made(p, expr_text(p->env, text, len));
}

static struct expr *parser_number(struct parser *p)
{
	const struct token t = p->lexer.token;
	unsigned word = p->env->word_size, size;
	bool is_signed = !t.is_unsigned;

	lexer_next(&p->lexer);
	size = t.longs >= 2 ? 8 : t.longs ? word : 4;
	if (size == 4 && t.value > (is_signed ? INT32_MAX : UINT32_MAX)) {
		if (is_signed && t.is_hex && t.value <= UINT32_MAX)
			is_signed = false;
		else
			size = 8;
	}
	if (size == 8 && is_signed && t.value > INT64_MAX)
		is_signed = false;
	return parser_made(p, expr_const(p->env, t.value, size, is_signed));
}

static struct expr *parser_constant(struct parser *p, const struct token *t)
{
	int64_t v;

	if (!constants_find(p->env->constants, t->text, t->len, &v))
		return parser_made(p, expr_unknown(p->env));
	if (v >= INT32_MIN && v <= INT32_MAX)
		return parser_made(p, expr_const(p->env, (uint64_t)v, 4, true));
	return parser_made(
		p, expr_const(p->env, (uint64_t)v, v > 0 && v <= UINT32_MAX ? 4 : 8, v < 0));
}

static struct expr *parser_name(struct parser *p)
{
	const struct token t = p->lexer.token;
	struct expr *e;

	lexer_next(&p->lexer);
	if (token_is(&t, "REC")) {
		p->at_record = true;
		return parser_made(p, expr_const(p->env, 0, p->env->word_size, false));
	}
	if (token_is(&t, "sizeof"))
		return parser_sizeof(p);
	if (parser_is(p, '('))
		return parser_call(p, &t);
	e = parser_local(p, &t);
	return e || p->why ? e : parser_constant(p, &t);
}

static struct expr *parser_primary(struct parser *p)
{
	const struct token t = p->lexer.token;
	struct expr *e;

	switch (t.kind) {
	case TOKEN_NUMBER:
		return parser_number(p);
	case TOKEN_CHAR:
		lexer_next(&p->lexer);
		return parser_made(p, expr_const(p->env, t.value, 4, true));
	case TOKEN_STRING:
		return parser_string(p);
	case TOKEN_NAME:
		return parser_name(p);
	default:
		break;
	}
	if (!parser_expect(p, '('))
		return NULL;
	if (parser_accept(p, '{'))
		e = parser_statements(p);
	else
		e = parser_expr(p);
	return parser_expect(p, ')') ? e : NULL;
}

/* Parses the rest of "REC->ent.NAME": the head of every record. Formats call it common_NAME. */
static const struct field *parser_common_field(struct parser *p)
{
	struct token t;
	char name[64];

	if (!parser_expect(p, '.'))
		return NULL;
	t = p->lexer.token;
	lexer_next(&p->lexer);
	snprintf(name, sizeof(name), "common_%.*s", (int)MIN(t.len, (size_t)40), t.text);
	t = (struct token){ .kind = t.kind, .text = name, .len = strlen(name) };
	return parser_field(p, &t);
}

static struct expr *parser_member(struct parser *p)
{
	const struct token t = p->lexer.token;
	const struct field *f;

	if (t.kind != TOKEN_NAME || !p->at_record) {
		parser_unsupported(p, "reads through a pointer: %.*s", (int)MIN(t.len, (size_t)80),
				   t.text);
		return NULL;
	}
	p->at_record = false;
	lexer_next(&p->lexer);
	f = token_is(&t, "ent") && parser_is(p, '.') ? parser_common_field(p) : parser_field(p, &t);
	return f ? parser_made(p, expr_field(p->env, f)) : NULL;
}

static struct expr *parser_postfix(struct parser *p)
{
	struct expr *e = parser_primary(p);

	while (e) {
		if (parser_accept(p, OP_ARROW)) {
			e = parser_member(p);
		} else if (parser_accept(p, '[')) {
			struct expr *index = parser_expr(p);

			if (!index || !parser_expect(p, ']'))
				return NULL;
			e = parser_made(p, expr_index(p->env, e, index));
		} else if (parser_is(p, '.')) {
			parser_unsupported(p, "a member of a structure");
			return NULL;
		} else {
			break;
		}
	}
	return e;
}

static struct expr *parser_address_of(struct parser *p)
{
	struct expr *e = parser_unary(p);

	if (!e)
		return NULL;
	if (e->kind == EXPR_FIELD)
		return parser_made(p, expr_field_address(p->env, e->field));
	if (e->kind == EXPR_LOAD)
		return e->a;
	if (e->type.class == TYPE_RECORD)
		return e;
	parser_unsupported(p, "address of something outside the record");
	return NULL;
}

static struct expr *parser_cast(struct parser *p)
{
	struct expr_type type;
	struct expr *e;

	lexer_next(&p->lexer);
	if (!parser_type(p, &type) || !parser_expect(p, ')'))
		return NULL;
	e = parser_unary(p);
	if (e && p->type_is_bool && e->type.class != TYPE_TEXT)
		return parser_made(p, expr_cast(p->env, expr_bool(p->env, e), type));
	return e ? parser_made(p, expr_cast(p->env, e, type)) : NULL;
}

static bool parser_at_cast(const struct parser *p)
{
	struct lexer ahead = p->lexer;

	if (!parser_is(p, '('))
		return false;
	lexer_next(&ahead);
	return parser_starts_type(p, &ahead.token);
}

struct expr *parser_unary(struct parser *p)
{
	static const char ops[] = "-~!+";
	const struct token t = p->lexer.token;
	struct expr *e;

	if (++p->depth > PARSER_DEPTH) {
		parser_fail(p, "nested too deeply");
		return NULL;
	}
	if (parser_at_cast(p)) {
		e = parser_cast(p);
	} else if (t.kind == TOKEN_PUNCT && t.op < 128 && strchr(ops, t.op)) {
		lexer_next(&p->lexer);
		e = parser_unary(p);
		e = e ? parser_made(p, expr_unary(p->env, t.op, e)) : NULL;
	} else if (parser_accept(p, '&')) {
		e = parser_address_of(p);
	} else if (parser_accept(p, '*')) {
		e = parser_unary(p);
		e = e ? parser_made(p, expr_index(p->env, e, expr_const(p->env, 0, 4, true)))
		      : NULL;
	} else {
		e = parser_postfix(p);
	}
	p->depth--;
	return e;
}

static int parser_precedence(const struct parser *p)
{
	if (p->lexer.token.kind != TOKEN_PUNCT)
		return 0;
	switch (p->lexer.token.op) {
	case '*':
	case '/':
	case '%':
		return 10;
	case '+':
	case '-':
		return 9;
	case OP_SHL:
	case OP_SHR:
		return 8;
	case '<':
	case '>':
	case OP_LE:
	case OP_GE:
		return 7;
	case OP_EQ:
	case OP_NE:
		return 6;
	case '&':
		return 5;
	case '^':
		return 4;
	case '|':
		return 3;
	case OP_LAND:
		return 2;
	case OP_LOR:
		return 1;
	default:
		return 0;
	}
}

static struct expr *parser_binary(struct parser *p, int least)
{
	struct expr *a = parser_unary(p);

	for (int prec = parser_precedence(p); a && prec >= least && prec > 0;
	     prec = parser_precedence(p)) {
		int op = p->lexer.token.op;
		struct expr *b;

		lexer_next(&p->lexer);
		b = parser_binary(p, prec + 1);
		a = b ? parser_made(p, expr_make_binary(p->env, op, a, b)) : NULL;
	}
	return a;
}

static struct expr *parser_conditional(struct parser *p)
{
	struct expr *c = parser_binary(p, 1), *a, *b;

	if (!c || !parser_accept(p, '?'))
		return c;
	a = parser_is(p, ':') ? c : parser_expr(p);
	if (!a || !parser_expect(p, ':'))
		return NULL;
	b = parser_expr(p);
	return b ? parser_made(p, expr_cond(p->env, c, a, b)) : NULL;
}

struct expr *parser_expr(struct parser *p)
{
	struct expr *e;

	if (++p->depth > PARSER_DEPTH) {
		parser_fail(p, "nested too deeply");
		return NULL;
	}
	e = parser_conditional(p);
	p->depth--;
	return e;
}

bool parser_list(struct parser *p, struct expr **ret)
{
	struct expr *first = NULL, **tail = &first;

	while (parser_accept(p, ',')) {
		struct expr *e = parser_expr(p), *item;

		if (!e)
			return false;
		/* A local name may share the node, so the list links a copy. */
		item = expr_new(p->env, e->kind, e->type);
		if (!parser_made(p, item))
			return false;
		*item = *e;
		item->next = NULL;
		*tail = item;
		tail = &item->next;
	}
	*ret = first;
	return true;
}

#define PRINT_FMT_MAX (64U << 10) /* bytes; the longest in the kernel has 5 KiB */
#define EXPR_NODES_MAX 20000
#define EXPR_DEPTH_MAX 250

/*
 * Later passes walk the tree by recursion and visit a shared node once per use. So the size as
 * walked must be bounded.
 */
static bool expr_is_moderate(const struct expr *list, unsigned depth, unsigned *nodes)
{
	for (const struct expr *e = list; e; e = e->next)
		if (depth > EXPR_DEPTH_MAX || ++*nodes > EXPR_NODES_MAX ||
		    !expr_is_moderate(e->a, depth + 1, nodes) ||
		    !expr_is_moderate(e->b, depth + 1, nodes) ||
		    !expr_is_moderate(e->c, depth + 1, nodes))
			return false;
	return true;
}

int expr_parse_print_fmt(const struct expr_env *env, const char *text, size_t len,
			 struct expr **ret_format, struct expr **ret_args, const char **ret_why)
{
	struct parser p = { .env = env };
	struct expr *format = NULL;
	unsigned nodes = 0;

	lexer_init(&p.lexer, text, len);
	if (len > PRINT_FMT_MAX)
		parser_fail(&p, "the print fmt is too long");
	else if (p.lexer.token.kind != TOKEN_STRING)
		parser_fail(&p, "no format string");
	else
		format = parser_string(&p);
	if (format && parser_list(&p, ret_args) && p.lexer.token.kind != TOKEN_END)
		parser_fail(&p, "syntax error at '%.*s'",
			    (int)MIN((size_t)(p.lexer.end - p.lexer.token.text), (size_t)40),
			    p.lexer.token.text);
	if (!p.why && !expr_is_moderate(*ret_args, 0, &nodes))
		parser_fail(&p, "the expression is too large");
	if (p.why) {
		*ret_why = p.why;
		return p.unsupported ? -EOPNOTSUPP : -EBADMSG;
	}
	*ret_format = format;
	return 0;
}
