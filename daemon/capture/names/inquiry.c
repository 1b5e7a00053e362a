/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asking the kernel what a stranger can hold up.
 *
 * The problem: to read /proc/PID/cmdline, the kernel takes the lock of the process's memory. The
 * process holds that lock while mmap(2) waits for a file's server, which may never answer (FUSE,
 * NFS). For the build id of a mapped file, the kernel reads the file from such a server. Who asks
 * waits as long, and with it all that it does for others.
 *
 * So a thread asks. A thread that hangs is left alone with its question, and another one asks the
 * rest. Its question belongs to it, so nothing that it touches is freed under it.
 *
 * Invariants:
 * - A user whose questions took PATIENCE_NS together is late: for the next LATE_NS, and for as long
 *   as one of them hangs, none of this user is asked. So many processes that answer slowly cost no
 *   more than one that never answers.
 * - One person can have many uids: once the questions of all users other than root took
 *   USERS_LATE * PATIENCE_NS together, or USERS_MAX users took their time, only root's are asked.
 * - So users keep all inquiries waiting no longer than that in LATE_NS, and USERS_LATE threads hang
 *   (a few more if several inquiries begin at once).
 *
 * A SIGKILL ends the wait for the lock, but not that for a server which has read its request. Then
 * this process stays after its end until the server answers or ends, as with base/closer.c.
 */
#include "daemon/capture/names/inquiry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"

#define PATIENCE_NS (200 * NSEC_PER_MSEC)
#define LATE_NS (10 * NSEC_PER_SEC)
#define PROMPT_NS (10 * NSEC_PER_MSEC) /* an answer within this time is not counted */
#define USERS_LATE 4
#define USERS_MAX 32
#define STACK_BYTES (128U << 10)

struct question {
	int process;		/* its folder in procfs; owned; -EBADF: being asked, or done */
	uid_t uid;		/* of the process */
	void *answer;		/* owned; NULL: none */
	struct late_user *late; /* counts the thread that hangs with it */
};

/* Freed by the last of its caller and its threads. */
struct inquiry {
	const struct inquiry_kind *kind;
	bool all;
	unsigned references;
	unsigned turn; /* of the thread that asks now; the others are alone */
	bool asking;   /* the current question has begun */
	uint64_t since_ns;
	size_t count, next, unanswered;
	pthread_cond_t moved;
	struct question questions[INQUIRY_MAX];
};

/* A thread's own. */
struct asker {
	struct inquiry *inquiry;
	unsigned turn;
};

struct late_user {
	uid_t uid;
	unsigned hanging;      /* threads that are alone with one of its processes */
	uint64_t since_ns, ns; /* waited for them since then; 0: nothing */
};

/* Protects all inquiries that have begun, and the users. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct late_user late_users[USERS_MAX], late_root;

static bool late_user_is_over(const struct late_user *u, uint64_t now)
{
	return !u->hanging && (!u->ns || now - u->since_ns >= LATE_NS);
}

/* NULL: it is not in the table, and with `add` there is no room. */
static struct late_user *late_user_find(uid_t uid, bool add)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct late_user *found = NULL, *unused = NULL;

	for (size_t i = 0; uid && i < USERS_MAX; i++) {
		if (late_user_is_over(&late_users[i], now))
			unused = &late_users[i];
		else if (late_users[i].uid == uid)
			found = &late_users[i];
	}
	if (!uid && late_user_is_over(&late_root, now))
		unused = &late_root;
	else if (!uid)
		found = &late_root;
	if (found || !add || !unused)
		return found;
	*unused = (struct late_user){ .uid = uid, .since_ns = now };
	return unused;
}

static bool late_users_are_many(void)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), ns = 0;
	size_t users = 0;

	for (size_t i = 0; i < USERS_MAX; i++) {
		if (late_user_is_over(&late_users[i], now))
			continue;
		ns += late_users[i].ns;
		users++;
	}
	return ns >= USERS_LATE * PATIENCE_NS || users == USERS_MAX;
}

static bool user_is_late(uid_t uid)
{
	const struct late_user *u = late_user_find(uid, false);

	return (u && (u->hanging || u->ns >= PATIENCE_NS)) || (uid && late_users_are_many());
}

/* Returns NULL if there is no room, or nothing to count. */
static struct late_user *user_count_late(uid_t uid, uint64_t ns)
{
	struct late_user *u = ns < PROMPT_NS ? NULL : late_user_find(uid, true);

	if (u)
		u->ns += ns;
	return u;
}

struct inquiry *inquiry_new(const struct inquiry_kind *kind, bool all)
{
	struct inquiry *i = calloc(1, sizeof(*i));
	pthread_condattr_t attr;

	if (!i)
		return NULL;
	i->kind = kind;
	i->all = all;
	i->references = 1;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&i->moved, &attr);
	pthread_condattr_destroy(&attr);
	return i;
}

int inquiry_add(struct inquiry *i, int process, uid_t uid)
{
	if (i->count == INQUIRY_MAX)
		return -E2BIG;
	i->questions[i->count++] = (struct question){ .process = process, .uid = uid };
	return 0;
}

/* The lock is held. */
static void inquiry_release(struct inquiry *i)
{
	if (--i->references)
		return;
	for (size_t n = 0; n < i->count; n++) {
		close_fd(i->questions[n].process);
		if (i->questions[n].answer)
			i->kind->discard(i->questions[n].answer);
	}
	pthread_cond_destroy(&i->moved);
	free(i);
}

static void inquiry_skip(struct inquiry *i)
{
	i->questions[i->next].process = close_fd(i->questions[i->next].process);
	i->next++;
	i->unanswered++;
}

static void inquiry_skip_late(struct inquiry *i)
{
	while (i->next < i->count && user_is_late(i->questions[i->next].uid))
		inquiry_skip(i);
}

/* The lock is held, except while it asks. */
static void asker_ask(const struct asker *a)
{
	struct inquiry *i = a->inquiry;
	struct question *q = &i->questions[i->next];
	int process = q->process;
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	void *answer;

	q->process = -EBADF;
	i->asking = true;
	i->since_ns = began;
	pthread_mutex_unlock(&lock);
	answer = i->kind->ask(process, i->all);
	close_fd(process);
	pthread_mutex_lock(&lock);
	if (i->turn == a->turn) {
		user_count_late(q->uid, now_ns(CLOCK_MONOTONIC) - began);
		q->answer = answer;
		i->asking = false;
		i->next++;
		return;
	}
	if (answer)
		i->kind->discard(answer);
	if (q->late)
		q->late->hanging--;
}

static void *asker_run(void *userdata)
{
	struct asker *a = userdata;
	struct inquiry *i = a->inquiry;

	pthread_mutex_lock(&lock);
	while (i->turn == a->turn) {
		inquiry_skip_late(i);
		if (i->next == i->count)
			break;
		asker_ask(a);
	}
	pthread_cond_signal(&i->moved);
	inquiry_release(i);
	pthread_mutex_unlock(&lock);
	free(a);
	return NULL;
}

/* Without a thread nothing is asked. The lock is held. */
static void inquiry_begin_thread(struct inquiry *i)
{
	struct asker *a = malloc(sizeof(*a));
	pthread_t thread;

	i->since_ns = now_ns(CLOCK_MONOTONIC);
	if (a) {
		*a = (struct asker){ i, i->turn };
		i->references++;
		if (thread_begin(&thread, STACK_BYTES, asker_run, a) == 0) {
			pthread_detach(thread);
			return;
		}
		i->references--;
		free(a);
	}
	while (i->next < i->count)
		inquiry_skip(i);
}

void inquiry_begin(struct inquiry *i)
{
	pthread_mutex_lock(&lock);
	inquiry_skip_late(i);
	if (i->next < i->count)
		inquiry_begin_thread(i);
	pthread_mutex_unlock(&lock);
}

/* Leaves the thread alone, if it asks, with its question. */
static void inquiry_leave_thread(struct inquiry *i)
{
	struct question *q = &i->questions[i->next];

	if (i->asking)
		q->late = user_count_late(q->uid,
					  MAX(now_ns(CLOCK_MONOTONIC) - i->since_ns, PROMPT_NS));
	if (i->asking && q->late)
		q->late->hanging++;
	i->asking = false;
	i->turn++;
}

static void inquiry_go_on(struct inquiry *i)
{
	/* The thread has not run yet: the machine is busy. */
	if (!i->asking) {
		i->since_ns = now_ns(CLOCK_MONOTONIC);
		return;
	}
	inquiry_leave_thread(i);
	inquiry_skip(i);
	inquiry_skip_late(i);
	if (i->next < i->count)
		inquiry_begin_thread(i);
}

bool inquiry_wait(struct inquiry *i, uint64_t ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), most = ns < UINT64_MAX - now ? now + ns : ns;
	bool over;

	pthread_mutex_lock(&lock);
	while (i->next < i->count && now < most) {
		uint64_t until = MIN(i->since_ns + PATIENCE_NS, most);
		struct timespec end = { (time_t)(until / NSEC_PER_SEC),
					(long)(until % NSEC_PER_SEC) };

		if (now >= i->since_ns + PATIENCE_NS)
			inquiry_go_on(i);
		else
			pthread_cond_timedwait(&i->moved, &lock, &end);
		now = now_ns(CLOCK_MONOTONIC);
	}
	over = i->next == i->count;
	pthread_mutex_unlock(&lock);
	return over;
}

void *inquiry_take(struct inquiry *i, size_t n)
{
	void *answer;

	pthread_mutex_lock(&lock);
	answer = i->questions[n].answer;
	i->questions[n].answer = NULL;
	pthread_mutex_unlock(&lock);
	return answer;
}

size_t inquiry_unanswered(const struct inquiry *i)
{
	return i->unanswered;
}

struct inquiry *inquiry_free(struct inquiry *i)
{
	if (!i)
		return NULL;
	pthread_mutex_lock(&lock);
	inquiry_leave_thread(i);
	inquiry_release(i);
	pthread_mutex_unlock(&lock);
	return NULL;
}
