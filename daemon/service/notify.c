/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/notify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/io.h"

#define FIRST_FD 3

void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	_cleanup_close_ int fd = -EBADF;

	if (len < 2 || len >= sizeof(sa.sun_path) || !strchr("/@", *path))
		return;
	memcpy(sa.sun_path, path, len);
	if (*path == '@')
		sa.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* A missing service manager is no error. */
	if (fd >= 0)
		(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

void notify_reloading(void)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 now_ns(CLOCK_MONOTONIC) / NSEC_PER_USEC);
	notify(text);
}

/* Parses a number from the environment if it is for this process; otherwise 0. */
static uint64_t notify_number(const char *name, const char *pid_name)
{
	const char *text = getenv(name), *pid = getenv(pid_name);
	char *end;
	uint64_t n;

	if (!text || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	return errno || *end ? 0 : n;
}

uint64_t notify_watchdog_us(void)
{
	return notify_number("WATCHDOG_USEC", "WATCHDOG_PID");
}

static int notify_socket_option(int fd, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -1 : value;
}

int notify_take_socket(void)
{
	/* Unlike WATCHDOG_PID, LISTEN_PID is always set. */
	uint64_t n = getenv("LISTEN_PID") ? notify_number("LISTEN_FDS", "LISTEN_PID") : 0;

	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDNAMES");
	if (!n)
		return -ENOENT;
	if (n > 1 || notify_socket_option(FIRST_FD, SO_DOMAIN) != AF_UNIX ||
	    notify_socket_option(FIRST_FD, SO_TYPE) != SOCK_STREAM ||
	    notify_socket_option(FIRST_FD, SO_ACCEPTCONN) != 1)
		return -EINVAL;
	return fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0 ? -errno : FIRST_FD;
}
