/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Results that wait for their upload: files SERIAL-HASH.SUFFIX of the folder "spool". A segment's
 * SUFFIX begins with its number; segments of one order come in that order. HASH is the
 * BLAKE2b of the content, so one content has one name, whatever happens in between.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SPOOL_NAME_MAX 128

struct spool {
	int dirfd;	   /* of the folder */
	uint64_t bytes;	   /* of the files in it */
	uint64_t dropped;  /* files that gave way, or were damaged */
	uint64_t counted;  /* an order, or 0 */
	unsigned gave_way; /* files of that order that did */
	/* The files of the highest serials are sent first; a new file gives way to the others. */
	bool sends_newest, drops_newest;
};
#define SPOOL_INIT ((struct spool){ .dirfd = -EBADF })

struct spool_entry {
	char name[SPOOL_NAME_MAX];
	uint64_t serial, size;
	const char *remote; /* HASH.SUFFIX, in name */
};

/* Opens or makes the folder in that of state_fd. */
int spool_open(struct spool *ret, int state_fd, struct error *err);
void spool_close(struct spool *spool);

/*
 * Moves a file of the folder from_fd into the spool, with its content on the disk. Beyond max bytes
 * the oldest files are removed; with drops_newest the new one is refused: -ENOSPC. -EFBIG: the file
 * alone has more.
 */
int spool_add(struct spool *spool, int from_fd, const char *name, uint64_t serial,
	      const char *suffix, uint64_t max, struct error *err);
/*
 * The file to send next: behind the one named `after`, or else the first of all. after: "" or the
 * name of an entry. 0: there is no file.
 */
int spool_next(struct spool *spool, const char *after, struct spool_entry *ret);
/* True if a result of the order waits. */
bool spool_has(const struct spool *spool, uint64_t serial);
/* For reading. */
int spool_open_entry(const struct spool *spool, const struct spool_entry *entry);
int spool_remove(struct spool *spool, const struct spool_entry *entry);
