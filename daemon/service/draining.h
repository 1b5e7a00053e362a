/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides when a recording's rings are read: as they fill, after a maximum time, and not while the
 * spool is full. Each recording has a thread for it, so that no request to the daemon delays it.
 *
 * While that thread lives, a capture is used by
 * - the thread itself: it reads the rings, and makes snapshots and the end of the stream;
 * - the loop, for short calls between draining_lock() and draining_unlock(). While the thread has
 *   work (draining_is_busy()), the loop leaves the capture alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/capture/capture.h"

struct draining;
struct job;
struct session;

/*
 * Makes the thread that reads s->capture, before it starts: what is done now is in no trace. The
 * thread notices the start by itself. draining_end() may follow in any case.
 */
int draining_prepare(struct session *s, struct error *err);
/* The capture has started: ends it after its duration. 0 or -errno. */
int draining_begin(struct draining *d);
/* capture_watch(), without delay. */
void draining_watch(struct draining *d, bool watched);
/* Turns tracing off, unless the thread is busy: then it does so itself. */
void draining_turn_off(struct draining *d);
/*
 * The recording ends: its rings are read no more. The capture stays the thread's until it was
 * joined. May be called twice.
 */
void draining_end(struct draining *d);
/*
 * The thread ends after its work; then `ended` is called from the loop, if it is not NULL. Nobody
 * else hears from it any more: the session is over.
 */
void draining_leave(struct draining *d, void (*ended)(void *userdata), void *userdata);
/* Waits for the thread; in any thread. */
void draining_join(struct draining *d);
/* In the loop. */
struct draining *draining_free(struct draining *d);

/* How many bytes the spool may still take until the recording ends. */
uint64_t draining_room(const struct session *s);

/* For a moment the capture is the loop's. */
void draining_lock(struct draining *d);
/* The same, but gives up after a moment. */
bool draining_try_lock(struct draining *d);
void draining_unlock(struct draining *d);
/* The spool is full: rings are not read and overwrite their oldest events. */
bool draining_is_paused(const struct draining *d);
/* capture_count_held(), or -EBUSY while the thread has work. */
int draining_count_held(struct draining *d, uint64_t *ret);
/* True if the thread makes a snapshot, or the stream's end. */
bool draining_is_busy(const struct draining *d);

/*
 * The spool may have space again, or a following export waits for a flush: a paused recording
 * continues, or ends if its spool can never shrink.
 */
void draining_space_freed(struct session *s);

/* Work of the thread: a snapshot, or the end of the stream. */
struct taking;
/* In the loop. s and j are NULL if they are over. err explains result (0 or -errno). */
typedef void (*taking_done_t)(struct session *s, struct job *j, int result, struct error *err);

/*
 * Has the thread write what the rings hold to stream_fd, of which it keeps a copy (-1: to the
 * session's stream, for j->part), and then end the stream, if `ends`. j may be NULL. done always
 * follows.
 */
int draining_take(struct session *s, struct job *j, int stream_fd, bool ends,
		  enum capture_end reason, taking_done_t done, struct error *err);
/* The job is over. */
void taking_forget_job(struct taking *t);
