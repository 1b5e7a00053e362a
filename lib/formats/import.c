/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/import.h"

#include <zlib.h>

#include "base/io.h"
#include "formats/dat/reader.h"
#include "formats/perfetto_read/packets.h"
#include "formats/perfetto_read/perfetto.h"

/* Of a file, by which its kind is known. */
#define BEGINNING 4096

enum kind { KIND_NONE, KIND_DAT, KIND_PERFETTO };

static bool begins_as_perfetto(const void *data, size_t len)
{
	uint8_t plain[64];
	z_stream z = {
		.next_in = (uint8_t *)(uintptr_t)data,
		.avail_in = (uInt)MIN(len, (size_t)BEGINNING),
		.next_out = plain,
		.avail_out = sizeof(plain),
	};

	if (pf_packets_begin(data, len))
		return true;
	/* 15 bits of window; 16 more: a gzip header. */
	if (len < 2 || memcmp(data, "\x1f\x8b", 2) != 0 || inflateInit2(&z, 15 + 16) != Z_OK)
		return false;
	inflate(&z, Z_SYNC_FLUSH);
	inflateEnd(&z);
	return pf_packets_begin(plain, sizeof(plain) - z.avail_out);
}

static enum kind kind_of(const void *data, size_t len)
{
	if (len >= DAT_MAGIC_SIZE && memcmp(data, DAT_MAGIC, DAT_MAGIC_SIZE) == 0)
		return KIND_DAT;
	return begins_as_perfetto(data, len) ? KIND_PERFETTO : KIND_NONE;
}

static enum kind kind_of_file(int fd)
{
	uint8_t head[BEGINNING];
	ssize_t n = pread_full(fd, head, sizeof(head), 0);

	return n > 0 ? kind_of(head, (size_t)n) : KIND_NONE;
}

bool import_begins(const void *data, size_t len)
{
	return kind_of(data, len) != KIND_NONE;
}

bool import_wanted(int fd)
{
	return kind_of_file(fd) != KIND_NONE;
}

static int import_dat(int in, struct stream_writer *w, const struct import_options *o,
		      struct error *err)
{
	_cleanup_dat_ struct dat d = { .fd = -EBADF };
	int r = dat_open(&d, in, err);

	if (r == 0)
		r = dat_choose(&d, o->instance, err);
	return r < 0 ? r : dat_write(&d, w, err);
}

int import_stream(int in, int stream_fd, const struct import_options *o, struct error *err)
{
	enum kind kind = kind_of_file(in);
	struct stream_writer writer;
	int r;

	if (kind == KIND_NONE)
		return error_set(err, -EBADMSG, "neither a trace.dat nor a Perfetto trace");
	r = stream_writer_init(&writer, stream_fd, o->limit);
	if (r < 0)
		return error_errno(err, r, "can't keep the recording's events");
	return kind == KIND_DAT ? import_dat(in, &writer, o, err)
				: perfetto_import(in, &writer, o, err);
}
