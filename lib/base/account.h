/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Users and groups by name. A static program reads /etc/passwd and /etc/group itself: modules named
 * in nsswitch.conf may need another C library than its own.
 */
#pragma once

#include <sys/types.h>

/* Return 0 or -ENOENT. */
int account_user(const char *name, uid_t *ret);
int account_group(const char *name, gid_t *ret);
/* The caller frees it. NULL: no such user. */
char *account_name(uid_t uid);
