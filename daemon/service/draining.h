/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides when a recording's rings are read: as they fill, after a maximum time, and not while the
 * spool is full. Runs in the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop_source;
struct session;

struct draining {
	struct loop_source *readable, *deadline, *again, *duration;
	bool paused; /* the spool is full: rings are not read and overwrite their oldest events */
	uint64_t flushes; /* FLUSH chunks already announced to followers */
};

/*
 * s->capture has started: reads its rings and ends it after its duration. Returns 0 or -errno;
 * call draining_end() in either case.
 */
int draining_begin(struct session *s);
/* May be called without draining_begin(), and twice. */
void draining_end(struct session *s);
/*
 * The spool may have space again: a paused recording continues, or ends if its spool can never
 * shrink.
 */
void draining_space_freed(struct session *s);
