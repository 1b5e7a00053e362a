/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/seen_events.h"

#include <string.h>

#include "base/cleanup.h"

#define BIG_ENDIAN_HERE (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static uint32_t load_word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void seen_events_add(struct seen_events *s, const uint8_t *data)
{
	uint16_t number;

	memcpy(&number, data, sizeof(number));
	event_set_add(&s->events, number);
}

/*
 * Handles any record but short data. Returns the number of bytes after its header, of which the
 * first four are at p; 0: the rest of the page is empty; -1: damaged.
 */
static int64_t look_at_other(struct seen_events *s, unsigned type, uint32_t delta, const uint8_t *p,
			     uint32_t room)
{
	uint32_t length;

	if (type == RECORD_PADDING && !delta)
		return 0;
	if (room < 4 || (type && type <= RECORD_DATA_MAX))
		return -1;
	if (type == RECORD_TIME_EXTEND || type == RECORD_TIME_STAMP)
		return 4;
	length = load_word(p);
	if (length < 4 || length % 4 || length > room)
		return -1;
	if (type == 0 && length >= 8)
		seen_events_add(s, p + 4);
	return length;
}

/* Returns false if the records are damaged. */
static bool look_at_records(struct seen_events *s, const uint8_t *p, uint32_t room)
{
	while (room >= RECORD_HEADER) {
		uint32_t header = load_word(p);
		unsigned type = BIG_ENDIAN_HERE ? header >> RECORD_DELTA_BITS : header & 31;
		uint32_t delta = BIG_ENDIAN_HERE ? header & RECORD_DELTA_MASK : header >> 5;
		int64_t length = type * 4;

		p += RECORD_HEADER;
		room -= RECORD_HEADER;
		if (likely(type - 1 < RECORD_DATA_MAX && (uint32_t)length <= room)) {
			seen_events_add(s, p);
		} else {
			length = look_at_other(s, type, delta, p, room);
			if (length <= 0)
				return length == 0;
		}
		p += length;
		room -= (uint32_t)length;
	}
	return room == 0;
}

static bool look_at_subbuf(struct seen_events *s, const struct subbuf_layout *l,
			   const uint8_t *subbuf)
{
	const uint8_t *commit = subbuf + l->commit_offset;
	uint32_t length = load_word(BIG_ENDIAN_HERE && l->commit_size == 8 ? commit + 4 : commit) &
			  SUBBUF_COMMIT_MASK;

	return length <= l->size - l->data_offset &&
	       look_at_records(s, subbuf + l->data_offset, length);
}

void seen_events_look(struct seen_events *s, const struct subbuf_layout *layout,
		      const void *subbufs, unsigned count)
{
	const uint8_t *subbuf = subbufs;

	for (unsigned i = 0; i < count && !s->off && !s->any; i++, subbuf += layout->size) {
		s->bytes += layout->size;
		s->any = s->bytes > SEEN_EVENTS_BYTES_MAX || !look_at_subbuf(s, layout, subbuf);
	}
}

bool seen_events_has_any(const struct seen_events *s, const struct event_set *of)
{
	uint64_t both = 0;

	if (s->any)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(of->words); i++)
		both |= s->events.words[i] & of->words[i];
	return both;
}
