/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "daemon/service/profiles.h"
#include "document.h"

#define LINE_COLUMNS 78
#define WORDS_COLUMN 10

/* Prints "  events    a b c", wrapped. */
static void profile_print_words(const char *title, const struct string_list *list)
{
	size_t column = LINE_COLUMNS;

	for (size_t i = 0; i < list->count; i++) {
		size_t len = strlen(list->items[i]) + 1;

		if (column + len > LINE_COLUMNS) {
			printf("%s  %-*s", i ? "\n" : "", WORDS_COLUMN - 2, i ? "" : title);
			column = WORDS_COLUMN;
		}
		printf(" %s", list->items[i]);
		column += len;
	}
	if (list->count)
		putchar('\n');
}

static void profile_json_words(struct document *j, const char *key, const struct string_list *list)
{
	document_open(j, key, '[');
	for (size_t i = 0; i < list->count; i++)
		document_string(j, NULL, list->items[i]);
	document_close(j, ']');
}

static void profile_print(const struct profile *p, bool at_length)
{
	cli_line(stdout, "%-10s %s", p->name, p->summary ?: "");
	if (!at_length)
		return;
	profile_print_words("events", &p->events);
	profile_print_words("optional", &p->optional);
}

static void profile_json(const struct profile *p, struct document *j)
{
	document_open(j, NULL, '{');
	document_string(j, "name", p->name);
	document_string(j, "summary", p->summary ?: "");
	document_string(j, "file", p->path);
	profile_json_words(j, "events", &p->events);
	profile_json_words(j, "optional", &p->optional);
	document_close(j, '}');
}

/* The profiles named on the command line, or all. */
static int profiles_choose(const struct options *o, const char *const *dirs,
			   struct string_list *ret, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < o->arg_count && r >= 0; i++)
		r = string_list_add_words(ret, o->args[i]);
	if (r >= 0 && !o->arg_count)
		r = profile_names(ret, dirs);
	return r < 0 ? error_errno(err, r, "the profiles") : 0;
}

static int profiles_run(const struct options *o)
{
	_cleanup_(string_list_deinit) struct string_list names = { 0 };
	const char *const *dirs = profile_search_path();
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);
	int status = CLI_WHOLE;

	if (profiles_choose(o, dirs, &names, &err) < 0)
		return cli_fail(&err);
	if (!names.count)
		cli_warn("no profiles in %s%s%s; set TRACED_PROFILES=FOLDER for another folder",
			 dirs[0], dirs[1] ? " and " : "", dirs[1] ?: "");
	document_open(&j, NULL, '[');
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;

		if (profile_load(&p, dirs, names.items[i], &err) < 0)
			status = cli_fail(&err);
		else if (o->json)
			profile_json(p, &j);
		else
			profile_print(p, o->arg_count || o->verbose);
	}
	document_close(&j, ']');
	if (o->json)
		document_print(&j);
	return status;
}

const struct command command_profiles = {
	.name = "profiles",
	.synopsis = "[NAME...] [--json]",
	.summary = "list the named sets of events for --profile",
	.text = "One per line; with NAME, or with -v, also their events. Optional events are used\n"
		"if the kernel has them.",
	.options = OPTION_SET(OPTION(JSON), OPTION(VERBOSE)),
	.args_max = UINT_MAX,
	.complete = COMPLETE_PROFILE,
	.run = profiles_run,
};
