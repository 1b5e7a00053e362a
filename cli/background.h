/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl start --rotate`: a process of tracectl stays behind, in a session of its own, and has
 * the files written, with the caller's rights and after the caller's terminal is gone.
 */
#pragma once

#include "cli.h"

/*
 * Forks. The caller's process returns once the recording runs or has failed; the one behind when
 * it has ended. Both return the exit status.
 */
int background_start(const struct options *o);
