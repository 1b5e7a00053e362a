/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The samples of a recording as marks: the frames of each stack that are new, then the sample. */
#pragma once

#include "base/code_place.h"
#include "marks/mark.h"
#include "samples/sample_reader.h"

struct sample_feed;

/* Borrows all. source: of its marks. */
int sample_feed_new(struct sample_feed **ret, const struct stream_index *index,
		    const struct stream_reader *stream, const struct export_symbols *symbols,
		    bool raw_addresses, uint32_t source);
struct sample_feed *sample_feed_free(struct sample_feed *f);
DEFINE_CLEANUP_FUNC(struct sample_feed *, sample_feed_free);

/* A thread that was sampled is to have a name in the trace, whatever else it did: once tasks are
 * known, before any is named. 0 or -errno. */
int sample_feed_see_tasks(struct sample_feed *f, const struct stream_index *index,
			  const struct stream_reader *stream);
/* 1, valid until the next call; 0: there are no more; -errno. */
int sample_feed_next(struct sample_feed *f, struct mark *ret);

struct sample_feed_sum {
	struct sample_sum samples;
	uint64_t unnamed; /* places in programs that have no function's name */
	uint64_t cut;	  /* stacks that lost their innermost frames: there are too many */
	bool untied;	  /* nothing ties the samples' clock to the trace's */
	uint64_t bound;	  /* of the tie, ns */
};
void sample_feed_sum(const struct sample_feed *f, struct sample_feed_sum *ret);
