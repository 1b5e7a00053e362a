/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/output.h"

#include <zlib.h>

#include "util/io.h"

/*
 * Traces are text that repeats itself: level 3 loses a tenth of what level 6
 * saves and takes half of its time.
 */
#define GZIP_LEVEL 3

struct output_gzip {
	z_stream z;
	unsigned char block[256U << 10];
};

int output_init(struct output *out, int fd, bool gzip)
{
	*out = (struct output){ .fd = fd };
	if (!buf_reserve(&out->buf, OUTPUT_HIGH_WATER + (64U << 10)))
		return -ENOMEM;
	if (!gzip)
		return 0;
	out->gzip = calloc(1, sizeof(*out->gzip));
	if (!out->gzip)
		return -ENOMEM;
	/* 15 bits of window; 16 more: a gzip header, without name and time. */
	if (deflateInit2(&out->gzip->z, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(TAKE_PTR(out->gzip));
		return -ENOMEM;
	}
	return 0;
}

void output_deinit(struct output *out)
{
	if (out->gzip) {
		deflateEnd(&out->gzip->z);
		free(out->gzip);
	}
	buf_deinit(&out->buf);
	*out = (struct output){ .fd = -EBADF };
}

static int put(struct output *out, const void *data, size_t len)
{
	int r = write_full(out->fd, data, len);

	if (r == 0)
		out->bytes += len;
	return r;
}

static int put_gzip(struct output *out, int flush)
{
	z_stream *z = &out->gzip->z;
	int r, state;

	z->next_in = (unsigned char *)out->buf.data;
	z->avail_in = (uInt)out->buf.len;
	do {
		z->next_out = out->gzip->block;
		z->avail_out = sizeof(out->gzip->block);
		state = deflate(z, flush);
		r = put(out, out->gzip->block, sizeof(out->gzip->block) - z->avail_out);
		if (r < 0)
			return r;
	} while (z->avail_out == 0 || (flush == Z_FINISH && state == Z_OK));
	return 0;
}

static int flush_as(struct output *out, int flush)
{
	int r;

	if (out->failed)
		return out->failed;
	r = buf_error(&out->buf);
	if (r == 0)
		r = out->gzip ? put_gzip(out, flush) : put(out, out->buf.data, out->buf.len);
	out->raw_bytes += out->buf.len;
	buf_clear(&out->buf);
	out->failed = r;
	return r;
}

int output_flush(struct output *out, bool last)
{
	return flush_as(out, last ? Z_FINISH : Z_NO_FLUSH);
}

int output_sync(struct output *out)
{
	return flush_as(out, Z_SYNC_FLUSH);
}
