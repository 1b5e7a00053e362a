/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded: a time daemon states that CLOCK_REALTIME is wrong by SYNCED_CLOCK us at most; if that
 * is 0, that the clock is not synchronised. Any file is a network card's clock, which PTP keeps
 * PTP_CLOCK us ahead of the others, and which runs faster than the kernel's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000
#define TAI (UINT64_C(1790000037) * NSEC_PER_SEC)
#define FASTER_PPM 200

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

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
	const char *us = clock < 0 ? getenv("PTP_CLOCK") : NULL;
	int r = (int)syscall(SYS_clock_gettime, us ? CLOCK_BOOTTIME : clock, t);
	uint64_t ns;

	if (r < 0 || !us)
		return r;
	ns = (uint64_t)t->tv_sec * NSEC_PER_SEC + (uint64_t)t->tv_nsec;
	ns += TAI + ns / 1000000 * FASTER_PPM + (uint64_t)strtol(us, NULL, 10) * 1000;
	t->tv_sec = (time_t)(ns / NSEC_PER_SEC);
	t->tv_nsec = (long)(ns % NSEC_PER_SEC);
	return 0;
}
