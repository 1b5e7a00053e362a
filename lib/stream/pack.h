/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Payloads of CHUNK_ZSTD chunks: a sequence of zstd frames, each with its content size. A long
 * payload has several frames, so that several CPUs can expand it: an export waits for the kernel's
 * symbols.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Content bytes of each frame but the last. Fits a small CPU's cache. */
#define PACK_FRAME (1U << 20)

/* Compresses a payload into ret. 1: done. 0: it would not be smaller. -ENOMEM. */
int stream_pack(const void *payload, size_t len, struct buf *ret);
/*
 * Expands all frames into ret (replaced), with a few more threads. Returns 0 or -ENOMEM.
 * -EBADMSG: damaged, or longer than CHUNK_EXPANDED_MAX; *ret_why says which. -EFBIG: longer than
 * max. -EOPNOTSUPP: built without zstd.
 */
int stream_expand(const void *packed, size_t len, size_t max, struct buf *ret,
		  const char **ret_why);
