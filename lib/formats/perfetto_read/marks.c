/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/marks.h"

#include "formats/json/mark.h"
#include "formats/perfetto/packet.h"
#include "formats/perfetto_read/annotations.h"
#include "formats/perfetto_read/mark_writer.h"
#include "marks/json_value.h"
#include "marks/sort.h"

/* Beside the parts of a mark, of what a reader takes for one. */
#define MARK_OVERHEAD 512

#define FRAME_TEXT_MAX UINT32_C(4096) /* bytes of a frame's name */
#define FRAME_BYTES_MAX (64U << 20)   /* of all of them: a stack of a few bytes may have many */

int pf_mark_writer_new(struct pf_mark_writer **ret, int fd, uint64_t limit)
{
	_cleanup_(pf_mark_writer_freep) struct pf_mark_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	sections_init(&w->out, fd, limit);
	buf_puts(&w->out.text[SECTION_EVENTS], "{\"traceEvents\":[");
	buf_puts(&w->out.text[SECTION_SAMPLES], "],\n\"samples\":[");
	buf_puts(&w->out.text[SECTION_FRAMES], "],\n\"stackFrames\":{");
	for (unsigned i = 0; i < SECTIONS_MAX; i++)
		if (buf_error(&w->out.text[i]) < 0)
			return -ENOMEM;
	*ret = TAKE_PTR(w);
	return 0;
}

struct pf_mark_writer *pf_mark_writer_free(struct pf_mark_writer *w)
{
	if (!w)
		return NULL;
	sections_deinit(&w->out);
	interned_deinit(&w->interned, &w->room);
	known_deinit(&w->tracks, &w->room);
	known_deinit(&w->flows, &w->room);
	frame_ids_deinit(&w->frames);
	buf_deinit(&w->cats);
	buf_deinit(&w->args);
	buf_deinit(&w->scratch);
	buf_deinit(&w->name);
	buf_deinit(&w->held);
	free(w);
	return NULL;
}

int pf_mark_leave_out(struct pf_mark_writer *w, uint64_t count, const char *why)
{
	if (count && !w->left_out)
		w->why_left_out = why;
	w->left_out += count;
	return 0;
}

/* What is longer would cost the reader of the JSON all of the file. */
static bool is_too_long(const struct mark *m)
{
	size_t size = MARK_OVERHEAD + m->part[PART_ARGS].len + m->part[PART_EXTRA].len;

	size += text_clean_size(m->part[PART_NAME], MARK_PACKED_MAX);
	size += text_clean_size(m->part[PART_CAT], MARK_PACKED_MAX);
	return size > MARK_PACKED_MAX;
}

int pf_mark_put(struct pf_mark_writer *w, const struct mark *mark, struct error *err)
{
	unsigned section = mark->phase == PHASE_GLOBAL_SAMPLE ? SECTION_SAMPLES
			   : mark->phase == PHASE_FRAME	      ? SECTION_FRAMES
							      : SECTION_EVENTS;
	struct mark m = *mark;

	m.part[PART_NAME] = text_fit(m.part[PART_NAME]);
	m.part[PART_CAT] = text_fit(m.part[PART_CAT]);
	if (m.ts > INT64_MAX || m.tts > INT64_MAX)
		return pf_mark_leave_out(w, 1, "a mark of a time that is none");
	if (is_too_long(&m))
		return pf_mark_leave_out(w, 1, "a mark that is too long");
	if (!json_put_mark(&w->out.text[section], &m))
		return pf_mark_leave_out(w, 1, "a counter that counts no number");
	w->count += section != SECTION_FRAMES;
	return sections_settle(&w->out, section, err);
}

int pf_mark_release(struct pf_mark_writer *w, struct error *err)
{
	struct mark held;
	int r;

	if (!w->held.len)
		return 0;
	r = mark_unpack(&held, w->held.data, w->held.len);
	if (r == 0)
		r = pf_mark_put(w, &held, err);
	else
		error_errno(err, r, "can't keep a mark");
	buf_clear(&w->held);
	return r;
}

int pf_mark_frame(struct pf_mark_writer *w, uint32_t parent, struct text name, struct text module,
		  uint32_t *ret, struct error *err)
{
	struct mark frame = { .phase = PHASE_FRAME };
	char id[16], above[16];
	int r;

	name = name.len ? (struct text){ name.data, MIN(name.len, FRAME_TEXT_MAX) } : TEXT("");
	module = module.len ? (struct text){ module.data, MIN(module.len, FRAME_TEXT_MAX) }
			    : TEXT("");
	*ret = 0;
	r = w->frame_bytes > FRAME_BYTES_MAX ? -ENOSPC
					     : frame_ids_get(&w->frames, parent, name, module, ret);
	if (r == -ENOMEM)
		return error_errno(err, r, "can't keep stacks");
	if (r < 0)
		return pf_mark_leave_out(w, 1, "a stack, as there are too many");
	if (r == 0)
		return 0;
	w->frame_bytes += name.len + module.len;
	frame.part[PART_ID] = (struct text){ id, frame_id_spell(id, *ret) };
	frame.part[PART_NAME] = name;
	frame.part[PART_CAT] = module;
	if (parent)
		frame.part[PART_SF] = (struct text){ above, frame_id_spell(above, parent) };
	return pf_mark_put(w, &frame, err);
}

int pf_mark_writer_add(struct pf_mark_writer *w, const struct pf_packet *p, struct error *err)
{
	struct interned *in = NULL;
	int r = 0;

	if (p->sequence_flags & SEQ_STATE_CLEARED || p->interned.len || p->defaults.len ||
	    p->track_event.len || p->perf_sample.len)
		in = interned_of(&w->interned, p->sequence);
	if (in && p->sequence_flags & SEQ_STATE_CLEARED)
		interned_clear(in, &w->room);
	if (p->interned.len)
		pf_mark_leave_out(w, in ? interned_take(in, &p->interned, &w->room) : 1,
				  "interned data that is damaged, or too much");
	if (p->defaults.len && in)
		pf_mark_leave_out(w, interned_take_defaults(in, &p->defaults, &w->room),
				  "the name of what samples are taken by");
	if (p->track_descriptor.len)
		r = mark_tracks_take(w, &p->track_descriptor, err);
	if (r == 0 && p->track_event.len)
		r = mark_events_take(w, p, in, err);
	if (r == 0 && p->perf_sample.len)
		r = mark_samples_take(w, p, in, err);
	return r;
}

int pf_mark_writer_close(struct pf_mark_writer *w, uint64_t *ret_count, struct error *err)
{
	int r = pf_mark_release(w, err);

	if (r < 0)
		return r;
	buf_puts(&w->out.text[SECTION_FRAMES], "}}\n");
	r = sections_settle(&w->out, SECTION_FRAMES, err);
	if (r == 0)
		r = sections_join(&w->out, err);
	if (r == 0)
		*ret_count = w->count;
	return r;
}

uint64_t pf_mark_writer_left_out(const struct pf_mark_writer *w, const char **ret_why)
{
	*ret_why = w->why_left_out;
	return w->left_out;
}
