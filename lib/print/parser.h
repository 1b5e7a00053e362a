/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of the print fmt parser, shared by expr.c, call.c and statement.c. */
#pragma once

#include "print/expr_build.h"
#include "print/lexer.h"

#define PARSER_DEPTH 200
#define PARSER_LOCALS 16

/*
 * A name declared in a statement expression. These have no side effects, so the name stands for its
 * value.
 */
struct local {
	const char *name;
	size_t len;
	struct expr *value; /* NULL: not yet assigned */
	const char *bits;   /* name of the union if value has bit-fields, or NULL */
	size_t bits_len;
	bool is_text; /* stands for text that trace_seq_printf() writes */
};

struct parser {
	const struct expr_env *env;
	struct lexer lexer;
	const char *why;  /* the first failure, in the arena */
	bool unsupported; /* valid C that this parser does not support */
	unsigned depth;
	bool at_record;	   /* REC was just read; "->field" follows */
	bool type_is_bool; /* parser_type() last read a bool */
	struct local locals[PARSER_LOCALS];
	size_t local_count;
	struct expr *written, *written_last; /* EXPR_FORMATs of trace_seq_printf(), linked by b */
};

/*
 * Keep the first reason and return false. parser_fail: the format is damaged. parser_unsupported:
 * the parser does not know the construct.
 */
bool parser_fail(struct parser *p, const char *fmt, ...) _printf_(2, 3);
bool parser_unsupported(struct parser *p, const char *fmt, ...) _printf_(2, 3);
/* Returns e. If e is NULL, notes a reason. */
struct expr *parser_made(struct parser *p, struct expr *e);
bool parser_is(const struct parser *p, int op);
bool parser_accept(struct parser *p, int op);
bool parser_expect(struct parser *p, int op);
bool token_is(const struct token *t, const char *name);
const struct field *parser_field(struct parser *p, const struct token *t);

struct expr *parser_expr(struct parser *p);
struct expr *parser_unary(struct parser *p);
struct expr *parser_string(struct parser *p);
/* Parses ", expr", repeated. */
bool parser_list(struct parser *p, struct expr **ret);

/* call.c: parse from the '(' after a function's name. */
struct expr *parser_call(struct parser *p, const struct token *name);
struct expr *parser_sizeof(struct parser *p);

/* statement.c */
bool parser_starts_type(const struct parser *p, const struct token *t);
bool parser_type(struct parser *p, struct expr_type *ret);
/* Parses from after "({" up to and including "}". */
struct expr *parser_statements(struct parser *p);
/* NULL without a failure: the name is unknown. */
struct expr *parser_local(struct parser *p, const struct token *t);
