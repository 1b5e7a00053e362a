/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a store says that it has: the JSON of nginx's autoindex, or the XML of S3's ListObjectsV2.
 * Somebody far away wrote it, so for root it is read in a process of its own, and each name is
 * checked again here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* Bytes of one answer. */
#define LISTING_MAX (16U << 20)
/* Names of all answers. */
#define LISTING_NAMES_MAX 1000000U

/* Bytes of all answers. */
#define LISTING_ALL_MAX (UINT64_C(1) << 30)

struct listing_item {
	char *name;    /* owned; of letters, digits and "._-=/", none with ".." */
	uint64_t size; /* that the store claims; UINT64_MAX: none, or one that is no number */
};

struct listing {
	struct listing_item *items; /* owned */
	size_t count, cap;
	size_t refused;	 /* other names */
	uint64_t bytes;	 /* of the answers */
	struct buf next; /* S3's token for the next part; empty: there is none */
};
void listing_deinit(struct listing *listing);
#define _cleanup_listing_ _cleanup_(listing_deinit)

/* Adds the names of an answer. -EBADMSG: it is no listing; -EFBIG: there are too many names. */
int listing_add(struct listing *listing, bool is_s3, const struct buf *answer, struct error *err);

/* The halves of listing_add(): an answer as lines, which are trusted as little as the answer. */
int listing_read(const struct buf *answer, bool is_s3, struct buf *lines, struct error *err);
int listing_take_lines(struct listing *listing, struct buf *lines, struct error *err);
