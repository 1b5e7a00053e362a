/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a recording shares the loop. The rings' descriptor has a higher priority than the clients,
 * because events not read in time are lost. A drain that used up its budget continues from a
 * source of the clients' priority, so that a ring that never runs dry starves neither clients nor
 * other sessions.
 *
 * That source is an elapsed timer: sources of equal priority are served in the order in which they
 * became pending. For sd-event a deferred source is pending since its creation, hence always
 * first.
 */
#include "daemon/service/draining.h"

#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/service/policy.h"
#include "daemon/service/session.h"

#define PRIORITY_CAPTURE LOOP_IMPORTANT
#define PRIORITY_CAPTURE_MORE LOOP_NORMAL
#define DEADLINE_LATE_US 10000
#define DURATION_LATE_US 1000
/* A backlog below this does not fill a file system. */
#define BACKLOG_MIN (UINT64_C(16) << 20)
/* Retry interval of a paused recording: others may free space, too. */
#define PAUSE_US (1 * USEC_PER_SEC)

static void draining_set_paused(struct session *s, bool paused)
{
	struct draining *d = &s->draining;

	d->paused = paused;
	loop_source_enable(d->readable, !paused);
	loop_source_enable(d->again, false);
	if (paused)
		loop_timer_in(d->deadline, PAUSE_US);
	else
		loop_source_enable(d->deadline, true);
}

/*
 * Pauses while a following export makes room. The kernel counts the events overwritten meanwhile,
 * and the next sub-buffer reports them in place.
 */
static bool draining_pause_for_output(struct session *s)
{
	if (s->spool.keeps || spool_bytes(&s->spool) < BACKLOG_MIN || !session_is_followed(s))
		return false;
	session_note(
		s, 0,
		"the output was too slow and the spool was full: some events were overwritten");
	if (!s->draining.paused)
		session_log(s, LOG_NOTICE, 0,
			    "paused: its output is too slow and the spool is full");
	draining_set_paused(s, true);
	return true;
}

/*
 * Acts before the file system is full, so that the stream's end can still be written. Returns true
 * if the recording pauses or has ended.
 */
static bool draining_out_of_space(struct session *s)
{
	const struct config *config = &s->manager->config;
	int r = spool_check(&s->spool, config->min_free, config->spool_max);
	const char *full = "it reached spool_max of traced.conf";

	if (r >= 0 && policy_spool_exceeded(s->manager, s->uid, s->spool_elsewhere, 100)) {
		full = "its user's recordings reached the limit in [users] of traced.conf";
		r = -EDQUOT;
	}
	if (r < 0 && draining_pause_for_output(s))
		return true;
	if (r == -ENOSPC)
		session_end_in_trouble(s, r, "no space is left for its spool");
	else if (r == -EDQUOT)
		session_end_in_trouble(s, r, full);
	return r < 0;
}

static void draining_run(struct session *s)
{
	uint64_t before_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	_cleanup_error_ struct error err = ERROR_INIT;
	int r;

	r = capture_dispatch(s->capture, &err);
	s->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	if (r < 0) {
		session_end_in_trouble(s, r, err.message ?: strerror(-r));
		return;
	}
	if (s->draining.flushes != capture_flushes(s->capture)) {
		s->draining.flushes = capture_flushes(s->capture);
		session_wake_followers(s);
	}
	metrics_tick(s->manager);
	if (!s->ring && draining_out_of_space(s))
		return;
	loop_source_enable(s->draining.readable, !r);
	loop_source_enable(s->draining.again, r);
	loop_timer_at(s->draining.deadline, capture_deadline(s->capture) / NSEC_PER_USEC);
}

void draining_space_freed(struct session *s)
{
	const struct config *config = &s->manager->config;

	if (!s->draining.paused || !session_records(s))
		return;
	/*
	 * A spool whose space cannot be returned never shrinks: end the recording and say why.
	 * Otherwise returning BACKLOG_MIN, except for the head and the last chunk, must make
	 * enough room.
	 */
	if (!s->spool.keeps && (spool_check(&s->spool, config->min_free + BACKLOG_MIN / 2,
					    config->spool_max / 4 * 3) < 0 ||
				policy_spool_exceeded(s->manager, s->uid, s->spool_elsewhere, 75)))
		return;
	draining_set_paused(s, false);
	draining_run(s);
}

static void draining_on_readable(void *userdata, int fd _unused_, uint32_t revents _unused_)
{
	draining_run(userdata);
}

static void draining_on_deadline(void *userdata)
{
	struct session *s = userdata;

	if (!s->draining.paused) {
		draining_run(s);
		return;
	}
	loop_timer_in(s->draining.deadline, PAUSE_US);
	draining_space_freed(s);
}

static void draining_on_again(void *userdata)
{
	draining_run(userdata);
}

static void draining_on_duration(void *userdata)
{
	session_end(userdata, CAPTURE_END_DURATION);
}

int draining_begin(struct session *s)
{
	struct loop *l = s->manager->loop;
	struct draining *d = &s->draining;
	struct capture_stats stats = { 0 };
	int r;

	r = loop_add_io(l, &d->readable, capture_fd(s->capture), EPOLLIN, draining_on_readable, s);
	if (r < 0)
		return r;
	loop_source_set_priority(d->readable, PRIORITY_CAPTURE);
	r = loop_add_timer(l, &d->deadline, CLOCK_BOOTTIME, DEADLINE_LATE_US, draining_on_deadline,
			   s);
	if (r < 0)
		return r;
	loop_source_set_priority(d->deadline, PRIORITY_CAPTURE);
	loop_timer_at(d->deadline, capture_deadline(s->capture) / NSEC_PER_USEC);
	r = loop_add_timer(l, &d->again, CLOCK_MONOTONIC, 0, draining_on_again, s);
	if (r < 0)
		return r;
	loop_source_set_priority(d->again, PRIORITY_CAPTURE_MORE);
	if (!s->duration_ns)
		return 0;
	capture_get_stats(s->capture, &stats);
	r = loop_add_timer(l, &d->duration, CLOCK_BOOTTIME, DURATION_LATE_US, draining_on_duration,
			   s);
	if (r < 0)
		return r;
	loop_source_set_priority(d->duration, PRIORITY_CAPTURE);
	return loop_timer_at(d->duration, (stats.start_boot_ns + s->duration_ns) / NSEC_PER_USEC);
}

void draining_end(struct session *s)
{
	struct draining *d = &s->draining;

	d->readable = loop_source_free(d->readable);
	d->deadline = loop_source_free(d->deadline);
	d->again = loop_source_free(d->again);
	d->duration = loop_source_free(d->duration);
}
