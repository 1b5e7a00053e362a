/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orders that wait, or whose results do, in files of the folder "orders", so that another life of
 * the agent goes on with them. A file SERIAL has a line with the start and the place, and then the
 * order as it came: its signature is checked again.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct kept {
	uint64_t start_s; /* seconds since 1970: not before */
	char *place;	  /* name of the struct place that showed it; NULL: a URL did */
	struct buf order; /* with its signature */
};
#define _cleanup_kept_ _cleanup_(kept_deinit)
void kept_deinit(struct kept *kept);

/* Makes the folder in that of state_fd. */
int kept_open(int state_fd, struct error *err);
/* It is on the disk when this returns 0. place: NULL: a URL. */
int kept_put(int state_fd, uint64_t serial, uint64_t start_s, const char *place, const char *data,
	     size_t len, struct error *err);
/* -ENOENT: there is none. -EBADMSG: it is damaged. */
int kept_get(int state_fd, uint64_t serial, struct kept *ret, struct error *err);
/* Removes the files of all orders for which is_wanted() is false, and unfinished files. */
void kept_sweep(int state_fd, bool (*is_wanted)(uint64_t serial, const void *data),
		const void *data);
