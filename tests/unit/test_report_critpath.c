/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The report critpath of synthetic machines that lose events: its rows are what the machine really
 * did, no span that a loss may have cut is among them, and the rows of a level leave nothing out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sched_machine.h"

#define LEVELS 32

enum what { RUN, WAIT, SLEEP, WHATS };
static const char *const what_names[] = { "run", "wait", "sleep" };

/* The event at that time; each has a time of its own. */
static size_t event_at(const struct machine_run *m, uint64_t ts)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->all[i].ts == ts)
			return i;
	fail_msg("no event at %llu", (unsigned long long)ts);
	return 0;
}

/* False: the recording can't tell. */
static bool find_sleep(const struct machine_run *m, size_t woken, uint64_t *ret_ns)
{
	const struct happening *h = &m->all[woken];
	size_t out;

	if (h->kind != WAKING || !find_before(m, woken, SWITCH, h->other, true, &out) ||
	    !is_whole(m, out, woken, -1))
		return false;
	*ret_ns = h->ts - m->all[out].ts;
	return true;
}

static bool find_run(const struct machine_run *m, size_t out, uint64_t *ret_ns)
{
	size_t in;

	if (!find_switch_in(m, out, &in) || !is_whole(m, in, out, (int)m->all[out].cpu))
		return false;
	*ret_ns = m->all[out].ts - m->all[in].ts;
	return true;
}

static bool find_wait(const struct machine_run *m, size_t in, uint64_t *ret_ns)
{
	if (m->all[in].lost)
		return false;
	*ret_ns = truth_before(m, in).delay;
	return *ret_ns != UINT64_MAX;
}

/* The time that the machine says. Fails if the recording can't tell it. */
static uint64_t time_of(const struct machine_run *m, enum what what, size_t at, int32_t tid)
{
	const struct happening *h = &m->all[at];
	uint64_t ns = 0;
	bool known;

	if (what == SLEEP) {
		assert_int_equal(h->other, tid);
		known = find_sleep(m, at, &ns);
	} else if (what == WAIT) {
		assert_true(h->kind == SWITCH && h->other == tid);
		known = find_wait(m, at, &ns);
	} else {
		/* A switch out, or a wake-up by the task. */
		assert_int_equal(h->pid, tid);
		known = find_run(m, at, &ns);
	}
	assert_true(known);
	return ns;
}

/* A level has to cover the time from `bottom` to the end of its next row. */
struct level {
	uint64_t next, bottom;
	bool unknown; /* a row was cut or open */
};

struct checked {
	const struct machine_run *m;
	struct level levels[LEVELS];
	uint64_t depth;
	uint64_t sums[WHATS]; /* of level 0 */
};

static enum what what_of(const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "what"));
	enum what w = 0;

	while (w < WHATS && strcmp(what_names[w], name) != 0)
		w++;
	return w;
}

/* The levels below that one end. */
static void end_levels(struct checked *c, uint64_t level)
{
	while (c->depth > level) {
		const struct level *l = &c->levels[c->depth--];

		if (!l->unknown)
			assert_int_equal(l->next, l->bottom);
	}
}

static void check_known(struct checked *c, const json_t *row, enum what what, uint64_t level)
{
	const uint64_t at = number_of(row, "at_ns"), ns = number_of(row, "time_ns");
	struct level *l = &c->levels[level];
	uint64_t truth = time_of(c->m, what, event_at(c->m, at), (int32_t)number_of(row, "tid"));

	if (!level)
		c->sums[what] += ns;
	else
		truth = truth < at - l->bottom ? truth : at - l->bottom;
	assert_int_equal(ns, truth);
	if (!l->unknown)
		assert_int_equal(at, l->next);
	l->next = at - ns;
}

static void check_row(struct checked *c, const json_t *row)
{
	const uint64_t level = number_of(row, "level"), at = number_of(row, "at_ns");
	const char *waker = json_string_value(json_object_get(row, "waker"));
	const enum what what = what_of(row);

	assert_true(level <= c->depth && level < LEVELS);
	end_levels(c, level);
	if (what == WHATS) {
		assert_int_equal(number_of(row, "time_ns"), UINT64_MAX);
		c->levels[level].unknown = true;
		return;
	}
	check_known(c, row, what, level);
	if (what != SLEEP || !strcmp(waker, "idle") || level + 1 == LEVELS)
		return;
	c->levels[level + 1] = (struct level){ at, at - number_of(row, "time_ns"), false };
	c->depth = level + 1;
}

/* All that the recording tells of the thread. */
static void sum_truth(const struct machine_run *m, int32_t tid, uint64_t sums[WHATS])
{
	uint64_t ns;

	for (size_t i = 0; i < m->count; i++) {
		const struct happening *h = &m->all[i];

		if (h->kind == WAKING && h->other == tid && find_sleep(m, i, &ns))
			sums[SLEEP] += ns;
		if (h->kind == SWITCH && h->other == tid && find_wait(m, i, &ns))
			sums[WAIT] += ns;
		if (h->kind == SWITCH && h->pid == tid && find_run(m, i, &ns))
			sums[RUN] += ns;
	}
}

static size_t check_thread(const struct machine_run *m, int fd, int32_t tid)
{
	struct checked c = { .m = m, .levels[0].unknown = true };
	uint64_t sums[WHATS] = { 0 };
	char task[16];
	json_t *table, *row;
	size_t i, deeper = 0;

	snprintf(task, sizeof(task), "%d", (int)tid);
	table = report_of(fd, "critpath", NULL, task);
	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		check_row(&c, row);
		deeper += number_of(row, "level") > 0 && what_of(row) != WHATS;
	}
	end_levels(&c, 0);
	sum_truth(m, tid, sums);
	for (enum what w = 0; w < WHATS; w++)
		assert_int_equal(c.sums[w], sums[w]);
	json_decref(table);
	return deeper;
}

static size_t check_machine(uint64_t seed, unsigned losses)
{
	static struct machine_run run;
	_cleanup_(maker_deinit) struct maker m;
	size_t deeper = 0;

	run_machine(&run, seed, losses);
	sched_begin(&m);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		put_cpu(&m, &run, cpu);
	maker_end(&m);
	for (int32_t tid = TID; tid < TID + TASKS; tid++)
		deeper += check_thread(&run, m.fd, tid);
	return deeper;
}

static void without_losses_all_is_known(void **state _unused_)
{
	for (uint64_t seed = 0; seed < 10; seed++)
		assert_true(check_machine(seed, 0) > 100);
}

static void no_span_over_a_loss_appears(void **state _unused_)
{
	size_t deeper = 0;

	for (uint64_t seed = 0; seed < 40; seed++)
		deeper += check_machine(seed, 1 + (unsigned)(seed % 12));
	assert_true(deeper > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_losses_all_is_known),
		cmocka_unit_test(no_span_over_a_loss_appears),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
