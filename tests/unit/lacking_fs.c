/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lacking_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

unsigned fs_lacks;
int fs_signal_after_link;

int __real_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat64(int dir_fd, const char *path, int flags, ...);
int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);

static int lacking_open(int dir_fd, const char *path, int flags, va_list args)
{
	mode_t mode =
		flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;

	if ((flags & O_TMPFILE) == O_TMPFILE && fs_lacks & FS_LACKS_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (strlen(path) > NAME_MAX && fs_lacks & FS_LACKS_LIMIT)
		path += strlen(path) - NAME_MAX;
	return __real_openat(dir_fd, path, flags | O_LARGEFILE, mode);
}

int __wrap_openat(int dir_fd, const char *path, int flags, ...)
{
	va_list args;
	int fd;

	va_start(args, flags);
	fd = lacking_open(dir_fd, path, flags, args);
	va_end(args);
	return fd;
}

int __wrap_openat64(int dir_fd, const char *path, int flags, ...)
{
	va_list args;
	int fd;

	va_start(args, flags);
	fd = lacking_open(dir_fd, path, flags, args);
	va_end(args);
	return fd;
}

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	int r;

	if (fs_lacks & FS_LACKS_LINKS) {
		errno = EPERM;
		return -1;
	}
	r = __real_linkat(from_fd, from, to_fd, to, flags);
	if (fs_signal_after_link)
		raise(fs_signal_after_link);
	return r;
}

int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (flags & RENAME_NOREPLACE && fs_lacks & FS_LACKS_NOREPLACE) {
		errno = EINVAL;
		return -1;
	}
	return __real_renameat2(from_fd, from, to_fd, to, flags);
}
