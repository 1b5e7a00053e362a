/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosts.h"

#include <string.h>

#include "base/vec.h"
#include "hints.h"

/* They read and write no file here. record has a way of its own. */
static const struct command *const far_commands[] = {
	&command_status, &command_list, &command_events, &command_doctor,  &command_stop,
	&command_cancel, &command_mark, &command_sync,	 &command_profiles
};

static bool command_is_far(const struct command *command)
{
	for (size_t i = 0; i < ARRAY_SIZE(far_commands); i++)
		if (far_commands[i] == command)
			return true;
	return false;
}

/* One host after the other. Of several statuses the first that is not 0. */
static int hosts_run_each(const struct options *o, const struct host_list *hosts, int argc,
			  char **argv)
{
	_cleanup_free_ char **far = calloc((size_t)argc + 4, sizeof(*far));
	_cleanup_error_ struct error err = ERROR_INIT;
	int status = CLI_WHOLE, count = 0;

	if (!far)
		return CLI_FAILED;
	far[count++] = (char *)"tracectl";
	if (o->socket) {
		far[count++] = (char *)"--socket";
		far[count++] = (char *)o->socket;
	}
	memcpy(far + count, argv, (size_t)argc * sizeof(*far));
	for (size_t i = 0; i < hosts->count; i++) {
		struct host_process p;

		if (hosts->count > 1)
			printf("%s%s:\n", i ? "\n" : "", hosts->items[i].label);
		fflush(stdout);
		if (host_run(&p, hosts->items[i].spec, far, false, &err) < 0)
			return cli_fail(&err);
		status = status ?: host_wait(&p);
	}
	return status;
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
	if (!command_is_far(command)) {
		error_set(&err, -EINVAL, "%s does not work with -H", command->name);
		error_hint(&err, "record, status, list, events, doctor, stop, cancel, mark, sync "
				 "and profiles do");
		return cli_usage(&err);
	}
	return hosts_run_each(o, &hosts, argc, argv);
}
