/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers of filters: 64 bits, as in C. A field of 8 unsigned bytes and a literal above INT64_MAX
 * are unsigned, and so is what is computed from one; all others are signed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum filter_operator {
	OP_OR,
	OP_AND,
	/* Comparisons. */
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	/* Comparisons of texts only. */
	OP_GLOB,
	OP_MATCH,
	OP_NO_MATCH,
	/* Arithmetic. */
	OP_BIT_OR,
	OP_BIT_XOR,
	OP_BIT_AND,
	OP_SHIFT_LEFT,
	OP_SHIFT_RIGHT,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_MOD,
};

struct number {
	uint64_t bits;
	bool is_signed; /* bits are of an int64_t */
};

struct number number_of_literal(uint64_t value);
/* value: the lowest size bytes count (1 to 8); the others are 0. */
struct number number_of_field(uint64_t value, uint32_t size, bool is_signed);
/* Arithmetic. False: a division by 0, or a shift by less than 0 or more than 63 bits. */
bool number_compute(enum filter_operator op, struct number a, struct number b, struct number *ret);
/* OP_EQ to OP_GE. Exact: -1 is less than each unsigned number. */
bool number_compare(enum filter_operator op, struct number a, struct number b);
