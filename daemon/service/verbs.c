/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/verbs.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/vec.h"
#include "daemon/service/accounts.h"
#include "daemon/service/audit.h"
#include "daemon/service/job.h"
#include "daemon/service/kernel_lists.h"
#include "daemon/service/metrics.h"
#include "daemon/service/policy.h"
#include "daemon/service/session.h"
#include "export/sink.h"
#include "formats/formats.h"

/* One request being handled. */
struct call {
	struct connection *connection;
	struct manager *manager;
	const Traced__Control__Request *request;
	int *fds; /* received with the request; those that a job takes become -EBADF */
	size_t fd_count;
};

static bool verb_is_own(const struct call *call, const struct session *s)
{
	return call->connection->uid == 0 || call->connection->uid == s->uid;
}

/* A name is the caller's own. Root calls another user's session UID/NAME, as its list does. */
static struct session *verb_find(const struct call *call, const char *name)
{
	const char *slash = strchr(name, '/');
	uid_t uid = call->connection->uid;

	if (slash) {
		char *end;
		unsigned long n = strtoul(name, &end, 10);

		if (*name < '0' || *name > '9' || end != slash || n > UINT32_MAX)
			return NULL;
		uid = (uid_t)n;
		name = slash + 1;
	}
	return manager_find_session(call->manager, uid, name);
}

static const struct session *verb_find_others(const struct call *call, const char *name)
{
	const struct session *s;

	TAILQ_FOREACH(s, &call->manager->sessions, list)
	if (strcmp(s->name, name) == 0)
		return s;
	return NULL;
}

/* Finds one of the caller's own sessions. -ENOENT: no such session; -EPERM: another user's. */
static int verb_find_own(const struct call *call, const char *name, struct session **ret,
			 struct error *err)
{
	struct session *s = verb_find(call, name);
	const struct session *other = s ?: verb_find_others(call, name);

	if (s && verb_is_own(call, s)) {
		*ret = s;
		return 0;
	}
	if (!other) {
		error_set(err, -ENOENT, "there is no session \"%s\"", name);
		return error_hint(err, "'tracectl list' shows all sessions");
	}
	error_set(err, -EPERM, "session \"%s\" is another user's", name);
	if (call->connection->uid == 0)
		return error_hint(err, "you may call it %u/%s", other->uid, name);
	return error_hint(err, "ask uid %u, or root", other->uid);
}

static void verb_reply_done(const struct call *call, unsigned count)
{
	Traced__Control__Done done = TRACED__CONTROL__DONE__INIT;
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;

	done.count = count;
	reply.body_case = TRACED__CONTROL__REPLY__BODY_DONE;
	reply.done = &done;
	connection_reply(call->connection, call->request->id, &reply);
}

/* Conditions are evaluated while the recording goes on, or not at all. */
static int verb_check_live(const struct session *s, const Traced__Control__Output *output,
			   struct error *err)
{
	const struct export_format *format =
		output ? export_format_find(output->format, NULL) : NULL;

	if (!format || !format->only_live || (s->streamed && session_records(s)))
		return 0;
	return error_set(err, -EINVAL, "session \"%s\" can't be followed", s->name);
}

/* The name by which verb_find() finds it for the caller. NULL: out of memory. */
static char *verb_name_of(const struct call *call, const struct session *s)
{
	char *name;

	if (s->uid == call->connection->uid)
		return strdup(s->name);
	return asprintf(&name, "%u/%s", s->uid, s->name) < 0 ? NULL : name;
}

/* A followed recording discards what is written, so it cannot have a second output. */
static int verb_check_unfollowed(const struct call *call, const struct session *s,
				 const Traced__Control__Output *output, struct error *err)
{
	_cleanup_free_ char *name = NULL;

	if (!output || !session_is_followed(s))
		return 0;
	name = verb_name_of(call, s);
	error_set(err, -EBUSY, "session \"%s\" is being written while it records", s->name);
	return error_hint(err, "end it without -o: tracectl stop %s", name ?: s->name);
}

/* s: the session that is written; NULL: none. */
static int verb_new_job(struct call *call, enum job_kind kind, const struct session *s,
			const Traced__Control__Output *output, struct job **ret, struct error *err)
{
	int r = output ? policy_check_output(call->manager, call->connection->uid, output,
					     s && s->counts_only, err)
		       : 0;

	if (r >= 0 && (kind == JOB_SNAPSHOT || (output && output->from_now)))
		r = policy_check_looks(call->manager, call->connection->uid, err);
	if (r < 0)
		return r;
	return job_new(ret, kind, call->connection, call->request->id, output, call->fds,
		       call->fd_count, err);
}

static int verb_start(struct call *call, struct error *err)
{
	const Traced__Control__Start *start = call->request->start;
	/* The held command's descriptors, if any, come before the output's. */
	const size_t first = start->held ? MIN((size_t)COMMAND_FDS, call->fd_count) : 0;
	struct session *s;
	struct job *j;
	int r;

	if (start->follow &&
	    (!start->stream || !start->output || !start->output->stream || start->client_file_max))
		return error_set(err, -EINVAL, "follow is for an output with stream");
	/* Check now, not after an hour of recording. */
	if (start->output) {
		r = policy_check_output(call->manager, call->connection->uid, start->output,
					start_counts_only(start), err);
		if (r < 0)
			return r;
	}
	r = job_new(&j, JOB_START, call->connection, call->request->id,
		    start->follow ? start->output : NULL, call->fds + first, call->fd_count - first,
		    err);
	if (r < 0)
		return r;
	r = session_start(&s, call->connection, start, call->fds,
			  start->follow ? first : call->fd_count, err);
	if (r < 0) {
		job_over(j);
		return r;
	}
	job_wait_for(j, s);
	j->attach = start->attach || start->follow;
	return 0;
}

static int verb_stop(struct call *call, struct error *err)
{
	const Traced__Control__Stop *stop = call->request->stop;
	struct session *s;
	struct job *j;
	int r;

	r = verb_find_own(call, stop->session, &s, err);
	if (r >= 0)
		r = verb_check_unfollowed(call, s, stop->output, err);
	/* Refused, the recorder goes on: its end would be lost. */
	if (r >= 0 && s->ring && session_records(s) && stop->output)
		r = policy_check_snapshot(s, err);
	if (r < 0)
		return r;
	r = verb_new_job(call, JOB_STOP, s, stop->output, &j, err);
	if (r < 0)
		return r;
	job_wait_for(j, s);
	if (session_lives(s))
		session_end(s, CAPTURE_END_STOPPED);
	else
		session_settle(s);
	return 0;
}

/* All of the recording must stay in its spool. */
static int verb_check_spool(const struct session *s, struct error *err)
{
	if (!s->streamed)
		return 0;
	error_set(err, -EINVAL, "session \"%s\" is being written while it records", s->name);
	return error_hint(err, "what was written is not in its spool any more");
}

/* A copy for somebody who looks on. */
static int verb_watch(struct call *call, struct session *s, struct error *err)
{
	int r = verb_check_spool(s, err);
	struct job *j;

	if (r < 0)
		return r;
	if (!session_records(s))
		return error_set(err, -EINVAL, "session \"%s\" does not record now", s->name);
	if (s->ring) {
		error_set(err, -EINVAL,
			  "session \"%s\" is a flight recorder: following it would take its "
			  "events out of the ring",
			  s->name);
		return error_hint(err,
				  "tracectl report --session %s shows what the ring has, and "
				  "empties it; tracectl top without --session records events of "
				  "its own",
				  s->name);
	}
	r = verb_new_job(call, JOB_ATTACH, s, call->request->attach->output, &j, err);
	if (r < 0)
		return r;
	r = job_watch(j, s, err);
	if (r < 0)
		job_over(j);
	return r;
}

static int verb_attach(struct call *call, struct error *err)
{
	const Traced__Control__Attach *attach = call->request->attach;
	struct session *s;
	struct job *j;
	int r;

	r = verb_find_own(call, attach->session, &s, err);
	if (r >= 0 && attach->output && attach->output->from_now)
		return verb_watch(call, s, err);
	if (r >= 0)
		r = verb_check_unfollowed(call, s, attach->output, err);
	if (r >= 0)
		r = verb_check_live(s, attach->output, err);
	if (r < 0)
		return r;
	r = verb_new_job(call, JOB_ATTACH, s, attach->output, &j, err);
	if (r < 0)
		return r;
	job_wait_for(j, s);
	if (!session_lives(s)) {
		session_settle(s);
	} else if (session_records(s) && s->streamed && j->output && j->output->stream) {
		r = job_follow(j, err);
		if (r < 0)
			job_over(j);
	}
	return MIN(r, 0);
}

static int verb_snapshot(struct call *call, struct error *err)
{
	const Traced__Control__Snapshot *snapshot = call->request->snapshot;
	struct session *s;
	struct job *j;
	int r;

	r = verb_find_own(call, snapshot->session, &s, err);
	if (r < 0)
		return r;
	if (s->state == SESSION_ARMING)
		return error_set(err, -EAGAIN, "session \"%s\" does not record yet", s->name);
	if (!session_records(s)) {
		_cleanup_free_ char *name = verb_name_of(call, s);

		error_set(err, -EINVAL, "session \"%s\" does not record any more", s->name);
		return error_hint(err, "tracectl stop %s -o FILE fetches it", name ?: s->name);
	}
	r = verb_check_spool(s, err);
	if (r < 0)
		return r;
	if (!snapshot->output)
		return error_set(err, -EINVAL, "a snapshot needs an output");
	r = verb_new_job(call, JOB_SNAPSHOT, s, snapshot->output, &j, err);
	if (r < 0)
		return r;
	r = session_snapshot(s, j, err);
	if (r < 0)
		job_over(j);
	return r;
}

static int verb_cancel(struct call *call, struct error *err)
{
	const char *name = call->request->cancel->session;
	struct manager *m = call->manager;
	uid_t uid = call->connection->uid;
	struct session *s;
	int r;

	/* Root can read and remove its files itself. */
	if (uid && !verb_find(call, name) &&
	    spool_remove_leftover(m->config.spool_dir, uid, name) == 0) {
		policy_spool_kept(m, accounts_of(m->accounts, uid));
		log_write(LOG_INFO, NULL, "uid %u removed its recording %s", uid, name);
		verb_reply_done(call, 1);
		return 0;
	}
	r = verb_find_own(call, name, &s, err);
	if (r < 0)
		return r;
	session_cancel(s, "cancelled");
	verb_reply_done(call, 1);
	return 0;
}

/* A verb's action on one session; data is the verb's. */
typedef int (*session_act)(struct session *s, void *data, struct error *err);

/*
 * Runs act for the named session, or for all of the caller's that record. If some refuse, the
 * others still count. Returns how many succeeded, or the last refusal.
 */
static int verb_for_recording(const struct call *call, const char *name, const char *what,
			      session_act act, void *data, struct error *err)
{
	struct session *s, *only = NULL;
	int count = 0, r = 0;

	if (*name) {
		r = verb_find_own(call, name, &only, err);
		if (r < 0)
			return r;
	}
	TAILQ_FOREACH(s, &call->manager->sessions, list)
	{
		if (!session_records(s) || !verb_is_own(call, s) || (only && s != only))
			continue;
		r = act(s, data, err);
		count += r >= 0;
	}
	if (count || r < 0)
		return count ?: r;
	error_set(err, -ENOENT, "nothing is recording: the %s is discarded", what);
	return error_hint(err, "'tracectl list' shows all sessions");
}

static int verb_mark_session(struct session *s, void *text, struct error *err)
{
	return session_mark(s, text, err);
}

static int verb_mark(struct call *call, struct error *err)
{
	const Traced__Control__Mark *mark = call->request->mark;
	int r;

	if (!*mark->text || strlen(mark->text) > CAPTURE_MARK_MAX)
		return error_set(err, -EINVAL, "a mark has from 1 to %d bytes", CAPTURE_MARK_MAX);
	r = verb_for_recording(call, mark->session, "mark", verb_mark_session, mark->text, err);
	if (r > 0)
		verb_reply_done(call, (unsigned)r);
	return MIN(r, 0);
}

struct syncing {
	const char *id;
	Traced__Control__Synced done;
};

static int verb_sync_session(struct session *s, void *data, struct error *err)
{
	struct syncing *syncing = data;
	struct capture_sync sync;
	int r = session_sync(s, syncing->id, &sync, err);

	if (r < 0)
		return r;
	if (!syncing->done.count++)
		syncing->done.before_ns = sync.before_ns;
	syncing->done.after_ns = sync.after_ns;
	return 0;
}

static int verb_sync(struct call *call, struct error *err)
{
	const Traced__Control__Sync *sync = call->request->sync;
	struct syncing syncing = { .id = sync->id, .done = TRACED__CONTROL__SYNCED__INIT };
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;
	int r;

	r = verb_for_recording(call, sync->session, "sync", verb_sync_session, &syncing, err);
	if (r < 0)
		return r;
	reply.body_case = TRACED__CONTROL__REPLY__BODY_SYNCED;
	reply.synced = &syncing.done;
	connection_reply(call->connection, call->request->id, &reply);
	return 0;
}

/* Root only: extraction consumes events from somebody else's buffer. */
static int verb_extract(struct call *call, struct error *err)
{
	const Traced__Control__Extract *extract = call->request->extract;
	struct job *j;
	int r;

	if (call->connection->uid != 0) {
		error_set(err, -EPERM, "only root may extract what another tool recorded");
		return error_hint(err, "sudo tracectl extract ...");
	}
	if (!extract->output)
		return error_set(err, -EINVAL, "an extraction needs an output");
	r = verb_new_job(call, JOB_EXTRACT, NULL, extract->output, &j, err);
	if (r < 0)
		return r;
	r = job_extract(j, extract->instance, err);
	if (r < 0)
		job_over(j);
	return r;
}

static Traced__Control__Session *verb_describe(const struct call *call, struct session *s)
{
	Traced__Control__Session *d = session_describe(s);
	char *name;

	if (!d || s->uid == call->connection->uid)
		return d;
	name = verb_name_of(call, s);
	if (!name) {
		traced__control__session__free_unpacked(d, NULL);
		return NULL;
	}
	free(d->name);
	d->name = name;
	return d;
}

struct kept_list {
	uid_t uid;
	Traced__Control__Kept **items; /* owned */
	size_t count, cap;
};

static void kept_list_deinit(struct kept_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		traced__control__kept__free_unpacked(l->items[i], NULL);
	free(l->items);
}

static void kept_list_add(void *userdata, const struct spool_leftover *found)
{
	struct kept_list *l = userdata;
	Traced__Control__Kept *kept;

	if (found->uid != l->uid || !(kept = malloc(sizeof(*kept))))
		return;
	traced__control__kept__init(kept);
	kept->path = strdup(found->path);
	kept->bytes = found->bytes;
	kept->ended_s = (uint64_t)found->ended;
	if (!kept->path || vec_push(l->items, l->count, l->cap, kept) < 0)
		traced__control__kept__free_unpacked(kept, NULL);
}

static int verb_status(struct call *call, struct error *err)
{
	_cleanup_(kept_list_deinit) struct kept_list kept = { .uid = call->connection->uid };
	const Traced__Control__StatusQuery *query = call->request->status;
	Traced__Control__Status status = TRACED__CONTROL__STATUS__INIT;
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;
	_cleanup_free_ Traced__Control__Session **sessions = NULL;
	struct manager *m = call->manager;
	struct session *s, *only = NULL;
	int r = 0;

	if (*query->session) {
		r = verb_find_own(call, query->session, &only, err);
		if (r < 0)
			return r;
	}
	sessions = calloc(m->session_count + 1, sizeof(Traced__Control__Session *));
	if (!sessions)
		return error_errno(err, -ENOMEM, "status");
	TAILQ_FOREACH(s, &m->sessions, list)
	{
		if (!verb_is_own(call, s) || (only && s != only))
			continue;
		sessions[status.n_sessions] = verb_describe(call, s);
		if (sessions[status.n_sessions])
			status.n_sessions++;
		else
			r = error_errno(err, -ENOMEM, "status");
	}
	status.sessions = sessions;
	status.uptime_ns = now_ns(CLOCK_BOOTTIME) - m->started_boot_ns;
	status.cpu_time_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	status.rss_bytes = metrics_resident_bytes();
	if (m->config.hooks)
		status.hooks = m->config.hooks;
	if (query->kept)
		spool_find_leftovers(m->config.spool_dir, kept_list_add, &kept);
	status.kept = kept.items;
	status.n_kept = kept.count;
	status.spare_bytes = m->sparing.bytes;
	for (size_t i = 0; i < status.n_sessions; i++)
		status.spool_bytes += sessions[i]->spool_bytes;
	reply.body_case = TRACED__CONTROL__REPLY__BODY_STATUS;
	reply.status = &status;
	if (r >= 0)
		connection_reply(call->connection, call->request->id, &reply);
	for (size_t i = 0; i < status.n_sessions; i++)
		traced__control__session__free_unpacked(sessions[i], NULL);
	return r;
}

static int verb_events(struct call *call, struct error *err)
{
	return kernel_reply_events(call->connection, call->request, err);
}

static int verb_list(struct call *call, struct error *err)
{
	return kernel_reply_list(call->connection, call->request, err);
}

static const struct verb {
	Traced__Control__Request__VerbCase number;
	const char *name; /* for the log: the message's own names are not built in */
	/* Replies, leaves the reply to a job, or returns an error, which becomes the reply. */
	int (*run)(struct call *call, struct error *err);
	bool while_stopping; /* served while the daemon stops, too: concerns running work */
} verbs[] = {
	{ TRACED__CONTROL__REQUEST__VERB_START, "start", verb_start, false },
	{ TRACED__CONTROL__REQUEST__VERB_STOP, "stop", verb_stop, true },
	{ TRACED__CONTROL__REQUEST__VERB_SNAPSHOT, "snapshot", verb_snapshot, false },
	{ TRACED__CONTROL__REQUEST__VERB_CANCEL, "cancel", verb_cancel, true },
	{ TRACED__CONTROL__REQUEST__VERB_ATTACH, "attach", verb_attach, true },
	{ TRACED__CONTROL__REQUEST__VERB_STATUS, "status", verb_status, true },
	{ TRACED__CONTROL__REQUEST__VERB_MARK, "mark", verb_mark, false },
	{ TRACED__CONTROL__REQUEST__VERB_SYNC, "sync", verb_sync, false },
	{ TRACED__CONTROL__REQUEST__VERB_EXTRACT, "extract", verb_extract, false },
	{ TRACED__CONTROL__REQUEST__VERB_EVENTS, "events", verb_events, false },
	{ TRACED__CONTROL__REQUEST__VERB_LIST, "list", verb_list, false },
};

static const struct verb *verb_of(const Traced__Control__Request *request)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].number == request->verb_case)
			return &verbs[i];
	return NULL;
}

static int verb_run(struct call *call, struct error *err)
{
	const struct verb *verb = verb_of(call->request);
	bool stopping = call->manager->stopping;
	int r;

	if (!verb) {
		error_set(err, -ENOSYS, "this traced does not know that request");
		error_hint(err, "it is version " TRACED_VERSION ": restart it after an update");
		return -ENOSYS;
	}
	if (stopping && !verb->while_stopping) {
		error_set(err, -ESHUTDOWN, "the daemon is stopping");
		return error_hint(err, "try again once it is back");
	}
	r = verb->run(call, err);
	if (stopping && r == -ENOENT)
		error_hint(err, "the daemon is stopping: 'tracectl recover' lists the recordings "
				"that remain");
	return r;
}

static void verb_note(const struct connection *c, const Traced__Control__Request *request)
{
	const struct verb *verb = verb_of(request);
	char text[64];

	snprintf(text, sizeof(text), "%s of uid %u", verb ? verb->name : "?", c->uid);
	loop_doing("the request", text);
}

void verb_dispatch(struct connection *c, const Traced__Control__Request *request, int *fds,
		   size_t fd_count)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct call call = {
		.connection = c,
		.manager = c->manager,
		.request = request,
		.fds = fds,
		.fd_count = fd_count,
	};

	verb_note(c, request);
	if (verb_run(&call, &err) < 0) {
		audit_refused(c, &err);
		connection_reply_error(c, request->id, &err);
	}
}
