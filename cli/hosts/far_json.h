/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON of several hosts as one document:
 *
 *     {"hosts":[{"label":"pump","status":0,"output":{...}}, ...]}
 *
 * It is valid whatever the hosts send.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

void far_json_begin(struct buf *out);
/*
 * Adds a host. fd: what it printed. -EBADMSG, -ENODATA and so on: that is no JSON, or cut; `output`
 * is null then.
 */
int far_json_put(struct buf *out, const char *label, int status, int fd, struct error *err);
void far_json_end(struct buf *out);
