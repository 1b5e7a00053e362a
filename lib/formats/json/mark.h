/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes marks as JSON: members of stackFrames, events, elements of samples. */
#pragma once

#include "base/buf.h"
#include "marks/mark.h"

/*
 * Appends the mark, with a leading comma if needed. False: no reader would accept it (a counter
 * without a number, an empty name); nothing was appended.
 */
bool json_put_mark(struct buf *out, const struct mark *m);
