/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An expression of a filter, parsed. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define EXPRESSION_TEXT_MAX 4096
#define EXPRESSION_DEPTH_MAX 32
#define EXPRESSION_NODES_MAX 256

enum expression_kind {
	EXPRESSION_OR,
	EXPRESSION_AND,
	EXPRESSION_NOT,	   /* of `left` */
	EXPRESSION_NUMBER, /* a field compared with a number */
	EXPRESSION_TEXT,   /* a field compared with a text */
};

enum expression_operator { OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_AND, OP_GLOB, OP_MATCH };

struct expression_node {
	enum expression_kind kind;
	uint32_t left, right; /* indexes of nodes */
	enum expression_operator op;
	bool negated; /* !~ */
	char *name;   /* owned; the field's */
	bool is_negative;
	uint64_t number; /* its absolute value */
	char *text;	 /* owned */
	regex_t regex;	 /* of OP_MATCH */
	bool has_regex;
};

struct expression {
	struct expression_node *nodes; /* owned */
	size_t count, cap;
	uint32_t root;
};

/* whole: for messages; text: its part behind the events. 0, -EINVAL or -ENOMEM. */
int expression_parse(struct expression *ret, const char *whole, const char *text,
		     struct error *err);
void expression_deinit(struct expression *e);
