/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * traced.pid: for init scripts, and the lock that keeps a second daemon off the
 * same journals. Its lock tells the truth, whatever is left of an earlier run.
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

/* Makes the folder, too. -EBUSY: another process has it, and err says which. */
int pid_file_take(struct pid_file *p, const char *folder, struct error *err);
/* Removes it, if it was taken. */
void pid_file_deinit(struct pid_file *p);
