/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Landlock restricts which paths the calling thread and its children may use: permanently, without
 * privilege. Open files stay usable. Requires no_new_privs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct landlock_rules {
	bool may_read;	  /* read files and folders everywhere; never write, create or execute */
	bool may_connect; /* over TCP */
	/* Descriptors of folders in which files may be written and created anyway; borrowed. */
	const int *writable;
	size_t writable_count;
};

/*
 * All zero forbids everything. Returns 0 too if the kernel lacks Landlock (before 5.13) or a part
 * of it.
 */
int landlock_enter(const struct landlock_rules *rules, struct error *err);
