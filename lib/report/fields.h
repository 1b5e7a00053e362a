/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fields of events, found once by name and then read from each record. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "marks/value.h"
#include "trace/trace_event.h"

/* All zero: the event has no such field. */
struct field_at {
	uint32_t offset;
	uint8_t size; /* 1, 2, 4 or 8 bytes; or 0 */
	bool is_signed, big_endian;
};

/* ev NULL: the recording has no such event. */
struct field_at field_at_find(const struct event *ev, const char *name, bool big_endian);

/* A string: fixed, or with its place in the record (__data_loc, __rel_loc). */
struct string_at {
	uint32_t offset, size;
	bool is_dynamic, is_relative, big_endian;
};
struct string_at string_at_find(const struct event *ev, const char *name, bool big_endian);
/* Up to its terminator. Empty: no such field, or it is not in the record. */
struct text string_at_read(const struct string_at *s, const struct record *rec);

/* Sign-extended if the field is signed. 0: no such field, or it is not in the record. */
static inline uint64_t field_at_read(const struct field_at *f, const struct record *rec)
{
	const uint8_t *p = rec->data + f->offset;

	if (unlikely(f->offset + f->size > rec->len))
		return 0;
	switch (f->size) {
	case 1:
		return f->is_signed ? (uint64_t)(int64_t)(int8_t)*p : *p;
	case 2:
		return f->is_signed ? (uint64_t)(int64_t)(int16_t)load_u16(p, f->big_endian)
				    : load_u16(p, f->big_endian);
	case 4:
		return f->is_signed ? (uint64_t)(int64_t)(int32_t)load_u32(p, f->big_endian)
				    : load_u32(p, f->big_endian);
	case 8:
		return load_u64(p, f->big_endian);
	default:
		return 0;
	}
}

static inline int32_t field_at_pid(const struct field_at *f, const struct record *rec)
{
	/* All kernels have it so. */
	if (likely(f->size == 4 && !f->big_endian && f->offset + 4 <= rec->len))
		return (int32_t)load_u32(rec->data + f->offset, false);
	return (int32_t)field_at_read(f, rec);
}
