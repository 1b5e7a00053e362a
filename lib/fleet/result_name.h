/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The place of a result below a store's URL, or in a folder:
 * "fleet=F/order=N/board=B/HASH.SUFFIX".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "fleet/word.h"

#define RESULT_HASH_SIZE 32 /* BLAKE2b-256 */
#define RESULT_HASH_LEN (2 * RESULT_HASH_SIZE)
#define RESULT_FILE_MAX (RESULT_HASH_LEN + sizeof(".0000000.pftrace.gz"))

enum result_kind {
	RESULT_REPORTS, /* HASH.ndjson.zst (fleet/rows.h), or HASH.json */
	RESULT_CAPTURE, /* HASH.traced, or a segment: HASH.0001.pftrace */
};

struct result_name {
	char fleet[WORD_NAME_MAX + 1], board[WORD_NAME_MAX + 1];
	uint64_t order;
	char file[RESULT_FILE_MAX];
	enum result_kind kind;
	bool is_packed;	  /* reports: as rows */
	unsigned segment; /* its number, from 1; 0: a whole recording, or reports */
};

/* Whether segments can have the format, a name as `record --format` takes it. */
bool result_is_segment_format(const char *format);
/* "0001.pftrace": the number of a segment in front of its format. 0: it is something else. */
unsigned result_segment_parse(const char *text);

/*
 * Takes a path apart. Everything in front of its last four parts is left alone. False: it is no
 * result's. A part that is taken has only letters, digits and "._-=", and none is "..".
 */
bool result_name_parse(const char *path, struct result_name *ret);
/* "fleet=F/order=N", or with a board "fleet=F/order=N/board=B". */
void result_folder_put(const char *fleet, uint64_t order, const char *board, struct buf *out);

/* Whether that is the name of a result with that content's hash. */
bool result_name_fits(const struct result_name *name, const unsigned char hash[RESULT_HASH_SIZE]);
