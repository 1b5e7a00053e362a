/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The places of sub-buffers in a stream: 24 bytes per chunk. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A SUBBUFS chunk. */
struct subbufs_ref {
	uint64_t offset; /* offset of the chunk's header in the stream */
	uint32_t length; /* stored bytes */
	uint32_t skip;	 /* see struct subbufs_header; not yet verified */
};

/* Chunks of one CPU and buffer, in stream order. */
struct cpu_chunks {
	uint32_t cpu;
	uint32_t buffer;
	struct subbufs_ref *refs; /* owned */
	size_t count, cap;
	size_t forgotten; /* refs[0] is the CPU's chunk of this number */
};

/* Sorted by CPU, then by buffer. */
struct ring_index {
	struct cpu_chunks *cpus; /* owned */
	size_t count, cap;
};

void ring_index_deinit(struct ring_index *ring);
/* The chunks of a CPU and buffer; NULL: none. Valid until a chunk of another one is added. */
struct cpu_chunks *ring_index_find(const struct ring_index *ring, uint32_t cpu, uint32_t buffer);
/* True if cpu has chunks in any buffer. */
bool ring_index_has(const struct ring_index *ring, uint32_t cpu);
/* Appends a chunk. Returns 0 or -ENOMEM. */
int ring_index_add(struct ring_index *ring, uint32_t cpu, uint32_t buffer,
		   const struct subbufs_ref *ref);
/* Chunk number n of the CPU. NULL: not there yet, or forgotten. */
const struct subbufs_ref *cpu_chunks_get(const struct cpu_chunks *c, size_t n);
/* Frees the entries of all chunks before number n. */
void cpu_chunks_forget(struct cpu_chunks *c, size_t n);
