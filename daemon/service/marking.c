/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/marking.h"

#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/marks/marks.h"
#include "daemon/service/accounts.h"

/* May be late: a ring that fills earlier wakes the daemon. */
#define LATE_US 10000
/* One user's marks may take this part of what is left for a recording. */
#define SHARE_PART 4

static uid_t marking_account(void *userdata, uid_t uid)
{
	return accounts_of(userdata, uid);
}

static struct marks_limits marking_limits(const struct manager *m)
{
	const struct config *c = &m->config;

	return (struct marks_limits){
		.producers = c->mark_programs,
		.producers_per_user = MAX(c->mark_programs / 4, 1U),
		.rings_per_user = c->mark_rings,
		.bytes_per_user = c->mark_memory,
		.rate_per_user = c->mark_rate,
		.account = marking_account,
		.userdata = m->accounts,
	};
}

static void marking_set_timer(struct manager *m)
{
	uint64_t at = marks_deadline(m->marks);

	if (at == UINT64_MAX) {
		loop_source_enable(m->marks_tick, false);
		return;
	}
	loop_timer_at(m->marks_tick, at / NSEC_PER_USEC);
}

static void marking_on_program(void *userdata, int fd _unused_, uint32_t revents _unused_)
{
	struct manager *m = userdata;

	loop_doing("messages of programs that make marks", NULL);
	marks_dispatch(m->marks);
	marking_set_timer(m);
}

static void marking_on_tick(void *userdata)
{
	struct manager *m = userdata;

	loop_doing("reading marks", NULL);
	marks_drain(m->marks);
	marking_set_timer(m);
}

static int marking_add_sources(struct manager *m)
{
	int r = loop_add_io(m->loop, &m->marks_io, marks_fd(m->marks), EPOLLIN, marking_on_program,
			    m);

	if (r >= 0)
		r = loop_add_timer(m->loop, &m->marks_tick, CLOCK_MONOTONIC, LATE_US,
				   marking_on_tick, m);
	return r;
}

void marking_open(struct manager *m)
{
	_cleanup_free_ char *folder = strdup(m->config.socket);
	_cleanup_error_ struct error err = ERROR_INIT;
	struct marks_limits limits = marking_limits(m);
	int r;

	if (!m->config.marks || !folder)
		return;
	*(strrchr(folder, '/') ?: folder) = '\0';
	r = marks_new(&m->marks, folder, m->options.private, &limits, m->closer, &err);
	if (r >= 0) {
		r = marking_add_sources(m);
		if (r < 0)
			error_errno(&err, r, "can't watch the socket of marks");
	}
	if (r >= 0)
		return;
	m->marks_elsewhere = r == -EADDRINUSE;
	marking_close(m);
	log_write(m->options.private ? LOG_INFO : LOG_WARNING, NULL,
		  "applications' marks are not recorded: %s", err.message);
}

void marking_close(struct manager *m)
{
	m->marks_io = loop_source_free(m->marks_io);
	m->marks_tick = loop_source_free(m->marks_tick);
	m->marks = marks_free(m->marks);
}

void marking_reload(struct manager *m)
{
	struct marks_limits limits = marking_limits(m);

	if (m->marks)
		marks_set_limits(m->marks, &limits);
}

/* The capture sees a write error, too: its next dispatch ends the recording. */
static int marking_write_chunk(void *userdata, enum chunk_type type, const struct iovec *iov,
			       int count)
{
	struct session *s = userdata;
	int r;

	draining_lock(s->draining);
	r = capture_append(s->capture, type, iov, count);
	draining_unlock(s->draining);
	return r;
}

/* A stream is not limited in all, as its spool shrinks again: it takes marks while half of the room
 * is left. */
static uint64_t marking_share(void *userdata)
{
	const struct session *s = userdata;
	uint64_t room = draining_room(s);

	if (s->streamed)
		return spool_bytes(&s->spool) <= room ? UINT64_MAX : 0;
	return room / SHARE_PART;
}

static void marking_note(struct session *s, const char *text, enum note_kind kind)
{
	draining_lock(s->draining);
	capture_note(s->capture, text, kind);
	draining_unlock(s->draining);
}

void marking_begin(struct session *s)
{
	struct manager *m = s->manager;
	struct marks_count count;

	if (m->marks_elsewhere && !s->ring)
		marking_note(s, "no applications' marks were taken: another traced takes them",
			     NOTE_PLAIN);
	if (!m->marks || s->ring)
		return;
	s->marks = (struct marks_sink){ .write = marking_write_chunk,
					.share = marking_share,
					.userdata = s };
	if (marks_begin(m->marks, &s->marks) < 0) {
		marking_note(s, "no applications' marks were taken: too many recordings take them",
			     NOTE_PLAIN);
		return;
	}
	marks_get_count(m->marks, &count);
	s->marks_refused = count.refused;
	marking_set_timer(m);
}

static void marking_note_refused(struct session *s)
{
	struct marks_count count;
	char text[160];

	marks_get_count(s->manager->marks, &count);
	count.refused += s->marks.missing;
	if (count.refused == s->marks_refused)
		return;
	snprintf(text, sizeof(text),
		 "marks of %u program%s or thread%s are missing: they exceed a user's limits "
		 "(mark_... in traced.conf), or are invalid",
		 count.refused - s->marks_refused, plural_s(count.refused - s->marks_refused),
		 plural_s(count.refused - s->marks_refused));
	marking_note(s, text, NOTE_MARKS_LOST);
}

void marking_end(struct session *s)
{
	struct manager *m = s->manager;

	if (!m || !m->marks || !s->marks.generation)
		return;
	marks_end(m->marks, &s->marks);
	marking_note_refused(s);
	marking_set_timer(m);
}
