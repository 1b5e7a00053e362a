/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the folder of an output without following other users' links: walk.c. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* A name in a folder. */
struct place {
	int dir_fd;	  /* owned; O_PATH */
	char *base;	  /* owned; empty if the path ends with a slash */
	char *dir, *path; /* for messages, with followed links replaced; owned */
};
#define PLACE_INIT ((struct place){ .dir_fd = -EBADF })

/*
 * follow: also follows links of the last name, even to a missing target. -EPERM, with a message:
 * another user could have made a link on the way. Other errors have no message.
 */
int place_find(struct place *ret, const char *path, bool follow, struct error *err);
void place_deinit(struct place *p);
#define _cleanup_place_ _cleanup_(place_deinit)

/* Opens the folder for reading; or -errno. */
int place_open_folder(const struct place *p);
/*
 * Refuses another user's file, and another user's link on the way to it: -EPERM. 0: the path may
 * be used, or does not exist.
 */
int place_check_owner(const char *path, struct error *err);

/* True for the caller and root. */
bool place_trusts(uid_t owner);
/*
 * Opens the device or the pipe at path for writing. -EPERM, with a message: it is another user's.
 * -ENXIO and so on, without one.
 */
int place_open_special(const char *path, struct error *err);
