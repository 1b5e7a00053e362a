/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Places in user code, from mappings at the recording's start and end. */
#pragma once

#include "trace/trace_info.h"

/*
 * A user_place_source_t for a struct trace_info. The latest reading counts first. Like the kernel,
 * which does not check that the mapping starts before the address, it assigns an unmapped address
 * to the next mapping. Stacks walked by frame pointers that do not exist are full of such
 * addresses.
 */
bool user_place_find(const void *info, int32_t tgid, uint64_t address, struct user_place *ret);
