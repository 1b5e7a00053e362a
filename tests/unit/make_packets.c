/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_packets.h"

#include "formats/perfetto/message.h"

struct wire_field field_of(const struct buf *b)
{
	return (struct wire_field){
		.number = 1,
		.type = WIRE_BYTES,
		.data = (const uint8_t *)(b->data ?: ""),
		.len = b->len,
	};
}

void add_track(struct import *i, const struct buf *descriptor)
{
	const struct pf_packet p = { .sequence = 2, .track_descriptor = field_of(descriptor) };

	import_add(i, &p);
}

void add_interned(struct import *i, const struct buf *data)
{
	const struct pf_packet p = { .sequence = 1, .interned = field_of(data) };

	import_add(i, &p);
}

void add_event(struct import *i, uint64_t ts, const struct buf *event)
{
	const struct pf_packet p = { .sequence = 1,
				     .timestamp = ts,
				     .track_event = field_of(event) };

	import_add(i, &p);
}

void add_sample(struct import *i, uint64_t ts, int32_t tid, uint64_t stack)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct pf_packet p = { .sequence = 1, .timestamp = ts };

	pf_uint(&b, 1, 0);
	pf_uint(&b, 2, (uint32_t)tid);
	pf_uint(&b, 3, (uint32_t)tid);
	if (stack)
		pf_uint(&b, 4, stack);
	p.perf_sample = field_of(&b);
	import_add(i, &p);
}

void add_thread(struct import *i, int32_t tid)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	size_t thread;

	pf_uint(&b, 1, (uint64_t)tid);
	thread = pf_open(&b, 4);
	pf_uint(&b, 1, (uint64_t)tid);
	pf_uint(&b, 2, (uint64_t)tid);
	pf_close(&b, thread);
	add_track(i, &b);
}

void add_named(struct import *i, uint64_t uuid, uint64_t parent, const char *name)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	pf_uint(&b, 1, uuid);
	if (parent)
		pf_uint(&b, 5, parent);
	pf_text(&b, 2, (struct text){ name, (uint32_t)strlen(name) });
	add_track(i, &b);
}

void begin_event(struct buf *b, unsigned type, uint64_t track, const char *name)
{
	*b = BUF_INIT;
	pf_uint(b, 9, type);
	pf_uint(b, 11, track);
	if (name)
		pf_text(b, 23, (struct text){ name, (uint32_t)strlen(name) });
}

void add_simple(struct import *i, uint64_t ts, unsigned type, uint64_t track, const char *name)
{
	_cleanup_buf_ struct buf b;

	begin_event(&b, type, track, name);
	add_event(i, ts, &b);
}

json_t *event_at(const struct import *i, size_t n)
{
	return json_array_get(rows_of(i->json, "traceEvents"), n);
}
