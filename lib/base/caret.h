/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shows where a text that somebody typed is wrong. */
#pragma once

#include "base/buf.h"

/*
 * Appends two lines: the text, or the part around `at`, which points into it or at its end, and a
 * caret below that place. Characters of UTF-8 take one column.
 */
void buf_put_caret(struct buf *out, const char *text, const char *at);
