/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "confine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/landlock.h"
#include "input.h"

/* elfutils downloads missing files from these servers into a cache: needs network and writing. */
static bool confine_fetches_symbols(void)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	return servers && *servers;
}

void confine(const struct output_name *output)
{
	_cleanup_close_ int temp = open(input_temp_place(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int writable[2];
	struct landlock_rules rules = { .may_read = true, .writable = writable };

	if (confine_fetches_symbols())
		return;
	if (output->dir_fd >= 0)
		writable[rules.writable_count++] = output->dir_fd;
	if (temp >= 0)
		writable[rules.writable_count++] = temp;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		landlock_enter(&rules, NULL);
}
