/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/function_regex.h"

#include <ctype.h>
#include <string.h>

/* What '^' and '$' take: no name has these bytes. */
#define BEGIN 1
#define END 2
#define LEN_MAX 255
/* Bounds the recursion: it runs on a thread's small stack. */
#define DEPTH_MAX 16

/* A part of the expression: the characters that it may begin and end with. */
struct piece {
	uint64_t first, last;
	bool empty;
};

struct regex_parser {
	const char *at, *end;
	struct function_regex *re;
	unsigned depth;	   /* of groups */
	const char *wrong; /* the first mistake */
	int code;
};

static struct piece parse_alternatives(struct regex_parser *x);

static struct piece regex_fail(struct regex_parser *x, const char *wrong)
{
	x->wrong = x->wrong ?: wrong;
	x->code = x->code ?: -EINVAL;
	x->at = x->end;
	return (struct piece){ 0 };
}

static void link_follow(struct function_regex *re, uint64_t from, uint64_t to)
{
	for (; from; from &= from - 1)
		re->follow[__builtin_ctzll(from)] |= to;
}

/* Adds a character that takes the bytes of the set. */
static struct piece parser_add(struct regex_parser *x, const bool set[static 256])
{
	uint64_t bit;

	if (x->re->count == REGEX_POSITIONS_MAX) {
		x->code = x->code ?: -E2BIG;
		return regex_fail(x, "it has too many characters");
	}
	bit = UINT64_C(1) << x->re->count++;
	for (size_t i = 0; i < 256; i++)
		if (set[i])
			x->re->takes[i] |= bit;
	return (struct piece){ bit, bit, false };
}

static _noinline_ struct piece parser_add_byte(struct regex_parser *x, unsigned char c)
{
	bool set[256] = { false };

	set[c] = true;
	return parser_add(x, set);
}

static _noinline_ struct piece parser_add_all_but(struct regex_parser *x,
						  const bool set[static 256])
{
	bool others[256];

	for (size_t i = 0; i < 256; i++)
		others[i] = i > END && !set[i];
	return parser_add(x, others);
}

/* After the '['. */
static _noinline_ struct piece parse_class(struct regex_parser *x)
{
	bool set[256] = { false }, negated = x->at < x->end && *x->at == '^';
	const char *begin = x->at += negated;

	while (x->at < x->end && (*x->at != ']' || x->at == begin)) {
		unsigned char low = (unsigned char)*x->at, high = low;

		if (low == '[' && x->at + 1 < x->end && strchr(":.=", x->at[1]))
			return regex_fail(x, "classes such as [:alpha:] are not supported");
		if (x->end - x->at > 3 && x->at[1] == '-' && x->at[2] != ']') {
			high = (unsigned char)x->at[2];
			x->at += 2;
		}
		if (high < low)
			return regex_fail(x, "a range in [] is reversed");
		for (size_t i = low; i <= high; i++)
			set[i] = true;
		x->at++;
	}
	if (x->at == x->end)
		return regex_fail(x, "a '[' has no ']'");
	x->at++;
	return negated ? parser_add_all_but(x, set) : parser_add(x, set);
}

static struct piece parse_group(struct regex_parser *x)
{
	struct piece piece;

	if (x->depth == DEPTH_MAX)
		return regex_fail(x, "its groups are too deep");
	x->depth++;
	piece = parse_alternatives(x);
	x->depth--;
	if (x->at == x->end)
		return regex_fail(x, "a '(' has no ')'");
	x->at++;
	return piece;
}

static struct piece parse_escape(struct regex_parser *x)
{
	if (x->at == x->end || isalnum((unsigned char)*x->at))
		return regex_fail(x, "a backslash needs a special character after it");
	return parser_add_byte(x, (unsigned char)*x->at++);
}

static struct piece parse_atom(struct regex_parser *x)
{
	static const bool none[256];
	char c = *x->at++;

	switch (c) {
	case '(':
		return parse_group(x);
	case '[':
		return parse_class(x);
	case '.':
		return parser_add_all_but(x, none);
	case '^':
		return parser_add_byte(x, BEGIN);
	case '$':
		return parser_add_byte(x, END);
	case '\\':
		return parse_escape(x);
	case '*':
	case '+':
	case '?':
		return regex_fail(x, "there is nothing to repeat");
	case '{':
		return regex_fail(x, "counts such as {2} are not supported");
	default:
		return parser_add_byte(x, (unsigned char)c);
	}
}

static struct piece parse_repeated(struct regex_parser *x)
{
	struct piece piece = parse_atom(x);

	while (x->at < x->end && strchr("*+?", *x->at)) {
		if (*x->at != '?')
			link_follow(x->re, piece.last, piece.first);
		piece.empty |= *x->at != '+';
		x->at++;
	}
	return piece;
}

static struct piece parse_sequence(struct regex_parser *x)
{
	struct piece all = { .empty = true };

	while (x->at < x->end && *x->at != '|' && *x->at != ')') {
		struct piece next = parse_repeated(x);

		link_follow(x->re, all.last, next.first);
		all.first |= all.empty ? next.first : 0;
		all.last = next.last | (next.empty ? all.last : 0);
		all.empty &= next.empty;
	}
	return all;
}

static struct piece parse_alternatives(struct regex_parser *x)
{
	struct piece all = parse_sequence(x);

	while (x->at < x->end && *x->at == '|') {
		struct piece next;

		x->at++;
		next = parse_sequence(x);
		all.first |= next.first;
		all.last |= next.last;
		all.empty |= next.empty;
	}
	return all;
}

int function_regex_compile(struct function_regex *ret, const char *text, size_t len,
			   struct error *err)
{
	struct function_regex re = { 0 };
	struct regex_parser x = { .at = text, .end = text + len, .re = &re };
	struct piece all;

	if (len > LEN_MAX)
		return error_set(err, -E2BIG, "the regular expression '%.60s...' is too long",
				 text);
	all = parse_alternatives(&x);
	if (!x.wrong && x.at < x.end)
		regex_fail(&x, "a ')' has no '('");
	if (x.wrong) {
		error_set(err, x.code, "the regular expression '%.*s': %s", (int)len, text,
			  x.wrong);
		return error_hint(err,
				  "write it as in '/^vfs_(read|write)$/', with at most %d "
				  "characters",
				  REGEX_POSITIONS_MAX);
	}
	re.first = all.first;
	re.last = all.last;
	re.empty = all.empty;
	*ret = re;
	return 0;
}

/* Takes one byte. Returns true at the end of a match. */
static bool regex_step(const struct function_regex *re, uint64_t *states, unsigned char byte)
{
	uint64_t next = re->first;

	for (uint64_t s = *states; s; s &= s - 1)
		next |= re->follow[__builtin_ctzll(s)];
	*states = next & re->takes[byte];
	return *states & re->last;
}

bool function_regex_matches(const struct function_regex *re, const char *name)
{
	uint64_t states = 0;

	if (re->empty || regex_step(re, &states, BEGIN))
		return true;
	for (; *name; name++)
		if (regex_step(re, &states, (unsigned char)*name))
			return true;
	return regex_step(re, &states, END);
}
