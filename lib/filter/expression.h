/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An expression of a filter, parsed. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "filter/number.h"

#define EXPRESSION_TEXT_MAX 4096
#define EXPRESSION_DEPTH_MAX 32
#define EXPRESSION_NODES_MAX 256
/* A pattern's bytes times its repetitions. */
#define EXPRESSION_REGEX_MAX (64U << 10)

enum expression_kind {
	/* Conditions. */
	EXPRESSION_LOGIC, /* OP_OR, OP_AND; of conditions, or of numbers that are not 0 */
	EXPRESSION_NOT,	  /* of `left` */
	EXPRESSION_COMPARISON,
	EXPRESSION_TEXT, /* a field compared with a text */
	/* Numbers. */
	EXPRESSION_LITERAL,
	EXPRESSION_FIELD,
	EXPRESSION_ARITHMETIC,
};

struct expression_node {
	enum expression_kind kind;
	uint32_t left, right; /* indexes of nodes */
	enum filter_operator op;
	struct number number; /* of a literal */
	char *name;	      /* owned; the field's */
	const char *at;	      /* in the parsed text, for messages */
	char *text;	      /* owned */
	bool is_char;	      /* the text is one byte between ' and ' */
	regex_t regex;	      /* of OP_MATCH and OP_NO_MATCH */
	bool has_regex;
};

struct expression {
	struct expression_node *nodes; /* owned */
	size_t count, cap;
	uint32_t root;
};

/*
 * whole: for messages, and borrowed by the expression; text: its part behind the events. 0, -EINVAL
 * or -ENOMEM.
 */
int expression_parse(struct expression *ret, const char *whole, const char *text,
		     struct error *err);
void expression_deinit(struct expression *e);
/*
 * Compiles a basic regular expression that ignores case. regcomp writes repetitions out:
 * "\(x\{32767\}\)\{32767\}" takes all memory. -E2BIG: it has too many; -EINVAL: it is none.
 */
int expression_compile_regex(regex_t *ret, const char *text);
/* Sets the error: "--filter: WHAT", and below it the text with a caret at a place in it. */
int expression_error(const char *whole, const char *at, struct error *err, const char *what);
