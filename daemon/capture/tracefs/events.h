/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matches a request's globs with the kernel's events. Works on names alone. */
#pragma once

#include "daemon/capture/capture.h"

struct event_match {
	const char *name;   /* "system:event"; borrowed from the kernel's list */
	const char *filter; /* or NULL; borrowed from the request */
	const struct capture_event_spec *spec;
	bool whole_system; /* all events of its system match, too */
};

struct event_matches {
	struct event_match *items; /* owned; in the kernel's order, without duplicates */
	size_t count;
	size_t left_out; /* events that match but are outside the bounds */
};
void event_matches_deinit(struct event_matches *m);
#define _cleanup_event_matches_ _cleanup_(event_matches_deinit)

/* Makes "events/system/event/FILE" of "system:event". */
void event_file(const char *name, const char *file, char *path, size_t size);
/*
 * True if glob matches "system:event". Without a colon it matches systems or event names; with
 * one, each side separately; an empty side matches all.
 */
bool event_glob_matches(const char *glob, const char *name);

/* True if the bounds (NULL: none) permit the event "system:event". */
bool event_is_within(const struct capture_event_bounds *bounds, const char *name);

/*
 * names: sorted. bounds: NULL for none. If several specs match an event, the last one's filter is
 * used. -ENOENT for a spec without a match, the hint has the nearest names; -EPERM for a spec
 * whose matches are all outside the bounds.
 */
int event_matches_find(struct event_matches *ret, const struct capture_event_spec *specs,
		       size_t spec_count, const struct capture_event_bounds *bounds,
		       const char *const *names, size_t name_count, struct error *err);
