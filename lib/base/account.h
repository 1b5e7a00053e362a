/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Users and groups by name. A static program must not load what nsswitch.conf
 * names, whose C library may be another than its own: it reads /etc/passwd and
 * /etc/group, where there are any.
 */
#pragma once

#include <sys/types.h>

/* 0, or -ENOENT. */
int account_user(const char *name, uid_t *ret);
int account_group(const char *name, gid_t *ret);
/* To be freed; NULL for a user that has none. */
char *account_name(uid_t uid);
