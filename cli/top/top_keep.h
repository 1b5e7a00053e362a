/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The capture stream of `tracectl top`, in a file in memory: its head, and the latest seconds, for
 * a snapshot. Only this process frees its space, so that a snapshot has a constant file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* This time stays, roughly, but at most these bytes beside what the decoder still needs. */
#define TOP_KEEP_NS UINT64_C(10000000000)
#define TOP_KEEP_BYTES (UINT64_C(64) << 20)
#define TOP_KEEP_MARKS 64

struct top_keep {
	int fd;		/* owned */
	uint64_t head;	/* end of the stream's head; 0: not known yet */
	uint64_t freed; /* from the head's end to here there is nothing any more */
	struct top_keep_mark {
		uint64_t from, ns;
	} marks[TOP_KEEP_MARKS]; /* where chunks began that were needed at a time; ascending */
	size_t count;
};

/* Creates the file. */
int top_keep_init(struct top_keep *ret, struct error *err);
void top_keep_deinit(struct top_keep *k);

/*
 * The decoder needs the head, and chunks that begin at `from` or later. Frees the space of chunks
 * that are older than what stays. Wrong values, of a decoder that was taken over, are ignored.
 */
void top_keep_note(struct top_keep *k, uint64_t head, uint64_t from, uint64_t now_ns);
/*
 * Writes the head, without its events, and what was kept as a capture stream, into a new file.
 * Without anything to keep yet: -ENODATA.
 */
int top_keep_save(const struct top_keep *k, const char *path, struct error *err);
