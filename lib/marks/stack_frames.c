/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/stack_frames.h"

#include <errno.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/secret_hash.h"

#define FRAMES_MEMORY (256U << 20)
/* Bytes of one name or category, and of all of one stack plus one name. */
#define NAME_BYTES_MAX UINT32_C(1024)
#define STACK_BYTES_MAX (64U << 10)
#define BUILD_ID_BYTES_MAX UINT32_C(64)

struct stack_frame {
	uint64_t key, parent; /* key 0: free slot; parent 0: none */
	char *text;	      /* owned; the name, the category, the path, the build ID */
	uint32_t name_len, cat_len, path_len;
	uint8_t build_id_len;
	bool has_code, kernel;
	uint64_t offset;
	uint64_t number; /* number of the stack that ends in this frame */
};

DEFINE_TABLE(frame_slots, struct stack_frame, uint64_t, slot->key != 0, hash_number(slot->key),
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
	shares_deinit(&f->shares);
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

static char *add_text(char *to, struct text t)
{
	if (t.len)
		memcpy(to, t.data, t.len);
	return to + t.len;
}

int stack_frames_add(struct stack_frames *f, const struct mark *m)
{
	struct text name = short_text(m->part[PART_NAME]), cat = short_text(m->part[PART_CAT]);
	struct text path = { 0 }, build_id = { 0 };
	uint64_t key = mark_frame_key(m, PART_ID);
	const struct share_owner owner = mark_owner_of(m);
	struct stack_frame *frame;
	size_t len;
	char *end;
	int r;

	if (!key)
		return 0;
	frame = frame_slots_place(&f->frames, hash_number(key), key);
	if (!frame)
		return -ENOMEM;
	if (frame->key)
		return 0;
	if (m->code) {
		path = short_text(m->code->path);
		build_id = m->code->build_id;
		build_id.len = MIN(build_id.len, BUILD_ID_BYTES_MAX);
	}
	len = (size_t)name.len + cat.len + path.len + build_id.len;
	f->shares.max = FRAMES_MEMORY;
	r = shares_take(&f->shares, &owner, 2 * sizeof(*frame) + len);
	if (r < 0)
		return r;
	frame->text = malloc(len + 1);
	if (!frame->text)
		return -ENOMEM;
	end = add_text(add_text(frame->text, name), cat);
	add_text(add_text(end, path), build_id);
	frame->name_len = name.len;
	frame->cat_len = cat.len;
	frame->path_len = path.len;
	frame->build_id_len = (uint8_t)build_id.len;
	frame->has_code = m->code;
	frame->kernel = m->code && m->code->kernel;
	frame->offset = m->code ? m->code->offset : 0;
	frame->key = key;
	frame->parent = mark_frame_key(m, PART_SF);
	f->frames.count++;
	return 0;
}

static struct stack_place frame_place(const struct stack_frame *f)
{
	const char *path = f->text + f->name_len + f->cat_len;

	return (struct stack_place){
		.name = { f->text, f->name_len },
		.module = { f->text + f->name_len, f->cat_len },
		.has_code = f->has_code,
		.code = {
			.kernel = f->kernel,
			.offset = f->offset,
			.path = { path, f->path_len },
			.build_id = { path + f->path_len, f->build_id_len },
		},
	};
}

bool stack_frames_get_stack(const struct stack_frames *f, const struct mark *m, enum mark_part part,
			    struct frame_stack *ret)
{
	uint64_t key = mark_frame_key(m, part);
	size_t bytes = 0;

	ret->depth = 0;
	/* From the innermost frame outwards; the bounds also end a cycle. */
	while (key && ret->depth < STACK_DEPTH_MAX && bytes < STACK_BYTES_MAX) {
		struct stack_frame *frame = frame_slots_find(&f->frames, hash_number(key), key);

		if (!frame)
			break;
		if (!ret->depth)
			ret->number = &frame->number;
		ret->frames[ret->depth++] = frame_place(frame);
		bytes += frame->name_len + frame->cat_len;
		key = frame->parent;
	}
	return ret->depth;
}
