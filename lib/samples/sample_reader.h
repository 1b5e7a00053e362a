/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the samples of all CPUs in time order, together with each process's mappings at that
 * moment. Holds one chunk of each CPU.
 */
#pragma once

#include "samples/address_space.h"
#include "samples/perf_record.h"
#include "trace/index.h"

struct sample_reader;

struct sample_cpu {
	uint32_t cpu;
	uint64_t samples;
	uint64_t lost;	    /* samples lost because the ring was full */
	uint64_t throttled; /* how often the kernel throttled sampling */
};

struct sample_sum {
	uint64_t samples, lost, throttled;
	uint64_t damaged;	       /* chunks whose rest was skipped */
	uint64_t refused;	       /* mappings above the limit */
	const struct sample_cpu *cpus; /* borrowed */
	size_t cpu_count;
};

/* True if the stream has samples in a known format. */
bool sample_reader_wanted(const struct stream_index *index);
/* Borrows all. 0 or -ENOMEM. */
int sample_reader_new(struct sample_reader **ret, const struct stream_index *index,
		      const struct stream_reader *stream);
struct sample_reader *sample_reader_free(struct sample_reader *r);
DEFINE_CLEANUP_FUNC(struct sample_reader *, sample_reader_free);

/* 1: ret is a PERF_SAMPLED, valid until the next call; 0: no more; -ENOMEM. */
int sample_reader_next(struct sample_reader *r, struct perf_record *ret);
/* Converts a record's time to the trace clock. */
uint64_t sample_reader_time(const struct sample_reader *r, uint64_t time);
/*
 * Largest error of the conversion, ns. -ENOENT: the clocks can't be tied; times are used unchanged.
 */
int sample_reader_tie(const struct sample_reader *r, uint64_t *ret_bound);
const struct perf_format *sample_reader_format(const struct sample_reader *r);
const struct address_spaces *sample_reader_spaces(const struct sample_reader *r);
void sample_reader_sum(const struct sample_reader *r, struct sample_sum *ret);
/* Warns of missing samples; with damaged chunks the index is incomplete. 0 or -ENOMEM. */
int sample_sum_warn(const struct sample_sum *sum, struct stream_index *index);
