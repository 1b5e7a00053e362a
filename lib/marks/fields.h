/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the fields of a mark record one after the other, each length checked against the record's
 * end.
 */
#pragma once

#include "marks/decode.h"

/* A field whose value lies within the record. */
struct mark_field_value {
	uint8_t kind, type;
	struct text key; /* of ARG */
	uint64_t number;
	struct text text; /* for ADDRESSES: the raw bytes */
};

/* Reads the next field of [*p, end). 1; 0: no more; -EBADMSG. */
int mark_field_next(struct mark_decode *d, const uint8_t **p, const uint8_t *end,
		    struct mark_field_value *f);
/* Appends the field's value to d->args. */
void mark_field_put(struct mark_decode *d, const struct text *key,
		    const struct mark_field_value *f);
/* Formats the value as an id into `to`: numbers in hexadecimal, strings unchanged. */
struct text mark_field_id(struct buf *to, const struct mark_field_value *f);
