/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread's ring, and how it comes by one.
 *
 * The hot way (emit.c) touches the thread's struct ring and the ring's memory only. It
 * leaves it where the page's word is not the generation that the ring knows, or where
 * the next record would pass `limit`: attach.c and ring.c go on from there.
 *
 * fork: a struct ring lies in memory that the kernel wipes in the child
 * (MADV_WIPEONFORK), its records in memory that the child does not have
 * (MADV_DONTFORK). So the child finds a generation of 0, whatever made it, and begins
 * anew. The same holds for struct process, with the lock that another thread may have
 * held.
 *
 * Signals: `busy` is set while a thread writes, so that a handler which interrupts it
 * finds the ring taken, and only counts.
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

/* Labels above this are sent as text each time: a bit for each says whether the ring has it. */
#define LABEL_MAX 8192

struct ring {
	uint32_t generation; /* 0: the memory was wiped */
	uint32_t head, limit;
	uint32_t mask;
	char *data; /* twice, one behind the other: a record may cross the end */
	struct mark_ring *shared;
	uint32_t looked_for; /* the tail for which the daemon was last woken */
	uint64_t pending;    /* dropped since the last record */
	uint64_t daemon;     /* whom it was sent to */
	size_t mapped;	     /* bytes, from this on */
	uint32_t header;     /* bytes of the memfd before the records */
	uint64_t defined[LABEL_MAX / 64];
};

struct thread {
	struct ring *ring;
	size_t mapped;	  /* of ring: it may have been wiped */
	uint64_t dropped; /* all of the thread's; only it and its handlers count */
	uint64_t base;	  /* dropped when it saw the generation */
	uint32_t seen;	  /* the generation */
	uint64_t retry;	  /* by the coarse clock, ns: not before is a ring tried again */
	unsigned counts;  /* TRACED_WITH_... */
	volatile int busy;
};
extern __thread struct thread traced_thread initial_exec;

/* Wiped in a forked child. */
struct process {
	pthread_mutex_t lock;
	int socket; /* + 1; 0: none */
	uint64_t socket_inode;
	uint64_t daemon; /* whom the socket leads to */
	uint64_t retry;	 /* the page is not looked for before */
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

/* Counts a mark that goes nowhere, though somebody records. */
void ring_drop(struct thread *t, struct ring *r);
/*
 * Room for a record of `need` bytes: the slow way, where `limit` is too near. False: there is
 * none, and the mark is counted as dropped. Writes what the daemon must know of
 * losses before, so that head may move.
 */
bool ring_make_room(struct thread *t, struct ring *r, uint32_t need);
/* Says that a recording has begun; r then knows no labels. False: no room. */
bool ring_begin_epoch(struct thread *t, struct ring *r, uint32_t generation);
/* Writes the label's definition. Returns its number; 0: as text, then; < 0: no room. */
int64_t ring_define(struct thread *t, struct ring *r, struct traced_label *label);

/* Makes and maps one; its memfd is *ret_fd. NULL: no memory, descriptors ... */
struct ring *ring_new(size_t size, int *ret_fd);
/* Unmaps the thread's ring, whatever it is. */
void ring_forget(struct thread *t);

/* The ring of this thread, ready for marks of this recording; NULL: there is none to be had. */
struct ring *thread_attach(struct thread *t, uint32_t word);
/* Has the daemon look at this process's rings. */
bool process_wake(void);

/* The fields of the thread's clock and counters. At most COUNT_FIELDS_BYTES. */
#define COUNT_FIELDS_BYTES 32
uint32_t thread_count_fields(const struct thread *t, char *to);
