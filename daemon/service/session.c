/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording from its Start request to the last reply about it.
 *
 * The problem: a recording outlives the request that started it, and perhaps its client. Several
 * clients may wait for it; exports run beside it and can fail; the daemon may stop at any time.
 * Still the recording must never be lost silently, and the kernel must be restored as soon as the
 * rings are drained, not when the last client has its file.
 *
 *	session_start   session_armed   session_end              session_conclude
 *	     │               │              │                           │
 *	     ▼               ▼              ▼                           ▼
 *	  ARMING ──────▶ RECORDING ────▶ DRAINING ─┬─▶ STOPPED ─┬─▶ EXPORTING ─┬─▶ OVER
 *	     │ worker:       │ thread:      │      └─▶ FAILED ──┴──────────────┘    ▲
 *	     │ instances,    │ draining.c   ▼                                       │
 *	     │ settings      │ reads rings  the worker removes the instances        │
 *	     └───────────────┴──────────────────────────────────────────────────────┘
 *	                      cancelled: all waiting jobs get an error
 *
 * session_state.c has the table of all transitions. Any state can be cancelled.
 *
 * Invariants:
 * - While arming, an end is only noted (end_wanted), because the worker owns the capture until
 *   session_armed().
 * - session_finish() is the only way from RECORDING to an ended session with a recording. It has
 *   the session's thread drain the rings and write END. session_finished() keeps the last
 *   description in `last` and gives the capture to the worker, which restores the kernel at once,
 *   however long exports take.
 * - A session has a list of the jobs that wait for it. When it is over, the list is empty.
 * - session_conclude() alone decides about an ended session, and only while no export of it runs:
 *   a failed export keeps the spool, since its error has named the file; an unneeded recording is
 *   discarded; otherwise the session stays until somebody fetches it.
 * - Without a reader there is no recording: if the export that follows one ends, the recording
 *   ends, too, and if a client leaves without an output, its session is discarded.
 * - A start with an output (follow) starts the exporter once it is armed. Tracing begins when that
 *   waits for the stream, or after FOLLOWER_US.
 * - The first problem is the one reported (`note`): later ones are mostly its consequences.
 * - Nothing here is freed under a caller. A session that is over has left the manager's list, has
 *   no jobs, no sources in the loop and no spool. Its memory stays until manager_reap().
 *
 * A flight recorder (ring) has no spool while it runs. It gets one for each snapshot, and a last
 * one in session_finish().
 *
 * Arming and removing run in the worker because the kernel waits in them for RCU grace periods,
 * tens of milliseconds. Reading, snapshots and the end of the stream run in the session's thread
 * (draining.h), so that no client's request delays them, nor they the loop. Start and marks run in
 * the loop. The capture counts its CPU time.
 */
#include "daemon/service/session.h"
#include "daemon/capture/plan/hists.h"

#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/service/arming.h"
#include "daemon/service/audit.h"
#include "daemon/service/draining.h"
#include "daemon/service/job.h"
#include "daemon/service/marking.h"
#include "daemon/service/policy.h"
#include "formats/formats.h"
#include "traced/stream.h"

/* Longer ones are cut. */
#define PLACE_LEN_MAX 4096

/* How long a start waits for the export that follows, which takes 20 ms on an idle machine. */
#define FOLLOWER_US 2000000

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

static void session_set_last(struct session *s, Traced__Control__Session *d)
{
	if (s->last)
		traced__control__session__free_unpacked(s->last, NULL);
	s->last = d;
}

void session_set_followed(struct session *s, Traced__Control__ExportResult *result)
{
	if (s->followed)
		traced__control__export_result__free_unpacked(s->followed, NULL);
	s->followed = result;
}

struct session *session_free(struct session *s)
{
	if (!s)
		return NULL;
	session_set_last(s, NULL);
	free(s->name);
	free(s->what);
	retirement_free(s->retirement);
	free(s->error);
	free(s->granted);
	free(s->note);
	free(s->place);
	session_set_followed(s, NULL);
	free(s);
	return NULL;
}

/* Nobody uses the capture any more, but its thread perhaps. */
static void session_retire(struct session *s)
{
	if (s->arming)
		arming_forget(s->arming, TAKE_PTR(s->retirement));
	else if (s->capture)
		retirement_submit(TAKE_PTR(s->retirement), TAKE_PTR(s->capture),
				  TAKE_PTR(s->draining), TAKE_FD(s->stream_fd));
	s->arming = NULL;
}

/* The stream has its end, or there will be none. */
static void session_dismiss_watchers(struct session *s)
{
	struct job *j;

	while ((j = TAILQ_FIRST(&s->watchers)))
		job_watched_all(j);
}

/* Jobs that still wait end without a reply: there are some only at the daemon's end. */
static void session_over(struct session *s, enum session_event event)
{
	struct manager *m = s->manager;
	struct job *j;
	bool kept;

	if (!session_pass(s, event))
		return;
	while ((j = TAILQ_FIRST(&s->jobs)))
		job_over(j);
	session_dismiss_watchers(s);
	s->begin = loop_source_free(s->begin);
	s->awaits_follower = false;
	command_forget(&s->command, m->closer, s->account);
	draining_end(s->draining);
	marking_end(s);
	metrics_session_over(s);
	session_retire(s);
	kept = s->spool.path;
	spool_deinit(&s->spool);
	TAILQ_REMOVE(&m->sessions, s, list);
	if (kept)
		policy_spool_kept(m, s->account);
	m->session_count--;
	TAILQ_INSERT_TAIL(&m->over.sessions, s, list);
	manager_reap_later(m);
	manager_changed(m);
}

static void session_fail_jobs(struct session *s, const struct error *err)
{
	struct job *j;

	while ((j = TAILQ_FIRST(&s->jobs)))
		job_fail(j, err);
}

void session_abandon(struct session *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (s->state != SESSION_ARMING && s->state != SESSION_FAILED && s->spool.path) {
		buf_printf(&text, "the daemon stops: its recording is in %s", s->spool.path);
		session_log(s, LOG_NOTICE, 0, buf_string(&text) ?: "the daemon stops");
	}
	session_over(s, SESSION_CANCELLED);
}

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

	if (s->spool.client_max)
		return true;
	TAILQ_FOREACH(j, &s->jobs, list)
	if (j->follow || (j->kind == JOB_START && job_has_output(j)))
		return true;
	return false;
}

bool session_starves_followers(const struct session *s)
{
	const struct job *j;

	TAILQ_FOREACH(j, &s->jobs, list)
	if (j->follow && follow_starves(j->follow))
		return true;
	return false;
}

uint64_t session_followers_cpu_ns(const struct session *s)
{
	const struct job *j;
	uint64_t ns = 0;

	TAILQ_FOREACH(j, &s->jobs, list)
	if (j->follow)
		ns += follow_cpu_ns(j->follow);
	TAILQ_FOREACH(j, &s->watchers, of_watched)
	ns += follow_cpu_ns(j->follow);
	return ns;
}

void session_wake_followers(struct session *s)
{
	struct job *j;

	TAILQ_FOREACH(j, &s->jobs, list)
	if (j->follow)
		follow_wake(j->follow);
	TAILQ_FOREACH(j, &s->watchers, of_watched)
	follow_wake(j->follow);
}

static int session_make_spool(const struct session *s, struct spool *ret, struct error *err)
{
	const struct config *config = &s->manager->config;

	return spool_create(ret, config->spool_dir, s->name, s->uid,
			    policy_min_free(s->manager, s->uid), err);
}

static int session_arm(struct session *s, struct start_plan *plan, struct error *err)
{
	uint64_t stream_max = policy_stream_max(s->manager, s->uid);
	int r;

	plan->request.name = plan->name;
	plan->request.owner = s->uid;
	/* A followed recording limits its backlog, not its stream. */
	plan->request.stream_limit = stream_max && !s->streamed ? stream_max + STREAM_SLACK : 0;
	if (!s->ring && s->spool.fd < 0) {
		r = session_make_spool(s, &s->spool, err);
		if (r < 0)
			return r;
	}
	return arming_start(&s->arming, s, plan, err);
}

/* Takes the file for the stream from the client's descriptors. */
static int session_use_file(struct session *s, const Traced__Control__Start *start, int *fds,
			    size_t fd_count, struct error *err)
{
	if (!policy_trusts(s->uid))
		return error_set(err, -EPERM, "only root may have a file of its own for a stream");
	if (!s->streamed || start->held || start->detached || !fd_count)
		return error_set(
			err, -EINVAL,
			"a file for the stream is for a recording that its client follows");
	return spool_use(&s->spool, fds[0], start->client_file_max, err);
}

static void session_on_command(void *userdata, int fd _unused_, uint32_t revents _unused_)
{
	struct session *s = userdata;

	session_end(s, CAPTURE_END_COMMAND_EXITED);
	command_forget(&s->command, s->manager->closer, s->account);
}

/* Whether a Start asks for a stream that only conditions are evaluated on. */
static bool session_is_for_conditions(const Traced__Control__Start *start)
{
	const struct export_format *format =
		start->output ? export_format_find(start->output->format, NULL) : NULL;

	return start->stream && format && format->only_live;
}

int session_start(struct session **ret, struct connection *client,
		  const Traced__Control__Start *start, int *fds, size_t fd_count, struct error *err)
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
	s->command = COMMAND_INIT;
	s->stream_fd = -EBADF;
	s->client = start->detached ? NULL : client;
	s->uid = client->uid;
	s->account = client->account;
	s->pid = client->pid;
	audit_comm(m->env.proc, s->pid, s->comm);
	s->name = strdup(plan.name);
	s->place = *start->place ? strndup(start->place, PLACE_LEN_MAX) : NULL;
	s->what = TAKE_PTR(plan.what);
	s->granted = TAKE_PTR(plan.note);
	s->ring = start->ring;
	s->tgid = start->tgid;
	s->streamed = start->stream;
	s->for_conditions = session_is_for_conditions(start);
	/* The kernel takes or refuses triggers when the recording begins. */
	s->settles = start->settle && (start->attach || start->follow) && !start->n_triggers &&
		     !start->n_functions;
	s->duration_ns = plan.request.duration_ns;
	s->buffer_bytes = plan.request.buffer_bytes;
	s->memory_bytes = plan.memory_bytes;
	s->counts_only = capture_counts_only(&plan.request);
	s->spool_elsewhere = plan.spool_elsewhere;
	s->state = SESSION_ARMING;
	s->manager = m;
	TAILQ_INIT(&s->jobs);
	TAILQ_INIT(&s->watchers);
	s->retirement = s->name ? retirement_new(m, s->account) : NULL;
	r = s->retirement ? 0 : error_errno(err, -ENOMEM, "session");
	if (r == 0 && start->held)
		r = command_take(&s->command, s->uid, fds, fd_count, m->loop, session_on_command, s,
				 err);
	if (r == 0 && start->client_file_max)
		r = session_use_file(s, start, fds, fd_count, err);
	if (r == 0)
		r = session_arm(s, &plan, err);
	if (r < 0) {
		command_forget(&s->command, m->closer, s->account);
		spool_discard(&s->spool);
		return r;
	}
	TAILQ_INSERT_TAIL(&m->sessions, s, list);
	m->session_count++;
	manager_changed(m);
	*ret = TAKE_PTR(s);
	return 0;
}

static int session_begin(struct session *s, struct error *err)
{
	int r;

	draining_lock(s->draining);
	r = capture_start(s->capture, s->stream_fd, err);
	draining_unlock(s->draining);
	return r < 0 ? r : draining_begin(s->draining);
}

static void session_not_begun(struct session *s, enum session_event event, const struct error *err)
{
	session_fail_jobs(s, err);
	spool_discard(&s->spool);
	session_over(s, event);
}

/* Start's job is the first, unless its client has left. */
static struct job *session_start_job(const struct session *s)
{
	struct job *j = TAILQ_FIRST(&s->jobs);

	return j && j->kind == JOB_START ? j : NULL;
}

static void session_answer_start(struct session *s)
{
	struct job *j = session_start_job(s);

	if (j)
		job_started(j);
}

static void session_record(struct session *s)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (session_begin(s, &err) < 0) {
		audit_ended(s, "it could not start");
		/* A client that was told of the start has nothing to fetch. */
		if (s->settles)
			err.code = ECANCELED;
		session_not_begun(s, SESSION_CANCELLED, &err);
		return;
	}
	marking_begin(s);
	command_release(&s->command);
	session_answer_start(s);
	if (s->end_wanted)
		session_end(s, s->end_reason);
}

static void session_on_begin(void *userdata)
{
	struct session *s = userdata;

	s->begin = loop_source_free(s->begin);
	session_record(s);
}

/* By the clock of the timer that ends it: one descriptor is set once. */
static int session_begin_in(struct session *s, uint64_t us, void (*begin)(void *userdata))
{
	int r = loop_add_timer(s->manager->loop, &s->begin, CLOCK_BOOTTIME, 0, begin, s);

	if (r >= 0)
		r = loop_timer_in(s->begin, us);
	if (r < 0)
		s->begin = loop_source_free(s->begin);
	return r;
}

static void session_begin_soon(struct session *s)
{
	s->settles = s->settles && !s->end_wanted;
	if (s->end_wanted || session_begin_in(s, s->manager->settle_us, session_on_begin) < 0) {
		s->settles = false;
		session_record(s);
	} else if (s->settles) {
		session_answer_start(s);
	}
}

static void session_on_follower(void *userdata)
{
	struct session *s = userdata;

	s->awaits_follower = false;
	s->begin = loop_source_free(s->begin);
	session_begin_soon(s);
}

void session_follower_waits(struct session *s)
{
	if (s->awaits_follower)
		session_on_follower(s);
}

/* A new process makes a thousand events until it waits for the stream. */
static int session_await_follower(struct session *s, struct job *j, struct error *err)
{
	int r = job_follow(j, err);

	if (r < 0)
		return r;
	r = session_begin_in(s, FOLLOWER_US, session_on_follower);
	s->awaits_follower = r >= 0;
	return r < 0 ? error_errno(err, r, "can't wait for the export") : 0;
}

/* All that need not follow the start comes before it: what the daemon does later is recorded. */
void session_armed(struct session *s, struct capture *capture, int stream_fd, struct error *err)
{
	struct job *j;

	s->arming = NULL;
	s->capture = capture;
	s->stream_fd = stream_fd;
	if (!capture)
		audit_not_armed(s, err);
	if (!capture || draining_prepare(s, err) < 0) {
		session_not_begun(s, SESSION_NOT_ARMED, err);
		return;
	}
	session_pass(s, SESSION_ARMED);
	audit_started(s);
	manager_changed(s->manager);
	j = session_start_job(s);
	if (!j || !job_has_output(j)) {
		session_begin_soon(s);
	} else if (session_await_follower(s, j, err) < 0) {
		audit_ended(s, "it could not start");
		session_not_begun(s, SESSION_CANCELLED, err);
	}
}

void session_remember(struct session *s)
{
	Traced__Control__Session *d;

	if (draining_is_busy(s->draining))
		return;
	/* Without a description there is nothing that could do instead. */
	if (!s->last)
		draining_lock(s->draining);
	else if (!draining_try_lock(s->draining))
		return;
	d = session_describe_capture(s);
	draining_unlock(s->draining);
	if (d)
		session_set_last(s, d);
}

int session_snapshot(struct session *s, struct job *j, struct error *err)
{
	int r = s->ring ? policy_check_snapshot(s, err) : 0;

	if (r >= 0 && s->ring)
		r = session_make_spool(s, &j->spool, err);
	if (r < 0)
		return r;
	j->tgid = s->tgid;
	session_remember(s);
	r = draining_take(s, j, s->ring ? j->spool.fd : -EBADF, false, CAPTURE_END_SNAPSHOT,
			  job_taken, err);
	if (r < 0)
		spool_discard(&j->spool);
	return r;
}

int session_mark(struct session *s, const char *text, struct error *err)
{
	return capture_mark(s->capture, text, err);
}

int session_sync(struct session *s, const char *id, struct capture_sync *ret, struct error *err)
{
	int r;

	if (draining_is_busy(s->draining))
		return error_set(err, -EBUSY, "%s: a snapshot of it is being taken: try again",
				 s->name);
	draining_lock(s->draining);
	r = capture_sync(s->capture, id, ret, err);
	draining_unlock(s->draining);
	return r;
}

static bool session_exports(const struct session *s)
{
	const struct job *j;

	TAILQ_FOREACH(j, &s->jobs, list)
	if (j->child)
		return true;
	return false;
}

/* The stream has its end. Has the worker restore the kernel. */
static void session_finished(struct session *s, struct job *j _unused_, int r, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	bool kept;

	if (!s)
		return;
	if (r < 0) {
		buf_printf(&text, "the end of the recording is missing: %s",
			   err->message ?: strerror(-r));
		session_note(s, r, buf_string(&text) ?: "the end of the recording is missing");
	} else if (s->end_reason == CAPTURE_END_SHUTDOWN) {
		session_note(s, 0, "the recording ended early: traced was stopped");
	}
	session_remember(s);
	audit_ended(s, audit_reason(s->end_reason));
	session_retire(s);
	kept = r >= 0 || spool_check(&s->spool, 0, STREAM_MAGIC_SIZE) == -EDQUOT;
	if (!kept)
		s->error = err->message ? strdup(err->message) : NULL;
	session_pass(s, kept ? SESSION_DRAINED : SESSION_NOTHING_KEPT);
	/* A follower has to be told the end. */
	if (s->leave_wanted && !session_exports(s))
		session_leave(s);
	else
		session_settle(s);
}

/* Has the session's thread end the stream. */
static void session_finish(struct session *s, enum capture_end reason)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = 0;

	/* Before anything else that the end needs is recorded. */
	draining_turn_off(s->draining);
	s->end_reason = reason;
	session_pass(s, SESSION_ENDED);
	command_forget(&s->command, s->manager->closer, s->account);
	draining_end(s->draining);
	marking_end(s);
	session_remember(s);
	if (s->ring) {
		r = policy_check_snapshot(s, &err);
		if (r >= 0)
			r = session_make_spool(s, &s->spool, &err);
	}
	if (r >= 0)
		r = draining_take(s, NULL, s->ring ? s->spool.fd : -EBADF, true, reason,
				  session_finished, &err);
	if (r < 0)
		session_finished(s, NULL, r, &err);
}

void session_end(struct session *s, enum capture_end reason)
{
	bool arming = s->state == SESSION_ARMING || s->begin;

	if (arming && !s->end_wanted) {
		s->end_wanted = true;
		s->end_reason = reason;
	}
	if (session_records(s) && !arming)
		session_finish(s, reason);
}

/* Decides what happens to an ended session, unless an export of it still runs. */
static void session_conclude(struct session *s)
{
	if (session_exports(s)) {
		session_pass(s, SESSION_EXPORTED);
	} else if (s->export_failed || s->unneeded) {
		if (!s->export_failed)
			spool_discard(&s->spool);
		session_over(s, SESSION_CONCLUDED);
		return;
	}
	manager_changed(s->manager);
}

/* True if a client waits for the recording. */
static bool session_has_output(const struct session *s)
{
	const struct job *j;

	TAILQ_FOREACH(j, &s->jobs, list)
	if (job_has_output(j))
		return true;
	return false;
}

/* True if an export that follows the recording is completing files. */
static bool session_completes_files(const struct session *s)
{
	const struct job *j;

	TAILQ_FOREACH(j, &s->jobs, list)
	if (j->follow && j->child && job_writes_files(j))
		return true;
	return false;
}

/* True if job is a Stop that wants no output itself, and waits. */
static bool session_is_mere_stop(const struct job *j)
{
	return !j->child && j->kind == JOB_STOP && !job_has_output(j);
}

void session_release_stops(struct session *s)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct job *j, *next;
	bool hangs = false;

	TAILQ_FOREACH(j, &s->jobs, list)
	hangs |= j->follow && stall_hangs(j->stall);
	if (!hangs || s->state != SESSION_EXPORTING)
		return;
	error_set(&err, -EIO, "%s: the recording has ended, but its output hangs", s->name);
	error_hint(&err,
		   "its file is completed once the file system answers; 'tracectl cancel %s' "
		   "discards it",
		   s->name);
	for (j = TAILQ_FIRST(&s->jobs); j; j = next) {
		next = TAILQ_NEXT(j, list);
		if (session_is_mere_stop(j))
			job_fail(j, &err);
	}
}

/* The first job that waits for the session's end, or NULL. A mere Stop also waits for files. */
static struct job *session_waiting_job(const struct session *s)
{
	bool completing = session_completes_files(s);
	struct job *j;

	TAILQ_FOREACH(j, &s->jobs, list)
	if (!j->child && !(completing && session_is_mere_stop(j)))
		return j;
	return NULL;
}

void session_settle(struct session *s)
{
	struct job *j;

	if (s->state == SESSION_DRAINING)
		return; /* session_finished() will call it */
	session_dismiss_watchers(s);
	TAILQ_FOREACH(j, &s->jobs, list)
	if (j->follow)
		follow_end(j->follow);
	/* A job that has run is over, or has a child. */
	while ((j = session_waiting_job(s))) {
		if (s->state == SESSION_FAILED) {
			_cleanup_error_ struct error err = ERROR_INIT;

			error_set(&err, -EIO, "%s: %s", s->name,
				  s->error ?: "the recording failed");
			job_fail(j, &err);
			s->unneeded = true;
			continue;
		}
		/* Another client may want the recording that this one discards. */
		if (j->kind == JOB_STOP && !job_has_output(j) && !session_has_output(s))
			s->unneeded = true;
		if (job_run(j) < 0)
			s->export_failed = true;
	}
	session_conclude(s);
	session_release_stops(s);
}

void session_job_over(struct session *s, bool written)
{
	/* Without its export a recording does not begin, and its command does not run. */
	if (s->begin) {
		session_cancel(s, "its output can't be written");
		return;
	}
	if (written)
		s->unneeded = true;
	else
		s->export_failed = true;
	/* A follower ended while recording: nobody reads the stream any more. */
	if (session_records(s))
		session_end(s, CAPTURE_END_FAILED);
	else
		session_settle(s);
}

/* hint: a command that lacks the output's name, or NULL. */
static void session_drop(struct session *s, int level, const char *why, const char *hint)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	error_set(&err, -ECANCELED, "%s: %s", s->name, why);
	if (hint) {
		error_hint(&err, "%s", hint);
		err.hint_needs_output = true;
	}
	/* The worker undoes it later: tracing ends first. */
	if (s->draining && session_records(s))
		draining_turn_off(s->draining);
	if (s->draining) {
		session_remember(s);
		audit_ended(s, why);
	} else {
		session_log(s, level, 0, why);
	}
	session_fail_jobs(s, &err);
	spool_discard(&s->spool);
	session_over(s, SESSION_CANCELLED);
}

void session_cancel(struct session *s, const char *why)
{
	session_drop(s, LOG_INFO, why, NULL);
}

void session_client_left(struct session *s)
{
	s->client = NULL;
	/* An error may have named the spool: session_finished() decides. */
	if (s->state == SESSION_DRAINING) {
		s->unneeded = !session_has_output(s);
		return;
	}
	/* An export that has not begun ends with its client. */
	if (s->state == SESSION_ARMING || s->begin || !session_has_output(s))
		session_cancel(s, "its client has left: discarded");
	else
		session_end(s, CAPTURE_END_STOPPED);
}

void session_shut_down(struct session *s)
{
	bool attended = s->client || session_has_output(s);

	if (s->state == SESSION_ARMING && !session_has_output(s)) {
		session_cancel(s, "the daemon stops: discarded");
		return;
	}
	if (!attended) {
		if (session_records(s))
			session_finish(s, CAPTURE_END_SHUTDOWN);
		session_leave(s);
		return;
	}
	/* Notify waiting clients; each then fetches the partial recording. */
	session_end(s, CAPTURE_END_SHUTDOWN);
}

void session_leave(struct session *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT, hint = BUF_INIT;

	s->leave_wanted = s->state == SESSION_DRAINING;
	if (s->state == SESSION_ARMING || s->leave_wanted || session_exports(s))
		return;
	if (s->state == SESSION_FAILED || s->spool.client_max) {
		session_cancel(s, s->error ?: "the daemon stops");
		return;
	}
	buf_printf(&text, "the daemon stops: its recording is in %s", s->spool.path);
	buf_printf(&hint, "%stracectl convert %s", s->uid ? "root can write it: " : "",
		   s->spool.path);
	spool_deinit(&s->spool);
	session_drop(s, LOG_NOTICE, buf_string(&text) ?: "the daemon stops", buf_string(&hint));
}
