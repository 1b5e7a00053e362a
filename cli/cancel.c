/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "cli.h"
#include "link.h"

static int cancel_run(const struct options *o)
{
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *session = NULL;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Cancel cancel = TRACED__CONTROL__CANCEL__INIT;

	if (link_open(&link, o, LINK_LISTENING, &err) < 0 ||
	    link_session(&link, o->args ? o->args[0] : NULL, &session, &err) < 0)
		return cli_fail(&err);
	cancel.session = session;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_CANCEL;
	request.cancel = &cancel;
	if (link_call(&link, &request, NULL, 0, &reply, &err) < 0)
		return cli_fail(&err);
	if (!o->quiet)
		fprintf(stderr, "%s: recording discarded\n", session);
	return CLI_WHOLE;
}

const struct command command_cancel = {
	.name = "cancel",
	.synopsis = "[SESSION]",
	.summary = "end a session and discard its recording",
	.text = "Without SESSION: the only session.",
	.options = OPTION_SET(OPTION(QUIET)),
	.args_max = 1,
	.complete = COMPLETE_SESSION,
	.run = cancel_run,
};
