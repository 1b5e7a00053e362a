/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "phc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/parse.h"

/* The shortest one counts: an interrupt or a sleep makes others long. */
#define READINGS 5
/* A larger bound is none; sums of such bounds do not overflow. */
#define BOUND_MAX_NS NSEC_PER_SEC

int phc_parse(const char *text, uint64_t *ret_bound, struct error *err)
{
	const char *comma = strrchr(text, ',');
	int r = comma ? parse_duration(comma + 1, ret_bound, err) : -EINVAL;

	if (!comma || comma == text || comma - text >= PATH_MAX)
		error_set(err, r = -EINVAL, "it takes a clock and a time");
	else if (r == 0 && *ret_bound > BOUND_MAX_NS)
		error_set(err, r = -ERANGE, "it takes at most 1s");
	return r < 0 ? error_hint(err, "--phc /dev/ptp0,200ns: the machines' clocks /dev/ptp0 "
				       "differ by at most 200 ns")
		     : 0;
}

int phc_open(const char *text, uint64_t *ret_bound, struct error *err)
{
	char path[PATH_MAX];
	struct true_time now;
	int r = phc_parse(text, ret_bound, err), fd;

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(text, ',') - text), text);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		r = error_errno(err, -errno, "can't open the clock %s", path);
		return error_hint(err, "ls -l /dev/ptp* shows the clocks, and who may read them")
			       ?: r;
	}
	phc_read(fd, &now);
	if (now.utc)
		return fd;
	close(fd);
	return error_set(err, -EINVAL, "%s is no clock, or can't be read", path);
}

void phc_read(int fd, struct true_time *ret)
{
	/* FD_TO_CLOCKID() of the kernel's Documentation/driver-api/ptp.rst */
	const clockid_t clock = (clockid_t)((~(unsigned)fd << 3) | 3);

	*ret = (struct true_time){ .bound = UINT64_MAX };
	for (int i = 0; fd >= 0 && i < READINGS; i++) {
		uint64_t before = now_ns(CLOCK_BOOTTIME), after;
		struct timespec t;

		if (clock_gettime(clock, &t) < 0 || t.tv_sec < 0)
			break;
		after = now_ns(CLOCK_BOOTTIME);
		if ((after - before + 1) / 2 < ret->bound)
			*ret = (struct true_time){
				.boot = before + (after - before) / 2,
				.utc = (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec,
				.bound = (after - before + 1) / 2,
			};
	}
}

bool phc_tie(struct host_tie *ret, const struct true_time *before, const struct true_time *after,
	     const struct true_time *far, uint64_t bound)
{
	const uint64_t took = after->boot - before->boot, passed = after->utc - before->utc;
	const uint64_t slack = bound + far->bound;
	double part;

	if (!before->utc || !after->utc || !far->utc || after->utc <= before->utc ||
	    after->boot <= before->boot || far->bound > BOUND_MAX_NS ||
	    MAX(before->bound, after->bound) > BOUND_MAX_NS)
		return false;
	/* The far reading was made between ours. */
	if (far->utc + slack < before->utc - before->bound ||
	    far->utc > after->utc + after->bound + slack)
		return false;
	/* Both clocks' rates may differ: their ratio is that between our readings. */
	part = (double)(MIN(MAX(far->utc, before->utc), after->utc) - before->utc) / (double)passed;
	*ret = (struct host_tie){
		.far = far->boot,
		.near = before->boot + (uint64_t)((double)took * part),
		/* Meanwhile the servo may change the PHC's rate, and a quartz wander. */
		.bound = MAX(before->bound, after->bound) + slack +
			 (uint64_t)((double)took * HOST_WANDER_PPM * 1e-6) + 1,
	};
	return true;
}
