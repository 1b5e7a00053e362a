/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All CPUs' readers of one tracefs instance, and the kernel's counts of it. */
#pragma once

#include "daemon/capture/names/seen_events.h"
#include "daemon/capture/rings/cpu_reader.h"
#include "stream/writer.h"
#include "traced/stream.h"

/* Poll said so often that there is something, and there was not: the clock alone decides. */
#define IDLE_WAKEUPS_MAX 8

struct cpu_counts { /* per_cpu/cpuN/stats */
	uint64_t entries, overrun, commit_overrun, bytes, dropped, read;
	uint64_t now_ns, oldest_ns; /* by the trace clock; 0: unknown */
};

struct ring_cpu {
	struct cpu_reader reader;
	struct cpu_counts counts;
	bool online;
};

struct ring {
	enum subbufs_buffer buffer;
	int dir;	       /* the instance's folder */
	struct ring_cpu *cpus; /* by number; owned */
	unsigned cpu_count;    /* possible CPUs */
	enum capture_reader kind;
	const struct cpu_set *wanted; /* NULL: all; borrowed */
	struct seen_events *seen;     /* in what is taken; NULL: nobody asks; borrowed */
	struct subbuf_layout layout;
	uint64_t subbufs;	  /* taken */
	uint64_t counted_boot_ns; /* when the counts were read */
};

/* dir is taken over. Opens the readers of the CPUs that are online. */
int ring_open(struct ring *ring, enum subbufs_buffer buffer, int dir, const char *sys,
	      const struct cpu_set *wanted, enum capture_reader kind,
	      const struct subbuf_layout *layout, const struct staging *s, struct error *err);
void ring_close(struct ring *ring);

/* Which CPUs are online now; opens readers for those that have appeared. */
void ring_refresh(struct ring *ring, const char *sys, const struct staging *s);
/* Puts the readers' descriptors into an epoll set, data.u64 = buffer << 32 | cpu. */
int ring_watch(struct ring *ring, int epfd);

/*
 * Moves what one CPU's ring holds into the stream: at most budget sub-buffers,
 * fewer are left in *budget. 1: there may be more; 0: that was all.
 */
int ring_drain_cpu(struct ring *ring, unsigned cpu, struct staging *s, struct stream_writer *w,
		   unsigned *budget, bool flush);
/* All CPUs to the end, the sub-buffers that are being filled included. */
int ring_flush(struct ring *ring, struct staging *s, struct stream_writer *w);
/*
 * As ring_flush, but of a ring that may still be written to: no CPU gives more than
 * it can hold.
 */
int ring_flush_bounded(struct ring *ring, struct staging *s, struct stream_writer *w);

/* No more sub-buffers than this were in a CPU's ring when it was counted. */
uint64_t ring_most_subbufs(const struct ring *ring, unsigned cpu);

int cpu_counts_parse(struct cpu_counts *ret, const char *text);
/* Reads the counts of all CPUs. */
int ring_count(struct ring *ring);
/* Writes them as a STATS chunk. phase as in traced.capture.Stats. */
int ring_write_stats(const struct ring *ring, struct stream_writer *w, unsigned phase);
