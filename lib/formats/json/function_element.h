/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One element of traceEvents found by functions.c, and its text. The element depends on earlier
 * events; its text does not, so any thread can write it.
 */
#pragma once

#include "export/sink.h"
#include "print/printer.h"
#include "trace/host_numbers.h"

/* The idle task is one pid but a thread per CPU: these get tids above PID_MAX_LIMIT. */
#define FUNCTION_IDLE_TID 4194304

enum function_element_kind {
	FUNCTION_BEGIN = 1, /* phase B */
	FUNCTION_END,	    /* phase E */
	FUNCTION_CALL,	    /* phase X: from entry to exit */
	FUNCTION_RUN,	    /* phase X: a run of calls from one place */
	FUNCTION_HIT,	    /* phase i */
};

/* Kind of `arg`, and missing parts. */
#define FUNCTION_RETVAL (1U << 0)
#define FUNCTION_ENTRY_MISSING (1U << 1)
#define FUNCTION_EXIT_MISSING (1U << 2)
#define FUNCTION_IDLE (1U << 3)	  /* an idle task's */
#define FUNCTION_VALUES (1U << 4) /* struct function_values follows */

#define FUNCTION_CALLS_MAX 8
struct function_calls {
	uint64_t func, calls;
};

/* The kernel records at most 8 words. */
#define FUNCTION_WORDS_MAX 16
/* Values of a graph's entry. */
struct function_values {
	uint64_t retaddr;		       /* 0: not recorded */
	uint8_t words[FUNCTION_WORDS_MAX * 8]; /* arguments, as the machine recorded them */
};

struct function_element {
	uint8_t kind, flags;
	/* For a run: number of functions, at most FUNCTION_CALLS_MAX. With values: of words. */
	uint16_t count;
	int32_t tid; /* for an idle task: FUNCTION_IDLE_TID + CPU */
	uint64_t at; /* time for looking up the thread's name, in ns */
	uint64_t ts, dur;
	uint64_t func; /* address; for a run the caller's */
	uint64_t arg;  /* return value; for a hit the caller, 0: unknown; for a run the number of
			  calls */
};

static inline int32_t function_thread(const struct trace_event *ev)
{
	return ev->pid > 0 ? ev->pid : (int32_t)(FUNCTION_IDLE_TID + (ev->cpu & 0xffff));
}

/* The tid in the file: of several machines, with the CPU's number there. */
static inline int32_t function_idle_tid(const struct host_numbers *host, int32_t tid)
{
	return (int32_t)(FUNCTION_IDLE_TID + host_cpu(host, (uint32_t)tid - FUNCTION_IDLE_TID));
}

/* Fills in the task part from ev. */
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

/* An element is followed by the function_calls of a run, or by function_values. */
union function_more {
	struct function_calls calls[FUNCTION_CALLS_MAX];
	struct function_values values;
};
static inline size_t function_more_size(const struct function_element *e)
{
	if (e->kind == FUNCTION_RUN)
		return e->count * sizeof(struct function_calls);
	return e->flags & FUNCTION_VALUES ? sizeof(struct function_values) : 0;
}

/* Events of the function tracer: a function was entered, and from where. */
struct function_hits {
	const struct event_table *events;
	const struct event *event; /* NULL: not in the recording */
	const struct field *ip, *parent;
};
struct function_hits function_hits_of(const struct trace_info *info);
/* Builds the element of ev, which must be a hit. False: the record is too short. */
bool function_hit_read(const struct function_hits *h, const struct trace_event *ev,
		       struct function_element *ret);

struct function_writer;

/* Borrows both. */
int function_writer_new(struct function_writer **ret, const struct trace_info *info,
			struct printer *printer);
struct function_writer *function_writer_free(struct function_writer *w);
DEFINE_CLEANUP_FUNC(struct function_writer *, function_writer_free);

/*
 * Appends the element after a comma and a newline; marks its task as seen. more:
 * function_more_size() bytes.
 */
void function_writer_put(struct function_writer *w, const struct function_element *e,
			 const void *more, struct buf *out);
/* Drops cached task names: they may have changed. */
void function_writer_forget(struct function_writer *w);
