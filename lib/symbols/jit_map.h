/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that a program compiled at run time and lists for perf(1): /tmp/perf-PID.map with lines
 * "START SIZE NAME". Anybody may have written it.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"

struct jit_map;

/* -EFBIG: too long. Invalid lines are skipped. Does not close fd. */
int jit_map_read(struct jit_map **ret, int fd);
struct jit_map *jit_map_free(struct jit_map *m);
DEFINE_CLEANUP_FUNC(struct jit_map *, jit_map_free);
/* NULL: no function at this address. */
const char *jit_map_find(const struct jit_map *m, uint64_t address);
