/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded: a time daemon states that CLOCK_REALTIME is wrong by SYNCED_CLOCK us at most; if that
 * is 0, that the clock is not synchronised.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

__attribute__((visibility("default"))) int adjtimex(struct timex *t)
{
	const char *us = getenv("SYNCED_CLOCK");
	int r = (int)syscall(SYS_adjtimex, t);

	if (r < 0 || !us)
		return r;
	t->maxerror = strtol(us, NULL, 10);
	t->esterror = t->maxerror / 2;
	t->status &= ~STA_UNSYNC;
	t->status |= t->maxerror ? 0 : STA_UNSYNC;
	return t->maxerror ? TIME_OK : TIME_ERROR;
}
