/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Landlock: what the calling thread, and whoever it makes, may do by a path; for good, and without
 * privilege. What is open already stays usable. no_new_privs has to be set.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct landlock_rules {
	bool may_read;	  /* files and folders everywhere: nothing is written, made or executed */
	bool may_connect; /* by TCP */
	/* Folders in and below which files may be written and made even so; descriptors, borrowed.
	 */
	const int *writable;
	size_t writable_count;
};

/* Zeros: nothing. 0 as well where the kernel has no Landlock (before 5.13), or not so much of it.
 */
int landlock_enter(const struct landlock_rules *rules, struct error *err);
