/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locates the bytes of an operation's field in a record, and loads numbers. */
#pragma once

#include <byteswap.h>

#include "formats/perfetto/op.h"
#include "print/printer.h"

/* Bytes of a field, checked against the record. */
struct span {
	const uint8_t *data;
	uint32_t len;
};

/* Loads a number in the recording's byte order. */
static inline uint64_t field_load(const struct pf_schema *s, const uint8_t *p, uint32_t size)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&v2, p, sizeof(v2));
		return s->swap ? bswap_16(v2) : v2;
	case 4:
		memcpy(&v4, p, sizeof(v4));
		return s->swap ? bswap_32(v4) : v4;
	default:
		memcpy(&v8, p, sizeof(v8));
		return s->swap ? bswap_64(v8) : v8;
	}
}

static inline uint64_t field_load_number(const struct pf_schema *s, const uint8_t *p, uint32_t size,
					 bool is_signed)
{
	uint64_t value = field_load(s, p, size);
	unsigned spare = 64 - size * 8;

	if (is_signed && spare)
		return (uint64_t)((int64_t)(value << spare) >> spare);
	return value;
}

static inline bool field_locate(const struct pf_schema *s, const struct pf_op *op,
				const struct record *rec, struct span *ret)
{
	uint64_t start = op->offset, len = op->size;

	if (op->dynamic == PF_DYNAMIC_TAIL) {
		len = rec->len > start ? rec->len - start : 0;
	} else if (op->dynamic != PF_FIXED) {
		uint32_t loc;

		if (start + sizeof(loc) > rec->len)
			return false;
		loc = (uint32_t)field_load(s, rec->data + start, sizeof(loc));
		len = loc >> 16;
		start = (loc & 0xffff) +
			(op->dynamic == PF_DYNAMIC_RELATIVE ? start + sizeof(loc) : 0);
	}
	if (start + len > rec->len)
		return false;
	*ret = (struct span){ rec->data + start, (uint32_t)len };
	return true;
}

/* Numbers of other types may hold a pointer ("unsigned long ip"): these are hashed, too. */
static inline uint64_t field_hide_number(const struct pf_schema *s, const struct pf_op *op,
					 uint64_t value)
{
	return op->hide ? printer_number(s->printer, value) : value;
}
