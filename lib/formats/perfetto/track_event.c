/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/track_event.h"

#include "formats/perfetto/annotation.h"
#include "formats/perfetto/numbers.h"
#include "formats/perfetto/packet.h"

void pf_put_stack(const struct stack_frames *f, const struct mark *m, enum mark_part part,
		  struct buf *event)
{
	struct frame_stack stack;
	size_t content;

	if (!stack_frames_get_stack(f, m, part, &stack))
		return;
	content = pf_open(event, CALLSTACK);
	while (stack.depth-- > 0) {
		const struct stack_place *frame = &stack.frames[stack.depth];
		size_t at = pf_open(event, CALLSTACK_INLINE);

		pf_text(event, INLINE_FUNCTION, frame->name);
		if (frame->module.len)
			pf_text(event, INLINE_FILE, frame->module);
		pf_close(event, at);
	}
	pf_close(event, content);
}

void pf_event_begin(struct pf_marks *m, unsigned type, uint64_t track)
{
	buf_clear(&m->event);
	buf_clear(&m->fresh);
	pf_uint(&m->event, EVENT_TYPE, type);
	pf_uint(&m->event, EVENT_TRACK, track);
}

int pf_event_end(struct pf_marks *m, uint64_t ts, struct buf *out)
{
	size_t packet = pf_open(out, TRACE_PACKET);

	pf_uint(out, PACKET_TIMESTAMP, ts);
	if (m->clock)
		pf_uint(out, PACKET_CLOCK, m->clock);
	pf_uint(out, PACKET_SEQUENCE, PF_SEQUENCE);
	pf_message(out, PACKET_TRACK_EVENT, &m->event);
	if (m->fresh.len)
		pf_message(out, PACKET_INTERNED_DATA, &m->fresh);
	pf_uint(out, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_STATE);
	pf_close(out, packet);
	return buf_error(&m->event) ?: buf_error(&m->fresh) ?: buf_error(out);
}

void pf_event_put_name(struct pf_marks *m, struct text name)
{
	uint64_t iid = pf_intern(&m->names, name, &m->fresh);

	if (iid)
		pf_uint(&m->event, EVENT_NAME_IID, iid);
	else if (name.len)
		pf_text(&m->event, EVENT_NAME, name);
}

void pf_event_put_categories(struct pf_marks *m, struct text cats)
{
	while (cats.len) {
		const char *comma = memchr(cats.data, ',', cats.len);
		struct text cat = { cats.data, comma ? (uint32_t)(comma - cats.data) : cats.len };
		uint64_t iid = pf_intern(&m->categories, cat, &m->fresh);
		uint32_t taken = cat.len + (comma != NULL);

		if (iid)
			pf_uint(&m->event, EVENT_CATEGORY_IIDS, iid);
		else if (cat.len)
			pf_text(&m->event, EVENT_CATEGORIES, cat);
		cats.data += taken;
		cats.len -= taken;
	}
}

static void track_event_put_args(struct pf_marks *m, const struct mark *mark)
{
	pf_annotations(&m->event, EVENT_ANNOTATIONS, mark->part[PART_ARGS], &m->keys, &m->fresh);
	pf_annotations(&m->event, EVENT_ANNOTATIONS, mark->part[PART_EXTRA], &m->keys, &m->fresh);
	if (mark->part[PART_CNAME].len)
		pf_annotation_text(&m->event, EVENT_ANNOTATIONS, TEXT("cname"),
				   mark->part[PART_CNAME], &m->keys, &m->fresh);
}

void pf_event_put_unnamed(struct pf_marks *m, const struct mark *mark)
{
	pf_event_put_categories(m, mark->part[PART_CAT]);
	track_event_put_args(m, mark);
	pf_put_stack(&m->frames, mark, PART_SF, &m->event);
}

void pf_event_put(struct pf_marks *m, const struct mark *mark)
{
	pf_event_put_name(m, mark->part[PART_NAME]);
	pf_event_put_unnamed(m, mark);
}
