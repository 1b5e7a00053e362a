/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/compress.h"

#include <zlib.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "formats/perfetto/packet.h"
#include "formats/perfetto/wire.h"

/* Fast levels: the recording waits for its file. */
#define DEFLATE_LEVEL 3
#define ZSTD_LEVEL 3

struct pf_compressor {
	enum perfetto_compression how;
	bool has_deflate;
	z_stream deflate;
#if HAVE_ZSTD
	ZSTD_CCtx *zstd;
#endif
	struct buf frame;
};

#if HAVE_ZSTD
static int compressor_begin_zstd(struct pf_compressor *c)
{
	c->zstd = ZSTD_createCCtx();
	if (!c->zstd ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1)))
		return -ENOMEM;
	return 0;
}

static void compressor_end_zstd(struct pf_compressor *c)
{
	ZSTD_freeCCtx(c->zstd);
}

static int compressor_make_zstd(struct pf_compressor *c, const struct buf *packets)
{
	size_t bound = ZSTD_compressBound(packets->len), len;
	char *frame = buf_reserve(&c->frame, bound);

	if (!frame)
		return -ENOMEM;
	len = ZSTD_compress2(c->zstd, frame, bound, packets->data, packets->len);
	if (ZSTD_isError(len))
		return -ENOMEM;
	c->frame.len = len;
	return 0;
}
#else
static int compressor_begin_zstd(struct pf_compressor *c _unused_)
{
	return -EOPNOTSUPP;
}

static void compressor_end_zstd(struct pf_compressor *c _unused_)
{
}

static int compressor_make_zstd(struct pf_compressor *c _unused_,
				const struct buf *packets _unused_)
{
	return -EOPNOTSUPP;
}
#endif

int pf_compressor_new(struct pf_compressor **ret, enum perfetto_compression how)
{
	_cleanup_(pf_compressor_freep) struct pf_compressor *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->how = how;
	if (how == PERFETTO_DEFLATE) {
		c->has_deflate = deflateInit(&c->deflate, DEFLATE_LEVEL) == Z_OK;
		if (!c->has_deflate)
			return -ENOMEM;
	} else {
		int r = compressor_begin_zstd(c);

		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(c);
	return 0;
}

struct pf_compressor *pf_compressor_free(struct pf_compressor *c)
{
	if (!c)
		return NULL;
	if (c->has_deflate)
		deflateEnd(&c->deflate);
	compressor_end_zstd(c);
	buf_deinit(&c->frame);
	free(c);
	return NULL;
}

static int compressor_make_deflate(struct pf_compressor *c, const struct buf *packets)
{
	size_t bound = deflateBound(&c->deflate, packets->len);
	char *frame = buf_reserve(&c->frame, bound);
	z_stream *z = &c->deflate;

	if (!frame)
		return -ENOMEM;
	deflateReset(z);
	z->next_in = (unsigned char *)packets->data;
	z->avail_in = (uInt)packets->len;
	z->next_out = (unsigned char *)frame;
	z->avail_out = (uInt)bound;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return -EIO;
	c->frame.len = bound - z->avail_out;
	return 0;
}

int pf_compress(struct pf_compressor *c, struct buf *packets, struct buf *out)
{
	uint32_t field = c->how == PERFETTO_DEFLATE ? PACKET_COMPRESSED : PACKET_ZSTD;
	uint8_t *start, *p;
	int r;

	if (buf_error(packets) < 0)
		return -ENOMEM;
	if (!packets->len)
		return 0;
	buf_clear(&c->frame);
	r = c->how == PERFETTO_DEFLATE ? compressor_make_deflate(c, packets)
				       : compressor_make_zstd(c, packets);
	if (r < 0)
		return r;
	start = (uint8_t *)buf_reserve(out, c->frame.len + 4 * WIRE_VARINT_MAX);
	if (!start)
		return -ENOMEM;
	/* The tags of both fields have two bytes. */
	p = wire_varint(wire_tag(start, 1, WIRE_BYTES), 2 + wire_size(c->frame.len) + c->frame.len);
	p = wire_bytes(p, field, c->frame.data, c->frame.len);
	out->len += (size_t)(p - start);
	buf_clear(packets);
	return 0;
}
