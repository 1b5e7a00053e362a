/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/output.h"

#include <sys/stat.h>
#include <zlib.h>

#include "base/io.h"
#include "base/vec.h"
#include "export/segment.h"

/* Traces compress well: level 3 output is a tenth larger than level 6, in half the time. */
#define GZIP_LEVEL 3
/* Assumed compression until the first output, in 65536ths. */
#define GZIP_SCALE (UINT32_C(65536) / 2)

struct output_gzip {
	z_stream z;
	unsigned char block[256U << 10];
};

int output_init(struct output *out, int fd, bool gzip)
{
	*out = (struct output){ .scale = gzip ? GZIP_SCALE : 65536 };
	if (block_file_init(&out->file, fd) < 0 ||
	    !buf_reserve(&out->buf, OUTPUT_HIGH_WATER + (64U << 10)))
		return -ENOMEM;
	if (!gzip)
		return 0;
	out->gzip = calloc(1, sizeof(*out->gzip));
	if (!out->gzip)
		return -ENOMEM;
	/* 15 bits of window + 16 for a gzip header without name and time. */
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
	block_file_deinit(&out->file);
	buf_deinit(&out->buf);
	free(out->segment_ends);
	*out = (struct output){ .file.fd = -EBADF };
}

/* A socket whose peer is gone fails with ECONNRESET if data was unread, else EPIPE. */
static int output_errno(int r)
{
	return r == -ECONNRESET ? -EPIPE : r;
}

static int output_put_frame(struct output *out, enum segment_frame_kind kind, const void *data,
			    size_t len)
{
	struct segment_frame head = { .kind = kind, .len = (uint32_t)len };
	struct iovec iov[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
	};

	return output_errno(writev_full(out->file.fd, iov, ARRAY_SIZE(iov)));
}

static int output_put_frames(struct output *out, const char *data, size_t len)
{
	int r = 0;

	for (size_t at = 0, n; r == 0 && at < len; at += n) {
		n = MIN(len - at, (size_t)SEGMENT_FRAME_MAX);
		r = output_put_frame(out, SEGMENT_DATA, data + at, n);
	}
	return r;
}

static int output_put(struct output *out, const void *data, size_t len)
{
	int r = out->framed ? output_put_frames(out, data, len)
			    : block_file_write(&out->file, data, len);

	if (r == 0)
		out->bytes += len;
	return r;
}

static int output_put_gzip(struct output *out, int flush)
{
	z_stream *z = &out->gzip->z;
	int r, state;

	z->next_in = (unsigned char *)out->buf.data;
	z->avail_in = (uInt)out->buf.len;
	do {
		z->next_out = out->gzip->block;
		z->avail_out = sizeof(out->gzip->block);
		state = deflate(z, flush);
		r = output_put(out, out->gzip->block, sizeof(out->gzip->block) - z->avail_out);
		if (r < 0)
			return r;
	} while (z->avail_out == 0 || (flush == Z_FINISH && state == Z_OK));
	return 0;
}

static int output_flush_as(struct output *out, int flush)
{
	int r;

	if (out->failed)
		return out->failed;
	if (out->rewrite)
		out->rewrite(&out->buf, &out->since);
	r = buf_error(&out->buf);
	if (r == 0)
		r = out->gzip ? output_put_gzip(out, flush)
			      : output_put(out, out->buf.data, out->buf.len);
	out->raw_bytes += out->buf.len;
	/* Wait: the newest bytes are still in the compressor. */
	if (out->gzip && out->raw_bytes > OUTPUT_HIGH_WATER && out->bytes)
		out->scale = (uint32_t)((double)out->bytes / (double)out->raw_bytes * 65536) + 1;
	buf_clear(&out->buf);
	out->failed = r;
	return r;
}

int output_pass(struct output *out)
{
	return output_flush_as(out, Z_NO_FLUSH);
}

int output_rewrite(struct output *out, void (*rewrite)(struct buf *b, size_t *since))
{
	int r = output_pass(out);

	out->rewrite = rewrite;
	out->since = 0;
	return r;
}

static int output_flush_all(struct output *out, int flush)
{
	int r = output_flush_as(out, flush);

	if (r == 0)
		out->failed = r = block_file_flush(&out->file);
	return r;
}

int output_flush(struct output *out, bool last)
{
	return output_flush_all(out, last ? Z_FINISH : Z_NO_FLUSH);
}

int output_take(struct output *out, struct buf *b)
{
	struct buf own;
	int r = out->buf.len ? output_pass(out) : out->failed;

	if (r < 0)
		return r;
	own = out->buf;
	out->buf = *b;
	r = output_pass(out);
	*b = out->buf;
	out->buf = own;
	return r;
}

int output_file(struct output *out, const char *name)
{
	int r = out->buf.len ? output_pass(out) : out->failed;

	if (r == 0)
		r = output_put_frame(out, SEGMENT_FILE, name, strlen(name));
	out->failed = r;
	return r;
}

/*
 * Sends a frame that the file writer acknowledges once all earlier data is written. -EPIPE: it
 * failed.
 */
static int output_ask(struct output *out, enum segment_frame_kind kind)
{
	struct stat st;
	char answer;
	ssize_t n;
	int r = output_put_frame(out, kind, NULL, 0);

	if (r < 0 || fstat(out->file.fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		return r;
	n = read_full(out->file.fd, &answer, 1);
	return n < 0 ? output_errno((int)n) : n ? 0 : -EPIPE;
}

int output_sync(struct output *out)
{
	int r = output_flush_all(out, Z_SYNC_FLUSH);

	if (r == 0 && out->framed)
		out->failed = r = output_ask(out, SEGMENT_SYNC);
	return r;
}

static int output_end_segment(struct output *out)
{
	return vec_push(out->segment_ends, out->segment_count, out->segment_cap, out->bytes);
}

int output_cut(struct output *out, bool last)
{
	int r = output_flush(out, true);

	if (r == 0 && out->gzip && deflateReset(&out->gzip->z) != Z_OK)
		r = -EINVAL;
	if (r == 0 && !out->framed)
		r = last ? 0 : output_end_segment(out);
	else if (r == 0)
		r = last ? output_ask(out, SEGMENT_LAST)
			 : output_put_frame(out, SEGMENT_END, NULL, 0);
	out->failed = r;
	return r;
}
