/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sched_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "exported.h"
#include "make_formats.h"
#include "memory_file.h"
#include "random_series.h"
#include "report/report.h"

#define EVENTS_PER_PAGE 20

static uint64_t pick(struct machine_run *m, uint64_t below)
{
	return random_next(&m->seed) % below;
}

static struct happening *happen(struct machine_run *m, enum kind kind, unsigned cpu, int32_t other)
{
	struct happening *h = &m->all[m->count++];

	m->ts += 100 + pick(m, 5000);
	*h = (struct happening){ kind, m->ts, cpu, m->runs[cpu], other, 0, false, false, 0 };
	return h;
}

static int32_t pick_task(struct machine_run *m, int in_state)
{
	unsigned first = (unsigned)pick(m, TASKS);

	for (unsigned i = 0; i < TASKS; i++)
		if ((int)m->tasks[(first + i) % TASKS] == in_state)
			return TID + (int32_t)((first + i) % TASKS);
	return 0;
}

static void run_switch(struct machine_run *m)
{
	static const uint32_t states[] = { 0, 0x100, 1, 1, 2 };
	unsigned cpu = (unsigned)pick(m, CPUS);
	int32_t prev = m->runs[cpu], next = pick_task(m, WAITS);
	struct happening *h;

	if (prev == next)
		return;
	h = happen(m, SWITCH, cpu, next);
	if (prev) {
		h->state = states[pick(m, 5)];
		m->tasks[prev - TID] = (h->state & 0xff) ? SLEEPS : WAITS;
	}
	if (next)
		m->tasks[next - TID] = RUNS;
	m->runs[cpu] = next;
}

static void run_wake(struct machine_run *m)
{
	int32_t tid = pick_task(m, SLEEPS);

	if (!tid)
		return;
	happen(m, WAKING, (unsigned)pick(m, CPUS), tid);
	happen(m, WAKEUP, (unsigned)pick(m, CPUS), tid);
	m->tasks[tid - TID] = WAITS;
}

/* Loses events that follow each other on a CPU, neither its first nor its last one. */
static void lose_events(struct machine_run *m)
{
	unsigned cpu = (unsigned)pick(m, CPUS), left = 1 + (unsigned)pick(m, 30);
	size_t last = 0, start = pick(m, m->count), seen = 0;

	for (size_t i = 0; i < m->count; i++)
		if (m->all[i].cpu == cpu)
			last = i;
	for (size_t i = 0; i < last && left; i++) {
		if (m->all[i].cpu != cpu)
			continue;
		if (seen++ && i >= start) {
			m->all[i].lost = true;
			left--;
		}
	}
}

static void count_missed(struct machine_run *m)
{
	uint64_t missed[CPUS] = { 0 };

	for (size_t i = 0; i < m->count; i++) {
		struct happening *h = &m->all[i];

		if (h->lost) {
			missed[h->cpu]++;
			continue;
		}
		h->missed = missed[h->cpu];
		h->after_loss = h->missed > 0;
		missed[h->cpu] = 0;
	}
}

void run_machine(struct machine_run *m, uint64_t seed, unsigned losses)
{
	*m = (struct machine_run){ .seed = RANDOM_FIRST + seed * 7919, .ts = FIRST_TS };
	while (m->count + 2 <= EVENTS) {
		if (pick(m, 2))
			run_wake(m);
		else
			run_switch(m);
	}
	for (unsigned i = 0; i < losses; i++)
		lose_events(m);
	count_missed(m);
}

static void put_waking(struct maker *m, const struct happening *h)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	char comm[16] = "task";

	buf_append(&data, comm, sizeof(comm));
	maker_u32(m, &data, (uint32_t)h->other);
	maker_u32(m, &data, 120);
	maker_u32(m, &data, 0);
	maker_event(m, h->ts, h->kind == WAKING ? ID_WAKING : ID_WAKEUP, h->pid, data.data,
		    data.len);
}

void put_happening(struct maker *m, const struct happening *h)
{
	if (h->kind == SWITCH)
		event_switch(m, h->ts, h->pid, "task", h->state, 120, h->other, "task");
	else
		put_waking(m, h);
}

void put_cpu(struct maker *m, const struct machine_run *run, unsigned cpu)
{
	unsigned in_page = 0;
	uint64_t missed = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct happening *h = &run->all[i];

		if (h->cpu != cpu || h->lost)
			continue;
		if (in_page && (in_page == EVENTS_PER_PAGE || h->missed)) {
			page_flush(m, missed, cpu);
			in_page = 0;
		}
		if (!in_page) {
			page_begin(m, h->ts);
			missed = h->missed;
		}
		put_happening(m, h);
		in_page++;
	}
	if (in_page)
		page_flush(m, missed, cpu);
}

static void set_cpus(Traced__Capture__Header *h)
{
	h->cpus = h->cpus_online = CPUS;
}

void sched_begin(struct maker *m)
{
	maker_init(m, 8, false, 4096);
	m->header = set_cpus;
	maker_head(m);
	maker_kernel_formats(m);
	maker_format(m, "sched", "sched_wakeup", ID_WAKEUP,
		     "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		     "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		     "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		     "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n",
		     "\"comm=%s pid=%d\", REC->comm, REC->pid");
	maker_format(m, "sched", "sched_process_exec", ID_EXEC,
		     "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		     "\tfield:pid_t old_pid;\toffset:12;\tsize:4;\tsigned:1;\n",
		     "\"pid=%d old_pid=%d\", REC->pid, REC->old_pid");
}

json_t *report_of(int fd, const char *name, const char *by, const char *task)
{
	const char *names[] = { name };
	struct report_options report = {
		.names = names, .count = 1, .form = REPORT_JSON, .by = by, .task = task
	};
	struct export_options options = { .format = "report", .report = &report };
	_cleanup_(export_result_deinit) struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int out = memory_file("", 0);
	json_t *document, *table;

	if (export_run(&report_sink_ops, fd, out, &options, &result, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	memory_file_read(out, &text);
	document = json_loads(text.data, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	table = json_incref(json_array_get(json_object_get(document, "reports"), 0));
	assert_non_null(table);
	json_decref(document);
	return table;
}

uint64_t number_of(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	assert_non_null(v);
	return json_is_null(v) ? UINT64_MAX : (uint64_t)json_integer_value(v);
}

void counts_of(const json_t *table, uint64_t *cut, uint64_t *open)
{
	const json_t *totals = json_object_get(table, "totals");

	*cut = number_of(totals, "cut");
	*open = number_of(totals, "open");
}

bool is_whole(const struct machine_run *m, size_t from, size_t to, int cpu)
{
	size_t before[CPUS] = { 0 };

	if (m->all[from].lost || m->all[to].lost)
		return false;
	for (size_t i = 0; i < m->count; i++) {
		const struct happening *h = &m->all[i];

		if (h->lost)
			continue;
		if (h->after_loss && (cpu < 0 || h->cpu == (unsigned)cpu) && before[h->cpu] < to &&
		    i > from)
			return false;
		before[h->cpu] = i;
	}
	return true;
}

bool find_before(const struct machine_run *m, size_t to, enum kind kind, int32_t tid, bool as_prev,
		 size_t *ret)
{
	for (size_t i = to; i-- > 0;) {
		const struct happening *h = &m->all[i];

		if (h->kind == kind && (as_prev ? h->pid : h->other) == tid) {
			*ret = i;
			return true;
		}
	}
	return false;
}

struct truth truth_before(const struct machine_run *m, size_t in)
{
	const int32_t tid = m->all[in].other;
	struct truth t = { UINT64_MAX, UINT64_MAX, -1 };
	size_t out = 0, woken = 0;
	bool has_out = find_before(m, in, SWITCH, tid, true, &out);
	bool has_wake = find_before(m, in, WAKING, tid, false, &woken);

	if (has_wake && (!has_out || woken > out)) {
		if (!is_whole(m, woken, in, -1))
			return t;
		t.delay = m->all[in].ts - m->all[woken].ts;
		t.waker = m->all[woken].pid;
		if (has_out && is_whole(m, out, woken, -1))
			t.wait = m->all[woken].ts - m->all[out].ts;
	} else if (has_out && is_whole(m, out, in, -1)) {
		t.delay = m->all[in].ts - m->all[out].ts;
		t.wait = 0;
	}
	return t;
}

bool find_switch_in(const struct machine_run *m, size_t out, size_t *ret)
{
	for (size_t i = out; i-- > 0;)
		if (m->all[i].kind == SWITCH && m->all[i].cpu == m->all[out].cpu) {
			*ret = i;
			return true;
		}
	return false;
}
