/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl fleet open`: a page of one board's recording, beside it. Segments need no page: each
 * opens alone, so their paths are printed.
 */
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

/* Whether both are segments of one recording. */
static bool opening_is_beside(const struct fleet_result *a, const struct fleet_result *b)
{
	return a->name.segment && a->name.order == b->name.order &&
	       !strcmp(a->name.fleet, b->name.fleet) && !strcmp(a->name.board, b->name.board);
}

static int opening_name_segments(const struct options *o, const struct fleet_results *all,
				 const struct fleet_result *chosen)
{
	const char *wanted = o->arg_count > 3 ? o->args[3] : NULL;
	const unsigned long number = wanted ? strtoul(wanted, NULL, 10) : 0;
	unsigned last = 0;
	int status = CLI_WHOLE;
	bool any = false;

	for (size_t i = 0; i < all->count; i++) {
		const struct fleet_result *result = &all->items[i];
		_cleanup_error_ struct error err = ERROR_INIT;
		int fd;

		if (!opening_is_beside(result, chosen) ||
		    (wanted && number != result->name.segment))
			continue;
		any = true;
		if (!wanted && result->name.segment > last + 1) {
			cli_warn("segments are missing before number %u", result->name.segment);
			status = CLI_MISSING;
		}
		if (result->name.segment == last) {
			cli_warn("several segments have number %u", last);
			status = CLI_MISSING;
		}
		last = result->name.segment;
		fd = fleet_result_open_at(AT_FDCWD, result, &err);
		if (fd < 0) {
			cli_warn("refused: %s", err.message ?: strerror(errno));
			status = CLI_MISSING;
			continue;
		}
		close(fd);
		cli_line(stdout, "%s", result->path);
	}
	if (!any) {
		_cleanup_error_ struct error err = ERROR_INIT;

		error_set(&err, -ENOENT, "%s has no segment %s of %s", o->args[1], wanted,
			  o->args[2]);
		return cli_fail(&err);
	}
	return status;
}

int fleet_open(const struct options *o)
{
	_cleanup_fleet_results_ struct fleet_results all = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct fleet_result *result;

	if (o->arg_count < 3) {
		error_set(&err, -EINVAL, "fleet open takes a folder and a board");
		error_hint(&err, "tracectl fleet open results/fleet=doors/order=17 door-17");
		return cli_usage(&err);
	}
	if (o->arg_count > 3 && o->args[3][strspn(o->args[3], "0123456789")]) {
		error_set(&err, -EINVAL, "fleet open: '%s' is no number of a segment", o->args[3]);
		return cli_usage(&err);
	}
	if (fleet_results_find(&all, o->args[1], RESULT_CAPTURE, &err) < 0)
		return cli_fail(&err);
	result = opening_choose(o, &all, &err);
	if (!result)
		return cli_fail(&err);
	if (result->name.segment && !o->output)
		return opening_name_segments(o, &all, result);
	if (result->name.segment || o->arg_count > 3) {
		error_set(&err, -EINVAL, "%s",
			  result->name.segment ? "fleet open: segments have no page for --output"
					       : "fleet open: the recording has no segments");
		return cli_usage(&err);
	}
	return opening_convert(o, result, &err);
}
