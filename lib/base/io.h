/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* File descriptors: whole reads and writes, small files, times. */
#pragma once

#include <dirent.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "base/buf.h"

#define USEC_PER_SEC UINT64_C(1000000)
#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)

/*
 * Opens /dev/null for each of the descriptors 0 to 2 that is closed, in the direction that fails.
 * Otherwise a file opened later would get that number, and messages with it. Call it first in
 * main().
 */
void reserve_standard_fds(void);
/* Like close_range(first, ~0U, 0) of Linux 5.9, but through /proc. Returns 0 or -errno. */
int close_fds_from(int first);
/* Leaves those of `keep` open; -EBADF there is none. */
int close_fds_from_except(int first, const int *keep, size_t count);

/* Writes everything, through EINTR, EAGAIN (by waiting) and short writes. Returns 0 or -errno. */
int write_full(int fd, const void *data, size_t len);
/* Like write_full(), for several pieces. Modifies iov. */
int writev_full(int fd, struct iovec *iov, int count);
/* Read until len bytes or end of file. Return the count, or -errno. */
ssize_t read_full(int fd, void *data, size_t len);
ssize_t pread_full(int fd, void *data, size_t len, off_t offset);
/*
 * Appends len bytes of the file `from`, beginning at `at`, to `to`; shares them where the
 * filesystem can. Returns 0 or -errno; -EIO: the file is shorter.
 */
int copy_range(int to, int from, uint64_t at, uint64_t len);

/*
 * The file's type (S_IFMT), or -errno. Unlike fstat(), it asks no server: one of FUSE or NFS may
 * never answer.
 */
int fd_type(int fd);
/* False if no folder has the file: it is lost once it is closed. Asks no server either. */
bool fd_has_name(int fd);

/*
 * Appends the whole file to out. -EFBIG: longer than max bytes. Works for procfs, sysfs and
 * tracefs, whose files have no size. dirfd as for openat().
 */
int read_file_at(int dirfd, const char *path, size_t max, struct buf *out);
/* The same from an open file. */
int read_to_end(int fd, size_t max, struct buf *out);

/* The folder's entries, from the first one. The caller closes it. NULL: see errno. */
DIR *folder_at(int dirfd, const char *path);

/*
 * Replaces the file by a rename of PATH.new: readers get the old one or the new one, whole.
 * is_synced: so does the next boot. Returns 0 or -errno.
 */
int replace_file(const char *path, const void *data, size_t len, mode_t mode, bool is_synced);

static inline uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}
