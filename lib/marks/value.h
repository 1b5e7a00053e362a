/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Typed values, nested, in one run of bytes: what marks have as arguments.
 * Written by appending to a buffer, read by one pass. A member of a dict has its
 * key before it. Bytes that were tampered with end the reading, no more.
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
	VALUE_LIST, /* its elements follow, up to VALUE_END */
	VALUE_DICT, /* the same, each with its key */
	VALUE_END,
};

/* Deeper nesting is neither written nor read. */
#define VALUE_DEPTH_MAX 64

/* key: in a dict, else NULL. */
void value_put(struct buf *out, const struct text *key, enum value_type type);
void value_put_u64(struct buf *out, const struct text *key, enum value_type type, uint64_t bits);
void value_put_text(struct buf *out, const struct text *key, struct text text);

struct value {
	enum value_type type;
	struct text key; /* data NULL: none */
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
	bool dict[VALUE_DEPTH_MAX]; /* by depth: its members have keys */
};

/* members: the values are those of a dict, without the VALUE_DICT that would begin it. */
void value_iter_init(struct value_iter *it, struct text values, bool members);
/* False: there is no more. A list or dict comes first alone, then what it contains, then VALUE_END.
 */
bool value_next(struct value_iter *it, struct value *ret);
/* Passes over what a list or dict that was just read contains. */
void value_skip(struct value_iter *it);
/* A number of any type as a double. */
bool value_number(const struct value *v, double *ret);
/* The first member of that name on the outermost level. */
bool value_find(struct text members, const char *key, struct value *ret);
