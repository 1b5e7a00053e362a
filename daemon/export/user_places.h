/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs' code by what they had mapped as the recording began and as it ended. */
#pragma once

#include "export/trace_info.h"

/* A user_place_source_t, of a struct trace_info: what was read last counts first. */
bool user_place_find(const void *info, int32_t tgid, uint64_t address, struct user_place *ret);
