/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When the rings of a recording are read: as they fill, after so long at the latest, and not while
 * what was read before finds no room. All of it by the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop_source;
struct session;

struct draining {
	struct loop_source *readable, *deadline, *again, *duration;
	bool paused;	  /* the spool is full: the rings wait, and overwrite what is oldest */
	uint64_t flushes; /* of the stream, that followers were told of */
};

/*
 * s->capture has started: from now on it is read, and ends when it has lasted as long as it is to.
 * 0 or -errno; draining_end() is due all the same.
 */
int draining_begin(struct session *s);
/* Also of one that never began, or has ended. */
void draining_end(struct session *s);
/*
 * There may be space again where it is spooled: a recording that had to pause goes on, or ends if
 * its spool will never be smaller. May free s.
 */
void draining_space_freed(struct session *s);
