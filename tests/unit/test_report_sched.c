/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scheduler's reports of synthetic machines that lose events. The test knows what the machine
 * really did: no span that a loss may have cut may appear, and all others must.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sched_machine.h"

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
	json_t *table = report_of(fd, "timehist", NULL, NULL);
	uint64_t cut, open, wanted_cut, wanted_open;

	check_runs(m, json_object_get(table, "rows"));
	counts_of(table, &cut, &open);
	count_runs(m, &wanted_cut, &wanted_open);
	assert_int_equal(cut, wanted_cut);
	assert_int_equal(open, wanted_open);
	json_decref(table);
}

/* The first value of a delay's row: a quarter of a power of two is one row. */
static uint64_t runq_from(uint64_t ns)
{
	uint64_t octave = 4;

	if (ns < octave)
		return ns;
	while (ns / 2 >= octave)
		octave *= 2;
	return octave + (ns - octave) / (octave / 4) * (octave / 4);
}

/* Whole delays in log-linear rows. */
static void check_runq(const struct machine_run *m, int fd)
{
	json_t *table = report_of(fd, "runq", NULL, NULL), *rows = json_object_get(table, "rows");
	uint64_t *delays = calloc(m->count, sizeof(*delays)), cut, open, ends = 0, whole = 0;
	uint64_t counted = 0;

	assert_non_null(delays);

	for (size_t i = 0; i < m->count; i++) {
		if (m->all[i].kind != SWITCH || !m->all[i].other || m->all[i].lost)
			continue;
		ends++;
		delays[whole] = truth_before(m, i).delay;
		whole += delays[whole] != UINT64_MAX;
	}
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		uint64_t from = number_of(row, "from_ns"), to = number_of(row, "to_ns"), count = 0;

		for (uint64_t k = 0; k < whole; k++)
			count += runq_from(delays[k]) == from && delays[k] <= to;
		assert_int_equal(runq_from(to), from);
		assert_int_equal(runq_from(to + 1), to + 1);
		assert_int_equal(number_of(row, "count"), count);
		counted += count;
	}
	assert_int_equal(counted, whole);
	counts_of(table, &cut, &open);
	/* Each switch in ends one wait. Others are seen by their begin only. */
	assert_true(whole + cut + open >= ends);
	free(delays);
	json_decref(table);
}

static void check_offcpu(const struct machine_run *m, int fd)
{
	json_t *table = report_of(fd, "offcpu", "thread", NULL),
	       *rows = json_object_get(table, "rows");
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
	json_t *table = report_of(fd, "blame", NULL, NULL), *rows = json_object_get(table, "rows");
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
	table = report_of(m.fd, "timehist", NULL, NULL);
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
	table = report_of(m.fd, "blame", NULL, NULL);
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
