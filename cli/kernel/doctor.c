/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/doctor.h"

#include <stdio.h>

#include "base/parse.h"
#include "cli.h"
#include "control/frame.h"
#include "document.h"
#include "leftovers.h"

static const struct {
	const char *word, *colour;
} verdicts[] = {
	[DOCTOR_OK] = { "ok", "32" },
	[DOCTOR_NOTE] = { "note", "36" },
	[DOCTOR_WARN] = { "warn", "33" },
	[DOCTOR_BAD] = { "BAD", "31;1" },
};

static bool doctor_wants_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no);
}

static void doctor_print(const struct doctor_report *report)
{
	bool colour = doctor_wants_colour();

	for (size_t i = 0; i < report->count; i++) {
		const struct doctor_finding *f = &report->findings[i];

		if (colour)
			printf("\033[%sm%-4s\033[0m  ", verdicts[f->verdict].colour,
			       verdicts[f->verdict].word);
		else
			printf("%-4s  ", verdicts[f->verdict].word);
		cli_line(stdout, "%-14s %s", f->check, f->text);
		if (f->mend)
			cli_line(stdout, "      %-14s -> %s", "", f->mend);
	}
}

static void doctor_print_json(const struct doctor_report *report)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	document_open(&j, NULL, '[');
	for (size_t i = 0; i < report->count; i++) {
		const struct doctor_finding *f = &report->findings[i];

		document_open(&j, NULL, '{');
		document_string(&j, "check", f->check);
		document_string(&j, "verdict", verdicts[f->verdict].word);
		document_string(&j, "text", f->text);
		if (f->mend)
			document_string(&j, "mend", f->mend);
		document_close(&j, '}');
	}
	document_close(&j, ']');
	document_print(&j);
}

static int doctor_add_leftovers(struct doctor_report *report, const struct options *o)
{
	_cleanup_(leftovers_deinit) struct leftovers left = { 0 };
	int r = leftovers_find(&left, o);

	for (size_t i = 0; i < left.count && r >= 0; i++) {
		_cleanup_buf_ struct buf size = BUF_INIT, mend = BUF_INIT;

		format_bytes(left.items[i].bytes, &size);
		leftover_put_remedy(&left.items[i], "out.json", &mend);
		r = doctor_add(report, "recordings", DOCTOR_NOTE, buf_string(&mend),
			       "%s (%s) is left from an earlier run", left.items[i].path,
			       buf_string(&size) ?: "?");
	}
	return r;
}

static int doctor_run(const struct options *o)
{
	const struct doctor_env env = {
		.proc = "/proc",
		.sys = "/sys",
		.socket = o->socket ?: CONTROL_SOCKET,
	};
	_cleanup_doctor_report_ struct doctor_report report = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	int r;

	r = doctor_examine(&env, &report);
	if (r >= 0)
		r = doctor_add_leftovers(&report, o);
	if (r < 0) {
		error_errno(&err, r, "cannot check this machine");
		return cli_fail(&err);
	}
	if (o->json)
		doctor_print_json(&report);
	else
		doctor_print(&report);
	for (size_t i = 0; i < report.count; i++) {
		if (report.findings[i].verdict == DOCTOR_BAD)
			return CLI_FAILED;
	}
	return CLI_WHOLE;
}

const struct command command_doctor = {
	.name = "doctor",
	.synopsis = "[--json]",
	.summary = "check whether this machine can record, and how to fix it",
	.text = "Looks at tracefs, permissions, lockdown, symbols, buffers, clocks, the daemon, "
		"and\nrecordings that a crash left.\n"
		"Exits with 1 if something makes recording impossible.",
	.options = OPTION_SET(OPTION(JSON)),
	.run = doctor_run,
};
