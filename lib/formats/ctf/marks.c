/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A mark is an event "mark:PHASE". Each combination of optional parts is a class of its own, so
 * that no field is empty. Arguments are nested, fields can't be: they are written as a JSON string.
 */
#include "formats/ctf/ctf.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "marks/stack_frames.h"
#include "marks/value_json.h"

/* Optional parts of a mark, one bit each. */
enum part { HAS_DURATION, HAS_REACH, HAS_ID, HAS_ARGS, HAS_STACK, HAS_END_STACK, HAS_MORE, PARTS };
#define PHASES 128
/* Above the number of possible sources: rings, files and profiles. */
#define SOURCES_MAX 64

struct ctf_marks {
	struct ctf *c;
	struct ctf_stream stream;
	struct ctf_stream *samples; /* owned; SOURCES_MAX entries, by source */
	struct stack_frames frames;
	struct buf text;
	/* Names of processes and threads that arrive before the first time. */
	struct buf early;
	bool begun;
	uint32_t sample_class;		      /* class id + 1; 0: none yet */
	uint32_t classes[PHASES][1 << PARTS]; /* class id + 1; 0: none yet */
};

static const char *ctf_mark_phase_name(uint8_t phase)
{
	switch ((enum mark_phase)phase) {
	case PHASE_BEGIN:
		return "begin";
	case PHASE_END:
		return "end";
	case PHASE_COMPLETE:
		return "complete";
	case PHASE_INSTANT:
		return "instant";
	case PHASE_COUNTER:
		return "counter";
	case PHASE_ASYNC_BEGIN:
		return "async_begin";
	case PHASE_ASYNC_INSTANT:
		return "async_instant";
	case PHASE_ASYNC_END:
		return "async_end";
	case PHASE_FLOW_START:
		return "flow_start";
	case PHASE_FLOW_STEP:
		return "flow_step";
	case PHASE_FLOW_END:
		return "flow_end";
	case PHASE_SAMPLE:
		return "sample";
	case PHASE_OBJECT_NEW:
		return "object_new";
	case PHASE_OBJECT_SNAPSHOT:
		return "object_snapshot";
	case PHASE_OBJECT_DELETE:
		return "object_delete";
	case PHASE_METADATA:
		return "metadata";
	case PHASE_MEMORY_GLOBAL:
		return "memory_global";
	case PHASE_MEMORY_PROCESS:
		return "memory_process";
	case PHASE_MARK:
		return "mark";
	case PHASE_CLOCK_SYNC:
		return "clock_sync";
	case PHASE_CONTEXT_ENTER:
		return "context_enter";
	case PHASE_CONTEXT_LEAVE:
		return "context_leave";
	case PHASE_LINK:
		return "link";
	default:
		return "other";
	}
}

static void ctf_mark_put_json(struct buf *out, struct buf *scratch)
{
	ctf_put_text(out, scratch->data, scratch->len);
	out->failed |= scratch->failed;
	buf_clear(scratch);
}

static void ctf_mark_put_part(struct buf *out, const struct mark *mark, enum mark_part part)
{
	ctf_put_text(out, mark->part[part].data, mark->part[part].len);
}

/* Parts without a field of their own, as members of a JSON object. */
static void ctf_mark_put_more(struct ctf_marks *m, const struct mark *mark, struct buf *out)
{
	const struct {
		unsigned bit;
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ HAS_TTS, "tts_ns", mark->tts },
		{ HAS_TDUR, "tdur_ns", mark->tdur },
		{ HAS_TICOUNT, "ticount", mark->ticount },
		{ HAS_TIDELTA, "tidelta", mark->tidelta },
	};
	struct buf *b = &m->text;

	buf_putc(b, '{');
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (mark->has & numbers[i].bit)
			json_put_u64_key(b, numbers[i].key, numbers[i].value);
	if (mark->has & HAS_BIND_ENCLOSING)
		json_put_string_key(b, "bp", "e");
	if (mark->part[PART_CNAME].len) {
		json_put_key(b, "cname");
		buf_putc(b, '"');
		json_escape(b, mark->part[PART_CNAME].data, mark->part[PART_CNAME].len);
		buf_putc(b, '"');
	}
	json_put_members(b, mark->part[PART_EXTRA]);
	buf_putc(b, '}');
	ctf_mark_put_json(out, b);
}

static bool ctf_mark_has_stack(const struct ctf_marks *m, const struct mark *mark,
			       enum mark_part part)
{
	struct frame_stack stack;

	return mark->part[part].len && stack_frames_get_stack(&m->frames, mark, part, &stack);
}

/* Innermost first: "function (module)". */
static void ctf_mark_put_stack(const struct ctf_marks *m, const struct mark *mark,
			       enum mark_part part, struct buf *out)
{
	struct frame_stack stack = { .depth = 0 };

	if (mark->part[part].len)
		stack_frames_get_stack(&m->frames, mark, part, &stack);
	ctf_put_u32(m->c, out, stack.depth);
	for (unsigned i = 0; i < stack.depth; i++) {
		const struct stack_place *f = &stack.frames[i];

		ctf_put_text(out, f->name.data, f->name.len);
		if (!f->module.len)
			continue;
		out->len -= !out->failed; /* without the terminator */
		buf_puts(out, " (");
		buf_append(out, f->module.data, strnlen(f->module.data, f->module.len));
		buf_append(out, ")", sizeof(")"));
	}
}

static unsigned ctf_mark_parts_of(const struct ctf_marks *m, const struct mark *mark)
{
	const unsigned rare = HAS_TTS | HAS_TDUR | HAS_TICOUNT | HAS_TIDELTA | HAS_BIND_ENCLOSING;
	unsigned parts = 0;

	parts |= (mark->has & HAS_DUR ? 1U : 0U) << HAS_DURATION;
	parts |= (mark->phase == PHASE_INSTANT ? 1U : 0U) << HAS_REACH;
	parts |= (mark->id_kind != ID_NONE ? 1U : 0U) << HAS_ID;
	parts |= (mark->part[PART_ARGS].len ? 1U : 0U) << HAS_ARGS;
	parts |= (ctf_mark_has_stack(m, mark, PART_SF) ? 1U : 0U) << HAS_STACK;
	parts |= (ctf_mark_has_stack(m, mark, PART_ESF) ? 1U : 0U) << HAS_END_STACK;
	parts |= (mark->has & rare || mark->part[PART_CNAME].len || mark->part[PART_EXTRA].len ? 1U
											       : 0U)
		 << HAS_MORE;
	return parts;
}

static int ctf_mark_make_class(struct ctf_marks *m, uint8_t phase, unsigned parts, uint32_t *ret)
{
	static const char *const fields[PARTS] = {
		[HAS_DURATION] = "\t\tuint64_t _dur;\n",
		[HAS_REACH] = "\t\tstring _reach;\n",
		[HAS_ID] = "\t\tstring _id;\n\t\tstring _id_kind;\n\t\tstring _id_scope;\n",
		[HAS_ARGS] = "\t\tstring _args;\n",
		[HAS_STACK] = "\t\tuint32_t __stack_length;\n"
			      "\t\tstring _stack[ __stack_length ];\n",
		[HAS_END_STACK] = "\t\tuint32_t __end_stack_length;\n"
				  "\t\tstring _end_stack[ __end_stack_length ];\n",
		[HAS_MORE] = "\t\tstring _more;\n",
	};
	char name[64];
	int64_t id;

	snprintf(name, sizeof(name), "mark:%s", ctf_mark_phase_name(phase));
	id = ctf_begin_class(m->c, CTF_MARKS, name, strlen(name));
	if (id < 0)
		return (int)id;
	buf_puts(&m->c->classes, "\t\tint32_t _pid;\n\t\tint32_t _tid;\n"
				 "\t\tstring _name;\n\t\tstring _category;\n");
	for (unsigned i = 0; i < PARTS; i++)
		if (parts & 1U << i)
			buf_puts(&m->c->classes, fields[i]);
	ctf_end_class(m->c);
	*ret = (uint32_t)id + 1;
	return buf_error(&m->c->classes);
}

static const char *ctf_mark_reach(char instant)
{
	return instant == 'g' ? "global" : instant == 'p' ? "process" : "thread";
}

static void ctf_mark_put_id(const struct mark *mark, struct buf *out)
{
	static const char *const kinds[] = { "", "plain", "local", "global" };

	ctf_mark_put_part(out, mark, PART_ID);
	buf_append(out, kinds[mark->id_kind & 3], strlen(kinds[mark->id_kind & 3]) + 1);
	ctf_mark_put_part(out, mark, PART_SCOPE);
}

static void ctf_mark_put_fields(struct ctf_marks *m, const struct mark *mark, unsigned parts,
				struct buf *out)
{
	ctf_put_u32(m->c, out, (uint32_t)mark->pid);
	ctf_put_u32(m->c, out, (uint32_t)mark->tid);
	ctf_mark_put_part(out, mark, PART_NAME);
	ctf_mark_put_part(out, mark, PART_CAT);
	if (parts & 1U << HAS_DURATION)
		ctf_put_u64(m->c, out, mark->dur);
	if (parts & 1U << HAS_REACH)
		buf_append(out, ctf_mark_reach(mark->instant),
			   strlen(ctf_mark_reach(mark->instant)) + 1);
	if (parts & 1U << HAS_ID)
		ctf_mark_put_id(mark, out);
	if (parts & 1U << HAS_ARGS) {
		buf_putc(&m->text, '{');
		json_put_members(&m->text, mark->part[PART_ARGS]);
		buf_putc(&m->text, '}');
		ctf_mark_put_json(out, &m->text);
	}
	if (parts & 1U << HAS_STACK)
		ctf_mark_put_stack(m, mark, PART_SF, out);
	if (parts & 1U << HAS_END_STACK)
		ctf_mark_put_stack(m, mark, PART_ESF, out);
	if (parts & 1U << HAS_MORE)
		ctf_mark_put_more(m, mark, out);
}

/* Header of a stored event; len bytes of fields follow. */
struct early {
	uint32_t class, len;
};
#define EARLY_MAX (1U << 20)

static int ctf_mark_put_early(struct ctf_marks *m, uint64_t ts)
{
	int r = buf_error(&m->early);

	m->begun = true;
	for (size_t at = 0; r == 0 && at < m->early.len;) {
		const char *p = m->early.data + at;
		struct early e;

		memcpy(&e, p, sizeof(e));
		r = ctf_stream_event(m->c, &m->stream, ts, e.class);
		if (r < 0)
			break;
		buf_append(&m->stream.packet, p + sizeof(e), e.len);
		r = ctf_stream_settle(m->c, &m->stream);
		at += sizeof(e) + e.len;
	}
	buf_clear(&m->early);
	return r;
}

static int ctf_mark_keep_early(struct ctf_marks *m, const struct mark *mark, unsigned parts,
			       uint32_t class)
{
	size_t at = m->early.len;
	struct early e = { .class = class };

	buf_append(&m->early, &e, sizeof(e));
	ctf_mark_put_fields(m, mark, parts, &m->early);
	if (buf_error(&m->early))
		return -ENOMEM;
	e.len = (uint32_t)(m->early.len - at - sizeof(e));
	memcpy(m->early.data + at, &e, sizeof(e));
	return m->early.len > EARLY_MAX ? ctf_mark_put_early(m, m->c->start_ts) : 0;
}

static int ctf_mark_put(struct ctf_marks *m, const struct mark *mark)
{
	unsigned parts = ctf_mark_parts_of(m, mark);
	uint32_t *class = &m->classes[mark->phase % PHASES][parts];
	bool timeless = mark->phase == PHASE_METADATA;
	int r = *class ? 0 : ctf_mark_make_class(m, mark->phase, parts, class);

	if (r == 0 && timeless && !m->begun)
		return ctf_mark_keep_early(m, mark, parts, *class - 1);
	if (r == 0 && !m->begun)
		r = ctf_mark_put_early(m, mark->ts);
	if (r == 0)
		r = ctf_stream_event(m->c, &m->stream, timeless ? 0 : mark->ts, *class - 1);
	if (r < 0)
		return r;
	ctf_mark_put_fields(m, mark, parts, &m->stream.packet);
	return ctf_stream_settle(m->c, &m->stream);
}

static int ctf_sample_make_class(struct ctf_marks *m)
{
	int64_t id = ctf_begin_class(m->c, CTF_SAMPLES, "sample", strlen("sample"));

	if (id < 0)
		return (int)id;
	/*
	 * Samples of all CPUs are one stream, so the CPU is a field; other streams have it in the
	 * packet.
	 */
	buf_puts(&m->c->classes, "\t\tint32_t _cpu;\n\t\tint32_t _pid;\n\t\tint32_t _tid;\n"
				 "\t\tstring _name;\n"
				 "\t\tuint32_t __callchain_length;\n"
				 "\t\tstring _callchain[ __callchain_length ];\n"
				 "\t\tstring _more;\n");
	ctf_end_class(m->c);
	m->sample_class = (uint32_t)id + 1;
	return buf_error(&m->c->classes);
}

static int32_t ctf_sample_cpu(const struct mark *mark)
{
	struct value v;
	double cpu;

	if (!value_find(mark->part[PART_EXTRA], "cpu", &v) || !value_number(&v, &cpu) ||
	    !(cpu >= 0 && cpu <= INT32_MAX))
		return -1;
	return (int32_t)cpu;
}

static int ctf_sample_put(struct ctf_marks *m, const struct mark *mark)
{
	struct ctf_stream *s = &m->samples[mark->source % SOURCES_MAX];
	struct buf *out = &s->packet;
	int r = m->sample_class ? 0 : ctf_sample_make_class(m);

	if (!*s->name) {
		snprintf(s->name, sizeof(s->name), "samples_%u", mark->source % SOURCES_MAX);
		s->stream_class = CTF_SAMPLES;
	}
	if (r == 0)
		r = ctf_stream_event(m->c, s, mark->ts, m->sample_class - 1);
	if (r < 0)
		return r;
	ctf_put_u32(m->c, out, (uint32_t)ctf_sample_cpu(mark));
	ctf_put_u32(m->c, out, (uint32_t)mark->pid);
	ctf_put_u32(m->c, out, (uint32_t)mark->tid);
	ctf_mark_put_part(out, mark, PART_NAME);
	ctf_mark_put_stack(m, mark, PART_SF, out);
	ctf_mark_put_more(m, mark, out);
	return ctf_stream_settle(m->c, s);
}

int ctf_marks_put(struct ctf_marks *m, const struct mark *mark)
{
	int r;

	switch (mark->phase) {
	case PHASE_FRAME:
		r = stack_frames_add(&m->frames, mark);
		/* Too many frames: stacks are cut there. */
		return r == -ENOSPC ? 0 : r;
	case PHASE_GLOBAL_SAMPLE:
		return ctf_sample_put(m, mark);
	default:
		return ctf_mark_put(m, mark);
	}
}

int ctf_marks_flush(struct ctf_marks *m)
{
	int r = ctf_mark_put_early(m, m->c->start_ts);

	if (r == 0)
		r = ctf_stream_flush(m->c, &m->stream);
	for (unsigned i = 0; r == 0 && i < SOURCES_MAX; i++)
		r = ctf_stream_flush(m->c, &m->samples[i]);
	return r;
}

int ctf_marks_new(struct ctf_marks **ret, struct ctf *c)
{
	struct ctf_marks *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->c = c;
	m->stream = (struct ctf_stream){ .name = "marks", .stream_class = CTF_MARKS };
	m->samples = calloc(SOURCES_MAX, sizeof(*m->samples));
	if (!m->samples) {
		ctf_marks_free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

struct ctf_marks *ctf_marks_free(struct ctf_marks *m)
{
	if (!m)
		return NULL;
	for (unsigned i = 0; m->samples && i < SOURCES_MAX; i++)
		ctf_stream_deinit(&m->samples[i]);
	free(m->samples);
	ctf_stream_deinit(&m->stream);
	stack_frames_deinit(&m->frames);
	buf_deinit(&m->text);
	buf_deinit(&m->early);
	free(m);
	return NULL;
}
