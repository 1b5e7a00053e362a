/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks as JSON: members of stackFrames, events, elements of samples. */
#pragma once

#include "base/buf.h"
#include "marks/mark.h"

/*
 * Appends the mark, with the comma before it if it needs one. False: no reader takes it (a
 * counter without a number, a name without a text), nothing was appended.
 */
bool json_put_mark(struct buf *out, const struct mark *m);
