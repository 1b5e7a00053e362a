/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plain text stands in a string of JSON as it is: printable ASCII without quotes and backslashes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The first byte in [p, end) that is not plain, or end. */
const char *plain_end(const char *p, const char *end);

/* Whether all are: the quicker way to ask where that is to be expected. */
bool is_plain(const char *text, size_t len);
