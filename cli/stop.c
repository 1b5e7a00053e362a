/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "destination.h"
#include "detached.h"

static int stop_run(const struct options *o)
{
	return fetch_run(o, FETCH_STOP);
}

const struct command command_stop = {
	.name = "stop",
	.synopsis = "[SESSION] [-o FILE]",
	.summary = "end a session and write its file",
	.text = "Ends SESSION, or the only one there is, and writes FILE (SESSION.json if none is\n"
		"named). 'tracectl cancel' ends one without writing it. A session of record\n"
		"--stream has its file: it only ends.",
	.options = OPTION_SET(OPTIONS_RESULT),
	.args_max = 1,
	.complete = COMPLETE_SESSION,
	.run = stop_run,
};
