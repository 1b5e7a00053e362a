/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorded kernel's symbols: KALLSYMS chunks of a stream. Most recordings have far more symbols
 * than events that name one. So only the chunks' places are noted. The event table reads them on
 * the first look-up that the excerpt cannot answer, in the thread that makes it.
 */
#pragma once

#include <stdatomic.h>

#include "print/event_table.h"
#include "stream/reader.h"
#include "trace/bounds.h"

#define KALLSYMS_CHUNKS_MAX 64

struct last_boot;

struct kallsyms {
	const struct stream_reader *reader; /* borrowed */
	struct bounds *bounds;		    /* borrowed */
	struct chunk chunks[KALLSYMS_CHUNKS_MAX];
	const struct last_boot *moved; /* borrowed; NULL: the addresses are the recording's */
	size_t count, late_count;
	atomic_int result; /* of reading symbols */
};

/* Borrows both. k must not move while event tables refer to it. */
void kallsyms_init(struct kallsyms *k, const struct stream_reader *reader, struct bounds *bounds);

/*
 * Before events is sealed: notes a chunk whose symbols events will read on demand. payload: a
 * buffer for loading. -EFBIG: too many. -EBADMSG: damaged.
 */
int kallsyms_add(struct kallsyms *k, struct event_table *events, const struct chunk *chunk,
		 struct buf *payload, struct error *err);
/*
 * For modules loaded while a recording is followed. The chunk's part of the stream may be freed at
 * any time, so events gets its symbols at once. Errors as above, and -ENOMEM.
 */
int kallsyms_add_late(struct kallsyms *k, struct event_table *events, const struct chunk *chunk,
		      struct buf *payload, struct error *err);

/* The first error of reading symbols since the last call; 0: none. */
int kallsyms_take_result(struct kallsyms *k);
