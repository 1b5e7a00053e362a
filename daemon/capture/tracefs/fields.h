/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Suggests an event's fields when a filter names an unknown one. */
#pragma once

#include "base/buf.h"

/*
 * Appends a hint on filter: names near to the unknown one, and all fields. format: the text of the
 * event's format file. Appends nothing if that lists no field.
 */
void fields_hint(const char *format, const char *filter, struct buf *out);
