/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl report`: tables from a recording. Decodes as `convert` does. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "cli.h"
#include "confined.h"
#include "detached.h"
#include "formats/formats.h"
#include "hosts/report_hosts.h"
#include "input.h"
#include "named_reports.h"
#include "outcome.h"
#include "output/path.h"
#include "report.h"
#include "report/merge.h"
#include "report/report.h"
#include "report_events.h"
#include "selection.h"

/* Rows of each table if no report is named. */
#define OVERVIEW_ROWS 10

struct reporting {
	const struct options *o;
	const char *path; /* for messages */
	struct named_reports reports;
	struct chosen_part part;
	struct input_beside beside;
	int in;
};

static void reporting_deinit(struct reporting *r)
{
	named_reports_deinit(&r->reports);
	chosen_part_deinit(&r->part);
	input_beside_deinit(&r->beside);
	close_fd(r->in);
}

/* format: of the report; NULL: --format is of a file. */
static int report_check_forms(const struct options *o, const char *format, struct error *err)
{
	const char *flag = o->json ? "json" : o->csv ? "csv" : NULL;

	if (o->json && o->csv)
		return error_set(err, -EINVAL, "--json and --csv exclude each other");
	if (!flag || !format || !strcmp(flag, format))
		return 0;
	return error_set(err, -EINVAL, "--%s and --format %s exclude each other", flag, format);
}

static int reporting_take_form(struct reporting *r, struct error *err)
{
	const char *form = r->o->json ? "json" : r->o->csv ? "csv" : r->o->format ?: "text";

	r->reports.options.form = !strcmp(form, "json")	 ? REPORT_JSON
				  : !strcmp(form, "csv") ? REPORT_CSV
							 : REPORT_TEXT;
	if (r->reports.options.form != REPORT_TEXT || !strcmp(form, "text"))
		return report_check_forms(r->o, r->o->format, err);
	error_set(err, -EINVAL, "a report is not made as '%s'", form);
	return error_hint(err, "its forms are text, json and csv");
}

bool report_is_name(const char *word)
{
	const struct report_about *all;
	size_t count;

	all = report_all(&count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, word))
			return true;
	return false;
}

/* `tracectl report sched`: the input is missing. */
static int reporting_explain_input(const char *path, struct error *err)
{
	if (report_is_name(path))
		return error_hint(err, "name a recording, too: tracectl report %s IN", path);
	return err->code ? -err->code : -EINVAL;
}

/* Parses the input; for root in a process of its own. */
static int reporting_decode(void *userdata, struct export_result *ret, struct error *err)
{
	struct reporting *r = userdata;
	struct export_options options = {
		.format = report_sink_ops.format.name,
		.raw_addresses = r->o->raw_addresses,
		.report = &r->reports.options,
		.selection = r->part.wanted,
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

static int reporting_init(struct reporting *r, const struct options *o, const char *const *names,
			  size_t count, struct error *err)
{
	*r = (struct reporting){ .o = o, .in = -EBADF };
	return named_reports_init(&r->reports, o, names, count, err);
}

/* The recording is open. Returns the exit status. */
static int reporting_run(struct reporting *r)
{
	const struct options quiet = { .quiet = true,
				       .fail_on_loss = r->o->fail_on_loss,
				       .pid_count = r->o->pid_count,
				       .follow = r->o->follow };
	_cleanup_outcome_ struct outcome outcome = { .path = r->path };
	_cleanup_error_ struct error err = ERROR_INIT;

	if (confined_wanted())
		input_reserve_temps(&r->beside);
	input_confine(-EBADF);
	if (confined_run(reporting_decode, r, &outcome.result, &err) < 0)
		return cli_fail(&err);
	return outcome_tell(&outcome, &quiet);
}

/* An unnamed file for a capture stream, and its path for this process. */
static int report_open_temp(char path[32], struct error *err)
{
	int fd = input_create_temp();

	if (fd < 0) {
		error_errno(err, fd, "%s", input_temp_place());
		return error_hint(
			err, "set TMPDIR to a folder for the recording, or give -o FILE.traced");
	}
	path_descriptor_allow(fd);
	snprintf(path, 32, "/dev/fd/%d", fd);
	return fd;
}

/* Whether the output is a capture stream that can be read again. */
static bool report_output_is_stream(const struct options *o)
{
	const struct export_format *format =
		o->output ? export_format_find(o->format, o->output) : NULL;

	return format && format->recording && strcmp(o->output, "-") != 0;
}

/* Writes o->output from the stream at path; a page with the report's tables. */
static int report_convert(const struct options *o, char *path)
{
	const struct export_format *format = export_format_find(o->format, o->output);
	struct options changed = *o;

	changed.output = NULL;
	changed.json = false;
	changed.args = (char *[]){ path, (char *)o->output, NULL };
	changed.arg_count = 2;
	changed.whole = true;
	if (!format || !format->has_tables)
		changed.reports.count = 0;
	return command_convert.run(&changed);
}

/*
 * Has work() write a capture stream, to o->output or an unnamed file, and reports on it. Another
 * output is made of the unnamed file. Returns the first status that is not 0.
 */
static int reporting_record(struct reporting *r, const struct options *o,
			    int (*work)(const struct options *o))
{
	const bool direct = report_output_is_stream(o);
	_cleanup_error_ struct error err = ERROR_INIT;
	struct options changed = *o;
	char path[32];
	struct stat st;
	int status, reported, converted = 0;

	changed.json = false;
	changed.report_follows = true;
	if (!direct) {
		r->in = report_open_temp(path, &err);
		if (r->in < 0)
			return cli_fail(&err);
		changed.output = path;
		changed.shown = r->path;
		changed.format = "traced";
		changed.quiet = true;
	}
	status = work(&changed);
	if (direct)
		r->in = input_open(o->output, &err);
	/* If there is no recording, work() has said why. */
	if (r->in < 0 || fstat(r->in, &st) < 0 || !st.st_size)
		return status ?: cli_fail(&err);
	/* The report leaves no right to write files. */
	if (!direct && o->output)
		converted = report_convert(o, path);
	reported = reporting_run(r);
	return status ?: converted ?: reported;
}

static int report_check_output(const struct options *o, struct error *err)
{
	if (o->format && !o->output) {
		error_set(err, -EINVAL, "--format %s is of an output, and there is none",
			  o->format);
		return error_hint(err, "name it: -o FILE");
	}
	if (!o->output || strcmp(o->output, "-") != 0)
		return 0;
	error_set(err, -EINVAL, "--report and -o - both write to standard output");
	return error_hint(err, "name a file: -o FILE");
}

/* The reports that --report names. */
static int reporting_init_after(struct reporting *r, const struct options *o, struct error *err)
{
	int e = reporting_init(r, o, o->reports.items, o->reports.count, err);

	r->path = o->output ?: "the recording";
	r->reports.options.form = o->json ? REPORT_JSON : o->csv ? REPORT_CSV : REPORT_TEXT;
	if (e == 0)
		e = report_check_forms(o, NULL, err);
	if (e == 0 && !o->control)
		e = report_check_output(o, err);
	return e < 0 ? e : report_options_check(&r->reports.options, err);
}

int report_after_check(const struct options *o, struct error *err)
{
	_cleanup_(reporting_deinit) struct reporting r;

	return reporting_init_after(&r, o, err);
}

int report_after_hosts(const struct options *o, char *const *paths, size_t count, bool several)
{
	_cleanup_(reporting_deinit) struct reporting r;
	_cleanup_error_ struct error err = ERROR_INIT;

	if (reporting_init_after(&r, o, &err) < 0)
		return cli_usage(&err);
	return report_hosts_run(o, &r.reports.options, paths, count, several);
}

int report_after(const struct options *o, int (*work)(const struct options *o))
{
	_cleanup_(reporting_deinit) struct reporting r;
	_cleanup_report_events_ struct report_events needed = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct options changed = *o;

	if (reporting_init_after(&r, o, &err) < 0)
		return cli_usage(&err);
	if (report_events_choose(&needed, o, &r.reports.options, &changed) < 0) {
		error_errno(&err, -ENOMEM, "--report");
		return cli_fail(&err);
	}
	/* The machine that gives the orders makes the reports. */
	return o->control ? work(&changed) : reporting_record(&r, &changed, work);
}

static int report_fetch(const struct options *o)
{
	return fetch_run(o, FETCH_SNAPSHOT);
}

/* All arguments are files. */
static int report_merge(struct reporting *r)
{
	const struct options *o = r->o;
	_cleanup_error_ struct error err = ERROR_INIT;

	if (reporting_take_form(r, &err) < 0 || chosen_part_open(&r->part, o, &err) < 0)
		return cli_usage(&err);
	if (o->by || o->task || o->session || o->instance || o->raw_addresses ||
	    selection_is_wanted(&r->part.wanted)) {
		error_set(&err, -EINVAL, "--merge and --%s exclude each other",
			  o->by		     ? "by"
			  : o->task	     ? "task"
			  : o->session	     ? "session"
			  : o->instance	     ? "instance"
			  : o->raw_addresses ? "raw-addresses"
					     : "from, --to and other choices of a part");
		error_hint(&err, "give it to the commands that make the reports");
		return cli_usage(&err);
	}
	return report_merge_files(o, &r->reports.options);
}

static bool report_is_file(const char *word)
{
	return !strcmp(word, "-") || access(word, F_OK) == 0;
}

/* With --session, the arguments are names of reports. */
static int report_refuse_file(const struct options *o, struct error *err)
{
	for (size_t i = 0; o->session && i < o->arg_count; i++)
		if (!report_is_name(o->args[i]) && report_is_file(o->args[i]))
			return error_set(err, -EINVAL, "%s and --session exclude each other",
					 o->args[i]);
	return 0;
}

/* `report FILE NAME`: the recording is moved behind the names. */
static void report_order_words(const struct options *o)
{
	char *first = o->arg_count > 1 ? o->args[0] : NULL;

	if (!first || o->session || o->merge_count || report_is_name(first) ||
	    !report_is_name(o->args[o->arg_count - 1]) || !report_is_file(first))
		return;
	memmove(o->args, o->args + 1, (o->arg_count - 1) * sizeof(*o->args));
	o->args[o->arg_count - 1] = first;
}

/* The sums of timehist are the report sched. */
static int reporting_summarize(struct reporting *r, struct error *err)
{
	const struct report_options *reports = &r->reports.options;

	if (!r->o->summary)
		return 0;
	if (r->o->arg_count == 1 && !r->o->session && report_is_name(r->o->args[0]))
		return error_set(err, -EINVAL,
				 "report: the recording is missing: tracectl report "
				 "timehist --summary IN");
	if (reports->count != 1 || strcmp(r->reports.names[0], "timehist") != 0) {
		error_set(err, -EINVAL, "--summary is of the report timehist alone");
		return error_hint(err, "tracectl report timehist --summary IN");
	}
	r->reports.names[0] = "sched";
	return 0;
}

/* The word before the recording may be another recording. */
static int reporting_check_files(const struct reporting *r, struct error *err)
{
	const struct report_options *reports = &r->reports.options;

	for (size_t i = 0; i < reports->count; i++) {
		if (report_is_name(reports->names[i]) || !report_is_file(reports->names[i]))
			continue;
		error_set(err, -EINVAL, "one recording only: %s, or %s", reports->names[i],
			  r->path);
		return error_hint(err, "'report net' takes several; --merge adds up reports of "
				       "--json");
	}
	return 0;
}

/* Wrong words must not hide that a recording is missing. */
static void report_tell_missing(const struct options *o, size_t names)
{
	for (size_t i = names; i < o->arg_count && !o->session; i++)
		if (!report_is_file(o->args[i]))
			cli_warn("%s: %m", o->args[i]);
}

static int report_run(const struct options *o)
{
	const size_t inputs = o->session ? 0 : report_hosts_inputs(o);
	const size_t names = o->arg_count - inputs;
	struct options fetch = { .socket = o->socket,
				 .args = (char *[]){ (char *)o->session, NULL },
				 .arg_count = 1 };
	_cleanup_(reporting_deinit) struct reporting r;
	_cleanup_error_ struct error err = ERROR_INIT;
	int e;

	report_order_words(o);
	e = reporting_init(&r, o, (const char *const *)o->args,
			   o->merge_count || !o->arg_count ? 0 : names, &err);

	if (o->merge_count)
		return report_merge(&r);
	if (e == 0 && !o->session && !o->arg_count) {
		error_set(&err, -EINVAL, "report: the recording is missing");
		error_hint(&err, "tracectl report out.traced (tracectl record -o out.traced makes "
				 "one), or --session NAME");
		return cli_usage(&err);
	}
	r.path = o->session ?: o->args[names];
	if (!names && !o->top)
		r.reports.options.top = OVERVIEW_ROWS;
	if (e < 0 || report_refuse_file(o, &err) < 0 || reporting_summarize(&r, &err) < 0 ||
	    chosen_part_open(&r.part, o, &err) < 0 || reporting_take_form(&r, &err) < 0 ||
	    (!o->session && reporting_check_files(&r, &err) < 0) ||
	    report_options_check(&r.reports.options, &err) < 0) {
		report_tell_missing(o, names);
		return cli_usage(&err);
	}
	if (o->session)
		return reporting_record(&r, &fetch, report_fetch);
	if (inputs > 1 && selection_is_wanted(&r.part.wanted)) {
		error_set(&err, -EINVAL, "a part is chosen of one recording only");
		return cli_usage(&err);
	}
	if (inputs > 1)
		return report_hosts_run(o, &r.reports.options, o->args + names, inputs, true);
	r.in = input_open(r.path, &err);
	if (r.in < 0) {
		reporting_explain_input(r.path, &err);
		return cli_fail(&err);
	}
	return reporting_run(&r);
}

static const struct option_text report_texts[] = {
	{ OPT_EVENT, "only these events: an event, a system or a glob; may be repeated" },
	{ OPT_FILTER, "only events of which this holds: 'sched_switch: next_prio < 100'" },
	{ OPT_FORMAT, "text, json or csv" },
	{ OPT_MERGE, "a report of --json to add up, or rows; may be repeated" },
	{ 0 },
};

const struct command command_report = {
	.name = "report",
	.synopsis = "[NAME...] IN | net IN... | --session SESSION | --merge FILE...",
	.summary = "tables from a recording: delays, interrupts, system calls",
	.text = "IN is a capture stream or a trace.dat, also as .gz or .zst; - is standard\n"
		"input. Without a NAME it prints the first rows of what the recording has events\n"
		"for. An interval in which events were lost is not guessed, but counted as cut.\n"
		"--session takes what a running session has so far; a flight recorder then forgets "
		"it.\n"
		"--merge adds up reports that --json wrote.\n"
		"\n"
		"--filter compares numbers and what + - * / % << >> & ^ | make of them, or a "
		"field\n"
		"with a text: == != ~ (a glob) =~ !~ (a regular expression).\n"
		"\n"
		"  tracectl report sched,irq out.traced\n"
		"  tracectl report counts -f 'sched_switch: next_pid - prev_pid > 100 &&\n"
		"    next_comm ~ \"kw*\"' out.traced\n"
		"  tracectl report --merge monday.json tuesday.json.gz",
	.texts = report_texts,
	.options = OPTION_SET(OPTION(BY), OPTION(SORT), OPTION(TOP), OPTION(MIN), OPTION(FORMAT),
			      OPTION(JSON), OPTION(CSV), OPTIONS_SELECTION, OPTION(RAW_ADDRESSES),
			      OPTION(INSTANCE), OPTION(FAIL_ON_LOSS), OPTION(SESSION),
			      OPTION(MERGE), OPTION(TASK), OPTION(SUMMARY)),
	.own = OPTION_SET(OPTION(INSTANCE), OPTION(BY), OPTION(SORT), OPTION(TOP), OPTION(MIN),
			  OPTION(CSV), OPTION(TASK), OPTION(SUMMARY), OPTIONS_SELECTION,
			  OPTION(SESSION)),
	.args_max = UINT_MAX,
	.complete = COMPLETE_FILE,
	.run = report_run,
};
