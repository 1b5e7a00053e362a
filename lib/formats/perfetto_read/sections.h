/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Texts that grow side by side and stand one behind the other in the end, in one file and
 * little memory: they are written as pieces, and put in order once all are there.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#define SECTIONS_MAX 3

struct section_piece {
	unsigned section;
	size_t len;
};

struct sections {
	int fd;		/* borrowed; an empty file, to be read and written */
	uint64_t limit; /* bytes of all texts; 0: any */
	uint64_t written;
	struct buf text[SECTIONS_MAX]; /* of each what is not in the file yet; to be appended to */
	struct section_piece *pieces;  /* owned; as they lie in the file */
	size_t count, cap;
};
void sections_init(struct sections *s, int fd, uint64_t limit);
void sections_deinit(struct sections *s);

/* After each append. 0, -EDQUOT or another -errno. */
int sections_settle(struct sections *s, unsigned section, struct error *err);
/* All that comes: the file is the texts, in their order; for a moment it may be twice as long. */
int sections_join(struct sections *s, struct error *err);
