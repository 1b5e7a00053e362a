/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/trace_file.h"

#include "base/io.h"
#include "base/vec.h"
#include "marks/trace_event.h"

#define STRING_MAX (1U << 20)  /* bytes of one string */
#define POWER_MAX (64U << 20)  /* bytes of a power trace */
#define MEMBERS_MAX (1U << 20) /* bytes of all unknown members */

/* Returns the frame of this name under this parent, adding it if new; 0: too many frames. */
static int file_intern_frame(struct file_reader *l, uint32_t parent, struct text name,
			     uint32_t *ret, struct error *err)
{
	struct mark frame = { .phase = PHASE_FRAME, .source = l->source };
	int r = frame_ids_get(&l->frames, parent, name, (struct text){ 0 }, 0, ret);
	char id[16], above[16];

	if (r == -ENOMEM)
		return error_errno(err, r, "can't keep stacks");
	if (r <= 0)
		return 0;
	frame.part[PART_ID] = (struct text){ id, frame_id_spell(id, *ret) };
	frame.part[PART_NAME] = name;
	if (parent)
		frame.part[PART_SF] = (struct text){ above, frame_id_spell(above, parent) };
	return mark_sort_add(l->file->marks, &frame, err);
}

/* Converts a raw stack, outermost first, to the frame of its leaf. */
static int file_take_stack(struct file_reader *l, struct buf *stack, enum mark_part part,
			   struct error *err)
{
	struct value_iter it;
	struct value v;
	uint32_t frame = 0;
	char id[16];

	value_iter_init(&it, text_of(stack), false);
	if (!value_next(&it, &v) || v.type != VALUE_LIST)
		return 0;
	while (value_next(&it, &v) && v.type == VALUE_STRING) {
		int r = file_intern_frame(l, frame, v.text, &frame, err);

		if (r < 0 || !frame)
			return r;
	}
	buf_clear(&l->part[part]);
	if (frame)
		buf_append(&l->part[part], id, frame_id_spell(id, frame));
	return 0;
}

static int file_leave_out(struct file_reader *l, const char *why)
{
	if (!l->file->left_out++)
		l->file->why_left_out = why;
	return 0;
}

static bool is_sync(const struct mark *m)
{
	return m->phase == PHASE_CLOCK_SYNC;
}

static int file_take_sync(struct file_reader *l, struct error *err)
{
	struct trace_file *f = l->file;
	struct trace_file_sync *sync;
	struct value id, issue;

	if (!value_find(l->mark.part[PART_ARGS], "sync_id", &id) || id.type != VALUE_STRING)
		return file_leave_out(l, "a clock_sync event without a sync_id");
	if (f->sync_count == TRACE_FILE_SYNCS_MAX)
		return file_leave_out(l, "too many clock_sync events");
	if (vec_reserve_exact(f->syncs, f->sync_count, 1) < 0)
		return error_errno(err, -ENOMEM, "can't keep a clock_sync event");
	sync = &f->syncs[f->sync_count];
	*sync = (struct trace_file_sync){
		.id = strndup(id.text.data, id.text.len),
		.ts = l->mark.ts,
	};
	if (!sync->id)
		return error_errno(err, -ENOMEM, "can't keep a clock_sync event");
	if (value_find(l->mark.part[PART_ARGS], "issue_ts", &issue)) {
		double us;

		if (issue.type == VALUE_INT && issue.i >= 0 && issue.i < INT64_MAX / 1000)
			sync->issue_ts = (uint64_t)issue.i * 1000;
		else if (value_number(&issue, &us) && us > 0 && us < 9e15)
			sync->issue_ts = (uint64_t)(us * 1000);
	}
	f->sync_count++;
	return 0;
}

static const char *why_unusable(const struct file_reader *l)
{
	const struct mark *m = &l->mark;

	if (!(l->seen & SEEN_PH))
		return "an event without a phase that the format knows (ph)";
	if (l->seen & SEEN_BAD)
		return "an event with a member of the wrong type";
	if (m->phase != PHASE_METADATA && !(l->seen & SEEN_TS))
		return "an event without a time (ts)";
	if (!(l->seen & SEEN_PID) && !is_sync(m) && m->phase != PHASE_MEMORY_GLOBAL)
		return "an event without a process (pid)";
	if (!(l->seen & SEEN_NAME) && strchr("BXiCbnMR", m->phase))
		return "an event without a name";
	if (strchr("bnestfNOD()=", m->phase) && !m->id_kind)
		return "an event without an id";
	if (m->phase == PHASE_COMPLETE && !(m->has & HAS_DUR))
		return "a complete event without a duration (dur)";
	return NULL;
}

static int file_add_mark(struct file_reader *l, struct error *err)
{
	struct trace_file *f = l->file;
	struct mark *m = &l->mark;
	const char *why;
	int r;

	r = file_take_stack(l, &l->stack[0], PART_SF, err);
	if (r == 0)
		r = file_take_stack(l, &l->stack[1], PART_ESF, err);
	if (r < 0)
		return r;
	for (int i = 0; i < PART_PARTS; i++)
		m->part[i] = text_of(&l->part[i]);
	why = m->phase == PHASE_GLOBAL_SAMPLE || m->phase == PHASE_FRAME ? NULL : why_unusable(l);
	if (why)
		return file_leave_out(l, why);
	if (!(l->seen & SEEN_TID))
		m->tid = m->pid;
	if (m->phase == PHASE_METADATA)
		m->ts = 0;
	if (m->has & HAS_DUR && m->dur > (uint64_t)INT64_MAX - m->ts)
		return file_leave_out(l, "an event that never ends");
	if (m->phase != PHASE_FRAME)
		f->count++;
	if (l->seen & SEEN_TS && m->phase != PHASE_METADATA) {
		f->first_ts = f->first_ts ? MIN(f->first_ts, m->ts) : m->ts;
		f->last_ts = MAX(f->last_ts, m->ts);
	}
	r = is_sync(m) ? file_take_sync(l, err) : mark_sort_add(f->marks, m, err);
	return r == -E2BIG ? file_leave_out(l, "an event that is too long") : r;
}

/* Reads an object after its bracket. Returns its end's token, or -errno. */
static int file_read_members(struct file_reader *l, struct error *err)
{
	int token, r;

	file_reader_forget(l);
	while ((token = json_read_next(&l->json, err)) == JSON_KEY) {
		r = file_reader_member(l, err);
		if (r < 0)
			return r;
	}
	return token;
}

/* An element of traceEvents. */
static int file_read_event(struct file_reader *l, struct error *err)
{
	int token = file_read_members(l, err);

	return token < 0 ? token : file_add_mark(l, err);
}

static int file_read_sample(struct file_reader *l, struct error *err)
{
	int token = file_read_members(l, err);

	if (token < 0)
		return token;
	l->mark.phase = PHASE_GLOBAL_SAMPLE;
	if ((l->seen & (SEEN_TS | SEEN_TID | SEEN_BAD)) != (SEEN_TS | SEEN_TID))
		return file_leave_out(l, "a sample without a time or a thread");
	return file_add_mark(l, err);
}

/* Reads an array of events or samples after its bracket. */
static int file_read_elements(struct file_reader *l,
			      int (*read)(struct file_reader *, struct error *), struct error *err)
{
	int token, r;

	while ((token = json_read_next(&l->json, err)) > 0 && token != JSON_ARRAY_END) {
		if (token == JSON_OBJECT) {
			r = read(l, err);
		} else {
			file_leave_out(l, "something that is no event");
			r = json_read_skip(&l->json, token, err);
		}
		if (r < 0)
			return r;
	}
	return token < 0 ? token : 0;
}

/* "7": {"name": ..., "category": ..., "parent": "5"} */
static int file_read_frame(struct file_reader *l, struct error *err)
{
	int token, r;

	file_reader_forget(l);
	file_reader_frame(l, JSON_STRING, PART_ID);
	token = json_read_next(&l->json, err);
	if (token < 0)
		return token;
	if (token != JSON_OBJECT) {
		file_leave_out(l, "a stack frame that is no object");
		return json_read_skip(&l->json, token, err);
	}
	while ((token = json_read_next(&l->json, err)) == JSON_KEY) {
		const char *key = buf_string(&l->json.text) ?: "";
		int part = !strcmp(key, "name")	      ? PART_NAME
			   : !strcmp(key, "category") ? PART_CAT
			   : !strcmp(key, "parent")   ? PART_SF
						      : -1;

		token = json_read_next(&l->json, err);
		if (token > 0 && part == PART_SF)
			file_reader_frame(l, token, PART_SF);
		else if (token > 0 && part >= 0)
			file_reader_text(l, token, (enum mark_part)part);
		r = token < 0 ? token : json_read_skip(&l->json, token, err);
		if (r < 0)
			return r;
	}
	l->mark.phase = PHASE_FRAME;
	return token < 0 ? token : file_add_mark(l, err);
}

static int file_read_frames(struct file_reader *l, struct error *err)
{
	int token, r;

	while ((token = json_read_next(&l->json, err)) == JSON_KEY) {
		r = file_read_frame(l, err);
		if (r < 0)
			return r;
	}
	return token < 0 ? token : 0;
}

static void file_learn_clock(struct file_reader *l, struct text members)
{
	struct value v;

	if (value_find(members, "clock-domain", &v) && v.type == VALUE_STRING)
		l->file->clock_monotonic = text_equal(v.text, TEXT("LINUX_CLOCK_MONOTONIC"));
}

/* Reads a member that the format does not define: the application's own metadata. */
static int file_read_other(struct file_reader *l, struct text key, int token, struct error *err)
{
	struct buf *members = &l->file->members;
	size_t before = members->len;
	int r = json_value_read(&l->json, token, &key, false, members, err);

	if (r < 0) {
		members->len = before;
		return r;
	}
	if (text_equal(key, TEXT("metadata")) && token == JSON_OBJECT) {
		size_t head = 1 + sizeof(uint32_t) + key.len;

		file_learn_clock(l, (struct text){ members->data + before + head,
						   (uint32_t)(members->len - before - head) });
	}
	if (members->len > MEMBERS_MAX) {
		members->len = before;
		file_leave_out(l, "a member of the file that is too long");
	}
	return 0;
}

/* Members of the format whose values are strings. */
static const char power_key[] = "powerTraceAsString", unit_key[] = "displayTimeUnit",
		  controller_key[] = "controllerTraceDataKey";

static int file_take_unit(struct trace_file *f, const char *unit)
{
	f->unit_ms = !strcmp(unit, "ms");
	f->has_unit = f->unit_ms || !strcmp(unit, "ns");
	f->unknown_unit = !f->has_unit;
	return 0;
}

static int file_take_power(struct trace_file *f, const struct buf *power)
{
	buf_clear(&f->power);
	buf_append(&f->power, power->data, power->len);
	return buf_error(&f->power);
}

static int file_take_controller(struct trace_file *f, const char *key)
{
	free(f->controller_key);
	f->controller_key = strdup(key);
	return f->controller_key ? 0 : -ENOMEM;
}

static int file_read_string(struct file_reader *l, const char *key, struct error *err)
{
	struct trace_file *f = l->file;
	const char *text;
	int token, r;

	l->json.text_max = key == power_key ? POWER_MAX : STRING_MAX;
	token = json_read_next(&l->json, err);
	l->json.text_max = STRING_MAX;
	if (token < 0)
		return token;
	if (token != JSON_STRING) {
		f->no_text = f->no_text ?: key;
		return json_read_skip(&l->json, token, err);
	}
	text = buf_string(&l->json.text) ?: "";
	r = key == power_key  ? file_take_power(f, &l->json.text)
	    : key == unit_key ? file_take_unit(f, text)
			      : file_take_controller(f, text);
	return r < 0 ? error_errno(err, r, "can't read it") : 0;
}

/* The name as it is in the list; NULL: it is not there. */
static const char *find_name(const char *key, const char *const *names)
{
	while (*names && strcmp(key, *names) != 0)
		names++;
	return *names;
}

static int file_read_top_member(struct file_reader *l, struct error *err)
{
	/* Members that hold traces in other formats. */
	static const char *const traces[] = { "systemTraceEvents", "androidProcessDump",
					      "cgroupDump", NULL };
	static const char *const strings[] = { power_key, unit_key, controller_key, NULL };
	_cleanup_free_ char *key = strdup(buf_string(&l->json.text) ?: "");
	struct trace_file *f = l->file;
	int token;

	if (!key)
		return error_errno(err, -ENOMEM, "can't read it");
	if (find_name(key, traces)) {
		f->kernel_text = true;
		l->json.keep = false;
		token = json_read_next(&l->json, err);
		l->json.keep = true;
		return token < 0 ? token : json_read_skip(&l->json, token, err);
	}
	if (find_name(key, strings))
		return file_read_string(l, find_name(key, strings), err);
	token = json_read_next(&l->json, err);
	if (token < 0)
		return token;
	if (!strcmp(key, "traceEvents") && token == JSON_ARRAY)
		return file_read_elements(l, file_read_event, err);
	if (!strcmp(key, "samples") && token == JSON_ARRAY)
		return file_read_elements(l, file_read_sample, err);
	if (!strcmp(key, "stackFrames") && token == JSON_OBJECT)
		return file_read_frames(l, err);
	return file_read_other(l, (struct text){ key, (uint32_t)strlen(key) }, token, err);
}

static int file_read_top(struct file_reader *l, struct error *err)
{
	int token = json_read_next(&l->json, err), r;

	if (token == JSON_ARRAY) {
		r = file_read_elements(l, file_read_event, err);
		/* The format allows the array to be left unclosed after its last event. */
		if (r == -ENODATA && l->json.depth == 1 && !l->in.cut) {
			error_deinit(err);
			*err = ERROR_INIT;
			return 0;
		}
	} else if (token == JSON_OBJECT) {
		while ((token = json_read_next(&l->json, err)) == JSON_KEY) {
			r = file_read_top_member(l, err);
			if (r < 0)
				return r;
		}
		r = token < 0 ? token : 0;
	} else {
		return token < 0 ? token
				 : error_set(err, -EBADMSG,
					     "neither an array of events nor an "
					     "object that has one");
	}
	if (r == 0) {
		token = json_read_next(&l->json, err);
		r = token < 0 ? token : 0;
	}
	return r;
}

static void file_reader_deinit(struct file_reader *l)
{
	gunzip_deinit(&l->in);
	json_read_deinit(&l->json);
	for (int i = 0; i < PART_PARTS; i++)
		buf_deinit(&l->part[i]);
	buf_deinit(&l->stack[0]);
	buf_deinit(&l->stack[1]);
	frame_ids_deinit(&l->frames);
}

bool trace_file_begins(const void *data, size_t len)
{
	static const char bom[] = JSON_BOM, gzip[] = "\x1f\x8b";
	const char *p = data, *end = p + len;

	if (len >= strlen(gzip) && memcmp(p, gzip, strlen(gzip)) == 0)
		return true;
	if (len >= strlen(bom) && memcmp(p, bom, strlen(bom)) == 0)
		p += strlen(bom);
	while (p < end && *p && strchr(" \t\r\n", *p))
		p++;
	return p < end && (*p == '[' || *p == '{');
}

int trace_file_read(struct trace_file *ret, int fd, uint32_t source, struct scratch *scratch,
		    struct error *err)
{
	_cleanup_(file_reader_deinit) struct file_reader l = { .file = ret, .source = source };
	_cleanup_error_ struct error why = ERROR_INIT, order = ERROR_INIT;
	int r;

	*ret = (struct trace_file){ 0 };
	r = mark_sort_new(&ret->marks, scratch, 0) ?: gunzip_init(&l.in, fd);
	if (r == 0)
		r = json_read_init(&l.json, gunzip_read, &l.in, STRING_MAX);
	if (r < 0)
		return error_errno(err, r, "can't read it");
	r = file_read_top(&l, &why);
	ret->cut = r == -ENODATA || l.in.cut;
	if (mark_sort_finish(ret->marks, &order) < 0)
		return error_move(err, &order);
	return r < 0 ? error_move(err, &why) : 0;
}

void trace_file_deinit(struct trace_file *f)
{
	mark_sort_free(f->marks);
	for (size_t i = 0; i < f->sync_count; i++)
		free(f->syncs[i].id);
	free(f->syncs);
	free(f->controller_key);
	buf_deinit(&f->members);
	buf_deinit(&f->power);
	*f = (struct trace_file){ 0 };
}
