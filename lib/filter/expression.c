/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter/expression.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define HINT "'tracectl events --fields NAME' shows fields; texts are in quotes: comm == \"x\""

struct expression_parser {
	struct expression *e;
	const char *whole, *p;
	unsigned depth;
	struct error *err;
};

void expression_deinit(struct expression *e)
{
	for (size_t i = 0; i < e->count; i++) {
		free(e->nodes[i].name);
		free(e->nodes[i].text);
		if (e->nodes[i].has_regex)
			regfree(&e->nodes[i].regex);
	}
	free(e->nodes);
	*e = (struct expression){ 0 };
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

static int expression_refuse(struct expression_parser *x, const char *wanted)
{
	if (*x->p)
		error_set(x->err, -EINVAL, "--filter '%s': %s should be at '%.20s'", x->whole,
			  wanted, x->p);
	else
		error_set(x->err, -EINVAL, "--filter '%s': it ends early: %s is missing", x->whole,
			  wanted);
	return error_hint(x->err, HINT);
}

static int expression_add(struct expression_parser *x, const struct expression_node *node,
			  uint32_t *ret)
{
	if (x->e->count == EXPRESSION_NODES_MAX)
		return error_set(x->err, -EINVAL, "--filter '%.40s...': it is too long", x->whole);
	if (vec_push(x->e->nodes, x->e->count, x->e->cap, *node) < 0)
		return error_errno(x->err, -ENOMEM, "--filter");
	*ret = (uint32_t)x->e->count - 1;
	return 0;
}

static bool expression_is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static int expression_take_name(struct expression_parser *x, struct expression_node *node)
{
	size_t len = 0;

	expression_skip_space(x);
	while (expression_is_letter(x->p[len]))
		len++;
	if (!len || isdigit((unsigned char)*x->p))
		return expression_refuse(x, "a field");
	node->name = strndup(x->p, len);
	x->p += len;
	return node->name ? 0 : error_errno(x->err, -ENOMEM, "--filter");
}

/* Longer ones first. */
static bool expression_take_operator(struct expression_parser *x, struct expression_node *node)
{
	static const struct {
		const char *word;
		enum expression_operator op;
		bool negated;
	} all[] = {
		{ "==", OP_EQ, false }, { "!=", OP_NE, false },	   { "<=", OP_LE, false },
		{ ">=", OP_GE, false }, { "=~", OP_MATCH, false }, { "!~", OP_MATCH, true },
		{ "<", OP_LT, false },	{ ">", OP_GT, false },	   { "~", OP_GLOB, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!expression_take(x, all[i].word))
			continue;
		node->op = all[i].op;
		node->negated = all[i].negated;
		return true;
	}
	if (x->p[0] != '&' || x->p[1] == '&')
		return false;
	x->p++;
	node->op = OP_AND;
	return true;
}

static int expression_take_text(struct expression_parser *x, struct expression_node *node)
{
	const char quote = *x->p, *end = strchr(x->p + 1, quote);

	if (!end)
		return expression_refuse(x, "a text with an end");
	if (node->op != OP_EQ && node->op != OP_NE && node->op != OP_GLOB && node->op != OP_MATCH)
		return expression_refuse(x, "a number");
	node->kind = EXPRESSION_TEXT;
	node->text = strndup(x->p + 1, (size_t)(end - x->p) - 1);
	if (!node->text)
		return error_errno(x->err, -ENOMEM, "--filter");
	if (node->op == OP_MATCH) {
		if (regcomp(&node->regex, node->text, REG_EXTENDED | REG_NOSUB) != 0)
			return expression_refuse(x, "a regular expression");
		node->has_regex = true;
	}
	x->p = end + 1;
	return 0;
}

static int expression_take_number(struct expression_parser *x, struct expression_node *node)
{
	const char *digits = x->p + (*x->p == '-');
	char *end;

	if (!isdigit((unsigned char)*digits))
		return expression_refuse(x, "a number, or a text in quotes");
	if (node->op == OP_GLOB || node->op == OP_MATCH)
		return expression_refuse(x, "a text in quotes");
	errno = 0;
	node->number = strtoull(digits, &end, 0);
	node->is_negative = *x->p == '-';
	if (errno || expression_is_letter(*end))
		return expression_refuse(x, "a number of 64 bits");
	x->p = end;
	return 0;
}

static int expression_parse_or(struct expression_parser *x, uint32_t *ret);

static int expression_fill_comparison(struct expression_parser *x, struct expression_node *node)
{
	int r = expression_take_name(x, node);

	if (r < 0)
		return r;
	/* Alone: not 0. */
	node->op = OP_NE;
	if (!expression_take_operator(x, node))
		return 0;
	expression_skip_space(x);
	return *x->p == '"' || *x->p == '\'' ? expression_take_text(x, node)
					     : expression_take_number(x, node);
}

static int expression_parse_comparison(struct expression_parser *x, uint32_t *ret)
{
	struct expression_node node = { .kind = EXPRESSION_NUMBER };
	int r = expression_fill_comparison(x, &node);

	if (r == 0)
		r = expression_add(x, &node, ret);
	if (r < 0) {
		free(node.name);
		free(node.text);
		if (node.has_regex)
			regfree(&node.regex);
	}
	return r;
}

static int expression_parse_unary(struct expression_parser *x, uint32_t *ret)
{
	struct expression_node node = { .kind = EXPRESSION_NOT };
	int r;

	if (x->depth == EXPRESSION_DEPTH_MAX)
		return expression_refuse(x, "a simpler expression");
	if (expression_take(x, "!")) {
		x->depth++;
		r = expression_parse_unary(x, &node.left);
		x->depth--;
		return r < 0 ? r : expression_add(x, &node, ret);
	}
	if (!expression_take(x, "("))
		return expression_parse_comparison(x, ret);
	x->depth++;
	r = expression_parse_or(x, ret);
	x->depth--;
	if (r < 0)
		return r;
	return expression_take(x, ")") ? 0 : expression_refuse(x, "')' or an operator");
}

static int expression_parse_and(struct expression_parser *x, uint32_t *ret)
{
	int r = expression_parse_unary(x, ret);

	while (r == 0 && expression_take(x, "&&")) {
		struct expression_node node = { .kind = EXPRESSION_AND, .left = *ret };

		r = expression_parse_unary(x, &node.right);
		if (r == 0)
			r = expression_add(x, &node, ret);
	}
	return r;
}

static int expression_parse_or(struct expression_parser *x, uint32_t *ret)
{
	int r = expression_parse_and(x, ret);

	while (r == 0 && expression_take(x, "||")) {
		struct expression_node node = { .kind = EXPRESSION_OR, .left = *ret };

		r = expression_parse_and(x, &node.right);
		if (r == 0)
			r = expression_add(x, &node, ret);
	}
	return r;
}

int expression_parse(struct expression *ret, const char *whole, const char *text, struct error *err)
{
	struct expression_parser x = { .e = ret, .whole = whole, .p = text, .err = err };
	int r;

	*ret = (struct expression){ 0 };
	if (strlen(whole) > EXPRESSION_TEXT_MAX)
		return error_set(err, -EINVAL, "--filter '%.40s...': it is too long", whole);
	r = expression_parse_or(&x, &ret->root);
	expression_skip_space(&x);
	if (r == 0 && *x.p)
		r = expression_refuse(&x, "an operator");
	if (r < 0)
		expression_deinit(ret);
	return r;
}
