/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/spool.h"

#if HAVE_ZSTD
#include <zstd.h>
#else
#include <zlib.h>
#endif

#include "base/vec.h"

/* Minimum size of a frame. */
#define FRAME (512U << 10)

struct frame {
	void *data; /* owned */
	size_t len, plain_len;
};

/* Prefer speed: the data is short-lived. Both return the length, or 0. */
#if HAVE_ZSTD
#define LEVEL (-3)

struct packer {
	ZSTD_CCtx *zstd;
};

static int packer_init(struct packer *p)
{
	p->zstd = ZSTD_createCCtx();
	if (!p->zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
	return 0;
}

static void packer_deinit(struct packer *p)
{
	ZSTD_freeCCtx(p->zstd);
}

static size_t spool_pack_bound(size_t len)
{
	return ZSTD_compressBound(len);
}

static size_t spool_pack(struct packer *p, void *to, size_t room, const void *data, size_t len)
{
	size_t n = ZSTD_compress2(p->zstd, to, room, data, len);

	return ZSTD_isError(n) ? 0 : n;
}

static size_t spool_unpack(void *to, size_t room, const void *data, size_t len)
{
	size_t n = ZSTD_decompress(to, room, data, len);

	return ZSTD_isError(n) ? 0 : n;
}
#else
#define LEVEL 1

struct packer {
};

static int packer_init(struct packer *p _unused_)
{
	return 0;
}

static void packer_deinit(struct packer *p _unused_)
{
}

static size_t spool_pack_bound(size_t len)
{
	return compressBound(len);
}

static size_t spool_pack(struct packer *p _unused_, void *to, size_t room, const void *data,
			 size_t len)
{
	uLongf n = room;

	return compress2(to, &n, data, len, LEVEL) == Z_OK ? n : 0;
}

static size_t spool_unpack(void *to, size_t room, const void *data, size_t len)
{
	uLongf n = room;

	return uncompress(to, &n, data, len) == Z_OK ? n : 0;
}
#endif

struct json_spool {
	struct buf buf; /* data not yet in a frame */
	struct buf scratch;
	struct frame *frames; /* owned */
	size_t count, cap;
	uint64_t bytes; /* in all frames */
	struct packer packer;
};

int json_spool_new(struct json_spool **ret)
{
	struct json_spool *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (packer_init(&s->packer) < 0) {
		free(s);
		return -ENOMEM;
	}
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
	packer_deinit(&s->packer);
	free(s);
	return NULL;
}

struct buf *json_spool_buf(struct json_spool *s)
{
	return &s->buf;
}

static int spool_end_frame(struct json_spool *s)
{
	size_t bound = spool_pack_bound(s->buf.len), n;
	struct frame *f;
	char *room;

	if (vec_reserve(s->frames, s->count, s->cap, 1) < 0)
		return -ENOMEM;
	buf_clear(&s->scratch);
	room = buf_reserve(&s->scratch, bound);
	if (!room)
		return -ENOMEM;
	n = spool_pack(&s->packer, room, bound, s->buf.data, s->buf.len);
	f = &s->frames[s->count];
	f->data = n ? malloc(n) : NULL;
	if (!f->data)
		return -ENOMEM;
	memcpy(f->data, room, n);
	f->len = n;
	f->plain_len = s->buf.len;
	s->count++;
	s->bytes += s->buf.len;
	buf_clear(&s->buf);
	return 0;
}

int json_spool_settle(struct json_spool *s)
{
	if (unlikely(s->buf.failed))
		return -ENOMEM;
	return likely(s->buf.len < FRAME) ? 0 : spool_end_frame(s);
}

uint64_t json_spool_bytes(const struct json_spool *s)
{
	return s->bytes + s->buf.len;
}

int json_spool_write(struct json_spool *s, struct output *out)
{
	for (size_t i = 0; i < s->count; i++) {
		struct frame *f = &s->frames[i];
		char *to = buf_reserve(&out->buf, f->plain_len);
		int r;

		if (!to)
			return -ENOMEM;
		out->buf.len += spool_unpack(to, f->plain_len, f->data, f->len);
		free(f->data);
		f->data = NULL;
		r = output_settle(out);
		if (r < 0)
			return r;
	}
	buf_append(&out->buf, s->buf.data, s->buf.len);
	return output_settle(out);
}
