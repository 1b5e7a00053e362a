/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects of the room, and who owns them:
 *
 *	marks ─┬─ page		shows programs whether anybody records
 *	       ├─ sinks		recordings; owned by others
 *	       ├─ users
 *	       └─ producers ─── rings
 *
 * A producer that has ended stays in the list, without descriptors, until the current dispatch is
 * over, which may hold more events for it. It stays longer if its user must wait before its rings
 * are drained.
 */
#pragma once

#include <sys/types.h>

#include "base/io.h"
#include "daemon/marks/marks.h"
#include "daemon/marks/page.h"
#include "daemon/marks/ring.h"

/* One bit of a word for each recording. */
#define SINKS_MAX 64

/* Bytes per second, as a token bucket. */
struct rate {
	int64_t level; /* bytes that may be taken now; < 0: overdrawn */
	uint64_t filled_ns;
};

struct user {
	LIST_ENTRY(user) list;
	uid_t account; /* user_account() */
	unsigned refs; /* producers in the list, including ended ones */
	unsigned rings;
	uint64_t bytes; /* of the user's rings */
	struct rate rate;
	uint64_t taken[SINKS_MAX]; /* bytes in each recording */
	unsigned work;		   /* messages and procfs reads since the last drain */
};

uid_t user_account(const struct marks *m, uid_t uid);
/* Returns NULL if out of memory. */
struct user *user_get(struct marks *m, uid_t account);
/* True if the user's rings may be drained now. */
bool user_may_take(struct marks *m, struct user *u);
/* Its marks were taken. */
void user_note_taken(struct marks *m, struct user *u, uint64_t bytes);
/* True if the user has used up its work until the next drain. */
bool user_is_exhausted(const struct user *u);
/* At each drain: resets all users' work and frees users without producers. */
void users_tidy(struct marks *m);

struct member {
	TAILQ_ENTRY(member) list; /* links the producer's members */
	struct marks_ring ring;
	struct producer *producer;
	uint32_t id;
	pid_t tid; /* 0: not a thread of this process */
	uint32_t version, clock;
	char comm[17];
	uint64_t boot_ns;
	uint64_t announced; /* one bit per sink slot: its PRODUCER chunk is written */
	uint64_t stale; /* one bit per sink slot: it may have marks from before the sink's begin */
	uint64_t above; /* one bit per sink slot: its user was above the share there */
	uint64_t reported_dropped; /* dropped count in the last chunk */
	bool skipped;		   /* by the last drain: its user is above its rate */
};

struct source {
	struct producer *producer; /* NULL: the listening socket */
};

struct producer {
	TAILQ_ENTRY(producer) list;
	struct marks *marks;
	struct source socket, process; /* epoll's data pointers */
	int fd, pidfd;		       /* -EBADF: closed, or not available */
	struct user *user;
	uid_t uid;
	pid_t pid;
	char *exe; /* owned; NULL: unknown */
	TAILQ_HEAD(, member) rings;
	unsigned messages; /* since the last drain */
	bool paused, gone; /* paused: its messages wait for the next drain */
	uint64_t connected_ns;
};

struct marks {
	struct marks_page_file page;
	struct marks_limits limits;
	struct closer *closer;	    /* borrowed; or NULL */
	char *socket_path, *folder; /* folder: remove at the end, or NULL */
	bool transient;
	int listen_fd, epfd;
	struct source listening;
	TAILQ_HEAD(, producer) producers;
	LIST_HEAD(, user) users;
	struct rate together; /* of all users but root */
	LIST_HEAD(, marks_sink) sinks;
	uint64_t slots;	     /* sink slots in use */
	struct member *next; /* where a drain that used up its budget continues; NULL: anywhere */
	struct buf staging;
	uint64_t bytes;		   /* of all rings */
	uint64_t taken_on_request; /* bytes taken at programs' requests since the last drain */
	uint64_t drains;
	uint32_t last_id;
	uint64_t deadline;
	uint64_t accept_at; /* no connection is accepted before this time; 0: no limit */
	struct marks_count count;
};

/* No user: the closer's lane for the listening socket. */
#define UID_NOBODY ((uid_t)-1)
/* Limit of one drain, and of what programs' requests may take until the next one. */
#define DRAIN_BYTES (UINT64_C(32) << 20)
/* Delay after a user has used up its messages, or a drain its budget. */
#define SHORT_TICK_NS (5 * NSEC_PER_MSEC)
/* Schedules a drain at this time at the latest. */
void marks_want(struct marks *m, uint64_t at_ns);

/* Accepts waiting connections, up to one turn's limit. Returns their number. */
int producers_accept(struct marks *m);
/* Handles an event on a producer's socket or process. */
void producer_event(struct producer *p, const struct source *source);
/* Handles all messages that the producer has sent so far. */
void producer_read_all(struct producer *p);
/* Drains the producer's rings a last time. */
void producer_end(struct producer *p);
/* Frees ended producers; resume: also reads messages of paused ones again. */
void producers_tidy(struct marks *m, bool resume);
struct producer *producer_free(struct producer *p);

/* Moves the ring to all sinks. Returns the bytes; -EBADMSG: the ring is damaged. */
int64_t member_drain(struct member *r);
struct member *member_free(struct member *r);
