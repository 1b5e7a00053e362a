/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A folder that daemons share, and that the one who made it may remove once no other has it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Creates dir and its parents; mode is for the last part. */
int make_dir(const char *dir, unsigned mode, struct error *err);

struct folder {
	char *path; /* owned */
	int fd;	    /* locked, shared; or -EBADF */
	bool made;  /* by us */
};
#define FOLDER_INIT ((struct folder){ .fd = -EBADF })

/* Makes the folder if it is missing. */
int folder_take(struct folder *ret, const char *path, unsigned mode, struct error *err);
/* Removes it if we made it, it is empty, and nobody else has taken it. */
void folder_remove(const struct folder *f);
void folder_deinit(struct folder *f);
