/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/frames.h"

#include <errno.h>
#include <xxhash.h>

#include "formats/perfetto/numbers.h"

#define FRAMES_MAX (1U << 20)
#define FRAMES_BYTES_MAX (64U << 20)
/* Of a name or a category, and of all those of one stack or one name more. */
#define NAME_BYTES_MAX UINT32_C(1024)
#define STACK_BYTES_MAX (64U << 10)

struct pf_frame {
	uint64_t key, parent; /* key 0: free; parent 0: none */
	char *text;	      /* owned; the name, behind it the category */
	uint32_t name_len, cat_len;
	uint64_t number; /* of the stack that it ends */
};

static uint64_t key_of(const struct mark *m, enum mark_part part)
{
	struct text id = m->part[part];

	return id.len ? XXH3_64bits_withSeed(id.data, id.len, m->source) ?: 1 : 0;
}

void pf_frames_deinit(struct pf_frames *f)
{
	for (uint32_t i = 0; i < f->cap; i++)
		free(f->slots[i].text);
	free(f->slots);
	*f = (struct pf_frames){ 0 };
}

void pf_frames_restart(struct pf_frames *f)
{
	for (uint32_t i = 0; i < f->cap; i++)
		f->slots[i].number = 0;
}

static struct pf_frame *find(struct pf_frame *slots, uint32_t cap, uint64_t key)
{
	for (uint64_t at = key;; at++) {
		struct pf_frame *frame = &slots[at & (cap - 1)];

		if (!frame->key || frame->key == key)
			return frame;
	}
}

static int grow(struct pf_frames *f)
{
	uint32_t cap = MAX(f->cap * 2, UINT32_C(64));
	struct pf_frame *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->cap; i++)
		if (f->slots[i].key)
			*find(slots, cap, f->slots[i].key) = f->slots[i];
	free(f->slots);
	f->slots = slots;
	f->cap = cap;
	return 0;
}

static struct text short_text(struct text t)
{
	t.len = MIN(t.len, NAME_BYTES_MAX);
	return t;
}

int pf_frames_add(struct pf_frames *f, const struct mark *m)
{
	struct text name = short_text(m->part[PART_NAME]), cat = short_text(m->part[PART_CAT]);
	uint64_t key = key_of(m, PART_ID);
	struct pf_frame *frame;

	if (!key)
		return 0;
	if (f->count * 2 >= f->cap && grow(f) < 0)
		return -ENOMEM;
	frame = find(f->slots, f->cap, key);
	if (frame->key)
		return 0;
	if (f->count == FRAMES_MAX || f->bytes + name.len + cat.len > FRAMES_BYTES_MAX)
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
	frame->parent = key_of(m, PART_SF);
	f->count++;
	f->bytes += name.len + cat.len;
	return 0;
}

bool pf_frames_get_stack(const struct pf_frames *f, const struct mark *m, enum mark_part part,
			 struct pf_stack *ret)
{
	uint64_t key = key_of(m, part);
	size_t bytes = 0;

	ret->depth = 0;
	/* The innermost ones; a circle ends here, too. */
	while (key && f->cap && ret->depth < PF_DEPTH_MAX && bytes < STACK_BYTES_MAX) {
		struct pf_frame *frame = find(f->slots, f->cap, key);

		if (!frame->key)
			break;
		if (!ret->depth)
			ret->number = &frame->number;
		ret->frames[ret->depth++] = (struct pf_stack_frame){
			.name = { frame->text, frame->name_len },
			.module = { frame->text + frame->name_len, frame->cat_len },
		};
		bytes += frame->name_len + frame->cat_len;
		key = frame->parent;
	}
	return ret->depth;
}

void pf_frames_put_stack(const struct pf_frames *f, const struct mark *m, enum mark_part part,
			 struct buf *event)
{
	struct pf_stack stack;
	size_t content;

	if (!pf_frames_get_stack(f, m, part, &stack))
		return;
	content = pf_open(event, CALLSTACK);
	while (stack.depth-- > 0) {
		const struct pf_stack_frame *frame = &stack.frames[stack.depth];
		size_t at = pf_open(event, CALLSTACK_INLINE);

		pf_text(event, INLINE_FUNCTION, frame->name);
		if (frame->module.len)
			pf_text(event, INLINE_FILE, frame->module);
		pf_close(event, at);
	}
	pf_close(event, content);
}
