/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads files at intervals, in a thread of its own: some take long (a sensor on a slow bus, all
 * processes), and no ring may wait for them. The thread uses at most a tenth of a CPU; readings
 * for which there is no time are skipped and counted. The recorder's thread moves what was read
 * into the stream.
 */
#pragma once

#include "daemon/capture/polls/poll_files.h"
#include "daemon/capture/report.h"
#include "stream/poll_plan.h"
#include "stream/writer.h"

struct poller;

/*
 * Opens the plan's files. A source that can't be read is reported; if none can be, that is the
 * error.
 */
int poller_new(struct poller **ret, const struct poll_plan *plan, const struct poll_where *where,
	       struct capture_report *report, struct error *err);
/* Stops the thread, if it runs. */
struct poller *poller_free(struct poller *p);
DEFINE_CLEANUP_FUNC(struct poller *, poller_free);

/* Starts the thread, whose first readings follow at once. 0 or -errno. */
int poller_start(struct poller *p);
/*
 * Writes what was read since the last call, never waiting for the thread. ret_cpu_ns: CPU time
 * that the thread has used since then. 0 or -errno.
 */
int poller_take(struct poller *p, struct stream_writer *w, uint64_t *ret_cpu_ns);
/*
 * Stops the thread after a last reading of the plan's files in /proc, but for processes, and
 * reports what is missing. poller_take() then has the rest.
 */
void poller_stop(struct poller *p, struct capture_report *report);
