/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mends a truncated JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "export/mend.h"
#include "formats/json/mend.h"

/* Array form: keeps whole lines, removes the last comma, adds the bracket. */
static int json_mend_array(int fd, off_t size)
{
	off_t end = mend_last_line(fd, size);
	char before[2];
	int r;

	if (end <= (off_t)sizeof(before))
		return end < 0 ? (int)end : mend_cut(fd, 0);
	if (pread_full(fd, before, sizeof(before), end - (off_t)sizeof(before)) != sizeof(before))
		return -EIO;
	if (!memcmp(before, "]\n", sizeof(before)))
		return mend_cut(fd, end);
	end -= 1 + (before[0] == ',');
	r = mend_close(fd, end, "]\n");
	/* Disk full: only overwriting has room. */
	return r < 0 ? mend_close(fd, end, "]") : r;
}

static bool json_is_begun(const char *data, size_t len, const char *head)
{
	return memcmp(data, head, MIN(len, strlen(head))) == 0;
}

/*
 * Ends text and object after a whole line. Trace Viewer looks for the text only beside traceEvents;
 * the shorter end is for a full disk.
 */
static const char text_close[] = "\"}\n";
static const char text_close_alone[] = "\",\n\"traceEvents\":[]}\n";

/* Finds the end of a JSON's text. */
struct text_scan {
	off_t size;	/* size of the file */
	off_t close;	/* length of the text that ends it */
	bool escaped;	/* inside an escape */
	bool in_line;	/* behind the first character of a line */
	bool is_head;	/* the line begins with #: it is no event */
	bool has_event; /* a whole line was none of the head's */
	off_t line_end; /* end of the last whole line; 0: none */
	off_t roomy;	/* end of the last line that leaves room for that text in the file */
	off_t end;	/* after the closing quote of the text; 0: not closed */
};

static void json_scan_text(struct text_scan *s, const char *p, size_t len, off_t at)
{
	for (size_t i = 0; i < len && !s->end; i++) {
		if (!s->in_line && !s->escaped)
			s->is_head = p[i] == '#';
		s->in_line |= !s->escaped && p[i] != '\\';
		if (s->escaped) {
			s->escaped = false;
			if (p[i] != 'n')
				continue;
			s->line_end = at + (off_t)i + 1;
			s->has_event |= s->in_line && !s->is_head;
			s->in_line = false;
			if (s->line_end + s->close <= s->size)
				s->roomy = s->line_end;
		} else if (p[i] == '\\') {
			s->escaped = true;
		} else if (p[i] == '"') {
			s->end = at + (off_t)i + 1;
		}
	}
}

/* Whether the file is complete: all lines but the last end with a comma or an open bracket. */
static bool json_is_closed(int fd, off_t size)
{
	char end[2];

	return size > (off_t)sizeof(end) &&
	       pread_full(fd, end, sizeof(end), size - (off_t)sizeof(end)) == sizeof(end) &&
	       memcmp(end, "}\n", sizeof(end)) == 0;
}

/*
 * Keeps the whole lines of the text that begins at `at`. Drops all that follows the text: those
 * members refer to it and are incomplete. 0: no whole line of an event.
 */
static int json_mend_text(int fd, off_t at, off_t size, char *piece, const char *close)
{
	struct text_scan scan = { .size = size, .close = (off_t)strlen(close) };
	ssize_t n = 0;
	int r;

	while (!scan.end && at < size && (n = pread_full(fd, piece, MEND_PIECE, at)) > 0) {
		json_scan_text(&scan, piece, (size_t)n, at);
		at += n;
	}
	if (n < 0)
		return (int)n;
	if (scan.end && json_is_closed(fd, size))
		return 1;
	if (!scan.has_event)
		return 0;
	r = scan.end ? mend_close(fd, scan.end, close + 1) : mend_close(fd, scan.line_end, close);
	/* Disk full: drop a line to make room. */
	return r < 0 && scan.roomy ? mend_close(fd, scan.roomy, close) : r;
}

/* End of a leading array of events; 0: not closed. */
static off_t json_find_text(int fd, off_t size, char *piece)
{
	const off_t len = sizeof(JSON_TEXT_BEHIND) - 1;

	for (off_t at = 0; at + len <= size; at += (off_t)MEND_PIECE - len) {
		ssize_t n = pread_full(fd, piece, MEND_PIECE, at);
		const char *found;

		if (n < 0)
			return n;
		found = memmem(piece, (size_t)n, JSON_TEXT_BEHIND, (size_t)len);
		if (found)
			return at + (found - piece);
	}
	return 0;
}

/* End of the last whole event in a leading array; 0: none. */
static off_t json_last_event(int fd, off_t size)
{
	off_t end = mend_last_line(fd, size);
	char before[3];

	/* The head contains no recorded event. */
	if (end <= (off_t)sizeof(JSON_EVENTS_HEAD))
		return MIN(end, 0);
	if (pread_full(fd, before, sizeof(before), end - (off_t)sizeof(before)) != sizeof(before))
		return -EIO;
	/* Before a comma, or before "]" and a comma. */
	return end - 2 - (before[0] == ']');
}

static int json_mend_events(int fd, off_t size, char *piece)
{
	static const char ending[] = "]}\n";
	off_t end = json_find_text(fd, size, piece);
	int r;

	if (end > 0) {
		r = json_mend_text(fd, end + (off_t)sizeof(JSON_TEXT_BEHIND) - 1, size, piece,
				   text_close);
		/* No line, or no room to close the text: keep the events only. */
		return r && !mend_is_full(r) ? r : mend_close(fd, end, ending);
	}
	end = end < 0 ? end : json_last_event(fd, size);
	if (end <= 0)
		return end < 0 ? (int)end : mend_cut(fd, 0);
	r = mend_close(fd, end, ending);
	/* Disk full: drop the last event to make room. */
	if (mend_is_full(r))
		end = json_last_event(fd, end);
	return mend_is_full(r) && end > 0 ? mend_close(fd, end, ending) : r;
}

/* -EBADMSG: another kind of file. */
int json_mend(int fd, off_t size)
{
	_cleanup_free_ char *piece = malloc(MEND_PIECE);
	ssize_t n;
	int r;

	if (!piece)
		return -ENOMEM;
	n = pread_full(fd, piece, MAX(sizeof(JSON_TEXT_HEAD), sizeof(JSON_EVENTS_HEAD)) - 1, 0);
	if (n < 0)
		return (int)n;
	if (n > 0 && *piece == '[')
		return json_mend_array(fd, size);
	if (json_is_begun(piece, (size_t)n, JSON_EVENTS_HEAD))
		return json_mend_events(fd, size, piece);
	if (!json_is_begun(piece, (size_t)n, JSON_TEXT_HEAD))
		return -EBADMSG;
	r = json_mend_text(fd, sizeof(JSON_TEXT_HEAD) - 1, size, piece, text_close_alone);
	if (mend_is_full(r))
		r = json_mend_text(fd, sizeof(JSON_TEXT_HEAD) - 1, size, piece, text_close);
	return r ? r : mend_cut(fd, 0);
}
