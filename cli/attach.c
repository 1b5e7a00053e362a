/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>

#include "base/plural.h"
#include "cli.h"
#include "destination.h"
#include "detached.h"
#include "link.h"
#include "progress.h"

/* Waits for the reply to request `id`; meanwhile polls the session's state if progress is shown. */
static int attach_follow(struct link *link, const char *session, uint64_t id,
			 struct progress *progress, Traced__Control__Reply **ret, struct error *err)
{
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;
	bool asked = false;

	query.session = (char *)session;
	for (;;) {
		Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
		_cleanup_reply_ Traced__Control__Reply *reply = NULL;
		int64_t sent = 0;
		int r;

		r = control_client_receive(link->client, progress->on ? PROGRESS_MS : -1, &reply,
					   err);
		if (r == 0 && !asked) {
			request.verb_case = TRACED__CONTROL__REQUEST__VERB_STATUS;
			request.status = &query;
			sent = control_client_send(link->client, &request, NULL, 0, err);
			asked = true;
		}
		if (r < 0 || sent < 0)
			return link_explain(link, r < 0 ? r : (int)sent, err);
		if (!reply)
			continue;
		if (reply->id == id) {
			*ret = TAKE_PTR(reply);
			return 0;
		}
		asked = false;
		if (reply->body_case == TRACED__CONTROL__REPLY__BODY_STATUS &&
		    reply->status->n_sessions)
			progress_session(progress, reply->status->sessions[0]);
	}
}

static void attach_tell_end(const Traced__Control__Reply *reply, const struct options *o)
{
	const Traced__Control__Session *s = NULL;

	if (reply->body_case == TRACED__CONTROL__REPLY__BODY_FINISHED)
		s = reply->finished->session;
	if (s && !o->quiet)
		cli_line(stderr, "%s has ended: %" PRIu64 " event%s, %" PRIu64 " lost", s->name,
			 s->events, plural_s(s->events), s->lost);
}

static int attach_run(const struct options *o)
{
	_cleanup_destination_ struct destination dest = DESTINATION_INIT;
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *session = NULL;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Attach attach = TRACED__CONTROL__ATTACH__INIT;
	Traced__Control__Output output;
	struct progress progress;
	int64_t id;
	int r;

	r = o->output ? destination_open(&dest, o, NULL) : 0;
	if (r)
		return r;
	if (merge_files_open(&dest.merges, o, &err) < 0 ||
	    link_open(&link, o, LINK_LISTENING, &err) < 0 ||
	    link_session(&link, o->args ? o->args[0] : NULL, &session, &err) < 0)
		return cli_fail(&err);
	attach.session = session;
	if (o->output) {
		destination_fill(&dest, o, &output);
		attach.output = &output;
	}
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_ATTACH;
	request.attach = &attach;
	progress_init(&progress, !o->quiet, o->output ? destination_fd(&dest) : -1);
	id = control_client_send(link.client, &request, dest.fds, dest.fd_count, &err);
	r = id < 0 ? link_explain(&link, (int)id, &err)
		   : attach_follow(&link, session, (uint64_t)id, &progress, &reply, &err);
	progress_clear(&progress);
	if (r < 0 || !reply)
		return cli_fail(&err);
	if (reply->error) {
		control_error(reply->error, &err);
		return o->output ? destination_fail(&dest, &err) : cli_fail(&err);
	}
	if (o->output)
		return destination_finish(&dest, o, reply);
	attach_tell_end(reply, o);
	return CLI_WHOLE;
}

const struct command command_attach = {
	.name = "attach",
	.synopsis = "[SESSION] [-o FILE]",
	.summary = "watch a session until it ends",
	.text = "Shows the progress of SESSION and waits for its end; with -o, FILE is written "
		"then.\n"
		"Ctrl-C stops watching; the session goes on. Without SESSION: the only session.",
	.options = OPTION_SET(OPTIONS_RESULT),
	.args_max = 1,
	.complete = COMPLETE_SESSION,
	.run = attach_run,
};
