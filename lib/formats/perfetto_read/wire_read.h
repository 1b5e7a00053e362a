/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads protobuf's wire format, field by field. The bytes are hostile. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "formats/perfetto/wire.h"

struct wire_field {
	uint32_t number;
	enum wire_type type;
	uint64_t value;	     /* of numbers, fixed ones too, in the host's order */
	const uint8_t *data; /* of bytes; borrowed */
	size_t len;
};

struct wire_reader {
	const uint8_t *at, *end;
	bool bad; /* what follows makes no sense */
};

static inline struct wire_reader wire_reader_of(const void *data, size_t len)
{
	return (struct wire_reader){ .at = data, .end = (const uint8_t *)data + len };
}

/* The content of a field of bytes; of any other: nothing. */
static inline struct wire_reader wire_reader_in(const struct wire_field *f)
{
	return f->data ? wire_reader_of(f->data, f->len) : (struct wire_reader){ 0 };
}

/* false: there is none that is whole. */
static inline bool wire_read_varint(struct wire_reader *r, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
		uint8_t byte = *r->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	r->bad = true;
	return false;
}

/* false: no more, or bad is set. */
bool wire_read(struct wire_reader *r, struct wire_field *ret);
