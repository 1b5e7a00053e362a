/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files in memory. Every failure fails the test. */
#pragma once

#include "base/buf.h"

/* Returns a file with these bytes, at offset 0. The caller closes it. */
int memory_file(const void *data, size_t len);
/* Replaces out's content by all of a file, and adds a '\0' that does not count. */
void memory_file_read(int fd, struct buf *out);
