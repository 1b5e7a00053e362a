/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A persistent ring (Linux 6.12): tracefs's instance in memory that the kernel reserved by its
 * command line, and that a warm start leaves as it was.
 */
#pragma once

#include "daemon/capture/capture.h"

/*
 * Reads the instance's last_boot_info. dir: the instance's. -ENOTTY: the ring is not persistent.
 * -ENODATA: it holds events of this boot, or none.
 */
int last_boot_read_info(int dir, const char *instance, struct buf *out, struct error *err);
/* The error of a ring without events of the last boot. -ENODATA. */
int last_boot_nothing(const char *instance, struct error *err);
/* Appends the packed LastBoot message: info, modules, the kernel's place and pstore's files. */
int last_boot_pack(const struct capture_env *env, struct buf *info, struct buf *out,
		   struct error *err);
/*
 * Copies the stream `from` of the last boot, made in this boot, to `to`, with the modules and
 * symbols as of now: the ring is emptied early, before most modules are loaded. -EPERM: the symbols
 * are hidden. -ENOBUFS: more than limit bytes (0: no limit).
 */
int last_boot_renew(const struct capture_env *env, int from, int to, uint64_t limit,
		    struct error *err);
