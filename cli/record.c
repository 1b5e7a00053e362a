/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Life of `tracectl record`: check everything that can be checked, open the output, fork and hold
 * the command, and only then request the session. One loop waits for replies and signals:
 *
 *     ARMING ──reply──▶ RECORDING ──end──▶ WRITING ──reply──▶ done
 *
 * RECORDING ends with its duration (an Attach reports that), the command's exit or a signal. Each
 * sends the one Stop, which carries the output. With --stream the Attach carries the output, which
 * is written from then on, and the Attach's reply is the last one. The session is not detached:
 * however we end, the daemon cleans up when the connection closes.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "child.h"
#include "cli.h"
#include "destination.h"
#include "hosts/far_pack.h"
#include "hosts/orders.h"
#include "hosts/phc.h"
#include "link.h"
#include "progress.h"
#include "record.h"
#include "reports/report.h"
#include "start_request.h"

/* Interval for checking the size. */
#define SIZE_MS 2000

enum phase { PHASE_ARMING, PHASE_RECORDING, PHASE_WRITING, PHASE_DONE };

struct recording {
	const struct options *o;
	const struct record_mode *mode; /* NULL: in the foreground */
	struct link link;
	struct child child;
	struct destination dest;
	struct progress progress;
	struct orders orders;
	pid_t packer; /* 0: none */
	enum phase phase;
	unsigned interrupts;
	bool size_told;
	bool stream;
	bool hands_over; /* the daemon lets the command go, and notices its end */
	int signal_fd;
	uint64_t start_id, status_id, stop_id;
	char *session;
	Traced__Control__Reply *started, *finished;
};

static void recording_deinit(struct recording *rec)
{
	progress_clear(&rec->progress);
	child_deinit(&rec->child);
	link_deinit(&rec->link);
	destination_deinit(&rec->dest);
	/* All writers of the packer's pipe have ended or closed it. */
	far_pack_end(&rec->packer);
	close_fd(rec->orders.phc);
	close_fd(rec->signal_fd);
	free(rec->session);
	reply_freep(&rec->started);
	reply_freep(&rec->finished);
}

/* A JSON into a pipe or a device can't go on in another file. */
static bool record_may_overflow(const struct recording *rec)
{
	return rec->dest.format->one_string && rec->dest.in_place;
}

/* Interval for polling the session's state; -1: never. Each poll is in the recording. */
static int record_status_ms(const struct recording *rec)
{
	return record_may_overflow(rec) ? SIZE_MS : -1;
}

static int record_send_with(struct recording *rec, Traced__Control__Request *request,
			    const int *fds, size_t fd_count, uint64_t *ret_id, struct error *err)
{
	int64_t id = control_client_send(rec->link.client, request, fds, fd_count, err);

	if (id < 0)
		return link_explain(&rec->link, (int)id, err);
	*ret_id = (uint64_t)id;
	return 0;
}

static int record_send(struct recording *rec, Traced__Control__Request *request, bool output,
		       uint64_t *ret_id, struct error *err)
{
	return record_send_with(rec, request, rec->dest.fds, output ? rec->dest.fd_count : 0,
				ret_id, err);
}

/* Nobody here waits for the recording's begin: no process, and no person who reads of it. */
static bool record_sits_still(const struct recording *rec)
{
	const struct options *o = rec->o;

	if (rec->mode || o->control)
		return false;
	return o->command ? rec->hands_over : o->duration_ns || o->quiet;
}

/* A stream's export begins with this. Otherwise the daemon only checks the format now. */
static void record_fill_output(struct recording *rec, Traced__Control__Output *ret)
{
	if (rec->stream) {
		destination_fill(&rec->dest, rec->o, ret);
		ret->stream = true;
		return;
	}
	*ret = (Traced__Control__Output)TRACED__CONTROL__OUTPUT__INIT;
	ret->format = (char *)rec->dest.format->name;
	ret->raw_addresses = rec->o->raw_addresses;
}

static int record_send_start(struct recording *rec, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	_cleanup_start_request_ struct start_request start = { 0 };
	Traced__Control__Output output;
	_cleanup_buf_ struct buf place = BUF_INIT;
	int fds[2 + ARRAY_SIZE(rec->dest.fds)], r;
	size_t count = 0;

	r = start_request_init(&start, rec->o, rec->child.pid, err);
	if (r < 0)
		return r;
	record_fill_output(rec, &output);
	start.message.output = &output;
	if (rec->stream)
		destination_put_place(&rec->dest, &place);
	if (place.len && buf_string(&place))
		start.message.place = place.data;
	start.message.stream = rec->stream;
	/* A request less: an exchange of messages is visible in the recording. */
	start.message.attach = !rec->stream;
	start.message.follow = rec->stream;
	start.message.settle = record_sits_still(rec);
	start.message.held = rec->hands_over;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_START;
	request.start = &start.message;
	if (rec->hands_over) {
		fds[count++] = rec->child.go_fd;
		fds[count++] = rec->child.end_fd;
	}
	for (size_t i = 0; rec->stream && i < rec->dest.fd_count; i++)
		fds[count++] = rec->dest.fds[i];
	return record_send_with(rec, &request, fds, count, &rec->start_id, err);
}

static int record_send_status(struct recording *rec, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;

	query.session = rec->session;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STATUS;
	request.status = &query;
	return record_send(rec, &request, false, &rec->status_id, err);
}

static int record_send_stop(struct recording *rec, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Stop stop = TRACED__CONTROL__STOP__INIT;
	Traced__Control__Output output;

	if (rec->phase != PHASE_RECORDING)
		return 0;
	if (!rec->stream)
		merge_files_open_some(&rec->dest.merges, rec->o);
	destination_fill(&rec->dest, rec->o, &output);
	stop.session = rec->session;
	if (!rec->stream)
		stop.output = &output;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STOP;
	request.stop = &stop;
	rec->phase = PHASE_WRITING;
	progress_text(&rec->progress, "writing ...");
	return record_send(rec, &request, !rec->stream, &rec->stop_id, err);
}

/* Discards the recording. */
static void record_cancel(struct recording *rec)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Cancel cancel = TRACED__CONTROL__CANCEL__INIT;
	uint64_t id;

	destination_give_up(&rec->dest);
	far_pack_drop(&rec->packer);
	if (!rec->session)
		return;
	cancel.session = rec->session;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_CANCEL;
	request.cancel = &cancel;
	record_send(rec, &request, false, &id, NULL);
}

static int record_give_up(struct recording *rec, struct error *err)
{
	record_cancel(rec);
	/* destination_fail() reports what was written. */
	return error_set(err, -ECANCELED, "cancelled");
}

static int record_on_started(struct recording *rec, const Traced__Control__Session *session,
			     struct error *err)
{
	int r;

	rec->session = strdup(session->name);
	if (!rec->session)
		return error_errno(err, -ENOMEM, "session");
	rec->phase = PHASE_RECORDING;
	for (size_t i = 0; i < session->n_warnings; i++)
		cli_pass_on(session->warnings[i]);
	rec->dest.streams = rec->stream;
	if (rec->stream)
		destination_passed(&rec->dest);
	r = rec->o->control ? orders_wait(&rec->orders, rec->signal_fd, err) : 0;
	if (r < 0) {
		record_cancel(rec);
		return r;
	}
	if (rec->hands_over) {
		rec->child.released = true;
		return 0;
	}
	if (rec->child.pid) {
		r = child_release(&rec->child, err);
		if (r < 0)
			record_cancel(rec);
		return r;
	}
	if (rec->mode) {
		r = rec->mode->started(rec->mode->userdata, session, err);
		if (r < 0)
			record_cancel(rec);
		return r;
	}
	if (!rec->o->duration_ns && !rec->o->quiet)
		cli_warn("recording into %s until Ctrl-C", rec->dest.file.path ?: rec->dest.path);
	else
		progress_record(&rec->progress, rec->o->duration_ns);
	return 0;
}

/* The session ended by itself, before its duration was over and without a threshold. */
static bool record_ended_early(const struct recording *rec, const Traced__Control__Reply *attached)
{
	const Traced__Control__Session *s;

	if (rec->mode || rec->phase != PHASE_RECORDING ||
	    attached->body_case != TRACED__CONTROL__REPLY__BODY_FINISHED ||
	    !attached->finished->session)
		return false;
	s = attached->finished->session;
	if (s->at_threshold || s->command_exited || s->stopped)
		return false;
	return !s->duration_ns || s->elapsed_ns < s->duration_ns;
}

static void record_watch_size(struct recording *rec, const Traced__Control__Session *s)
{
	if (rec->size_told || !record_may_overflow(rec) ||
	    json_text_estimate(rec->o->tracer, s->events, s->bytes) < EXPORT_JSON_MAX / 5 * 4)
		return;
	rec->size_told = true;
	progress_clear(&rec->progress);
	cli_warn("%s: the recording nears the largest size that a viewer opens (%" PRIu64
		 " characters)",
		 rec->dest.file.path, EXPORT_JSON_MAX);
	fprintf(stderr, "  hint: end it with Ctrl-C; if it grows too large, it is kept, and "
			"'tracectl convert' writes it as .pftrace\n");
}

static void record_tell_left(const struct recording *rec)
{
	cli_warn("%s (pid %d) is still running", rec->child.name, (int)rec->child.pid);
}

static void record_tell_child(struct recording *rec)
{
	const char *name = rec->o->command[0];
	int status = rec->child.status;

	if (WIFSIGNALED(status))
		cli_warn("%s was ended by signal %d (%s)", name, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		cli_warn("%s ended with exit status %d", name, WEXITSTATUS(status));
}

static int record_on_command_end(struct recording *rec, struct error *err)
{
	int r;

	progress_clear(&rec->progress);
	r = child_check_exec(&rec->child, err);
	if (r < 0) {
		record_cancel(rec);
		return r;
	}
	record_tell_child(rec);
	return record_send_stop(rec, err);
}

/* With --stream, the second reply to Start contains that to Stop, unless the output hangs. */
static int record_on_streamed(struct recording *rec, Traced__Control__Reply **reply,
			      struct error *err)
{
	const Traced__Control__Reply *m = *reply;

	if (m->id == rec->stop_id) {
		progress_clear(&rec->progress);
		if (m->error)
			cli_warn("%s; Ctrl-C discards it", m->error->message);
		return 0;
	}
	if (m->error)
		return control_error(m->error, err);
	rec->dest.ended_early = record_ended_early(rec, m);
	rec->finished = TAKE_PTR(*reply);
	rec->phase = PHASE_DONE;
	return rec->hands_over && child_reap(&rec->child) ? record_on_command_end(rec, err) : 0;
}

static int record_on_reply(struct recording *rec, Traced__Control__Reply **reply, struct error *err)
{
	const Traced__Control__Reply *m = *reply;
	/* The second reply to Start: the session has ended. */
	const bool attached = m->id == rec->start_id && rec->started;

	if (m->id == rec->status_id) {
		rec->status_id = 0;
		if (rec->phase == PHASE_RECORDING &&
		    m->body_case == TRACED__CONTROL__REPLY__BODY_STATUS && m->status->n_sessions)
			record_watch_size(rec, m->status->sessions[0]);
		return 0;
	}
	/*
	 * However the session ended, fetch its data; the Stop's reply reports errors. But a
	 * cancelled one is gone.
	 */
	if (attached && !rec->stream) {
		if (m->error && m->error->code == ECANCELED)
			return control_error(m->error, err);
		rec->dest.ended_early = record_ended_early(rec, m);
		return rec->hands_over && child_reap(&rec->child) ? record_on_command_end(rec, err)
								  : record_send_stop(rec, err);
	}
	if (rec->stream && (attached || m->id == rec->stop_id))
		return record_on_streamed(rec, reply, err);
	if (m->error)
		return control_error(m->error, err);
	if (m->id == rec->start_id) {
		if (m->body_case != TRACED__CONTROL__REPLY__BODY_SESSION)
			return error_set(err, -EPROTO, "unexpected reply from traced");
		rec->started = TAKE_PTR(*reply);
		rec->dest.reported = m->session;
		return record_on_started(rec, m->session, err);
	}
	if (m->id == rec->stop_id) {
		rec->finished = TAKE_PTR(*reply);
		rec->phase = PHASE_DONE;
	}
	return 0;
}

static int record_on_interrupt(struct recording *rec, struct error *err)
{
	rec->interrupts++;
	progress_clear(&rec->progress);
	if (rec->phase == PHASE_ARMING || rec->interrupts > 1)
		return record_give_up(rec, err);
	if (rec->phase == PHASE_WRITING) {
		cli_warn("still writing; Ctrl-C again stops it");
		return 0;
	}
	return record_send_stop(rec, err);
}

static int record_on_signal(struct recording *rec, struct error *err)
{
	struct signalfd_siginfo info;

	if (read(rec->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo != SIGCHLD)
		return record_on_interrupt(rec, err);
	if (!rec->child.pid || rec->child.ended || !child_reap(&rec->child))
		return 0;
	return record_on_command_end(rec, err);
}

/* An order to stop, also of a recording that is being written, is no second one. */
static int record_on_order(struct recording *rec, struct error *err)
{
	orders_take(&rec->orders);
	return rec->orders.gone ? record_give_up(rec, err) : 0;
}

static int record_receive(struct recording *rec, struct error *err)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	int r = control_client_receive(rec->link.client, 0, &reply, err);

	if (r < 0)
		return link_explain(&rec->link, r, err);
	return r ? record_on_reply(rec, &reply, err) : 0;
}

static int recording_run(struct recording *rec, struct error *err)
{
	struct pollfd fds[3] = {
		{ .fd = rec->signal_fd, .events = POLLIN },
		{ .fd = control_client_fd(rec->link.client), .events = POLLIN },
		{ .events = POLLIN },
	};
	int r;

	r = record_send_start(rec, err);
	if (r < 0)
		return r;
	while (rec->phase != PHASE_DONE) {
		fds[2].fd = rec->orders.fd;
		r = poll(fds, ARRAY_SIZE(fds), record_status_ms(rec));
		if (r < 0 && errno != EINTR)
			return error_errno(err, -errno, "poll");
		/* First what the daemon sent: it may have ended the recording. */
		if (r > 0 && fds[1].revents)
			r = record_receive(rec, err);
		else if (r > 0 && fds[0].revents)
			r = record_on_signal(rec, err);
		else if (r > 0)
			r = record_on_order(rec, err);
		else if (r == 0 && rec->phase == PHASE_RECORDING && !rec->status_id)
			r = record_send_status(rec, err);
		else
			r = 0;
		/* It came together with "go". */
		if (r == 0 && rec->orders.stop)
			r = record_send_stop(rec, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * From here on signals are read from a descriptor. The child gets them unblocked. Its end would
 * wake us for nothing if the daemon notices it.
 */
static int record_open_signals(bool of_child, struct error *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (of_child)
		sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? error_errno(err, -errno, "signalfd") : fd;
}

/* The reader of a pipe or terminal waits for the output. */
static bool record_is_awaited(int fd)
{
	struct stat st;

	return isatty(fd) ||
	       (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
}

/*
 * The command's exit status, as a shell has it. Ours if that is 0, if nothing was written, or if a
 * signal ended the recording, and mostly the command with it.
 */
static int record_status(const struct recording *rec, int ours)
{
	int status = rec->child.status;

	if (!rec->child.ended || rec->interrupts || rec->o->own_status || ours == CLI_FAILED ||
	    ours == CLI_USAGE)
		return ours;
	return (WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)) ?: ours;
}

/* Returns 0, or the exit status of an error that was reported. */
static int record_open_orders(struct orders *orders, const struct options *o, struct error *err)
{
	if (o->phc && !o->control) {
		error_set(err, -EINVAL, "--phc needs -H");
		error_hint(err, "tracectl -H HOST record --phc %s", o->phc);
		return cli_usage(err);
	}
	if (!o->control)
		return 0;
	orders->fd = STDIN_FILENO;
	orders_greet();
	orders->phc = o->phc ? phc_open(o->phc, &(uint64_t){ 0 }, err) : -EBADF;
	return o->phc && orders->phc < 0 ? cli_fail(err) : 0;
}

int record_with(const struct options *o, const struct record_mode *mode)
{
	_cleanup_(recording_deinit) struct recording rec = {
		.o = o,
		.mode = mode,
		.child = CHILD_INIT,
		.dest = DESTINATION_INIT,
		.orders = ORDERS_INIT,
		.signal_fd = -EBADF,
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	struct options last = *o;
	int r;

	r = record_open_orders(&rec.orders, o, &err);
	if (r)
		return r;
	r = destination_open(&rec.dest, o, NULL);
	if (r)
		return r;
	if (!o->sample_hz && rec.dest.format->samples_only) {
		error_set(&err, -EINVAL, "a .%s needs --sample", rec.dest.format->name);
		error_hint(&err, "add --sample 997hz --call-graph");
		return cli_usage(&err);
	}
	if (merge_files_check(o, &err) < 0)
		return cli_fail(&err);
	if (o->stream && rec.dest.format->at_end) {
		error_set(&err, -EINVAL, "--stream: a .%s can be written only after the recording",
			  rec.dest.format->name);
		error_hint(&err, "omit --stream, or write .traced and convert it");
		return cli_usage(&err);
	}
	rec.stream = o->stream || rec.dest.rotates ||
		     (!o->ring && !o->sample_hz && !o->merge_count && !rec.dest.format->at_end &&
		      record_is_awaited(rec.dest.file.fd));
	if (o->packs && !strcmp(rec.dest.path, "-") &&
	    far_pack_start(&rec.packer, &rec.dest.file.fd, &err) < 0)
		return cli_fail(&err);
	progress_init(&rec.progress, !o->quiet, destination_fd(&rec.dest));
	rec.hands_over = o->command && !mode && !o->control && child_can_be_watched();
	rec.signal_fd = record_open_signals(!rec.hands_over, &err);
	if (rec.signal_fd < 0)
		return cli_fail(&err);
	if (o->command && child_hold(&rec.child, o->command, !strcmp(rec.dest.path, "-"), &err) < 0)
		return cli_fail(&err);
	if (link_open(&rec.link, o, mode ? LINK_LISTENING : LINK_PRIVATE_TOO, &err) < 0)
		return cli_fail(&err);
	r = recording_run(&rec, &err);
	progress_clear(&rec.progress);
	if (r < 0) {
		if (rec.child.released && !child_reap(&rec.child))
			record_tell_left(&rec);
		/* They keep the file writer's socket open, and the writer waits for its end. */
		child_deinit(&rec.child);
		link_deinit(&rec.link);
		return destination_fail(&rec.dest, &err);
	}
	last.report_follows |= rec.orders.quiet;
	if (rec.child.pid && !child_reap(&rec.child))
		record_tell_left(&rec);
	else if (rec.child.pid && child_check_exec(&rec.child, &err) < 0)
		cli_warn("%s", err.message);
	return record_status(&rec, destination_finish(&rec.dest, &last, rec.finished));
}

static int record_to_file(const struct options *o)
{
	return record_with(o, NULL);
}

static int record_run(const struct options *o)
{
	return o->reports.count ? report_after(o, record_to_file) : record_to_file(o);
}

const struct command command_record = {
	.name = "record",
	.synopsis = "[-t TIME] [-o FILE] [what to trace] [-- COMMAND...]",
	.summary = "record, then write a file",
	.text = "Records for TIME, while COMMAND runs, or until Ctrl-C, and writes FILE\n"
		"(" OUTPUT_DEFAULT
		" if none is named). Without a selection it traces sched and irq,\n"
		"or the default of traced.conf.\n"
		"Ctrl-C ends the recording early and writes it; a second one stops the writing.\n"
		"\n"
		"  tracectl record -t 10s -o out.json\n"
		"  tracectl record -e sched:sched_switch -f 'next_prio < 100' -e irq -o rt.json\n"
		"  tracectl record -F -o make.json.gz -- make -j8\n"
		"  tracectl record --ring -b 16M -o last.json\n"
		"  tracectl record -t 10s --report sched,irq",
	.options = OPTION_SET(
		OPTION(DURATION), OPTION(OUTPUT), OPTION(FORMAT), OPTION(EVENT), OPTION(FILTER),
		OPTION(PROFILE), OPTIONS_FUNCTIONS, OPTION(HIST), OPTIONS_TASKS, OPTION(CPUS),
		OPTION(CLOCK), OPTIONS_COST, OPTION(RING), OPTIONS_BESIDE, OPTION(STREAM),
		OPTIONS_ROTATE, OPTION(NAME), OPTION(STATUS), OPTION(CONTROL), OPTION(PHC),
		OPTION(REPORT), OPTION(BY), OPTION(SORT), OPTION(TOP), OPTION(MIN), OPTION(TASK),
		OPTION(CSV), OPTION(TGID), OPTION(RAW_ADDRESSES), OPTIONS_FORMATS, OPTIONS_MERGE,
		OPTION(FAIL_ON_LOSS), OPTION(JSON), OPTION(QUIET), OPTION(VERBOSE)),
	.takes_command = true,
	.run = record_run,
};
