/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The payloads of chunks of CHUNK_ZSTD: zstd frames, one behind the other, each of which tells its
 * content's size. They are several so that several CPUs can expand what is long: whoever asks for
 * the kernel's symbols waits for all of them.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Bytes of a frame's content, but for the last one's: as much as a small CPU's cache has. */
#define PACK_FRAME (1U << 20)

/* The payload of a chunk of CHUNK_ZSTD, instead of this: 1; 0: it would not be smaller; -ENOMEM. */
int stream_pack(const void *payload, size_t len, struct buf *ret);
/*
 * The content of all frames, instead of what ret had: in this thread, and some more for as long as
 * it takes. 0, or -ENOMEM; -EBADMSG: damaged, or longer than CHUNK_EXPANDED_MAX, as *ret_why says;
 * -EFBIG: longer than max bytes; -EOPNOTSUPP: this program was built without zstd.
 */
int stream_expand(const void *packed, size_t len, size_t max, struct buf *ret,
		  const char **ret_why);
