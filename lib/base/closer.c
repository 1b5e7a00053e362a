/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Closing what strangers hand over.
 *
 * The problem: close(2) does what the file's owner arranged. A TCP socket with SO_LINGER and unsent
 * data waits for its peer. A file of FUSE sends FLUSH, at each close and not only the last, to a
 * server that need not answer; no signal ends that wait. NFS writes back to a server that may be
 * away. Freeing a huge memfd takes seconds. Whoever sends such a descriptor chooses how long its
 * receiver stands still.
 *
 * The last reference to a file is dropped by a task work of the thread that drops it, on its return
 * to user mode. So these block as well:
 * - closing a unix socket in which descriptors wait that nobody has received;
 * - recvmsg() with too small a buffer for descriptors: the kernel drops the others (MSG_CTRUNC).
 *   Receive with room for all that one message may carry (CLOSER_MESSAGE_FDS);
 * - before Linux 6.9, closing any unix socket while the kernel finds garbage among those that wait
 *   in messages.
 *
 * Each user has lanes, one for each kind, of up to LANE_THREADS threads:
 *
 *	closer ─── lane (user, kind) ─── waiting descriptors
 *	                │ a thread takes the first one, closes it, takes the next
 *	                └ ends when none waits
 *
 * Invariants:
 * - No lane waits for another user's. A user all of whose threads are late is blocked: callers take
 *   nothing more of that user. One person can have many uids: with USERS_LATE_MAX late threads of
 *   all users, or that many lanes' descriptors waiting, all users but root are blocked.
 * - Connections have a lane of their own: a blocked user's new connections must still be closed.
 *   Nothing in them can hang forever, since FLUSH is sent only for descriptors in a table. A signal
 *   ends SO_LINGER, so a timer signals a thread that closes.
 * - A thread that hangs is left alone, also by closer_free(). Threads are detached, and use only
 *   memory that closer_free() keeps for them.
 */
#include "base/closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"
#include "base/vec.h"

#define LANE_THREADS 4
#define WAITING_MAX 4096
#define USERS_LATE_MAX 64
#define USERS_WAITING_MAX (4 * (size_t)WAITING_MAX)
#define LATE_NS NSEC_PER_SEC
#define CROWDED_NS (50 * NSEC_PER_MSEC) /* another thread begins */
#define NUDGE_NS (20 * NSEC_PER_MSEC)	/* interval of signals to a thread that closes */
#define END_MS 500
#define END_STEP_NS (2 * NSEC_PER_MSEC)
#define STACK_BYTES (64U << 10)

struct lane {
	LIST_ENTRY(lane) list;
	struct closer *closer;
	uid_t uid;
	enum closer_kind kind;
	int *waiting; /* from `first` on; owned */
	size_t count, cap, first;
	unsigned threads;
	uint64_t since_ns[LANE_THREADS]; /* each thread's current close began then; 0: no thread */
};

struct closer {
	pthread_mutex_t lock; /* protects everything here */
	LIST_HEAD(, lane) lanes;
	unsigned threads;
	bool ending; /* the last thread frees it */
};

static void closer_on_nudge(int sig _unused_)
{
	/* The signal itself is the purpose: it ends interruptible waits. */
}

int closer_new(struct closer **ret)
{
	struct sigaction nudge = { .sa_handler = closer_on_nudge };
	struct closer *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	/* Without SA_RESTART, so that the waits end. */
	sigaction(SIGURG, &nudge, NULL);
	*ret = c;
	return 0;
}

static void lane_free(struct lane *l)
{
	LIST_REMOVE(l, list);
	free(l->waiting);
	free(l);
}

static void closer_destroy(struct closer *c)
{
	while (!LIST_EMPTY(&c->lanes))
		lane_free(LIST_FIRST(&c->lanes));
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* A timer that signals the calling thread. Without one, SO_LINGER only takes longer. */
static bool nudge_begin(timer_t *ret)
{
	struct sigevent e = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG };
	struct itimerspec t = { .it_interval.tv_nsec = NUDGE_NS, .it_value.tv_nsec = NUDGE_NS };
	sigset_t set;

	e._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &e, ret) < 0)
		return false;
	timer_settime(*ret, 0, &t, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return true;
}

static unsigned lane_take_place(struct lane *l)
{
	unsigned place = 0;

	while (l->since_ns[place])
		place++;
	l->since_ns[place] = now_ns(CLOCK_MONOTONIC);
	return place;
}

/* Closes what waits. The lock is held, except while it closes. */
static void lane_run(struct lane *l)
{
	unsigned place = lane_take_place(l);

	while (l->first < l->count) {
		int fd = l->waiting[l->first++];

		l->since_ns[place] = now_ns(CLOCK_MONOTONIC);
		pthread_mutex_unlock(&l->closer->lock);
		close(fd);
		pthread_mutex_lock(&l->closer->lock);
	}
	l->first = l->count = 0;
	l->since_ns[place] = 0;
}

static void *lane_main(void *userdata)
{
	struct lane *l = userdata;
	struct closer *c = l->closer;
	timer_t timer;
	bool nudged = nudge_begin(&timer), last;

	/* On Linux this is the thread's alone: only recording is urgent. */
	setpriority(PRIO_PROCESS, 0, 0);
	pthread_mutex_lock(&c->lock);
	lane_run(l);
	l->threads--;
	c->threads--;
	if (!l->threads)
		lane_free(l);
	last = c->ending && !c->threads;
	pthread_mutex_unlock(&c->lock);
	if (nudged)
		timer_delete(timer);
	if (last)
		closer_destroy(c);
	return NULL;
}

static struct lane *closer_find_lane(struct closer *c, uid_t uid, enum closer_kind kind)
{
	struct lane *l;

	LIST_FOREACH(l, &c->lanes, list)
	if (l->uid == uid && l->kind == kind)
		return l;
	return NULL;
}

static struct lane *closer_get_lane(struct closer *c, uid_t uid, enum closer_kind kind)
{
	struct lane *l = closer_find_lane(c, uid, kind);

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->closer = c;
	l->uid = uid;
	l->kind = kind;
	LIST_INSERT_HEAD(&c->lanes, l, list);
	return l;
}

/* The threads of the lane that have been closing one descriptor for this long. */
static unsigned lane_late_threads(const struct lane *l, uint64_t ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	unsigned late = 0;

	for (unsigned i = 0; i < LANE_THREADS; i++)
		late += l->since_ns[i] && now - l->since_ns[i] >= ns;
	return late;
}

/* A thread that has not run yet is not late. */
static bool lane_is_late(const struct lane *l, uint64_t ns)
{
	return lane_late_threads(l, ns) == l->threads;
}

static void lane_begin_thread(struct lane *l)
{
	pthread_t thread;

	if (l->threads == LANE_THREADS || (l->threads && !lane_is_late(l, CROWDED_NS)))
		return;
	if (thread_begin(&thread, STACK_BYTES, lane_main, l) < 0)
		return;
	pthread_detach(thread);
	l->threads++;
	l->closer->threads++;
}

/* Drops what was taken from the front once it is the larger part. */
static int lane_add(struct lane *l, int fd)
{
	if (l->first > l->count - l->first) {
		vec_remove(l->waiting, l->count, 0, l->first);
		l->first = 0;
	}
	return vec_push(l->waiting, l->count, l->cap, fd);
}

int closer_close(struct closer *c, uid_t uid, enum closer_kind kind, int fd)
{
	struct lane *l;

	if (fd < 0)
		return -EBADF;
	if (!c)
		return close_fd(fd);
	/* The peer notices at once, and can send nothing more. */
	if (kind == CLOSER_CONNECTION)
		shutdown(fd, SHUT_RDWR);
	pthread_mutex_lock(&c->lock);
	l = closer_get_lane(c, uid, kind);
	/* Out of memory: the descriptor stays open, which is better than a daemon that blocks. */
	if (l && lane_add(l, fd) == 0)
		lane_begin_thread(l);
	pthread_mutex_unlock(&c->lock);
	return -EBADF;
}

bool closer_is_blocked(struct closer *c, uid_t uid)
{
	const struct lane *l;
	bool blocked = false;
	unsigned late = 0;
	size_t waiting = 0;

	if (!c || uid == 0)
		return false;
	pthread_mutex_lock(&c->lock);
	LIST_FOREACH(l, &c->lanes, list)
	{
		if (l->uid == 0)
			continue;
		late += lane_late_threads(l, LATE_NS);
		waiting += l->count - l->first;
		if (l->uid == uid && ((l->threads == LANE_THREADS && lane_is_late(l, LATE_NS)) ||
				      l->count - l->first > WAITING_MAX))
			blocked = true;
	}
	pthread_mutex_unlock(&c->lock);
	return blocked || late >= USERS_LATE_MAX || waiting > USERS_WAITING_MAX;
}

static unsigned closer_threads(struct closer *c)
{
	unsigned n;

	pthread_mutex_lock(&c->lock);
	n = c->threads;
	pthread_mutex_unlock(&c->lock);
	return n;
}

struct closer *closer_free(struct closer *c)
{
	static const struct timespec step = { .tv_nsec = END_STEP_NS };
	bool hangs;

	if (!c)
		return NULL;
	for (unsigned ms = 0; closer_threads(c) && ms < END_MS; ms += END_STEP_NS / NSEC_PER_MSEC)
		nanosleep(&step, NULL);
	pthread_mutex_lock(&c->lock);
	hangs = c->threads > 0;
	c->ending = true;
	pthread_mutex_unlock(&c->lock);
	if (!hangs)
		closer_destroy(c);
	return NULL;
}
