/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Output of a format that is a directory. A separate process (framed.h) writes the files into a
 * hidden directory (name.h) and commits that, or removes it if it is incomplete. An existing
 * directory of that name must be empty.
 */
#pragma once

#include "output/framed.h"

/*
 * -EEXIST: the name is taken by something other than an empty directory; -EPERM: by another user's;
 * -ENOENT, -EACCES...: the directory can't be created or examined.
 */
int directory_start(struct framed *ret, const char *path, struct error *err);
