/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instances of a recording that nobody has asked for yet: made, off, with clock and
 * sizes set, which is what the kernel takes its time over. The next recording takes them, with
 * the journal that they are in and the plan that made them, and goes on from there.
 */
#pragma once

#include "daemon/capture/capture.h"

struct capture_spare;

/*
 * Of request only the clock and the buffers' size count; number: another one each time, within
 * a process. Errors are those of capture_new.
 */
int capture_spare_new(struct capture_spare **ret, const struct capture_env *env, unsigned number,
		      const struct capture_request *request, struct error *err);
/* Removes the instances. */
struct capture_spare *capture_spare_free(struct capture_spare *s);
DEFINE_CLEANUP_FUNC(struct capture_spare *, capture_spare_free);
/* Of the kernel's memory, for all CPUs. */
uint64_t capture_spare_bytes(const struct capture_spare *s);

/*
 * capture_new() with a spare, which *spare may be: it takes it, and sets *spare to NULL, unless
 * the request can't be, has probes or is for the top level. What the request wants otherwise is set
 * then. One that is no more as it was made, or was made for other CPUs, is removed instead.
 */
int capture_new_from(struct capture **ret, struct capture_spare **spare,
		     const struct capture_env *env, const struct capture_request *request,
		     struct error *err);

/* The rest is for this room. */

/* Moves what s has into c, which has none of it yet. False: it is not as it was. Ends s. */
bool capture_spare_take(struct capture_spare *s, struct capture *c);
