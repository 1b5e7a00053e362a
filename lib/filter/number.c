/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter/number.h"

struct number number_of_literal(uint64_t value)
{
	return (struct number){ value, value <= INT64_MAX };
}

struct number number_of_field(uint64_t value, uint32_t size, bool is_signed)
{
	const unsigned bits = size * 8;

	if (is_signed && bits < 64 && value >> (bits - 1) & 1)
		value |= ~UINT64_C(0) << bits;
	return (struct number){ value, is_signed || bits < 64 };
}

static bool number_is_negative(struct number n)
{
	return n.is_signed && n.bits >> 63;
}

static bool number_divide(enum filter_operator op, struct number a, struct number b, bool is_signed,
			  uint64_t *ret)
{
	if (!b.bits)
		return false;
	if (!is_signed)
		*ret = op == OP_DIV ? a.bits / b.bits : a.bits % b.bits;
	else if (b.bits == UINT64_MAX)
		/* By -1: the quotient of INT64_MIN does not fit. */
		*ret = op == OP_DIV ? -a.bits : 0;
	else
		*ret = op == OP_DIV ? (uint64_t)((int64_t)a.bits / (int64_t)b.bits)
				    : (uint64_t)((int64_t)a.bits % (int64_t)b.bits);
	return true;
}

static bool number_shift(enum filter_operator op, struct number a, struct number b, uint64_t *ret)
{
	if (b.bits > 63)
		return false;
	if (op == OP_SHIFT_LEFT)
		*ret = a.bits << b.bits;
	else
		*ret = a.is_signed ? (uint64_t)((int64_t)a.bits >> b.bits) : a.bits >> b.bits;
	return true;
}

bool number_compute(enum filter_operator op, struct number a, struct number b, struct number *ret)
{
	ret->is_signed = a.is_signed && b.is_signed;
	switch (op) {
	case OP_BIT_OR:
		ret->bits = a.bits | b.bits;
		return true;
	case OP_BIT_XOR:
		ret->bits = a.bits ^ b.bits;
		return true;
	case OP_BIT_AND:
		ret->bits = a.bits & b.bits;
		return true;
	case OP_SHIFT_LEFT:
	case OP_SHIFT_RIGHT:
		ret->is_signed = a.is_signed;
		return number_shift(op, a, b, &ret->bits);
	case OP_ADD:
		ret->bits = a.bits + b.bits;
		return true;
	case OP_SUB:
		ret->bits = a.bits - b.bits;
		return true;
	case OP_MUL:
		ret->bits = a.bits * b.bits;
		return true;
	default:
		return number_divide(op, a, b, ret->is_signed, &ret->bits);
	}
}

/* -1, 0 or 1. */
static int number_order(struct number a, struct number b)
{
	if (number_is_negative(a) != number_is_negative(b))
		return number_is_negative(a) ? -1 : 1;
	/* Two's complement keeps the order of numbers of one sign. */
	return a.bits < b.bits ? -1 : a.bits > b.bits;
}

bool number_compare(enum filter_operator op, struct number a, struct number b)
{
	const int order = number_order(a, b);

	switch (op) {
	case OP_EQ:
		return order == 0;
	case OP_NE:
		return order != 0;
	case OP_LT:
		return order < 0;
	case OP_LE:
		return order <= 0;
	case OP_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}
