/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Renders events to bytes on several CPUs. For sinks whose events are independent of each other, or
 * which put what depends on earlier events into notes (render_note).
 *
 * Threads take turns at fetching a batch of events (render_run). The merge lends the records
 * (sink_env.loan); each thread renders its batch while the next one fetches. Output keeps the
 * order of the events and does not depend on the number of threads.
 *
 * Only the thread that has the turn may call the functions after render_run(): from within `give`.
 * Before and after render_run(), its caller may.
 */
#pragma once

#include "export/sink.h"

/*
 * Fetching takes a fifth to a quarter of an event's time, more where rendering is cheap. So about
 * five threads are busy, eight where rendering is expensive; more would only wait.
 */
#define RENDER_THREADS_MAX 8

struct render_ops {
	/* Allocates the state of one thread. */
	int (*begin)(void **ret, struct sink *sink);
	void (*end)(void *state);
	/*
	 * Called in any thread. Appends an event or a loss to out. Adds to *weight what `took` will
	 * be given. 0 or -errno.
	 */
	int (*event)(void *state, const struct trace_event *ev, struct buf *out, uint64_t *weight);
	int (*loss)(void *state, uint32_t cpu, uint64_t count, struct buf *out, uint64_t *weight);
	/* NULL, or renders a note of render_note(); aligned to 8 bytes. */
	int (*note)(void *state, const void *note, size_t len, struct buf *out, uint64_t *weight);
	/*
	 * NULL, or takes the weight of output written since the last call. Called by the thread
	 * that has the turn.
	 */
	int (*took)(struct sink *sink, uint64_t weight, struct error *err);
	const char *failure; /* error text: "can't write the text" */
};

struct render;

/*
 * Borrows all. threads: 0 for one per usable CPU, at most RENDER_THREADS_MAX. With one thread, and
 * outside of render_run, events are rendered directly.
 */
int render_new(struct render **ret, const struct render_ops *ops, struct sink *sink,
	       const struct sink_env *env, unsigned threads);
struct render *render_free(struct render *r);
DEFINE_CLEANUP_FUNC(struct render *, render_free);

/*
 * Calls `give` until it returns 0 (no more events) or -errno; 1 means that it paused. `give` calls
 * render_event() and the like. It runs in several threads, one at a time; then render_run may be
 * called only once. On return all output was written.
 */
int render_run(struct render *r, int (*give)(void *userdata, struct error *err), void *userdata,
	       struct error *err);

int render_event(struct render *r, const struct trace_event *ev, struct error *err);
/* Like render_event(), but renders with render_state() once all earlier output was written. */
int render_event_now(struct render *r, const struct trace_event *ev, struct error *err);
/*
 * Call before looking up that pid at that time from `give` or a note: the task table may then
 * search for names, which must not happen while other threads read it.
 */
int render_learn(struct render *r, int32_t pid, uint64_t ts, struct error *err);
int render_loss(struct render *r, uint32_t cpu, uint64_t count, struct error *err);
/*
 * Queues a note: len bytes (not 0), copied. The sink fills it in event order; any thread can render
 * it.
 */
int render_note(struct render *r, const void *note, size_t len, struct error *err);
/*
 * Like render_note(), but filled in place: *ret, aligned to 8 bytes, has room for max bytes until
 * the next call. render_note_put() queues its first len bytes, not 0; without that call nothing is
 * queued.
 */
int render_note_room(struct render *r, size_t max, void **ret, struct error *err);
int render_note_put(struct render *r, size_t len, struct error *err);
/* Waits until all output so far was written. */
int render_drain(struct render *r, struct error *err);
/*
 * Calls forget with the state of each thread, and forgets tasks itself. For the thread that has the
 * turn, after render_drain.
 */
void render_forget(struct render *r, void (*forget)(void *state));
/*
 * State of the caller's thread; for the thread that has the turn, between render_drain and
 * render_event.
 */
void *render_state(struct render *r);
