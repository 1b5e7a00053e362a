/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The places of sub-buffers in a stream, by CPU and buffer. */
#pragma once

#include <stdbool.h>

#include "trace/chunk_list.h"

/* Chunks of one CPU and buffer. */
struct cpu_chunks {
	uint32_t cpu;
	uint32_t buffer;
	struct chunk_list list;
	uint64_t hole; /* ring_index.hole at the last chunk */
	size_t gap; /* before chunk number gap - 1, a part of the stream is missing; 0: nowhere */
};

/* Sorted by CPU, then by buffer. */
struct ring_index {
	struct cpu_chunks *cpus; /* owned */
	size_t count, cap;
	/* Freed bytes of the stream so far. A stream has one hole at most; of more, the last
	 * counts. */
	uint64_t hole;
	/* Bytes freed before the first chunk. They make no gap: the events begin behind them. */
	uint64_t first_hole;
};

void ring_index_deinit(struct ring_index *ring);
/* The chunks of a CPU and buffer; NULL: none. Valid until a chunk of another one is added. */
struct cpu_chunks *ring_index_find(const struct ring_index *ring, uint32_t cpu, uint32_t buffer);
/* True if cpu has chunks in any buffer. */
bool ring_index_has(const struct ring_index *ring, uint32_t cpu);
/* Appends a chunk. Returns 0 or -ENOMEM. */
int ring_index_add(struct ring_index *ring, uint32_t cpu, uint32_t buffer,
		   const struct chunk_ref *ref);
