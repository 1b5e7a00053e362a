/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Divides a bounded table among the programs that fill it, so that none takes the others' room.
 *
 * A user's programs may hold at most twice what is still free in the table, and one of them at most
 * twice what its user may still take. So a program that is alone may hold four sevenths of the
 * table, a user two thirds, and the next user two thirds of what the first one left.
 */
#pragma once

#include "base/table.h"

struct stream_index;

/* A program that fills tables. */
struct share_owner {
	uint64_t user; /* its uid; or SHARE_OWNER_FILE and the number of a merged file */
	int32_t pid;   /* 0: unknown */
};
#define SHARE_OWNER_FILE (UINT64_C(1) << 32)

struct share {
	struct share_owner owner;
	bool all;      /* of all the user's programs */
	uint64_t used; /* 0: free slot */
};
DECLARE_TABLE(share_slots, struct share);

struct shares {
	uint64_t max, used;
	struct share_slots holders;
	uint64_t refused; /* calls of shares_take() without room */
	int32_t refused_pid;
	bool refused_others; /* and not only this one */
};

/* All is free again; the counts of refusals stay. */
void shares_restart(struct shares *s);
void shares_deinit(struct shares *s);

/* 0; -ENOSPC, which is counted: the program holds too much; -ENOMEM. count: above 0. */
int shares_take(struct shares *s, const struct share_owner *owner, uint64_t count);
/* The same, without counting. */
int shares_try_take(struct shares *s, const struct share_owner *owner, uint64_t count);
/* Gives back what the owner has taken. */
void shares_return(struct shares *s, const struct share_owner *owner, uint64_t count);

/* Warns if something was refused. what: plural; more: NULL, or which of them are too many. */
int shares_warn(const struct shares *s, const char *what, const char *more,
		struct stream_index *index);
