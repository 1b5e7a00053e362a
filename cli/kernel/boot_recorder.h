/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The trace of a crash: `tracectl boot-recorder`, and what `tracectl extract --last-boot` needs. */
#pragma once

#include "cli.h"

/*
 * Finds the recording of the last boot: what the boot recorder kept at this start, or what its ring
 * still holds, which is kept then. instance NULL: as configured. *ret: the path, to be freed.
 * -ENODATA: there is none.
 */
int boot_recorder_find(const char *instance, char **ret, struct error *err);
