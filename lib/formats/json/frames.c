/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/frames.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/secret_hash.h"
#include "base/vec.h"
#include "marks/stack_frames.h"
#include "marks/value_json.h"

#define FRAMES_MEMORY (192U << 20)

DEFINE_TABLE(json_frame_slots, struct json_frame_slot, uint64_t, slot->key != 0,
	     hash_number(slot->key), slot->key == key);

void json_frames_deinit(struct json_frames *f)
{
	buf_deinit(&f->text);
	free(f->all);
	TABLE_DEINIT(&f->keys);
	shares_deinit(&f->shares);
}

/* Frame ids are unique per file; the dictionary is common to all files and the recording. */
void json_put_frame_id(const struct json_frames *f, struct buf *out, const struct mark *mark,
		       enum mark_part part)
{
	buf_putc(out, '"');
	if (f->host)
		buf_printf(out, "%" PRIu32 "/", f->host->number);
	if (!(mark->has & HAS_OWN_FRAMES))
		buf_printf(out, "%" PRIu32 ":", mark->source);
	json_escape(out, mark->part[part].data, mark->part[part].len);
	buf_putc(out, '"');
}

static void json_frame_put(struct json_frames *f, const struct mark *m, struct json_frame *frame)
{
	struct buf *out = &f->text;

	buf_putc(out, '\n');
	json_put_frame_id(f, out, m, PART_ID);
	buf_puts(out, ":{\"category\":");
	json_put_text(out, m->part[PART_CAT]);
	buf_puts(out, ",\"name\":");
	json_put_text(out, m->part[PART_NAME]);
	frame->bare = (uint32_t)(out->len - frame->at);
	if (!frame->caller)
		return;
	buf_puts(out, ",\"parent\":");
	json_put_frame_id(f, out, m, PART_SF);
}

int json_frames_add(struct json_frames *f, const struct mark *mark)
{
	uint64_t key = mark_frame_key(mark, PART_ID);
	const struct share_owner owner = mark_owner_of(mark);
	struct json_frame_slot *slot;
	struct json_frame *frame;
	int r;

	if (!key)
		return 0;
	slot = json_frame_slots_place(&f->keys, hash_number(key), key);
	if (!slot)
		return -ENOMEM;
	if (slot->key)
		return 0;
	if (vec_reserve(f->all, f->count, f->cap, 1) < 0)
		return -ENOMEM;
	frame = &f->all[f->count];
	*frame = (struct json_frame){
		.key = key,
		.caller = mark_frame_key(mark, PART_SF),
		.at = f->text.len,
	};
	json_frame_put(f, mark, frame);
	if (buf_error(&f->text) < 0)
		return -ENOMEM;
	f->shares.max = FRAMES_MEMORY;
	/* Bytes of its slots, roughly, and of its text, which may be longer than the mark's. */
	r = shares_take(&f->shares, &owner, 2 * sizeof(*frame) + f->text.len - frame->at);
	if (r < 0) {
		f->text.len = frame->at;
		return r;
	}
	*slot = (struct json_frame_slot){ key, f->count++ };
	f->keys.count++;
	return 0;
}

static struct json_frame *frame_find(const struct json_frames *f, uint64_t key)
{
	const struct json_frame_slot *slot =
		key ? json_frame_slots_find(&f->keys, hash_number(key), key) : NULL;

	return slot ? &f->all[slot->index] : NULL;
}

bool json_frames_have(const struct json_frames *f, const struct mark *mark, enum mark_part part)
{
	return frame_find(f, mark_frame_key(mark, part));
}

/* Follows the callers of the frame up to the outermost one, or to one that was followed before. */
static void frame_follow(struct json_frames *f, struct json_frame *frame, uint32_t walk)
{
	while (!frame->walk) {
		struct json_frame *caller = frame_find(f, frame->caller);

		frame->walk = walk;
		if (!frame->caller)
			return;
		if (!caller || caller->walk == walk) {
			frame->caller = 0;
			f->orphans++;
			return;
		}
		frame = caller;
	}
}

void json_frames_settle(struct json_frames *f)
{
	for (; f->settled < f->count; f->settled++)
		frame_follow(f, &f->all[f->settled], f->settled + 1);
}

int json_frames_put(struct json_frames *f, struct buf *out)
{
	if (!f->count)
		return 0;
	json_frames_settle(f);
	buf_puts(out, ",\n\"stackFrames\":{");
	for (uint32_t i = 0; i < f->count; i++) {
		const struct json_frame *frame = &f->all[i];
		size_t end = i + 1 < f->count ? frame[1].at : f->text.len;

		json_put_comma(out);
		buf_append(out, f->text.data + frame->at,
			   frame->caller ? end - frame->at : frame->bare);
		buf_putc(out, '}');
	}
	buf_putc(out, '}');
	return buf_error(&f->text) ?: buf_error(out);
}
