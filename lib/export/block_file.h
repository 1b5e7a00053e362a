/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a file so that it costs the kernel little: writes end where the page cache can hold them
 * as large blocks, and on ext4 space for what is long is there before, if the file has no name yet.
 * Whatever else the descriptor is gets all at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct block_file {
	int fd; /* borrowed */
	bool is_file;
	bool allocates;
	uint64_t at;	    /* where it is written next */
	uint64_t sent;	    /* up to there it leaves for the disk, or has left */
	uint64_t allocated; /* up to there at most, beyond its end; 0: nothing was */
	struct buf rest;    /* of the last block, less than one */
};

/* fd: where it stands it is written. 0 or -ENOMEM; to be given to block_file_deinit in any case. */
int block_file_init(struct block_file *f, int fd);
/* What was not flushed is lost. */
void block_file_deinit(struct block_file *f);
/* 0 or -errno. What ends within a block may wait there. */
int block_file_write(struct block_file *f, const void *data, size_t len);
/* Writes what waits. 0 or -errno. */
int block_file_flush(struct block_file *f);
