/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All CPUs' readers of one tracefs instance, and the kernel's counts for it. */
#pragma once

#include "daemon/capture/names/seen_events.h"
#include "daemon/capture/rings/cpu_reader.h"
#include "stream/writer.h"
#include "traced/stream.h"

/* After this many wake-ups with nothing to read, the CPU is read by the tick alone. */
#define IDLE_WAKEUPS_MAX 8

struct cpu_counts { /* per_cpu/cpuN/stats */
	uint64_t entries, overrun, commit_overrun, bytes, dropped, read;
	uint64_t now_ns, oldest_ns; /* on the trace clock; 0: unknown */
};

struct ring_cpu {
	struct cpu_reader reader;
	struct cpu_counts counts;
	bool online;
};

struct ring {
	enum subbufs_buffer buffer;
	int dir;	       /* the instance's directory */
	int switch_fd;	       /* tracing_on; -EBADF: not opened */
	int online_fd;	       /* the list of CPUs that are online; -EBADF: unknown */
	struct ring_cpu *cpus; /* by CPU number; owned */
	unsigned cpu_count;    /* number of possible CPUs */
	enum capture_reader kind;
	const struct cpu_set *wanted; /* NULL: all; borrowed */
	struct seen_events *seen;     /* notes events taken; NULL: not needed; borrowed */
	bool unread; /* nothing of it comes into the stream, nor its counts: no event is wanted */
	struct subbuf_layout layout;
	uint64_t subbufs;	  /* sub-buffers taken */
	uint64_t counted_boot_ns; /* time at which the counts were read */
};

/* Consumes dir. Opens the readers of the CPUs that are online. */
int ring_open(struct ring *ring, enum subbufs_buffer buffer, int dir, const char *sys,
	      const struct cpu_set *wanted, enum capture_reader kind,
	      const struct subbuf_layout *layout, const struct staging *s, struct error *err);
void ring_close(struct ring *ring);
/* The file stays open, so that each switching is one system call. */
int ring_open_switch(struct ring *ring);
/* Turns tracing on or off. */
int ring_switch(const struct ring *ring, bool on);
/* Returns 1 if tracing is on, 0 if it is off, or -errno. */
int ring_is_on(const struct ring *ring);

/* Updates which CPUs are online. */
void ring_read_online(struct ring *ring);
/* Opens readers for CPUs that came online. Returns true if a CPU that is wanted had none before. */
bool ring_refresh(struct ring *ring, const struct staging *s);
/* Adds the readers' descriptors to an epoll set, data.u64 = buffer << 32 | cpu. */
int ring_watch(struct ring *ring, int epfd);

/*
 * Moves one CPU's ring into the stream: at most *budget sub-buffers, and subtracts them from it.
 * Returns 1: maybe more; 0: that was all.
 */
int ring_drain_cpu(struct ring *ring, unsigned cpu, struct staging *s, struct stream_writer *w,
		   unsigned *budget, enum take take);
/* Drains all CPUs completely, including the sub-buffers being filled. */
int ring_flush(struct ring *ring, struct staging *s, struct stream_writer *w);
/*
 * As ring_flush, but for a ring that may still be written to: takes from each CPU no more than its
 * ring can hold.
 */
int ring_flush_bounded(struct ring *ring, struct staging *s, struct stream_writer *w);

/* Upper bound of the sub-buffers in a CPU's ring when it was last counted. */
uint64_t ring_most_subbufs(const struct ring *ring, unsigned cpu);

int cpu_counts_parse(struct cpu_counts *ret, const char *text);
/* Reads the counts of all CPUs. */
int ring_count(struct ring *ring);
/* Writes the counts as a STATS chunk. phase as in traced.capture.Stats. */
int ring_write_stats(const struct ring *ring, struct stream_writer *w, unsigned phase);
