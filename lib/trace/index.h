/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way through a stream: everything but sub-buffers is loaded, and of the
 * sub-buffers it is remembered where they lie. Nothing here grows with the number
 * of events but the tasks that lived.
 *
 * A whole stream is loaded at once. One that is still being written is loaded
 * from FLUSH to FLUSH: when one is met, whatever chunk lies before the one
 * that precedes it (`ripe`) holds nothing younger than what is still to come.
 */
#pragma once

#include "stream/reader.h"
#include "trace/mark_ring_list.h"
#include "trace/ring_index.h"
#include "trace/trace_info.h"

struct loader;

struct stream_index {
	struct trace_info info;
	struct ring_index rings[BUFFER_COUNT];
	struct mark_ring_list marks;
	struct ring_index samples; /* SAMPLES chunks; their skip means nothing */
	bool incomplete;	   /* cut, not closed, or some chunk of it could not be read */
	char **warnings;	   /* owned */
	size_t warning_count;

	struct stream_reader *reader; /* borrowed */
	struct loader *loader;	      /* owned */
	bool ended;		      /* nothing comes after what the reader has */
	uint64_t ripe;		      /* an offset; UINT64_MAX: the stream is whole */
	uint64_t last_flush;	      /* the offset of the last FLUSH; 0: there was none */
};

struct index_options {
	bool raw_addresses;
	const char *trace_options; /* NULL, or instead of the recorded ones */
};

/*
 * The whole stream, to its end. -EBADMSG: no stream, or one without what is needed to
 * decode it. What is damaged later is left out, with a warning. ret is to be
 * given to stream_index_deinit in any case, and stays where it is until then.
 */
int stream_index_load(struct stream_index *ret, struct stream_reader *reader,
		      const struct index_options *options, struct error *err);

/* The same in steps. open loads nothing yet. */
int stream_index_open(struct stream_index *ret, struct stream_reader *reader,
		      const struct index_options *options, struct error *err);
/*
 * Up to and including the next FLUSH: 1, and all that decodes is there. 0: the
 * stream has none beyond what was loaded; is it ended, it never will. -EBADMSG as above.
 */
int stream_index_next(struct stream_index *index, struct error *err);
/* Whatever the reader has beyond is all that there will be. */
int stream_index_finish(struct stream_index *index, struct error *err);
/* info.task_readings were used: they are empty from here on. */
void stream_index_forget_readings(struct stream_index *index);
/* Once all was exported: warns of what only came out as it was used. */
int stream_index_settle(struct stream_index *index);
/* A FLUSH was met there; for load.c. */
void stream_index_flushed(struct stream_index *index, uint64_t offset);
void stream_index_deinit(struct stream_index *index);

/* Adds a sentence for the person who reads the result. Returns 0 or -ENOMEM. */
int stream_index_warn(struct stream_index *index, const char *fmt, ...) _printf_(2, 3);
