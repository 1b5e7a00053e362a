/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The HTML page around a trace: the viewer, then the JSON's two halves as blocks of data, in the
 * layout of Android's systrace. Catapult's Trace Viewer and Perfetto's trace processor look for the
 * block with the kernel's text, line by line. Only our viewer reads the block with the rest of the
 * JSON.
 *
 * A browser would end the block at "</script", other readers take the text literally. So a
 * backslash is put after a "<" that would begin or end a script or comment; where backslashes
 * already follow, one more.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * Begin of the two blocks, and their ends. The second is an object; its members follow, each with a
 * leading comma. html_mend() looks for these.
 */
#define HTML_TEXT_BEGIN "  <script class=\"trace-data\" type=\"application/text\">\n"
#define HTML_MORE_BEGIN "  <script class=\"trace-more\" type=\"application/json\">\n{\"form\":1"
#define HTML_BLOCK_END "  </script>\n"
/*
 * Browsers hold an element's text several times while they read it, so a long block consists of
 * many elements. Other readers of the kernel's text search for "</script>", and take what stands
 * between the elements as a comment.
 */
#define HTML_ELEMENT_BYTES 1000000
#define HTML_TEXT_NEXT "#-</script ><script class=\"trace-data\" type=\"application/text\">\n"
#define HTML_MORE_NEXT "</script><script class=\"trace-more\" type=\"application/json\">\n"
#define HTML_END HTML_BLOCK_END "</body>\n</html>\n"

/* In the page's head: marks a page of ours. */
#define HTML_MAKER "recorded by traced"

/*
 * The page is everything before the first block: page.html, viewer.css and the scripts, joined and
 * packed by embed.py. html.c unpacks it into html_page_space.
 */
extern const unsigned char html_page_packed[];
extern const size_t html_page_packed_len, html_page_len;
extern char html_page_space[];

/* Appends the page. */
void html_put_page(struct buf *out);
/* Whether these bytes are the whole head of a page, before its text. */
bool html_is_head(const char *data, size_t len);

/*
 * Turns out from `start` on into one line of text and ends it: spells control characters, replaces
 * invalid UTF-8 by U+FFFD. Adds its length in UTF-16 units to *units. 0 or -ENOMEM.
 */
int html_end_line(struct buf *out, size_t start, struct buf *scratch, uint64_t *units);

/*
 * For output_rewrite(): begin another element at the end of a line, HTML_ELEMENT_BYTES after the
 * last one. In the second block each "<" is escaped, too; in JSON it can only be within strings.
 */
void html_divide_text(struct buf *b, size_t *since);
void html_divide_more(struct buf *b, size_t *since);
/* Escapes without dividing: for a part that is put into a page later. */
void html_hide_markup(struct buf *b, size_t *since);

/* Mends a truncated page: keeps the whole lines of either block; see export/mend.h. */
int html_mend(int fd, off_t size);
