/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/gunzip.h"

#include "base/io.h"

static int gunzip_refill(struct gunzip *g)
{
	ssize_t n = read_full(g->fd, g->raw, sizeof(g->raw));

	if (n < 0)
		return (int)n;
	g->z.next_in = g->raw;
	g->z.avail_in = (uInt)n;
	return n > 0;
}

int gunzip_init(struct gunzip *g, int fd)
{
	int r;

	g->fd = fd;
	g->compressed = g->member_ended = g->cut = false;
	g->z = (z_stream){ 0 };
	r = gunzip_refill(g);
	if (r < 0)
		return r;
	g->compressed = g->z.avail_in >= 2 && g->raw[0] == 0x1f && g->raw[1] == 0x8b;
	/* 15 bits of window; 16 more: a gzip header. */
	if (g->compressed && inflateInit2(&g->z, 15 + 16) != Z_OK) {
		g->compressed = false;
		return -ENOMEM;
	}
	return 0;
}

void gunzip_deinit(struct gunzip *g)
{
	if (g->compressed)
		inflateEnd(&g->z);
	g->compressed = false;
}

static ssize_t gunzip_read_plain(struct gunzip *g, void *data, size_t len)
{
	size_t n = MIN((size_t)g->z.avail_in, len);

	/* Bytes read to detect gzip come first. */
	if (!n)
		return read_full(g->fd, data, len);
	memcpy(data, g->z.next_in, n);
	g->z.next_in += n;
	g->z.avail_in -= (uInt)n;
	return (ssize_t)n;
}

ssize_t gunzip_read(void *userdata, void *data, size_t len)
{
	struct gunzip *g = userdata;

	if (!g->compressed)
		return gunzip_read_plain(g, data, len);
	g->z.next_out = data;
	g->z.avail_out = (uInt)len;
	while (g->z.avail_out == len) {
		int r = g->z.avail_in ? 1 : gunzip_refill(g), state;

		if (r < 0)
			return r;
		if (r == 0) {
			g->cut = !g->member_ended;
			return 0;
		}
		/* Concatenated members (gzip -c a b > both). */
		if (g->member_ended && inflateReset(&g->z) != Z_OK)
			return -EBADMSG;
		state = inflate(&g->z, Z_NO_FLUSH);
		g->member_ended = state == Z_STREAM_END;
		if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
			return -EBADMSG;
	}
	return (ssize_t)(len - g->z.avail_out);
}
