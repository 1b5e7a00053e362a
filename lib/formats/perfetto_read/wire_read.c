/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/wire_read.h"

static bool read_fixed(struct wire_reader *r, struct wire_field *f, size_t len)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < len)
		return false;
	memcpy(&value, r->at, len);
	f->value = le64toh(value);
	r->at += len;
	return true;
}

static bool read_bytes(struct wire_reader *r, struct wire_field *f)
{
	uint64_t len;

	if (!wire_read_varint(r, &len) || len > (size_t)(r->end - r->at))
		return false;
	f->data = r->at;
	f->len = (size_t)len;
	r->at += len;
	return true;
}

bool wire_read(struct wire_reader *r, struct wire_field *ret)
{
	uint64_t tag;
	bool ok;

	if (r->at == r->end || r->bad || !wire_read_varint(r, &tag))
		return false;
	*ret = (struct wire_field){ .number = (uint32_t)(tag >> 3), .type = tag & 7 };
	switch (ret->type) {
	case WIRE_VARINT:
		ok = wire_read_varint(r, &ret->value);
		break;
	case WIRE_FIXED64:
		ok = read_fixed(r, ret, sizeof(uint64_t));
		break;
	case WIRE_BYTES:
		ok = read_bytes(r, ret);
		break;
	case WIRE_FIXED32:
		ok = read_fixed(r, ret, sizeof(uint32_t));
		break;
	default:
		ok = false;
	}
	if (!ok || !ret->number || tag >> 3 > (1U << 29) - 1)
		r->bad = true;
	return !r->bad;
}
