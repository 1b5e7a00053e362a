/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Spool files: the capture stream of a recording on its way. A file has a name
 * from its first byte, so that a crash of the daemon leaves it to be converted;
 * the daemon that writes it holds a lock on it, so that others can tell a
 * living one from a leftover.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

struct spool {
	int fd;		     /* for writing; owned; -EBADF: none */
	char *path;	     /* owned */
	uint64_t given_back; /* up to here, but for the stream's head; 0: nothing was */
	uint64_t holes;	     /* bytes that were */
	bool keeps;	     /* the file system makes no holes */
};
#define SPOOL_INIT ((struct spool){ .fd = -EBADF })

/*
 * Creates dir/<utc>-<name>-<random>.traced, or, of another user than root,
 * dir/<utc>-<uid>+<name>-<random>.traced; mode 0600, locked. name: without a "+". -ENOSPC: fewer
 * than min_free bytes are free in dir.
 */
int spool_create(struct spool *ret, const char *dir, const char *name, uid_t uid, uint64_t min_free,
		 struct error *err);
/* An own read-only description of the file, at offset 0: for an exporter. */
int spool_reopen(const struct spool *s, struct error *err);
/*
 * 0; -ENOSPC: fewer than min_free bytes are free; -EDQUOT: it has more than max bytes (0: no
 * limit).
 */
int spool_check(const struct spool *s, uint64_t min_free, uint64_t max);
/*
 * Nothing needs the bytes from `from` to `to` any more: they become a hole. -EINVAL: they are not
 * the file's; -EOPNOTSUPP: the file system makes none.
 */
int spool_give_back(struct spool *s, uint64_t from, uint64_t to);
/* Bytes that it has and nobody has given back. */
uint64_t spool_bytes(const struct spool *s);
/* Removes the file. */
void spool_discard(struct spool *s);
/* Lets go of the file, which stays. */
void spool_deinit(struct spool *s);

/* Makes dir with its parents; the last part with mode. */
int make_dir(const char *dir, unsigned mode, struct error *err);

struct spool_leftover {
	const char *path;
	uint64_t bytes;
	uid_t uid; /* whose recording it is, by its name */
	bool told; /* spool_mark_told() was called of it */
};

/*
 * Calls found for each spool file in dir that nobody writes any more. Empty
 * ones are removed instead.
 */
int spool_find_leftovers(const char *dir,
			 void (*found)(void *userdata, const struct spool_leftover *leftover),
			 void *userdata);
/* Of those, the bytes of the ones of this user. */
uint64_t spool_bytes_of(const char *dir, uid_t uid);
/* Remembers that somebody was told of a leftover: nobody may write it from then on. */
void spool_mark_told(const char *path);
