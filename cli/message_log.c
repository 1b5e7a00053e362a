/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "message_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "output/path.h"

int message_log_open(int dir_fd, const char *base, mode_t mode, const char *path, struct error *err)
{
	/* O_NONBLOCK: a pipe without a reader would be waited for. */
	const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	_cleanup_close_ int fd = openat(dir_fd, base, flags, mode);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "%s", path);
	/* In another user's folder, a second name of a file of ours. */
	if (S_ISREG(st.st_mode) && st.st_nlink == 1 && path_owner_is_caller(st.st_uid))
		return TAKE_FD(fd);
	return error_set(err, -EPERM, "%s is no file for messages", path);
}
