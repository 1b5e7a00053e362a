/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/task_scan.h"

#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "trace/merge.h"

#define ORIGIN_SAVED_CMDLINES 1

/* Trace clocks that clock_gettime() has too. */
static const struct {
	const char *trace_clock;
	clockid_t id;
} posix_clocks[] = {
	{ "mono", CLOCK_MONOTONIC },
	{ "mono_raw", CLOCK_MONOTONIC_RAW },
	{ "tai", CLOCK_TAI },
};

/* The clock's reading nearest to boot_ns. */
static const Traced__Capture__ClockReading *nearest_reading(const struct trace_info *info,
							    uint32_t clock, uint64_t boot_ns)
{
	const Traced__Capture__ClockReading *best = NULL;
	uint64_t best_distance = UINT64_MAX;

	for (size_t i = 0; i < info->clock_count; i++) {
		for (size_t j = 0; j < info->clocks[i]->n_readings; j++) {
			const Traced__Capture__ClockReading *r = info->clocks[i]->readings[j];
			uint64_t at = r->boot_before_ns;
			uint64_t distance = at > boot_ns ? at - boot_ns : boot_ns - at;

			if (r->clock == clock && distance < best_distance) {
				best = r;
				best_distance = distance;
			}
		}
	}
	return best;
}

/* Converts a CLOCK_BOOTTIME time to the trace clock. 0: the stream does not relate the two. */
static uint64_t trace_ts_of_boot(const struct trace_info *info, uint64_t boot_ns)
{
	const char *clock = info->header->trace_clock;

	if (!boot_ns || strcmp(clock, "boot") == 0)
		return boot_ns;
	for (size_t i = 0; i < ARRAY_SIZE(posix_clocks); i++) {
		const Traced__Capture__ClockReading *r;

		if (strcmp(clock, posix_clocks[i].trace_clock) != 0)
			continue;
		r = nearest_reading(info, (uint32_t)posix_clocks[i].id, boot_ns);
		return r ? boot_ns + r->value_ns -
				       (r->boot_before_ns +
					(r->boot_after_ns - r->boot_before_ns) / 2)
			 : 0;
	}
	return 0;
}

/* Reads a string field of a record. The length excludes the terminator. */
static const char *string_field(const struct trace_info *info, const struct field *f,
				const struct record *rec, size_t *ret_len)
{
	uint32_t offset = f->offset, size = f->size, loc;

	if (f->is_dynamic || f->is_relative) {
		if (offset > rec->len || rec->len - offset < 4)
			return NULL;
		loc = load_u32(rec->data + offset, info->header->big_endian);
		offset = (loc & 0xffff) + (f->is_relative ? offset + 4 : 0);
		size = loc >> 16;
	}
	if (offset > rec->len || size > rec->len - offset)
		return NULL;
	*ret_len = strnlen((const char *)rec->data + offset, size);
	return (const char *)rec->data + offset;
}

static bool uint_field(const struct trace_info *info, const struct field *f,
		       const struct record *rec, uint64_t *ret)
{
	return f && record_read_uint(info->events, rec, f->offset, f->size, ret);
}

static int32_t common_pid(const struct trace_info *info, const struct record *rec)
{
	uint64_t pid = 0;

	record_read_uint(info->events, rec, event_table_common(info->events)->pid_offset, 4, &pid);
	return (int32_t)pid;
}

static uint16_t event_id(const struct trace_info *info, const struct record *rec)
{
	return rec->len < 2 ? 0 : load_u16(rec->data, info->header->big_endian);
}

/*
 * procfs appends a worker's current work to its name ("kworker/0:1-events"), and gives a kernel
 * thread's full name. A rescuer's own name contains a dash ("kworker/R-kblockd"). Returns the
 * length without the work.
 */
static size_t kthread_name_len(const char *comm, size_t len)
{
	static const char worker[] = "kworker/";
	size_t n = sizeof(worker) - 1;

	if (len > n && memcmp(comm, worker, n) == 0 && comm[n] != 'R') {
		while (n < len && comm[n] != '-' && comm[n] != '+')
			n++;
		len = n;
	}
	return len;
}

struct scan {
	struct stream_index *index;
	const struct event *newtask, *rename, *release;
	const struct field *birth_pid, *birth_comm, *birth_flags;
	const struct field *rename_pid, *rename_comm, *rename_before;
	const struct field *release_pid, *release_comm;
	size_t comm_max; /* bytes without the terminator */
	bool boot_clock;
};

static void scan_init(struct scan *s, struct stream_index *index)
{
	const struct event_table *t = index->info.events;

	*s = (struct scan){
		.index = index,
		.newtask = event_table_find_name(t, "task", "task_newtask"),
		.rename = event_table_find_name(t, "task", "task_rename"),
		.release = event_table_find_name(t, "sched", "sched_process_free"),
		.comm_max = 15,
		.boot_clock = strcmp(index->info.header->trace_clock, "boot") == 0,
	};
	s->birth_pid = event_field(s->newtask, "pid");
	s->birth_comm = event_field(s->newtask, "comm");
	s->birth_flags = event_field(s->newtask, "clone_flags");
	/* Without a pid (Linux 6.14 omitted it for a while) a task renames itself. */
	s->rename_pid = event_field(s->rename, "pid");
	s->rename_comm = event_field(s->rename, "newcomm");
	s->rename_before = event_field(s->rename, "oldcomm");
	s->release_pid = event_field(s->release, "pid");
	s->release_comm = event_field(s->release, "comm");
	if (s->birth_comm && !s->birth_comm->is_dynamic && s->birth_comm->size > 1)
		s->comm_max = s->birth_comm->size - 1;
}

static int scan_apply_reading(struct scan *s, const Traced__Capture__Tasks *tasks, uint64_t ts)
{
	const struct trace_info *info = &s->index->info;

	for (size_t i = 0; i < tasks->n_tasks; i++) {
		const Traced__Capture__Task *t = tasks->tasks[i];
		const char *comm = (const char *)t->comm.data;
		struct task_reading r = {
			.tid = t->tid,
			.tgid = t->tgid,
			.ppid = t->ppid,
			.ts = ts,
			.start_ns = t->start_ns,
			.start_ts = trace_ts_of_boot(info, t->start_ns),
			.uid = t->uid,
			.kthread = t->kthread,
			.weak = tasks->origin == ORIGIN_SAVED_CMDLINES,
			.comm = comm,
			.comm_len = t->comm.len,
			.cmdline = (const char *)t->cmdline.data,
			.cmdline_len = t->cmdline.len,
		};
		int rc;

		if (t->kthread && comm) {
			size_t len = kthread_name_len(comm, t->comm.len);

			/* The kernel's trace has the short name. */
			r.comm_len = MIN(len, s->comm_max);
			/* Kernel threads have no command line: it can hold the whole name. */
			if (len > s->comm_max) {
				r.cmdline = comm;
				r.cmdline_len = len;
			}
		}
		/* The idle tasks of all CPUs have tid 0: text/line.c names them. */
		rc = t->tid > 0 ? task_table_read(info->tasks, &r) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int scan_apply_event(struct scan *s, const struct record *rec)
{
	const struct trace_info *info = &s->index->info;
	uint16_t id = event_id(info, rec);
	const char *comm, *before;
	uint64_t pid, flags = 0;
	size_t len, before_len = 0;

	if (s->newtask && id == s->newtask->id && s->birth_comm &&
	    uint_field(info, s->birth_pid, rec, &pid)) {
		comm = string_field(info, s->birth_comm, rec, &len);
		uint_field(info, s->birth_flags, rec, &flags);
		return task_table_birth(info->tasks,
					&(struct task_birth){
						.tid = (int32_t)pid,
						.creator = common_pid(info, rec),
						.ts = rec->ts,
						.start_ns = s->boot_clock ? rec->ts : 0,
						.clone_flags = flags,
						.comm = comm,
						.comm_len = comm ? len : 0,
					});
	}
	if (s->rename && id == s->rename->id && s->rename_comm) {
		before = s->rename_before ? string_field(info, s->rename_before, rec, &before_len)
					  : NULL;
		comm = string_field(info, s->rename_comm, rec, &len);
		if (!uint_field(info, s->rename_pid, rec, &pid))
			pid = (uint32_t)common_pid(info, rec);
		if (comm)
			return task_table_rename(info->tasks, (int32_t)pid, rec->ts, before,
						 before ? before_len : 0, comm, len);
	}
	if (s->release && id == s->release->id && uint_field(info, s->release_pid, rec, &pid)) {
		comm = s->release_comm ? string_field(info, s->release_comm, rec, &len) : NULL;
		return task_table_death(info->tasks, (int32_t)pid, rec->ts, comm, comm ? len : 0);
	}
	return 0;
}

struct task_feed {
	struct scan scan;
	struct merge *merge;
	bool begun;   /* a reading was applied */
	bool damaged; /* and the warning was given */
};

/*
 * The time at which a reading applies. If its clock is unrelated to the trace clock, the first
 * reading comes before all events and the others after them.
 */
static uint64_t reading_turn(const struct task_feed *f, const Traced__Capture__Tasks *tasks)
{
	uint64_t ts = trace_ts_of_boot(&f->scan.index->info, tasks->boot_ns);

	return ts ?: f->begun ? UINT64_MAX : 0;
}

int task_feed_new(struct task_feed **ret, struct stream_index *index,
		  const struct stream_reader *reader, struct error *err)
{
	_cleanup_(task_feed_freep) struct task_feed *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return error_errno(err, -ENOMEM, "can't store the names of tasks");
	scan_init(&f->scan, index);
	r = merge_new(&f->merge, &index->info.tasks_layout, &index->rings[BUFFER_TASKS], reader,
		      err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(f);
	return 0;
}

struct task_feed *task_feed_free(struct task_feed *f)
{
	if (!f)
		return NULL;
	merge_free(f->merge);
	free(f);
	return NULL;
}

/* Events are complete; some task names may be missing. Warns once. */
static int warn_of_damage(struct task_feed *f)
{
	struct stream_index *index = f->scan.index;

	if (f->damaged)
		return 0;
	f->damaged = index->incomplete = true;
	return stream_index_warn(index, "some records of tasks' births and names are damaged: "
					"names may be missing");
}

int task_feed_advance(struct task_feed *f, struct error *err)
{
	struct stream_index *index = f->scan.index;
	struct trace_info *info = &index->info;
	struct merge_item item;
	size_t i = 0;
	int kind, r = merge_extend(f->merge, index->ripe, err);

	if (r < 0)
		return r;
	do {
		kind = merge_next(f->merge, &item, err);
		if (kind < 0)
			return kind;
		if (kind == MERGE_LOSS) {
			r = item.damaged ? warn_of_damage(f) : 0;
			if (r < 0)
				return error_errno(err, r, "can't store the names of tasks");
			continue;
		}
		while (i < info->task_reading_count &&
		       (kind == MERGE_END ||
			reading_turn(f, info->task_readings[i]) <= item.event.rec.ts)) {
			const Traced__Capture__Tasks *tasks = info->task_readings[i++];

			r = scan_apply_reading(&f->scan, tasks,
					       trace_ts_of_boot(info, tasks->boot_ns));
			if (r < 0)
				return error_errno(err, r, "can't store the names of tasks");
			f->begun = true;
		}
		r = kind == MERGE_RECORD ? scan_apply_event(&f->scan, &item.event.rec) : 0;
		if (r < 0)
			return error_errno(err, r, "can't store the names of tasks");
	} while (kind != MERGE_END);
	merge_forget(f->merge, &index->rings[BUFFER_TASKS]);
	stream_index_forget_readings(index);
	return 0;
}

uint64_t task_feed_needs(const struct task_feed *f)
{
	return merge_needs(f->merge);
}

/* Pairs of fields that hold a tid and its name. */
static const struct {
	const char *pid, *comm;
} named_pairs[] = {
	{ "pid", "comm" },
	{ "prev_pid", "prev_comm" },
	{ "next_pid", "next_comm" },
	{ "parent_pid", "parent_comm" },
	{ "child_pid", "child_comm" },
};

/* The pairs that one event has. */
struct named_fields {
	const struct event *ev;
	struct {
		const struct field *pid, *comm;
	} pairs[ARRAY_SIZE(named_pairs)];
	size_t count;
};

/* A cache by event id; colliding events replace each other. */
#define NAMED_EVENTS 64

static bool names_tasks(const struct event *ev)
{
	return strcmp(ev->system, "sched") == 0 || strcmp(ev->system, "task") == 0 ||
	       strcmp(ev->system, "signal") == 0;
}

static void find_pairs(struct named_fields *n, const struct event *ev)
{
	*n = (struct named_fields){ .ev = ev };
	if (!names_tasks(ev))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(named_pairs); i++) {
		n->pairs[n->count].pid = event_field(ev, named_pairs[i].pid);
		n->pairs[n->count].comm = event_field(ev, named_pairs[i].comm);
		n->count += n->pairs[n->count].pid && n->pairs[n->count].comm;
	}
}

/* Events from the tasks' buffer were applied before. */
static bool scan_has_applied(const struct scan *s, const struct event *ev)
{
	return s->index->rings[BUFFER_TASKS].count &&
	       (ev == s->newtask || ev == s->rename || ev == s->release);
}

bool task_scan_may_name(struct stream_index *index)
{
	size_t count;
	const struct event *const *events = event_table_all(index->info.events, &count);
	struct scan s;

	scan_init(&s, index);
	for (size_t i = 0; i < count; i++) {
		struct named_fields n;

		find_pairs(&n, events[i]);
		if (n.count && !scan_has_applied(&s, events[i]))
			return true;
	}
	return false;
}

static int scan_take_names(const struct trace_info *info, const struct named_fields *n,
			   const struct record *rec)
{
	for (size_t i = 0; i < n->count; i++) {
		const char *comm;
		uint64_t pid;
		size_t len;
		int r;

		if (!uint_field(info, n->pairs[i].pid, rec, &pid) || (int32_t)pid <= 0)
			continue;
		comm = string_field(info, n->pairs[i].comm, rec, &len);
		if (!comm)
			continue;
		r = task_table_name(info->tasks, (int32_t)pid, rec->ts, comm, len);
		if (r < 0)
			return r;
	}
	return 0;
}

static int scan_cpu_names(struct stream_index *index, const struct stream_reader *reader,
			  const struct ring_index *cpu, struct error *err)
{
	_cleanup_(merge_freep) struct merge *merge = NULL;
	struct trace_info *info = &index->info;
	struct named_fields named[NAMED_EVENTS] = { 0 };
	struct merge_item item;
	int kind;

	kind = merge_new(&merge, &info->layout, cpu, reader, err);
	if (kind < 0)
		return kind;
	while ((kind = merge_next(merge, &item, err)) > 0) {
		const struct event *ev;
		struct named_fields *n;

		if (kind != MERGE_RECORD)
			continue;
		ev = event_table_find(info->events, event_id(info, &item.event.rec));
		if (!ev)
			continue;
		n = &named[ev->id % NAMED_EVENTS];
		if (n->ev != ev)
			find_pairs(n, ev);
		if (scan_take_names(info, n, &item.event.rec) < 0)
			return error_errno(err, -ENOMEM, "can't store the names of tasks");
	}
	return kind;
}

int task_scan_names(struct stream_index *index, const struct stream_reader *reader,
		    struct error *err)
{
	const struct ring_index *ring = &index->rings[BUFFER_MAIN];
	int r = 0;

	/*
	 * The task table sorts names by time, so CPUs can be read one after the other. A merge
	 * would take as much memory again as the export's own.
	 */
	for (size_t i = 0; r == 0 && i < ring->count; i++)
		r = scan_cpu_names(index, reader,
				   &(struct ring_index){ .cpus = &ring->cpus[i], .count = 1 }, err);
	return r;
}
