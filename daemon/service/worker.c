/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/worker.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/thread.h"

/* Enough for capture's stack; only touched pages cost memory. */
#define STACK_BYTES (256U << 10)
/* How late the duty may be, so that wake-ups coincide. */
#define DUTY_LATE_NS (10 * NSEC_PER_MSEC)
#define DUTY_NICE (-10)

/*
 * Users who kept the thread busy for longer come later. A work that has itself run long also comes
 * later: its user's share ages while it waits. After WORK_WAIT times what it ran it comes as a new
 * one does. Users within the same SHARE_STEP_NS take turns; a share counts half after
 * SHARE_HALF_NS.
 */
#define SHARE_STEP_NS (100 * NSEC_PER_MSEC)
#define SHARE_HALF_NS (5 * NSEC_PER_SEC)
#define WORK_WAIT 5
#define SHARES_MAX 64

TAILQ_HEAD(work_list, work);

/* The time for which one user's works ran. */
struct share {
	uid_t account;
	uint64_t ns, at_ns; /* ns as of at_ns, CLOCK_MONOTONIC; at_ns 0: free */
};

struct worker {
	struct loop_source *source;
	struct duty duty; /* run NULL: none */
	int done_fd;	  /* eventfd: some work is done, or worker_tell() was called */
	int wake_fd;	  /* eventfd: look at todo, `paused` and `ending` */
	pthread_t thread;
	bool has_thread, joined;
	atomic_bool ending, ended, paused, told;
	void (*on_end)(void *userdata);
	void *on_end_data;
	pthread_mutex_t lock; /* protects the lists */
	struct work_list todo, done;
	/* The thread's own. */
	uid_t last_account; /* whose work ran last */
	struct share shares[SHARES_MAX];
};

static void worker_signal(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	/* The write fails only if the counter is full, and then the reader is notified already. */
	(void)n;
}

static void worker_clear(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;
}

static uint64_t share_now(const struct share *s, uint64_t now)
{
	uint64_t halves = s->at_ns ? (now - s->at_ns) / SHARE_HALF_NS : 64;

	return halves < 64 ? s->ns >> halves : 0;
}

/* A half-life that has begun goes on: else many short works would add up for ever. */
static void share_count(struct share *s, uint64_t ns, uint64_t now)
{
	s->ns = share_now(s, now) + ns;
	s->at_ns += (now - s->at_ns) / SHARE_HALF_NS * SHARE_HALF_NS;
}

/* In steps. Root's is always 0. */
static uint64_t worker_share(const struct worker *w, uid_t account, uint64_t now)
{
	for (size_t i = 0; account && i < SHARES_MAX; i++)
		if (w->shares[i].account == account)
			return share_now(&w->shares[i], now) / SHARE_STEP_NS;
	return 0;
}

/* The user with the least share loses its place to a new one. */
static void worker_count_share(struct worker *w, uid_t account, uint64_t ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct share *s = &w->shares[0];

	for (size_t i = 0; i < SHARES_MAX; i++) {
		if (w->shares[i].account == account) {
			s = &w->shares[i];
			break;
		}
		if (share_now(&w->shares[i], now) < share_now(s, now))
			s = &w->shares[i];
	}
	if (s->account != account || !s->at_ns)
		*s = (struct share){ .account = account, .at_ns = now };
	share_count(s, ns, now);
}

static bool worker_run(struct worker *w, struct work *work)
{
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	uid_t account = work->account;
	bool more = work->run(work);
	uint64_t ns = now_ns(CLOCK_MONOTONIC) - began;

	work->ns += ns;
	if (account)
		worker_count_share(w, account, ns);
	return more;
}

static uint64_t worker_rank(const struct worker *w, const struct work *work, uint64_t now)
{
	uint64_t waited = work->waited_ns + (now - work->at_ns);
	uint64_t own = work->ns - MIN(work->ns, waited / WORK_WAIT);

	return work->account ? MAX(worker_share(w, work->account, now), own / SHARE_STEP_NS) : 0;
}

static bool worker_comes_first(const struct worker *w, const struct work *a, const struct work *b,
			       uint64_t now)
{
	uint64_t rank_a = worker_rank(w, a, now), rank_b = worker_rank(w, b, now);

	return rank_a != rank_b
		       ? rank_a < rank_b
		       : a->account - w->last_account - 1 < b->account - w->last_account - 1;
}

static bool worker_has_earlier(const struct worker *w, const struct work *work)
{
	const struct work *earlier;

	TAILQ_FOREACH(earlier, &w->todo, list)
	if (earlier == work || earlier->account == work->account)
		return earlier != work;
	return false;
}

/*
 * The first work of the user with the lowest rank. Users with equal ones follow one another in
 * order of their numbers.
 */
static struct work *worker_take(struct worker *w)
{
	struct work *work, *best = NULL;
	uint64_t now;

	pthread_mutex_lock(&w->lock);
	now = now_ns(CLOCK_MONOTONIC);
	TAILQ_FOREACH(work, &w->todo, list)
	if (!worker_has_earlier(w, work) && (!best || worker_comes_first(w, work, best, now)))
		best = work;
	if (best) {
		best->waited_ns += now - best->at_ns;
		TAILQ_REMOVE(&w->todo, best, list);
		w->last_account = best->account;
	}
	pthread_mutex_unlock(&w->lock);
	return best;
}

/* It stays the first of its user's works. */
static void worker_return(struct worker *w, struct work *work)
{
	pthread_mutex_lock(&w->lock);
	work->at_ns = now_ns(CLOCK_MONOTONIC);
	TAILQ_INSERT_HEAD(&w->todo, work, list);
	pthread_mutex_unlock(&w->lock);
}

static void worker_give(struct worker *w, struct work *work)
{
	pthread_mutex_lock(&w->lock);
	TAILQ_INSERT_TAIL(&w->done, work, list);
	pthread_mutex_unlock(&w->lock);
	worker_signal(w->done_fd);
}

/* Sleeps until there may be work, or until the duty is due. */
static void worker_wait(struct worker *w, uint64_t deadline_ns)
{
	bool has_duty = w->duty.run && !atomic_load(&w->paused);
	struct pollfd fds[] = {
		{ .fd = w->wake_fd, .events = POLLIN },
		{ .fd = has_duty ? w->duty.fd : -1, .events = POLLIN },
	};
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	uint64_t ns = deadline_ns > now ? deadline_ns - now : 0;
	struct timespec timeout = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(ns % NSEC_PER_SEC) };

	ppoll(fds, ARRAY_SIZE(fds), has_duty && deadline_ns != UINT64_MAX ? &timeout : NULL, NULL);
	if (fds[0].revents)
		worker_clear(w->wake_fd);
}

static void *worker_main(void *userdata)
{
	struct worker *w = userdata;
	uint64_t deadline_ns = w->duty.first_ns;
	bool waited = false;

	if (w->duty.run) {
		prctl(PR_SET_TIMERSLACK, DUTY_LATE_NS);
		/* At the default priority, a load on all CPUs makes the rings overflow. On Linux
		 * this is the thread's alone. Failure is harmless. */
		setpriority(PRIO_PROCESS, 0, DUTY_NICE);
	}
	for (;;) {
		/* Before the list is looked at: what follows worker_stop() is not submitted. */
		bool ending = atomic_load(&w->ending);
		struct work *work = worker_take(w);

		if (work) {
			if (worker_run(w, work))
				worker_return(w, work);
			else
				worker_give(w, work);
		} else if (ending) {
			atomic_store(&w->ended, true);
			worker_signal(w->done_fd);
			return NULL;
		} else {
			if (waited && w->duty.run && !atomic_load(&w->paused))
				deadline_ns = w->duty.run(w, w->duty.userdata);
			worker_wait(w, deadline_ns);
			waited = true;
		}
	}
}

static void worker_finish_done(struct worker *w)
{
	struct work *work;

	for (;;) {
		pthread_mutex_lock(&w->lock);
		work = TAILQ_FIRST(&w->done);
		if (work)
			TAILQ_REMOVE(&w->done, work, list);
		pthread_mutex_unlock(&w->lock);
		if (!work)
			return;
		work->done(work);
	}
}

/* `told` first: it may end what the works are about, but they may free the worker's owner. */
static void worker_on_done(void *userdata, int fd, uint32_t revents _unused_)
{
	struct worker *w = userdata;

	worker_clear(fd);
	loop_doing("the results of a worker", NULL);
	if (atomic_exchange(&w->told, false) && !atomic_load(&w->ending))
		w->duty.told(w->duty.userdata);
	worker_finish_done(w);
	if (atomic_load(&w->ended) && w->on_end)
		TAKE_PTR(w->on_end)(w->on_end_data);
}

static bool worker_start_thread(struct worker *w)
{
	if (!w->has_thread && !atomic_load(&w->ending))
		w->has_thread = thread_begin(&w->thread, STACK_BYTES, worker_main, w) == 0;
	return w->has_thread && !w->joined;
}

int worker_new(struct worker **ret, struct loop *loop, const struct duty *duty)
{
	_cleanup_(worker_freep) struct worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	TAILQ_INIT(&w->todo);
	TAILQ_INIT(&w->done);
	pthread_mutex_init(&w->lock, NULL);
	w->wake_fd = -EBADF;
	w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->done_fd < 0)
		return -errno;
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake_fd < 0)
		return -errno;
	r = loop_add_io(loop, &w->source, w->done_fd, EPOLLIN, worker_on_done, w);
	if (r < 0)
		return r;
	if (duty) {
		w->duty = *duty;
		if (!worker_start_thread(w))
			return -EAGAIN;
	}
	*ret = TAKE_PTR(w);
	return 0;
}

void worker_pause(struct worker *w, bool paused)
{
	atomic_store(&w->paused, paused);
	worker_signal(w->wake_fd);
}

void worker_wake(struct worker *w)
{
	worker_signal(w->wake_fd);
}

void worker_tell(struct worker *w)
{
	atomic_store(&w->told, true);
	worker_signal(w->done_fd);
}

void worker_stop(struct worker *w, void (*ended)(void *userdata), void *userdata)
{
	w->on_end = ended;
	w->on_end_data = userdata;
	atomic_store(&w->paused, true);
	atomic_store(&w->ending, true);
	worker_signal(w->wake_fd);
}

void worker_join(struct worker *w)
{
	if (w->has_thread && !w->joined)
		pthread_join(w->thread, NULL);
	w->joined = true;
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	worker_stop(w, NULL, NULL);
	worker_join(w);
	/* A done callback may submit more work, which runs at once. */
	worker_finish_done(w);
	loop_source_free(w->source);
	close_fd(w->done_fd);
	close_fd(w->wake_fd);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

void worker_submit(struct worker *w, struct work *work)
{
	if (!worker_start_thread(w)) {
		while (work->run(work))
			;
		worker_give(w, work);
		return;
	}
	pthread_mutex_lock(&w->lock);
	work->at_ns = now_ns(CLOCK_MONOTONIC);
	TAILQ_INSERT_TAIL(&w->todo, work, list);
	pthread_mutex_unlock(&w->lock);
	worker_signal(w->wake_fd);
}
