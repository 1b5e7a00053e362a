/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that commands read. */
#pragma once

#include "util/error.h"

/* What can be read from fd, which stays open, in a nameless file at its start. */
int input_keep(int fd, struct error *err);

/*
 * Another program's recording is turned into a capture stream, which *fd is after it; a
 * capture stream stays what it is. path: for people. instance: NULL, or the buffer that is
 * wanted of it.
 */
int input_import(int *fd, const char *path, const char *instance, struct error *err);
