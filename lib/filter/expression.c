/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter/expression.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/caret.h"
#include "base/vec.h"

#define HINT "'tracectl events --fields NAME' shows fields; texts are in quotes: comm == \"x\""

struct expression_parser {
	struct expression *e;
	const char *whole, *p;
	unsigned depth;
	struct error *err;
};

/* A higher rank binds tighter. Operators of one rank are taken from the left. */
enum rank {
	RANK_LOGIC = 1,
	RANK_COMPARISON,
	RANK_BIT_OR,
	RANK_XOR,
	RANK_BIT_AND,
	RANK_SHIFT,
	RANK_SUM,
	RANK_PRODUCT,
	RANK_OPERAND
};

struct binary_operator {
	const char *word;
	enum filter_operator op;
	enum rank rank;
};

/* Longer words first. */
static const struct binary_operator binary_operators[] = {
	{ "||", OP_OR, RANK_LOGIC },	     { "&&", OP_AND, RANK_LOGIC },
	{ "==", OP_EQ, RANK_COMPARISON },    { "!=", OP_NE, RANK_COMPARISON },
	{ "<=", OP_LE, RANK_COMPARISON },    { ">=", OP_GE, RANK_COMPARISON },
	{ "=~", OP_MATCH, RANK_COMPARISON }, { "!~", OP_NO_MATCH, RANK_COMPARISON },
	{ "<<", OP_SHIFT_LEFT, RANK_SHIFT }, { ">>", OP_SHIFT_RIGHT, RANK_SHIFT },
	{ "<", OP_LT, RANK_COMPARISON },     { ">", OP_GT, RANK_COMPARISON },
	{ "~", OP_GLOB, RANK_COMPARISON },   { "|", OP_BIT_OR, RANK_BIT_OR },
	{ "^", OP_BIT_XOR, RANK_XOR },	     { "&", OP_BIT_AND, RANK_BIT_AND },
	{ "+", OP_ADD, RANK_SUM },	     { "-", OP_SUB, RANK_SUM },
	{ "*", OP_MUL, RANK_PRODUCT },	     { "/", OP_DIV, RANK_PRODUCT },
	{ "%", OP_MOD, RANK_PRODUCT },
};

static void expression_clear_node(struct expression_node *n)
{
	free(n->name);
	free(n->text);
	if (n->has_regex)
		regfree(&n->regex);
}

void expression_deinit(struct expression *e)
{
	for (size_t i = 0; i < e->count; i++)
		expression_clear_node(&e->nodes[i]);
	free(e->nodes);
	*e = (struct expression){ 0 };
}

int expression_error(const char *whole, const char *at, struct error *err, const char *what)
{
	_cleanup_buf_ struct buf place = BUF_INIT;

	buf_put_caret(&place, whole, at);
	return error_set(err, -EINVAL, "--filter: %s%s", what, buf_string(&place) ?: "");
}

static void expression_skip_space(struct expression_parser *x)
{
	x->p += strspn(x->p, " \t\n");
}

static bool expression_take(struct expression_parser *x, const char *word)
{
	expression_skip_space(x);
	if (strncmp(x->p, word, strlen(word)) != 0)
		return false;
	x->p += strlen(word);
	return true;
}

static int expression_refuse(struct expression_parser *x, const char *at, const char *what)
{
	expression_error(x->whole, at, x->err, what);
	return error_hint(x->err, HINT);
}

/* Something is missing here. */
static int expression_want(struct expression_parser *x, const char *wanted)
{
	char what[100];

	expression_skip_space(x);
	snprintf(what, sizeof(what), *x->p ? "%s should be here" : "it ends early: %s is missing",
		 wanted);
	return expression_refuse(x, x->p, what);
}

/* Takes over what node owns, also on failure. */
static int expression_add(struct expression_parser *x, struct expression_node *node, uint32_t *ret)
{
	int r = 0;

	if (x->e->count == EXPRESSION_NODES_MAX)
		r = error_set(x->err, -EINVAL, "--filter '%.40s...': it is too long", x->whole);
	else if (vec_push(x->e->nodes, x->e->count, x->e->cap, *node) < 0)
		r = error_errno(x->err, -ENOMEM, "--filter");
	if (r < 0)
		expression_clear_node(node);
	else
		*ret = (uint32_t)x->e->count - 1;
	return r;
}

static bool expression_is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool expression_is_condition(const struct expression_parser *x, uint32_t at)
{
	return x->e->nodes[at].kind <= EXPRESSION_TEXT;
}

static int expression_parse_field(struct expression_parser *x, uint32_t *ret)
{
	struct expression_node node = { .kind = EXPRESSION_FIELD, .at = x->p };
	size_t len = 0;

	while (expression_is_letter(x->p[len]))
		len++;
	node.name = strndup(x->p, len);
	x->p += len;
	return node.name ? expression_add(x, &node, ret) : error_errno(x->err, -ENOMEM, "--filter");
}

static int expression_parse_literal(struct expression_parser *x, uint32_t *ret)
{
	struct expression_node node = { .kind = EXPRESSION_LITERAL, .at = x->p };
	char *end;

	errno = 0;
	node.number = number_of_literal(strtoull(x->p, &end, 0));
	if (errno || expression_is_letter(*end))
		return expression_want(x, "a number of 64 bits");
	x->p = end;
	return expression_add(x, &node, ret);
}

static int expression_parse_from(struct expression_parser *x, enum rank rank, uint32_t *ret);

/* Parses an operand of arithmetic or of a comparison. */
static int expression_parse_number(struct expression_parser *x, enum rank rank, uint32_t *ret)
{
	const char *at;
	int r;

	expression_skip_space(x);
	at = x->p;
	r = expression_parse_from(x, rank, ret);
	if (r == 0 && expression_is_condition(x, *ret))
		r = expression_refuse(x, at, "a number should be here, not a condition");
	return r;
}

/* INT64_MIN is signed, but the literal behind its '-' is above INT64_MAX. */
static void expression_mend_least(enum filter_operator op, struct expression_node *node)
{
	if (op == OP_SUB && node->kind == EXPRESSION_LITERAL &&
	    node->number.bits == (uint64_t)INT64_MIN)
		node->number.is_signed = true;
}

/* -a is 0 - a, ~a is -1 ^ a. */
static int expression_parse_sign(struct expression_parser *x, const struct expression_node *node,
				 uint64_t left, uint32_t *ret)
{
	struct expression_node whole = *node, literal = { .kind = EXPRESSION_LITERAL,
							  .number = { left, .is_signed = true } };
	int r = expression_add(x, &literal, &whole.left);

	if (r == 0)
		r = expression_parse_number(x, RANK_OPERAND, &whole.right);
	if (r < 0)
		return r;
	expression_mend_least(whole.op, &x->e->nodes[whole.right]);
	return expression_add(x, &whole, ret);
}

static int expression_parse_brackets(struct expression_parser *x, uint32_t *ret)
{
	int r = expression_parse_from(x, RANK_LOGIC, ret);

	if (r < 0)
		return r;
	return expression_take(x, ")") ? 0 : expression_want(x, "')' or an operator");
}

/* '!' negates a whole comparison. */
static int expression_parse_prefix(struct expression_parser *x, enum rank rank, uint32_t *ret)
{
	struct expression_node node = { .kind = EXPRESSION_NOT };
	int r;

	if (rank <= RANK_COMPARISON && expression_take(x, "!")) {
		r = expression_parse_from(x, RANK_COMPARISON, &node.left);
		return r < 0 ? r : expression_add(x, &node, ret);
	}
	node.kind = EXPRESSION_ARITHMETIC;
	node.op = OP_SUB;
	if (expression_take(x, "-"))
		return expression_parse_sign(x, &node, 0, ret);
	node.op = OP_BIT_XOR;
	if (expression_take(x, "~"))
		return expression_parse_sign(x, &node, UINT64_MAX, ret);
	if (expression_take(x, "("))
		return expression_parse_brackets(x, ret);
	if (isdigit((unsigned char)*x->p))
		return expression_parse_literal(x, ret);
	if (expression_is_letter(*x->p))
		return expression_parse_field(x, ret);
	return expression_want(x, "a field or a number");
}

/* Appends the text between two quotes; a quote within has a backslash before it. */
static bool expression_read_quoted(struct expression_parser *x, struct buf *out)
{
	const char quote = *x->p, *p = x->p + 1;

	for (; *p && *p != quote; p++) {
		if (*p == '\\' && p[1]) {
			if (p[1] != quote)
				buf_putc(out, *p);
			p++;
		}
		buf_putc(out, *p);
	}
	if (!*p)
		return false;
	x->p = p + 1;
	return true;
}

/* Brackets and order do not count: it may be too large, never too small. */
static uint64_t expression_regex_size(const char *text)
{
	uint64_t size = strlen(text);

	for (const char *p = text; size <= EXPRESSION_REGEX_MAX && (p = strstr(p, "\\{"));) {
		char *end;
		uint64_t least = strtoul(p + 2, &end, 10);
		uint64_t most = *end == ',' ? strtoul(end + 1, &end, 10) : 0;

		size *= MIN(MAX(MAX(least, most), 1U), EXPRESSION_REGEX_MAX);
		p = end;
	}
	return size;
}

int expression_compile_regex(regex_t *ret, const char *text)
{
	if (expression_regex_size(text) > EXPRESSION_REGEX_MAX)
		return -E2BIG;
	return regcomp(ret, text, REG_ICASE | REG_NOSUB) == 0 ? 0 : -EINVAL;
}

/* "a" "b" is "ab". */
static int expression_take_text(struct expression_parser *x, struct expression_node *field)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *at = x->p;
	bool whole;
	int r;

	field->kind = EXPRESSION_TEXT;
	do {
		whole = expression_read_quoted(x, &text);
		expression_skip_space(x);
	} while (whole && *at == '"' && *x->p == '"');
	if (!whole)
		return expression_refuse(x, at, "this text has no end");
	field->is_char = *at == '\'' && text.len == 1;
	if (!buf_string(&text))
		return error_errno(x->err, -ENOMEM, "--filter");
	field->text = TAKE_PTR(text.data);
	if (field->op != OP_MATCH && field->op != OP_NO_MATCH)
		return 0;
	r = expression_compile_regex(&field->regex, field->text);
	if (r < 0)
		return expression_refuse(x, at,
					 r == -E2BIG ? "this has too many repetitions"
						     : "this is no regular expression");
	field->has_regex = true;
	return 0;
}

static bool expression_takes_text(enum filter_operator op)
{
	return op == OP_EQ || op == OP_NE || op >= OP_GLOB;
}

/* The operator was taken; *at is its left side, and gets the comparison. */
static int expression_parse_comparison(struct expression_parser *x, const struct binary_operator *b,
				       uint32_t *at)
{
	struct expression_node node = { .kind = EXPRESSION_COMPARISON, .op = b->op, .left = *at };
	struct expression_node *left = &x->e->nodes[*at];
	int r;

	expression_skip_space(x);
	if (*x->p == '"' || *x->p == '\'') {
		if (!expression_takes_text(b->op))
			return expression_want(x, "a number");
		if (left->kind != EXPRESSION_FIELD)
			return expression_refuse(x, x->p, "only a field can be compared with this");
		left->op = b->op;
		return expression_take_text(x, left);
	}
	if (b->op >= OP_GLOB)
		return expression_want(x, "a text in quotes");
	r = expression_parse_number(x, RANK_COMPARISON + 1, &node.right);
	return r < 0 ? r : expression_add(x, &node, at);
}

static int expression_parse_right(struct expression_parser *x, const struct binary_operator *b,
				  uint32_t *at)
{
	struct expression_node node = { .kind = EXPRESSION_ARITHMETIC, .op = b->op, .left = *at };
	int r;

	if (b->rank == RANK_COMPARISON)
		return expression_parse_comparison(x, b, at);
	if (b->rank == RANK_LOGIC) {
		node.kind = EXPRESSION_LOGIC;
		r = expression_parse_from(x, RANK_COMPARISON, &node.right);
	} else {
		r = expression_parse_number(x, b->rank + 1, &node.right);
	}
	return r < 0 ? r : expression_add(x, &node, at);
}

/* NULL: no operator follows. */
static const struct binary_operator *expression_find_operator(struct expression_parser *x)
{
	expression_skip_space(x);
	for (size_t i = 0; i < ARRAY_SIZE(binary_operators); i++)
		if (!strncmp(x->p, binary_operators[i].word, strlen(binary_operators[i].word)))
			return &binary_operators[i];
	return NULL;
}

/* Operators of this rank, and of higher ones. */
static int expression_parse_operators(struct expression_parser *x, enum rank rank, uint32_t *ret)
{
	const struct binary_operator *b;
	bool had_or = false;
	int r = expression_parse_prefix(x, rank, ret);

	while (r == 0 && (b = expression_find_operator(x)) && b->rank >= rank) {
		if (b->rank > RANK_LOGIC && expression_is_condition(x, *ret))
			return expression_want(x, "'&&' or '||'");
		if (b->op == OP_AND && had_or) {
			expression_error(x->whole, x->p, x->err, "'&&' after '||' needs brackets");
			return error_hint(x->err, "write a || (b && c), as the kernel takes it, or "
						  "(a || b) && c, as trace-cmd does");
		}
		had_or |= b->op == OP_OR;
		x->p += strlen(b->word);
		r = expression_parse_right(x, b, ret);
	}
	return r;
}

static int expression_parse_from(struct expression_parser *x, enum rank rank, uint32_t *ret)
{
	int r;

	if (x->depth == EXPRESSION_DEPTH_MAX)
		return expression_want(x, "a simpler expression");
	x->depth++;
	r = expression_parse_operators(x, rank, ret);
	x->depth--;
	return r;
}

int expression_parse(struct expression *ret, const char *whole, const char *text, struct error *err)
{
	struct expression_parser x = { .e = ret, .whole = whole, .p = text, .err = err };
	int r;

	*ret = (struct expression){ 0 };
	if (strlen(whole) > EXPRESSION_TEXT_MAX)
		return error_set(err, -EINVAL, "--filter '%.40s...': it is too long", whole);
	r = expression_parse_from(&x, RANK_LOGIC, &ret->root);
	expression_skip_space(&x);
	if (r == 0 && *x.p)
		r = expression_want(&x, "an operator");
	if (r < 0)
		expression_deinit(ret);
	return r;
}
