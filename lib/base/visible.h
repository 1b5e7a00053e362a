/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text of strangers for a person's eyes. Names, notes and reasons come from
 * traces, which anybody may have made; printed as they are, they could drive
 * the terminal or look like lines of ours.
 */
#pragma once

#include "base/buf.h"

/* What a stranger's sentence may have of a line. */
#define VISIBLE_MAX 400

/*
 * Appends text with control characters (C0, DEL and C1) and bytes that are no
 * UTF-8 spelled out: \n, \t, else \x1b. Where that makes more than max bytes,
 * it ends with "..." within them.
 */
void buf_visible(struct buf *out, const char *text, size_t max);
