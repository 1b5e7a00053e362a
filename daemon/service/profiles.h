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
 *
 * A file in the first folder that has it hides those of the same name in later ones.
 */
#pragma once

#include "daemon/service/config.h"

struct profile {
	char *name, *summary, *path; /* owned */
	char *tracer;		     /* NULL: none; owned */
	struct string_list events, optional, functions;
};

/*
 * NULL-terminated: /etc/traced/profiles, /usr/share/traced/profiles (or, of a
 * program in its build tree, the folder there); or the one that TRACED_PROFILES names.
 */
const char *const *profile_search_path(void);

/* -ENOENT: none of that name (the hint has those that are); -EINVAL: its file is wrong. */
int profile_load(struct profile **ret, const char *const *dirs, const char *name,
		 struct error *err);
struct profile *profile_free(struct profile *p);
DEFINE_CLEANUP_FUNC(struct profile *, profile_free);

/* Names of all, sorted. */
int profile_names(struct string_list *ret, const char *const *dirs);
