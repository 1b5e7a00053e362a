/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/clocks.h"

#include <sys/timerfd.h>

#include "base/io.h"
#include "proto/capture.pb-c.h"
#include "traced/mark_record.h"

#define TRIES 5
/* More tries if all readings so far are wide: on a busy machine each may have been preempted. */
#define TRIES_MAX 50
#define WIDE_NS 100000

static const uint32_t wanted[CLOCKS_MAX] = { CLOCK_BOOTTIME,	  CLOCK_REALTIME, CLOCK_MONOTONIC,
					     CLOCK_MONOTONIC_RAW, CLOCK_TAI,	  MARK_CLOCK_TSC };

static bool clock_read(uint32_t clock, uint64_t *ret)
{
	struct timespec ts;

	if (clock == MARK_CLOCK_TSC) {
#if defined(__x86_64__) || defined(__i386__)
		*ret = __builtin_ia32_rdtsc();
		return true;
#else
		return false;
#endif
	}
	if (clock_gettime((clockid_t)clock, &ts) < 0)
		return false;
	*ret = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	return true;
}

/* Keeps the narrowest of several readings: an interrupt between the two outer ones widens it. */
static bool clock_read_best(uint32_t clock, struct clock_reading *ret)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES || (i < TRIES_MAX && best > WIDE_NS); i++) {
		uint64_t before = now_ns(CLOCK_BOOTTIME), after, value;

		if (!clock_read(clock, &value))
			return false;
		after = now_ns(CLOCK_BOOTTIME);
		if (after - before >= best)
			continue;
		best = after - before;
		*ret = (struct clock_reading){
			.clock = clock,
			.value = value,
			.before = before,
			.after = after,
		};
	}
	return true;
}

void clocks_read(struct clock_snapshot *ret)
{
	*ret = (struct clock_snapshot){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		ret->count += clock_read_best(wanted[i], &ret->readings[ret->count]);
}

int clocks_watch(void)
{
	/*
	 * The timer never expires. The kernel cancels it when the clock is set and on resume
	 * (Linux 3.2).
	 */
	const struct itimerspec never = { .it_value.tv_sec = INT64_MAX / NSEC_PER_SEC };
	int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd >= 0 &&
	    timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0 &&
	    errno != ECANCELED)
		fd = close_fd(fd);
	return fd < 0 ? -errno : fd;
}

bool clocks_were_set(int watch)
{
	uint64_t ticks;

	return read(watch, &ticks, sizeof(ticks)) < 0 && errno == ECANCELED;
}

int clocks_write(const struct clock_snapshot *s, struct stream_writer *w, enum clock_phase phase)
{
	Traced__Capture__ClockReading rows[CLOCKS_MAX], *list[CLOCKS_MAX];
	Traced__Capture__Clocks msg = TRACED__CAPTURE__CLOCKS__INIT;

	for (unsigned i = 0; i < s->count; i++) {
		rows[i] = (Traced__Capture__ClockReading)TRACED__CAPTURE__CLOCK_READING__INIT;
		rows[i].clock = s->readings[i].clock;
		rows[i].value_ns = s->readings[i].value;
		rows[i].boot_before_ns = s->readings[i].before;
		rows[i].boot_after_ns = s->readings[i].after;
		list[i] = &rows[i];
	}
	msg.readings = list;
	msg.n_readings = s->count;
	msg.phase = phase;
	if (s->sync) {
		msg.sync_id = s->sync->id;
		msg.sync_before_ns = s->sync->before;
		msg.sync_after_ns = s->sync->after;
	}
	return stream_write_message(w, CHUNK_CLOCKS, &msg.base);
}
