/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/fields.h"

#include <string.h>

/* Records are shorter than this; sums of offsets and sizes then fit. */
#define OFFSET_MAX (1U << 20)

struct field_at field_at_find(const struct event *ev, const char *name, bool big_endian)
{
	const struct field *f = event_field(ev, name);

	if (!f || f->is_array || f->is_dynamic || !is_number_size(f->size) ||
	    f->offset > OFFSET_MAX)
		return (struct field_at){ 0 };
	return (struct field_at){ f->offset, (uint8_t)f->size, f->is_signed, big_endian };
}

struct string_at string_at_find(const struct event *ev, const char *name, bool big_endian)
{
	const struct field *f = event_field(ev, name);

	if (!f || f->offset > OFFSET_MAX || f->size > OFFSET_MAX ||
	    !(f->is_dynamic ? f->size == 4 : f->is_array && f->element_size == 1))
		return (struct string_at){ 0 };
	return (struct string_at){ f->offset, f->size, f->is_dynamic, f->is_relative, big_endian };
}

struct text string_at_read(const struct string_at *s, const struct record *rec)
{
	uint64_t at = s->offset, size = s->size;
	uint32_t word;

	if (!size || at + size > rec->len)
		return (struct text){ "", 0 };
	if (s->is_dynamic) {
		word = load_u32(rec->data + at, s->big_endian);
		at = (word & 0xffff) + (s->is_relative ? at + size : 0);
		size = word >> 16;
		if (at + size > rec->len)
			return (struct text){ "", 0 };
	}
	return (struct text){ (const char *)rec->data + at,
			      (uint32_t)strnlen((const char *)rec->data + at, (size_t)size) };
}
