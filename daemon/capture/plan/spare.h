/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A spare is a pair of instances made in advance: tracing is off, and clock and sizes are set.
 * These are the slow steps in the kernel. The next recording takes them together with their journal
 * and their plan, and continues from there.
 */
#pragma once

#include "daemon/capture/capture.h"

struct capture_spare;

/*
 * Uses only the request's clock and buffer size. number: unique within the process. Errors as
 * capture_new.
 */
int capture_spare_new(struct capture_spare **ret, const struct capture_env *env, unsigned number,
		      const struct capture_request *request, struct error *err);
/* Removes the instances. */
struct capture_spare *capture_spare_free(struct capture_spare *s);
DEFINE_CLEANUP_FUNC(struct capture_spare *, capture_spare_free);
/* Kernel memory of the spare's ring buffers, all CPUs together. */
uint64_t capture_spare_bytes(const struct capture_spare *s);

/* Private to this room. */

struct capture_setup;

/*
 * Moves the spare's contents into a setup, which must have none yet. Returns false if the spare
 * changed. Consumes s.
 */
bool capture_spare_take(struct capture_spare *s, struct capture_setup *to);
