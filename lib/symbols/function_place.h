/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file offset of a function in a program or library, as uprobes need it. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/*
 * Opens path. -ENOENT: no such function; the hint has similar names. -ENOTUNIQ: several.
 * -EOPNOTSUPP: built without elfutils. Otherwise as open(2).
 */
int function_place_find(const char *path, const char *name, uint64_t *ret, struct error *err);
