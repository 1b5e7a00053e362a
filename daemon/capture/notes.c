/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording's warnings, for the caller and for the stream. */
#include <stdarg.h>

#include "base/io.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "daemon/capture/recording.h"
#include "proto/capture.pb-c.h"

/* Leaves room for the message's other fields, and for the mark of a cut. */
#define NOTE_TEXT_MAX (STREAM_NOTE_MAX - 64)

static void add_warning(struct capture *c, bool missing, const char *fmt, va_list ap)
{
	char *text;

	if (vec_reserve_exact(c->warnings, c->warning_count, 1) < 0)
		return;
	if (vasprintf(&text, fmt, ap) < 0)
		return;
	/* Each text is reported once. */
	for (size_t i = 0; i < c->warning_count; i++) {
		if (strcmp(c->warnings[i], text) == 0) {
			free(text);
			return;
		}
	}
	if (missing && c->warning_count < STREAM_NOTES_MAX)
		c->warnings_missing |= UINT64_C(1) << c->warning_count;
	c->warnings[c->warning_count++] = text;
}

void capture_warn(struct capture *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_warning(c, false, fmt, ap);
	va_end(ap);
}

void capture_warn_missing(struct capture *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_warning(c, true, fmt, ap);
	va_end(ap);
}

static int write_note(struct capture *c, const char *text, bool missing)
{
	static const char cut[] = " ...";
	Traced__Capture__Note note = TRACED__CAPTURE__NOTE__INIT;
	char clipped[NOTE_TEXT_MAX + sizeof(cut)];
	size_t len = utf8_clip(text, NOTE_TEXT_MAX);

	snprintf(clipped, sizeof(clipped), "%.*s%s", (int)len, text, text[len] ? cut : "");
	note.text = clipped;
	note.boot_ns = now_ns(CLOCK_BOOTTIME);
	note.missing = missing;
	return stream_write_message(&c->writer, CHUNK_NOTE, &note.base);
}

int capture_write_notes(struct capture *c)
{
	int r = 0;

	while (r == 0 && c->warnings_noted < c->warning_count) {
		size_t n = c->warnings_noted++;

		if (n + 1 < STREAM_NOTES_MAX)
			r = write_note(c, c->warnings[n], c->warnings_missing >> n & 1);
		else if (n + 1 == STREAM_NOTES_MAX)
			r = write_note(c, "there are more notes than a stream holds", true);
	}
	return r;
}

int capture_note(struct capture *c, const char *text)
{
	int r;

	if (!c->streaming)
		return -EOPNOTSUPP;
	r = c->full ? -EDQUOT : write_note(c, text, false);
	c->full |= r == -EDQUOT;
	return r;
}

int capture_append(struct capture *c, enum chunk_type type, const struct iovec *iov, int count)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r;

	if (!c->streaming)
		return -EOPNOTSUPP;
	r = c->full ? -EDQUOT : stream_write_pieces(&c->writer, type, iov, count);
	c->full |= r == -EDQUOT;
	c->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return r;
}
