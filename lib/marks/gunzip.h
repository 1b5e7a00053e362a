/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a descriptor, through gzip if that is what its first bytes say. Opens nothing. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <zlib.h>

struct gunzip {
	int fd; /* borrowed */
	bool compressed, member_ended;
	bool cut;   /* the compressed data ended before its end */
	z_stream z; /* of a plain file: what was read ahead */
	unsigned char raw[64U << 10];
};

int gunzip_init(struct gunzip *g, int fd);
void gunzip_deinit(struct gunzip *g);
/* A count, 0 at the end, -errno; -EBADMSG: damaged. userdata: a struct gunzip. */
ssize_t gunzip_read(void *userdata, void *data, size_t len);

/*
 * Expands the first bytes of a gzip file: how many bytes ret got, at most max; 0: data begins no
 * gzip file.
 */
ssize_t gunzip_head(const void *data, size_t len, void *ret, size_t max);
