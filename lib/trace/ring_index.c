/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/ring_index.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"

void ring_index_deinit(struct ring_index *ring)
{
	for (size_t i = 0; i < ring->count; i++)
		chunk_list_deinit(&ring->cpus[i].list);
	free(ring->cpus);
	*ring = (struct ring_index){ 0 };
}

/* Pairs of a CPU and a buffer. Each new one moves those behind it. */
#define RING_INDEX_MAX 16384

static size_t ring_position(const struct ring_index *ring, uint32_t cpu, uint32_t buffer)
{
	return lower_bound(i, ring->count,
			   ring->cpus[i].cpu < cpu ||
				   (ring->cpus[i].cpu == cpu && ring->cpus[i].buffer < buffer));
}

struct cpu_chunks *ring_index_find(const struct ring_index *ring, uint32_t cpu, uint32_t buffer)
{
	size_t at = ring_position(ring, cpu, buffer);
	struct cpu_chunks *c = at < ring->count ? &ring->cpus[at] : NULL;

	return c && c->cpu == cpu && c->buffer == buffer ? c : NULL;
}

bool ring_index_has(const struct ring_index *ring, uint32_t cpu)
{
	size_t at = ring_position(ring, cpu, 0);

	return at < ring->count && ring->cpus[at].cpu == cpu;
}

static struct cpu_chunks *ring_index_get(struct ring_index *ring, uint32_t cpu, uint32_t buffer)
{
	struct cpu_chunks *c = ring_index_find(ring, cpu, buffer);
	size_t at = ring_position(ring, cpu, buffer);

	if (c)
		return c;
	if (ring->count == RING_INDEX_MAX)
		return NULL;
	c = vec_insert(ring->cpus, ring->count, ring->cap, at);
	if (c)
		*c = (struct cpu_chunks){ .cpu = cpu, .buffer = buffer };
	return c;
}

int ring_index_add(struct ring_index *ring, uint32_t cpu, uint32_t buffer,
		   const struct chunk_ref *ref)
{
	struct cpu_chunks *c = ring_index_get(ring, cpu, buffer);

	if (!c)
		return ring->count == RING_INDEX_MAX ? -EFBIG : -ENOMEM;
	if (c->hole != ring->hole && ring->hole != ring->first_hole) {
		c->hole = ring->hole;
		c->gap = c->list.forgotten + c->list.count + 1;
	}
	return chunk_list_add(&c->list, ref);
}
