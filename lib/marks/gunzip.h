/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a descriptor, decompressing if it begins with a gzip header. Opens nothing. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <zlib.h>

struct gunzip {
	int fd; /* borrowed */
	bool compressed, member_ended;
	bool cut;   /* the compressed data is truncated */
	z_stream z; /* also holds the read-ahead of a plain file */
	unsigned char raw[64U << 10];
};

int gunzip_init(struct gunzip *g, int fd);
void gunzip_deinit(struct gunzip *g);
/* Returns a byte count, 0 at the end, or -errno; -EBADMSG: damaged. userdata: a struct gunzip. */
ssize_t gunzip_read(void *userdata, void *data, size_t len);
