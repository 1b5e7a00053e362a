/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/stack_frames.h"

#include <errno.h>
#include <xxhash.h>

#include "base/cleanup.h"

#define FRAMES_MAX (1U << 20)
#define FRAMES_BYTES_MAX (64U << 20)
/* Bytes of one name or category, and of all of one stack plus one name. */
#define NAME_BYTES_MAX UINT32_C(1024)
#define STACK_BYTES_MAX (64U << 10)

struct stack_frame {
	uint64_t key, parent; /* key 0: free slot; parent 0: none */
	char *text;	      /* owned; the name, then the category */
	uint32_t name_len, cat_len;
	uint64_t number; /* number of the stack that ends in this frame */
};

DEFINE_TABLE(frame_slots, struct stack_frame, uint64_t, slot->key != 0, slot->key,
	     slot->key == key);

uint64_t mark_frame_key(const struct mark *m, enum mark_part part)
{
	uint64_t seed = m->has & HAS_OWN_FRAMES ? UINT64_MAX : m->source;
	struct text id = m->part[part];

	return id.len ? XXH3_64bits_withSeed(id.data, id.len, seed) ?: 1 : 0;
}

void stack_frames_deinit(struct stack_frames *f)
{
	TABLE_FOR_EACH(frame_slots, &f->frames, frame)
	free(frame->text);
	free(f->frames.slots);
	*f = (struct stack_frames){ 0 };
}

void stack_frames_restart(struct stack_frames *f)
{
	TABLE_FOR_EACH(frame_slots, &f->frames, frame)
	frame->number = 0;
}

static struct text short_text(struct text t)
{
	t.len = MIN(t.len, NAME_BYTES_MAX);
	return t;
}

int stack_frames_add(struct stack_frames *f, const struct mark *m)
{
	struct text name = short_text(m->part[PART_NAME]), cat = short_text(m->part[PART_CAT]);
	uint64_t key = mark_frame_key(m, PART_ID);
	struct stack_frame *frame;

	if (!key)
		return 0;
	frame = frame_slots_place(&f->frames, key, key);
	if (!frame)
		return -ENOMEM;
	if (frame->key)
		return 0;
	if (f->frames.count == FRAMES_MAX || f->bytes + name.len + cat.len > FRAMES_BYTES_MAX)
		return -ENOSPC;
	frame->text = malloc((size_t)name.len + cat.len + 1);
	if (!frame->text)
		return -ENOMEM;
	if (name.len)
		memcpy(frame->text, name.data, name.len);
	if (cat.len)
		memcpy(frame->text + name.len, cat.data, cat.len);
	frame->name_len = name.len;
	frame->cat_len = cat.len;
	frame->key = key;
	frame->parent = mark_frame_key(m, PART_SF);
	f->frames.count++;
	f->bytes += name.len + cat.len;
	return 0;
}

bool stack_frames_get_stack(const struct stack_frames *f, const struct mark *m, enum mark_part part,
			    struct frame_stack *ret)
{
	uint64_t key = mark_frame_key(m, part);
	size_t bytes = 0;

	ret->depth = 0;
	/* From the innermost frame outwards; the bounds also end a cycle. */
	while (key && ret->depth < STACK_DEPTH_MAX && bytes < STACK_BYTES_MAX) {
		struct stack_frame *frame = frame_slots_find(&f->frames, key, key);

		if (!frame)
			break;
		if (!ret->depth)
			ret->number = &frame->number;
		ret->frames[ret->depth++] = (struct stack_place){
			.name = { frame->text, frame->name_len },
			.module = { frame->text + frame->name_len, frame->cat_len },
		};
		bytes += frame->name_len + frame->cat_len;
		key = frame->parent;
	}
	return ret->depth;
}
