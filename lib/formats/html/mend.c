/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mends a truncated page. */
#include "formats/html/html.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "export/mend.h"

/* Keeps the whole lines of either block and ends the page. -EBADMSG: not our page. */
int html_mend(int fd, off_t size)
{
	_cleanup_free_ char *piece = malloc(MEND_PIECE + 1);
	static const char close[] = HTML_END;
	char end[sizeof(close) - 1];
	const char *begin, *maker;
	off_t first, cut;
	ssize_t n;
	int r;

	if (!piece)
		return -ENOMEM;
	n = pread_full(fd, piece, MEND_PIECE, 0);
	if (n < 0)
		return (int)n;
	piece[n] = 0;
	begin = strstr(piece, HTML_TEXT_BEGIN);
	if (!begin && html_is_head(piece, (size_t)n))
		return mend_cut(fd, 0);
	maker = strstr(piece, HTML_MAKER);
	if (!begin || !maker || maker > begin)
		return -EBADMSG;
	if (size > (off_t)sizeof(end) &&
	    pread_full(fd, end, sizeof(end), size - (off_t)sizeof(end)) == sizeof(end) &&
	    memcmp(end, close, sizeof(end)) == 0)
		return 1;
	first = begin - piece + (off_t)strlen(HTML_TEXT_BEGIN);
	cut = mend_last_line(fd, size);
	if (cut <= first)
		return cut < 0 ? (int)cut : mend_cut(fd, 0);
	r = mend_close(fd, cut, close);
	/* Disk full: drop lines to make room for the end. */
	if (r < 0 && size > first + (off_t)sizeof(end))
		cut = mend_last_line(fd, size - (off_t)sizeof(end));
	return r < 0 && cut > first ? mend_close(fd, cut, close) : r;
}
