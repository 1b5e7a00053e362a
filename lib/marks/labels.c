/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/labels.h"

#include <xxhash.h>

#define FRAMES_MAX (1U << 20)

void mark_decode_shared_deinit(struct mark_decode_shared *shared)
{
	free(shared->frames);
	*shared = (struct mark_decode_shared){ 0 };
}

void label_table_forget(struct label_table *t, struct mark_decode_shared *shared)
{
	for (size_t i = 0; i < t->slots; i++) {
		struct label *l = &t->all[i];

		if (!l->id)
			continue;
		shared->label_bytes -= sizeof(*l) + l->name.len + l->cat.len;
		free((char *)(uintptr_t)l->name.data);
		free((char *)(uintptr_t)l->cat.data);
	}
	free(t->all);
	t->all = NULL;
	t->count = t->slots = 0;
}

static struct label *label_place(struct label *all, size_t slots, uint32_t id)
{
	size_t at = id * UINT32_C(0x9e3779b9);

	while (all[at & (slots - 1)].id && all[at & (slots - 1)].id != id)
		at++;
	return &all[at & (slots - 1)];
}

const struct label *label_find(const struct label_table *t, struct mark_decode_shared *shared,
			       uint64_t id)
{
	const struct label *l = t->slots && id && id <= UINT32_MAX
					? label_place(t->all, t->slots, (uint32_t)id)
					: NULL;

	if (l && l->id)
		return l;
	shared->labels_refused += id != 0;
	return NULL;
}

static int grow(struct label_table *t)
{
	size_t slots = MAX((size_t)16, t->slots * 2);
	struct label *all = calloc(slots, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < t->slots; i++)
		if (t->all[i].id)
			*label_place(all, slots, t->all[i].id) = t->all[i];
	free(t->all);
	t->all = all;
	t->slots = slots;
	return 0;
}

static int copy_text(struct text *to, struct text from)
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
	if (t->count * 2 >= t->slots && grow(t) < 0)
		return -ENOMEM;
	l = label_place(t->all, t->slots, id);
	/* The first definition of a label counts; later ones are ignored. */
	if (l->id)
		return 0;
	if (copy_text(&l->name, name) < 0)
		return -ENOMEM;
	if (copy_text(&l->cat, cat) < 0) {
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
	size_t at = (size_t)hash;

	if (s->frame_count * 2 >= s->frame_slots) {
		size_t slots = MAX((size_t)256, s->frame_slots * 2);
		uint64_t *all = s->frame_count < FRAMES_MAX ? calloc(slots, sizeof(*all)) : NULL;

		if (!all) {
			s->labels_refused++;
			return false;
		}
		for (size_t i = 0; i < s->frame_slots; i++) {
			size_t to = (size_t)s->frames[i];

			if (!s->frames[i])
				continue;
			while (all[to & (slots - 1)])
				to++;
			all[to & (slots - 1)] = s->frames[i];
		}
		free(s->frames);
		s->frames = all;
		s->frame_slots = slots;
	}
	for (; s->frames[at & (s->frame_slots - 1)]; at++)
		if (s->frames[at & (s->frame_slots - 1)] == hash)
			return false;
	s->frames[at & (s->frame_slots - 1)] = hash;
	s->frame_count++;
	return true;
}
