/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/frame_ids.h"

#include <inttypes.h>
#include <xxhash.h>

void frame_ids_deinit(struct frame_ids *f)
{
	free(f->hashes);
	free(f->ids);
	*f = (struct frame_ids){ 0 };
}

/* The slot of this hash, or the free slot where it belongs. */
static uint32_t place(const uint64_t *hashes, uint32_t slots, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & (slots - 1);

	while (hashes[at] && hashes[at] != hash)
		at = (at + 1) & (slots - 1);
	return at;
}

static int grow(struct frame_ids *f)
{
	uint32_t slots = MAX(f->slots * 2, UINT32_C(256));
	uint64_t *hashes = calloc(slots, sizeof(*hashes));
	uint32_t *ids = calloc(slots, sizeof(*ids));

	if (!hashes || !ids) {
		free(hashes);
		free(ids);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < f->slots; i++) {
		uint32_t at;

		if (!f->hashes[i])
			continue;
		at = place(hashes, slots, f->hashes[i]);
		hashes[at] = f->hashes[i];
		ids[at] = f->ids[i];
	}
	free(f->hashes);
	free(f->ids);
	f->hashes = hashes;
	f->ids = ids;
	f->slots = slots;
	return 0;
}

int frame_ids_get(struct frame_ids *f, uint32_t parent, struct text name, struct text module,
		  uint32_t *ret)
{
	uint64_t hash = XXH3_64bits_withSeed(name.data, name.len, parent);
	uint32_t at;

	if (module.len)
		hash = XXH3_64bits_withSeed(module.data, module.len, hash);
	hash = hash ?: 1;
	*ret = 0;
	if (f->count * 2 >= f->slots && grow(f) < 0)
		return -ENOMEM;
	at = place(f->hashes, f->slots, hash);
	if (f->hashes[at]) {
		*ret = f->ids[at];
		return 0;
	}
	if (f->count == FRAME_IDS_MAX)
		return -ENOSPC;
	f->hashes[at] = hash;
	f->ids[at] = *ret = ++f->count;
	return 1;
}

uint32_t frame_id_spell(char to[static 16], uint32_t frame)
{
	return (uint32_t)snprintf(to, 16, "stack%" PRIu32, frame);
}
