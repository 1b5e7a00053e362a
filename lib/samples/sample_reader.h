/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples of a recording, of all CPUs in the order of time, with what each process had
 * mapped at that moment. Holds one chunk of each CPU.
 */
#pragma once

#include "samples/address_space.h"
#include "samples/perf_record.h"
#include "trace/index.h"

struct sample_reader;

struct sample_cpu {
	uint32_t cpu;
	uint64_t samples;
	uint64_t lost;	    /* records for which the ring had no room */
	uint64_t throttled; /* how often the kernel held the samples back for a while */
};

struct sample_sum {
	uint64_t samples, lost, throttled;
	uint64_t damaged;	       /* chunks whose rest is left out */
	uint64_t refused;	       /* mappings beyond what is kept */
	const struct sample_cpu *cpus; /* borrowed */
	size_t cpu_count;
};

/* Whether the stream has samples, and such as can be read. */
bool sample_reader_wanted(const struct stream_index *index);
/* Borrows all. 0 or -ENOMEM. */
int sample_reader_new(struct sample_reader **ret, const struct stream_index *index,
		      const struct stream_reader *stream);
struct sample_reader *sample_reader_free(struct sample_reader *r);
DEFINE_CLEANUP_FUNC(struct sample_reader *, sample_reader_free);

/* 1: a PERF_SAMPLED, valid until the next call; 0: there are no more; -ENOMEM. */
int sample_reader_next(struct sample_reader *r, struct perf_record *ret);
/* A record's time by the trace clock. */
uint64_t sample_reader_time(const struct sample_reader *r, uint64_t time);
/* By how much that may be wrong, ns. -ENOENT: nothing ties the two, times are taken as they are. */
int sample_reader_tie(const struct sample_reader *r, uint64_t *ret_bound);
const struct perf_format *sample_reader_format(const struct sample_reader *r);
const struct address_spaces *sample_reader_spaces(const struct sample_reader *r);
void sample_reader_sum(const struct sample_reader *r, struct sample_sum *ret);
