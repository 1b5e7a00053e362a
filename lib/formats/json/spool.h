/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What arises while something else is being written and has its place behind it, of a file's two
 * parts the shorter one as a rule: kept compressed (7 to 1 at least, with symbols that differ as a
 * kernel's do), so that memory stays far below the size that a viewer can open.
 */
#pragma once

#include "export/output.h"

struct json_spool;

int json_spool_new(struct json_spool **ret);
struct json_spool *json_spool_free(struct json_spool *s);
DEFINE_CLEANUP_FUNC(struct json_spool *, json_spool_free);

/* It is appended here. */
struct buf *json_spool_buf(struct json_spool *s);
/* After each element or line. 0, -ENOMEM. */
int json_spool_settle(struct json_spool *s);
/* Bytes so far. */
uint64_t json_spool_bytes(const struct json_spool *s);
/* All of it, to the output. 0 or -errno. */
int json_spool_write(struct json_spool *s, struct output *out);
