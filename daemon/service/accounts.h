/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose turn it is, and who has reached a limit: a user with subordinate ids (subuid(5)) can be
 * many users, and counts as one. Who owns a session, and what a user may do, is about the real user
 * id.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct account_range;

struct accounts {
	const char *subuid, *passwd; /* paths, the caller's */
	struct account_range *ranges;
	size_t count, cap;
	uint64_t seen[4]; /* tells the file that was read from another */
};

/* Reads /etc/subuid and /etc/passwd. */
int accounts_new(struct accounts **ret);
struct accounts *accounts_free(struct accounts *a);

/*
 * Returns the owner of the range in /etc/subuid with uid; without one, uid. Never another user for
 * root, and never root for another user. Reads the file again when it has changed.
 */
uid_t accounts_of(struct accounts *a, uid_t uid);
