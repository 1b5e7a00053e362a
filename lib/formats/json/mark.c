/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/mark.h"

#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "marks/value_json.h"

static void json_mark_put_text(struct buf *out, const char *key, struct text text)
{
	json_put_key(out, key);
	json_put_text(out, text);
}

static void json_mark_put_us(struct buf *out, const char *key, uint64_t ns)
{
	json_put_key(out, key);
	json_put_us(out, ns);
}

/* Trace Viewer rejects the whole trace for an unknown colour. */
static bool json_mark_is_known_cname(struct text name)
{
	static const char *const names[] = {
		"thread_state_uninterruptible",
		"thread_state_iowait",
		"thread_state_running",
		"thread_state_runnable",
		"thread_state_sleeping",
		"thread_state_unknown",
		"background_memory_dump",
		"light_memory_dump",
		"detailed_memory_dump",
		"vsync_highlight_color",
		"generic_work",
		"good",
		"bad",
		"terrible",
		"black",
		"grey",
		"white",
		"yellow",
		"olive",
		"rail_response",
		"rail_animation",
		"rail_idle",
		"rail_load",
		"startup",
		"heap_dump_stack_frame",
		"heap_dump_object_type",
		"heap_dump_child_node_arrow",
		"cq_build_running",
		"cq_build_passed",
		"cq_build_failed",
		"cq_build_abandoned",
		"cq_build_attempt_runnig", /* Trace Viewer's own spelling */
		"cq_build_attempt_passed",
		"cq_build_attempt_failed",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == name.len && !memcmp(names[i], name.data, name.len))
			return true;
	return false;
}

/* Frame ids are unique per file; the dictionary is common to all files. */
static void json_mark_put_frame_id(struct buf *out, const struct mark *m, struct text id)
{
	buf_putc(out, '"');
	if (m->source)
		buf_printf(out, "%" PRIu32 ":", m->source);
	json_escape(out, id.data, id.len);
	buf_putc(out, '"');
}

static void json_mark_put_frame_key(struct buf *out, const char *key, const struct mark *m,
				    enum mark_part part)
{
	if (!m->part[part].len)
		return;
	json_put_key(out, key);
	json_mark_put_frame_id(out, m, m->part[part]);
}

static void json_mark_put_frame(struct buf *out, const struct mark *m)
{
	json_put_comma(out);
	buf_putc(out, '\n');
	json_mark_put_frame_id(out, m, m->part[PART_ID]);
	buf_puts(out, ":{");
	json_mark_put_text(out, "category", m->part[PART_CAT]);
	json_mark_put_text(out, "name", m->part[PART_NAME]);
	json_mark_put_frame_key(out, "parent", m, PART_SF);
	buf_putc(out, '}');
}

static void json_mark_put_sample(struct buf *out, const struct mark *m)
{
	json_put_comma(out);
	buf_puts(out, "\n{");
	json_put_i64_key(out, "tid", m->tid);
	json_mark_put_us(out, "ts", m->ts);
	json_mark_put_text(out, "name", m->part[PART_NAME]);
	json_mark_put_frame_key(out, "sf", m, PART_SF);
	/* The members cpu and weight. */
	if (m->part[PART_EXTRA].len)
		json_put_members(out, m->part[PART_EXTRA]);
	buf_putc(out, '}');
}

/* Both readers want "0x..." for ids of flows and async events; other strings are hashed. */
static bool json_mark_is_hex(struct text id)
{
	if (id.len < 3 || id.len > 18 || id.data[0] != '0' || id.data[1] != 'x')
		return false;
	for (uint32_t i = 2; i < id.len; i++)
		if (!strchr("0123456789abcdefABCDEF", id.data[i]) || !id.data[i])
			return false;
	return true;
}

static void json_mark_put_id_text(struct buf *out, const struct mark *m)
{
	struct text id = m->part[PART_ID];
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	if (json_mark_is_hex(id) || !strchr("bnestf", m->phase)) {
		json_put_text(out, id);
		return;
	}
	for (uint32_t i = 0; i < id.len; i++)
		hash = (hash ^ (unsigned char)id.data[i]) * UINT64_C(0x100000001b3);
	buf_printf(out, "\"0x%" PRIx64 "\"", hash);
}

static void json_mark_put_id(struct buf *out, const struct mark *m)
{
	switch (m->id_kind) {
	case ID_PLAIN:
		json_put_key(out, "id");
		json_mark_put_id_text(out, m);
		break;
	case ID_LOCAL:
	case ID_GLOBAL:
		json_put_key(out, "id2");
		buf_puts(out, m->id_kind == ID_LOCAL ? "{\"local\":" : "{\"global\":");
		json_mark_put_id_text(out, m);
		buf_putc(out, '}');
		break;
	}
	if (m->part[PART_SCOPE].len)
		json_mark_put_text(out, "scope", m->part[PART_SCOPE]);
}

/* Series of a counter: readers draw numbers and reject anything else. */
static bool json_mark_put_series(struct buf *out, struct text args)
{
	struct value_iter it;
	struct value v;
	bool any = false;
	double d;

	value_iter_init(&it, args, true);
	while (value_next(&it, &v)) {
		if (v.type == VALUE_LIST || v.type == VALUE_DICT) {
			value_skip(&it);
			continue;
		}
		if (!value_number(&v, &d) || !isfinite(d))
			continue;
		if (v.type == VALUE_POINTER)
			v.type = VALUE_UINT;
		json_put_comma(out);
		json_put_text(out, v.key);
		buf_putc(out, ':');
		json_put_value(out, &v);
		any = true;
	}
	return any;
}

static bool json_mark_put_args(struct buf *out, const struct mark *m)
{
	struct text args = m->part[PART_ARGS];
	bool good = true;

	if (!args.len && m->phase != PHASE_COUNTER && m->phase != PHASE_METADATA)
		return true;
	json_put_key(out, "args");
	buf_putc(out, '{');
	if (m->phase == PHASE_COUNTER)
		good = json_mark_put_series(out, args);
	else
		json_put_members(out, args);
	buf_putc(out, '}');
	return good && (m->phase != PHASE_METADATA || args.len);
}

static void json_mark_put_optional(struct buf *out, const struct mark *m)
{
	if (m->has & HAS_DUR)
		json_mark_put_us(out, "dur", m->dur);
	if (m->has & HAS_TTS)
		json_mark_put_us(out, "tts", m->tts);
	if (m->has & HAS_TDUR)
		json_mark_put_us(out, "tdur", m->tdur);
	if (m->has & HAS_TICOUNT)
		json_put_u64_key(out, "ticount", m->ticount);
	if (m->has & HAS_TIDELTA)
		json_put_u64_key(out, "tidelta", m->tidelta);
	if (m->has & HAS_BIND_ENCLOSING)
		json_put_string_key(out, "bp", "e");
	if (m->phase == PHASE_INSTANT)
		json_put_string_key(out, "s", (char[]){ m->instant, '\0' });
	if (m->part[PART_CNAME].len && json_mark_is_known_cname(m->part[PART_CNAME]))
		json_mark_put_text(out, "cname", m->part[PART_CNAME]);
	json_mark_put_frame_key(out, "sf", m, PART_SF);
	json_mark_put_frame_key(out, "esf", m, PART_ESF);
}

static bool json_mark_put_event(struct buf *out, const struct mark *m)
{
	struct text cat = m->part[PART_CAT];
	size_t start = out->len;

	json_put_comma(out);
	buf_puts(out, "\n{");
	/* Some readers find the slice that an end closes by its name. */
	json_mark_put_text(out, "name",
			   m->phase == PHASE_END && !m->part[PART_NAME].len ? m->begun
									    : m->part[PART_NAME]);
	json_put_string_key(out, "ph", (char[]){ (char)m->phase, '\0' });
	/* Streaming readers drop events without a category. */
	json_mark_put_text(out, "cat", cat.len ? cat : TEXT("default"));
	json_put_i64_key(out, "pid", m->pid);
	json_put_i64_key(out, "tid", m->tid);
	if (m->phase != PHASE_METADATA)
		json_mark_put_us(out, "ts", m->ts);
	json_mark_put_optional(out, m);
	json_mark_put_id(out, m);
	if (m->part[PART_EXTRA].len)
		json_put_members(out, m->part[PART_EXTRA]);
	if (!json_mark_put_args(out, m)) {
		out->len = start;
		return false;
	}
	buf_putc(out, '}');
	return true;
}

bool json_put_mark(struct buf *out, const struct mark *m)
{
	switch (m->phase) {
	case PHASE_FRAME:
		json_mark_put_frame(out, m);
		return true;
	case PHASE_GLOBAL_SAMPLE:
		json_mark_put_sample(out, m);
		return true;
	default:
		return json_mark_put_event(out, m);
	}
}
