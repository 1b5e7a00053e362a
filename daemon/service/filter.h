/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * System call filter for decoding, by libseccomp. Permits reading and writing open descriptors,
 * memory and threads. Calls that create a descriptor, a process or executable memory, or that look
 * at other processes, fail with EPERM.
 */
#pragma once

#include "base/error.h"

/*
 * Irreversible, for the calling thread and the threads that it creates. Does nothing if the kernel
 * or the build lacks it.
 */
int filter_enter(struct error *err);
