/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shows an event's fields: their types, and the operators that a filter of -f may use with them. */
#pragma once

#include "document.h"

/* Appends the fields as text. format: the text of the event's format file. */
void event_fields_put(const char *event, const char *format, struct buf *out);
/* Appends the fields that every event has. */
void event_fields_put_common(const char *format, struct buf *out);
/* Adds the event with its fields to a JSON array. */
void event_fields_put_json(const char *event, const char *format, struct document *j);
