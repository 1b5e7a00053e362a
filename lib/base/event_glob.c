/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/event_glob.h"

#include <fnmatch.h>
#include <string.h>

#define SYSTEM_MAX 256

static bool event_glob_has_part(const char *glob, const char *part)
{
	return !*glob || fnmatch(glob, part, 0) == 0;
}

bool event_glob_has(const char *glob, const char *system, const char *event)
{
	const char *colon = strchr(glob, ':');
	char wanted[SYSTEM_MAX];
	size_t len;

	if (!*glob)
		return false;
	if (!colon)
		return event_glob_has_part(glob, system) || event_glob_has_part(glob, event);
	len = (size_t)(colon - glob);
	if (len >= sizeof(wanted))
		return false;
	memcpy(wanted, glob, len);
	wanted[len] = '\0';
	return event_glob_has_part(wanted, system) && event_glob_has_part(colon + 1, event);
}
