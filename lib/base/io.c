/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/io.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

void reserve_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		/* open() returns the lowest free number, which is this one. Children inherit it. */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int write_full(int fd, const void *data, size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };

	return writev_full(fd, &iov, 1);
}

/*
 * Another process may have set O_NONBLOCK: terminals and pipes share file descriptions. select()
 * comes first because poll() fails with an RLIMIT_NOFILE of 0.
 */
static int fd_wait(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	bool in = events == POLLIN;
	fd_set set;
	int n;

	if (fd < FD_SETSIZE) {
		FD_ZERO(&set);
		FD_SET(fd, &set);
		n = select(fd + 1, in ? &set : NULL, in ? NULL : &set, NULL, NULL);
	} else {
		n = poll(&p, 1, -1);
	}
	return n < 0 && errno != EINTR ? -errno : 0;
}

int writev_full(int fd, struct iovec *iov, int count)
{
	while (count > 0) {
		ssize_t n;
		int r;

		if (!iov->iov_len) {
			iov++, count--;
			continue;
		}
		n = writev(fd, iov, count);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				return -errno;
			r = fd_wait(fd, POLLOUT);
			if (r < 0)
				return r;
			continue;
		}
		if (n == 0)
			return -EIO;
		while (count > 0 && (size_t)n >= iov->iov_len) {
			n -= (ssize_t)iov->iov_len;
			iov++, count--;
		}
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

/* offset < 0: read from the file position. */
static ssize_t fd_read(int fd, void *data, size_t len, off_t offset)
{
	size_t done = 0;

	while (done < len) {
		char *to = (char *)data + done;
		ssize_t n = offset < 0 ? read(fd, to, len - done)
				       : pread(fd, to, len - done, offset + (off_t)done);

		if (n < 0) {
			int r = errno == EAGAIN ? fd_wait(fd, POLLIN) : -errno;

			if (r < 0 && r != -EINTR)
				return r;
			continue;
		}
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t read_full(int fd, void *data, size_t len)
{
	return fd_read(fd, data, len, -1);
}

ssize_t pread_full(int fd, void *data, size_t len, off_t offset)
{
	return offset < 0 ? -EINVAL : fd_read(fd, data, len, offset);
}

/* Bytes copied by one call. */
#define COPY_MAX (UINT64_C(64) << 20)

static ssize_t copy_piece(int to, int from, off_t *at, size_t want)
{
	char piece[16U << 10];
	ssize_t n = pread(from, piece, MIN(want, sizeof(piece)), *at);

	if (n > 0)
		n = write(to, piece, (size_t)n);
	if (n > 0)
		*at += n;
	return n;
}

int copy_range(int to, int from, uint64_t at, uint64_t len)
{
	off_t offset = (off_t)at;
	int way = 0;

	while (len) {
		size_t want = (size_t)MIN(len, COPY_MAX);
		ssize_t n = way == 0   ? copy_file_range(from, &offset, to, NULL, want, 0)
			    : way == 1 ? sendfile(to, from, &offset, want)
				       : copy_piece(to, from, &offset, want);

		if (n < 0 && errno == EINTR)
			continue;
		/*
		 * The first is not between all filesystems, a full disk fails again. The second is
		 * not to the end of a file (O_APPEND).
		 */
		if (n <= 0 && (way == 0 || (way == 1 && n < 0 && errno == EINVAL))) {
			way++;
			continue;
		}
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		len -= (uint64_t)n;
	}
	return 0;
}

int fd_type(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx) < 0)
		return -errno;
	return stx.stx_mask & STATX_TYPE ? stx.stx_mode & S_IFMT : -EBADF;
}

bool fd_has_name(int fd)
{
	struct statx stx;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &stx) < 0 ||
	       !(stx.stx_mask & STATX_NLINK) || stx.stx_nlink > 0;
}

int read_file_at(int dirfd, const char *path, size_t max, struct buf *out)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_to_end(fd, max, out);
}

DIR *folder_at(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		close_fd(fd);
	return dir;
}

int read_to_end(int fd, size_t max, struct buf *out)
{
	size_t total = 0;

	for (;;) {
		size_t room = MAX(out->cap - out->len, (size_t)4096);
		char *p = buf_reserve(out, room);
		ssize_t n;

		if (!p)
			return -ENOMEM;
		n = read(fd, p, room);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return 0;
		out->len += (size_t)n;
		total += (size_t)n;
		if (total > max)
			return -EFBIG;
	}
}

/* Whoever may write into the folder may have left something under that name. */
static int replace_file_open(const char *temp, mode_t mode)
{
	int fd, r;

	if (unlink(temp) < 0 && errno != ENOENT)
		return -errno;
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	/* The umask does not count. */
	if (fchmod(fd, mode) == 0)
		return fd;
	r = -errno;
	close(fd);
	unlink(temp);
	return r;
}

/* A rename is in the folder, and not on the disk before the folder is. */
static int sync_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	_cleanup_close_ int fd = -EBADF;

	if (!folder)
		return -ENOMEM;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Some file systems have nothing to sync in a folder. */
	return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

int replace_file(const char *path, const void *data, size_t len, mode_t mode, bool is_synced)
{
	_cleanup_free_ char *temp = NULL;
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (asprintf(&temp, "%s.new", path) < 0) {
		temp = NULL;
		return -ENOMEM;
	}
	fd = replace_file_open(temp, mode);
	if (fd < 0)
		return fd;
	r = write_full(fd, data, len);
	if (r >= 0 && is_synced && fsync(fd) < 0)
		r = -errno;
	if (r >= 0 && rename(temp, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(temp);
	else if (is_synced)
		r = sync_folder_of(path);
	return MIN(r, 0);
}

static bool fd_is_among(int fd, const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] == fd)
			return true;
	return false;
}

int close_fds_from_except(int first, const int *keep, size_t count)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		int fd = (int)strtol(e->d_name, NULL, 10);

		if (fd >= first && fd != dirfd(dir) && !fd_is_among(fd, keep, count))
			close(fd);
	}
	closedir(dir);
	return 0;
}

int close_fds_from(int first)
{
	return close_fds_from_except(first, NULL, 0);
}
