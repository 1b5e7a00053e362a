/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/trusted.h"

#include <fcntl.h>
#include <sys/stat.h>

static int trusted_check(int fd, const char *path, uid_t owner, mode_t type, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "%s", path);
	if ((st.st_mode & S_IFMT) != type)
		return error_set(err, -EPERM, "%s is not a %s", path,
				 type == S_IFDIR ? "folder" : "regular file");
	if (st.st_uid != owner || (st.st_mode & (S_IWGRP | S_IWOTH))) {
		error_set(err, -EPERM, "%s can be changed by others than %s", path,
			  owner ? "its owner" : "root");
		return error_hint(err, "chown root %s; chmod go-w %s", path, path);
	}
	return 0;
}

int trusted_open(int dirfd, const char *path, uid_t owner, FILE **ret, struct error *err)
{
	/* A FIFO would hold up the open. */
	_cleanup_close_ int fd =
		openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return error_errno(err, -errno, "%s", path);
	r = trusted_check(fd, path, owner, S_IFREG, err);
	if (r < 0)
		return r;
	*ret = fdopen(fd, "r");
	if (!*ret)
		return error_errno(err, -errno, "%s", path);
	TAKE_FD(fd);
	return 0;
}

int trusted_open_folder(const char *path, uid_t owner, struct error *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	int r;

	if (fd < 0)
		return error_errno(err, -errno, "%s", path);
	r = trusted_check(fd, path, owner, S_IFDIR, err);
	return r < 0 ? r : TAKE_FD(fd);
}
