/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "destination.h"
#include "detached.h"

static int snapshot_run(const struct options *o)
{
	return fetch_run(o, FETCH_SNAPSHOT);
}

const struct command command_snapshot = {
	.name = "snapshot",
	.synopsis = "[SESSION] [-o FILE]",
	.summary = "write what a session has so far; it goes on",
	.text = "Writes the past that SESSION, started with --ring, still holds, and takes it "
		"out;\n"
		"of another session, all that was recorded so far. Without SESSION: the only one.\n"
		"Without -o, FILE is SESSION-TIME.json.",
	.options = OPTION_SET(OPTIONS_RESULT),
	.args_max = 1,
	.complete = COMPLETE_SESSION,
	.run = snapshot_run,
};
