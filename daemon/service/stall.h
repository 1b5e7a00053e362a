/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Notices that an exporter hangs: one of its threads waits in the kernel and does not run. Its
 * output is on a file system that does not answer, such as NFS without its server or a frozen one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/service/child.h"

struct stall;

/* hangs: whether the exporter does now; ns: for how long it did. Called at each change. */
typedef void (*stall_call_t)(void *userdata, bool hangs, uint64_t ns);

/* child is borrowed. 0 or -errno. */
int stall_new(struct stall **ret, struct loop *loop, struct child *child, stall_call_t call,
	      void *userdata);
struct stall *stall_free(struct stall *s);
bool stall_hangs(const struct stall *s);
