/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes untrusted text safe to show. Names, notes and reasons come from traces, which anybody may
 * have made. Printed unchanged, they could control the terminal or look like our own lines.
 */
#pragma once

#include "base/buf.h"

/* The most bytes of a line that untrusted text gets. */
#define VISIBLE_MAX 400

/*
 * Appends text. Control characters (C0, DEL, C1) and invalid UTF-8 are escaped: \n, \t, otherwise
 * \x1b. Output longer than max bytes is cut and ends with "...".
 */
void buf_visible(struct buf *out, const char *text, size_t max);
