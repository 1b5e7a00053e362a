/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moves applications' marks into recordings. Programs connect to a socket that everybody may use
 * and send one ring per thread; the daemon never sends anything back (traced/mark_ring.h). Ring
 * contents are copied undecoded to every running recording.
 *
 * A program can only harm its own marks: its sizes are checked, access to its memory cannot fail,
 * its messages are rationed, and each user's programs, rings and bytes are limited. One thread at
 * a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "base/closer.h"
#include "base/error.h"
#include "traced/stream.h"

struct marks_limits {
	unsigned producers;	     /* connected programs */
	unsigned producers_per_user; /* root is exempt */
	unsigned rings_per_user;
	uint64_t bytes_per_user; /* total size of the rings */
	/* Marks' bytes per second; all users but root together have twice that. 0: no limit. */
	uint64_t rate_per_user;
	/* The user as whom uid counts; NULL: uid itself. */
	uid_t (*account)(void *userdata, uid_t uid);
	void *userdata;
};

/* A recording; embedded in its owner. */
struct marks_sink {
	/* Appends a chunk to the recording. After an error this recording gets no more marks. */
	int (*write)(void *userdata, enum chunk_type type, const struct iovec *iov, int count);
	/* How many bytes one user's marks may take in all, at present. NULL: any. */
	uint64_t (*share)(void *userdata);
	void *userdata;

	LIST_ENTRY(marks_sink) list;
	uint32_t generation; /* 0: not taking marks */
	unsigned slot;
	unsigned missing; /* rings whose marks are: above their user's rate or share */
	/* The answer of share(), and the drain in which it was asked. */
	uint64_t share_bytes, share_drain;
	int failed;
};

struct marks_count {
	unsigned producers, rings;
	uint64_t bytes, dropped; /* bytes: to all recordings; dropped: by the rings that are open */
	unsigned refused;	 /* programs and rings refused: over a limit, or invalid */
};

struct marks;

/*
 * Listens in folder, which is created if missing. transient: removes at the end what it created.
 * closer: for what programs send; borrowed; NULL: closes it at once.
 * -EADDRINUSE: another daemon listens there.
 */
int marks_new(struct marks **ret, const char *folder, bool transient,
	      const struct marks_limits *limits, struct closer *closer, struct error *err);
struct marks *marks_free(struct marks *m);
DEFINE_CLEANUP_FUNC(struct marks *, marks_free);
void marks_set_limits(struct marks *m, const struct marks_limits *limits);

/* Readable (epoll) when a program connects or sends a message. */
int marks_fd(const struct marks *m);
/* Handles connections and messages, within a budget, and drains rings that fill up. */
void marks_dispatch(struct marks *m);

/* CLOCK_MONOTONIC ns by which marks_drain must be called; UINT64_MAX: never. */
uint64_t marks_deadline(const struct marks *m);
/*
 * Moves the rings' contents to the recordings. Returns 1 if the budget was used up: call again
 * soon.
 */
int marks_drain(struct marks *m);

/*
 * Adds a sink for all later marks. -EUSERS: too many sinks. Rings are read to their end first; of a
 * user above its rate only as far as that allows. That user's next marks are missing then, as no
 * mark is in a recording that began later.
 */
int marks_begin(struct marks *m, struct marks_sink *sink);
/* Removes a sink after a last drain of the rings, as at the begin. Does nothing for a sink that was
 * not added. */
void marks_end(struct marks *m, struct marks_sink *sink);

void marks_get_count(const struct marks *m, struct marks_count *ret);
