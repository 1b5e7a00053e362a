/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>

#include "base/io.h"
#include "formats/dat/reader.h"

int dat_damaged(const struct dat_cursor *c, struct error *err)
{
	return error_set(err, -EBADMSG, "its %s can't be understood: the file is damaged", c->what);
}

static int cursor_ends(const struct dat_cursor *c, struct error *err)
{
	if (c->memory)
		return error_set(err, -EBADMSG, "something is missing from its %s: it is damaged",
				 c->what);
	return error_set(err, -EBADMSG, "it ends too early, within its %s: it is cut or damaged",
			 c->what);
}

void dat_cursor_file(struct dat_cursor *ret, const struct dat *d, uint64_t offset, const char *what)
{
	*ret = (struct dat_cursor){ .dat = d, .at = offset, .end = d->size, .what = what };
}

int dat_bytes(struct dat_cursor *c, void *ret, size_t len, struct error *err)
{
	ssize_t n;

	if (c->at > c->end || len > c->end - c->at)
		return cursor_ends(c, err);
	if (c->memory) {
		memcpy(ret, c->memory + c->at, len);
	} else {
		n = pread_full(c->dat->fd, ret, len, (off_t)c->at);
		if (n < 0)
			return error_errno(err, (int)n, "can't read it");
		if ((size_t)n < len)
			return cursor_ends(c, err);
	}
	c->at += len;
	return 0;
}

int dat_skip(struct dat_cursor *c, uint64_t len, struct error *err)
{
	if (c->at > c->end || len > c->end - c->at)
		return cursor_ends(c, err);
	c->at += len;
	return 0;
}

int dat_u16(struct dat_cursor *c, uint16_t *ret, struct error *err)
{
	uint16_t v;
	int r = dat_bytes(c, &v, sizeof(v), err);

	if (r == 0)
		*ret = c->dat->big_endian ? be16toh(v) : le16toh(v);
	return r;
}

int dat_u32(struct dat_cursor *c, uint32_t *ret, struct error *err)
{
	uint32_t v;
	int r = dat_bytes(c, &v, sizeof(v), err);

	if (r == 0)
		*ret = c->dat->big_endian ? be32toh(v) : le32toh(v);
	return r;
}

int dat_u64(struct dat_cursor *c, uint64_t *ret, struct error *err)
{
	uint64_t v;
	int r = dat_bytes(c, &v, sizeof(v), err);

	if (r == 0)
		*ret = c->dat->big_endian ? be64toh(v) : le64toh(v);
	return r;
}

int dat_string(struct dat_cursor *c, char *ret, size_t size, struct error *err)
{
	size_t len = 0;

	for (;;) {
		/* Most names fit one piece. */
		char piece[64];
		size_t n = (size_t)MIN((uint64_t)sizeof(piece), c->end - MIN(c->at, c->end));
		const char *nul;
		int r = n ? dat_bytes(c, piece, n, err) : cursor_ends(c, err);

		if (r < 0)
			return r;
		nul = memchr(piece, 0, n);
		if (nul) {
			c->at -= n - (size_t)(nul + 1 - piece);
			n = (size_t)(nul - piece);
		}
		memcpy(ret + len, piece, MIN(n, size - 1 - len));
		len += MIN(n, size - 1 - len);
		if (nul)
			break;
	}
	ret[len] = '\0';
	return 0;
}

int dat_append(struct dat_cursor *c, uint64_t len, struct buf *to, struct error *err)
{
	char *p;
	int r;

	/* Check before allocating. */
	if (c->at > c->end || len > c->end - c->at)
		return cursor_ends(c, err);
	p = buf_reserve(to, (size_t)len + 1);
	if (!p)
		return error_errno(err, -ENOMEM, "can't load its %s", c->what);
	r = dat_bytes(c, p, (size_t)len, err);
	if (r == 0)
		to->len += (size_t)len;
	return r;
}

/* The content follows two sizes. */
static int cursor_expand(struct dat_cursor *c, struct buf *memory, struct error *err)
{
	_cleanup_buf_ struct buf packed = BUF_INIT;
	uint32_t size = 0, expanded = 0;
	int64_t n;
	char *to;
	int r;

	r = dat_u32(c, &size, err);
	if (r == 0)
		r = dat_u32(c, &expanded, err);
	if (r < 0)
		return r;
	if (expanded > DAT_SECTION_MAX || size > DAT_SECTION_MAX)
		return dat_damaged(c, err);
	r = dat_append(c, size, &packed, err);
	if (r < 0)
		return r;
	buf_clear(memory);
	to = buf_reserve(memory, (size_t)expanded + 1);
	if (!to)
		return error_errno(err, -ENOMEM, "can't load its %s", c->what);
	n = dat_unpack(c->dat, packed.data, packed.len, to, expanded, err);
	if (n < 0)
		return n == -EBADMSG ? dat_damaged(c, err) : (int)n;
	memory->len = (size_t)n;
	c->memory = (const uint8_t *)memory->data;
	c->at = 0;
	c->end = memory->len;
	return 0;
}

int dat_cursor_section(struct dat_cursor *ret, const struct dat *d, uint64_t offset, unsigned id,
		       const char *what, struct buf *memory, struct error *err)
{
	uint16_t is = 0, flags = 0;
	uint32_t name;
	uint64_t size = 0;
	int r;

	dat_cursor_file(ret, d, offset, what);
	r = dat_u16(ret, &is, err);
	if (r == 0)
		r = dat_u16(ret, &flags, err);
	if (r == 0)
		r = dat_u32(ret, &name, err);
	if (r == 0)
		r = dat_u64(ret, &size, err);
	if (r < 0)
		return r;
	if (is != id)
		return dat_damaged(ret, err);
	if (size > ret->end - ret->at)
		return cursor_ends(ret, err);
	ret->end = ret->at + size;
	return flags & DAT_SECTION_PACKED ? cursor_expand(ret, memory, err) : 0;
}
