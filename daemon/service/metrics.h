/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What Prometheus is told, by way of a file that node_exporter's textfile collector reads: counts
 * of each session and of the daemon (`metrics` in traced.conf). It is written when a session came,
 * went or changed, and in between when a recording is served anyhow: whoever records nothing wakes
 * up for nobody. Each time it is a new file that takes the old one's place.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"

struct manager;
struct session;
struct metrics_past;

TAILQ_HEAD(metrics_past_list, metrics_past);

struct metrics {
	struct metrics_past_list past; /* sessions that are gone, the oldest first */
	unsigned past_count;
	/* Of all that are gone. */
	uint64_t sessions, events, lost, bytes;
	uint64_t written_ns; /* CLOCK_BOOTTIME; 0: not yet */
};

void metrics_init(struct metrics *m);
void metrics_deinit(struct metrics *m);

/* Remembers what became of a recording that goes. */
void metrics_session_over(const struct session *s);
/* Of this process; 0: not known. */
uint64_t metrics_resident_bytes(void);
/* As the file has it. up: the daemon runs. */
int metrics_format(struct manager *m, bool up, struct buf *out);
/* Writes the file, if one is configured; a failure is logged. */
void metrics_write(struct manager *m);
/* The same, if it is old. */
void metrics_tick(struct manager *m);
/* The last time, if it ever was: the daemon ends. */
void metrics_close(struct manager *m);
