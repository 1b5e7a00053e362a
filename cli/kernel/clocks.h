/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/*
 * Appends the kernel's trace clocks, separated by spaces. False: this user cannot read the kernel's
 * list; the clocks are those of all kernels.
 */
bool clocks_list(struct buf *out);
/* -EINVAL: this kernel has no such clock; the hint lists its clocks. */
int clocks_check(const char *clock, struct error *err);
