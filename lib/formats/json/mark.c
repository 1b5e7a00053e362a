/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/mark.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/plural.h"
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

void json_marks_deinit(struct json_marks *j)
{
	json_frames_deinit(&j->frames);
	nested_threads_deinit(&j->nested);
	json_steps_deinit(&j->steps);
	buf_deinit(&j->name);
}

static void json_mark_put_frame_key(struct json_marks *j, struct buf *out, const char *key,
				    const struct mark *m, enum mark_part part)
{
	if (!m->part[part].len)
		return;
	if (!json_frames_have(&j->frames, m, part)) {
		j->stackless++;
		return;
	}
	json_put_key(out, key);
	json_put_frame_id(&j->frames, out, m, part);
}

/* Trace Viewer refuses a trace with a sample without a frame: such samples get a common one. */
static int json_mark_give_frame(struct json_marks *j, const struct mark *sample, struct mark *ret)
{
	const struct text none = TEXT("no stack");
	const struct mark frame = {
		.phase = PHASE_FRAME,
		.has = HAS_OWN_FRAMES,
		.part = { [PART_ID] = none, [PART_NAME] = none },
	};
	int r = json_frames_add(&j->frames, &frame);

	j->stackless += sample->part[PART_SF].len > 0;
	*ret = *sample;
	ret->has |= HAS_OWN_FRAMES;
	ret->part[PART_SF] = none;
	return r;
}

static void json_mark_move_cpu(struct value *v, unsigned depth, void *userdata)
{
	if (!depth && v->type == VALUE_UINT && v->u < UINT32_MAX && text_equal(v->key, TEXT("cpu")))
		v->u = host_cpu(userdata, (uint32_t)v->u);
}

static void json_mark_put_task(const struct json_marks *j, struct buf *out, const struct mark *m,
			       bool has_pid)
{
	if (has_pid)
		json_put_i64_key(out, "pid", host_pid(j->frames.host, m->pid));
	json_put_i64_key(out, "tid", host_pid(j->frames.host, m->tid));
}

static int json_mark_put_sample(struct json_marks *j, struct buf *out, const struct mark *m)
{
	bool has_pid = m->pid || m->has & HAS_OWN_FRAMES;
	struct mark framed;
	int r = 0;

	if (!json_frames_have(&j->frames, m, PART_SF)) {
		r = json_mark_give_frame(j, m, &framed);
		m = &framed;
	}
	if (r < 0)
		return r;
	json_put_comma(out);
	buf_puts(out, "\n{");
	json_mark_put_task(j, out, m, has_pid);
	json_mark_put_us(out, "ts", m->ts);
	json_mark_put_text(out, "name", m->part[PART_NAME]);
	json_mark_put_frame_key(j, out, "sf", m, PART_SF);
	/* The members cpu and weight. */
	if (m->part[PART_EXTRA].len)
		json_put_changed_members(out, m->part[PART_EXTRA], json_mark_move_cpu,
					 (void *)j->frames.host);
	buf_putc(out, '}');
	return 1;
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

static uint64_t json_mark_hash(const void *data, size_t len, uint64_t hash)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#define HASH_SEED UINT64_C(0xcbf29ce484222325)
#define HASHED_PHASES "bnestf="

/* Equal ids of several machines differ in the file. */
static uint64_t json_mark_seed(const struct json_marks *j)
{
	const struct host_numbers *host = j->frames.host;

	return host ? json_mark_hash(&host->number, sizeof(host->number), HASH_SEED) : HASH_SEED;
}

/* An id as it is written: unchanged, or its hash. */
static struct text json_mark_id(const struct json_marks *j, const struct mark *m, struct text id,
				char to[static 20])
{
	if ((json_mark_is_hex(id) && (!j->frames.host || m->has & HAS_SHARED_ID)) ||
	    !strchr(HASHED_PHASES, m->phase))
		return id;
	return (struct text){ to, (uint32_t)snprintf(
					  to, 20, "0x%" PRIx64,
					  json_mark_hash(id.data, id.len, json_mark_seed(j))) };
}

/* Readers know only plain ids of flows: one that is local gets its process into it. */
static void json_mark_put_flow_id(const struct json_marks *j, struct buf *out, const struct mark *m)
{
	struct text id = m->part[PART_ID];
	uint64_t hash = json_mark_hash(id.data, id.len, json_mark_seed(j));

	json_put_key(out, "id");
	buf_printf(out, "\"0x%" PRIx64 "\"", json_mark_hash(&m->pid, sizeof(m->pid), hash));
}

static void json_mark_put_id(const struct json_marks *j, struct buf *out, const struct mark *m)
{
	bool flow = strchr("stf", m->phase);
	char hashed[20];
	struct text id = json_mark_id(j, m, m->part[PART_ID], hashed);

	switch (m->id_kind) {
	case ID_PLAIN:
		json_mark_put_text(out, "id", id);
		break;
	case ID_LOCAL:
	case ID_GLOBAL:
		if (flow && m->id_kind == ID_LOCAL) {
			json_mark_put_flow_id(j, out, m);
			break;
		}
		if (flow) {
			json_mark_put_text(out, "id", id);
			break;
		}
		json_put_key(out, "id2");
		buf_puts(out, m->id_kind == ID_LOCAL ? "{\"local\":" : "{\"global\":");
		json_put_text(out, id);
		buf_putc(out, '}');
		break;
	}
	if (m->part[PART_SCOPE].len)
		json_mark_put_text(out, "scope", m->part[PART_SCOPE]);
}

/* The linked id of "=" is written like the ids of the marks that it links. */
struct link_change {
	const struct json_marks *marks;
	const struct mark *mark;
	char spelled[20], hashed[20];
};

static void json_mark_change_link(struct value *v, unsigned depth, void *userdata)
{
	struct link_change *c = userdata;
	struct text id;

	if (depth || !text_equal(v->key, TEXT("linked_id")) || !value_spell_id(v, c->spelled, &id))
		return;
	v->type = VALUE_STRING;
	v->text = json_mark_id(c->marks, c->mark, id, c->hashed);
}

/* Series of a counter: readers draw numbers and reject anything else. */
static bool json_mark_put_series(struct json_marks *j, struct buf *out, struct text args)
{
	uint64_t numberless = 0;
	struct value_iter it;
	struct value v;
	bool any = false;

	value_iter_init(&it, args, true);
	while (value_next_number(&it, &v, &numberless)) {
		if (v.type == VALUE_POINTER)
			v.type = VALUE_UINT;
		json_put_comma(out);
		json_put_text(out, v.key);
		buf_putc(out, ':');
		json_put_value(out, &v);
		any = true;
	}
	/* A counter without any number is left out, and counted, as a whole. */
	j->numberless += any ? numberless : 0;
	return any;
}

/*
 * Trace Viewer takes a value within a snapshot that has an id for another snapshot, and refuses the
 * trace unless the id is NAME/ID. The snapshot itself must have none.
 */
struct snapshot_change {
	bool inside;
	uint64_t renamed;
};

static bool json_mark_is_implicit_id(const struct value *v)
{
	const char *slash = v->type == VALUE_STRING && v->text.len
				    ? memrchr(v->text.data, '/', v->text.len - 1)
				    : NULL;

	return slash && slash > v->text.data;
}

/* "id" and any number of "_". A longer one is left as it is. */
static bool json_mark_is_id(struct text key, size_t room)
{
	if (!key.data || key.len < 2 || key.len >= room || memcmp(key.data, "id", 2) != 0)
		return false;
	for (uint32_t i = 2; i < key.len; i++)
		if (key.data[i] != '_')
			return false;
	return true;
}

static void json_mark_change_snapshot(struct value *v, unsigned depth, void *userdata)
{
	static const char longer[] = "id______________________________";
	struct snapshot_change *c = userdata;

	if (!depth)
		c->inside = text_equal(v->key, TEXT("snapshot"));
	if (!depth || !c->inside || !json_mark_is_id(v->key, sizeof(longer) - 1) ||
	    (depth > 1 && v->key.len == 2 && json_mark_is_implicit_id(v)))
		return;
	c->renamed += v->key.len == 2;
	v->key = (struct text){ longer, v->key.len + 1 };
}

static bool json_mark_is_dump(const struct mark *m)
{
	return m->phase == PHASE_MEMORY_GLOBAL || m->phase == PHASE_MEMORY_PROCESS;
}

static void json_mark_put_snapshot(struct json_marks *j, struct buf *out, struct text args)
{
	struct snapshot_change change = { 0 };

	json_put_changed_members(out, args, json_mark_change_snapshot, &change);
	j->renamed += change.renamed;
}

/* A name that a process gives itself, after its machine's label. */
static void json_mark_change_name(struct value *v, unsigned depth, void *userdata)
{
	struct json_marks *j = userdata;
	const char *label = j->frames.host->label;

	if (depth || v->type != VALUE_STRING || !text_equal(v->key, TEXT("name")))
		return;
	buf_clear(&j->name);
	buf_puts(&j->name, label);
	buf_puts(&j->name, ": ");
	buf_append(&j->name, v->text.data, v->text.len);
	if (buf_error(&j->name) == 0)
		v->text = (struct text){ j->name.data, (uint32_t)j->name.len };
}

static bool json_mark_put_args(struct json_marks *j, struct buf *out, const struct mark *m)
{
	struct text args = m->part[PART_ARGS];
	bool good = true;

	if (!args.len && m->phase != PHASE_COUNTER && m->phase != PHASE_METADATA &&
	    !json_mark_is_dump(m))
		return true;
	json_put_key(out, "args");
	buf_putc(out, '{');
	if (m->phase == PHASE_COUNTER)
		good = json_mark_put_series(j, out, args);
	else if (!args.len && json_mark_is_dump(m))
		buf_puts(out, "\"dumps\":{}"); /* Trace Viewer reads it from there */
	else if (m->phase == PHASE_OBJECT_SNAPSHOT)
		json_mark_put_snapshot(j, out, args);
	else if (j->frames.host && m->phase == PHASE_METADATA &&
		 text_equal(m->part[PART_NAME], TEXT("process_name")))
		json_put_changed_members(out, args, json_mark_change_name, j);
	else if (m->phase == PHASE_LINK)
		json_put_changed_members(out, args, json_mark_change_link,
					 &(struct link_change){ .marks = j, .mark = m });
	else
		json_put_members(out, args);
	buf_putc(out, '}');
	return good && (m->phase != PHASE_METADATA || args.len);
}

static void json_mark_put_cname(struct json_marks *j, struct buf *out, struct text name)
{
	if (!name.len)
		return;
	if (json_mark_is_known_cname(name))
		json_mark_put_text(out, "cname", name);
	else
		j->colourless++;
}

/* longer: ns that the mark begins earlier. */
static void json_mark_put_optional(struct json_marks *j, struct buf *out, const struct mark *m,
				   uint64_t longer)
{
	if (m->has & HAS_DUR)
		json_mark_put_us(out, "dur", m->dur + longer);
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
	json_mark_put_cname(j, out, m->part[PART_CNAME]);
	json_mark_put_frame_key(j, out, "sf", m, PART_SF);
	json_mark_put_frame_key(j, out, "esf", m, PART_ESF);
}

/* Whether a member of the arguments is there and of another type. */
static bool json_mark_lacks(const struct mark *m, const char *key, enum value_type type)
{
	struct value v;

	return !value_find(m->part[PART_ARGS], key, &v) || v.type != type;
}

/* A sample of V8 has {"data": {"stack": [...]}}. */
static bool json_mark_is_v8_sample(const struct mark *m)
{
	struct value_iter it;
	struct value v;
	bool inside = false;

	value_iter_init(&it, m->part[PART_ARGS], true);
	while (value_next(&it, &v)) {
		if (it.depth == 1 && v.type == VALUE_DICT)
			inside = text_equal(v.key, TEXT("data"));
		if (it.depth == 2 && inside && v.type == VALUE_LIST &&
		    text_equal(v.key, TEXT("stack")))
			return true;
	}
	return false;
}

static const char *json_mark_why_bad_metadata(const struct mark *m)
{
	struct text name = m->part[PART_NAME];

	if (text_equal(name, TEXT("process_labels")) && json_mark_lacks(m, "labels", VALUE_STRING))
		return "process_labels whose labels are no text";
	if ((text_equal(name, TEXT("process_name")) || text_equal(name, TEXT("thread_name"))) &&
	    json_mark_lacks(m, "name", VALUE_STRING))
		return "a process_name or thread_name whose name is no text";
	return NULL;
}

/* Why Trace Viewer would refuse the whole trace, or NULL. */
static const char *json_mark_why_refused(const struct mark *m)
{
	struct value v;

	switch (m->phase) {
	case PHASE_METADATA:
		return json_mark_why_bad_metadata(m);
	case PHASE_CONTEXT_ENTER:
	case PHASE_CONTEXT_LEAVE:
		return m->id_kind == ID_NONE ? "a context without an id" : NULL;
	case PHASE_MEMORY_GLOBAL:
	case PHASE_MEMORY_PROCESS:
		return value_find(m->part[PART_ARGS], "dumps", &v) && v.type != VALUE_DICT
			       ? "a memory dump whose dumps are no object"
			       : NULL;
	case PHASE_SAMPLE:
		return text_equal(m->part[PART_NAME], TEXT("V8Sample")) &&
				       !json_mark_is_v8_sample(m)
			       ? "a V8Sample without V8's stack"
			       : NULL;
	default:
		return NULL;
	}
}

static int json_mark_refuse(struct json_marks *j, const char *why)
{
	if (!j->refused++)
		j->why_refused = why;
	return 0;
}

static int json_mark_put_event(struct json_marks *j, struct buf *out, const struct mark *m)
{
	uint64_t begin = nested_begin(&j->nested, m);
	struct text cat = m->part[PART_CAT];
	size_t start = out->len;

	json_put_comma(out);
	buf_puts(out, "\n{");
	/* Some readers find the slice that an end closes by its name: an end's own may differ. */
	json_mark_put_text(out, "name",
			   m->phase == PHASE_END && m->begun.data ? m->begun : m->part[PART_NAME]);
	json_put_string_key(out, "ph", (char[]){ (char)m->phase, '\0' });
	/* Streaming readers drop events without a category. */
	json_mark_put_text(out, "cat", cat.len ? cat : TEXT("default"));
	json_mark_put_task(j, out, m, true);
	if (m->phase != PHASE_METADATA)
		json_mark_put_us(out, "ts", begin);
	json_mark_put_optional(j, out, m, m->ts - begin);
	json_mark_put_id(j, out, m);
	if (m->part[PART_EXTRA].len)
		json_put_members(out, m->part[PART_EXTRA]);
	if (!json_mark_put_args(j, out, m)) {
		out->len = start;
		return 0;
	}
	buf_putc(out, '}');
	return 1;
}

static int json_mark_put_steps(struct json_marks *j, struct buf *out, const struct mark *m)
{
	struct mark marks[2];
	int count = json_steps_take(&j->steps, m, marks), r = count;

	for (int i = 0; i < count; i++)
		r = json_mark_put_event(j, out, &marks[i]);
	return r;
}

int json_put_mark(struct json_marks *j, struct buf *out, const struct mark *m)
{
	const char *why;

	switch (m->phase) {
	case PHASE_FRAME:
		return json_frames_add(&j->frames, m) ?: 1;
	case PHASE_GLOBAL_SAMPLE:
		return json_mark_put_sample(j, out, m);
	default:
		why = json_mark_why_refused(m);
		if (why)
			return json_mark_refuse(j, why);
		return m->was ? json_mark_put_steps(j, out, m) : json_mark_put_event(j, out, m);
	}
}

int json_marks_warn(struct json_marks *j, struct stream_index *index)
{
	int r = 0;

	json_frames_settle(&j->frames);
	if (j->refused)
		r = stream_index_warn(
			index,
			"%" PRIu64 " mark%s left out, as Trace Viewer would refuse the whole "
			"trace; the first: %s",
			j->refused, plural(j->refused, " is", "s are"), j->why_refused);
	if (r == 0)
		r = shares_warn(&j->frames.shares, "stack frames", NULL, index);
	r = r
		?: stream_index_warn_count(index, j->stackless,
					   "stack of a mark or sample is missing: it names frames "
					   "that are not there",
					   "stacks of marks and samples are missing: they name "
					   "frames that are not there")
		?: stream_index_warn_count(index, j->frames.orphans,
					   "stack is cut at a frame whose caller is not there, or is "
					   "among those that it calls",
					   "stacks are cut at a frame whose caller is not there, "
					   "or is among those that it calls");
	if (r == 0 && j->colourless)
		r = stream_index_warn(index,
				      "the colours of %" PRIu64
				      " mark%s are left out: Trace Viewer "
				      "does not know their names (cname)",
				      j->colourless, plural_s(j->colourless));
	if (r == 0)
		r = stream_index_warn_count(index, j->numberless, MARKS_NUMBERLESS);
	if (r == 0)
		r = stream_index_warn_count(
			index, j->renamed,
			"member 'id' of a snapshot is named 'id_': Trace Viewer "
			"would refuse the whole trace",
			"members 'id' of snapshots are named 'id_': Trace "
			"Viewer would refuse the whole trace");
	return r;
}
