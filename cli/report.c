/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl report`: tables from a recording. Decodes as `convert` does. */
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/landlock.h"
#include "base/vec.h"
#include "cli.h"
#include "confined.h"
#include "formats/formats.h"
#include "input.h"
#include "outcome.h"
#include "report/report.h"

struct reporting {
	const struct options *o;
	const char *path;
	char *words; /* owned; the names point into it */
	const char *names[REPORTS_MAX];
	struct report_options options;
	struct input_beside beside;
	int in;
};

static void reporting_deinit(struct reporting *r)
{
	free(r->words);
	input_beside_deinit(&r->beside);
	close_fd(r->in);
}

/* All arguments but the last, also several in one, with commas. */
static int reporting_take_names(struct reporting *r, struct error *err)
{
	_cleanup_buf_ struct buf all = BUF_INIT;
	char *rest, *name;

	for (size_t i = 0; i + 1 < r->o->arg_count; i++)
		buf_printf(&all, "%s,", r->o->args[i]);
	if (!buf_string(&all))
		return error_errno(err, -ENOMEM, "report");
	r->words = TAKE_PTR(all.data);
	for (rest = r->words; (name = strsep(&rest, ","));) {
		if (!*name)
			continue;
		if (r->options.count == REPORTS_MAX)
			return error_set(err, -EINVAL, "more than %d reports", REPORTS_MAX);
		r->names[r->options.count++] = name;
	}
	return 0;
}

static int reporting_take_form(struct reporting *r, struct error *err)
{
	const char *form = r->o->json ? "json" : r->o->format ?: "text";

	r->options.form = !strcmp(form, "json")	 ? REPORT_JSON
			  : !strcmp(form, "csv") ? REPORT_CSV
						 : REPORT_TEXT;
	if (r->options.form != REPORT_TEXT || !strcmp(form, "text"))
		return 0;
	error_set(err, -EINVAL, "a report is not made as '%s'", form);
	return error_hint(err, "its forms are text, json and csv");
}

/* `tracectl report sched`: the input is missing. */
static int reporting_explain_input(const char *path, struct error *err)
{
	const struct report_about *all;
	size_t count;

	all = report_all(&count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, path))
			return error_hint(err, "name a recording, too: tracectl report %s IN",
					  path);
	return err->code ? -err->code : -EINVAL;
}

/* Parses the input; for root in a process of its own. */
static int reporting_decode(void *userdata, struct export_result *ret, struct error *err)
{
	struct reporting *r = userdata;
	struct export_options options = {
		.format = report_sink_ops.format.name,
		.raw_addresses = r->o->raw_addresses,
		.report = &r->options,
	};
	int e = input_import(&r->in, &r->beside, r->path, r->o->instance, err);

	if (e < 0)
		return e;
	options.pages_fd = r->beside.pages_fd;
	e = export_run(&report_sink_ops, r->in, STDOUT_FILENO, &options, ret, err);
	if (e == -EBADMSG || (e == -ENODATA && !err->hint))
		input_explain_damage(r->path, err);
	return e;
}

static int report_run(const struct options *o)
{
	_cleanup_(reporting_deinit) struct reporting r = {
		.o = o,
		.path = o->args[o->arg_count - 1],
		.options = { .by = o->by,
			     .sort = o->sort,
			     .top = o->top,
			     .min_ns = o->min_ns,
			     .is_terminal = isatty(STDOUT_FILENO) },
		.in = -EBADF,
	};
	_cleanup_outcome_ struct outcome outcome = { .path = r.path };
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct options quiet = { .quiet = true, .fail_on_loss = o->fail_on_loss };

	r.options.names = r.names;
	if (reporting_take_names(&r, &err) < 0 || reporting_take_form(&r, &err) < 0 ||
	    report_options_check(&r.options, &err) < 0)
		return cli_usage(&err);
	r.in = input_open(r.path, &err);
	if (r.in < 0) {
		reporting_explain_input(r.path, &err);
		return cli_fail(&err);
	}
	if (confined_wanted())
		input_reserve_temps(&r.beside);
	input_confine(-EBADF);
	if (confined_run(reporting_decode, &r, &outcome.result, &err) < 0)
		return cli_fail(&err);
	return outcome_tell(&outcome, &quiet);
}

const struct command command_report = {
	.name = "report",
	.synopsis = "[NAME...] IN",
	.summary = "tables from a recording: delays, interrupts, system calls",
	.text = "IN is a capture stream or a trace.dat, also as .gz or .zst; - is standard\n"
		"input. Without a NAME it prints the first rows of what the recording has events\n"
		"for. An interval in which events were lost is not guessed, but counted as cut.",
	.options = OPTION_SET(OPTION(BY), OPTION(SORT), OPTION(TOP), OPTION(MIN), OPTION(FORMAT),
			      OPTION(JSON), OPTION(RAW_ADDRESSES), OPTION(INSTANCE),
			      OPTION(FAIL_ON_LOSS)),
	.own = OPTION_SET(OPTION(BY), OPTION(SORT), OPTION(TOP), OPTION(MIN)),
	.args_min = 1,
	.args_max = REPORTS_MAX + 1,
	.complete = COMPLETE_FILE,
	.run = report_run,
};
