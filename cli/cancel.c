/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "cli.h"
#include "link.h"

static int cancel_run(const struct options *o)
{
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *session = NULL;

	if (link_open(&link, o, LINK_LISTENING, &err) < 0 ||
	    link_session(&link, o->args ? o->args[0] : NULL, &session, &err) < 0 ||
	    link_cancel(&link, session, &err) < 0)
		return cli_fail(&err);
	if (!o->quiet)
		fprintf(stderr, "%s: recording discarded\n", session);
	return CLI_WHOLE;
}

const struct command command_cancel = {
	.name = "cancel",
	.synopsis = "[SESSION]",
	.summary = "end a session and discard its recording",
	.text = "Without SESSION: the only session. Instead of SESSION, the file of a recording\n"
		"of yours that a failed export left in the spool: that is removed.",
	.options = OPTION_SET(OPTION(QUIET)),
	.args_max = 1,
	.complete = COMPLETE_SESSION,
	.run = cancel_run,
};
