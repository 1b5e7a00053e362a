/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <zlib.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "formats/dat/reader.h"

static const char *const names[] = {
	[DAT_PLAIN] = "none",
	[DAT_ZLIB] = "zlib",
#if HAVE_ZSTD
	[DAT_ZSTD] = "zstd",
#endif
};

static int unpack_prepare(struct dat *d, enum dat_packing packing, struct error *err)
{
	d->packing = packing;
#if HAVE_ZSTD
	if (packing == DAT_ZSTD && !(d->zstd = ZSTD_createDCtx()))
		return error_errno(err, -ENOMEM, "can't decompress it");
#endif
	return 0;
}

int dat_packing_find(struct dat *d, const char *name, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], name) == 0)
			return unpack_prepare(d, (enum dat_packing)i, err);
	error_set(err, -EOPNOTSUPP, "its compression \"%s\" is not supported", name);
	return error_hint(err, "convert it with trace-cmd convert --compression none");
}

static int64_t unpack_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "its compressed data is damaged");
}

static int64_t unpack_zlib(const void *from, size_t len, void *to, size_t max, struct error *err)
{
	uLongf n = max;
	int r = uncompress(to, &n, from, len);

	if (r == Z_MEM_ERROR)
		return error_errno(err, -ENOMEM, "can't decompress it");
	return r == Z_OK ? (int64_t)n : unpack_damaged(err);
}

#if HAVE_ZSTD
static int64_t unpack_zstd(const struct dat *d, const void *from, size_t len, void *to, size_t max,
			   struct error *err)
{
	size_t n = ZSTD_decompressDCtx(d->zstd, to, max, from, len);

	return ZSTD_isError(n) ? unpack_damaged(err) : (int64_t)n;
}
#endif

int64_t dat_unpack(const struct dat *d, const void *from, size_t len, void *to, size_t max,
		   struct error *err)
{
	if (d->packing == DAT_ZLIB)
		return unpack_zlib(from, len, to, max, err);
#if HAVE_ZSTD
	if (d->packing == DAT_ZSTD)
		return unpack_zstd(d, from, len, to, max, err);
#endif
	return unpack_damaged(err);
}

void dat_packing_deinit(struct dat *d _unused_)
{
#if HAVE_ZSTD
	ZSTD_freeDCtx(d->zstd);
#endif
}
