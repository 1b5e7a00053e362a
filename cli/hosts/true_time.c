/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "true_time.h"

#include <time.h>

#include "base/io.h"

#define BOUND_MAX_NS (60 * NSEC_PER_SEC)

/*
 * chrony and ntpd state both errors. systemd-timesyncd sets both to 0, and phc2sys sets maxerror
 * alone to 0: neither states a bound.
 */
static bool error_is_stated(const struct timex *t)
{
	return t->esterror > 0 && t->maxerror >= t->esterror;
}

void true_time_take(struct true_time *ret, const struct timex *t, int state, uint64_t before,
		    uint64_t after)
{
	*ret = (struct true_time){ .boot = before + (after - before) / 2 };
	/* Another state than TIME_OK: not synchronised, or near a leap second. */
	if (state != TIME_OK || t->status & (STA_UNSYNC | STA_CLOCKERR) || !error_is_stated(t) ||
	    t->time.tv_sec < 0)
		return;
	ret->utc = (uint64_t)t->time.tv_sec * NSEC_PER_SEC +
		   (uint64_t)t->time.tv_usec * (t->status & STA_NANO ? 1 : 1000);
	/*
	 * maxerror, and the time without STA_NANO, are cut to whole us. The kernel raises maxerror
	 * once a second; meanwhile the clock may err by 15 ppm (PHI in RFC 5905) more.
	 */
	ret->bound = ((uint64_t)t->maxerror + 2 + 15) * 1000 + (after - before + 1) / 2;
}

void true_time_read(struct true_time *ret)
{
	struct timex t = { .modes = 0 };
	uint64_t before = now_ns(CLOCK_BOOTTIME);
	int state = adjtimex(&t);

	true_time_take(ret, &t, state, before, now_ns(CLOCK_BOOTTIME));
}

bool true_time_tie(struct host_tie *ret, const struct true_time *near, const struct true_time *far)
{
	/* Such a clock tells nothing, and the sum of absurd bounds would be small. */
	if (near->bound > BOUND_MAX_NS || far->bound > BOUND_MAX_NS)
		return false;
	*ret = (struct host_tie){ .far = far->boot,
				  .near = near->boot + (far->utc - near->utc),
				  .bound = near->bound + far->bound };
	return near->utc && far->utc;
}
