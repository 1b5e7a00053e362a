/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/selection.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "base/event_glob.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vec.h"
#include "base/visible.h"
#include "marks/mark.h"

/* Fields of an event of the scheduler that name tasks it is about: prev_pid, next_pid or pid. */
#define ABOUT_MAX 2

struct selected_kind {
	enum { KIND_UNSEEN, KIND_LEFT_OUT, KIND_TAKEN } state;
	const struct field *about[ABOUT_MAX]; /* NULL: none */
	bool is_switch;
};

/* The last switch of a CPU before the begin. */
struct kept_switch {
	uint32_t cpu;
	bool is_known; /* no event is missing since */
	struct trace_event ev;
	struct buf data; /* of ev.rec */
};

/* The names of tasks are matched once. */
#define NAMES 256
struct matched_name {
	const struct task *task, *leader;
	bool matches;
};

struct selection {
	const struct export_selection *wanted;
	const struct trace_info *info;
	uint64_t from, to;
	bool only_times;
	struct selected_kind *kinds; /* owned; EVENT_IDS */
	struct kept_switch *kept;    /* owned; by CPU; by time once they are taken */
	size_t kept_count, kept_cap, taken;
	struct matched_name names[NAMES];
};

bool selection_is_wanted(const struct export_selection *w)
{
	return w->from.kind || w->to.kind || w->cpus || w->pid_count || w->thread_count ||
	       w->comm || w->event_count || w->filter;
}

struct selection *selection_free(struct selection *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->kept_count; i++)
		buf_deinit(&s->kept[i].data);
	free(s->kept);
	free(s->kinds);
	free(s);
	return NULL;
}

int selection_new(struct selection **ret, const struct export_selection *wanted,
		  const struct trace_info *info, uint64_t from, uint64_t to, struct error *err)
{
	const struct event_filter *filter = wanted->filter;
	_cleanup_(selection_freep) struct selection *s = calloc(1, sizeof(*s));
	int r;

	if (s)
		s->kinds = calloc(EVENT_IDS, sizeof(*s->kinds));
	if (!s || !s->kinds)
		return error_errno(err, -ENOMEM, "can't begin the export");
	s->wanted = wanted;
	s->info = info;
	s->from = from;
	s->to = to;
	r = filter ? filter->begin(filter->userdata, info, err) : 0;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

void selection_only_times(struct selection *s)
{
	s->only_times = true;
}

bool selection_has_time(const struct selection *s, uint64_t ts)
{
	return !s || (ts >= s->from && ts < s->to);
}

bool selection_has_cpu(const struct selection *s, uint32_t cpu)
{
	return !s || !s->wanted->cpus || cpu_set_has(s->wanted->cpus, cpu);
}

uint64_t selection_from(const struct selection *s)
{
	return s->from;
}

uint64_t selection_to(const struct selection *s)
{
	return s->to;
}

static bool selection_has_pid(const int32_t *pids, size_t count, int32_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static bool selection_has_name(struct selection *s, const struct task *task,
			       const struct task *leader)
{
	struct matched_name *n = &s->names[((uintptr_t)task >> 6) % NAMES];
	const char *glob = s->wanted->comm;

	if (!task)
		return false;
	if (n->task != task || n->leader != leader)
		*n = (struct matched_name){ task, leader,
					    !fnmatch(glob, task->comm, 0) ||
						    (leader && !fnmatch(glob, leader->comm, 0)) };
	return n->matches;
}

bool selection_wants_tasks(const struct export_selection *w)
{
	return w->pid_count || w->thread_count || w->comm || (w->filter && w->filter->wants_tasks);
}

static bool selection_has_tid(const struct export_selection *w, int32_t tid)
{
	return (!w->pid_count && !w->thread_count) ||
	       selection_has_pid(w->threads, w->thread_count, tid) ||
	       selection_has_pid(w->pids, w->pid_count, tid);
}

bool selection_has_task(struct selection *s, int32_t tid, uint64_t ts)
{
	const struct export_selection *w = s ? s->wanted : NULL;
	struct task_table *tasks;
	const struct task *task;
	int32_t tgid;

	if (!s || (selection_has_tid(w, tid) && !w->comm))
		return true;
	tasks = s->info->tasks;
	task = tid > 0 ? task_table_find(tasks, tid, ts) : NULL;
	tgid = task ? task->tgid : 0;
	if (!selection_has_tid(w, tid) &&
	    (tgid <= 0 || !selection_has_pid(w->pids, w->pid_count, tgid)))
		return false;
	return !w->comm ||
	       selection_has_name(
		       s, task, tgid > 0 && tgid != tid ? task_table_find(tasks, tgid, ts) : NULL);
}

static bool selection_wants_event(const struct export_selection *w, const struct event *desc)
{
	for (size_t i = 0; i < w->event_count; i++)
		if (desc && event_glob_has(w->events[i], desc->system, desc->name))
			return true;
	return !w->event_count;
}

static struct selected_kind *selection_learn_kind(struct selection *s, uint16_t id)
{
	static const char *const names[] = { "prev_pid", "next_pid", "pid" };
	const struct event *desc = event_table_find(s->info->events, id);
	struct selected_kind *k = &s->kinds[id];
	size_t count = 0;

	k->state = selection_wants_event(s->wanted, desc) ? KIND_TAKEN : KIND_LEFT_OUT;
	if (!desc || strcmp(desc->system, "sched") != 0)
		return k;
	k->is_switch = !strcmp(desc->name, "sched_switch");
	for (size_t i = 0; i < ARRAY_SIZE(names) && count < ABOUT_MAX; i++) {
		const struct field *f = event_field(desc, names[i]);

		if (f && !f->is_array && !f->is_dynamic && is_number_size(f->size))
			k->about[count++] = f;
	}
	return k;
}

static struct selected_kind *selection_kind(struct selection *s, uint16_t id)
{
	struct selected_kind *k = &s->kinds[id];

	return likely(k->state != KIND_UNSEEN) ? k : selection_learn_kind(s, id);
}

static bool selection_is_about(struct selection *s, const struct selected_kind *k,
			       const struct trace_event *ev)
{
	uint64_t tid;

	if (selection_has_task(s, ev->pid, ev->rec.ts))
		return true;
	for (size_t i = 0; i < ABOUT_MAX && k->about[i]; i++)
		if (record_read_uint(s->info->events, &ev->rec, k->about[i]->offset,
				     k->about[i]->size, &tid) &&
		    selection_has_task(s, (int32_t)tid, ev->rec.ts))
			return true;
	return false;
}

bool selection_has_all_kinds(const struct selection *s)
{
	const struct export_selection *w = s ? s->wanted : NULL;

	return !w || (!w->cpus && !w->pid_count && !w->thread_count && !w->comm &&
		      !w->event_count && !w->filter);
}

bool selection_knows_kind(const struct selection *s)
{
	if (!s || !s->wanted->event_count)
		return true;
	for (uint32_t id = 0; id < EVENT_IDS; id++)
		if (selection_wants_event(s->wanted,
					  event_table_find(s->info->events, (uint16_t)id)))
			return true;
	return false;
}

bool selection_has_kind(struct selection *s, const struct trace_event *ev)
{
	const struct event_filter *filter = s->wanted->filter;
	const struct selected_kind *k;

	if (!selection_has_cpu(s, ev->cpu))
		return false;
	k = selection_kind(s, ev->id);
	return k->state == KIND_TAKEN && selection_is_about(s, k, ev) &&
	       (!filter || filter->takes(filter->userdata, ev));
}

bool selection_has_event(struct selection *s, const struct trace_event *ev)
{
	return selection_has_time(s, ev->rec.ts) && (s->only_times || selection_has_kind(s, ev));
}

bool selection_has_loss(const struct selection *s, struct merge_item *item)
{
	if ((!s->only_times && !selection_has_cpu(s, item->event.cpu)) ||
	    item->before_ts >= s->to || item->after_ts < s->from)
		return false;
	if (item->before_ts < s->from)
		item->before_ts = 0;
	if (item->after_ts >= s->to)
		item->after_ts = UINT64_MAX;
	return true;
}

bool selection_has_mark(struct selection *s, const struct mark *mark, bool overlap)
{
	uint64_t dur = mark->has & HAS_DUR ? mark->dur : 0;

	/* Frames and metadata. */
	if (!mark->ts)
		return true;
	if (mark->ts >= s->to || (mark->ts < s->from && !(overlap && dur > s->from - mark->ts)))
		return false;
	return mark->phase == PHASE_POLLED ||
	       selection_has_task(s, mark->tid ?: mark->pid, mark->ts);
}

/* The index of the CPU's, or where it would be. */
static size_t selection_kept_at(const struct selection *s, uint32_t cpu)
{
	return lower_bound(i, s->kept_count, s->kept[i].cpu < cpu);
}

static struct kept_switch *selection_kept(struct selection *s, uint32_t cpu)
{
	size_t at = selection_kept_at(s, cpu);
	struct kept_switch *k = at < s->kept_count ? &s->kept[at] : NULL;

	if (k && k->cpu == cpu)
		return k;
	k = vec_insert(s->kept, s->kept_count, s->kept_cap, at);
	if (k)
		*k = (struct kept_switch){ .cpu = cpu, .data = BUF_INIT };
	return k;
}

int selection_keep_state(struct selection *s, const struct trace_event *ev)
{
	struct kept_switch *k;

	if (!selection_kind(s, ev->id)->is_switch)
		return 0;
	k = selection_kept(s, ev->cpu);
	if (!k)
		return -ENOMEM;
	k->is_known = selection_has_kind(s, ev);
	buf_clear(&k->data);
	buf_append(&k->data, ev->rec.data, ev->rec.len);
	k->ev = *ev;
	return buf_error(&k->data);
}

void selection_lose_state(struct selection *s, uint32_t cpu)
{
	size_t at = selection_kept_at(s, cpu);

	if (at < s->kept_count && s->kept[at].cpu == cpu)
		s->kept[at].is_known = false;
}

static int kept_switch_by_time(const void *a, const void *b)
{
	const struct kept_switch *x = a, *y = b;

	if (x->ev.rec.ts != y->ev.rec.ts)
		return x->ev.rec.ts < y->ev.rec.ts ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

struct trace_event *selection_take_state(struct selection *s)
{
	if (!s->taken && s->kept_count)
		qsort(s->kept, s->kept_count, sizeof(*s->kept), kept_switch_by_time);
	while (s->taken < s->kept_count) {
		struct kept_switch *k = &s->kept[s->taken++];

		k->ev.rec.data = (const uint8_t *)k->data.data;
		if (k->is_known)
			return &k->ev;
	}
	return NULL;
}

static void selection_put_word(struct buf *out, const char *what, const char *word)
{
	buf_printf(out, "%s%s ", out->len ? ", " : "", what);
	buf_visible(out, word, VISIBLE_MAX);
}

static void selection_put_ids(struct buf *out, const char *what, const int32_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s%" PRId32,
			   i	      ? " or "
			   : out->len ? ", "
				      : "",
			   i ? "" : what, ids[i]);
}

static void selection_put_time(const struct selection *s, struct buf *out, const char *what,
			       uint64_t ts)
{
	if (trace_clock_counts(s->info->header->trace_clock))
		buf_printf(out, "%s%s %" PRIu64, out->len ? ", " : "", what, ts);
	else
		buf_printf(out, "%s%s %" PRIu64 ".%09" PRIu64, out->len ? ", " : "", what,
			   ts / NSEC_PER_SEC, ts % NSEC_PER_SEC);
}

void selection_describe(const struct selection *s, struct buf *out)
{
	const struct export_selection *w = s->wanted;

	if (s->from || w->from.kind)
		selection_put_time(s, out, "from", s->from);
	if (s->to != UINT64_MAX)
		selection_put_time(s, out, "to", s->to);
	if (w->cpus) {
		buf_puts(out, out->len ? ", CPUs " : "CPUs ");
		cpu_set_format(w->cpus, out);
	}
	selection_put_ids(out, "process ", w->pids, w->pid_count);
	selection_put_ids(out, "thread ", w->threads, w->thread_count);
	if (w->comm)
		selection_put_word(out, "name", w->comm);
	for (size_t i = 0; i < w->event_count; i++)
		selection_put_word(out, i ? "or" : "events", w->events[i]);
	if (w->filter)
		selection_put_word(out, "filter", w->filter->text);
}
