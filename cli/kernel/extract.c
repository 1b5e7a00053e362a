/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "boot_recorder.h"
#include "destination.h"
#include "detached.h"

/* The recording that the boot recorder kept. */
static int extract_last_boot(const struct options *o)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *path = NULL;
	struct options convert = *o;
	char *args[2] = { NULL };

	if (boot_recorder_find(o->instance, &path, &err) < 0)
		return cli_fail(&err);
	args[0] = path;
	convert.args = args;
	convert.arg_count = 1;
	convert.output = o->output ?: "last-boot.json";
	convert.instance = NULL;
	return command_convert.run(&convert);
}

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
	return o->last_boot ? extract_last_boot(o) : fetch_run(o, FETCH_EXTRACT);
}

static const struct option_text extract_texts[] = {
	{ OPT_INSTANCE, "read this instance, not the top-level buffer" },
	{ 0 },
};

const struct command command_extract = {
	.name = "extract",
	.synopsis = "[--instance NAME|--last-boot] [-o FILE]",
	.summary = "write what a buffer of the kernel already holds",
	.text = "Takes the events out of the top-level buffer (a trace since boot) or of an\n"
		"instance that another tool made. Its settings stay untouched; what was read is\n"
		"gone from it, as with trace_pipe.\n"
		"With --last-boot: what was recorded before the machine started anew, in the ring\n"
		"of tracectl boot-recorder; it stays in the spool.",
	.texts = extract_texts,
	.options = OPTION_SET(OPTIONS_RESULT, OPTION(INSTANCE), OPTION(LAST_BOOT)),
	.own = OPTION_SET(OPTION(INSTANCE), OPTION(LAST_BOOT)),
	.run = extract_run,
};
