/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which of the kernel's events a request means. Works on names alone. */
#pragma once

#include "daemon/capture/capture.h"

struct event_match {
	const char *name;   /* "system:event"; borrowed from the kernel's list */
	const char *filter; /* or NULL; borrowed from the request */
	const struct capture_event_spec *spec;
	bool whole_system; /* so are all events of its system */
};

struct event_matches {
	struct event_match *items; /* owned; in the order of the kernel's list, each once */
	size_t count;
	size_t left_out; /* that were meant, but are beyond the bounds */
};
void event_matches_deinit(struct event_matches *m);
#define _cleanup_event_matches_ _cleanup_(event_matches_deinit)

/*
 * True if glob means "system:event". Without a colon it names systems or
 * events; with one, the one side of each; an empty side means all.
 */
bool event_glob_matches(const char *glob, const char *name);

/*
 * names: sorted. bounds: NULL for none. Where several specs mean an event, the last one's filter
 * counts. -ENOENT for a spec that means none, the hint has the nearest names; -EPERM for one that
 * means some, all of them beyond the bounds.
 */
int event_matches_find(struct event_matches *ret, const struct capture_event_spec *specs,
		       size_t spec_count, const struct capture_event_bounds *bounds,
		       const char *const *names, size_t name_count, struct error *err);
