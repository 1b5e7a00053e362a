/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/lexer.h"

#include <string.h>

#include "print/expr.h"

static bool lexer_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool lexer_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool lexer_is_name(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int lexer_digit_value(char c)
{
	if (lexer_is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Reads one character of a literal and resolves escapes. Moves *p past it. */
static char lexer_unescape_one(const char **p, const char *end)
{
	static const char from[] = "ntrabfve0\\\"'?", to[] = "\n\t\r\a\b\f\v\033\0\\\"'?";
	const char *hit;
	char c = *(*p)++;
	int v = 0;

	if (c != '\\' || *p >= end)
		return c;
	c = *(*p)++;
	if (c == 'x') {
		for (int i = 0; i < 2 && *p < end && lexer_digit_value(**p) < 16; i++)
			v = v * 16 + lexer_digit_value(*(*p)++);
		return (char)v;
	}
	if (c >= '0' && c <= '7') {
		v = c - '0';
		for (int i = 0; i < 2 && *p < end && **p >= '0' && **p <= '7'; i++)
			v = v * 8 + (*(*p)++ - '0');
		return (char)v;
	}
	hit = memchr(from, c, sizeof(from) - 1);
	return hit ? to[hit - from] : c;
}

size_t lexer_unescape(const struct token *t, char *out)
{
	const char *p = t->text + 1, *end = t->text + t->len - 1;
	size_t n = 0;

	while (p < end)
		out[n++] = lexer_unescape_one(&p, end);
	return n;
}

static void lexer_quoted(struct lexer *l)
{
	char quote = *l->p;
	const char *p = l->p + 1;

	while (p < l->end && *p != quote)
		p += *p == '\\' && p + 1 < l->end ? 2 : 1;
	if (p >= l->end) {
		l->token.kind = TOKEN_BAD;
		l->p = l->end;
		return;
	}
	l->token.kind = quote == '"' ? TOKEN_STRING : TOKEN_CHAR;
	l->token.len = (size_t)(p + 1 - l->p);
	if (quote == '\'') {
		const char *c = l->p + 1;

		l->token.value = (uint64_t)(int64_t)lexer_unescape_one(&c, p);
	}
	l->p = p + 1;
}

static void lexer_number(struct lexer *l)
{
	struct token *t = &l->token;
	const char *p = l->p;
	int base = 10;

	t->kind = TOKEN_NUMBER;
	if (*p == '0' && p + 1 < l->end && (p[1] | 0x20) == 'x') {
		base = 16;
		p += 2;
	} else if (*p == '0' && p + 1 < l->end && (p[1] | 0x20) == 'b') {
		base = 2;
		p += 2;
	} else if (*p == '0') {
		base = 8;
	}
	t->is_hex = base != 10;
	for (; p < l->end && lexer_digit_value(*p) < base; p++)
		t->value = t->value * (uint64_t)base + (uint64_t)lexer_digit_value(*p);
	for (; p < l->end && ((*p | 0x20) == 'u' || (*p | 0x20) == 'l'); p++) {
		if ((*p | 0x20) == 'u')
			t->is_unsigned = true;
		else
			t->longs++;
	}
	if (p < l->end && (lexer_is_name(*p) || lexer_is_digit(*p) || *p == '.'))
		t->kind = TOKEN_BAD;
	l->p = p;
}

static void lexer_punct(struct lexer *l)
{
	static const struct {
		char text[3];
		int op;
	} pairs[] = {
		{ "->", OP_ARROW }, { "<<", OP_SHL },  { ">>", OP_SHR },
		{ "<=", OP_LE },    { ">=", OP_GE },   { "==", OP_EQ },
		{ "!=", OP_NE },    { "&&", OP_LAND }, { "||", OP_LOR },
	};

	l->token.kind = TOKEN_PUNCT;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]) && l->end - l->p >= 2; i++)
		if (!memcmp(l->p, pairs[i].text, 2)) {
			l->token.op = pairs[i].op;
			l->p += 2;
			return;
		}
	l->token.op = (unsigned char)*l->p++;
	if (l->token.op > 126)
		l->token.kind = TOKEN_BAD;
}

void lexer_next(struct lexer *l)
{
	while (l->p < l->end && lexer_is_space(*l->p))
		l->p++;
	l->token = (struct token){ .kind = TOKEN_END, .text = l->p };
	if (l->p >= l->end || !*l->p)
		return;
	if (lexer_is_name(*l->p)) {
		l->token.kind = TOKEN_NAME;
		while (l->p < l->end && (lexer_is_name(*l->p) || lexer_is_digit(*l->p)))
			l->p++;
	} else if (lexer_is_digit(*l->p)) {
		lexer_number(l);
	} else if (*l->p == '"' || *l->p == '\'') {
		lexer_quoted(l);
	} else {
		lexer_punct(l);
	}
	l->token.len = (size_t)(l->p - l->token.text);
}

void lexer_init(struct lexer *l, const char *text, size_t len)
{
	*l = (struct lexer){ .p = text, .end = text + len };
	lexer_next(l);
}
