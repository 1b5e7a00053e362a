/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out how this program was installed: with units, without, or not at all (a build tree). */
#pragma once

#include <stdbool.h>

/* True if systemd has traced.socket: only then hints name systemctl. */
bool place_has_unit(void);
/* A command that starts the daemon, for a hint. Valid until the next call. */
const char *place_start_daemon(void);
/*
 * Resolves path relative to the running program's folder. The caller frees it. NULL: no such file.
 */
char *place_beside(const char *path);
