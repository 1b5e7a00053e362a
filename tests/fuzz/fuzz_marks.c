/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring of marks as a stranger's thread may leave it, through the daemon's end and the decoder.
 * One byte: flags. Then, repeatedly, 8 bytes: how far the head moves (16 bits), the number of bytes
 * written there (16 bits), the count of dropped marks (32 bits); and those bytes.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/marks/ring.h"
#include "marks/decode.h"
#include "traced/mark_record.h"

struct stranger {
	struct marks_ring ring;
	struct mark_ring *shared;
	char *records;
	uint32_t page;
};

static int stranger_init(struct stranger *s)
{
	struct marks_message msg = { .size = MARK_RING_MIN };
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	msg.header = s->page = (uint32_t)sysconf(_SC_PAGESIZE);
	if (fd < 0 || ftruncate(fd, s->page + MARK_RING_MIN) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -1;
	s->shared = mmap(NULL, s->page + MARK_RING_MIN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s->shared == MAP_FAILED)
		return -1;
	s->records = (char *)s->shared + s->page;
	return marks_ring_open(&s->ring, fd, &msg, NULL);
}

static void decode(struct mark_decode *d, const struct buf *records)
{
	/* A block of its own, so that a sanitizer sees reads beyond it. */
	uint8_t *p = malloc(records->len ?: 1);
	size_t left = records->len, size;

	if (!p)
		return;
	if (left)
		memcpy(p, records->data, left);
	for (const uint8_t *at = p; left && (size = mark_record_size(d, at, left));) {
		struct mark mark;
		int r;

		if (size > left || size % MARK_ALIGN)
			abort();
		mark_record_time(d, at);
		r = mark_decode(d, at, size, &mark);
		if (r < 0)
			break;
		/* A frame is returned once, and then the record again. */
		if (r == DECODED_FRAME)
			continue;
		for (int i = 0; r == DECODED_MARK && i < PART_PARTS; i++)
			for (uint32_t k = 0; k < mark.part[i].len; k++)
				*(volatile const char *)&mark.part[i].data[k];
		at += size;
		left -= size;
	}
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mark_decode_shared shared = MARK_DECODE_SHARED_INIT;
	struct stranger s = { 0 };
	struct mark_decode d;

	if (size < 1 || stranger_init(&s) < 0)
		return 0;
	mark_decode_init(&d, &shared, data[0] & 1);
	d.begun = data[0] & 2;
	d.generation = 1;
	data++;
	size--;
	while (size >= 8) {
		_cleanup_buf_ struct buf out = BUF_INIT;
		uint16_t moved, given;
		int64_t taken;

		memcpy(&moved, data, 2);
		memcpy(&given, data + 2, 2);
		memcpy(&s.shared->dropped, data + 4, 4);
		data += 8;
		size -= 8;
		given = (uint16_t)MIN((size_t)given, size);
		for (uint16_t i = 0; i < given; i++)
			s.records[(s.shared->head + i) % MARK_RING_MIN] = (char)data[i];
		data += given;
		size -= given;
		s.shared->head += moved;
		taken = marks_ring_take(&s.ring, &out);
		if (taken < 0)
			break;
		if ((size_t)taken != out.len || out.len > MARK_RING_MIN || out.len % MARK_ALIGN)
			abort();
		decode(&d, &out);
	}
	mark_decode_deinit(&d);
	mark_decode_shared_deinit(&shared);
	munmap(s.shared, s.page + MARK_RING_MIN);
	close_fd(marks_ring_close(&s.ring));
	return 0;
}
