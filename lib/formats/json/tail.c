/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/tail.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/secret_hash.h"
#include "export/mark_feed.h"
#include "formats/json/other_data.h"
#include "marks/value_json.h"
#include "trace/host_numbers.h"

/* Readers sort in ascending order, default 0. Perfetto reads 32 bits. */
#define SORT_KTHREADS 1000000
#define SORT_IDLE INT32_MAX
#define NAMES_MEMORY (4U << 20)
#define HOST_NAME_MAX_BYTES 128

/* Opens {"name":..,"ph":"M",..,"args":{ -- the caller closes it by "}}". Metadata has no time. */
static void tail_open_meta(struct buf *b, const char *name, int32_t pid, int32_t tid)
{
	json_put_comma(b);
	buf_puts(b, "\n{\"name\":\"");
	buf_puts(b, name);
	buf_printf(b, "\",\"ph\":\"M\",\"cat\":\"__metadata\",\"pid\":%d,\"tid\":%d,\"args\":{",
		   pid, tid);
}

static void tail_put_meta_string(struct buf *b, const char *name, int32_t pid, int32_t tid,
				 const char *value)
{
	tail_open_meta(b, name, pid, tid);
	json_put_string_key(b, "name", value);
	buf_puts(b, "}}");
}

static void tail_put_meta_sort(struct buf *b, int32_t pid, int32_t index)
{
	tail_open_meta(b, "process_sort_index", pid, pid);
	json_put_i64_key(b, "sort_index", index);
	buf_puts(b, "}}");
}

/* Viewers know a thread only by its tid: use its last life that has an event. */
static bool tail_names_its_tid(struct task *const *all, size_t count, size_t i)
{
	if (!all[i]->seen)
		return false;
	for (size_t j = i + 1; j < count && all[j]->tid == all[i]->tid; j++)
		if (all[j]->seen)
			return false;
	return true;
}

static int32_t tail_process_of(const struct task *t)
{
	return t->tgid ?: t->tid;
}

static int tail_by_number(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

/* The name begins with the machine's; the label has the pid on that machine. */
static void tail_put_host_process(struct buf *b, const struct host_numbers *host, int32_t pid,
				  const char *comm)
{
	char name[HOST_NAME_MAX_BYTES];
	int32_t moved = host_pid(host, pid);

	snprintf(name, sizeof(name), "%s: %s", host->label, comm);
	tail_put_meta_string(b, "process_name", moved, moved, name);
	tail_open_meta(b, "process_labels", moved, moved);
	snprintf(name, sizeof(name), "pid %d", pid);
	json_put_string_key(b, "labels", name);
	buf_puts(b, "}}");
}

static void tail_put_process(struct buf *b, const struct trace_info *info, int32_t pid)
{
	const struct task *t = task_table_find(info->tasks, pid, UINT64_MAX);
	char number[32];
	const char *comm = t && t->comm[0] ? t->comm : number;

	snprintf(number, sizeof(number), "process %d", pid);
	if (info->host)
		tail_put_host_process(b, info->host, pid, comm);
	else
		tail_put_meta_string(b, "process_name", pid, pid, comm);
	if (t && t->kthread)
		tail_put_meta_sort(b, host_pid(info->host, pid), SORT_KTHREADS);
}

static void tail_put_thread(struct buf *b, const struct trace_info *info, const struct task *t)
{
	tail_put_meta_string(b, "thread_name", host_pid(info->host, tail_process_of(t)),
			     host_pid(info->host, t->tid), t->comm[0] ? t->comm : "<...>");
}

DEFINE_TABLE(json_pids, int32_t, int32_t, *slot != 0, hash_u32((uint32_t)*slot), *slot == key);

/* Names the process, once. Process 0 is described at the begin. */
static int tail_add_process(struct json_tail *t, int32_t pid)
{
	int32_t *slot = pid ? json_pids_place(&t->processes, hash_u32((uint32_t)pid), pid) : NULL;

	if (pid && !slot)
		return -ENOMEM;
	if (!slot || *slot)
		return 0;
	*slot = pid;
	t->processes.count++;
	tail_put_process(&t->out->buf, t->info, pid);
	return 0;
}

/* Trace Viewer puts the interrupts of all CPUs into process 0. */
void json_put_process_0(struct buf *b)
{
	buf_puts(b, JSON_FIRST_EVENT);
	tail_put_meta_sort(b, 0, SORT_IDLE);
	tail_put_meta_string(b, "thread_name", 0, 0, "idle");
}

/* A machine's own process for what has none: polled files, samples of idle CPUs. */
static void tail_put_host(struct buf *b, const struct host_numbers *host)
{
	int32_t pid = host_pid(host, 0);

	tail_put_meta_string(b, "process_name", pid, pid, host->label);
	tail_put_meta_sort(b, pid, SORT_KTHREADS);
	tail_put_meta_string(b, "thread_name", pid, pid, "idle");
}

static int tail_put_names(struct json_tail *t)
{
	_cleanup_free_ int32_t *processes = NULL;
	const struct trace_info *info = t->info;
	struct output *out = t->out;
	struct buf *b = &out->buf;
	struct task *const *all;
	size_t count, n = 0;
	int r;

	all = task_table_all(info->tasks, &count);
	processes = calloc(count + 1, sizeof(*processes));
	if (!all || !processes)
		return -ENOMEM;
	json_functions_name_idle(t->parts.functions, b);
	for (size_t i = 0; i < count; i++) {
		if (!tail_names_its_tid(all, count, i))
			continue;
		processes[n++] = tail_process_of(all[i]);
		tail_put_thread(b, info, all[i]);
		r = output_settle(out);
		if (r < 0)
			return r;
	}
	qsort(processes, n, sizeof(*processes), tail_by_number);
	for (size_t i = 0; i < n; i++) {
		if (i && processes[i] == processes[i - 1])
			continue;
		r = tail_add_process(t, processes[i]) ?: output_settle(out);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Counterpart of a sync mark in the text. Text and events share one clock, so issue and receipt of
 * the recorder's own sync are the time shown in the text.
 */
static void tail_put_clock_sync(struct buf *b, const char *id, uint64_t issue_ts, uint64_t ts)
{
	json_put_comma(b);
	buf_printf(b,
		   "\n{\"name\":\"clock_sync\",\"ph\":\"c\",\"cat\":\"__metadata\",\"pid\":0,"
		   "\"tid\":0,\"ts\":%" PRIu64 ",\"args\":{\"sync_id\":\"%s\",\"issue_ts\":%" PRIu64
		   "}}",
		   (ts + 500) / 1000, id, (issue_ts + 500) / 1000);
}

/* Rounds ns up to whole microseconds, in ns. */
static uint64_t tail_whole_us(uint64_t ns)
{
	return (ns + 999) / 1000 * 1000;
}

/*
 * Counterpart of another sync mark in the kernel's text: from the merged file's event with this id,
 * or from the recorder's note. Text and events share one clock, so the mark's time is the middle:
 * its distance from either end is that of the two readings.
 */
static void tail_put_other_syncs(struct buf *b, const struct json_tail *t)
{
	size_t count = 0;
	const struct mark_sync *syncs = t->marks ? mark_feed_syncs(t->marks, &count) : NULL;

	for (size_t i = 0; i < t->sync->other_count; i++) {
		const struct other_sync *o = &t->sync->others[i];
		const Traced__Capture__Clocks *noted = json_find_noted(t->info, o->id);
		uint64_t apart =
			noted ? tail_whole_us(noted->sync_after_ns - noted->sync_before_ns) : 0;
		uint64_t ts = o->ts, issue = o->ts;

		if (noted && noted->sync_after_ns > noted->sync_before_ns && apart < ts) {
			ts += apart;
			issue -= apart;
		}
		for (size_t j = 0; j < count; j++) {
			if (strcmp(syncs[j].id, o->id) != 0)
				continue;
			ts = syncs[j].ts;
			issue = syncs[j].issue_ts ?: ts;
			break;
		}
		tail_put_clock_sync(b, o->id, issue, ts);
	}
}

static bool tail_has_sync(const struct json_tail *t, const struct mark_sync *syncs, size_t i)
{
	if (strcmp(syncs[i].id, t->info->sync_id) == 0)
		return true;
	for (size_t j = 0; j < t->sync->other_count; j++)
		if (strcmp(syncs[i].id, t->sync->others[j].id) == 0)
			return true;
	for (size_t j = 0; j < i; j++)
		if (strcmp(syncs[i].id, syncs[j].id) == 0)
			return true;
	return false;
}

/*
 * Applications' syncs without a mark in the kernel's text: their partners may be in other parts of
 * the trace. Readers take each id once.
 */
static void tail_put_unpaired_syncs(struct buf *b, const struct json_tail *t)
{
	size_t count = 0;
	const struct mark_sync *syncs = t->marks ? mark_feed_syncs(t->marks, &count) : NULL;

	for (size_t i = 0; i < count; i++) {
		if (tail_has_sync(t, syncs, i))
			continue;
		json_put_comma(b);
		buf_puts(b, "\n{\"name\":\"clock_sync\",\"ph\":\"c\",\"cat\":\"__metadata\","
			    "\"pid\":0,\"tid\":0,\"ts\":");
		json_put_us(b, syncs[i].ts);
		buf_puts(b, ",\"args\":{");
		json_put_string_key(b, "sync_id", syncs[i].id);
		if (syncs[i].issue_ts) {
			json_put_key(b, "issue_ts");
			json_put_us(b, syncs[i].issue_ts);
		}
		buf_puts(b, "}}");
	}
}

static void tail_begin_events(struct json_tail *t)
{
	buf_puts(&t->out->buf, t->array		      ? "["
			       : t->first && !t->page ? "{\"traceEvents\":["
						      : ",\n\"traceEvents\":[");
	if (t->info->host)
		tail_put_host(&t->out->buf, t->info->host);
	else
		json_put_process_0(&t->out->buf);
}

/* After the last kernel event: writes the names of its tasks and the spool. */
static int tail_end_events(struct json_tail *t)
{
	int r = tail_put_names(t);

	/* Names from earlier files, or from marks that came early. */
	buf_append(&t->out->buf, t->names.data, t->names.len);
	return r < 0 || t->first ? r : json_spool_write(t->parts.spool, t->out);
}

/* After the last mark. */
static int tail_end_marks(struct json_tail *t)
{
	struct buf *b = &t->out->buf;
	int r;

	/* An import fails on a sync without a partner, and the text of several machines has none.
	 */
	if (!t->array && !t->info->host) {
		if (t->sync->seen)
			tail_put_clock_sync(b, t->info->sync_id, t->sync->ts, t->sync->ts);
		tail_put_other_syncs(b, t);
		tail_put_unpaired_syncs(b, t);
	}
	if (!t->first || t->array || t->page) {
		buf_puts(b, "]");
		return 0;
	}
	buf_puts(b, JSON_TEXT_BEHIND);
	r = json_spool_write(t->parts.spool, t->out);
	buf_puts(b, "\"");
	return r;
}

/* Closes the current member and opens that section's. There are always events. */
static int tail_enter(struct json_tail *t, enum tail_section section)
{
	struct buf *b = &t->out->buf;
	int r = 0;

	if (t->section == TAIL_NOTHING) {
		tail_begin_events(t);
		t->section = TAIL_EVENTS;
	}
	if (t->section == TAIL_EVENTS && section > TAIL_EVENTS) {
		r = tail_end_events(t);
		t->section = TAIL_MARKS;
	}
	if (t->section >= section || r < 0)
		return r;
	if (t->section == TAIL_SAMPLES)
		buf_puts(b, "]");
	else
		r = tail_end_marks(t);
	if (section == TAIL_SAMPLES)
		buf_puts(b, ",\n\"samples\":[");
	t->section = section;
	return r;
}

void json_tail_init(struct json_tail *t, const struct sink_env *env, const struct clock_sync *sync,
		    const struct json_parts *parts, bool array, bool page)
{
	*t = (struct json_tail){
		.out = env->out,
		.info = env->info,
		.marks = env->marks,
		.sync = sync,
		.parts = *parts,
		.array = array,
		.page = page,
		.options = env->options,
		.written.frames.host = env->info->host,
	};
}

void json_tail_events_first(struct json_tail *t)
{
	t->first = true;
	tail_enter(t, TAIL_EVENTS);
}

void json_tail_restart(struct json_tail *t, const struct json_parts *parts)
{
	t->parts = *parts;
	t->section = TAIL_NOTHING;
	t->last_tid = 0;
	TABLE_CLEAR(&t->processes);
}

void json_tail_deinit(struct json_tail *t)
{
	json_marks_deinit(&t->written);
	buf_deinit(&t->names);
	TABLE_DEINIT(&t->processes);
}

/* Appends a mark; one that nobody would show is only counted. 0 or -ENOMEM. */
static int tail_put_mark(struct json_tail *t, struct buf *to, const struct mark *mark)
{
	uint64_t refused = t->written.refused;
	int r = json_put_mark(&t->written, to, mark);

	t->left_out += r == 0 && t->written.refused == refused;
	return r == -ENOSPC ? 0 : MIN(r, 0);
}

/*
 * Names a task without kernel events before its first mark. An application's own name follows: the
 * last name counts.
 */
static int tail_name_task(struct json_tail *t, const struct mark *mark)
{
	struct task *task;

	if (mark->tid == t->last_tid)
		return 0;
	t->last_tid = mark->tid;
	task = task_table_find(t->info->tasks, mark->tid, mark->ts ?: UINT64_MAX);
	if (!task || task->seen || !task->tid)
		return 0;
	task->seen = true;
	tail_put_thread(&t->out->buf, t->info, task);
	return tail_add_process(t, tail_process_of(task));
}

/* In the array form: drops the stacks, since frames have no place there. */
static const struct mark *fit(const struct json_tail *t, const struct mark *mark, struct mark *to)
{
	if (!t->array)
		return mark;
	*to = *mark;
	to->part[PART_SF] = to->part[PART_ESF] = (struct text){ 0 };
	return to;
}

int json_tail_early_mark(struct json_tail *t, const struct mark *mark, uint64_t *units)
{
	struct mark fitted;
	bool name = mark->phase == PHASE_METADATA && t->names.len < NAMES_MEMORY;
	struct task *task;
	struct buf *to;
	size_t start;
	int r;

	if (mark->phase == PHASE_FRAME)
		return tail_put_mark(t, &t->out->buf, mark);
	/* Mark the task as seen: it is named with the others. */
	if (mark->tid != t->last_tid) {
		task = task_table_find(t->info->tasks, mark->tid, mark->ts ?: UINT64_MAX);
		if (task && task->tid)
			task->seen = true;
		t->last_tid = mark->tid;
	}
	mark = fit(t, mark, &fitted);
	to = name ? &t->names : t->first ? &t->out->buf : json_spool_buf(t->parts.spool);
	start = to->len;
	r = tail_put_mark(t, to, mark);
	*units += to == &t->out->buf ? to->len - start : 0;
	return r ?: buf_error(&t->names)
		       ?: (t->first ? output_settle(t->out) : json_spool_settle(t->parts.spool));
}

int json_tail_mark(struct json_tail *t, const struct mark *mark)
{
	bool sample = mark->phase == PHASE_GLOBAL_SAMPLE;
	struct mark fitted;
	size_t start;
	int r;

	if (mark->phase == PHASE_FRAME)
		return tail_put_mark(t, &t->out->buf, mark);
	t->left_out += sample && t->array;
	if (sample && t->array)
		return 0;
	mark = fit(t, mark, &fitted);
	r = tail_enter(t, sample ? TAIL_SAMPLES : TAIL_MARKS);
	if (r >= 0 && !sample)
		r = tail_name_task(t, mark);
	if (r < 0)
		return r;
	start = t->out->buf.len;
	r = tail_put_mark(t, &t->out->buf, mark);
	if (mark->phase == PHASE_METADATA && t->names.len < NAMES_MEMORY)
		buf_append(&t->names, t->out->buf.data + start, t->out->buf.len - start);
	return r ?: output_settle(t->out);
}

int json_tail_close(struct json_tail *t, const struct export_result *result)
{
	const struct trace_info *info = t->info;
	struct buf *b = &t->out->buf;
	const char *key = t->marks ? mark_feed_controller_key(t->marks) : NULL;
	struct text power = t->marks ? mark_feed_power(t->marks) : (struct text){ 0 };
	int r = tail_enter(t, TAIL_END);

	if (r < 0 || t->array)
		return r;
	r = json_frames_put(&t->written.frames, b);
	if (r < 0)
		return r;
	buf_printf(b, ",\n\"displayTimeUnit\":\"%s\"",
		   t->marks && mark_feed_unit_ms(t->marks) ? "ms" : "ns");
	if (key)
		json_put_string_key(b, "controllerTraceDataKey", key);
	if (power.len) {
		buf_puts(b, ",\n\"powerTraceAsString\":");
		json_put_text(b, power);
	}
	buf_puts(b, ",\n\"metadata\":{");
	/*
	 * The sync mark was lost or never existed: declare the domain that Trace Viewer gives to
	 * kernel text. Declaring it in addition to a sync fails the import.
	 */
	if (!t->sync->seen && !t->sync->other_count)
		buf_puts(b, "\"clock-domain\":\"LINUX_FTRACE_GLOBAL\"");
	buf_puts(b, "},\n\"otherData\":{");
	json_put_other_data(b, info, t->marks, t->sync, result);
	if (t->page && t->options->tables) {
		json_put_key(b, "report");
		buf_append(b, t->options->tables, t->options->tables_len);
	}
	buf_puts(b, "}");
	return output_settle(t->out);
}
