/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes bytes of records into a ring. The caller has made room. */
#pragma once

#include <string.h>

#include "internal.h"

#define CONTROL_BYTES 32 /* a record with one number */

/* The longest record that a ring accepts: the reader must be able to lag behind. */
#define RECORD_MAX(r) (((r)->mask + 1) / 4)

/* Signed: a signal handler may have set limit before head. */
static inline bool ring_has_room(const struct ring *r, uint32_t bytes)
{
	return (int32_t)(r->limit - r->head) >= (int32_t)bytes;
}

static inline char *ring_at(const struct ring *r, uint32_t position)
{
	return r->data + (position & r->mask);
}

/* Lets the daemon read the records before head. */
static inline void ring_publish(struct ring *r, uint32_t head)
{
	r->head = head;
	__atomic_store_n(&r->shared->head, head, __ATOMIC_RELEASE);
}

static inline bool ring_knows(const struct ring *r, uint32_t label)
{
	return r->defined[label / 64] >> label % 64 & 1;
}

static inline uint32_t mark_padded(size_t bytes)
{
	return ((uint32_t)bytes + 7) & ~7U;
}

/* Bytes of a field with a text of this length. */
static inline uint32_t mark_text_bytes(size_t length)
{
	return 8 + mark_padded(4 + length);
}

static inline void mark_put_record(char *p, uint16_t words, uint8_t phase, uint8_t flags,
				   uint32_t label, uint64_t time)
{
	struct mark_record h = {
		.words = words, .phase = phase, .flags = flags, .label = label, .time = time
	};

	memcpy(p, &h, sizeof(h));
}

static inline char *mark_put_field(char *p, uint32_t bytes, enum mark_kind kind,
				   enum mark_type type, uint32_t key)
{
	struct mark_field f = {
		.words = (uint16_t)(bytes / 8),
		.kind = (uint8_t)kind,
		.type = (uint8_t)type,
		.key = key,
	};

	memcpy(p, &f, sizeof(f));
	return p + sizeof(f);
}

static inline char *mark_put_number(char *p, enum mark_kind kind, enum mark_type type,
				    uint64_t value)
{
	p = mark_put_field(p, 16, kind, type, 0);
	memcpy(p, &value, sizeof(value));
	return p + sizeof(value);
}

/* Writes a text's length, its bytes and padding. */
static inline char *mark_put_bytes(char *p, const char *text, size_t length)
{
	uint32_t n = (uint32_t)length, end = mark_padded(4 + length);
	const uint64_t zero = 0;

	memcpy(p + end - 8, &zero, sizeof(zero));
	memcpy(p, &n, sizeof(n));
	memcpy(p + 4, text, length);
	return p + end;
}

static inline char *mark_put_text(char *p, enum mark_kind kind, enum mark_type type, uint32_t key,
				  const char *text, size_t length)
{
	p = mark_put_field(p, mark_text_bytes(length), kind, type, key);
	return mark_put_bytes(p, text, length);
}

/*
 * Begins a mark and reserves the thread's ring until ring_end(). NULL: write no mark, and do not
 * call ring_end().
 */
static inline struct ring *ring_begin(struct thread *t)
{
	uint32_t word = page_word();
	struct ring *r;

	if (unlikely(word == MARKS_OFF))
		return NULL;
	if (unlikely(t->busy)) {
		if (word >= MARKS_GENERATION_MIN)
			ring_drop(t, t->ring && t->ring->generation ? t->ring : NULL);
		return NULL;
	}
	t->busy = 1;
	barrier();
	r = t->ring;
	if (likely(r && r->generation == word))
		return r;
	r = thread_attach(t, word);
	if (!r) {
		barrier();
		t->busy = 0;
	}
	return r;
}

static inline void ring_end(struct thread *t)
{
	barrier();
	t->busy = 0;
}
