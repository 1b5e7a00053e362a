/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded: CLOCK_REALTIME is ahead by as many seconds as the file named by MOVED_CLOCK says; or,
 * if that is "=SECONDS", stands there.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ts)
{
	const char *path = getenv("MOVED_CLOCK");
	int r = (int)syscall(SYS_clock_gettime, clock, ts), fd;
	char text[32] = "";

	if (r < 0 || clock != CLOCK_REALTIME || !path)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		*ts = *text == '=' ? (struct timespec){ strtol(text + 1, NULL, 10), 0 }
				   : (struct timespec){ ts->tv_sec + strtol(text, NULL, 10),
							ts->tv_nsec };
	close(fd);
	return 0;
}
