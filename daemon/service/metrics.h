/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Metrics for Prometheus, in a file that node_exporter's textfile collector reads: counts of each
 * session and of the daemon (`metrics` in traced.conf). Written when a session is added, removed
 * or changed, and while a recording is served anyway. An idle daemon never wakes up for it. Each
 * update atomically replaces the file.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

struct manager;
struct session;
struct metrics_past;

TAILQ_HEAD(metrics_past_list, metrics_past);

struct metrics {
	struct metrics_past_list past; /* ended sessions, oldest first */
	unsigned past_count;
	/* Totals over all ended sessions. */
	uint64_t sessions, events, lost, bytes;
	uint64_t written_ns; /* CLOCK_BOOTTIME; 0: not yet */
};

void metrics_init(struct metrics *m);
void metrics_deinit(struct metrics *m);

/* Remembers the counts of a session that is over. */
void metrics_session_over(const struct session *s);
/* Memory of this process; 0: unknown. */
uint64_t metrics_resident_bytes(void);
/* Writes the file, if configured; logs a failure. */
void metrics_write(struct manager *m);
/* Writes the file if it is old. */
void metrics_tick(struct manager *m);
/* Last update when the daemon ends, if the file was ever written. */
void metrics_close(struct manager *m);
