/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_marks.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define GENERATION 3
#define CHUNK_BYTES (256U << 10)

void marks_maker_begin(struct marks_maker *w, int fd)
{
	*w = (struct marks_maker){ .time = 200 * SECOND };
	maker_init_fd(&w->m, fd, 8, false, 4096);
	maker_head(&w->m);
	maker_clocks(&w->m, 200 * SECOND, 0);
}

static void marks_flush(struct marks_maker *w)
{
	struct marks_header h = { .ring = htole32(w->ring) };
	const struct iovec iov[] = { { &h, sizeof(h) }, { w->chunk.data, w->chunk.len } };

	if (w->chunk.len)
		assert_int_equal(stream_write_pieces(&w->m.writer, CHUNK_MARKS, iov, 2), 0);
	buf_clear(&w->chunk);
}

void marks_maker_flush(struct marks_maker *w)
{
	marks_flush(w);
	maker_clocks(&w->m, w->time + SECOND, 2);
	buf_deinit(&w->chunk);
}

void marks_maker_end(struct marks_maker *w)
{
	marks_flush(w);
	page_begin(&w->m, w->time);
	event_number(&w->m, w->time, 7, 1);
	page_flush(&w->m, 0, 0);
	maker_clocks(&w->m, w->time + SECOND, 2);
	maker_end(&w->m);
	buf_deinit(&w->chunk);
	maker_deinit(&w->m);
}

void marks_ring(struct marks_maker *w, uint32_t ring, uint32_t uid, int32_t pid, int32_t tid)
{
	Traced__Capture__Producer p = TRACED__CAPTURE__PRODUCER__INIT;

	marks_flush(w);
	p.ring = w->ring = ring;
	p.version = MARK_VERSION;
	p.uid = uid;
	p.pid = pid;
	p.tid = tid;
	p.clock = MARK_CLOCK_BOOTTIME;
	p.generation = GENERATION;
	p.boot_ns = w->time;
	assert_int_equal(stream_write_message(&w->m.writer, CHUNK_PRODUCER, &p.base), 0);
	marks_record(w, MARK_EPOCH, GENERATION);
	marks_number(w, MARK_COUNT, MARK_UINT, 0);
}

static void put_words(struct marks_maker *w, size_t at)
{
	const uint16_t words = htole16((uint16_t)((w->chunk.len - at) / 8));

	memcpy(w->chunk.data + at, &words, sizeof(words));
}

void marks_record(struct marks_maker *w, uint8_t phase, uint32_t label)
{
	const struct mark_record r = {
		.phase = phase,
		.label = htole32(label),
		.time = htole64(w->time),
	};

	if (w->chunk.len > CHUNK_BYTES)
		marks_flush(w);
	w->time += 100;
	w->record = w->chunk.len;
	buf_append(&w->chunk, &r, sizeof(r));
	put_words(w, w->record);
}

static void put_field(struct marks_maker *w, uint8_t kind, uint8_t type, const void *value,
		      size_t len)
{
	const struct mark_field f = { .kind = kind, .type = type };
	const size_t at = w->chunk.len;

	buf_append(&w->chunk, &f, sizeof(f));
	buf_append(&w->chunk, value, len);
	while (w->chunk.len % MARK_ALIGN)
		buf_putc(&w->chunk, 0);
	put_words(w, at);
	put_words(w, w->record);
}

void marks_number(struct marks_maker *w, uint8_t kind, uint8_t type, uint64_t value)
{
	value = htole64(value);
	put_field(w, kind, type, &value, sizeof(value));
}

/* A text as fields have it. */
static size_t spell(char to[static 512], const char *text)
{
	const uint32_t len = (uint32_t)strlen(text), stored = htole32(len);

	assert_true(len < 500);
	memset(to, 0, 512);
	memcpy(to, &stored, sizeof(stored));
	memcpy(to + sizeof(stored), text, len);
	return sizeof(stored) + len;
}

void marks_text(struct marks_maker *w, uint8_t kind, const char *value)
{
	char text[512];

	put_field(w, kind, MARK_STRING, text, spell(text, value));
}

void marks_addresses(struct marks_maker *w, const uint64_t *values, size_t count)
{
	put_field(w, MARK_STACK, MARK_ADDRESSES, values, count * sizeof(*values));
}

/* The name, padded, then the value. */
static void put_argument(struct marks_maker *w, uint8_t type, const char *name, const void *value,
			 size_t len)
{
	char both[1024];
	size_t at = (spell(both, name) + 7) / 8 * 8;

	memcpy(both + at, value, len);
	put_field(w, MARK_ARG, type, both, at + len);
}

void marks_argument(struct marks_maker *w, const char *name, uint64_t value)
{
	value = htole64(value);
	put_argument(w, MARK_UINT, name, &value, sizeof(value));
}

void marks_string(struct marks_maker *w, const char *name, const char *value)
{
	char text[512];

	put_argument(w, MARK_STRING, name, text, spell(text, value));
}
