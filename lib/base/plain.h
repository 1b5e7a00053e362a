/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plain text needs no escapes in a JSON string: printable ASCII without quotes and backslashes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns the first byte of [p, end) that is not plain, or end. */
const char *plain_end(const char *p, const char *end);

/* True if all bytes are plain. Faster than plain_end() if that is likely. */
bool is_plain(const char *text, size_t len);
