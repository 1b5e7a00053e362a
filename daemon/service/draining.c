/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The thread reads the rings and decides nothing. It tells the loop about a failure and new FLUSH
 * chunks at once, and about written bytes now and then. The loop checks space, wakes those who
 * follow, and suspends or ends the reading.
 *
 * The lock is fair: a thread with much to read locks it again at once, and would starve the loop.
 * Who wants it holds `next` meanwhile, so nobody overtakes.
 */
#include "daemon/service/draining.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/service/job.h"
#include "daemon/service/loop_late.h"
#include "daemon/service/policy.h"
#include "daemon/service/session.h"
#include "daemon/service/worker.h"

#define DURATION_LATE_US 1000
/* A backlog below this does not fill a file system. */
#define BACKLOG_MIN (UINT64_C(16) << 20)
/* Names, symbols and the tasks' ring between two flushes; far more than there are. */
#define FLUSHES_MAX (UINT64_C(64) << 20)
/* Retry interval of a paused recording: others may free space, too. */
#define PAUSE_US (1 * USEC_PER_SEC)
/* The loop looks at the space after so much was written, or less after some time. */
#define TELL_BYTES (UINT64_C(1) << 20)
#define TELL_SOME_BYTES (UINT64_C(64) << 10)
#define TELL_NS (500 * NSEC_PER_MSEC)
/* The thread looks again so much later, if the recording had not started at its first look. */
#define FIRST_NS (1500 * NSEC_PER_MSEC)
#define FIRST_STREAMED_NS (500 * NSEC_PER_MSEC)
/* The last so many ns the rings are not read for their age: the end reads them. */
#define END_NS (10 * NSEC_PER_MSEC)
/* How long the loop waits for the thread at most, if it can do without. */
#define LOCK_NS (20 * NSEC_PER_MSEC)

TAILQ_HEAD(taking_list, taking);

struct draining {
	struct session *session; /* the loop's; NULL: it is over */
	struct capture *capture;
	uint64_t duration_ns; /* 0: no end */
	bool streamed;
	uint64_t tell_bytes; /* the thread tells of as many new ones */
	struct worker *worker;
	pthread_mutex_t lock, next;
	struct loop_source *duration, *retry;
	struct taking_list takings; /* submitted and not done */
	bool paused;		    /* see draining_is_paused() */
	uint64_t full_at;	    /* bytes of the spool when it reached a limit; 0: it is below */
	bool flushes_only;	    /* protected by the lock */
	uint64_t flushes_seen;	    /* FLUSH chunks already announced to followers */
	/* Written by the thread. */
	atomic_uint_fast64_t flushes;
	uint64_t told_bytes, told_ns;
	/* Written once by the thread, before it tells the loop, and runs no more. */
	atomic_int result;
	struct error err;
};

struct taking {
	struct work work;
	TAILQ_ENTRY(taking) list;
	struct draining *draining;
	struct job *job; /* NULL: none, or over */
	taking_done_t done;
	int stream_fd; /* owned; -EBADF: no snapshot */
	bool ends;
	bool takes_part;
	struct capture_part part;
	enum capture_end reason;
	int result;
	struct error err;
};

void draining_lock(struct draining *d)
{
	pthread_mutex_lock(&d->next);
	pthread_mutex_lock(&d->lock);
	pthread_mutex_unlock(&d->next);
}

bool draining_try_lock(struct draining *d)
{
	uint64_t until_ns = now_ns(CLOCK_REALTIME) + LOCK_NS;
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };
	bool locked;

	if (pthread_mutex_timedlock(&d->next, &until))
		return false;
	locked = pthread_mutex_timedlock(&d->lock, &until) == 0;
	pthread_mutex_unlock(&d->next);
	return locked;
}

void draining_unlock(struct draining *d)
{
	pthread_mutex_unlock(&d->lock);
}

bool draining_is_busy(const struct draining *d)
{
	return !TAILQ_EMPTY(&d->takings);
}

bool draining_is_paused(const struct draining *d)
{
	return d->paused;
}

int draining_count_held(struct draining *d, uint64_t *ret)
{
	int r;

	if (draining_is_busy(d))
		return -EBUSY;
	draining_lock(d);
	r = capture_count_held(d->capture, ret);
	draining_unlock(d);
	return r;
}

/* The thread's news for the loop. */
static bool draining_has_news(struct draining *d, uint64_t flushes, uint64_t bytes)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), news = bytes - d->told_bytes;

	if (flushes == atomic_load(&d->flushes) && news < d->tell_bytes &&
	    (news < TELL_SOME_BYTES || now - d->told_ns < TELL_NS))
		return false;
	atomic_store(&d->flushes, flushes);
	d->told_bytes = bytes;
	d->told_ns = now;
	return true;
}

/* When to look whether it has started. Full sub-buffers call for the thread in any case. */
static uint64_t draining_first_ns(const struct draining *d)
{
	return now_ns(CLOCK_BOOTTIME) + (d->streamed ? FIRST_STREAMED_NS : FIRST_NS);
}

/* When to read the rings without being called for. */
static uint64_t draining_deadline(const struct draining *d)
{
	uint64_t started = capture_started_ns(d->capture), deadline;

	if (!started)
		return draining_first_ns(d);
	deadline = capture_deadline(d->capture);
	/* The end reads the rings: not right before it. */
	return d->duration_ns && deadline + END_NS >= started + d->duration_ns ? UINT64_MAX
									       : deadline;
}

static uint64_t draining_run(struct worker *w, void *userdata)
{
	uint64_t deadline, flushes, bytes;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct draining *d = userdata;
	bool flushes_only;
	int r;

	/* Here, as the loop may wait for this lock, or hold it. */
	loop_late_look();
	if (atomic_load(&d->result) < 0)
		return UINT64_MAX;
	draining_lock(d);
	flushes_only = d->flushes_only;
	r = flushes_only ? capture_flush(d->capture, &err) : capture_dispatch(d->capture, &err);
	deadline = r > 0 ? 0 : draining_deadline(d);
	if (flushes_only && r <= 0)
		worker_pause(w, true);
	flushes = capture_flushes(d->capture);
	bytes = capture_bytes(d->capture);
	draining_unlock(d);
	if (r < 0) {
		error_move(&d->err, &err);
		atomic_store(&d->result, r);
		worker_pause(w, true);
		worker_tell(w);
	} else if (draining_has_news(d, flushes, bytes)) {
		worker_tell(w);
	}
	return deadline;
}

/* The thread reads the rings; or, if paused, only writes a flush, or rests. */
static void draining_set_paused(struct draining *d, bool paused, bool flushes)
{
	d->paused = paused;
	draining_lock(d);
	d->flushes_only = paused && flushes;
	worker_pause(d->worker, paused && !flushes);
	draining_unlock(d);
	if (paused)
		loop_timer_in(d->retry, PAUSE_US);
	else
		loop_source_enable(d->retry, false);
}

/*
 * What a flush brings is limited by the rings; a reader that returns nothing must not make the
 * spool grow forever.
 */
static bool draining_may_flush(const struct session *s)
{
	return spool_bytes(&s->spool) < s->draining->full_at + 2 * s->memory_bytes + FLUSHES_MAX;
}

/* True if a following export can return space only after another flush. */
static bool draining_owes_flush(const struct session *s)
{
	return session_starves_followers(s) && draining_may_flush(s);
}

/*
 * Pauses while a following export makes room, or has not come yet. The kernel counts the events
 * overwritten meanwhile, and the next sub-buffer reports them in place.
 */
static void draining_pause_for_output(struct session *s)
{
	session_note(s, 0,
		     "the output was too slow and the spool was full: some events may have been "
		     "overwritten");
	if (!s->draining->paused)
		session_log(s, LOG_NOTICE, 0,
			    "paused: its output is too slow and the spool is full");
	draining_set_paused(s->draining, true, draining_owes_flush(s));
}

/* spool_check() against the limits; with some room below them. */
static int draining_check_spool(const struct session *s, bool with_room)
{
	const uint64_t max = s->spool.client_max ?: s->manager->config.spool_max;
	const uint64_t min_free = policy_min_free(s->manager, s->uid);

	return with_room ? spool_check(&s->spool, min_free + BACKLOG_MIN / 2, max / 4 * 3)
			 : spool_check(&s->spool, min_free, max);
}

uint64_t draining_room(const struct session *s)
{
	const struct config *config = &s->manager->config;
	uint64_t room = spool_left(&s->spool, policy_min_free(s->manager, s->uid),
				   s->spool.client_max ?: config->spool_max);

	if (!policy_trusts(s->uid) && config->users.spool_max)
		room = MIN(room, spool_left(&s->spool, 0, config->users.spool_max));
	return room;
}

/* Acts before the file system is full, so that the stream's end can still be written. */
static void draining_check_space(struct session *s)
{
	const struct config *config = &s->manager->config;
	int r = draining_check_spool(s, false);
	const char *full = "it reached spool_max of traced.conf";
	struct draining *d = s->draining;
	/* A backlog below this is not what fills the space: to pause would not help. */
	uint64_t backlog = r == -EDQUOT ? 0 : BACKLOG_MIN;

	if (r >= 0 && policy_spool_exceeded(s->manager, s->account, s->spool_elsewhere, 100)) {
		full = "its user's recordings reached the limit in [users] of traced.conf";
		r = -EDQUOT;
		backlog = MIN(BACKLOG_MIN, config->users.spool_max / 2);
	}
	if (r >= 0)
		d->full_at = 0;
	else if (!d->full_at)
		d->full_at = spool_bytes(&s->spool);
	/* The follower of a streamed recording comes a moment after its start. */
	if (r < 0 && s->streamed && !session_is_followed(s))
		draining_pause_for_output(s);
	else if (r < 0 && !s->spool.keeps && session_is_followed(s) &&
		 spool_bytes(&s->spool) >= backlog)
		draining_pause_for_output(s);
	else if (r == -ENOSPC)
		session_end_in_trouble(s, r, "no space is left for its spool");
	else if (r == -EDQUOT)
		session_end_in_trouble(s, r, full);
}

/* Acts on what the thread told. */
static void draining_on_news(void *userdata)
{
	struct draining *d = userdata;
	struct session *s = d->session;
	int r = atomic_load(&d->result);

	if (!s || !session_records(s))
		return;
	loop_doing("news of session", s->name);
	if (r == -ECANCELED) {
		s->at_threshold = true;
		session_end(s, capture_cancel_reason(d->capture));
		return;
	}
	if (r < 0) {
		session_end_in_trouble(s, r, d->err.message ?: strerror(-r));
		return;
	}
	if (d->flushes_seen != atomic_load(&d->flushes)) {
		d->flushes_seen = atomic_load(&d->flushes);
		session_wake_followers(s);
	}
	metrics_tick(s->manager);
	if (d->paused)
		draining_set_paused(d, true, draining_owes_flush(s));
	else if (!s->ring)
		draining_check_space(s);
}

void draining_space_freed(struct session *s)
{
	struct draining *d = s->draining;
	bool full, flush;

	if (!d || !d->paused || !session_records(s))
		return;
	/* A spool whose space cannot be returned never shrinks: end the recording and say why. */
	full = !s->spool.keeps &&
	       (draining_check_spool(s, true) < 0 ||
		policy_spool_exceeded(s->manager, s->account, s->spool_elsewhere, 75));
	/* A client does not report what it frees: it gets a FLUSH each second. */
	flush = s->spool.client_max ? draining_may_flush(s) : draining_owes_flush(s);
	draining_set_paused(d, full, full && flush);
	if (!full)
		draining_check_space(s);
}

static void draining_on_retry(void *userdata)
{
	struct draining *d = userdata;

	loop_timer_in(d->retry, PAUSE_US);
	draining_space_freed(d->session);
}

static void draining_on_duration(void *userdata)
{
	struct session *s = ((struct draining *)userdata)->session;

	loop_doing("the end of session", s->name);
	session_end(s, CAPTURE_END_DURATION);
}

static int draining_add_timers(struct draining *d)
{
	struct session *s = d->session;
	struct loop *l = s->manager->loop;
	int r = loop_add_timer(l, &d->retry, CLOCK_MONOTONIC, 0, draining_on_retry, d);

	if (r < 0 || !s->duration_ns)
		return r;
	r = loop_add_timer(l, &d->duration, CLOCK_BOOTTIME, DURATION_LATE_US, draining_on_duration,
			   d);
	if (r >= 0)
		loop_source_set_priority(d->duration, LOOP_IMPORTANT);
	return r;
}

int draining_prepare(struct session *s, struct error *err)
{
	struct draining *d = calloc(1, sizeof(*d));
	struct duty duty = {
		.fd = capture_fd(s->capture),
		.run = draining_run,
		.told = draining_on_news,
		.userdata = d,
	};
	int r;

	if (!d)
		return error_errno(err, -ENOMEM, "session");
	d->session = s;
	d->capture = s->capture;
	d->duration_ns = s->duration_ns;
	d->streamed = s->streamed;
	d->tell_bytes = TELL_BYTES;
	if (s->manager->config.spool_max)
		d->tell_bytes = MIN(TELL_BYTES, s->manager->config.spool_max / 16);
	TAILQ_INIT(&d->takings);
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->next, NULL);
	r = draining_add_timers(d);
	duty.first_ns = draining_first_ns(d);
	if (r >= 0)
		r = worker_new(&d->worker, s->manager->loop, &duty);
	s->draining = d;
	return r < 0 ? error_errno(err, r, "can't begin to read the rings") : 0;
}

int draining_begin(struct draining *d)
{
	return d->duration ? loop_timer_at(d->duration,
					   (capture_started_ns(d->capture) + d->duration_ns) /
						   NSEC_PER_USEC)
			   : 0;
}

void draining_watch(struct draining *d, bool watched)
{
	capture_watch(d->capture, watched);
	worker_wake(d->worker);
}

void draining_turn_off(struct draining *d)
{
	/* Not under the lock: the thread may be waiting for a disk. */
	if (!draining_is_busy(d))
		capture_turn_off(d->capture);
}

void draining_end(struct draining *d)
{
	if (!d)
		return;
	d->retry = loop_source_free(d->retry);
	d->duration = loop_source_free(d->duration);
	if (d->worker)
		worker_pause(d->worker, true);
}

void draining_leave(struct draining *d, void (*ended)(void *userdata), void *userdata)
{
	draining_end(d);
	d->session = NULL;
	if (d->worker)
		worker_stop(d->worker, ended, userdata);
}

void draining_join(struct draining *d)
{
	if (d && d->worker)
		worker_join(d->worker);
}

struct draining *draining_free(struct draining *d)
{
	if (!d)
		return NULL;
	draining_leave(d, NULL, NULL);
	worker_free(d->worker);
	error_deinit(&d->err);
	pthread_mutex_destroy(&d->lock);
	pthread_mutex_destroy(&d->next);
	free(d);
	return NULL;
}

/* The loop may write marks meanwhile, so it gets its turn between slices. */
static void taking_take_part(struct taking *t)
{
	struct draining *d = t->draining;

	do {
		draining_lock(d);
		t->result = capture_prepare_part(d->capture, &t->err);
		if (t->result == 0)
			t->result = capture_take_part(d->capture, &t->part, &t->err);
		draining_unlock(d);
	} while (t->result > 0);
}

static bool taking_run(struct work *w)
{
	struct taking *t = container_of(w, struct taking, work);
	struct draining *d = t->draining;

	if (t->takes_part)
		taking_take_part(t);
	if (t->stream_fd >= 0)
		t->result = capture_snapshot(d->capture, t->stream_fd, t->reason, &t->err);
	if (t->ends && t->result >= 0)
		t->result = capture_stop(d->capture, t->reason, &t->err);
	return false;
}

static void taking_on_done(struct work *w)
{
	struct taking *t = container_of(w, struct taking, work);

	TAILQ_REMOVE(&t->draining->takings, t, list);
	if (t->job) {
		t->job->taking = NULL;
		t->job->part = t->part;
	}
	t->done(t->draining->session, t->job, t->result, &t->err);
	close_fd(t->stream_fd);
	error_deinit(&t->err);
	free(t);
}

int draining_take(struct session *s, struct job *j, int stream_fd, bool ends,
		  enum capture_end reason, taking_done_t done, struct error *err)
{
	struct taking *t = calloc(1, sizeof(*t));
	int fd = stream_fd < 0 ? -EBADF : fcntl(stream_fd, F_DUPFD_CLOEXEC, 0), e = errno;

	if (!t || (stream_fd >= 0 && fd < 0)) {
		e = t ? -e : -ENOMEM;
		free(t);
		close_fd(fd);
		return error_errno(err, e, "session");
	}
	*t = (struct taking){
		.work = { .run = taking_run, .done = taking_on_done },
		.draining = s->draining,
		.job = j,
		.done = done,
		.stream_fd = fd,
		.ends = ends,
		/* A job without a stream of its own reads the session's. */
		.takes_part = j && stream_fd < 0,
		.reason = reason,
	};
	if (j)
		j->taking = t;
	TAILQ_INSERT_TAIL(&s->draining->takings, t, list);
	worker_submit(s->draining->worker, &t->work);
	return 0;
}

void taking_forget_job(struct taking *t)
{
	if (t)
		t->job = NULL;
}
