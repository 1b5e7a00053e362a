/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists what probes can be made of: functions, and tracepoints with their arguments. */
#pragma once

#include "daemon/capture/tracefs/tracefs.h"
#include "document.h"

struct probe_place {
	const char *kind; /* "function", "tracepoint" */
	char *name;	  /* owned */
	char *module;	  /* owned; NULL: the kernel itself */
	char *prototype;  /* in C; owned; NULL: unknown */
};

struct probe_places {
	struct probe_place *items; /* owned; sorted by kind, name and module */
	size_t count, cap;
	bool untyped; /* the kernel's types cannot be read: there are neither tracepoints nor
			 arguments */
};
void probe_places_deinit(struct probe_places *p);
#define _cleanup_probe_places_ _cleanup_(probe_places_deinit)

/*
 * Finds what matches one of globs; no globs: all. types: the folder of kernel_types_read(). -ENOENT
 * for a glob that nothing matches. Errors of function_list_read().
 */
int probe_places_find(struct probe_places *ret, const struct tracefs *fs, const char *types,
		      char *const *globs, size_t count, struct error *err);
