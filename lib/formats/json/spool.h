/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holds data that must be written after something else, mostly the smaller of a file's two parts.
 * It is compressed at least 7 to 1, even with as many different symbols as a kernel has, so memory
 * stays far below the size that a viewer can open.
 */
#pragma once

#include "export/output.h"

struct json_spool;

int json_spool_new(struct json_spool **ret);
struct json_spool *json_spool_free(struct json_spool *s);
DEFINE_CLEANUP_FUNC(struct json_spool *, json_spool_free);

/* The buffer to append to. */
struct buf *json_spool_buf(struct json_spool *s);
/* Call after each element or line. 0 or -ENOMEM. */
int json_spool_settle(struct json_spool *s);
/* Uncompressed bytes so far. */
uint64_t json_spool_bytes(const struct json_spool *s);
/* Writes everything to the output. 0 or -errno. */
int json_spool_write(struct json_spool *s, struct output *out);
