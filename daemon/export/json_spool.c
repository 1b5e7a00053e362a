/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/json_spool.h"

#include <zstd.h>

/* A frame holds that much or a little more. */
#define FRAME (512U << 10)
/* Speed counts: what is kept is short-lived. */
#define LEVEL (-3)

struct frame {
	void *data; /* owned */
	size_t len;
};

struct json_spool {
	struct buf buf; /* not yet in a frame */
	struct buf scratch;
	struct frame *frames; /* owned */
	size_t count, cap;
	uint64_t bytes; /* in frames */
	ZSTD_CCtx *zstd;
};

int json_spool_new(struct json_spool **ret)
{
	struct json_spool *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->zstd = ZSTD_createCCtx();
	if (!s->zstd) {
		free(s);
		return -ENOMEM;
	}
	ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_compressionLevel, LEVEL);
	*ret = s;
	return 0;
}

struct json_spool *json_spool_free(struct json_spool *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->count; i++)
		free(s->frames[i].data);
	free(s->frames);
	buf_deinit(&s->buf);
	buf_deinit(&s->scratch);
	ZSTD_freeCCtx(s->zstd);
	free(s);
	return NULL;
}

struct buf *json_spool_buf(struct json_spool *s)
{
	return &s->buf;
}

static int end_frame(struct json_spool *s)
{
	size_t bound = ZSTD_compressBound(s->buf.len), n;
	struct frame *f;
	char *room;

	if (s->count == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;
		struct frame *frames = reallocarray(s->frames, cap, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		s->frames = frames;
		s->cap = cap;
	}
	buf_clear(&s->scratch);
	room = buf_reserve(&s->scratch, bound);
	if (!room)
		return -ENOMEM;
	n = ZSTD_compress2(s->zstd, room, bound, s->buf.data, s->buf.len);
	f = &s->frames[s->count];
	f->data = ZSTD_isError(n) ? NULL : malloc(n);
	if (!f->data)
		return -ENOMEM;
	memcpy(f->data, room, n);
	f->len = n;
	s->count++;
	s->bytes += s->buf.len;
	buf_clear(&s->buf);
	return 0;
}

int json_spool_settle(struct json_spool *s)
{
	if (unlikely(s->buf.failed))
		return -ENOMEM;
	return likely(s->buf.len < FRAME) ? 0 : end_frame(s);
}

uint64_t json_spool_bytes(const struct json_spool *s)
{
	return s->bytes + s->buf.len;
}

int json_spool_write(struct json_spool *s, struct output *out)
{
	for (size_t i = 0; i < s->count; i++) {
		struct frame *f = &s->frames[i];
		size_t size = (size_t)ZSTD_getFrameContentSize(f->data, f->len);
		char *to = buf_reserve(&out->buf, size);
		int r;

		if (!to)
			return -ENOMEM;
		out->buf.len += ZSTD_decompress(to, size, f->data, f->len);
		free(f->data);
		f->data = NULL;
		r = output_settle(out);
		if (r < 0)
			return r;
	}
	buf_append(&out->buf, s->buf.data, s->buf.len);
	return output_settle(out);
}
