/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosts.h"

#include <string.h>

#include "base/vec.h"
#include "far_run.h"
#include "hints.h"
#include "push.h"

/* Commands about this machine, by name: static programs have no fleet. */
static bool command_is_near(const struct command *command)
{
	static const char *const near[] = { "complete", "fleet", "help" };

	for (size_t i = 0; i < ARRAY_SIZE(near); i++)
		if (!strcmp(near[i], command->name))
			return true;
	return false;
}

/* Commands that need -t. */
static bool command_lasts(const struct command *command)
{
	return command == &command_hist || command == &command_top;
}

/* A far command ends with its time, or when nobody reads what it prints. */
static int hosts_check_lasting(const struct command *command, size_t hosts, int argc, char **argv,
			       struct error *err)
{
	_cleanup_options_ struct options o = { 0 };
	int r = options_parse(&o, argc, argv, command, &(int){ 0 }, err);

	if (r < 0 || o.help)
		return r;
	if (o.output) {
		error_set(err, -EINVAL, "%s -H: -o would write a file on the host", command->name);
		return error_hint(err, "tracectl -H HOST record -o FILE writes one here");
	}
	if (o.duration_ns || (hosts == 1 && (o.watch || command == &command_top)))
		return 0;
	error_set(err, -EINVAL, "%s -H%s: the time is missing", command->name,
		  hosts > 1 ? " of several hosts" : "");
	return error_hint(err, "-t 10s");
}

/* The host judges the options: its version may have more. */
static void hosts_peek(struct options *o, const struct command *command, int argc, char **argv)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	options_parse(o, argc, argv, command, &(int){ 0 }, &err);
}

/* convert has its output as its second word, too. */
static bool hosts_output_is_stdout(const struct options *o, const struct command *command)
{
	const char *out = o->output;

	if (!out && command == &command_convert && o->arg_count == 2)
		out = o->args[1];
	return out && !strcmp(out, "-");
}

static int hosts_run_each(const struct options *o, const struct host_list *hosts,
			  const struct command *command, int argc, char **argv)
{
	static const char *const push_words[] = { PUSH_WORDS };
	_cleanup_options_ struct options theirs = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	enum far_output output = FAR_TEXT;
	_cleanup_free_ char **far = calloc(ARRAY_SIZE(push_words) + (size_t)argc + 4, sizeof(*far));
	int count = 0;

	if (!far)
		return CLI_FAILED;
	for (size_t i = 0; o->push && i < ARRAY_SIZE(push_words); i++)
		far[count++] = (char *)(uintptr_t)push_words[i];
	far[count++] = (char *)"tracectl";
	if (o->socket) {
		far[count++] = (char *)"--socket";
		far[count++] = (char *)o->socket;
	}
	memcpy(far + count, argv, (size_t)argc * sizeof(*far));
	hosts_peek(&theirs, command, argc, argv);
	if (hosts_output_is_stdout(&theirs, command)) {
		output = FAR_DATA;
		if (hosts->count > 1) {
			error_set(&err, -EINVAL, "%s -H: an output - is for one host",
				  command->name);
			return cli_usage(&err);
		}
	} else if (theirs.json) {
		output = FAR_JSON;
	}
	return far_run_all(o, hosts, far, output);
}

int hosts_run(const struct options *o, int argc, char **argv)
{
	_cleanup_host_list_ struct host_list hosts = { .count = 0 };
	const struct command *command = command_find(argv[0]);
	_cleanup_error_ struct error err = ERROR_INIT;

	if (host_list_init(&hosts, o, &err) < 0)
		return cli_usage(&err);
	if (command == &command_record)
		return hosts_record(o, &hosts, argc, argv);
	if (!command) {
		command_unknown(argv[0], &err);
		return cli_usage(&err);
	}
	if (command_is_near(command)) {
		error_set(&err, -EINVAL, "%s does not work with -H", command->name);
		error_hint(&err, "it needs no other machine: leave -H out");
		return cli_usage(&err);
	}
	if (command_lasts(command) &&
	    hosts_check_lasting(command, hosts.count, argc, argv, &err) < 0)
		return cli_usage(&err);
	return hosts_run_each(o, &hosts, command, argc, argv);
}
