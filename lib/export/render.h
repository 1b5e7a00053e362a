/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns events into bytes on several CPUs, for sinks whose events do not depend on each other, or
 * which note what follows from those before (render_note).
 * Threads take turns at fetching events (render_run), a batch each, whose records are lent to them
 * (sink_env.loan), and render their batch while the next one has its turn. The bytes leave in the
 * order of the events, and are the same however many threads there are.
 *
 * All functions but the first three are for whoever has the turn: the thread that `give` is called
 * in, or the caller's before and behind render_run.
 */
#pragma once

#include "export/sink.h"

/*
 * To fetch an event is a fifth to a quarter of its way, more where it is printed fast: five threads
 * are kept busy, eight by events that are dear to print, and more would wait for each other.
 */
#define RENDER_THREADS_MAX 8

struct render_ops {
	/* What one thread needs of its own. */
	int (*begin)(void **ret, struct sink *sink);
	void (*end)(void *state);
	/*
	 * In any thread: appends an event or a loss to out. Returns 0 or -errno, and adds to
	 * *weight what took is to be told of it.
	 */
	int (*event)(void *state, const struct trace_event *ev, struct buf *out, uint64_t *weight);
	int (*loss)(void *state, uint32_t cpu, uint64_t count, struct buf *out, uint64_t *weight);
	/* NULL, or the same for what render_note was given; aligned to 8 bytes. */
	int (*note)(void *state, const void *note, size_t len, struct buf *out, uint64_t *weight);
	/* NULL, or: so much was given to the output. Told whoever has the turn. */
	int (*took)(struct sink *sink, uint64_t weight, struct error *err);
	const char *failure; /* "can't write the text" */
};

struct render;

/*
 * Borrows all. threads: 0 for one on each CPU that may be used, RENDER_THREADS_MAX at most. By one,
 * and outside of render_run, events are rendered as they come.
 */
int render_new(struct render **ret, const struct render_ops *ops, struct sink *sink,
	       const struct sink_env *env, unsigned threads);
struct render *render_free(struct render *r);
DEFINE_CLEANUP_FUNC(struct render *, render_free);

/*
 * Calls give, which gives events (render_event, ...) until it is asked for a pause: it returns 1
 * then, 0 when all were given, or -errno. In several threads, one at a time; then this can be
 * called once only. All that was given is with the output when it returns.
 */
int render_run(struct render *r, int (*give)(void *userdata, struct error *err), void *userdata,
	       struct error *err);

int render_event(struct render *r, const struct trace_event *ev, struct error *err);
/* As render_event, by render_state, when all that came before is with the output. */
int render_event_now(struct render *r, const struct trace_event *ev, struct error *err);
/*
 * Before whoever has the turn, or a note, looks for the task of that pid at that time: the table of
 * tasks may search for names then, which it does not under the eyes of others.
 */
int render_learn(struct render *r, int32_t pid, uint64_t ts, struct error *err);
int render_loss(struct render *r, uint32_t cpu, uint64_t count, struct error *err);
/*
 * What whoever has the turn made of events, where it takes them in their order, and what any thread
 * can render: len bytes, not 0, which are copied.
 */
int render_note(struct render *r, const void *note, size_t len, struct error *err);
/*
 * The same for a note that is made in its place: *ret, aligned to 8 bytes, has room for max of
 * them, until the next call. Of these render_note_put gives the first len, not 0; nothing is given
 * where it isn't called.
 */
int render_note_room(struct render *r, size_t max, void **ret, struct error *err);
int render_note_put(struct render *r, size_t len, struct error *err);
/* All that was given is with the output when it returns. */
int render_drain(struct render *r, struct error *err);
/* What the caller's thread renders with; for whoever has the turn between render_drain and
 * render_event. */
void *render_state(struct render *r);
