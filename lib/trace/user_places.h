/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs' code by what they had mapped as the recording began and as it ended. */
#pragma once

#include "trace/trace_info.h"

/*
 * A user_place_source_t, of a struct trace_info: what was read last counts first. As the kernel,
 * which does not look whether its mapping begins before the address, it places what no mapping has
 * in the next one; a stack that is walked by frame pointers where there are none is full of such.
 */
bool user_place_find(const void *info, int32_t tgid, uint64_t address, struct user_place *ret);
