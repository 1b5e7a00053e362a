/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "cli.h"
#include "document.h"
#include "service/profiles.h"

static void print_words(const char *title, const struct string_list *list)
{
	if (!list->count)
		return;
	printf("  %-9s", title);
	for (size_t i = 0; i < list->count; i++)
		printf(" %s", list->items[i]);
	putchar('\n');
}

static void json_words(struct document *j, const char *key, const struct string_list *list)
{
	document_open(j, key, '[');
	for (size_t i = 0; i < list->count; i++)
		document_string(j, NULL, list->items[i]);
	document_close(j, ']');
}

static void show(const struct profile *p, struct document *j)
{
	if (!j) {
		printf("%s: %s\n", p->name, p->summary ?: "");
		print_words("events", &p->events);
		print_words("optional", &p->optional);
		return;
	}
	document_open(j, NULL, '{');
	document_string(j, "name", p->name);
	document_string(j, "summary", p->summary);
	document_string(j, "file", p->path);
	json_words(j, "events", &p->events);
	json_words(j, "optional", &p->optional);
	document_close(j, '}');
}

static int profiles_run(const struct options *o)
{
	_cleanup_(string_list_deinit) struct string_list names = { 0 };
	const char *const *dirs = profile_search_path();
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);
	int r, status = CLI_WHOLE;

	r = profile_names(&names, dirs);
	if (r < 0) {
		error_errno(&err, r, "the profiles");
		return cli_fail(&err);
	}
	if (!names.count)
		cli_warn("there are no profiles in %s%s%s", dirs[0], dirs[1] ? " and " : "",
			 dirs[1] ?: "");
	document_open(&j, NULL, '[');
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;

		if (profile_load(&p, dirs, names.items[i], &err) < 0)
			status = cli_fail(&err);
		else
			show(p, o->json ? &j : NULL);
	}
	document_close(&j, ']');
	if (o->json)
		document_print(&j);
	return status;
}

const struct command command_profiles = {
	.name = "profiles",
	.synopsis = "[--json]",
	.summary = "named sets of events for --profile",
	.text = "Each with its events; optional ones are taken where the kernel has them.",
	.options = OPTION(JSON),
	.run = profiles_run,
};
