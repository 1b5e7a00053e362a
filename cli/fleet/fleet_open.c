/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl fleet open`: a page of one board's recording, beside it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "fleet_results.h"
#include "output/path.h"

/* The board's recording: of several orders, the one that --serial names, or the last. */
static const struct fleet_result *opening_choose(const struct options *o,
						 const struct fleet_results *all, struct error *err)
{
	const char *board = o->args[2];
	const struct fleet_result *chosen = NULL;

	for (size_t i = 0; i < all->count; i++) {
		const struct result_name *name = &all->items[i].name;
		char serial[24];

		snprintf(serial, sizeof(serial), "%" PRIu64, name->order);
		if (!strcmp(name->board, board) && (!o->serial || !strcmp(o->serial, serial)))
			chosen = &all->items[i];
	}
	if (!chosen) {
		error_set(err, -ENOENT, "%s has no recording of %s%s%s", o->args[1], board,
			  o->serial ? " by order " : "", o->serial ?: "");
		error_hint(err, "only orders with --capture have recordings");
	}
	return chosen;
}

/* Its last parts, which are checked: nothing on the way to it goes to the terminal unescaped. */
static char *opening_page_name(const struct fleet_result *result)
{
	size_t stem = strlen(result->path) - strlen(".traced");
	char *page;

	return asprintf(&page, "%.*s.html", (int)stem, result->path) < 0 ? NULL : page;
}

static int opening_convert(const struct options *o, const struct fleet_result *result,
			   struct error *err)
{
	_cleanup_close_ int fd = fleet_result_open_at(AT_FDCWD, result, err);
	_cleanup_free_ char *page = o->output ? strdup(o->output) : opening_page_name(result);
	char in[32];
	struct options changed = { .quiet = o->quiet,
				   .args = (char *[]){ in, page, NULL },
				   .arg_count = 2 };
	int status;

	if (fd < 0)
		return cli_fail(err);
	if (!page) {
		error_errno(err, -ENOMEM, "%s", result->path);
		return cli_fail(err);
	}
	/* The file that was compared with its name. */
	path_descriptor_allow(fd);
	snprintf(in, sizeof(in), "/dev/fd/%d", fd);
	status = command_convert.run(&changed);
	if (status == CLI_WHOLE || status == CLI_MISSING)
		cli_line(stdout, "%s", page);
	return status;
}

int fleet_open(const struct options *o)
{
	_cleanup_fleet_results_ struct fleet_results all = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct fleet_result *result;

	if (o->arg_count != 3) {
		error_set(&err, -EINVAL, "fleet open takes a folder and a board");
		error_hint(&err, "tracectl fleet open results/fleet=doors/order=17 door-17");
		return cli_usage(&err);
	}
	if (fleet_results_find(&all, o->args[1], RESULT_CAPTURE, &err) < 0)
		return cli_fail(&err);
	result = opening_choose(o, &all, &err);
	return result ? opening_convert(o, result, &err) : cli_fail(&err);
}
