/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unpack.h"

#include <string.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/io.h"
#include "marks/gunzip.h"

#if HAVE_ZSTD
struct unzstd {
	int fd;
	ZSTD_DCtx *context;
	ZSTD_inBuffer in; /* in raw */
	size_t wanted;	  /* 0: at the end of a frame */
	bool ended;
	unsigned char raw[64U << 10];
};

/* As gunzip_read(). zstd refuses windows above 128 MiB (ZSTD_WINDOWLOG_LIMIT_DEFAULT). */
static ssize_t unzstd_read(struct unzstd *z, void *data, size_t len)
{
	ZSTD_outBuffer out = { .dst = data, .size = len };

	while (!out.pos) {
		if (z->in.pos == z->in.size) {
			ssize_t n = read_full(z->fd, z->raw, sizeof(z->raw));

			if (n <= 0) {
				z->ended = n == 0;
				return n;
			}
			z->in = (ZSTD_inBuffer){ .src = z->raw, .size = (size_t)n };
		}
		z->wanted = ZSTD_decompressStream(z->context, &out, &z->in);
		if (ZSTD_isError(z->wanted))
			return -EBADMSG;
	}
	return (ssize_t)out.pos;
}
#endif

struct unpack {
	bool is_gzip;
	struct gunzip gzip;
#if HAVE_ZSTD
	struct unzstd zstd;
#endif
};

static bool unpack_is_gzip(const void *data, size_t len)
{
	return len >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}

bool unpack_begins(const void *data, size_t len)
{
	const unsigned char *p = data;

	if (unpack_is_gzip(data, len))
		return true;
	if (len < 4)
		return false;
	/* A frame, or a skippable one, with which pzstd begins. */
	return memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0 ||
	       ((p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", 3) == 0);
}

static int unpack_init_zstd(struct unpack *u, int fd, struct error *err)
{
#if HAVE_ZSTD
	u->zstd.fd = fd;
	u->zstd.context = ZSTD_createDCtx();
	return u->zstd.context ? 0 : error_errno(err, -ENOMEM, "zstd");
#else
	error_set(err, -EOPNOTSUPP, "it is compressed by zstd: this tracectl was built without it");
	return error_hint(err, "decompress it first: zstd -d");
#endif
}

int unpack_new(struct unpack **ret, int fd, struct error *err)
{
	_cleanup_(unpack_freep) struct unpack *u = calloc(1, sizeof(*u));
	unsigned char head[2];
	ssize_t n;
	int r;

	if (!u)
		return error_errno(err, -ENOMEM, "cannot decompress it");
	n = pread_full(fd, head, sizeof(head), 0);
	u->is_gzip = n > 0 && unpack_is_gzip(head, (size_t)n);
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
	if (r == 0 && u->is_gzip)
		r = gunzip_init(&u->gzip, fd);
	if (r < 0)
		return error_errno(err, r, "cannot read it");
	if (!u->is_gzip)
		r = unpack_init_zstd(u, fd, err);
	if (r == 0)
		*ret = TAKE_PTR(u);
	return r;
}

struct unpack *unpack_free(struct unpack *u)
{
	if (!u)
		return NULL;
	if (u->is_gzip)
		gunzip_deinit(&u->gzip);
#if HAVE_ZSTD
	ZSTD_freeDCtx(u->zstd.context);
#endif
	free(u);
	return NULL;
}

static ssize_t unpack_read_some(struct unpack *u, void *data, size_t len)
{
#if HAVE_ZSTD
	if (!u->is_gzip)
		return unzstd_read(&u->zstd, data, len);
#endif
	return gunzip_read(&u->gzip, data, len);
}

ssize_t unpack_read(void *userdata, void *data, size_t len)
{
	size_t at = 0;
	ssize_t n = 1;

	while (at < len && n > 0) {
		n = unpack_read_some(userdata, (char *)data + at, len - at);
		at += n > 0 ? (size_t)n : 0;
	}
	return n < 0 ? n : (ssize_t)at;
}

bool unpack_is_cut(const struct unpack *u)
{
#if HAVE_ZSTD
	if (!u->is_gzip)
		return u->zstd.ended && u->zstd.wanted;
#endif
	return u->gzip.cut;
}
