/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scheduler's reports of synthetic machines that lose events. The test knows what the machine
 * really did: no span that a loss may have cut may appear, and all others must.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "exported.h"
#include "make_formats.h"
#include "memory_file.h"
#include "random_series.h"
#include "report/report.h"

#define CPUS 3
#define TASKS 7
#define TID 101
#define EVENTS 1500
#define PER_PAGE 20
#define FIRST_TS (UINT64_C(50) * 1000000000)

#define ID_WAKEUP 310
#define ID_EXEC 311

enum kind { SWITCH, WAKING, WAKEUP };

struct happening {
	enum kind kind;
	uint64_t ts;
	unsigned cpu;
	int32_t pid, other; /* prev and next; waker and the woken task */
	uint32_t state;	    /* prev_state */
	bool lost, after_loss;
	uint64_t missed; /* before it, on its CPU */
};

struct machine_run {
	struct happening all[EVENTS];
	size_t count;
	uint64_t seed, ts;
	int32_t runs[CPUS]; /* 0: idle */
	enum { SLEEPS, WAITS, RUNS } tasks[TASKS];
};

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

static void run_machine(struct machine_run *m, uint64_t seed, unsigned losses)
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

static void put_happening(struct maker *m, const struct happening *h)
{
	if (h->kind == SWITCH)
		event_switch(m, h->ts, h->pid, "task", h->state, 120, h->other, "task");
	else
		put_waking(m, h);
}

static void put_cpu(struct maker *m, const struct machine_run *run, unsigned cpu)
{
	unsigned in_page = 0;
	uint64_t missed = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct happening *h = &run->all[i];

		if (h->cpu != cpu || h->lost)
			continue;
		if (in_page && (in_page == PER_PAGE || h->missed)) {
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

static void sched_begin(struct maker *m)
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

/* The one table of a report. */
static json_t *report_of(int fd, const char *name, const char *by)
{
	const char *names[] = { name };
	struct report_options report = {
		.names = names, .count = 1, .form = REPORT_JSON, .by = by
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

static uint64_t number_of(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	assert_non_null(v);
	return json_is_null(v) ? UINT64_MAX : (uint64_t)json_integer_value(v);
}

static void counts_of(const json_t *table, uint64_t *cut, uint64_t *open)
{
	const json_t *notes = json_object_get(table, "notes");

	*cut = *open = 0;
	for (size_t i = 0; i < json_array_size(notes); i++) {
		const char *at = strstr(json_string_value(json_array_get(notes, i)), ": cut ");
		unsigned long c, o;

		if (at && sscanf(at, ": cut %lu, open %lu", &c, &o) == 2) {
			*cut = c;
			*open = o;
		}
	}
}

/*
 * No loss touches the time from event `from` to event `to`. A loss reaches from the CPU's last
 * event before it to the next one after it. cpu -1: of all CPUs.
 */
static bool is_whole(const struct machine_run *m, size_t from, size_t to, int cpu)
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

/* The last event before `to` of that kind, with the task as the one woken or switched. */
static bool find_before(const struct machine_run *m, size_t to, enum kind kind, int32_t tid,
			bool as_prev, size_t *ret)
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

struct truth {
	uint64_t wait, delay; /* UINT64_MAX: unknown */
	int32_t waker;	      /* -1: unknown or none */
};

/* How a run that begins with event `in` came about, as far as the recording can tell. */
static struct truth truth_before(const struct machine_run *m, size_t in)
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

/* The switch before `out` on its CPU. */
static bool find_switch_in(const struct machine_run *m, size_t out, size_t *ret)
{
	for (size_t i = out; i-- > 0;)
		if (m->all[i].kind == SWITCH && m->all[i].cpu == m->all[out].cpu) {
			*ret = i;
			return true;
		}
	return false;
}

static void check_row(const struct machine_run *m, const json_t *row, size_t in, size_t out)
{
	const struct happening *h = &m->all[out];
	const struct truth t = truth_before(m, in);
	const char *letter = h->state == 1 ? "S" : h->state == 2 ? "D" : "R";
	const char *waker;

	assert_int_equal(number_of(row, "at_ns"), h->ts);
	assert_int_equal(number_of(row, "cpu"), h->cpu);
	assert_int_equal(number_of(row, "tid"), h->pid);
	assert_int_equal(number_of(row, "run_ns"), h->ts - m->all[in].ts);
	assert_int_equal(number_of(row, "wait_ns"), t.wait);
	assert_int_equal(number_of(row, "delay_ns"), t.delay);
	assert_string_equal(json_string_value(json_object_get(row, "state")), letter);
	waker = json_string_value(json_object_get(row, "waker"));
	assert_int_equal(!*waker, t.waker < 0);
	assert_int_equal(!strcmp(waker, "idle"), t.waker == 0);
}

/* Every run that no loss can have cut has its row, and nothing else has one. */
static void check_runs(const struct machine_run *m, const json_t *rows)
{
	size_t count = 0, in;

	for (size_t i = 0; i < m->count; i++) {
		if (m->all[i].kind != SWITCH || !m->all[i].pid || !find_switch_in(m, i, &in) ||
		    !is_whole(m, in, i, (int)m->all[i].cpu))
			continue;
		assert_true(count < json_array_size(rows));
		check_row(m, json_array_get(rows, count), in, i);
		count++;
	}
	assert_int_equal(json_array_size(rows), count);
}

/* Runs of which an edge is in the recording, but that are not whole. */
static void count_runs(const struct machine_run *m, uint64_t *cut, uint64_t *open)
{
	*cut = *open = 0;
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		bool begun = false, lost = false;
		int32_t runs = 0;

		for (size_t i = 0; i < m->count; i++) {
			const struct happening *h = &m->all[i];

			if (h->cpu != cpu || h->lost)
				continue;
			lost |= h->after_loss;
			if (h->kind != SWITCH)
				continue;
			if (lost)
				*cut += (runs && runs != h->pid) + (h->pid != 0);
			else if (!begun)
				*open += h->pid != 0;
			runs = h->other;
			begun = true;
			lost = false;
		}
		if (runs)
			*(lost ? cut : open) += 1;
	}
}

static void check_timehist(const struct machine_run *m, int fd)
{
	json_t *table = report_of(fd, "timehist", NULL);
	uint64_t cut, open, wanted_cut, wanted_open;

	check_runs(m, json_object_get(table, "rows"));
	counts_of(table, &cut, &open);
	count_runs(m, &wanted_cut, &wanted_open);
	assert_int_equal(cut, wanted_cut);
	assert_int_equal(open, wanted_open);
	json_decref(table);
}

/* Whole delays by powers of two: truth[n] has those of n significant bits. */
static void check_runq(const struct machine_run *m, int fd)
{
	json_t *table = report_of(fd, "runq", NULL), *rows = json_object_get(table, "rows");
	uint64_t counts[65] = { 0 }, delay, cut, open, ends = 0, whole = 0;

	for (size_t i = 0; i < m->count; i++) {
		if (m->all[i].kind != SWITCH || !m->all[i].other || m->all[i].lost)
			continue;
		ends++;
		delay = truth_before(m, i).delay;
		if (delay == UINT64_MAX)
			continue;
		counts[delay ? 64 - __builtin_clzll(delay) : 0]++;
		whole++;
	}
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		uint64_t from = number_of(row, "from_ns"), to = number_of(row, "to_ns");

		assert_true(!from || to == 2 * from - 1);
		assert_int_equal(number_of(row, "count"),
				 counts[from ? 64 - __builtin_clzll(from) : 0]);
		whole -= number_of(row, "count");
	}
	assert_int_equal(whole, 0);
	counts_of(table, &cut, &open);
	/* Each switch in ends one wait. Others are seen by their begin only. */
	for (size_t i = 0; i < 65; i++)
		whole += counts[i];
	assert_true(whole + cut + open >= ends);
	json_decref(table);
}

static void check_offcpu(const struct machine_run *m, int fd)
{
	json_t *table = report_of(fd, "offcpu", "thread"), *rows = json_object_get(table, "rows");
	uint64_t total[TASKS] = { 0 };
	size_t out;

	for (size_t i = 0; i < m->count; i++) {
		const struct happening *h = &m->all[i];

		if (h->kind == WAKING && find_before(m, i, SWITCH, h->other, true, &out) &&
		    is_whole(m, out, i, -1))
			total[h->other - TID] += h->ts - m->all[out].ts;
	}
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		total[number_of(row, "tid") - TID] -= number_of(row, "total_ns");
	}
	for (size_t i = 0; i < TASKS; i++)
		assert_int_equal(total[i], 0);
	json_decref(table);
}

/* The shares of all runners together are the waiter's whole waits. */
static void check_blame(const struct machine_run *m, int fd)
{
	json_t *table = report_of(fd, "blame", NULL), *rows = json_object_get(table, "rows");
	uint64_t total[TASKS] = { 0 }, delay;

	for (size_t i = 0; i < m->count; i++) {
		if (m->all[i].kind != SWITCH || !m->all[i].other || m->all[i].lost)
			continue;
		delay = truth_before(m, i).delay;
		if (delay != UINT64_MAX)
			total[m->all[i].other - TID] += delay;
	}
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		assert_int_not_equal(number_of(row, "waiter_tid"), number_of(row, "runner_tid"));
		total[number_of(row, "waiter_tid") - TID] -= number_of(row, "time_ns");
	}
	for (size_t i = 0; i < TASKS; i++)
		assert_int_equal(total[i], 0);
	json_decref(table);
}

static void check_machine(uint64_t seed, unsigned losses)
{
	static struct machine_run run;
	_cleanup_(maker_deinit) struct maker m;

	run_machine(&run, seed, losses);
	sched_begin(&m);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		put_cpu(&m, &run, cpu);
	maker_end(&m);
	check_timehist(&run, m.fd);
	check_runq(&run, m.fd);
	check_offcpu(&run, m.fd);
	check_blame(&run, m.fd);
}

static void without_losses_all_is_known(void **state _unused_)
{
	for (uint64_t seed = 0; seed < 10; seed++)
		check_machine(seed, 0);
}

static void no_span_over_a_loss_appears(void **state _unused_)
{
	for (uint64_t seed = 0; seed < 60; seed++)
		check_machine(seed, 1 + (unsigned)(seed % 12));
}

/* A thread of a process executes a program, and goes on with the tid of the process. */
static void exec_changes_the_tid_of_a_run(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf data = BUF_INIT;
	uint64_t cut, open;
	json_t *table, *rows;

	sched_begin(&m);
	page_begin(&m, FIRST_TS);
	event_switch(&m, FIRST_TS, 0, "idle", 0, 120, 202, "thread");
	maker_u32(&m, &data, 201);
	maker_u32(&m, &data, 202);
	maker_event(&m, FIRST_TS + 1000, ID_EXEC, 201, data.data, data.len);
	event_switch(&m, FIRST_TS + 3000, 201, "program", 1, 120, 0, "idle");
	maker_finish(&m);
	table = report_of(m.fd, "timehist", NULL);
	rows = json_object_get(table, "rows");
	assert_int_equal(json_array_size(rows), 1);
	assert_int_equal(number_of(json_array_get(rows, 0), "tid"), 201);
	assert_int_equal(number_of(json_array_get(rows, 0), "run_ns"), 3000);
	counts_of(table, &cut, &open);
	assert_int_equal(cut, 0);
	json_decref(table);
}

/* A wait of [2, 9] us: the runner had the CPU in [2, 6], another task in [6, 9]. */
static void blame_divides_a_wait(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	struct happening woken = {
		.kind = WAKING, .ts = FIRST_TS + 2000, .pid = 202, .other = 201
	};
	json_t *table, *rows;

	sched_begin(&m);
	page_begin(&m, FIRST_TS);
	event_switch(&m, FIRST_TS, 201, "waiter", 1, 120, 202, "runner");
	put_happening(&m, &woken);
	event_switch(&m, FIRST_TS + 6000, 202, "runner", 0, 120, 203, "other");
	event_switch(&m, FIRST_TS + 9000, 203, "other", 1, 120, 201, "waiter");
	maker_finish(&m);
	table = report_of(m.fd, "blame", NULL);
	rows = json_object_get(table, "rows");
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(number_of(json_array_get(rows, 0), "runner_tid"), 202);
	assert_int_equal(number_of(json_array_get(rows, 0), "time_ns"), 4000);
	assert_int_equal(number_of(json_array_get(rows, 0), "share_permille"), 571);
	assert_int_equal(number_of(json_array_get(rows, 1), "runner_tid"), 203);
	assert_int_equal(number_of(json_array_get(rows, 1), "time_ns"), 3000);
	json_decref(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_losses_all_is_known),
		cmocka_unit_test(no_span_over_a_loss_appears),
		cmocka_unit_test(exec_changes_the_tid_of_a_run),
		cmocka_unit_test(blame_divides_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
