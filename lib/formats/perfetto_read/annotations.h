/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Debug annotations of TrackEvents as values: what a mark has as arguments. */
#pragma once

#include "formats/perfetto_read/interned.h"

/* So that the JSON's reader takes a string: bytes, once it is clean UTF-8. */
#define ANNOTATION_TEXT_MAX ((1U << 20) - 8)

/* The bytes that text has as clean UTF-8, up to max or a little more. */
size_t text_clean_size(struct text text, size_t max);
/* So much of it as has ANNOTATION_TEXT_MAX bytes then. */
struct text text_fit(struct text text);

/*
 * Appends a DebugAnnotation, a member of a dict, to out. scratch is used. Returns how much of it
 * is not there: what is nested too deep, keys that are not known, values that are damaged.
 */
unsigned annotation_put(struct buf *out, const struct wire_field *annotation,
			const struct interned *in, struct buf *scratch);
