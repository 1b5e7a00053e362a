/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "progress.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"

void progress_init(struct progress *p, bool wanted, int out)
{
	const char *term = getenv("TERM");

	p->shown = false;
	p->on = wanted && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0 &&
		!(out >= 0 && isatty(out));
}

void progress_text(struct progress *p, const char *text)
{
	if (!p->on)
		return;
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
	p->shown = true;
}

void progress_record(struct progress *p, uint64_t duration_ns)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_puts(&line, "recording for ");
	format_duration(duration_ns, &line);
	buf_puts(&line, "; Ctrl-C ends it early");
	progress_text(p, buf_string(&line) ?: "");
}

void progress_session(struct progress *p, const Traced__Control__Session *s)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	if (!p->on)
		return;
	format_duration(s->elapsed_ns, &line);
	if (s->duration_ns) {
		buf_puts(&line, " of ");
		format_duration(s->duration_ns, &line);
	}
	buf_puts(&line, "  ");
	format_count(s->events, &line);
	buf_puts(&line, " events  ");
	format_bytes(s->bytes, &line);
	buf_puts(&line, "  ");
	format_count(s->lost, &line);
	buf_puts(&line, " lost");
	progress_text(p, buf_string(&line) ?: "");
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
