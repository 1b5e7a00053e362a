/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Returns the samples of a recording as marks: first the new frames of a stack, then the sample. */
#pragma once

#include "base/code_place.h"
#include "marks/mark.h"
#include "samples/sample_reader.h"

struct sample_feed;

/* Borrows all. source: number of its marks' source. */
int sample_feed_new(struct sample_feed **ret, const struct stream_index *index,
		    const struct stream_reader *stream, const struct export_symbols *symbols,
		    bool raw_addresses, bool by_address, uint32_t source);
struct sample_feed *sample_feed_free(struct sample_feed *f);
DEFINE_CLEANUP_FUNC(struct sample_feed *, sample_feed_free);

/*
 * Makes sure that every sampled thread has a name. Call it after the task scan, before the first
 * name is written. 0 or -errno.
 */
int sample_feed_see_tasks(struct sample_feed *f, const struct stream_index *index,
			  const struct stream_reader *stream);
/* 1: valid until the next call; 0: no more; -errno. */
int sample_feed_next(struct sample_feed *f, struct mark *ret);

struct sample_feed_sum {
	struct sample_sum samples;
	uint64_t unnamed; /* program addresses without a function name */
	uint64_t cut;	  /* stacks that lost their innermost frames: too many frames */
	bool untied;	  /* the samples' clock can't be tied to the trace clock */
	uint64_t bound;	  /* error of the clock tie, ns */
};
void sample_feed_sum(const struct sample_feed *f, struct sample_feed_sum *ret);
