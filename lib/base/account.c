/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/account.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "base/cleanup.h"

#if STATIC_PROGRAMS
/* Finds a user by name or, if that is NULL, by number, like getpwnam() and getpwuid(). */
static const struct passwd *find_user(const char *name, uid_t uid)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *pw = NULL;

	if (!file)
		return NULL;
	while ((pw = fgetpwent(file)) &&
	       (name ? strcmp(pw->pw_name, name) != 0 : pw->pw_uid != uid))
		;
	fclose(file);
	return pw;
}

static const struct group *find_group(const char *name)
{
	FILE *file = fopen("/etc/group", "re");
	const struct group *gr = NULL;

	if (!file)
		return NULL;
	while ((gr = fgetgrent(file)) && strcmp(gr->gr_name, name) != 0)
		;
	fclose(file);
	return gr;
}
#else
static const struct passwd *find_user(const char *name, uid_t uid)
{
	return name ? getpwnam(name) : getpwuid(uid);
}

static const struct group *find_group(const char *name)
{
	return getgrnam(name);
}
#endif

int account_user(const char *name, uid_t *ret)
{
	const struct passwd *pw = find_user(name, 0);

	if (!pw)
		return -ENOENT;
	*ret = pw->pw_uid;
	return 0;
}

int account_group(const char *name, gid_t *ret)
{
	const struct group *gr = find_group(name);

	if (!gr)
		return -ENOENT;
	*ret = gr->gr_gid;
	return 0;
}

char *account_name(uid_t uid)
{
	const struct passwd *pw = find_user(NULL, uid);

	return pw ? strdup(pw->pw_name) : NULL;
}
