/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fields of an event, for who filters by one that it does not have. */
#pragma once

#include "base/buf.h"

/*
 * Appends a hint on filter: the names that an unknown one is near to, and the
 * fields that there are, by the text of the event's format file. Appends
 * nothing where that has none.
 */
void fields_hint(const char *format, const char *filter, struct buf *out);
