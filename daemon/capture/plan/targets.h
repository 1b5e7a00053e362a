/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes that a recording is limited to, with all their threads. The kernel filters by thread.
 * Its event-fork adds what a recorded thread starts: new threads from their first event, but child
 * processes too, because the kernel does not tell them apart. So children are looked for while
 * recording, and go into set_event_notrace_pid (Linux 5.7), to which event-fork adds theirs.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/report.h"

struct targets;

/* *ret is NULL if the request names no processes. -ESRCH: there is no such process. */
int targets_new(struct targets **ret, const char *proc, const struct capture_request *request,
		struct error *err);
struct targets *targets_free(struct targets *t);
DEFINE_CLEANUP_FUNC(struct targets *, targets_free);

/* Sets the request's tasks, borrowed from t, to those that exist now. t NULL: changes nothing. */
int targets_fill(struct targets *t, struct capture_request *request, struct error *err);
/*
 * Call when the kernel filters, with the buffer's directory, which is borrowed: adds threads that
 * started meanwhile. top_level: children stay, because that buffer's settings outlive us.
 */
int targets_begin(struct targets *t, int dir, bool top_level, struct capture_report *report,
		  struct error *err);
/*
 * CLOCK_BOOTTIME ns by which targets_check must be called; UINT64_MAX: never, also if t is NULL.
 */
uint64_t targets_deadline(const struct targets *t);
/*
 * Adds threads that the kernel has not, and leaves out child processes, if it is due. The recording
 * has a warning if that fails again and again.
 */
void targets_check(struct targets *t, uint64_t now_ns, struct capture_report *report);
