/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first pass over a stream: everything but sub-buffers is loaded, and of
 * the sub-buffers it is remembered where they lie. 24 bytes a chunk; nothing here
 * grows with the number of events but the tasks that lived.
 */
#pragma once

#include "export/trace_info.h"
#include "stream/reader.h"

/* A SUBBUFS chunk. */
struct subbufs_ref {
	uint64_t offset; /* of the chunk's header in the stream */
	uint32_t length; /* as stored */
	uint32_t skip;	 /* as in struct subbufs_header; not yet verified */
};

/* The chunks of one CPU, in stream order. */
struct cpu_chunks {
	uint32_t cpu;
	struct subbufs_ref *refs; /* owned */
	size_t count, cap;
};

/* All CPUs of one buffer that have chunks, by their number. */
struct ring_index {
	struct cpu_chunks *cpus; /* owned */
	size_t count, cap;
};
/* The chunks of cpu; NULL: it has none. */
struct cpu_chunks *ring_index_find(const struct ring_index *ring, uint32_t cpu);

struct stream_index {
	struct trace_info info;
	struct ring_index rings[BUFFER_COUNT];
	bool incomplete; /* cut, not closed, or some chunk of it could not be read */
	char **warnings; /* owned */
	size_t warning_count;
};

struct index_options {
	bool raw_addresses;
	const char *trace_options; /* NULL, or instead of the recorded ones */
};

/*
 * -EBADMSG: no stream, or one without what is needed to decode it. What is
 * damaged later is left out, with a warning. ret is to be given to
 * stream_index_deinit in any case.
 */
int stream_index_load(struct stream_index *ret, struct stream_reader *reader,
		      const struct index_options *options, struct error *err);
void stream_index_deinit(struct stream_index *index);

/* Adds a sentence for the person who reads the result. Returns 0 or -ENOMEM. */
int stream_index_warn(struct stream_index *index, const char *fmt, ...) _printf_(2, 3);
