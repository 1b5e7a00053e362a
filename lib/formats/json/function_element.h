/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One element of traceEvents that functions.c found, and its text. What it is depends on the events
 * before it; its text does not, so that any thread can write it.
 */
#pragma once

#include "export/sink.h"
#include "print/printer.h"

/* The idle task is one number and as many threads as there are CPUs: numbers above PID_MAX_LIMIT.
 */
#define FUNCTION_IDLE_TID 4194304

enum function_element_kind {
	FUNCTION_BEGIN = 1, /* B */
	FUNCTION_END,	    /* E */
	FUNCTION_CALL,	    /* X: from its entry to its exit */
	FUNCTION_RUN,	    /* X: calls from one place */
	FUNCTION_HIT,	    /* i */
};

/* What arg is, or what is missing. */
#define FUNCTION_RETVAL (1U << 0)
#define FUNCTION_ENTRY_MISSING (1U << 1)
#define FUNCTION_EXIT_MISSING (1U << 2)
#define FUNCTION_IDLE (1U << 3) /* of an idle task */

#define FUNCTION_CALLS_MAX 8
struct function_calls {
	uint64_t func, calls;
};

struct function_element {
	uint8_t kind, flags;
	uint16_t count; /* of a run: the functions in it; FUNCTION_CALLS_MAX at most */
	int32_t tid;	/* of an idle task FUNCTION_IDLE_TID and its CPU */
	uint64_t at;	/* when the thread was the one that it is of, in ns */
	uint64_t ts, dur;
	uint64_t func; /* an address; of a run the caller's */
	uint64_t arg;  /* what was returned; where a hit came from, 0: not known; a run's calls */
};

static inline int32_t function_thread(const struct trace_event *ev)
{
	return ev->pid > 0 ? ev->pid : (int32_t)(FUNCTION_IDLE_TID + (ev->cpu & 0xffff));
}

/* What ev shows of its task. */
static inline struct function_element function_element_of(enum function_element_kind kind,
							  const struct trace_event *ev, uint64_t ts)
{
	return (struct function_element){
		.kind = (uint8_t)kind,
		.flags = ev->pid > 0 ? 0 : FUNCTION_IDLE,
		.tid = function_thread(ev),
		.at = ev->rec.ts,
		.ts = ts,
	};
}

/* What the function tracer writes: that a function was entered, and from where. */
struct function_hits {
	const struct event_table *events;
	const struct event *event; /* NULL: the recording has none */
	const struct field *ip, *parent;
};
struct function_hits function_hits_of(const struct trace_info *info);
/* The element of ev, which is one of them, by itself. False: it is too short. */
bool function_hit_read(const struct function_hits *h, const struct trace_event *ev,
		       struct function_element *ret);

struct function_writer;

/* Borrows both. */
int function_writer_new(struct function_writer **ret, const struct trace_info *info,
			struct printer *printer);
struct function_writer *function_writer_free(struct function_writer *w);
DEFINE_CLEANUP_FUNC(struct function_writer *, function_writer_free);

/*
 * Appends it, with a comma and a newline before it; marks its task as seen. calls: of a run, as
 * many as it counts.
 */
void function_writer_put(struct function_writer *w, const struct function_element *e,
			 const struct function_calls *calls, struct buf *out);
/* Tasks may be others from here on. */
void function_writer_forget(struct function_writer *w);
