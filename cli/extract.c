/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "destination.h"
#include "detached.h"

static int extract_run(const struct options *o)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	/*
	 * For a trace.dat, '' is the top-level buffer; here it is likely an unset shell variable.
	 */
	if (o->instance && !*o->instance) {
		error_set(&err, -EINVAL, "--instance: the value is empty");
		error_hint(&err, "omit it for the top-level buffer");
		return cli_usage(&err);
	}
	return fetch_run(o, FETCH_EXTRACT);
}

const struct command command_extract = {
	.name = "extract",
	.synopsis = "[--instance NAME] [-o FILE]",
	.summary = "write what a buffer of the kernel already holds",
	.text = "Takes the events out of the top-level buffer (a trace since boot) or of an\n"
		"instance that another tool made. Its settings stay untouched; what was read is\n"
		"gone from it, as with trace_pipe.",
	.options = OPTION_SET(OPTIONS_RESULT, OPTION(INSTANCE)),
	.own = OPTION_SET(OPTION(INSTANCE)),
	.run = extract_run,
};
