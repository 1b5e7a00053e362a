/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "cli.h"

/* In the order of help. */
static const struct command *const command_table[] = {
	&command_record,	&command_start,	   &command_stop,     &command_snapshot,
	&command_cancel,	&command_wait,	   &command_attach,   &command_status,
	&command_list,		&command_mark,	   &command_sync,     &command_extract,
	&command_convert,	&command_report,   &command_hist,     &command_top,
#if !STATIC_PROGRAMS /* it is an operator's: those for boards are to be small */
	&command_fleet,
#endif
	&command_events,	&command_profiles, &command_doctor,   &command_recover,
	&command_boot_recorder, &command_help,	   &command_complete,
};

const struct command *const *commands(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(command_table);
	return command_table;
}

bool command_takes(const struct command *command, int id)
{
	if (id == OPT_SOCKET || id == OPT_HELP)
		return true;
	if (command)
		return command->options.has[id];
	return id == OPT_VERSION || id == OPT_HOST || id == OPT_HOSTS || id == OPT_LABEL ||
	       id == OPT_REQUIRE_ALL || id == OPT_PUSH;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(command_table); i++) {
		if (!strcmp(command_table[i]->name, name))
			return command_table[i];
	}
	return NULL;
}
