/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Slices of applications that have the name of a condition. Of slices of one name within each other
 * only the outermost counts. A loss on any CPU cuts all that are open.
 */
#pragma once

#include "report/kind.h"
#include "report/watch_condition.h"

struct watch_slices {
	struct report_env *env;
	const char *names[WATCH_CONDITIONS_MAX]; /* borrowed; NULL: not of a slice */
	struct rows open;
	/* A slice of that condition has ended. Returns 0 or -errno. */
	int (*ended)(void *userdata, size_t condition, int32_t tid, uint64_t from, uint64_t to);
	void *userdata;
};

void watch_slices_init(struct watch_slices *s, struct report_env *env,
		       int (*ended)(void *userdata, size_t condition, int32_t tid, uint64_t from,
				    uint64_t to),
		       void *userdata);
void watch_slices_deinit(struct watch_slices *s);
void watch_slices_want(struct watch_slices *s, size_t condition, const char *name);
/* A text in trace_marker, which may be a slice's. Returns 0 or -errno, like the next one. */
int watch_slices_text(struct watch_slices *s, int32_t tid, uint64_t ts, struct text text);
int watch_slices_mark(struct watch_slices *s, const struct mark *mark);
/* Call it now and then: forgets open slices if there are too many. */
void watch_slices_forget(struct watch_slices *s);
