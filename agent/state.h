/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the agent must not forget, in files of its own folder: the last order that it took, and what
 * it did today.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define DIGEST_SIZE 32

struct state {
	int dirfd;   /* of the folder */
	int lock_fd; /* one agent a folder */
	/* taken */
	uint64_t serial;		   /* 0: none yet */
	unsigned char digest[DIGEST_SIZE]; /* of the order, with its signature */
	bool is_open;			   /* its recording has not ended */
	/* today */
	uint64_t day; /* since 1970 */
	uint64_t orders, uploads, bytes;
};
#define STATE_INIT ((struct state){ .dirfd = -EBADF, .lock_fd = -EBADF })

/*
 * Reads the folder's files; a missing one is that of a new board. -EBADMSG: a damaged one, after
 * which no order is safe to take. -EBUSY: another agent uses the folder.
 */
int state_load(struct state *ret, const char *folder, struct error *err);
void state_deinit(struct state *state);

/* Notes that an order is taken. It is on the disk when this returns 0. */
int state_take(struct state *state, uint64_t serial, const unsigned char digest[DIGEST_SIZE],
	       uint64_t now, struct error *err);
/* Notes that the recording of the last order has ended, and its results lie in the spool. */
int state_close(struct state *state, struct error *err);
/* Notes an upload before it begins, because an interrupted one has cost its bytes, too. */
int state_add_upload(struct state *state, uint64_t bytes, uint64_t now, struct error *err);

/* Counts of the day of now. */
uint64_t state_orders(const struct state *state, uint64_t now);
uint64_t state_uploads(const struct state *state, uint64_t now);
uint64_t state_bytes(const struct state *state, uint64_t now);
