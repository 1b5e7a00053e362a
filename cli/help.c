/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "formats/formats.h"
#include "hints.h"
#include "report/report.h"

#define COLUMN 26

/* Text too long for its column gets its own line. */
static void print_item(const char *left, const char *right)
{
	if (strlen(left) > COLUMN)
		printf("  %s\n  %-*s %s\n", left, COLUMN, "", right);
	else
		printf("  %-*s %s\n", COLUMN, left, right);
}

static const char *const group_titles[GROUP_COUNT] = {
	[GROUP_WHAT] = "What to trace", [GROUP_WHEN] = "When", [GROUP_WHERE] = "Where to",
	[GROUP_REPORTS] = "Reports",	[GROUP_COST] = "Cost", [GROUP_RARE] = "Rare",
	[GROUP_GENERAL] = "General",
};

/* A command with fewer options needs no titles. */
#define TITLES_MIN 20

static const char *help_text(const struct command *command, int id)
{
	for (const struct option_text *t = command ? command->texts : NULL; t && t->text; t++)
		if (t->id == id)
			return t->text;
	return option_specs[id].help;
}

static void print_option(const struct command *command, int id)
{
	const struct option_spec *spec = &option_specs[id];
	char left[64];

	if (spec->letter)
		snprintf(left, sizeof(left), "-%c, --%s %s", spec->letter, spec->name,
			 spec->arg ?: "");
	else
		snprintf(left, sizeof(left), "    --%s %s", spec->name, spec->arg ?: "");
	print_item(left, help_text(command, id));
}

static bool help_is_own(const struct command *command, int id)
{
	return command && command->own.has[id];
}

/* Prints the options of one group but the command's own. title NULL: none. */
static void print_group(const struct command *command, enum option_group group, const char *title)
{
	for (int id = 0; id < OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];

		if (!command_takes(command, id) || help_is_own(command, id) || spec->group != group)
			continue;
		if (title)
			printf("\n%s:\n", title);
		title = NULL;
		print_option(command, id);
	}
}

static void print_options(const struct command *command)
{
	unsigned count = 0;

	for (int id = 0; id < OPT_COUNT; id++) {
		count += command_takes(command, id);
		if (help_is_own(command, id))
			print_option(command, id);
	}
	for (enum option_group group = 0; group < GROUP_COUNT; group++)
		print_group(command, group, count >= TITLES_MIN ? group_titles[group] : NULL);
}

static void print_formats(void)
{
	const struct export_format *formats;
	size_t count;

	formats = export_formats(&count);
	printf("\nFormats:\n");
	for (size_t i = 0; i < count; i++)
		print_item(formats[i].extension, formats[i].summary);
}

static void print_reports(void)
{
	size_t count;
	const struct report_about *all = report_all(&count);

	printf("\nReports:\n");
	for (size_t i = 0; i < count; i++)
		print_item(all[i].name, all[i].summary);
}

void help_overview(void)
{
	const struct command *const *list;
	size_t count;

	printf("tracectl records what the Linux kernel does and writes it for Trace Viewer, the\n"
	       "Perfetto UI or plain reading.\n\n"
	       "  tracectl record -t 10s -o out.json\n\n"
	       "Commands:\n");
	list = commands(&count);
	for (size_t i = 0; i < count; i++) {
		if (!list[i]->hidden)
			printf("  %-10s %s\n", list[i]->name, list[i]->summary);
	}
	printf("\nOptions before the command:\n");
	print_options(NULL);
	printf("\n"
	       "See also 'tracectl help COMMAND' and tracectl(1).\n"
	       "Exit status: 0 complete; 1 failed, no file of that name written; 2 wrong usage;\n"
	       "3 written, but incomplete (for lost events and marks only with --fail-on-loss).\n");
}

void help_command(const struct command *command)
{
	printf("tracectl %s%s%s\n\n%s\n", command->name, *command->synopsis ? " " : "",
	       command->synopsis, command->text);
	if (command == &command_report)
		print_reports();
	printf("\nOptions:\n");
	print_options(command);
	if (command->options.has[OPT_OUTPUT])
		print_formats();
}

static int help_run(const struct options *o)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct command *command;

	if (!o->arg_count) {
		help_overview();
		return CLI_WHOLE;
	}
	command = command_find(o->args[0]);
	if (!command) {
		command_unknown(o->args[0], &err);
		return cli_usage(&err);
	}
	help_command(command);
	return CLI_WHOLE;
}

const struct command command_help = {
	.name = "help",
	.synopsis = "[COMMAND]",
	.summary = "show what a command does and its options",
	.text = "Without COMMAND: a list of all commands.",
	.args_max = 1,
	.complete = COMPLETE_COMMAND,
	.run = help_run,
};
