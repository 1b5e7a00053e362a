/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Samples what the CPUs run, beside the trace: one perf event and one ring per CPU. Ring contents
 * go to the stream undecoded. The kernel stamps samples with a clock of clock_gettime(2), the
 * trace's if possible, so that the exporter can convert them to the trace's clock.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/parse.h"
#include "stream/writer.h"

struct sampling {
	uint32_t hz;	   /* per CPU; 0: no samples */
	const char *event; /* NULL: "cpu-clock" */
	bool call_graph;   /* record stacks, by frame pointers */
};

struct sampler {
	struct sampler_cpu *cpus; /* by CPU number; owned */
	unsigned cpu_count;
	size_t ring_bytes;
	uint64_t sample_type, read_format, config;
	uint32_t type, hz;
	char event[32];
	int32_t clock; /* clockid_t of the time stamps; -1: the kernel's own */
	bool build_ids, running;
};

/* -EINVAL with the valid words if there is no such event or rate. */
int sampling_check(const struct sampling *s, struct error *err);

/* Size of each CPU's ring: about a second of samples at this rate; 0: none. */
static inline size_t sampler_ring_bytes(unsigned hz)
{
	const size_t least = 512U << 10, most = 8U << 20, sample = 600;
	size_t bytes = least;

	while (bytes < most && bytes < hz * sample)
		bytes *= 2;
	return hz ? bytes : 0;
}

/*
 * Opens an event, disabled, on each CPU that is online and wanted (NULL: all). -EOPNOTSUPP: the
 * machine has no such event; -EACCES: not permitted. clock: the trace's, as tracefs names it.
 */
int sampler_open(struct sampler *s, const struct sampling *what, const char *clock,
		 unsigned cpu_count, const struct cpu_set *wanted, struct error *err);
/* Writes the description of the records and starts sampling. 0 or -errno. */
int sampler_start(struct sampler *s, struct stream_writer *w);
/* Adds the rings' descriptors to an epoll set, data.u64 = tag << 32 | cpu. */
int sampler_watch(const struct sampler *s, int epfd, uint32_t tag);
/* Moves one CPU's ring into the stream. 0 or -errno. */
int sampler_drain_cpu(struct sampler *s, unsigned cpu, struct stream_writer *w);
int sampler_drain(struct sampler *s, struct stream_writer *w);
/* Stops sampling; the rings keep their records. */
void sampler_pause(struct sampler *s);
/* Writes the last samples and the kernel's counts of lost ones. 0 or -errno. */
int sampler_stop(struct sampler *s, struct stream_writer *w);
void sampler_close(struct sampler *s);
