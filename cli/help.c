/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "formats/formats.h"
#include "hints.h"

#define COLUMN 26

/* Text too long for its column gets its own line. */
static void print_item(const char *left, const char *right)
{
	if (strlen(left) > COLUMN)
		printf("  %s\n  %-*s %s\n", left, COLUMN, "", right);
	else
		printf("  %-*s %s\n", COLUMN, left, right);
}

static void print_options(uint64_t options)
{
	for (int id = 0; id < OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];
		char left[64];

		if (!(options & UINT64_C(1) << id))
			continue;
		if (spec->letter)
			snprintf(left, sizeof(left), "-%c, --%s %s", spec->letter, spec->name,
				 spec->arg ?: "");
		else
			snprintf(left, sizeof(left), "    --%s %s", spec->name, spec->arg ?: "");
		print_item(left, spec->help);
	}
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
	print_options(OPTIONS_GLOBAL);
	printf("\n'tracectl help COMMAND' tells more; so does tracectl(1).\n"
	       "Exit status: 0 whole; 1 failed, nothing written under that name; 2 wrong usage;\n"
	       "3 written, but something is missing from it (lost events: with --fail-on-loss).\n");
}

void help_command(const struct command *command)
{
	printf("tracectl %s%s%s\n\n%s\n", command->name, *command->synopsis ? " " : "",
	       command->synopsis, command->text);
	printf("\nOptions:\n");
	print_options(command->options | OPTIONS_COMMON);
	if (command->options & OPTION(OUTPUT))
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
	.summary = "tell what a command does and takes",
	.text = "Without COMMAND: the list of all.",
	.args_max = 1,
	.complete = COMPLETE_COMMAND,
	.run = help_run,
};
