/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a stream's polled files, in the order of their times, in the trace clock. */
#pragma once

#include "base/error.h"
#include "marks/poll.h"
#include "trace/chunk_list.h"
#include "trace/trace_info.h"

struct polls;
struct stream_reader;

/* Borrows all. Only chunks before offset `limit` are read; UINT64_MAX: all. 0 or -ENOMEM. */
int polls_new(struct polls **ret, struct chunk_list *chunks, const struct trace_info *info,
	      const struct stream_reader *reader, uint64_t limit);
struct polls *polls_free(struct polls *p);
DEFINE_CLEANUP_FUNC(struct polls *, polls_free);

/* 1: *ret is the next reading, valid until the next call. 0: the end; -errno. */
int polls_next(struct polls *p, const struct poll **ret, struct error *err);
/* Continues after the end, up to a new limit, once the list has grown. 0 or -ENOMEM. */
int polls_extend(struct polls *p, uint64_t limit);
/* Readings later than this time (trace clock) are dropped as impossible. */
void polls_set_latest(struct polls *p, uint64_t latest);
/* Stream offset below which data is no longer needed. */
uint64_t polls_needs(const struct polls *p);

struct polls_sum {
	uint64_t damaged;    /* chunks that can't be read */
	uint64_t impossible; /* readings after the recording's end: dropped */
	bool untied;	     /* nothing ties their clock to the trace clock */
};
void polls_sum(const struct polls *p, struct polls_sum *ret);
