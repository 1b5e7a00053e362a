/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Buffered writes to a descriptor, optionally compressed by gzip. Keeps the first error. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/block_file.h"

struct output {
	struct buf buf; /* sinks append here, then call output_settle() */
	struct block_file file;
	uint64_t bytes;	    /* bytes written, after compression */
	uint64_t raw_bytes; /* bytes written, before compression */
	uint32_t scale;	    /* compressed size per raw size, in 65536ths */
	struct output_gzip *gzip;
	/*
	 * NULL, or called on all data before it is written; `since` is 0 before the first call.
	 */
	void (*rewrite)(struct buf *b, size_t *since);
	size_t since;
	bool framed;		/* the descriptor takes the frames of export/segment.h */
	uint64_t *segment_ends; /* owned; not framed: `bytes` at each output_cut() */
	size_t segment_count, segment_cap;
	int failed; /* negative errno of the first failure */
};

int output_init(struct output *out, int fd, bool gzip);
void output_deinit(struct output *out);
/* Writes the buffer; what follows is rewritten as told. 0 or -errno. */
int output_rewrite(struct output *out, void (*rewrite)(struct buf *b, size_t *since));
/* Call after each event: writes the buffer once it is large enough. 0 or -errno. */
static inline int output_settle(struct output *out);
/* Writes the buffer up to a block boundary of the file. 0 or -errno. */
int output_pass(struct output *out);
/* Like output_pass(), then writes b, which is empty afterwards. 0 or -errno. */
int output_take(struct output *out, struct buf *b);
/* Writes all that a reader can use so far. Framed: also waits until it is in the files. */
int output_sync(struct output *out);
/* Writes the whole buffer; last: also ends the compressed stream. */
int output_flush(struct output *out, bool last);
/* Framed: the following data belongs to that file (SEGMENT_FILE). 0 or -errno. */
int output_file(struct output *out, const char *name);
/*
 * The flushed data is one whole file; another follows: in frames, or behind it in the same file.
 * last: waits until all files are complete. -EPIPE: that failed.
 */
int output_cut(struct output *out, bool last);

/* Estimated size of `raw` more bytes after compression. */
static inline uint64_t output_expect(const struct output *out, uint64_t raw)
{
	return raw * out->scale >> 16;
}

#define OUTPUT_HIGH_WATER (256U << 10)

static inline int output_settle(struct output *out)
{
	if (likely(out->buf.len < OUTPUT_HIGH_WATER))
		return 0;
	return output_pass(out);
}
