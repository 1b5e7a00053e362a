/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the print fmt parser share: expr.c, call.c, statement.c. */
#pragma once

#include "print/expr_build.h"
#include "print/lexer.h"

#define PARSER_DEPTH 200
#define PARSER_LOCALS 16

/* A name that a statement expression declares. Nothing there has side effects: it stands for its
 * value. */
struct local {
	const char *name;
	size_t len;
	struct expr *value; /* NULL: not assigned yet */
	const char *bits;   /* the union whose bit-fields it has, or NULL */
	size_t bits_len;
	bool is_text; /* the text that trace_seq_printf() makes from here on */
};

struct parser {
	const struct expr_env *env;
	struct lexer lexer;
	const char *why;  /* the first failure; in the arena */
	bool unsupported; /* that was good C, but is not known here */
	unsigned depth;
	bool at_record;	   /* REC was just read: "->field" follows */
	bool type_is_bool; /* the type that parser_type() read last */
	struct local locals[PARSER_LOCALS];
	size_t local_count;
	struct expr *written, *written_last; /* EXPR_FORMATs of trace_seq_printf(), by b */
};

/* Keep the first reason; always false. The format is damaged, or just not known here. */
bool parser_fail(struct parser *p, const char *fmt, ...) _printf_(2, 3);
bool parser_unsupported(struct parser *p, const char *fmt, ...) _printf_(2, 3);
/* e, or NULL with a reason noted if there is none. */
struct expr *parser_made(struct parser *p, struct expr *e);
bool parser_is(const struct parser *p, int op);
bool parser_accept(struct parser *p, int op);
bool parser_expect(struct parser *p, int op);
bool token_is(const struct token *t, const char *name);
const struct field *parser_field(struct parser *p, const struct token *t);

struct expr *parser_expr(struct parser *p);
struct expr *parser_unary(struct parser *p);
struct expr *parser_string(struct parser *p);
/* ", expr" as often as it comes. */
bool parser_list(struct parser *p, struct expr **ret);

/* call.c: at the '(' behind a function's name. */
struct expr *parser_call(struct parser *p, const struct token *name);
struct expr *parser_sizeof(struct parser *p);

/* statement.c */
bool parser_starts_type(const struct parser *p, const struct token *t);
bool parser_type(struct parser *p, struct expr_type *ret);
/* Behind "({", up to and with "}". */
struct expr *parser_statements(struct parser *p);
/* NULL without a failure: no such name. */
struct expr *parser_local(struct parser *p, const struct token *t);
