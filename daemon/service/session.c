/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording from its Start request to the last reply about it.
 *
 * The problem: a recording outlives the request that started it, and perhaps its client. Several
 * clients may wait for it; exports run beside it and can fail; the daemon may stop at any time.
 * Still the recording must never be lost silently, and the kernel must be restored as soon as the
 * rings are drained, not when the last client has its file.
 *
 *	session_start     session_armed       session_end                  conclude
 *	     │                 │                   │                           │
 *	     ▼                 ▼                   ▼                           ▼
 *	  ARMING ────────▶ RECORDING ───────▶ DRAINING ─┬─▶ EXPORTING ──┬──▶ freed
 *	     │ worker:         │ loop:             │     │       ▲       │
 *	     │ instances,      │ draining.c        │     │       │ a job │ spool kept or
 *	     │ settings        │ reads rings       │     ├─▶ STOPPED     │ discarded
 *	     ▼                 ▼                   ▼     └─▶ FAILED ─────┘ when reported
 *	  fail_to_start     cancel          capture goes to the worker,
 *	  tells all jobs    tells all jobs  which removes the instances
 *
 * Invariants:
 * - `arming` and `capture` are never set together. While arming, an end is only noted
 *   (end_wanted), because the worker owns the capture until session_armed().
 * - finish() is the only way from RECORDING to an ended session with a recording. It drains,
 *   writes END, keeps the last description in `last`, and gives the capture to the worker, which
 *   restores the kernel at once, however long exports take.
 * - A job points to its session, never the reverse. A session finds its jobs in the manager's
 *   list, and session_free() clears their pointers.
 * - conclude() alone decides about an ended session, and only while no export of it runs:
 *   a failed export keeps the spool, since its error has named the file; a written, unwanted or
 *   reported one discards it; otherwise the session stays STOPPED until somebody fetches it.
 *   `settling` keeps it from running inside the loop over jobs, which it could free.
 * - Without a reader there is no recording: if the export that follows one ends, the recording
 *   ends, too, and if a client leaves without an output, its session is discarded.
 * - The first problem is the one reported (`note`): later ones are mostly its consequences.
 * - Functions marked "may free s" may do so by a job's end. Callers must not use s afterwards.
 *
 * A flight recorder (ring) has no spool while it runs. It gets one for each snapshot, and a last
 * one in finish_stream().
 *
 * Arming and removing run in the worker because the kernel waits in them for RCU grace periods,
 * tens of milliseconds, in which other sessions' rings would overflow. Start, mark, snapshot and
 * draining run in the loop; CHARGED() counts their CPU time for the session.
 */
#include "daemon/service/session.h"

#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/service/arming.h"
#include "daemon/service/audit.h"
#include "daemon/service/draining.h"
#include "daemon/service/job.h"
#include "daemon/service/marking.h"
#include "daemon/service/policy.h"
#include "traced/stream.h"

/* The stream's limit exceeds ours by this, so that its closing chunks fit. */
#define STREAM_SLACK (UINT64_C(64) << 20)

void session_log(const struct session *s, int level, int error, const char *text)
{
	const char *id = level == LOG_WARNING ? AUDIT_CUT_SHORT : NULL;
	struct log_fields fields = {
		.session = s->name, .cpu = -1, .error = -error, .message_id = id
	};

	log_write(level, &fields, "%s: %s", s->name, text);
}

struct session *session_free(struct session *s)
{
	struct manager *m;

	if (!s)
		return NULL;
	m = s->manager;
	draining_end(s);
	arming_forget(s->arming);
	if (m) {
		struct job *j;

		marking_end(s);
		capture_retire(m, s->capture);
		metrics_session_over(s);

		TAILQ_FOREACH(j, &m->jobs, list)
		if (j->session == s)
			j->session = NULL;
		TAILQ_REMOVE(&m->sessions, s, list);
		m->session_count--;
		manager_changed(m);
	}
	spool_deinit(&s->spool);
	if (s->last)
		traced__control__session__free_unpacked(s->last, NULL);
	free(s->name);
	free(s->what);
	free(s->error);
	free(s->granted);
	free(s->note);
	free(s);
	return NULL;
}

/* Runs statement and charges its time to the session. */
#define CHARGED(s, statement)                                                                      \
	do {                                                                                       \
		uint64_t before_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);                              \
                                                                                                   \
		statement;                                                                         \
		(s)->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;                        \
	} while (0)

void session_note(struct session *s, int code, const char *text)
{
	if (s->note)
		return;
	s->note = strdup(text);
	session_log(s, s->manager->options.private ? LOG_INFO : LOG_WARNING, code, text);
}

void session_end_in_trouble(struct session *s, int code, const char *message)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	bool full = code == -ENOSPC || code == -EDQUOT || code == -EFBIG;

	buf_printf(&text, "the recording ended early: %s%s", message,
		   code == -EFBIG ? " (ulimit -f)" : "");
	session_note(s, code, buf_string(&text) ?: "the recording ended early");
	session_end(s, full ? CAPTURE_END_NO_SPACE : CAPTURE_END_FAILED);
}

bool session_is_followed(const struct session *s)
{
	const struct job *j;

	TAILQ_FOREACH(j, &s->manager->jobs, list)
	if (job_awaits(j, s) && j->follow)
		return true;
	return false;
}

void session_wake_followers(struct session *s)
{
	struct job *j;

	TAILQ_FOREACH(j, &s->manager->jobs, list)
	if (job_awaits(j, s) && j->follow)
		follow_wake(j->follow);
}

static int make_spool(const struct session *s, struct spool *ret, struct error *err)
{
	const struct config *config = &s->manager->config;

	return spool_create(ret, config->spool_dir, s->name, s->uid, config->min_free, err);
}

static int arm(struct session *s, struct start_plan *plan, struct error *err)
{
	uint64_t stream_max = policy_stream_max(s->manager, s->uid);
	int r;

	plan->request.name = plan->name;
	/* A followed recording limits its backlog, not its stream. */
	plan->request.stream_limit = stream_max && !s->streamed ? stream_max + STREAM_SLACK : 0;
	if (!s->ring) {
		r = make_spool(s, &s->spool, err);
		if (r < 0)
			return r;
	}
	return arming_start(&s->arming, s, plan, err);
}

int session_start(struct session **ret, struct connection *client,
		  const Traced__Control__Start *start, struct error *err)
{
	struct manager *m = client->manager;
	_cleanup_(start_plan_deinit) struct start_plan plan = { 0 };
	_cleanup_(session_freep) struct session *s = NULL;
	int r;

	r = start_plan_make(&plan, m, client->uid, start, err);
	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_errno(err, -ENOMEM, "session");
	s->spool = SPOOL_INIT;
	s->client = start->detached ? NULL : client;
	s->uid = client->uid;
	s->pid = client->pid;
	audit_comm(m->env.proc, s->pid, s->comm);
	s->name = strdup(plan.name);
	s->what = TAKE_PTR(plan.what);
	s->granted = TAKE_PTR(plan.note);
	s->ring = start->ring;
	s->tgid = start->tgid;
	s->streamed = start->stream;
	s->duration_ns = plan.request.duration_ns;
	s->buffer_bytes = plan.request.buffer_bytes;
	s->memory_bytes = plan.memory_bytes;
	s->spool_elsewhere = plan.spool_elsewhere;
	s->state = TRACED__CONTROL__SESSION__STATE__ARMING;
	s->manager = m;
	TAILQ_INSERT_TAIL(&m->sessions, s, list);
	m->session_count++;
	r = s->name ? arm(s, &plan, err) : error_errno(err, -ENOMEM, "session");
	if (r < 0) {
		spool_discard(&s->spool);
		return r;
	}
	manager_changed(m);
	*ret = TAKE_PTR(s);
	return 0;
}

static int begin(struct session *s, struct error *err)
{
	int r;

	CHARGED(s, r = capture_start(s->capture, s->ring ? -1 : s->spool.fd, err));
	if (r < 0)
		return r;
	r = draining_begin(s);
	return r < 0 ? error_errno(err, r, "can't watch the recording") : 0;
}

/* Reports the error to everybody who waits for the session. Frees s. */
static void fail_to_start(struct session *s, const struct error *err)
{
	struct job *j, *next;

	for (j = TAILQ_FIRST(&s->manager->jobs); j; j = next) {
		next = TAILQ_NEXT(j, list);
		if (j->session != s)
			continue;
		j->session = NULL;
		job_fail(j, err);
	}
	spool_discard(&s->spool);
	session_free(s);
}

void session_armed(struct session *s, struct capture *capture, uint64_t cpu_ns, struct error *err)
{
	struct job *j, *next;

	s->arming = NULL;
	s->capture = capture;
	s->cpu_ns += cpu_ns;
	if (!capture || begin(s, err) < 0) {
		fail_to_start(s, err);
		return;
	}
	marking_begin(s);
	s->state = TRACED__CONTROL__SESSION__STATE__RECORDING;
	audit_started(s);
	manager_changed(s->manager);
	for (j = TAILQ_FIRST(&s->manager->jobs); j; j = next) {
		next = TAILQ_NEXT(j, list);
		if (j->session == s && j->kind == JOB_START)
			job_started(j);
	}
	if (s->end_wanted)
		session_end(s, s->end_reason);
}

int session_snapshot(struct session *s, struct spool *ret, struct error *err)
{
	int r;

	if (policy_spool_exceeded(s->manager, s->uid, s->spool_elsewhere, 100))
		return error_set(err, -EDQUOT,
				 "your recordings that are not written out yet fill the space that "
				 "[users] of traced.conf allows");
	r = make_spool(s, ret, err);
	if (r < 0)
		return r;
	CHARGED(s, r = capture_snapshot(s->capture, ret->fd, CAPTURE_END_SNAPSHOT, err));
	if (r < 0)
		spool_discard(ret);
	return r;
}

int session_mark(struct session *s, const char *text, struct error *err)
{
	int r;

	CHARGED(s, r = capture_mark(s->capture, text, err));
	return r;
}

int session_sync(struct session *s, const char *id, struct capture_sync *ret, struct error *err)
{
	int r;

	CHARGED(s, r = capture_sync(s->capture, id, ret, err));
	return r;
}

static int finish_stream(struct session *s, enum capture_end reason, struct error *err)
{
	int r;

	if (s->ring) {
		r = make_spool(s, &s->spool, err);
		if (r < 0)
			return r;
		r = capture_snapshot(s->capture, s->spool.fd, reason, err);
		if (r < 0)
			return r;
	}
	return capture_stop(s->capture, reason, err);
}

/* Ends the stream, and has the worker restore the kernel. */
static void finish(struct session *s, enum capture_end reason)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r;

	s->state = TRACED__CONTROL__SESSION__STATE__DRAINING;
	draining_end(s);
	marking_end(s);
	CHARGED(s, r = finish_stream(s, reason, &err));
	if (r < 0) {
		buf_printf(&text, "the end of the recording is missing: %s",
			   err.message ?: strerror(-r));
		session_note(s, r, buf_string(&text) ?: "the end of the recording is missing");
	} else if (reason == CAPTURE_END_SHUTDOWN) {
		session_note(s, 0, "the recording ended early: traced was stopped");
	}
	s->last = session_describe_capture(s);
	audit_ended(s, audit_reason(reason));
	capture_retire(s->manager, TAKE_PTR(s->capture));
	s->state = TRACED__CONTROL__SESSION__STATE__STOPPED;
	if (r >= 0 || spool_check(&s->spool, 0, STREAM_MAGIC_SIZE) == -EDQUOT)
		return;
	s->state = TRACED__CONTROL__SESSION__STATE__FAILED;
	s->error = err.message ? strdup(err.message) : NULL;
}

void session_end(struct session *s, enum capture_end reason)
{
	if (s->arming && !s->end_wanted) {
		s->end_wanted = true;
		s->end_reason = reason;
	}
	if (!session_records(s))
		return;
	finish(s, reason);
	session_settle(s);
}

static bool exports(const struct session *s)
{
	const struct job *j;

	TAILQ_FOREACH(j, &s->manager->jobs, list)
	if (job_awaits(j, s) && j->child)
		return true;
	return false;
}

/* Decides what happens to an ended session, unless an export of it still runs. May free s. */
static void conclude(struct session *s)
{
	if (exports(s)) {
		s->state = TRACED__CONTROL__SESSION__STATE__EXPORTING;
	} else if (s->export_failed) {
		/* Keep the spool: the export's error message named it. */
		session_free(s);
		return;
	} else if (s->written || s->unwanted || s->told) {
		spool_discard(&s->spool);
		session_free(s);
		return;
	} else if (s->state == TRACED__CONTROL__SESSION__STATE__EXPORTING) {
		s->state = TRACED__CONTROL__SESSION__STATE__STOPPED;
	}
	manager_changed(s->manager);
}

void session_settle(struct session *s)
{
	struct job *j, *next;

	s->settling = true;
	for (j = TAILQ_FIRST(&s->manager->jobs); j; j = next) {
		next = TAILQ_NEXT(j, list);
		if (job_awaits(j, s) && j->follow)
			follow_end(j->follow);
		if (!job_awaits(j, s) || j->child)
			continue;
		if (s->state == TRACED__CONTROL__SESSION__STATE__FAILED) {
			_cleanup_error_ struct error err = ERROR_INIT;

			error_set(&err, -EIO, "%s: %s", s->name,
				  s->error ?: "the recording failed");
			job_fail(j, &err);
			s->told = true;
			continue;
		}
		/* Another client may want the recording that this one discards. */
		if (j->kind == JOB_STOP && !job_has_output(j) && !session_has_output(s))
			s->unwanted = true;
		job_run(j);
	}
	s->settling = false;
	conclude(s);
}

void session_job_over(struct session *s, bool written)
{
	if (written)
		s->written = true;
	else
		s->export_failed = true;
	/* A follower ended while recording: nobody reads the stream any more. */
	if (session_records(s)) {
		session_end(s, CAPTURE_END_FAILED);
		return;
	}
	if (!s->settling)
		conclude(s);
}

bool session_has_output(const struct session *s)
{
	const struct job *j;

	TAILQ_FOREACH(j, &s->manager->jobs, list)
	if (job_awaits(j, s) && job_has_output(j))
		return true;
	return false;
}

/* hint: how to fix it, or NULL. Frees s. */
static void cancel(struct session *s, int level, const char *why, const char *hint)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct job *j, *next;

	error_set(&err, -ECANCELED, "%s: %s", s->name, why);
	if (hint)
		error_hint(&err, "%s", hint);
	if (session_records(s)) {
		s->last = session_describe_capture(s);
		audit_ended(s, why);
	} else {
		session_log(s, level, 0, why);
	}
	for (j = TAILQ_FIRST(&s->manager->jobs); j; j = next) {
		next = TAILQ_NEXT(j, list);
		if (j->session != s)
			continue;
		j->session = NULL;
		/* A snapshot has its own stream and continues. */
		if (j->kind != JOB_SNAPSHOT)
			job_fail(j, &err);
	}
	spool_discard(&s->spool);
	session_free(s);
}

void session_cancel(struct session *s, const char *why)
{
	cancel(s, LOG_INFO, why, NULL);
}

void session_client_left(struct session *s)
{
	s->client = NULL;
	/* An export that has not begun ends with its client. */
	if (s->arming || !session_has_output(s))
		session_cancel(s, "its client has left: discarded");
	else
		session_end(s, CAPTURE_END_STOPPED);
}

void session_shut_down(struct session *s)
{
	bool attended = s->client || session_has_output(s);

	if (s->arming && !session_has_output(s)) {
		session_cancel(s, "the daemon stops: discarded");
		return;
	}
	if (!attended) {
		if (session_records(s))
			finish(s, CAPTURE_END_SHUTDOWN);
		session_leave(s);
		return;
	}
	/* Notify waiting clients; each then fetches the partial recording. */
	session_end(s, CAPTURE_END_SHUTDOWN);
}

void session_leave(struct session *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT, hint = BUF_INIT;

	/* session_shut_down() has already ended all recordings. */
	if (s->arming || exports(s))
		return;
	if (s->state == TRACED__CONTROL__SESSION__STATE__FAILED) {
		session_cancel(s, s->error ?: "failed");
		return;
	}
	buf_printf(&text, "the daemon stops: its recording is in %s", s->spool.path);
	buf_printf(&hint, "%stracectl convert %s FILE", s->uid ? "sudo " : "", s->spool.path);
	spool_deinit(&s->spool);
	cancel(s, LOG_NOTICE, buf_string(&text) ?: "the daemon stops", buf_string(&hint));
}
