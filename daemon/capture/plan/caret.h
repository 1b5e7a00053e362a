/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shows the place in a text that a message is about. */
#pragma once

#include "base/buf.h"

/*
 * Appends two lines, each after a newline: the text, or the part around `at`, and a caret below
 * that place.
 */
void caret_put(const char *text, const char *at, struct buf *out);
