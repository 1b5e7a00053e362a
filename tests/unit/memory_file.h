/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files in memory. Every failure fails the test. */
#pragma once

#include "base/buf.h"

/* One of these bytes, which is read and written from its start on. To be closed. */
int memory_file(const void *data, size_t len);
/* All of a file, in the place of what out holds, and a '\0' that does not count. */
void memory_file_read(int fd, struct buf *out);
