/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads values from JSON text. */
#pragma once

#include "marks/json_read.h"
#include "marks/value.h"

static inline struct text text_of(const struct buf *b)
{
	return (struct text){ b->data, (uint32_t)b->len };
}

/*
 * Appends the value that `token` begins to out. members: the value is an object; append only its
 * members. Returns 0 or -errno as json_read_next().
 */
int json_value_read(struct json_read *json, int token, const struct text *key, bool members,
		    struct buf *out, struct error *err);
/*
 * Appends the single value in text. Appends nothing on failure: -EBADMSG if it is not one value, or
 * another -errno.
 */
int json_value_put(struct buf *out, const struct text *key, struct text text);
