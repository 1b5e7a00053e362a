/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fields of a record of marks, one after the other, each length checked against what encloses
 * it. */
#pragma once

#include "marks/decode.h"

/* A field, its value checked against its end. */
struct mark_field_value {
	uint8_t kind, type;
	struct text key; /* of ARG */
	uint64_t number;
	struct text text; /* also the bytes of ADDRESSES */
};

/* The next field of [*p, end). 1, 0: there is no more, -EBADMSG. */
int mark_field_next(struct mark_decode *d, const uint8_t **p, const uint8_t *end,
		    struct mark_field_value *f);
/* Its value to d->args. */
void mark_field_put(struct mark_decode *d, const struct text *key,
		    const struct mark_field_value *f);
/* As an id, in to: numbers in hexadecimal, strings as they are. */
struct text mark_field_id(struct buf *to, const struct mark_field_value *f);
