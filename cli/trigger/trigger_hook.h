/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program that is started with each snapshot of a trigger, with the caller's rights. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* It is killed after this time. */
#define TRIGGER_HOOK_S 60

/*
 * folder: of traced.conf; empty: none. *ret: the program's path, owned. -EPERM: others could have
 * changed it.
 */
int trigger_hook_find(const char *folder, const char *name, char **ret, struct error *err);

struct trigger_hook {
	bool runs; /* it, or what it has started */
	pid_t pid; /* 0: it has ended */
	uint64_t until;
};

/* Its argument is the snapshot's path. -EBUSY: the previous one still runs. */
int trigger_hook_start(struct trigger_hook *h, const char *path, const char *file,
		       const char *session, const char *condition);
/*
 * True if none runs any more, nor what it has started; kills all that takes too long, and says so.
 * The caller has no other children.
 */
bool trigger_hook_reap(struct trigger_hook *h);
