/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decompresses a gzip or zstd file with bounded memory. Opens nothing. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct unpack;

/* True if these first bytes of a file start a gzip or zstd file. */
bool unpack_begins(const void *data, size_t len);
/* fd is borrowed. It must begin as unpack_begins() says. */
int unpack_new(struct unpack **ret, int fd, struct error *err);
struct unpack *unpack_free(struct unpack *u);
DEFINE_CLEANUP_FUNC(struct unpack *, unpack_free);
/*
 * Returns len bytes, fewer only at the end, or -errno; -EBADMSG: damaged, or a zstd window above
 * 128 MiB. userdata: a struct unpack.
 */
ssize_t unpack_read(void *userdata, void *data, size_t len);
/* True if the compressed data ended too early. */
bool unpack_is_cut(const struct unpack *u);
