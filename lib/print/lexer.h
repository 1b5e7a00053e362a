/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Splits a print fmt, which is hostile input, into C tokens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
	TOKEN_END,
	TOKEN_NAME,
	TOKEN_NUMBER,
	TOKEN_STRING,
	TOKEN_CHAR,
	TOKEN_PUNCT,
	TOKEN_BAD
};

struct token {
	enum token_kind kind;
	const char *text; /* in the source; a string includes its quotes */
	size_t len;
	int op;		/* TOKEN_PUNCT: a character or an enum expr_op; "->" is OP_ARROW */
	uint64_t value; /* of a number or character */
	uint8_t longs;	/* TOKEN_NUMBER: count of L suffixes */
	bool is_unsigned, is_hex;
};

#define OP_ARROW 200

struct lexer {
	const char *p, *end;
	struct token token; /* current token */
};

void lexer_init(struct lexer *l, const char *text, size_t len);
void lexer_next(struct lexer *l);
/* Writes the value of a string token; out needs the size of its text. Returns the length. */
size_t lexer_unescape(const struct token *t, char *out);
