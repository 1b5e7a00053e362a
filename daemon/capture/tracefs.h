/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The only code that touches tracefs. The root is injected: the kernel's own,
 * wherever it is mounted, or a folder that looks like one.
 */
#pragma once

#include <stdint.h>

#include "util/buf.h"
#include "util/error.h"

struct tracefs;

/*
 * root NULL: finds the mounted tracefs (/sys/kernel/tracing,
 * /sys/kernel/debug/tracing, /proc/self/mounts); where none is mounted and the
 * caller may, makes a detached mount (fsopen, Linux 5.2) that nobody else sees
 * and that ends with the process. -ENODEV: the kernel has no tracefs;
 * -EACCES, -EPERM: not for this caller. The hint says how to mend it.
 */
int tracefs_open(struct tracefs **ret, const char *root, struct error *err);
struct tracefs *tracefs_free(struct tracefs *fs);
DEFINE_CLEANUP_FUNC(struct tracefs *, tracefs_free);
/* For people: where the root is. */
const char *tracefs_path(const struct tracefs *fs);

/*
 * The kernel's events as "system:event", sorted; the array and the strings
 * live as long as fs. Read once, at the first call.
 */
int tracefs_events(struct tracefs *fs, const char *const **ret, size_t *ret_count,
		   struct error *err);
