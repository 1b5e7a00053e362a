/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values out of JSON text. */
#pragma once

#include "marks/json_read.h"
#include "marks/value.h"

static inline struct text text_of(const struct buf *b)
{
	return (struct text){ b->data, (uint32_t)b->len };
}

/*
 * The value that token begins, appended to out. members: it is an object, of
 * which the members alone are wanted. 0 or -errno as of json_read_next.
 */
int json_value_read(struct json_read *json, int token, const struct text *key, bool members,
		    struct buf *out, struct error *err);
/* The one value that text is. Where it is none nothing is appended: -EBADMSG and others. */
int json_value_put(struct buf *out, const struct text *key, struct text text);
