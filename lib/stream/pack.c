/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stream/pack.h"

#if HAVE_ZSTD

#include <zstd.h>

#include "base/thread.h"
#include "traced/stream.h"

#define DAMAGED "its payload does not decompress"

/*
 * Kernel symbols are megabytes, written while the kernel already records: speed matters more than
 * size.
 */
#define PACK_LEVEL 1
/* Beyond four threads the serial part dominates: getting memory and parsing symbols. */
#define EXPAND_THREADS_MAX 4
#define STACK_SIZE (256U << 10)

int stream_pack(const void *payload, size_t len, struct buf *ret)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	const char *from = payload;
	int r = zstd ? 1 : -ENOMEM;

	buf_clear(ret);
	for (size_t at = 0; r > 0 && at < len; at += PACK_FRAME) {
		size_t n = MIN(len - at, (size_t)PACK_FRAME), room = ZSTD_compressBound(n);
		char *to = buf_reserve(ret, room);
		size_t packed =
			to ? ZSTD_compressCCtx(zstd, to, room, from + at, n, PACK_LEVEL) : 0;

		if (!to)
			r = -ENOMEM;
		else if (ZSTD_isError(packed))
			r = 0;
		else
			ret->len += packed;
	}
	ZSTD_freeCCtx(zstd);
	return r > 0 && ret->len >= len ? 0 : r;
}

/* One frame, or all remaining ones. */
struct frame {
	const char *from; /* compressed bytes, `len` of them */
	size_t len;
	char *to; /* room for their content, `size` bytes */
	size_t size;
};

struct expansion {
	pthread_mutex_t lock;
	struct frame rest; /* frames not taken by any thread yet */
	int result;
};

/* Computes the total content size and the number of frames. */
static int frames_measure(const char *from, size_t len, size_t max, size_t *ret_size,
			  size_t *ret_count, const char **ret_why)
{
	size_t sum = 0, count = 0;

	do {
		unsigned long long size = ZSTD_getFrameContentSize(from, len);
		size_t n = ZSTD_findFrameCompressedSize(from, len);

		if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
			*ret_why = "its compressed payload has no size";
			return -EBADMSG;
		}
		if (size > CHUNK_EXPANDED_MAX - sum) {
			*ret_why = "its payload would be too large";
			return -EBADMSG;
		}
		if (ZSTD_isError(n)) {
			*ret_why = DAMAGED;
			return -EBADMSG;
		}
		sum += (size_t)size;
		count++;
		from += n;
		len -= n;
	} while (len);
	if (sum > max)
		return -EFBIG;
	*ret_size = sum;
	*ret_count = count;
	return 0;
}

/* False: none left. */
static bool expansion_take(struct expansion *x, struct frame *ret)
{
	struct frame *rest = &x->rest;

	pthread_mutex_lock(&x->lock);
	*ret = *rest;
	if (rest->len) {
		/* frames_measure() has checked these sizes. */
		ret->len = ZSTD_findFrameCompressedSize(rest->from, rest->len);
		ret->size = (size_t)ZSTD_getFrameContentSize(rest->from, rest->len);
		rest->from += ret->len;
		rest->len -= ret->len;
		rest->to += ret->size;
		rest->size -= ret->size;
	}
	pthread_mutex_unlock(&x->lock);
	return ret->len;
}

/* Stops all threads: the expansion has failed. */
static void expansion_stop(struct expansion *x, int result)
{
	pthread_mutex_lock(&x->lock);
	x->rest.len = 0;
	x->result = result;
	pthread_mutex_unlock(&x->lock);
}

static void *expansion_thread(void *userdata)
{
	struct expansion *x = userdata;
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	struct frame f;

	/* Without memory this thread stops; others may expand the rest. */
	while (zstd && expansion_take(x, &f)) {
		size_t n = ZSTD_decompressDCtx(zstd, f.to, f.size, f.from, f.len);

		if (ZSTD_isError(n) || n != f.size)
			expansion_stop(x, -EBADMSG);
	}
	ZSTD_freeDCtx(zstd);
	return NULL;
}

/* Expands all frames, with as many threads as there is work for and the system grants. */
static int expansion_run(struct expansion *x, size_t frames)
{
	size_t useful = MIN(frames, x->rest.size / PACK_FRAME);
	pthread_t others[EXPAND_THREADS_MAX - 1];
	unsigned wanted = 0, count = 0;

	if (useful > 1)
		wanted = thread_cpus((unsigned)MIN(useful, (size_t)EXPAND_THREADS_MAX)) - 1;
	while (count < wanted && thread_begin(&others[count], STACK_SIZE, expansion_thread, x) == 0)
		count++;
	expansion_thread(x);
	while (count)
		pthread_join(others[--count], NULL);
	return x->result ?: x->rest.len ? -ENOMEM : 0;
}

int stream_expand(const void *packed, size_t len, size_t max, struct buf *ret, const char **ret_why)
{
	struct expansion x = { .lock = PTHREAD_MUTEX_INITIALIZER };
	size_t size, frames;
	char *to;
	int r;

	r = frames_measure(packed, len, max, &size, &frames, ret_why);
	if (r < 0)
		return r;
	buf_clear(ret);
	to = buf_reserve(ret, MAX(size, (size_t)1));
	if (!to)
		return -ENOMEM;
	x.rest = (struct frame){ packed, len, to, size };
	r = expansion_run(&x, frames);
	if (r == 0)
		ret->len = size;
	else if (r == -EBADMSG)
		*ret_why = DAMAGED;
	return r;
}

#else

int stream_pack(const void *payload _unused_, size_t len _unused_, struct buf *ret _unused_)
{
	return 0;
}

int stream_expand(const void *packed _unused_, size_t len _unused_, size_t max _unused_,
		  struct buf *ret _unused_, const char **ret_why _unused_)
{
	return -EOPNOTSUPP;
}

#endif
