/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How this program came to be here: installed, with units or without, or in a build tree. */
#pragma once

#include <stdbool.h>

/* systemd knows traced.socket: hints name systemctl only then. */
bool place_has_unit(void);
/* What starts a daemon here, for a hint; valid until the next call. */
const char *place_start_daemon(void);
/* What path leads to from the folder of the running program; to be freed. NULL: nothing. */
char *place_beside(const char *path);
