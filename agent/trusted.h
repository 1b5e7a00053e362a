/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that only an administrator can change. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Opens a regular file for reading. -EPERM: it is not owner's, or others may write to it. The
 * folder it lies in is the caller's business.
 */
int trusted_open(int dirfd, const char *path, uid_t owner, FILE **ret, struct error *err);
/* Opens a folder, with the same rules. Returns a descriptor. */
int trusted_open_folder(const char *path, uid_t owner, struct error *err);
