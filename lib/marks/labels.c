/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/labels.h"

#include <xxhash.h>

#include "base/secret_hash.h"

DEFINE_TABLE(frame_set, uint64_t, uint64_t, *slot != 0, hash_number(*slot), *slot == key);

DEFINE_TABLE(label_slots, struct label, uint32_t, slot->id != 0, hash_u32(slot->id),
	     slot->id == key);

void mark_decode_shared_deinit(struct mark_decode_shared *shared)
{
	free(shared->frames.slots);
	shares_deinit(&shared->labels);
	shares_deinit(&shared->stacks);
	*shared = MARK_DECODE_SHARED_INIT;
}

void label_table_forget(struct label_table *t, struct mark_decode_shared *shared)
{
	TABLE_FOR_EACH(label_slots, &t->all, l)
	{
		free((char *)(uintptr_t)l->name.data);
		free((char *)(uintptr_t)l->cat.data);
	}
	TABLE_DEINIT(&t->all);
	shares_return(&shared->labels, &t->owner, t->bytes);
	t->bytes = 0;
}

const struct label *label_find(const struct label_table *t, struct mark_decode_shared *shared,
			       uint64_t id)
{
	const struct label *l =
		id && id <= UINT32_MAX
			? label_slots_find(&t->all, hash_u32((uint32_t)id), (uint32_t)id)
			: NULL;

	if (l)
		return l;
	shared->labels_refused += id != 0;
	return NULL;
}

static int label_copy_text(struct text *to, struct text from)
{
	char *p = from.len ? malloc(from.len) : NULL;

	*to = (struct text){ 0 };
	if (!from.len)
		return 0;
	if (!p)
		return -ENOMEM;
	memcpy(p, from.data, from.len);
	*to = (struct text){ p, from.len };
	return 0;
}

int label_define(struct label_table *t, struct mark_decode_shared *shared, uint32_t id,
		 struct text name, struct text cat, uint64_t frame)
{
	uint64_t bytes = sizeof(struct label) + (uint64_t)name.len + cat.len;
	struct label *l;
	int r;

	if (!id)
		return 0;
	l = label_slots_place(&t->all, hash_u32(id), id);
	if (!l)
		return -ENOMEM;
	/* The first definition of a label counts; later ones are ignored. */
	if (l->id)
		return 0;
	r = shares_take(&shared->labels, &t->owner, bytes);
	if (r < 0)
		return r == -ENOSPC ? 0 : r;
	t->bytes += bytes;
	if (label_copy_text(&l->name, name) < 0)
		return -ENOMEM;
	if (label_copy_text(&l->cat, cat) < 0) {
		free((char *)(uintptr_t)l->name.data);
		return -ENOMEM;
	}
	l->id = id;
	l->frame = frame;
	t->all.count++;
	return 0;
}

uint64_t frame_hash(struct text name, struct text cat, uint64_t parent)
{
	uint64_t hash = XXH3_64bits_withSeed(cat.data, cat.len, parent);

	return XXH3_64bits_withSeed(name.data, name.len, hash) ?: 1;
}

bool frame_is_new(struct mark_decode_shared *s, const struct share_owner *owner, uint64_t hash)
{
	uint64_t *slot = frame_set_place(&s->frames, hash_number(hash), hash);

	if (!slot) {
		s->labels_refused++;
		return false;
	}
	if (*slot || shares_take(&s->stacks, owner, 1) < 0)
		return false;
	*slot = hash;
	s->frames.count++;
	return true;
}
