/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet.h"

#include <string.h>

#include "base/buf.h"

struct action {
	const char *word;
	int (*run)(const struct options *o);
	struct option_set options; /* of command_fleet's */
};

static const struct action actions[] = {
	{ "order", fleet_order,
	  OPTION_SET(OPTION(FLEET), OPTION(GROUP), OPTION(SHARE), OPTION(SALT), OPTION(LABEL),
		     OPTION(WINDOW), OPTION(NOT_BEFORE), OPTION(EXPIRES), OPTION(SERIAL),
		     OPTION(CAPTURE), OPTION(SECRET_KEY), OPTION(PRESIGN), OPTION(URL),
		     OPTION(CURL), OPTION(BROKER), OPTION(DURATION), OPTION(EVENT), OPTION(FILTER),
		     OPTION(PROFILE), OPTION(SQL), OPTION(AS), OPTION(HIST), OPTION(ON),
		     OPTION(REPORT), OPTION(MAX_CPU), OPTION(MAX_SIZE), OPTION(ROTATE),
		     OPTION(FORMAT), OPTION(OUTPUT), OPTION(QUIET)) },
	{ "withdraw", fleet_withdraw,
	  OPTION_SET(OPTION(FLEET), OPTION(GROUP), OPTION(BROKER), OPTION(QUIET)) },
	{ "status", fleet_status,
	  OPTION_SET(OPTION(FLEET), OPTION(URL), OPTION(CURL), OPTION(S3), OPTION(BROKER),
		     OPTION(WATCH), OPTION(DURATION), OPTION(JSON), OPTION(QUIET)) },
	{ "fetch", fleet_fetch,
	  OPTION_SET(OPTION(FLEET), OPTION(URL), OPTION(CURL), OPTION(S3), OPTION(CAPTURE),
		     OPTION(MAX_SIZE), OPTION(QUIET)) },
	{ "report", fleet_report,
	  OPTION_SET(OPTION(TOP), OPTION(JSON), OPTION(CSV), OPTION(QUIET)) },
	{ "open", fleet_open, OPTION_SET(OPTION(SERIAL), OPTION(OUTPUT), OPTION(QUIET)) },
};

static const char *const words[] = {
	"order", "withdraw", "status", "fetch", "report", "open", NULL
};

/* The actions that take an option, as a list for a hint. */
static void actions_list(int id, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (actions[i].options.has[id])
			buf_printf(out, "%sfleet %s", out->len ? ", " : "", actions[i].word);
}

static int action_check_options(const struct action *a, const struct options *o, struct error *err)
{
	for (size_t i = 0; i < o->typed_count; i++) {
		const int id = o->typed[i].id;
		_cleanup_buf_ struct buf takers = BUF_INIT;

		/* Options before the command belong to tracectl. */
		if (a->options.has[id] || !command_fleet.options.has[id])
			continue;
		actions_list(id, &takers);
		error_set(err, -EINVAL, "fleet %s: unknown option --%s", a->word,
			  option_specs[id].name);
		return error_hint(err, "--%s is an option of: %s", option_specs[id].name,
				  buf_string(&takers) ?: "");
	}
	return 0;
}

static int fleet_run(const struct options *o)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (strcmp(o->args[0], actions[i].word) == 0)
			return action_check_options(&actions[i], o, &err) < 0 ? cli_usage(&err)
									      : actions[i].run(o);
	error_set(&err, -EINVAL, "fleet: '%s' is no action", o->args[0]);
	error_hint(&err, "order, withdraw, status, fetch, report or open");
	return cli_usage(&err);
}

static const struct option_text fleet_texts[] = {
	{ OPT_DURATION, "order: of the recording; status: listen at most so long (10s)" },
	{ OPT_FORMAT, "order: format of segments: pftrace, json.gz ..." },
	{ OPT_LABEL, "order: only boards whose label matches, a glob" },
	{ OPT_MAX_CPU, "order: limit of the CPU time of each board's recorder" },
	{ OPT_MAX_SIZE, "order: of each board's results; fetch: of all files (4G)" },
	{ OPT_ON, "order: record until 'sched.delay > 5ms'" },
	{ OPT_OUTPUT, "order: a file of the order; open: the page" },
	{ OPT_REPORT, "order: reports that boards send" },
	{ OPT_ROTATE, "order: boards send segments, each of 1m or 4M" },
	{ OPT_WATCH, "status: go on until the boards are through" },
	{ 0 },
};

const struct command command_fleet = {
	.name = "fleet",
	.synopsis = "order | withdraw SERIAL | status [SERIAL] | fetch SERIAL DIR | report DIR | "
		    "open DIR BOARD [SEGMENT]",
	.summary = "orders to boards with traced-agent, and their results",
	.text = "order writes an order in the words of record, signs it by signify, and puts it "
		"into\n"
		"-o FILE, to --url URL or to --broker BROKER, from where the boards take it. "
		"withdraw\n"
		"takes it back from the broker: boards that wait or record drop it. status shows "
		"who\n"
		"answered, who refused and why. fetch copies an order's results from the store at "
		"--url\n"
		"into DIR. report adds up what the boards below DIR answered, and says which "
		"boards are far\n"
		"from the rest. open makes a page of a board's recording, or names its segments, "
		"each of\n"
		"which opens alone.\n"
		"\n"
		"  tracectl fleet order --fleet doors --share 1 -t 10s --report sched,irq\n"
		"    --secret-key order.sec -o doors\n"
		"  tracectl fleet fetch 17 results --fleet doors --url "
		"https://store.example/results\n"
		"  tracectl fleet report results/fleet=doors/order=17\n"
		"  tracectl fleet open results/fleet=doors/order=17 door-17",
	.texts = fleet_texts,
	.options = OPTION_SET(
		OPTION(FLEET), OPTION(GROUP), OPTION(SHARE), OPTION(SALT), OPTION(LABEL),
		OPTION(WINDOW), OPTION(NOT_BEFORE), OPTION(EXPIRES), OPTION(SERIAL),
		OPTION(CAPTURE), OPTION(SECRET_KEY), OPTION(PRESIGN), OPTION(URL), OPTION(CURL),
		OPTION(S3), OPTION(BROKER), OPTION(WATCH), OPTION(DURATION), OPTION(EVENT),
		OPTION(FILTER), OPTION(PROFILE), OPTION(SQL), OPTION(AS), OPTION(HIST), OPTION(ON),
		OPTION(REPORT), OPTION(MAX_CPU), OPTION(MAX_SIZE), OPTION(ROTATE), OPTION(FORMAT),
		OPTION(OUTPUT), OPTION(TOP), OPTION(JSON), OPTION(CSV), OPTION(QUIET)),
	.own = OPTION_SET(OPTION(FLEET), OPTION(GROUP), OPTION(SHARE), OPTION(SALT), OPTION(WINDOW),
			  OPTION(NOT_BEFORE), OPTION(EXPIRES), OPTION(SERIAL), OPTION(CAPTURE),
			  OPTION(SECRET_KEY), OPTION(PRESIGN), OPTION(URL), OPTION(CURL),
			  OPTION(S3), OPTION(BROKER)),
	.args_min = 1,
	.args_max = 4,
	.complete = COMPLETE_FILE,
	.words = words,
	.run = fleet_run,
};
