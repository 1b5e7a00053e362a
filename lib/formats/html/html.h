/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page around a trace: the viewer, then the JSON's two halves as blocks of data, in the form of
 * Android's systrace. The kernel's text is the block that Catapult's Trace Viewer and Perfetto's
 * trace processor look for, line by line; what is beside it in the JSON is a block that only the
 * viewer reads.
 *
 * Readers take the text as it is, while a browser ends the block at "</script": so a backslash
 * comes behind the "<" of what would begin or end a script or a comment, and one more where there
 * are some already.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * What a block begins with, the text's or the other's, which is an object whose members follow,
 * each with a comma; what ends the first of them, and the last. html_mend looks for them.
 */
#define HTML_TEXT_BEGIN "  <script class=\"trace-data\" type=\"application/text\">\n"
#define HTML_MORE_BEGIN "  <script class=\"trace-more\" type=\"application/json\">\n{\"form\":1"
#define HTML_BLOCK_END "  </script>\n"
#define HTML_END HTML_BLOCK_END "</body>\n</html>\n"

/* In the page's head: it is one of ours. */
#define HTML_MAKER "recorded by traced"

/* All that stands before the first block. */
void html_put_page(struct buf *out);
/* Whether so many bytes are the beginning of a page whose text comes first, and not of that. */
bool html_is_head(const char *data, size_t len);

/*
 * Makes what out holds from start on one line of the text, and ends it: control characters are
 * spelled out, what is no UTF-8 becomes U+FFFD. Adds its length in UTF-16 units to *units. 0 or
 * -ENOMEM.
 */
int html_end_line(struct buf *out, size_t start, struct buf *scratch, uint64_t *units);

/* For the other block: spells each "<" of the JSON in b, where it can only be part of a string. */
void html_hide_markup(struct buf *b);

/* Of a cut page the whole lines of either block, and its end; see export/mend.h. */
int html_mend(int fd, off_t size);
