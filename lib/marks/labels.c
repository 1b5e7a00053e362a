/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/labels.h"

#include <xxhash.h>

#define FRAMES_MAX (1U << 20)

DEFINE_TABLE(frame_set, uint64_t, uint64_t, *slot != 0, *slot, *slot == key);

#define ID_HASH(id) ((id)*UINT32_C(0x9e3779b9))
DEFINE_TABLE(label_table, struct label, uint32_t, slot->id != 0, ID_HASH(slot->id),
	     slot->id == key);

void mark_decode_shared_deinit(struct mark_decode_shared *shared)
{
	free(shared->frames.slots);
	*shared = (struct mark_decode_shared){ 0 };
}

void label_table_forget(struct label_table *t, struct mark_decode_shared *shared)
{
	TABLE_FOR_EACH(label_table, t, l)
	{
		shared->label_bytes -= sizeof(*l) + l->name.len + l->cat.len;
		free((char *)(uintptr_t)l->name.data);
		free((char *)(uintptr_t)l->cat.data);
	}
	TABLE_DEINIT(t);
}

const struct label *label_find(const struct label_table *t, struct mark_decode_shared *shared,
			       uint64_t id)
{
	const struct label *l = id && id <= UINT32_MAX
					? label_table_find(t, ID_HASH((uint32_t)id), (uint32_t)id)
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
	struct label *l;

	if (!id)
		return 0;
	if (shared->label_bytes + sizeof(*l) + name.len + cat.len > MARK_LABELS_MEMORY)
		return 0;
	l = label_table_place(t, ID_HASH(id), id);
	if (!l)
		return -ENOMEM;
	/* The first definition of a label counts; later ones are ignored. */
	if (l->id)
		return 0;
	if (label_copy_text(&l->name, name) < 0)
		return -ENOMEM;
	if (label_copy_text(&l->cat, cat) < 0) {
		free((char *)(uintptr_t)l->name.data);
		return -ENOMEM;
	}
	l->id = id;
	l->frame = frame;
	t->count++;
	shared->label_bytes += sizeof(*l) + name.len + cat.len;
	return 0;
}

uint64_t frame_hash(struct text name, struct text cat, uint64_t parent)
{
	uint64_t hash = XXH3_64bits_withSeed(cat.data, cat.len, parent);

	return XXH3_64bits_withSeed(name.data, name.len, hash) ?: 1;
}

bool frame_is_new(struct mark_decode_shared *s, uint64_t hash)
{
	uint64_t *slot =
		s->frames.count < FRAMES_MAX ? frame_set_place(&s->frames, hash, hash) : NULL;

	if (!slot) {
		s->labels_refused++;
		return false;
	}
	if (*slot)
		return false;
	*slot = hash;
	s->frames.count++;
	return true;
}
