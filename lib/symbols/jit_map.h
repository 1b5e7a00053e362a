/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions that a program compiled while it ran, as it lists them itself for
 * perf(1): /tmp/perf-PID.map, "START SIZE NAME" a line. Anybody may have written it.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"

struct jit_map;

/* -EFBIG: longer than is taken. Lines that are none are passed over. Does not close fd. */
int jit_map_read(struct jit_map **ret, int fd);
struct jit_map *jit_map_free(struct jit_map *m);
DEFINE_CLEANUP_FUNC(struct jit_map *, jit_map_free);
/* NULL: none has the address. */
const char *jit_map_find(const struct jit_map *m, uint64_t address);
