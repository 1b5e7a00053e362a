/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One pass over a stream: loads all chunks but sub-buffers, and notes the places of these. Its
 * memory grows with the number of tasks, not with the number of events.
 *
 * A whole stream is loaded at once. A stream that is still being written is loaded from FLUSH to
 * FLUSH. Everything that a CPU wrote before one FLUSH is no younger than what comes after the next
 * one. So once a FLUSH was read, chunks before the FLUSH that precedes it (`ripe`) can be given out
 * in order.
 */
#pragma once

#include "stream/reader.h"
#include "trace/mark_ring_list.h"
#include "trace/ring_index.h"
#include "trace/trace_info.h"

struct loader;

/* The first bytes of a stream that goes on: an END is thought behind them. */
struct stream_part {
	uint64_t bytes;			 /* 0: no part, but the whole stream */
	uint64_t start_boot_ns, boot_ns; /* as in END */
};

struct stream_index {
	struct trace_info info;
	struct ring_index rings[BUFFER_COUNT];
	struct mark_ring_list marks;
	struct ring_index samples; /* SAMPLES chunks; their skip has no meaning */
	struct chunk_list polls;   /* POLLS chunks */
	bool incomplete;	   /* cut, not closed, or a chunk could not be read */
	bool marks_lost;	   /* applications made more marks */
	char **warnings;	   /* owned */
	size_t warning_count;

	struct stream_reader *reader;  /* borrowed */
	struct loader *loader;	       /* owned */
	struct stream_part part;       /* as in index_options */
	uint64_t skip;		       /* what was recorded before this offset is left out;
					* UINT64_MAX: it is not known yet */
	uint64_t skip_from;	       /* as in index_options */
	const struct host_clock *host; /* as in index_options */
	bool ended;		       /* the reader's data is all there will be */
	uint64_t ripe;		       /* an offset: chunks before it can be given out;
					* UINT64_MAX: all */
	uint64_t last_flush;	       /* offset of the last FLUSH; 0: none */
};

struct index_options {
	bool raw_addresses;
	const char *trace_options; /* replaces the recorded options; or NULL */
	struct stream_part part;
	/*
	 * Not 0: leaves out what was recorded before the first FLUSH from this offset on, as the
	 * rings may have held it for long.
	 */
	uint64_t skip_from;
	const struct host_clock *host; /* moves all times to another machine's clock; or NULL */
};

/*
 * Loads nothing yet. Returns 0 or -ENOMEM. Call stream_index_deinit() on ret in any case; ret must
 * not move until then.
 */
int stream_index_open(struct stream_index *ret, struct stream_reader *reader,
		      const struct index_options *options, struct error *err);
/*
 * Loads up to and including the next FLUSH. 1: loaded, and all metadata for decoding is there. 0:
 * no further FLUSH yet; once index->ended is set there will be none. -EBADMSG: not a stream, or
 * metadata for decoding is missing. Damaged chunks after that are left out, with a warning.
 */
int stream_index_next(struct stream_index *index, struct error *err);
/* Loads the rest: the reader's data is all there will be. Returns 0 or as stream_index_next(). */
int stream_index_finish(struct stream_index *index, struct error *err);
/*
 * True of a chunk before index->skip that is left out: its events, but not what decoding needs.
 */
bool stream_index_skips(const struct stream_index *index, const struct chunk *chunk);
/* Empties info.task_readings after their use. */
void stream_index_forget_readings(struct stream_index *index);
/* Call after the export: adds warnings about problems found during it. */
int stream_index_settle(struct stream_index *index);
/* Called by load.c for a FLUSH at offset. */
void stream_index_flushed(struct stream_index *index, uint64_t offset);
void stream_index_deinit(struct stream_index *index);

/* Adds a sentence for the person who reads the result. Returns 0 or -ENOMEM. */
int stream_index_warn(struct stream_index *index, const char *fmt, ...) _printf_(2, 3);
/* The same for "COUNT text", unless the count is 0. one: the text behind 1. */
int stream_index_warn_count(struct stream_index *index, uint64_t count, const char *one,
			    const char *more);
