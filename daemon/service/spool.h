/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Spool files: the capture stream of a recording until it is exported. A file has a name from its
 * first byte, so that it can be converted after the daemon has crashed. Its daemon holds a lock on
 * it, which tells a live file from a leftover. A client's own file, in memory, has neither.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/error.h"

struct accounts;

/* Ends the name of a file that will replace the one without it. */
#define SPOOL_UNFINISHED ".new"

struct spool {
	int fd;		     /* for writing; owned; -EBADF: no file */
	char *path;	     /* owned */
	uint64_t given_back; /* returned up to here, except the stream's head; 0: nothing */
	uint64_t holes;	     /* total bytes returned */
	bool keeps;	     /* the file system cannot punch holes */
	/* Not 0: a client's file in memory, without a path, and the most bytes for it. */
	uint64_t client_max;
};
#define SPOOL_INIT ((struct spool){ .fd = -EBADF })

/*
 * Creates dir/<utc>-<name>-<random>.traced, or for a user other than root
 * dir/<utc>-<uid>+<name>-<random>.traced; mode 0600, locked. name: without "+". -ENOSPC: fewer
 * than min_free bytes are free in dir.
 */
int spool_create(struct spool *ret, const char *dir, const char *name, uid_t uid, uint64_t min_free,
		 struct error *err);
/*
 * Uses a client's file, which must be empty and in memory; fd stays the caller's. The client
 * follows it, and returns its space.
 */
int spool_use(struct spool *ret, int fd, uint64_t max, struct error *err);
/* Opens the file again read-only, at offset 0, for an exporter. */
int spool_reopen(const struct spool *s, struct error *err);
/*
 * Returns 0; -ENOSPC: fewer than min_free bytes are free; -EDQUOT: larger than max bytes (0: no
 * limit). Where memory ends is unknown: a client's file has the second limit only.
 */
int spool_check(const struct spool *s, uint64_t min_free, uint64_t max);
/* The bytes until one of these limits is reached. */
uint64_t spool_left(const struct spool *s, uint64_t min_free, uint64_t max);
/*
 * Punches a hole from `from` to `to`. -EINVAL: not within the file; -EOPNOTSUPP: the file system
 * cannot punch holes.
 */
int spool_give_back(struct spool *s, uint64_t from, uint64_t to);
/* The file's size minus the bytes returned; of a client's file, all that is not free. */
uint64_t spool_bytes(const struct spool *s);
/* Removes the file; a client's is only closed. */
void spool_discard(struct spool *s);
/* Closes the file and leaves it where it is. */
void spool_deinit(struct spool *s);

struct spool_leftover {
	const char *path;
	uint64_t bytes;
	time_t ended;  /* the last write */
	uid_t uid;     /* owner of the recording, from the file's name */
	bool reported; /* spool_mark_reported() was called for it */
};

/*
 * Calls found for each spool file in dir that no daemon writes any more. Removes empty ones
 * instead.
 */
int spool_find_leftovers(const char *dir,
			 void (*found)(void *userdata, const struct spool_leftover *leftover),
			 void *userdata);
/*
 * Removes the files of dir (*.traced.new) that a killed boot_recorder_renew() left behind. It holds
 * a lock on the file that it writes.
 */
void spool_remove_unfinished(const char *dir);
/* Bytes that may be written to fd's filesystem so that min_free bytes stay free; 0: none. */
uint64_t spool_room(int fd, uint64_t min_free);

/* Leftovers in a folder. */
struct spool_total {
	uint64_t bytes;	    /* of one account */
	unsigned count;	    /* of one account */
	unsigned all_users; /* the count of all users other than root */
};
/*
 * Removes the user's leftover with this file name, or path. -ENOENT: there is none. A user finds
 * the name in the message of the failed export.
 */
int spool_remove_leftover(const char *dir, uid_t uid, const char *name);
void spool_total_of(const char *dir, struct accounts *accounts, uid_t account,
		    struct spool_total *ret);
uint64_t spool_bytes_of(const char *dir, struct accounts *accounts, uid_t account);
/* Remembers that a leftover was reported, by making the file read-only. */
void spool_mark_reported(const char *path);
