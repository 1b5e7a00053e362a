/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorded kernel's symbols: the KALLSYMS chunks of a stream. Most recordings have more of
 * them than events that name one, so it is remembered where they lie, and the event table reads
 * them when the first is looked for that the excerpt does not name, in whichever thread that is.
 */
#pragma once

#include <stdatomic.h>

#include "print/event_table.h"
#include "stream/reader.h"
#include "trace/bounds.h"

#define KALLSYMS_CHUNKS_MAX 64

struct kallsyms {
	const struct stream_reader *reader; /* borrowed */
	struct bounds *bounds;		    /* borrowed */
	struct chunk chunks[KALLSYMS_CHUNKS_MAX];
	size_t count, late_count;
	atomic_int result; /* of the reading */
};

/* Borrows both; k stays where it is as long as the tables of events that it is added to. */
void kallsyms_init(struct kallsyms *k, const struct stream_reader *reader, struct bounds *bounds);

/*
 * Before events is sealed: one more chunk whose symbols it will ask for. payload: for what is
 * loaded on the way. -EFBIG: too many; -EBADMSG: damaged.
 */
int kallsyms_add(struct kallsyms *k, struct event_table *events, const struct chunk *chunk,
		 struct buf *payload, struct error *err);
/*
 * Of modules, while the recording is followed: its place in the stream may be given back any
 * time, so its symbols are read into events at once. As above, and -ENOMEM.
 */
int kallsyms_add_late(struct kallsyms *k, struct event_table *events, const struct chunk *chunk,
		      struct buf *payload, struct error *err);

/* Why some could not be read when they were looked for, since this was last asked; 0: all could. */
int kallsyms_take_result(struct kallsyms *k);
