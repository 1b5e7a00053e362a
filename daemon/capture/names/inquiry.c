/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asking the kernel what a stranger can hold up.
 *
 * The problem: to read /proc/PID/cmdline, the kernel takes the lock of the process's memory. The
 * process holds that lock while mmap(2) waits for a file's server, which may never answer (FUSE,
 * NFS). For the build id of a mapped file, the kernel reads the file from such a server. The reader
 * waits as long, and so does everything behind it.
 *
 * So a thread asks. The caller abandons a thread that hangs, and starts another one for the other
 * questions. The question belongs to its thread, so nothing that it touches is freed under it.
 *
 * Invariants:
 * - A user for whose processes the thread slept PATIENCE_NS together is late: for the next LATE_NS,
 *   and for as long as one of them hangs, none of this user is asked. So many processes that answer
 *   slowly cost no more than one that never answers. A thread that is preempted waits for nobody.
 * - One person can have many uids: once the thread slept USERS_LATE * PATIENCE_NS for all users
 *   other than root, only root's are asked for the next LATE_NS.
 * - Root's processes are not hostile: one of low priority, preempted with its lock held, answers
 *   late. Each has PATIENCE_ROOT_NS, and they are left out only while USERS_LATE of them hang.
 * - So users keep all inquiries waiting no longer than that, and the last question's PATIENCE_NS,
 *   in LATE_NS. USERS_LATE threads hang (a few more if several inquiries begin at once).
 *
 * A SIGKILL ends the wait for the lock, but not that for a server which has read its request. Then
 * this process stays after its end until the server answers or ends, as with base/closer.c.
 */
#include "daemon/capture/names/inquiry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"

#define PATIENCE_NS (200 * NSEC_PER_MSEC)
#define PATIENCE_ROOT_NS (2 * NSEC_PER_SEC)
#define LATE_NS (10 * NSEC_PER_SEC)
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
	unsigned asker; /* number of the thread that asks now; the others are abandoned */
	bool asking;	/* the current question has begun */
	uint64_t since_ns;
	size_t count, next, unanswered;
	pthread_cond_t changed;
	struct question questions[INQUIRY_MAX];
};

/* A thread's own. */
struct asker {
	struct inquiry *inquiry;
	unsigned number;
};

struct late_user {
	uid_t uid;
	unsigned hanging;      /* threads that were abandoned with one of its processes */
	uint64_t since_ns, ns; /* waited for them since then, or late since then; 0: nothing */
};

/* Protects all inquiries that have begun, and the users. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct late_user late_users[USERS_MAX], late_root, late_all; /* late_all: without root */

static bool late_user_has_expired(const struct late_user *u, uint64_t now)
{
	return !u->hanging && (!u->ns || now - u->since_ns >= LATE_NS);
}

/* NULL: it is not in the table. With `add`, the one that was waited for least gives way to it. */
static struct late_user *late_user_find(uid_t uid, bool add)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct late_user *least = uid ? NULL : &late_root;

	if (!uid && !late_user_has_expired(&late_root, now))
		return &late_root;
	for (size_t i = 0; uid && i < USERS_MAX; i++) {
		struct late_user *u = &late_users[i];

		if (late_user_has_expired(u, now))
			*u = (struct late_user){ 0 };
		else if (u->uid == uid)
			return u;
		if (!u->hanging && (!least || u->ns < least->ns))
			least = u;
	}
	if (!add || !least)
		return NULL;
	*least = (struct late_user){ .uid = uid, .since_ns = now };
	return least;
}

static bool user_is_late(uid_t uid)
{
	const struct late_user *u = late_user_find(uid, false);

	if (!uid)
		return u && u->hanging >= USERS_LATE;
	if (u && (u->hanging || u->ns >= PATIENCE_NS))
		return true;
	return late_all.ns >= USERS_LATE * PATIENCE_NS &&
	       !late_user_has_expired(&late_all, now_ns(CLOCK_MONOTONIC));
}

/* With `most` the user is late, from now on. */
static void late_user_count(struct late_user *u, uint64_t ns, uint64_t most)
{
	if (u->ns < most && u->ns + ns >= most)
		u->since_ns = now_ns(CLOCK_MONOTONIC);
	u->ns += ns;
}

/* Returns NULL if there is no room. */
static struct late_user *user_count_wait(uid_t uid, uint64_t ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct late_user *u = late_user_find(uid, true);

	if (uid && late_user_has_expired(&late_all, now))
		late_all = (struct late_user){ .since_ns = now };
	if (uid)
		late_user_count(&late_all, ns, USERS_LATE * PATIENCE_NS);
	if (u)
		late_user_count(u, ns, PATIENCE_NS);
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
	pthread_cond_init(&i->changed, &attr);
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
	pthread_cond_destroy(&i->changed);
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

/* How often this thread has slept. A thread that is preempted does not wait for the process. */
static long asker_sleeps(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nvcsw : 0;
}

/* The lock is held, except while it asks. */
static void asker_ask(const struct asker *a)
{
	struct inquiry *i = a->inquiry;
	struct question *q = &i->questions[i->next];
	int process = q->process;
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	long sleeps;
	bool has_slept;
	void *answer;

	q->process = -EBADF;
	i->asking = true;
	i->since_ns = began;
	pthread_mutex_unlock(&lock);
	sleeps = asker_sleeps();
	answer = i->kind->ask(process, i->all);
	has_slept = asker_sleeps() != sleeps;
	close_fd(process);
	pthread_mutex_lock(&lock);
	if (i->asker == a->number) {
		if (has_slept)
			user_count_wait(q->uid, now_ns(CLOCK_MONOTONIC) - began);
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
	while (i->asker == a->number) {
		inquiry_skip_late(i);
		if (i->next == i->count)
			break;
		asker_ask(a);
	}
	pthread_cond_signal(&i->changed);
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
		*a = (struct asker){ i, i->asker };
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

/* Abandons the thread, if it asks, with its question. */
static void inquiry_abandon_thread(struct inquiry *i)
{
	struct question *q = &i->questions[i->next];

	if (i->asking)
		q->late = user_count_wait(q->uid, now_ns(CLOCK_MONOTONIC) - i->since_ns);
	if (i->asking && q->late)
		q->late->hanging++;
	i->asking = false;
	i->asker++;
}

static void inquiry_go_on(struct inquiry *i)
{
	/* The thread has not run yet: the machine is busy. */
	if (!i->asking) {
		i->since_ns = now_ns(CLOCK_MONOTONIC);
		return;
	}
	inquiry_abandon_thread(i);
	inquiry_skip(i);
	inquiry_skip_late(i);
	if (i->next < i->count)
		inquiry_begin_thread(i);
}

/* When the thread's question has had its time. The lock is held. */
static uint64_t inquiry_deadline(const struct inquiry *i)
{
	return i->since_ns + (i->questions[i->next].uid ? PATIENCE_NS : PATIENCE_ROOT_NS);
}

bool inquiry_wait(struct inquiry *i, uint64_t ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), most = ns < UINT64_MAX - now ? now + ns : ns;
	bool over;

	pthread_mutex_lock(&lock);
	while (i->next < i->count && now < most) {
		/* Meanwhile the thread may ask about a process that has less time. */
		uint64_t deadline = inquiry_deadline(i);
		uint64_t until = MIN(MIN(deadline, now + PATIENCE_NS), most);
		struct timespec end = { (time_t)(until / NSEC_PER_SEC),
					(long)(until % NSEC_PER_SEC) };

		if (now >= deadline)
			inquiry_go_on(i);
		else
			pthread_cond_timedwait(&i->changed, &lock, &end);
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
	inquiry_abandon_thread(i);
	inquiry_release(i);
	pthread_mutex_unlock(&lock);
	return NULL;
}
