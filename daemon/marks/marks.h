/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applications' marks on their way into recordings. Programs connect to a socket that
 * everybody may use, hand over a ring for each of their threads, and are not
 * spoken to again (traced/mark_ring.h). What rings hold is copied to every recording
 * that goes on, unparsed.
 *
 * Whatever a program does costs its own marks at most: its sizes are checked, its
 * memory can't fail us, its messages are rationed, and its user's programs, rings and
 * bytes have limits. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "base/error.h"
#include "traced/stream.h"

struct marks_limits {
	unsigned producers;	     /* programs connected */
	unsigned producers_per_user; /* of one user; not of root */
	unsigned rings_per_user;
	uint64_t bytes_per_user; /* of rings */
	uint64_t rate_per_user;	 /* bytes of marks a second; not of root; 0: any */
};

/* A recording; embedded in its owner. */
struct marks_sink {
	/* Appends a chunk to the recording. An error ends the marks of this recording. */
	int (*write)(void *userdata, enum chunk_type type, const struct iovec *iov, int count);
	void *userdata;

	LIST_ENTRY(marks_sink) list;
	uint32_t generation; /* 0: it takes no marks */
	unsigned slot;
	int failed;
};
#define MARKS_SINKS_MAX 64
#define MARKS_IOV_MAX 2

struct marks_count {
	unsigned producers, rings;
	uint64_t bytes, dropped; /* of all recordings; dropped: by rings that are here */
	unsigned refused;	 /* programs and rings beyond a limit, or that could not be */
};

struct marks;

/*
 * Listens in folder (which is made if need be). transient: at the end what was not
 * there before is removed. -EADDRINUSE: another daemon listens there.
 */
int marks_new(struct marks **ret, const char *folder, bool transient,
	      const struct marks_limits *limits, struct error *err);
struct marks *marks_free(struct marks *m);
DEFINE_CLEANUP_FUNC(struct marks *, marks_free);
void marks_set_limits(struct marks *m, const struct marks_limits *limits);

/* Readable (epoll) when programs have something to say. */
int marks_fd(const struct marks *m);
/* Hears them, within a budget, and empties rings that fill. */
void marks_dispatch(struct marks *m);

/* CLOCK_MONOTONIC ns by which marks_drain wants to be called; UINT64_MAX: not at all. */
uint64_t marks_deadline(const struct marks *m);
/* Moves what the rings hold to the recordings. 1: the budget was used up, call again soon. */
int marks_drain(struct marks *m);

/* Marks that are made from now on go to the sink, too. -EUSERS: there are too many. */
int marks_begin(struct marks *m, struct marks_sink *sink);
/* Up to now: takes what the rings still hold. Nothing, if the sink has not begun. */
void marks_end(struct marks *m, struct marks_sink *sink);

void marks_get_count(const struct marks *m, struct marks_count *ret);
