/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Profiles: named sets of events, one INI file each:
 *
 *	[profile]
 *	summary = one line for people
 *	events = sched:sched_switch, irq:*
 *	optional = events that not every kernel has
 *	tracer = function
 *	functions = vfs_* ksys_*
 *	poll = meminfo,vmstat@1s
 *
 * A file hides files of the same name in later directories.
 */
#pragma once

#include "daemon/service/config.h"

struct profile {
	char *name, *summary, *path; /* owned */
	char *tracer;		     /* NULL: none; owned */
	char *poll;		     /* NULL: none; owned */
	struct string_list events, optional, functions;
};

/*
 * NULL-terminated: /etc/traced/profiles and /usr/share/traced/profiles (or the build tree's
 * directory, for a program in it); or the directory in TRACED_PROFILES.
 */
const char *const *profile_search_path(void);

/* -ENOENT: no such profile (the hint lists all); -EINVAL: its file is wrong. */
int profile_load(struct profile **ret, const char *const *dirs, const char *name,
		 struct error *err);
struct profile *profile_free(struct profile *p);
DEFINE_CLEANUP_FUNC(struct profile *, profile_free);

/* Names of all profiles, sorted. */
int profile_names(struct string_list *ret, const char *const *dirs);
