/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Synthetic rings of marks and samples, of a 64-bit little-endian machine. */
#pragma once

#include "make_stream.h"
#include "traced/mark_record.h"

struct marks_maker {
	struct maker m;
	uint32_t ring;	  /* of the chunk being made */
	uint64_t time;	  /* of the next record */
	struct buf chunk; /* its records */
	size_t record;	  /* where the last one begins */
};

/* Writes the stream's head. fd: owned from now on. */
void marks_maker_begin(struct marks_maker *w, int fd);
void marks_maker_end(struct marks_maker *w);
/* Without events, and w->m is left to be ended by the caller. */
void marks_maker_flush(struct marks_maker *w);

/* Announces a ring and begins its first chunk, after the last one's is written. */
void marks_ring(struct marks_maker *w, uint32_t ring, uint32_t uid, int32_t pid, int32_t tid);
/* Begins a record; phase also: an enum mark_control. */
void marks_record(struct marks_maker *w, uint8_t phase, uint32_t label);
/* Fields of the last record. */
void marks_number(struct marks_maker *w, uint8_t kind, uint8_t type, uint64_t value);
void marks_text(struct marks_maker *w, uint8_t kind, const char *value);
void marks_addresses(struct marks_maker *w, const uint64_t *values, size_t count);
/* An argument of the last record. */
void marks_argument(struct marks_maker *w, const char *name, uint64_t value);
void marks_string(struct marks_maker *w, const char *name, const char *value);
