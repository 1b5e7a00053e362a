/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/bounds.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#define KB(n) ((n) << 10)
#define MB(n) ((n) << 20)

static const struct bound {
	const char *name;
	uint32_t size; /* bytes of one payload */
	uint64_t sum;  /* bytes of all payloads; UINT64_MAX: only the budget bounds them */
	uint32_t count;
} bounds[BOUNDED_TYPES] = {
	/* A header repeats the request, which can be as long as a control frame. */
	[CHUNK_HEADER] = { "headers", MB(8U), MB(8U), 1 },
	[CHUNK_HEADER_PAGE] = { "descriptions of sub-buffers", KB(64U), KB(256U), 16 },
	/* The recorder reads at most 256 KiB of a format; the system's name precedes it. */
	[CHUNK_FORMAT] = { "event formats", KB(257U), MB(32U), 16384 },
	[CHUNK_KALLSYMS] = { "kernel symbols", STREAM_KALLSYMS_MAX, MB(128U), 4 },
	[CHUNK_KALLSYMS_EXCERPT] = { "kernel symbols", KB(64U), KB(64U), 1 },
	[CHUNK_PRINTK] = { "printk formats", MB(16U), MB(32U), 64 },
	[CHUNK_ENUMS] = { "constants", MB(4U), MB(16U), 64 },
	[CHUNK_ARGUMENTS] = { "functions' arguments", MB(32U), MB(32U), 4 },
	[CHUNK_TASKS] = { "task lists", STREAM_TASKS_MAX, UINT64_MAX, UINT32_MAX },
	[CHUNK_CLOCKS] = { "clock readings", MB(1U), UINT64_MAX, UINT32_MAX },
	[CHUNK_STATS] = { "kernel counts", MB(1U), UINT64_MAX, UINT32_MAX },
	[CHUNK_NOTE] = { "notes", STREAM_NOTE_MAX, KB(256U), STREAM_NOTES_MAX },
	/* A program's path and two names. The budget bounds their sum. */
	[CHUNK_PRODUCER] = { "rings of marks", KB(8U), UINT64_MAX, UINT32_MAX },
	[CHUNK_SAMPLER] = { "samplers", KB(4U), KB(4U), 1 },
	[CHUNK_MAPPINGS] = { "programs' mappings", MB(64U), UINT64_MAX, UINT32_MAX },
	[CHUNK_SAMPLE_COUNTS] = { "counts of samples", MB(1U), MB(1U), 1 },
	/* The readers of polls load them later: the size bounds one payload. */
	[CHUNK_POLLS] = { "readings of files", STREAM_POLLS_MAX, UINT64_MAX, UINT32_MAX },
	[CHUNK_LAST_BOOT] = { "descriptions of the last boot", STREAM_LAST_BOOT_MAX,
			      STREAM_LAST_BOOT_MAX, 1 },
	/* Each replaces the one before it of its event. */
	[CHUNK_HISTOGRAM] = { "histograms", STREAM_HISTOGRAM_MAX, UINT64_MAX, UINT32_MAX },
	[CHUNK_END] = { "ends", MB(1U), MB(1U), 2 },
};

size_t bounds_payload_max(unsigned type)
{
	return type < BOUNDED_TYPES ? bounds[type].size : 0;
}

int bounds_take(struct bounds *b, unsigned type, size_t len)
{
	if (type >= BOUNDED_TYPES || len > bounds[type].sum - b->bytes[type] ||
	    b->count[type] >= bounds[type].count)
		return -EFBIG;
	b->bytes[type] += len;
	b->count[type]++;
	return 0;
}

const char *bounds_name(unsigned type)
{
	return type < BOUNDED_TYPES && bounds[type].name ? bounds[type].name : "chunks";
}

/* Bytes of a heap block, the heap's own overhead included. */
static size_t block_cost(void *p)
{
	return malloc_usable_size(p) + sizeof(size_t);
}

static void *budget_alloc(void *data, size_t size)
{
	struct budget *b = data;
	void *p = size < b->left ? malloc(size) : NULL;

	if (!p) {
		b->failed = size < b->left ? -ENOMEM : -EFBIG;
		return NULL;
	}
	if (block_cost(p) > b->left) {
		free(p);
		b->failed = -EFBIG;
		return NULL;
	}
	b->left -= block_cost(p);
	return p;
}

static void budget_free(void *data, void *p)
{
	struct budget *b = data;

	if (!p)
		return;
	b->left += block_cost(p);
	free(p);
}

void budget_init(struct budget *b, size_t bytes)
{
	*b = (struct budget){
		.allocator = { budget_alloc, budget_free, b },
		.left = bytes,
	};
}

int budget_error(struct budget *b)
{
	int r = b->failed ?: -EBADMSG;

	b->failed = 0;
	return r;
}
