/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * traced.pid: for init scripts, and a lock that keeps a second daemon away from the same journals.
 * Only the lock counts; an old file without one is ignored.
 */
#pragma once

#include "base/error.h"

struct pid_file {
	int fd;
	char *path; /* owned */
};
#define PID_FILE_INIT                                                                              \
	{                                                                                          \
		.fd = -EBADF                                                                       \
	}

/* Creates the folder if missing. -EBUSY: another process holds the lock; err names it. */
int pid_file_take(struct pid_file *p, const char *folder, struct error *err);
/* Removes the file if this process took it. */
void pid_file_deinit(struct pid_file *p);
