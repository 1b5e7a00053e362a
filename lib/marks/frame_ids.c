/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/frame_ids.h"

#include <inttypes.h>
#include <xxhash.h>

#include "base/secret_hash.h"

#define FRAME_ID "stack"

DEFINE_TABLE(frame_ids, struct frame_id, uint64_t, slot->hash != 0, hash_number(slot->hash),
	     slot->hash == key);

void frame_ids_deinit(struct frame_ids *f)
{
	TABLE_DEINIT(f);
}

int frame_ids_get(struct frame_ids *f, uint32_t parent, struct text name, struct text module,
		  uint64_t address, uint32_t *ret)
{
	uint64_t hash = XXH3_64bits_withSeed(name.data, name.len, parent);
	struct frame_id *slot;

	if (module.len)
		hash = XXH3_64bits_withSeed(module.data, module.len, hash);
	if (address)
		hash = XXH3_64bits_withSeed(&address, sizeof(address), hash);
	hash = hash ?: 1;
	*ret = 0;
	slot = frame_ids_place(f, hash_number(hash), hash);
	if (!slot)
		return -ENOMEM;
	if (slot->hash) {
		*ret = slot->id;
		return 0;
	}
	if (f->count == FRAME_IDS_MAX)
		return -ENOSPC;
	*slot = (struct frame_id){ hash, *ret = ++f->count };
	return 1;
}

uint32_t frame_id_spell(char to[static 16], uint32_t frame)
{
	return (uint32_t)snprintf(to, 16, FRAME_ID "%" PRIu32, frame);
}

bool frame_id_is_spelled(struct text id)
{
	return id.len > sizeof(FRAME_ID) - 1 && !memcmp(id.data, FRAME_ID, sizeof(FRAME_ID) - 1);
}
