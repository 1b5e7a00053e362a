/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "own_folder.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

int own_folder_setup(void **state)
{
	char *dir = strdup("/tmp/traced-unit.XXXXXX");

	if (!dir || !mkdtemp(dir) || chdir(dir) < 0)
		return -1;
	*state = dir;
	return 0;
}

int own_folder_teardown(void **state)
{
	_cleanup_free_ char *dir = *state, *command = NULL;

	if (chdir("/") < 0 || asprintf(&command, "rm -rf '%s'", dir) < 0)
		return -1;
	return system(command);
}

unsigned own_folder_count(void)
{
	const struct dirent *e;
	unsigned count = 0;
	DIR *d = opendir(".");

	if (!d)
		return UINT_MAX;
	while ((e = readdir(d)))
		count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return count;
}
