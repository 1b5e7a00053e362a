/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the agent must not forget, in files of its own folder: the last order of each group that it
 * took, which of its orders have not ended, and what it did today.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DIGEST_SIZE 32
/* Groups that ever had an order for this board. */
#define STATE_GROUPS_MAX 64
#define STATE_OPEN_MAX 16
/* The group of orders without one. No board is in a group of that name. */
#define STATE_ALL "all"

/* The last order of a group. */
struct state_taken {
	char group[65];
	uint64_t serial;
	unsigned char digest[DIGEST_SIZE]; /* of the order, with its signature */
};

struct state_open {
	uint64_t serial;
	bool waits; /* its recording has not begun: a later life of the agent may follow it */
};

struct state {
	int dirfd;   /* of the folder */
	int lock_fd; /* one agent a folder */
	/* taken */
	struct state_taken taken[STATE_GROUPS_MAX];
	size_t taken_count;
	struct state_open open[STATE_OPEN_MAX]; /* orders that have not ended */
	size_t open_count;
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

/* The serial of the group's last order; 0: none yet. */
uint64_t state_serial(const struct state *state, const char *group);
/* The highest of them. */
uint64_t state_last_serial(const struct state *state);
/* The lowest of the groups' last serials above that one; 0: none. */
uint64_t state_serial_after(const struct state *state, uint64_t serial);
/* True if this very order is the group's last one. */
bool state_knows(const struct state *state, const char *group, uint64_t serial,
		 const unsigned char digest[DIGEST_SIZE]);
/* Notes that an order is taken, and waits. It is on the disk when this returns 0. */
int state_take(struct state *state, const char *group, uint64_t serial,
	       const unsigned char digest[DIGEST_SIZE], uint64_t now, struct error *err);
/* Notes that an order is not to be taken, unless a later one of its group was. */
int state_pass_over(struct state *state, const struct state_taken *order, struct error *err);
/* Notes that a waiting order's recording begins. It is on the disk when this returns 0. */
int state_begin(struct state *state, uint64_t serial, struct error *err);
/* Notes that an order has ended: its results lie in the spool, or there are none. */
int state_close(struct state *state, uint64_t serial, struct error *err);
/* Notes an upload before it begins, because an interrupted one has cost its bytes, too. */
int state_add_upload(struct state *state, uint64_t bytes, uint64_t now, struct error *err);

/* Counts of the day of now. */
uint64_t state_orders(const struct state *state, uint64_t now);
uint64_t state_uploads(const struct state *state, uint64_t now);
uint64_t state_bytes(const struct state *state, uint64_t now);
