/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread's ring, and how the thread gets it.
 *
 * The fast path (emit.c) only touches the thread's struct ring and the ring's memory. It calls
 * attach.c if the page's word differs from the ring's generation, and ring.c if the next record
 * would pass `limit`.
 *
 * fork: struct ring is in memory that the kernel wipes in the child (MADV_WIPEONFORK), and the
 * records are in memory that the child does not get (MADV_DONTFORK). So the child finds generation
 * 0, however it was created, and starts anew. The same holds for struct process, whose lock another
 * thread may have held.
 *
 * Signals: `busy` is set while a thread writes. A signal handler that interrupts it then only
 * counts its mark as dropped.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "traced/mark_record.h"
#include "traced/mark_ring.h"
#include "traced/traced.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ volatile("" ::: "memory")
#define initial_exec __attribute__((tls_model("initial-exec")))

/* One bit per label says whether the ring has it. Labels above this are always sent as text. */
#define LABEL_MAX 8192

struct ring {
	uint32_t generation; /* 0: the memory was wiped */
	uint32_t head, limit;
	uint32_t mask;
	char *data; /* mapped twice in a row: a record may cross the end */
	struct mark_ring *shared;
	uint32_t looked_for; /* the tail for which the daemon was last woken */
	uint64_t pending;    /* dropped since the last record */
	uint64_t daemon;     /* the daemon that it was sent to */
	size_t mapped;	     /* bytes, from this struct on */
	uint32_t header;     /* bytes of the memfd before the records */
	uint64_t defined[LABEL_MAX / 64];
};

struct thread {
	struct ring *ring;
	size_t mapped;	  /* bytes of ring, which may have been wiped */
	uint64_t dropped; /* in all; counted only by this thread and its signal handlers */
	uint64_t base;	  /* `dropped` when this generation was first seen */
	uint32_t seen;	  /* the generation */
	uint64_t retry;	  /* by the coarse clock, ns: time of the next try to get a ring */
	unsigned counts;  /* TRACED_WITH_... */
	volatile int busy;
};
extern __thread struct thread traced_thread initial_exec;

/* State that all threads of the process share. A forked child finds it wiped. */
struct process {
	pthread_mutex_t lock;
	int socket; /* the descriptor + 1; 0: none */
	uint64_t socket_inode;
	uint64_t daemon; /* the daemon at the socket's other end */
	uint64_t retry;	 /* by the coarse clock, ns: time of the next look for the page */
};

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static inline uint32_t page_word(void)
{
	return __atomic_load_n(&traced_page.word, __ATOMIC_RELAXED);
}

/* Whether another tracer listens: user_event.c. */
static inline bool user_event_wanted(void)
{
	return __atomic_load_n(&traced_listeners, __ATOMIC_RELAXED);
}
void user_event_write(char phase, const struct traced_mark *mark);

/* Writes the mark into the thread's ring. */
void mark_emit(char phase, const struct traced_mark *mark);

/* Counts a dropped mark during a recording. */
void ring_drop(struct thread *t, struct ring *r);
/*
 * Makes room for a record of `need` bytes if it would pass `limit`. False: no room; the mark is
 * counted as dropped. Reports losses to the daemon before head moves on.
 */
bool ring_make_room(struct thread *t, struct ring *r, uint32_t need);
/* Records that a recording has begun and forgets r's labels. False: no room. */
bool ring_begin_epoch(struct thread *t, struct ring *r, uint32_t generation);
/* Writes the label's definition. Returns its number. 0: send it as text. < 0: no room. */
int64_t ring_define(struct thread *t, struct ring *r, struct traced_label *label);

/*
 * Creates and maps a ring. The caller closes *ret_fd, its memfd. NULL: out of memory or
 * descriptors, or not permitted.
 */
struct ring *ring_new(size_t size, int *ret_fd);
/* Unmaps the thread's ring in any state. */
void ring_forget(struct thread *t);

/* The thread's ring, ready for marks of this recording. NULL: none available. */
struct ring *thread_attach(struct thread *t, uint32_t word);
/* Wakes the daemon to read this process's rings. */
bool process_wake(void);

/* Writes fields for the thread's clock and counters, at most COUNT_FIELDS_BYTES. */
#define COUNT_FIELDS_BYTES 32
uint32_t thread_count_fields(const struct thread *t, char *to);
