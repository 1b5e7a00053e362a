/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include "background.h"
#include "cli.h"
#include "document.h"
#include "link.h"
#include "output/name.h"
#include "start_request.h"
#include "trigger/trigger.h"

/* folder: of triggers; NULL: there are none. */
static void start_tell(const Traced__Control__Session *session, const struct options *o,
		       const char *folder)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	for (size_t i = 0; i < session->n_warnings; i++)
		cli_pass_on(session->warnings[i]);
	if (o->json) {
		document_open(&j, NULL, '{');
		document_string(&j, "session", session->name);
		document_string(&j, "instance", session->instance);
		if (folder)
			document_string(&j, "folder", folder);
		document_close(&j, '}');
		document_print(&j);
		return;
	}
	cli_line(stdout, "%s", session->name);
	if (!o->quiet && folder)
		cli_line(stderr, "recording; snapshots and a log go into %s", folder);
	else if (!o->quiet)
		cli_line(stderr, "recording; tracectl %s %s -o FILE writes it",
			 session->ring ? "snapshot" : "stop", session->name);
}

/*
 * Sends the request and takes the reply. Signals, which are blocked, end the program while there is
 * none: then the daemon discards the recording.
 */
static int start_call(struct link *link, Traced__Control__Request *request, const sigset_t *signals,
		      Traced__Control__Reply **ret, struct error *err)
{
	struct pollfd p = { .fd = control_client_fd(link->client), .events = POLLIN };
	int64_t id = control_client_send(link->client, request, NULL, 0, err);
	int r;

	if (id < 0)
		return link_explain(link, (int)id, err);
	while (ppoll(&p, 1, NULL, signals) < 0 && errno == EINTR)
		;
	r = control_client_receive(link->client, -1, ret, err);
	if (r < 0)
		return link_explain(link, r, err);
	if ((*ret)->error)
		return control_error((*ret)->error, err);
	if ((*ret)->body_case != TRACED__CONTROL__REPLY__BODY_SESSION)
		return error_set(err, -EPROTO, "unexpected reply from traced");
	return 0;
}

static int start_run(const struct options *o)
{
	_cleanup_triggers_ struct triggers triggers = TRIGGERS_INIT;
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_start_request_ struct start_request start = { 0 };
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	sigset_t old;
	int r;

	if (o->rotate_bytes || o->rotate_ns)
		return background_start(o);
	if (o->on.count && triggers_init(&triggers, o, &err) < 0)
		return cli_usage(&err);
	if (start_request_init(&start, o, 0, &err) < 0 ||
	    link_open(&link, o, LINK_LISTENING, &err) < 0 ||
	    (o->on.count && triggers_prepare(&triggers, &link, &err) < 0))
		return cli_fail(&err);
	start.message.detached = true;
	if (o->on.count)
		start.message.output = &triggers.output;
	triggers.recorder = &start.message;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_START;
	request.start = &start.message;
	output_signals_block(&old);
	r = start_call(&link, &request, &old, &reply, &err);
	if (r < 0)
		return cli_fail(&err);
	/* A recorder without its triggers is not what was asked for. */
	if (o->on.count)
		r = triggers_begin(&triggers, &link, reply->session->name, &old, &err);
	if (r < 0 || output_signals_pending())
		link_cancel(&link, reply->session->name, NULL);
	else
		start_tell(reply->session, o, triggers.folder);
	fflush(stdout);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r < 0 ? cli_fail(&err) : CLI_WHOLE;
}

static const struct option_text start_texts[] = {
	{ OPT_FOLLOW, "with -P or --thread: also what these start" },
	{ OPT_OUTPUT, "with --rotate: the files; with --on: the folder of the snapshots" },
	{ OPT_KEEP, "keep only the last N files, or snapshots" },
	{ OPT_FORMAT, "with --rotate or --on: format; default: by FILE's extension, json" },
	{ 0 },
};

const struct command command_start = {
	.name = "start",
	.synopsis = "[--name NAME] [-t TIME] [what to trace] [--rotate LIMIT -o FILE] "
		    "[--ring --on CONDITION]",
	.summary = "start a session that runs in the background",
	.text = "Prints the session's name. It records until 'tracectl stop', or for TIME and "
		"then\n"
		"waits for 'tracectl stop' to fetch it. Needs a running traced.\n"
		"\n"
		"With --ring and --on it takes a snapshot whenever a condition is met, into the\n"
		"folder -o (SESSION.triggers): 'sched.delay > 5ms for comm=pulse*',\n"
		"'irq.max > 1ms', 'softirq.max > 1ms', 'mark \"frame\" > 16ms', 'lost > 0',\n"
		"'event sched:sched_process_exit if comm == \"x\"'.\n"
		"\n"
		"With --rotate a process of tracectl stays and has the files written while it\n"
		"records, also when you log out; 'tracectl stop' ends it and says what the files\n"
		"have. Its messages go to FILE.log.",
	.texts = start_texts,
	.options = OPTION_SET(OPTION(DURATION), OPTION(EVENT), OPTION(FILTER), OPTION(PROFILE),
			      OPTIONS_FUNCTIONS, OPTION(HIST), OPTIONS_TASKS, OPTION(CPUS),
			      OPTION(CLOCK), OPTIONS_COST, OPTION(RING), OPTIONS_BESIDE,
			      OPTION(NAME), OPTIONS_ROTATE, OPTION(OUTPUT), OPTION(FORMAT),
			      OPTIONS_FORMATS, OPTION(RAW_ADDRESSES), OPTION(TGID), OPTION(JSON),
			      OPTION(QUIET), OPTIONS_TRIGGERS),
	.run = start_run,
};
