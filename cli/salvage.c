/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "salvage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "formats/html/html.h"
#include "formats/json/heads.h"

#define PIECE (256U << 10)
#define PACKET_TAG 0x0a /* of a Trace: field 1, with a length */

static int cut_at(int fd, off_t end)
{
	if (ftruncate(fd, end) < 0)
		return -errno;
	return end > 0;
}

/* The file ends with close, at that place. */
static int close_at(int fd, off_t at, const char *close)
{
	size_t len = strlen(close);
	ssize_t n = pwrite(fd, close, len, at);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? cut_at(fd, at + (off_t)len) : -ENOSPC;
}

/* To the end of the last whole packet. -EBADMSG: it is no trace. */
static int salvage_packets(int fd, off_t size)
{
	off_t at = 0;

	for (;;) {
		unsigned char head[11];
		ssize_t n = pread_full(fd, head, sizeof(head), at);
		uint64_t len = 0;
		int i = 1;

		if (n < 0)
			return (int)n;
		if (!at && n > 0 && head[0] != PACKET_TAG)
			return -EBADMSG;
		if (n < 2 || head[0] != PACKET_TAG)
			break;
		for (; i < n; i++) {
			len |= (uint64_t)(head[i] & 0x7f) << (7 * (i - 1));
			if (!(head[i] & 0x80))
				break;
		}
		if (i == n || len > (uint64_t)(size - at - i - 1))
			break;
		at += i + 1 + (off_t)len;
	}
	return cut_at(fd, at);
}

/* Behind the last whole line; 0: there is none. */
static off_t last_line(int fd, off_t size)
{
	_cleanup_free_ char *piece = malloc(PIECE);

	if (!piece)
		return -ENOMEM;
	while (size > 0) {
		off_t from = MAX(size - (off_t)PIECE, (off_t)0);
		ssize_t n = pread_full(fd, piece, (size_t)(size - from), from);
		const char *end;

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		end = memrchr(piece, '\n', (size_t)n);
		if (end)
			return from + (end - piece) + 1;
		size = from;
	}
	return 0;
}

static int salvage_lines(int fd, off_t size)
{
	off_t end = last_line(fd, size);

	return end < 0 ? (int)end : cut_at(fd, end);
}

/* The array form: whole lines, the last without its comma, and the bracket. */
static int salvage_array(int fd, off_t size)
{
	off_t end = last_line(fd, size);
	char before[2];
	int r;

	if (end <= (off_t)sizeof(before))
		return end < 0 ? (int)end : cut_at(fd, 0);
	if (pread_full(fd, before, sizeof(before), end - (off_t)sizeof(before)) != sizeof(before))
		return -EIO;
	if (!memcmp(before, "]\n", sizeof(before)))
		return cut_at(fd, end);
	end -= 1 + (before[0] == ',');
	r = close_at(fd, end, "]\n");
	/* A full disk has room for what takes another's place only. */
	return r < 0 ? close_at(fd, end, "]") : r;
}

static bool is_begun(const char *data, size_t len, const char *head)
{
	return memcmp(data, head, MIN(len, strlen(head))) == 0;
}

/* What ends the text and its object, behind a whole line. */
static const char text_close[] = "\"}\n";

/* Where a JSON's text stands. */
struct text_scan {
	off_t size;	/* of the file */
	bool escaped;	/* the next character belongs to a backslash */
	off_t line_end; /* behind the last whole line; 0: there is none */
	off_t roomy;	/* the same of a line behind which the file has room for text_close */
	off_t end;	/* behind the quote that ends the text; 0: it goes on */
};

static void scan_text(struct text_scan *s, const char *p, size_t len, off_t at)
{
	for (size_t i = 0; i < len && !s->end; i++) {
		if (s->escaped) {
			s->escaped = false;
			if (p[i] != 'n')
				continue;
			s->line_end = at + (off_t)i + 1;
			if (s->line_end + (off_t)strlen(text_close) <= s->size)
				s->roomy = s->line_end;
		} else if (p[i] == '\\') {
			s->escaped = true;
		} else if (p[i] == '"') {
			s->end = at + (off_t)i + 1;
		}
	}
}

/* Nothing is missing: lines but the last end with a comma or an open bracket. */
static bool is_closed(int fd, off_t size)
{
	char end[2];

	return size > (off_t)sizeof(end) &&
	       pread_full(fd, end, sizeof(end), size - (off_t)sizeof(end)) == sizeof(end) &&
	       memcmp(end, "}\n", sizeof(end)) == 0;
}

/*
 * Of the text that begins there the whole lines, or all of them; what more there was
 * names them, and has no end of its own. 0: there is not one line.
 */
static int salvage_text(int fd, off_t at, off_t size, char *piece)
{
	struct text_scan scan = { .size = size };
	ssize_t n = 0;
	int r;

	while (!scan.end && at < size && (n = pread_full(fd, piece, PIECE, at)) > 0) {
		scan_text(&scan, piece, (size_t)n, at);
		at += n;
	}
	if (n < 0)
		return (int)n;
	if (scan.end && is_closed(fd, size))
		return 1;
	if (!scan.end && !scan.line_end)
		return 0;
	r = scan.end ? close_at(fd, scan.end, "}\n") : close_at(fd, scan.line_end, text_close);
	/* On a full disk a line makes room. */
	return r < 0 && scan.roomy ? close_at(fd, scan.roomy, text_close) : r;
}

/* Where the array of events ends that comes first; 0: it goes on. */
static off_t find_text(int fd, off_t size, char *piece)
{
	const off_t len = sizeof(JSON_TEXT_BEHIND) - 1;

	for (off_t at = 0; at + len <= size; at += (off_t)PIECE - len) {
		ssize_t n = pread_full(fd, piece, PIECE, at);
		const char *found;

		if (n < 0)
			return n;
		found = memmem(piece, (size_t)n, JSON_TEXT_BEHIND, (size_t)len);
		if (found)
			return at + (found - piece);
	}
	return 0;
}

static bool is_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EFBIG;
}

/* Behind the last whole event of an array that is an object's first; 0: there is none. */
static off_t last_event(int fd, off_t size)
{
	off_t end = last_line(fd, size);
	char before[3];

	/* The head has no event of the recording's. */
	if (end <= (off_t)sizeof(JSON_EVENTS_HEAD))
		return MIN(end, 0);
	if (pread_full(fd, before, sizeof(before), end - (off_t)sizeof(before)) != sizeof(before))
		return -EIO;
	/* Before a comma, or the array's end and a comma. */
	return end - 2 - (before[0] == ']');
}

static int salvage_events(int fd, off_t size, char *piece)
{
	static const char ending[] = "]}\n";
	off_t end = find_text(fd, size, piece);
	int r;

	if (end > 0) {
		r = salvage_text(fd, end + (off_t)sizeof(JSON_TEXT_BEHIND) - 1, size, piece);
		/* Without a line, or room to close the text behind one, there are the events. */
		return r && !is_full(r) ? r : close_at(fd, end, ending);
	}
	end = end < 0 ? end : last_event(fd, size);
	if (end <= 0)
		return end < 0 ? (int)end : cut_at(fd, 0);
	r = close_at(fd, end, ending);
	/* On a full disk the last of them makes room. */
	if (is_full(r))
		end = last_event(fd, end);
	return is_full(r) && end > 0 ? close_at(fd, end, ending) : r;
}

/* -EBADMSG: it is something else. */
static int salvage_json(int fd, off_t size)
{
	_cleanup_free_ char *piece = malloc(PIECE);
	ssize_t n;
	int r;

	if (!piece)
		return -ENOMEM;
	n = pread_full(fd, piece, MAX(sizeof(JSON_TEXT_HEAD), sizeof(JSON_EVENTS_HEAD)) - 1, 0);
	if (n < 0)
		return (int)n;
	if (n > 0 && *piece == '[')
		return salvage_array(fd, size);
	if (is_begun(piece, (size_t)n, JSON_EVENTS_HEAD))
		return salvage_events(fd, size, piece);
	if (!is_begun(piece, (size_t)n, JSON_TEXT_HEAD))
		return -EBADMSG;
	r = salvage_text(fd, sizeof(JSON_TEXT_HEAD) - 1, size, piece);
	return r ? r : cut_at(fd, 0);
}

/* Of a page the whole lines of either block, and its end. -EBADMSG: it is another's. */
static int salvage_html(int fd, off_t size)
{
	_cleanup_free_ char *piece = malloc(PIECE + 1);
	static const char close[] = HTML_END;
	char end[sizeof(close) - 1];
	const char *begin, *maker;
	off_t first, cut;
	ssize_t n;
	int r;

	if (!piece)
		return -ENOMEM;
	n = pread_full(fd, piece, PIECE, 0);
	if (n < 0)
		return (int)n;
	piece[n] = 0;
	begin = strstr(piece, HTML_TEXT_BEGIN);
	if (!begin && html_is_head(piece, (size_t)n))
		return cut_at(fd, 0);
	maker = strstr(piece, HTML_MAKER);
	if (!begin || !maker || maker > begin)
		return -EBADMSG;
	if (size > (off_t)sizeof(end) &&
	    pread_full(fd, end, sizeof(end), size - (off_t)sizeof(end)) == sizeof(end) &&
	    memcmp(end, close, sizeof(end)) == 0)
		return 1;
	first = begin - piece + (off_t)strlen(HTML_TEXT_BEGIN);
	cut = last_line(fd, size);
	if (cut <= first)
		return cut < 0 ? (int)cut : cut_at(fd, 0);
	r = close_at(fd, cut, close);
	/* On a full disk lines make room. */
	if (r < 0 && size > first + (off_t)sizeof(end))
		cut = last_line(fd, size - (off_t)sizeof(end));
	return r < 0 && cut > first ? close_at(fd, cut, close) : r;
}

int salvage(int fd, const char *format, struct error *err)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "what was written");
	if (strcmp(format, "pftrace") == 0)
		r = salvage_packets(fd, st.st_size);
	else if (strcmp(format, "txt") == 0)
		r = salvage_lines(fd, st.st_size);
	else if (strcmp(format, "json") == 0)
		r = salvage_json(fd, st.st_size);
	else if (strcmp(format, "html") == 0)
		r = salvage_html(fd, st.st_size);
	else
		r = st.st_size > 0;
	return r < 0 ? error_errno(err, r, "what was written") : r;
}
