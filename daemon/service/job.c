/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/job.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/closer.h"
#include "base/io.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/service/audit.h"
#include "daemon/service/draining.h"
#include "daemon/service/export_result.h"
#include "daemon/service/exporter.h"
#include "daemon/service/leaving.h"
#include "daemon/service/order.h"
#include "daemon/service/policy.h"
#include "formats/formats.h"

struct job *job_free(struct job *j)
{
	if (!j)
		return NULL;
	follow_free(j->follow);
	merging_deinit(&j->merging, j->manager->closer, j->account);
	if (j->output)
		traced__control__output__free_unpacked(j->output, NULL);
	if (j->description)
		traced__control__session__free_unpacked(j->description, NULL);
	free(j);
	return NULL;
}

static const char *job_name(const struct job *j)
{
	return j->description ? j->description->name : "extract";
}

static struct job_list *job_siblings(const struct job *j)
{
	return j->session ? &j->session->jobs : &j->manager->jobs;
}

static void job_unwatch(struct job *j)
{
	struct session *s = j->watched;

	if (!s)
		return;
	TAILQ_REMOVE(&s->watchers, j, of_watched);
	j->watched = NULL;
	if (s->draining && TAILQ_EMPTY(&s->watchers))
		draining_watch(s->draining, false);
}

static struct spool *job_spool(struct job *j)
{
	return j->session ? &j->session->spool : &j->spool;
}

static void job_free_child(struct job *j)
{
	j->stall = stall_free(j->stall);
	leaving_add(j->manager->leaving, j->account, child_end(TAKE_PTR(j->child)),
		    job_spool(j)->fd);
}

/* The follow may be in one of its callbacks: job_free() frees it. */
void job_over(struct job *j)
{
	struct manager *m = j->manager;
	bool kept = j->spool.path;

	if (j->over)
		return;
	j->over = true;
	TAILQ_REMOVE(job_siblings(j), j, list);
	j->session = NULL;
	m->job_count--;
	if (j->connection) {
		TAILQ_REMOVE(&j->connection->jobs, j, of_client);
		j->connection->in_flight--;
		j->connection = NULL;
	}
	taking_forget_job(j->taking);
	j->taking = NULL;
	job_unwatch(j);
	job_free_child(j);
	j->out_fd = closer_close(m->closer, j->account, CLOSER_FILE, j->out_fd);
	merging_deinit(&j->merging, m->closer, j->account);
	j->part_fd = close_fd(j->part_fd);
	spool_deinit(&j->spool);
	if (kept)
		policy_spool_kept(m, j->account);
	TAILQ_INSERT_TAIL(&m->over.jobs, j, list);
	manager_reap_later(m);
	manager_changed(m);
}

void job_abandon(struct job *j)
{
	struct log_fields fields = { .session = job_name(j), .cpu = -1 };

	if (j->spool.path && j->exporting)
		log_write(LOG_NOTICE, &fields, "%s: the daemon stops: its recording is in %s",
			  job_name(j), j->spool.path);
	job_over(j);
}

void job_wait_for(struct job *j, struct session *s)
{
	TAILQ_REMOVE(job_siblings(j), j, list);
	j->session = s;
	j->tgid = s->tgid;
	TAILQ_INSERT_TAIL(job_siblings(j), j, list);
}

/* True if a process of the client writes the files, from frames in a socket. */
static bool job_makes_files(const Traced__Control__Output *output)
{
	return output->rotate_bytes || output->rotate_ns ||
	       export_format_find(output->format, NULL)->directory;
}

bool job_writes_files(const struct job *j)
{
	return j->output && (job_makes_files(j->output) || fd_type(j->out_fd) == S_IFREG);
}

/*
 * A socket is for frames, or a program's standard output. Of those only unix sockets: closing
 * others can take as long as their peers like.
 */
static int job_check_descriptor(int fd, struct error *err)
{
	int type, domain = -1, flags = fcntl(fd, F_GETFL);
	socklen_t len = sizeof(domain);

	if (flags < 0)
		return error_set(err, -EBADF,
				 "the request names an output but has no descriptor for it");
	if ((flags & O_PATH) || (flags & O_ACCMODE) == O_RDONLY)
		return error_set(err, -EBADF, "the output is not open for writing");
	type = fd_type(fd);
	if (type == S_IFREG || type == S_IFIFO || type == S_IFCHR)
		return 0;
	if (type == S_IFSOCK && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	    domain == AF_UNIX)
		return 0;
	error_set(err, -EBADF,
		  "the output is neither a file, a pipe, a character device nor a unix socket");
	return error_hint(err, "write to standard output, through a pipe: -o - | cat");
}

static int job_check_output(enum job_kind kind, const Traced__Control__Output *output, int fd,
			    struct error *err)
{
	const struct export_format *format = export_format_find(output->format, NULL);
	int r;

	if (!format) {
		error_set(err, -EINVAL, "there is no output format \"%s\"", output->format);
		return error_hint(err, "'tracectl record --help' lists the formats");
	}
	if (output->from_now && kind != JOB_ATTACH)
		return error_set(err, -EINVAL, "only an Attach follows a recording from now on");
	if (format->only_live && !(kind == JOB_ATTACH && output->stream))
		return error_set(err, -EINVAL,
				 "the output format \"%s\" is only for a recording that is "
				 "followed",
				 output->format);
	r = job_check_descriptor(fd, err);
	if (r < 0)
		return r;
	if ((output->rotate_bytes && output->rotate_bytes < EXPORT_ROTATE_BYTES_MIN) ||
	    (output->rotate_ns && output->rotate_ns < EXPORT_ROTATE_NS_MIN))
		return error_set(err, -EINVAL, "the output's files would be too short");
	return 0;
}

static int job_take_output(struct job *j, const Traced__Control__Output *output, int *fds,
			   size_t fd_count, struct error *err)
{
	int r = merging_take(&j->merging, output, fds + 1, fd_count - 1, err);

	if (r < 0)
		return r;
	j->output = order_copy(output);
	if (!j->output)
		return error_errno(err, -ENOMEM, "request");
	j->out_fd = TAKE_FD(fds[0]);
	return 0;
}

int job_new(struct job **ret, enum job_kind kind, struct connection *connection,
	    uint64_t request_id, const Traced__Control__Output *output, int *fds, size_t fd_count,
	    struct error *err)
{
	struct export_options options;
	struct export_watch watch;
	struct job *j;
	int r;

	if (connection->in_flight >= CONNECTION_IN_FLIGHT_MAX) {
		error_set(err, -EBUSY, "too many requests at once from this client");
		return error_hint(err, "wait for some of the %d replies", CONNECTION_IN_FLIGHT_MAX);
	}
	r = output ? job_check_output(kind, output, fd_count ? fds[0] : -EBADF, err) : 0;
	if (r >= 0 && output)
		r = order_options(output, &options, &watch, err);
	if (r < 0)
		return r;
	j = calloc(1, sizeof(*j));
	if (!j)
		return error_errno(err, -ENOMEM, "request");
	j->manager = connection->manager;
	j->kind = kind;
	j->uid = connection->uid;
	j->account = connection->account;
	j->request_id = request_id;
	j->out_fd = j->part_fd = -EBADF;
	j->spool = SPOOL_INIT;
	r = output ? job_take_output(j, output, fds, fd_count, err) : 0;
	if (r < 0) {
		job_free(j);
		return r;
	}
	j->connection = connection;
	connection->in_flight++;
	TAILQ_INSERT_TAIL(&connection->jobs, j, of_client);
	TAILQ_INSERT_TAIL(job_siblings(j), j, list);
	j->manager->job_count++;
	*ret = j;
	return 0;
}

void job_fail(struct job *j, const struct error *err)
{
	connection_reply_error(j->connection, j->request_id, err);
	job_over(j);
}

static void job_reply_finished(struct job *j, Traced__Control__ExportResult *result)
{
	Traced__Control__Finished finished = TRACED__CONTROL__FINISHED__INIT;
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;

	finished.session = j->description;
	finished.result = result;
	reply.body_case = TRACED__CONTROL__REPLY__BODY_FINISHED;
	reply.finished = &finished;
	connection_reply(j->connection, j->request_id, &reply);
}

/* False: out of memory; an earlier description stays. */
static bool job_describe_again(struct job *j)
{
	Traced__Control__Session *description = session_describe(j->session);

	if (!description)
		return false;
	if (j->description)
		traced__control__session__free_unpacked(j->description, NULL);
	j->description = description;
	return true;
}

void job_started(struct job *j)
{
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	if (!job_describe_again(j)) {
		/* The recording continues; the client gets an error and may end it. */
		error_errno(&err, -ENOMEM, "session");
		job_fail(j, &err);
		return;
	}
	reply.body_case = TRACED__CONTROL__REPLY__BODY_SESSION;
	reply.session = j->description;
	connection_reply(j->connection, j->request_id, &reply);
	/* Send the reply now: a command waits for it to begin. */
	if (j->connection)
		connection_flush(j->connection);
	if (!j->attach) {
		job_over(j);
		return;
	}
	j->kind = JOB_ATTACH;
}

/* Reports a failed export and where the recording is kept. The job is over. */
static void job_export_failed(struct job *j, struct error *err)
{
	const struct spool *spool = job_spool(j);
	const bool member = j->connection && j->connection->uid;
	struct log_fields fields = { .session = job_name(j),
				     .cpu = -1,
				     .error = err->code,
				     .message_id = AUDIT_EXPORT_FAILED };

	if (j->spool.path && !policy_may_keep(j->manager, j->account, &j->spool)) {
		error_hint(err, "the snapshot is discarded: with it, what you keep would exceed "
				"\"spool_max\" in [users] of traced.conf");
		spool_discard(&j->spool);
	} else if (spool->path && !(j->session && j->session->begin)) {
		_cleanup_free_ char *hint = err->hint ? strdup(err->hint) : NULL;

		error_hint(err, "%s%s%s is safe%s: tracectl convert %s", hint ?: "",
			   hint ? "; " : "",
			   j->follow ? "what was not written yet" : "the recording",
			   member ? " ('tracectl cancel' with its path discards it), and root can "
				    "write it"
				  : "",
			   spool->path);
		err->hint_needs_output = true;
	}
	log_write(j->connection ? LOG_INFO : LOG_WARNING, &fields, "%s: export failed: %s%s%s%s",
		  job_name(j), err->message, err->hint ? "; " : "", err->hint ?: "",
		  err->hint_needs_output ? " FILE" : "");
	job_fail(j, err);
}

/*
 * Refuses an output that may have no reader, as writing to it could block forever, and a file that
 * its client did not name yet: nobody would ever see it.
 */
static int job_check_abandoned(const struct job *j, struct error *err)
{
	if (j->connection)
		return 0;
	if (fd_type(j->out_fd) != S_IFREG)
		return error_set(err, -EPIPE,
				 "its client has left, and the output is no regular file");
	return fd_has_name(j->out_fd)
		       ? 0
		       : error_set(err, -EPIPE, "its client has left before it named the output");
}

/* True if the stream that the job has to write is being completed. */
static bool job_awaits_stream(const struct job *j)
{
	return j->taking || (j->session && j->session->state == SESSION_DRAINING);
}

/* The output's reader has closed it (| head): discards the rest of the recording. */
static void job_reader_left(struct job *j)
{
	struct log_fields fields = { .session = job_name(j), .cpu = -1 };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct session *s = j->session;

	log_write(LOG_INFO, &fields, "%s: the output's reader has left", job_name(j));
	error_set(&err, -EPIPE, "the output's reader has left");
	spool_discard(&j->spool);
	job_fail(j, &err);
	if (s && session_records(s))
		session_cancel(s, "the output's reader has left");
	else if (s)
		session_job_over(s, true);
}

void job_client_left(struct job *j)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct session *s = j->session;

	TAILQ_REMOVE(&j->connection->jobs, j, of_client);
	j->connection = NULL;
	/* It does not know the session's name, and would not end it. */
	if (j->kind == JOB_START && s) {
		session_cancel(s, "its client left before it recorded: discarded");
	} else if (!j->child && !(job_has_output(j) && job_awaits_stream(j))) {
		job_over(j);
	} else if (j->exporting && (j->output->from_now ||
				    export_format_find(j->output->format, NULL)->only_live)) {
		job_reader_left(j);
	} else if (j->exporting && job_check_abandoned(j, &err) < 0) {
		job_export_failed(j, &err);
		if (s)
			session_job_over(s, false);
	}
}

static void job_on_exported(void *userdata, Traced__Control__ExportResult *result)
{
	struct job *j = userdata;
	struct session *s = j->session;
	bool followed = j->follow && s;

	job_free_child(j);
	if (followed) {
		/* The session's end counts, not the export's start. */
		job_describe_again(j);
		session_set_followed(s, result);
	}
	/* EPIPE from a process that makes files is its failure, so the recording is kept. */
	if (result->error && result->error->code == EPIPE && !job_makes_files(j->output)) {
		job_reader_left(j);
	} else if (result->error) {
		_cleanup_error_ struct error err = ERROR_INIT;

		export_result_take_error(result->error, &err);
		job_export_failed(j, &err);
		if (s)
			session_job_over(s, false);
	} else {
		struct log_fields fields = { .session = job_name(j), .cpu = -1 };

		log_write(LOG_INFO, &fields,
			  "%s: wrote %llu event%s as %s, %llu byte%s, %llu event%s lost",
			  job_name(j), (unsigned long long)result->events, plural_s(result->events),
			  j->output->format, (unsigned long long)result->bytes,
			  plural_s(result->bytes), (unsigned long long)result->lost,
			  plural_s(result->lost));
		job_reply_finished(j, result);
		spool_discard(&j->spool);
		job_over(j);
		if (s)
			session_job_over(s, true);
	}
	if (!followed)
		traced__control__export_result__free_unpacked(result, NULL);
}

static bool job_somebody_records(struct manager *m)
{
	struct session *s;

	TAILQ_FOREACH(s, &m->sessions, list)
	if (session_records(s))
		return true;
	return false;
}

static void job_on_stall(void *userdata, bool hangs, uint64_t ns)
{
	struct job *j = userdata;
	struct log_fields fields = { .session = job_name(j), .cpu = -1 };
	unsigned s = (unsigned)(ns / NSEC_PER_SEC);

	loop_doing("the output of session", job_name(j));
	if (hangs)
		log_write(LOG_WARNING, &fields,
			  "%s: its output hangs: for %u s the exporter (pid %d) waits for the file "
			  "system",
			  job_name(j), s, (int)child_pid(j->child));
	else
		log_write(LOG_NOTICE, &fields, "%s: its output takes data again, after %u s",
			  job_name(j), s);
	if (hangs && j->session)
		session_release_stops(j->session);
}

/* follow_fd, skip: as in struct exporter_request. */
static int job_start_export(struct job *j, int follow_fd, uint64_t skip, struct error *err)
{
	struct exporter_request request = {
		.out_fd = j->out_fd,
		.follow_fd = follow_fd,
		.output = j->output,
		.tgid = j->tgid,
		.part = &j->part,
		.skip = skip,
		.merging = &j->merging,
		.quiet = job_somebody_records(j->manager),
		.service = j->manager->options.exporter_service,
	};
	_cleanup_close_ int stream = -EBADF;
	int r = job_check_abandoned(j, err);

	if (r == 0)
		r = policy_check_exporters(j->manager, j->account, err);
	if (r < 0)
		return r;
	stream = j->part_fd >= 0 ? TAKE_FD(j->part_fd) : spool_reopen(job_spool(j), err);
	if (stream < 0)
		return stream;
	request.stream_fd = stream;
	r = exporter_spawn(&j->child, j->manager->loop, &request, job_on_exported, j, err);
	if (r < 0)
		return r;
	j->exporting = true;
	/* Without it, a hanging output is just not reported. */
	(void)stall_new(&j->stall, j->manager->loop, j->child, job_on_stall, j);
	return r;
}

int job_run(struct job *j)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r;

	if (j->session)
		job_describe_again(j);
	if (!job_has_output(j)) {
		job_reply_finished(j,
				   j->session && j->kind == JOB_STOP ? j->session->followed : NULL);
		job_over(j);
		return 0;
	}
	r = job_start_export(j, -EBADF, 0, &err);
	if (r < 0)
		job_export_failed(j, &err);
	else
		manager_changed(j->manager);
	return r;
}

static void job_on_waiting(void *userdata)
{
	struct job *j = userdata;

	if (!j->session)
		return;
	draining_space_freed(j->session);
	session_follower_waits(j->session);
}

int job_follow(struct job *j, struct error *err)
{
	_cleanup_close_ int theirs = -EBADF;
	int r = follow_new(&j->follow, j->manager->loop, &j->session->spool, job_on_waiting, j,
			   &theirs, err);

	if (r >= 0)
		r = job_start_export(j, theirs, 0, err);
	if (r < 0) {
		j->follow = follow_free(j->follow);
		return r;
	}
	j->description = session_describe(j->session);
	manager_changed(j->manager);
	return 0;
}

int job_watch(struct job *j, struct session *s, struct error *err)
{
	_cleanup_close_ int theirs = -EBADF;
	int r = follow_new(&j->follow, j->manager->loop, NULL, job_on_waiting, j, &theirs, err);

	if (r >= 0)
		r = j->part_fd = spool_reopen(&s->spool, err);
	if (r >= 0)
		r = job_start_export(j, theirs, spool_bytes(&s->spool), err);
	if (r < 0) {
		j->part_fd = close_fd(j->part_fd);
		j->follow = follow_free(j->follow);
		return r;
	}
	j->description = session_describe(s);
	j->watched = s;
	TAILQ_INSERT_TAIL(&s->watchers, j, of_watched);
	draining_watch(s->draining, true);
	manager_changed(j->manager);
	return 0;
}

void job_watched_all(struct job *j)
{
	follow_end(j->follow);
	job_unwatch(j);
}

void job_taken(struct session *s, struct job *j, int result, struct error *err)
{
	if (!j)
		return;
	if (result >= 0 && !j->spool.path) {
		j->part_fd = s ? spool_reopen(&s->spool, err)
			       : error_set(err, -ESHUTDOWN, "the recording has ended");
		result = MIN(j->part_fd, 0);
	}
	if (result < 0) {
		spool_discard(&j->spool);
		job_fail(j, err);
		return;
	}
	j->description = s ? session_describe(s) : NULL;
	job_run(j);
}

static void job_on_extracted(void *userdata, Traced__Control__ExportResult *result)
{
	struct job *j = userdata;

	j->child = child_free(j->child);
	if (result->error) {
		_cleanup_error_ struct error err = ERROR_INIT;

		export_result_take_error(result->error, &err);
		spool_discard(&j->spool);
		job_fail(j, &err);
	} else {
		job_run(j);
	}
	traced__control__export_result__free_unpacked(result, NULL);
}

int job_extract(struct job *j, const char *instance, struct error *err)
{
	struct manager *m = j->manager;
	int r;

	r = spool_create(&j->spool, m->config.spool_dir, "extract", j->uid, m->config.min_free,
			 err);
	if (r < 0)
		return r;
	r = extractor_spawn(&j->child, m->loop, m->options.tracefs, m->config.state_dir, instance,
			    j->spool.fd, job_on_extracted, j, err);
	if (r < 0)
		spool_discard(&j->spool);
	return r;
}
