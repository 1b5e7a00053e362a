/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/clocks.h"

#include "proto/capture.pb-c.h"
#include "util/io.h"

#define TRIES 5

static const clockid_t wanted[CLOCKS_MAX] = { CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_MONOTONIC,
					      CLOCK_MONOTONIC_RAW, CLOCK_TAI };

/* The narrowest of a few brackets: an interrupt between the readings only widens one. */
static bool read_one(clockid_t clock, struct clock_reading *ret)
{
	uint64_t best = UINT64_MAX;
	struct timespec ts;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = now_ns(CLOCK_BOOTTIME), after;

		if (clock_gettime(clock, &ts) < 0)
			return false;
		after = now_ns(CLOCK_BOOTTIME);
		if (after - before >= best)
			continue;
		best = after - before;
		*ret = (struct clock_reading){
			.clock = (uint32_t)clock,
			.value = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec,
			.before = before,
			.after = after,
		};
	}
	return true;
}

void clocks_read(struct clock_snapshot *ret)
{
	ret->count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		ret->count += read_one(wanted[i], &ret->readings[ret->count]);
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
	return stream_write_message(w, CHUNK_CLOCKS, &msg.base);
}
