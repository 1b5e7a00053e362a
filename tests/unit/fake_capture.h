/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A machine's procfs and tracefs as files, and the stream of a capture that reads them. */
#pragma once

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_root.h"
#include "stream/reader.h"
#include "stream/writer.h"

#define STAT_TAIL " 0 0 0 -1 %u 0 0 0 0 0 0 0 0 20 0 2 0 %u 1 2 3\n"

struct fake_capture {
	struct fake_root root;
	struct stream_writer writer;
	int fd;
};

static inline int fake_capture_setup(void **state)
{
	struct fake_capture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	f->fd = open(fake_path(&f->root, "stream"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(f->fd >= 0);
	assert_int_equal(stream_writer_init(&f->writer, f->fd, 0), 0);
	*state = f;
	return 0;
}

static inline int fake_capture_teardown(void **state)
{
	struct fake_capture *f = *state;

	close_fd(f->fd);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

static inline void fake_task(struct fake_capture *f, int pid, int tid, const char *comm,
			     unsigned flags)
{
	char path[128], text[256];

	snprintf(text, sizeof(text), "%d (%s) S 1" STAT_TAIL, tid, comm, flags, 200U);
	snprintf(path, sizeof(path), "proc/%d/task/%d/stat", pid, tid);
	fake_file(&f->root, path, text);
	if (pid == tid) {
		snprintf(path, sizeof(path), "proc/%d/stat", pid);
		fake_file(&f->root, path, text);
	}
	snprintf(path, sizeof(path), "proc/%d/status", pid);
	fake_file(&f->root, path, "Name:\tx\nUid:\t1000\t0\t0\t0\n");
	snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	fake_data(&f->root, path, "/bin/x\0-y\0", flags ? 0 : 10);
}

/* Counts its chunks of a type. If asked for, returns the last payload and the longest one. */
static inline unsigned fake_capture_chunks(const struct fake_capture *f, enum chunk_type type,
					   struct buf *ret_last, size_t *ret_largest)
{
	_cleanup_buf_ struct buf own = BUF_INIT;
	struct buf *b = ret_last ?: &own;
	struct stream_reader reader;
	size_t largest = 0;
	struct chunk chunk;
	unsigned n = 0;

	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		if (chunk.type != type)
			continue;
		assert_int_equal(stream_reader_load(&reader, &chunk, b, NULL), 0);
		largest = MAX(largest, b->len);
		n++;
	}
	if (ret_largest)
		*ret_largest = largest;
	return n;
}
