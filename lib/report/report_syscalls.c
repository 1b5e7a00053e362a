/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `syscalls`: how long system calls took, and how many failed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/group.h"
#include "trace/syscall_name.h"

#define NAME_BYTES 48
/* MAX_ERRNO of include/linux/err.h. */
#define ERRNO_MAX 4095

struct syscall_row {
	struct group group;
	char name[NAME_BYTES]; /* terminated */
	uint64_t calls, errors;
	struct histogram time;
	uint64_t max_at, cut, open;
};

/* The call that a thread is in. */
struct syscall_begun {
	uint64_t since; /* 0: none is known */
	uint64_t mark;
	struct syscall_row *row; /* NULL: it began in an earlier window */
	const struct event *entered;
	uint64_t number;
	int32_t tid;
};

struct syscalls {
	struct report report;
	struct rows rows, begun; /* begun: by tid */
	bool by_call;
	enum grouping grouping;			     /* unless by call */
	struct field_at enter_id, exit_id, exit_ret; /* of raw_syscalls, or of all of syscalls */
	uint32_t names;				     /* syscall_table() */
};

static const char *const syscalls_by[] = { "call", "thread", "comm", "process", NULL };

/* By the event's own name, or by the machine's table. */
static void syscall_row_name(const struct syscalls *s, struct syscall_row *row,
			     const struct event *ev, uint64_t nr)
{
	const char *own = strstr(ev->name, "enter_") ?: strstr(ev->name, "exit_");
	_cleanup_free_ char *name = own ? NULL : syscall_name(s->names, nr);

	if (own || name)
		snprintf(row->name, sizeof(row->name), "%s", own ? strchr(own, '_') + 1 : name);
	else
		snprintf(row->name, sizeof(row->name), "syscall_%lld", (long long)nr);
}

static struct syscall_row *syscall_row_get(struct syscalls *s, const struct event *ev, int32_t tid,
					   uint64_t nr)
{
	const struct report_env *env = s->report.env;
	const struct task *task = NULL;
	const struct row_key key = { nr, 0 };
	struct syscall_row *row;

	if (!s->by_call)
		task = report_task(env, tid, env->ts);
	row = s->by_call ? rows_get(&s->rows, key)
			 : group_find(&s->rows, s->grouping, task, tid, 0, &key);
	if (!row || row->group.used)
		return row;
	group_begin(env, &s->rows, &row->group, s->grouping, task, tid, 0);
	if (row->group.is_rest)
		snprintf(row->name, sizeof(row->name), "(others)");
	else
		syscall_row_name(s, row, ev, nr);
	return row;
}

/* A call that did not return: its thread ended in it, or its end is lost. */
static int syscall_drop(struct syscalls *s, struct syscall_begun *b)
{
	struct syscall_row *row = b->row;

	if (!b->since)
		return 0;
	if (!row)
		row = syscall_row_get(s, b->entered, b->tid, b->number);
	if (!row)
		return -ENOMEM;
	if (report_is_whole(s->report.env, b->mark))
		row->open++;
	else
		row->cut++;
	b->since = 0;
	return 0;
}

static int syscalls_on_enter(struct report *report, const struct trace_event *ev)
{
	struct syscalls *s = container_of(report, struct syscalls, report);
	struct syscall_begun *b = rows_get(&s->begun, (struct row_key){ (uint32_t)ev->pid, 0 });

	if (!b)
		return -ENOMEM;
	/* Too many threads. */
	if (b == s->begun.rest)
		return 0;
	if (syscall_drop(s, b) < 0)
		return -ENOMEM;
	b->tid = ev->pid;
	b->entered = ev->desc;
	b->number = field_at_read(&s->enter_id, &ev->rec);
	b->row = syscall_row_get(s, b->entered, b->tid, b->number);
	b->since = ev->rec.ts;
	b->mark = report_mark(s->report.env);
	return b->row ? 0 : -ENOMEM;
}

static int syscall_add(struct syscall_row *row, uint64_t ns, const struct trace_event *ev,
		       int64_t ret)
{
	row->calls++;
	row->errors += ret < 0 && ret >= -ERRNO_MAX;
	return histogram_add_at(&row->time, ns, ev->rec.ts, &row->max_at);
}

static int syscalls_on_exit(struct report *report, const struct trace_event *ev)
{
	struct syscalls *s = container_of(report, struct syscalls, report);
	struct syscall_begun *b = rows_get(&s->begun, (struct row_key){ (uint32_t)ev->pid, 0 });
	int64_t ret = (int64_t)field_at_read(&s->exit_ret, &ev->rec);
	uint64_t number = field_at_read(&s->exit_id, &ev->rec);
	struct syscall_row *row;
	bool whole, same;

	if (!b)
		return -ENOMEM;
	if (b == s->begun.rest)
		return 0;
	/* rt_sigreturn: its end has no number, and what it returns is what it restores. */
	if ((int32_t)number == -1 && b->since) {
		number = b->number;
		ret = 0;
	}
	row = syscall_row_get(s, ev->desc, ev->pid, number);
	if (!row)
		return -ENOMEM;
	whole = b->since && report_is_whole(s->report.env, b->mark);
	same = b->row ? b->row == row : b->number == number;
	if (whole && same) {
		uint64_t ns = report_elapsed(b->since, ev->rec.ts);

		b->since = 0;
		return syscall_add(row, ns, ev, ret);
	}
	/* Another call's end, after execve() of another kind of program or lost events. */
	if (b->since && !same && syscall_drop(s, b) < 0)
		return -ENOMEM;
	b->since = 0;
	if (s->report.env->losses)
		row->cut++;
	else
		row->open++;
	return 0;
}

/* All events of `syscalls`: each call has its own pair. */
static bool syscalls_find_each(struct syscalls *s, struct report_env *env)
{
	const struct event *const *all;
	size_t count;
	bool any = false;

	all = event_table_all(env->info->events, &count);
	for (size_t i = 0; i < count; i++) {
		const bool enters = !strncmp(all[i]->name, "sys_enter_", 10);

		if (strcmp(all[i]->system, "syscalls") != 0 ||
		    (!enters && strncmp(all[i]->name, "sys_exit_", 9) != 0))
			continue;
		any |= report_on(env, &s->report, "syscalls", all[i]->name,
				 enters ? syscalls_on_enter : syscalls_on_exit, NULL);
		if (enters) {
			s->enter_id = field_at_find(all[i], "__syscall_nr", env->big_endian);
		} else {
			s->exit_id = field_at_find(all[i], "__syscall_nr", env->big_endian);
			s->exit_ret = field_at_find(all[i], "ret", env->big_endian);
		}
	}
	return any;
}

static bool syscalls_find_events(struct syscalls *s, struct report_env *env)
{
	const bool big = env->big_endian;
	const struct event *ev;

	if (!report_on(env, &s->report, "raw_syscalls", "sys_exit", syscalls_on_exit, &ev))
		return syscalls_find_each(s, env);
	s->exit_id = field_at_find(ev, "id", big);
	s->exit_ret = field_at_find(ev, "ret", big);
	if (report_on(env, &s->report, "raw_syscalls", "sys_enter", syscalls_on_enter, &ev))
		s->enter_id = field_at_find(ev, "id", big);
	return true;
}

static void syscall_row_deinit(void *row)
{
	histogram_deinit(&((struct syscall_row *)row)->time);
}

static int syscalls_open(struct report **ret, struct report_env *env)
{
	struct syscalls *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->report.env = env;
	s->by_call = !env->by || !strcmp(env->by, syscalls_by[0]);
	s->grouping = grouping_find(env->by);
	s->names = syscall_table(env->info->header->machine ?: "");
	rows_init(&s->rows, sizeof(struct syscall_row), syscall_row_deinit);
	rows_init(&s->begun, sizeof(struct syscall_begun), NULL);
	*ret = &s->report;
	return syscalls_find_events(s, env) ? 0 : -ENODATA;
}

static const struct column syscall_columns[] = {
	COLUMN("call", COLUMN_TEXT),
	COLUMN("calls", COLUMN_COUNT),
	COLUMN("errors", COLUMN_COUNT),
	COLUMN("total", COLUMN_TIME),
	COLUMN("time", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "time"),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static void syscalls_put_row(const struct syscalls *s, struct table *t,
			     const struct syscall_row *row)
{
	if (!s->by_call)
		group_put(t, s->grouping, &row->group);
	table_put_text(t, (struct text){ row->name, (uint32_t)strlen(row->name) });
	table_put_count(t, row->calls);
	table_put_count(t, row->errors);
	table_put_count(t, row->time.sum);
	table_put_histogram(t, &row->time);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut);
	table_put_count(t, row->open);
}

static int syscalls_close(struct report *report, struct table **ret)
{
	struct syscalls *s = container_of(report, struct syscalls, report);
	int r;

	r = s->by_call ? table_new(ret, "syscalls", syscall_columns, ARRAY_SIZE(syscall_columns),
				   "total")
		       : group_table(ret, "syscalls", s->grouping, syscall_columns,
				     ARRAY_SIZE(syscall_columns), "total");
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < s->begun.count && !report->env->goes_on && r == 0; i++)
		r = syscall_drop(s, rows_at(&s->begun, i));
	for (uint32_t i = 0; i < rows_all(&s->rows); i++)
		syscalls_put_row(s, *ret, rows_each(&s->rows, i));
	if (!s->by_call)
		group_note(*ret, s->grouping, &s->rows);
	return r;
}

/* Threads whose call goes on; one that ended in it has no event any more. */
static bool syscall_begun_lasts(const struct report_env *env, const struct syscall_begun *b)
{
	const struct task *task = b->since ? report_task(env, b->tid, b->since) : NULL;

	return b->since && task && !task_table_is_gone(task, env->ts);
}

static int syscalls_renew(struct report *report)
{
	struct syscalls *s = container_of(report, struct syscalls, report);
	struct rows begun;

	rows_clear(&s->rows);
	rows_init(&begun, sizeof(struct syscall_begun), NULL);
	for (uint32_t i = 0; i < s->begun.count; i++) {
		const struct syscall_begun *b = rows_at(&s->begun, i);
		struct syscall_begun *copy;

		if (!syscall_begun_lasts(report->env, b))
			continue;
		copy = rows_get(&begun, (struct row_key){ (uint32_t)b->tid, 0 });
		if (!copy) {
			rows_deinit(&begun);
			return -ENOMEM;
		}
		*copy = *b;
		copy->row = NULL;
	}
	rows_deinit(&s->begun);
	s->begun = begun;
	return 0;
}

static void syscalls_free(struct report *report)
{
	struct syscalls *s = container_of(report, struct syscalls, report);

	rows_deinit(&s->rows);
	rows_deinit(&s->begun);
	free(s);
}

const struct report_kind report_syscalls = {
	.about = {
		.name = "syscalls",
		.summary = "how long system calls took, and how many failed",
		.is_usual = true,
		.page_sort = "time-max",
		.events = "raw_syscalls",
		.by = syscalls_by,
	},
	.open = syscalls_open,
	.close = syscalls_close,
	.renew = syscalls_renew,
	.free = syscalls_free,
};
