/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns and limits count accounts: a user with subordinate ids (subuid(5)) can be many users, and
 * counts as one. Rights and owners of sessions are about the real user id.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct account_range;

struct accounts {
	const char *subuid, *passwd; /* paths, the caller's */
	struct account_range *ranges;
	size_t count, cap;
	/* Tells the files that were read from others. */
	struct accounts_file {
		uint64_t dev, ino, size, changed_ns;
	} seen[2];
	int failed; /* the last reading: -errno, or 0 */
};

int accounts_new(struct accounts **ret);
struct accounts *accounts_free(struct accounts *a);

/*
 * Returns the owner of the range in /etc/subuid with uid; without one, uid. Never another user for
 * root, and never root for another user. Reads /etc/subuid and /etc/passwd when one of them has
 * changed.
 */
uid_t accounts_of(struct accounts *a, uid_t uid);
