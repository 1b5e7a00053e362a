/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads each chunk of a stream into an index, within bounds. For index.c. */
#pragma once

#include "trace/index.h"

struct loader;

/* Borrows index and reader, which must not move. Returns 0 or -ENOMEM. */
int loader_new(struct loader **ret, struct stream_index *index, const struct stream_reader *reader,
	       const struct index_options *options);
struct loader *loader_free(struct loader *l);

/*
 * -EBADMSG: the stream cannot be read. A chunk that is damaged or exceeds its bounds is no error:
 * it is left out, with a warning.
 */
int loader_add(struct loader *l, const struct chunk *chunk, struct error *err);
/* Declares the metadata for decoding complete and immutable. -EBADMSG: some is missing. */
int loader_seal(struct loader *l, struct error *err);
/* Adds warnings about problems found during the export. */
int loader_settle(struct loader *l);
/* For a followed stream: returns the memory of task readings after their use. */
void loader_forget_readings(struct loader *l);
