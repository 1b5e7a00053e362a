/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file that gets the messages of a process in the background. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/*
 * Opens or creates the file `base` in the folder, for appending. path: for messages. -EPERM: it is
 * no plain file of the caller's, or has a second name.
 */
int message_log_open(int dir_fd, const char *base, mode_t mode, const char *path,
		     struct error *err);
