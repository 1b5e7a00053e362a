/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each chunk of a stream adds to an index, within its bounds. For index.c. */
#pragma once

#include "trace/index.h"

struct loader;

/* Borrows index and reader, which stay where they are. Returns 0 or -ENOMEM. */
int loader_new(struct loader **ret, struct stream_index *index, const struct stream_reader *reader,
	       const struct index_options *options);
struct loader *loader_free(struct loader *l);

/*
 * -EBADMSG: it is no stream that can be read. What is damaged or too much is no
 * error: it is left out, with a warning.
 */
int loader_add(struct loader *l, const struct chunk *chunk, struct error *err);
/* All that decodes is there, and does not change any more. -EBADMSG: it is not. */
int loader_seal(struct loader *l, struct error *err);
/* Warns of what only came out as it was used. */
int loader_settle(struct loader *l);
/* Of a stream that is followed: the readings of tasks were used. */
void loader_forget_readings(struct loader *l);
