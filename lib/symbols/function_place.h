/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where in its file a function of a program or library begins, as uprobes are told of it. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/*
 * Opens path. -ENOENT: it has no such function (the hint names those that it may be);
 * -ENOTUNIQ: several; -EOPNOTSUPP: built without elfutils; else as open(2).
 */
int function_place_find(const char *path, const char *name, uint64_t *ret, struct error *err);
