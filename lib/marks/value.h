/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Typed, nested values in one run of bytes: the arguments of marks. Written by appending to a
 * buffer, read in one pass. Each member of an object has its key before it. Invalid bytes end the
 * iteration and do no harm.
 */
#pragma once

#include "base/buf.h"

/* Any bytes, not terminated; borrowed. */
struct text {
	const char *data;
	uint32_t len;
};
#define TEXT(literal) ((struct text){ (literal), sizeof(literal) - 1 })

static inline bool text_equal(struct text a, struct text b)
{
	return a.len == b.len && (!a.len || memcmp(a.data, b.data, a.len) == 0);
}

enum value_type {
	VALUE_NULL = 1,
	VALUE_FALSE,
	VALUE_TRUE,
	VALUE_INT,
	VALUE_UINT,
	VALUE_DOUBLE,
	VALUE_STRING,
	VALUE_POINTER,
	VALUE_LIST, /* followed by its elements, up to VALUE_END */
	VALUE_DICT, /* the same; each element has a key */
	VALUE_END,
};

/* Deeper values are neither written nor read. */
#define VALUE_DEPTH_MAX 64

/* key: within an object, else NULL. */
void value_put(struct buf *out, const struct text *key, enum value_type type);
void value_put_u64(struct buf *out, const struct text *key, enum value_type type, uint64_t bits);
void value_put_text(struct buf *out, const struct text *key, struct text text);

struct value {
	enum value_type type;
	struct text key; /* data NULL: no key */
	union {
		int64_t i;
		uint64_t u; /* VALUE_UINT, VALUE_POINTER */
		double d;
		struct text text;
	};
};

struct value_iter {
	const uint8_t *p, *end;
	unsigned depth;
	bool dict[VALUE_DEPTH_MAX]; /* by depth: true for an object, whose members have keys */
};

/* members: the values are members of an object, without its VALUE_DICT. */
void value_iter_init(struct value_iter *it, struct text values, bool members);
/* False: no more. A list or object is returned first, then its contents, then VALUE_END. */
bool value_next(struct value_iter *it, struct value *ret);
/* Skips the contents of the list or object returned last. */
void value_skip(struct value_iter *it);
/* Converts a number of any type to a double. */
bool value_number(const struct value *v, double *ret);
/* The next finite number of a counter, whose other values are added to *others. False: no more. */
bool value_next_number(struct value_iter *it, struct value *ret, uint64_t *others);
/* An id as text: a number becomes "0x1f", as where it is a mark's own. False: neither. */
bool value_spell_id(const struct value *v, char to[static 20], struct text *ret);
/* Finds the first member of that name on the outermost level. */
bool value_find(struct text members, const char *key, struct value *ret);
