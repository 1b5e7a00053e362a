/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/block_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "base/io.h"

#define BLOCK (128U << 10)
/* Bytes that are allocated, and later sent to the disk, at one time. */
#define STRETCH (8U << 20)
/* A write may end beyond its stretch. */
#define BEYOND (1U << 20)

int block_file_init(struct block_file *f, int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	int flags = fcntl(fd, F_GETFL);
	struct statfs fs;
	struct stat st;

	*f = (struct block_file){ .fd = fd };
	/* O_APPEND ignores the offset. */
	if (at < 0 || flags < 0 || (flags & O_APPEND) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	f->is_file = true;
	f->at = f->sent = (uint64_t)at;
	/*
	 * Allocating ahead helps ext4 only; on btrfs it would also prevent compression. Only
	 * unnamed files: nobody else can write to them, so trimming cuts off no foreign bytes.
	 */
	f->allocates =
		!st.st_nlink && fstatfs(fd, &fs) == 0 && (uint32_t)fs.f_type == EXT4_SUPER_MAGIC;
	return buf_reserve(&f->rest, BLOCK) ? 0 : -ENOMEM;
}

/* Gives back the space allocated beyond the data. */
static void block_file_trim(const struct block_file *f)
{
	struct stat st;

	if (f->allocated && fstat(f->fd, &st) == 0 && (uint64_t)st.st_size < f->allocated)
		(void)!ftruncate(f->fd, st.st_size);
}

void block_file_deinit(struct block_file *f)
{
	block_file_trim(f);
	buf_deinit(&f->rest);
	*f = (struct block_file){ .fd = -EBADF };
}

static void block_file_allocate(struct block_file *f)
{
	/* Not enough space: take what there is; the writer will get ENOSPC. */
	f->allocated = f->at + STRETCH + BEYOND;
	if (fallocate(f->fd, FALLOC_FL_KEEP_SIZE, (off_t)f->at, STRETCH + BEYOND) < 0)
		f->allocates = false;
}

/*
 * Starts writeback early, so that a final fsync need not wait for the whole file. Not worth it
 * below one stretch.
 */
static void block_file_end_stretch(struct block_file *f)
{
	if (f->at - f->sent < STRETCH)
		return;
	sync_file_range(f->fd, (off_t)f->sent, (off_t)(f->at - f->sent), SYNC_FILE_RANGE_WRITE);
	f->sent = f->at;
	if (f->allocates)
		block_file_allocate(f);
}

/* Writes `rest` and the first len bytes of data. */
static int block_file_append(struct block_file *f, const void *data, size_t len)
{
	struct iovec iov[] = {
		{ .iov_base = f->rest.data, .iov_len = f->rest.len },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
	};
	int r = writev_full(f->fd, iov, ARRAY_SIZE(iov));

	if (r < 0)
		return r;
	f->at += f->rest.len + len;
	buf_clear(&f->rest);
	block_file_end_stretch(f);
	return 0;
}

int block_file_write(struct block_file *f, const void *data, size_t len)
{
	size_t over, now;
	int r;

	if (!f->is_file)
		return write_full(f->fd, data, len);
	/* Bytes after the last block boundary. */
	over = (size_t)((f->at + f->rest.len + len) % BLOCK);
	now = len - MIN(len, over);
	r = now ? block_file_append(f, data, now) : 0;
	if (r == 0)
		buf_append(&f->rest, (const char *)data + now, len - now);
	return r;
}

int block_file_flush(struct block_file *f)
{
	return f->rest.len ? block_file_append(f, NULL, 0) : 0;
}
