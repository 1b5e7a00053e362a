/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a file at low cost to the kernel: writes end at boundaries where the page cache can use
 * large blocks, and on ext4 space is allocated ahead, if the file has no name yet. For pipes and
 * other descriptors, writes go through at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct block_file {
	int fd; /* borrowed */
	bool is_file;
	bool allocates;
	uint64_t at;	    /* file offset of the next write */
	uint64_t sent;	    /* writeback has started up to here */
	uint64_t allocated; /* space is allocated up to here at most, beyond the end; 0: nothing
			       allocated */
	struct buf rest;    /* bytes of the last, incomplete block */
};

/* Writing starts at fd's current offset. 0 or -ENOMEM; call block_file_deinit in any case. */
int block_file_init(struct block_file *f, int fd);
/* Drops bytes that were not flushed. */
void block_file_deinit(struct block_file *f);
/* 0 or -errno. Bytes of an incomplete block may stay buffered. */
int block_file_write(struct block_file *f, const void *data, size_t len);
/* Writes the buffered bytes. 0 or -errno. */
int block_file_flush(struct block_file *f);
