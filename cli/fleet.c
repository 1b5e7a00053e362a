/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet.h"

#include <string.h>

static const char *const words[] = { "order", "fetch", "report", "open", NULL };

static int fleet_run(const struct options *o)
{
	static int (*const actions[])(const struct options *) = { fleet_order, fleet_fetch,
								  fleet_report, fleet_open };
	_cleanup_error_ struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (strcmp(o->args[0], words[i]) == 0)
			return actions[i](o);
	error_set(&err, -EINVAL, "fleet: '%s' is no action", o->args[0]);
	error_hint(&err, "order, fetch, report or open");
	return cli_usage(&err);
}

const struct command command_fleet = {
	.name = "fleet",
	.synopsis = "order | fetch SERIAL DIR | report DIR | open DIR BOARD",
	.summary = "orders to boards with traced-agent, and their results",
	.text = "order writes an order in the words of record, signs it by signify, and puts it "
		"into\n"
		"-o FILE or to --url URL, from where the boards take it. report adds up what the "
		"boards\n"
		"below DIR answered, and says which boards are far from the rest. open makes a "
		"page of\n"
		"the recording of BOARD. fetch copies the results of an order from the store at "
		"--url\n"
		"into DIR.\n"
		"\n"
		"  tracectl fleet order --fleet doors --share 1 -t 10s --report sched,irq\n"
		"    --secret-key order.sec -o doors\n"
		"  tracectl fleet fetch 17 results --fleet doors --url "
		"https://store.example/results\n"
		"  tracectl fleet report results/fleet=doors/order=17\n"
		"  tracectl fleet open results/fleet=doors/order=17 door-17",
	.options = OPTION_SET(OPTION(FLEET), OPTION(GROUP), OPTION(SHARE), OPTION(SALT),
			      OPTION(LABEL), OPTION(WINDOW), OPTION(EXPIRES), OPTION(SERIAL),
			      OPTION(CAPTURE), OPTION(SECRET_KEY), OPTION(URL), OPTION(CURL),
			      OPTION(S3), OPTION(DURATION), OPTION(EVENT), OPTION(FILTER),
			      OPTION(PROFILE), OPTION(REPORT), OPTION(OUTPUT), OPTION(TOP),
			      OPTION(JSON), OPTION(CSV), OPTION(QUIET)),
	.own = OPTION_SET(OPTION(FLEET), OPTION(GROUP), OPTION(SHARE), OPTION(SALT), OPTION(WINDOW),
			  OPTION(EXPIRES), OPTION(SERIAL), OPTION(CAPTURE), OPTION(SECRET_KEY),
			  OPTION(URL), OPTION(CURL), OPTION(S3)),
	.args_min = 1,
	.args_max = 3,
	.words = words,
	.run = fleet_run,
};
