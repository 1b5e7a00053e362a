/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Samples of what the CPUs run, beside the trace: one perf event and its ring for each
 * CPU. What the rings hold goes to the stream as it is; nothing here looks into
 * a record. The kernel stamps them by a clock of clock_gettime(2), the trace's where it
 * can, so that the exporter has them on the trace's clock.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/parse.h"
#include "stream/writer.h"

#define SAMPLE_HZ_MAX 100000

struct sampling {
	uint32_t hz;	   /* of each CPU; 0: no samples */
	const char *event; /* NULL: "cpu-clock" */
	bool call_graph;   /* stacks, by frame pointers */
};

struct sampler {
	struct sampler_cpu *cpus; /* owned; by number */
	unsigned cpu_count;
	size_t ring_bytes;
	uint64_t sample_type, read_format, config;
	uint32_t type, hz;
	char event[32];
	int32_t clock; /* of time stamps: a clockid_t; -1: the kernel's own */
	bool build_ids, running;
};

/* -EINVAL, and the words that do, if there is no such event or rate. */
int sampling_check(const struct sampling *s, struct error *err);

/* Of each CPU, for about a second of so many samples; 0: none. */
static inline size_t sampler_ring_bytes(unsigned hz)
{
	const size_t least = 512U << 10, most = 8U << 20, sample = 600;
	size_t bytes = least;

	while (bytes < most && bytes < hz * sample)
		bytes *= 2;
	return hz ? bytes : 0;
}

/*
 * Opens an event on each CPU that is online and wanted (NULL: all); they do not count yet.
 * -EOPNOTSUPP: the machine has no such event; -EACCES: may not. clock: the trace's, as tracefs
 * names it.
 */
int sampler_open(struct sampler *s, const struct sampling *what, const char *clock,
		 unsigned cpu_count, const struct cpu_set *wanted, struct error *err);
/* Says in the stream what the records are, and begins to take samples. 0 or -errno. */
int sampler_start(struct sampler *s, struct stream_writer *w);
/* Puts the rings' descriptors into an epoll set, data.u64 = tag << 32 | cpu. */
int sampler_watch(const struct sampler *s, int epfd, uint32_t tag);
/* Moves what one CPU's ring holds into the stream. 0 or -errno. */
int sampler_drain_cpu(struct sampler *s, unsigned cpu, struct stream_writer *w);
int sampler_drain(struct sampler *s, struct stream_writer *w);
/* No more samples from here on. */
void sampler_pause(struct sampler *s);
/* The end of them: the last ones and the kernel's counts of what was lost. 0 or -errno. */
int sampler_stop(struct sampler *s, struct stream_writer *w);
void sampler_close(struct sampler *s);
