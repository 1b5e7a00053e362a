/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 *	marks ─┬─ page		says whether anybody records
 *	       ├─ sinks		recordings; owned by others
 *	       ├─ users
 *	       └─ producers ─── rings
 *
 * A producer that is gone stays in the list, without descriptors, until the dispatch
 * that met its end is over: its events may still be waiting in that dispatch. Longer, if its
 * user has to wait until its rings are emptied.
 */
#pragma once

#include <sys/types.h>

#include "base/io.h"
#include "daemon/marks/marks.h"
#include "daemon/marks/page.h"
#include "daemon/marks/ring.h"

struct user {
	LIST_ENTRY(user) list;
	uid_t uid;
	unsigned refs; /* producers in the list, ended ones, too */
	unsigned rings;
	uint64_t bytes; /* of the rings */
	int64_t level;	/* bytes that may be taken at once; < 0: a debt */
	uint64_t filled_ns;
	unsigned work; /* messages, files of procfs, since the last drain */
};
#define USER_WORK_PER_DRAIN 4096

/* NULL: no memory. */
struct user *user_get(struct marks *m, uid_t uid);
/* Its rings may be emptied now. */
bool user_may_take(const struct marks *m, struct user *u);
/* It has to wait for the next drain. */
bool user_is_tired(const struct user *u);
/* With each drain: all may work again; those that nothing is left of are freed. */
void users_tidy(struct marks *m);

struct member {
	TAILQ_ENTRY(member) list; /* of its producer */
	struct marks_ring ring;
	struct producer *producer;
	uint32_t id;
	pid_t tid; /* 0: not of this process */
	uint32_t version, clock;
	char comm[17];
	uint64_t boot_ns;
	uint64_t announced;    /* a bit for each sink's slot: it has its PRODUCER */
	uint64_t told_dropped; /* in the last chunk */
};

struct source {
	struct producer *producer; /* NULL: the listening socket */
};

struct producer {
	TAILQ_ENTRY(producer) list;
	struct marks *marks;
	struct source socket, process; /* what epoll gives back */
	int fd, pidfd;		       /* -EBADF: gone, not to be had */
	struct user *user;
	pid_t pid;
	char *exe; /* owned; NULL: not known */
	TAILQ_HEAD(, member) rings;
	unsigned messages; /* since the last drain */
	bool muted, gone;
	uint64_t connected_ns;
};

struct marks {
	struct marks_page_file page;
	struct marks_limits limits;
	char *socket_path, *folder; /* folder: to be removed, or NULL */
	bool transient;
	int listen_fd, epfd;
	struct source listening;
	TAILQ_HEAD(, producer) producers;
	LIST_HEAD(, user) users;
	LIST_HEAD(, marks_sink) sinks;
	uint64_t slots;	     /* taken ones */
	struct member *next; /* where a drain that used up its budget goes on; NULL: anywhere */
	struct buf staging;
	uint64_t looked; /* bytes taken as programs asked for it, since the last drain */
	uint32_t last_id;
	uint64_t deadline, deaf_until;
	struct marks_count count;
};

/* In one go, by a drain or by what programs ask for until the next one. */
#define DRAIN_BYTES (UINT64_C(32) << 20)
/* While somebody has used up its messages, or a drain its budget. */
#define SHORT_TICK_NS (5 * NSEC_PER_MSEC)
/* A drain is due by then. */
void marks_want(struct marks *m, uint64_t at_ns);

/* Takes connections that wait: how many, of those a turn takes at most. */
int producers_accept(struct marks *m);
/* Hears what a producer's socket or process says. */
void producer_event(struct producer *p, const struct source *source);
/* Hears all that it has said so far. */
void producer_hear_out(struct producer *p);
/* Its rings are emptied a last time. */
void producer_end(struct producer *p);
/* Those that have ended are freed; those that were muted are heard again if `hear`. */
void producers_tidy(struct marks *m, bool hear);
struct producer *producer_free(struct producer *p);

/* To all sinks. -EBADMSG: the ring is damaged. Returns the bytes. */
int64_t member_drain(struct member *r);
struct member *member_free(struct member *r);
