/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Buffered writing to a descriptor, optionally through gzip. The first error is kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/block_file.h"

struct output {
	struct buf buf; /* sinks append here, then call output_settle */
	struct block_file file;
	uint64_t bytes;	    /* that have left buf, compressed */
	uint64_t raw_bytes; /* before compression */
	uint32_t scale;	    /* 65536ths that are left of them */
	struct output_gzip *gzip;
	void (*rewrite)(struct buf *b); /* NULL, or what is done to all that leaves */
	bool framed;			/* the descriptor gets the frames of export/segment.h */
	int failed;			/* negative errno of the first failure */
};

int output_init(struct output *out, int fd, bool gzip);
void output_deinit(struct output *out);
/* To be called after each event: writes the buffer out once it is large enough. 0 or -errno. */
static inline int output_settle(struct output *out);
/* Writes what is buffered, but for what ends within a block of the file. 0 or -errno. */
int output_pass(struct output *out);
/* The same, and then what b holds; b is empty after it. 0 or -errno. */
int output_take(struct output *out, struct buf *b);
/* As much as can be read by now leaves for the descriptor; framed: and is in the files. */
int output_sync(struct output *out);
/* Writes all that is buffered; last: ends the compressed stream. */
int output_flush(struct output *out, bool last);
/* Framed: all that comes belongs to that file (SEGMENT_FILE). 0 or -errno. */
int output_file(struct output *out, const char *name);
/*
 * What was flushed is a whole file; what comes is another. If it was the last: waits until all are
 * made, or -EPIPE.
 */
int output_cut(struct output *out, bool last);

/* About what becomes of so many more. */
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
