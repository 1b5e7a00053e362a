/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <stdio.h>

#include "cli.h"
#include "link.h"

static int mark_run(const struct options *o)
{
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Mark mark = TRACED__CONTROL__MARK__INIT;

	for (size_t i = 0; i < o->arg_count; i++)
		buf_printf(&text, "%s%s", i ? " " : "", o->args[i]);
	mark.text = buf_string(&text);
	if (!mark.text) {
		error_errno(&err, -ENOMEM, "mark");
		return cli_fail(&err);
	}
	if (o->name)
		mark.session = (char *)o->name;
	if (link_open(&link, o, LINK_LISTENING, &err) < 0)
		return cli_fail(&err);
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_MARK;
	request.mark = &mark;
	if (link_call(&link, &request, -1, &reply, &err) < 0)
		return cli_fail(&err);
	return CLI_WHOLE;
}

const struct command command_mark = {
	.name = "mark",
	.synopsis = "TEXT... [--name SESSION]",
	.summary = "put a mark into every running session",
	.text = "Writes TEXT through trace_marker; it appears among the kernel's events. With\n"
		"--name only that session gets it.",
	.options = OPTION(NAME),
	.args_min = 1,
	.args_max = UINT_MAX,
	.run = mark_run,
};
