/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* File descriptors: whole reads and writes, small files, times. */
#pragma once

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
 * For the beginning of main: what is opened later must not take the numbers 0 to 2, where messages
 * go and children look. Those that the caller left closed become descriptors that can't be used.
 */
void reserve_standard_fds(void);
/* As close_range(first, ~0U, 0), which is of Linux 5.9; by /proc. 0 or -errno. */
int close_fds_from(int first);

/* Writes all of it, through EINTR, EAGAIN (it waits) and short writes. Returns 0 or -errno. */
int write_full(int fd, const void *data, size_t len);
/* As write_full, of several pieces; iov is used up. */
int writev_full(int fd, struct iovec *iov, int count);
/* Reads until len bytes or end of file. Returns the count, or -errno. */
ssize_t read_full(int fd, void *data, size_t len);
ssize_t pread_full(int fd, void *data, size_t len, off_t offset);

/*
 * Appends all of the file to out. More than max bytes: -EFBIG. Fit for files
 * of procfs, sysfs and tracefs, which have no size. dirfd as for openat().
 */
int read_file_at(int dirfd, const char *path, size_t max, struct buf *out);

static inline uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}
