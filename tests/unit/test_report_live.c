/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tables of windows of a followed recording, against the tables of the whole one: windows together
 * have what the whole has, also of runs and calls that go on from one to the next. And frames that
 * a hostile process has changed.
 */
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "export/export.h"
#include "make_formats.h"
#include "memory_file.h"
#include "random_series.h"
#include "report/frame.h"
#include "report/report.h"
#include "report/table_form.h"

#define CPUS 2
#define TASKS 5
#define TID 101
#define PERIODS 40
#define STEPS 30
#define FIRST_TS (UINT64_C(50) * 1000000000)
#define CALL 17

struct step {
	uint64_t ts;
	unsigned cpu;
	int32_t pid, other; /* prev and next, or the woken task, or 1: the call returns */
	uint16_t id;
	uint32_t state;
};

struct live_run {
	uint64_t seed, ts;
	int32_t runs[CPUS]; /* 0: idle */
	enum { SLEEPS, WAITS, RUNS } tasks[TASKS];
	bool calls[TASKS];
	struct step steps[PERIODS * STEPS + CPUS];
	size_t count, period_ends[PERIODS + 1];
};

static uint64_t live_pick(struct live_run *m, uint64_t below)
{
	return random_next(&m->seed) % below;
}

static int32_t live_pick_task(struct live_run *m, int state)
{
	unsigned first = (unsigned)live_pick(m, TASKS);

	for (unsigned i = 0; i < TASKS; i++)
		if ((int)m->tasks[(first + i) % TASKS] == state)
			return TID + (int32_t)((first + i) % TASKS);
	return 0;
}

static void live_step(struct live_run *m, uint16_t id, unsigned cpu, int32_t other, uint32_t state)
{
	m->ts += 100 + live_pick(m, 5000);
	m->steps[m->count++] = (struct step){ m->ts, cpu, m->runs[cpu], other, id, state };
}

static void live_switch(struct live_run *m, unsigned cpu, int32_t next)
{
	int32_t prev = m->runs[cpu];
	bool sleeps = live_pick(m, 2);

	live_step(m, ID_SWITCH, cpu, next, sleeps ? 1 : 0);
	if (prev)
		m->tasks[prev - TID] = sleeps ? SLEEPS : WAITS;
	if (next)
		m->tasks[next - TID] = RUNS;
	m->runs[cpu] = next;
}

static void live_act(struct live_run *m)
{
	unsigned cpu = (unsigned)live_pick(m, CPUS);
	int32_t tid = m->runs[cpu], next;

	switch (live_pick(m, 3)) {
	case 0:
		next = live_pick_task(m, WAITS);
		if (next != tid)
			live_switch(m, cpu, next);
		break;
	case 1:
		next = live_pick_task(m, SLEEPS);
		if (!next)
			break;
		live_step(m, ID_WAKING, cpu, next, 0);
		m->tasks[next - TID] = WAITS;
		break;
	default:
		if (!tid)
			break;
		live_step(m, m->calls[tid - TID] ? ID_EXIT : ID_ENTER, cpu, 0, 0);
		m->calls[tid - TID] ^= true;
	}
}

/* In most periods a task runs from end to end on a CPU without any switch. */
static void live_simulate(struct live_run *m, uint64_t seed)
{
	*m = (struct live_run){ .seed = RANDOM_FIRST + seed * 7919, .ts = FIRST_TS };
	for (size_t period = 0; period < PERIODS; period++) {
		size_t until = m->count + (period % 4 ? 3 : STEPS - 4);

		while (m->count < until)
			live_act(m);
		m->ts += 500000000;
		m->period_ends[period] = m->count;
	}
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		if (m->runs[cpu])
			live_switch(m, cpu, 0);
	m->period_ends[PERIODS] = m->count;
}

static void live_put_call(struct maker *m, const struct step *s)
{
	_cleanup_buf_ struct buf data = BUF_INIT;

	maker_u64(m, &data, CALL);
	for (unsigned i = 0; i < (s->id == ID_ENTER ? 6 : 1); i++)
		maker_u64(m, &data, 0);
	maker_event(m, s->ts, s->id, s->pid, data.data, data.len);
}

static void live_put_waking(struct maker *m, const struct step *s)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	char comm[16] = "task";

	buf_append(&data, comm, sizeof(comm));
	maker_u32(m, &data, (uint32_t)s->other);
	maker_u32(m, &data, 120);
	maker_u32(m, &data, 0);
	maker_event(m, s->ts, ID_WAKING, s->pid, data.data, data.len);
}

static void live_put_step(struct maker *m, const struct step *s)
{
	if (s->id == ID_SWITCH)
		event_switch(m, s->ts, s->pid, "task", s->state, 120, s->other, "task");
	else if (s->id == ID_WAKING)
		live_put_waking(m, s);
	else
		live_put_call(m, s);
}

static void live_put_period(struct maker *m, const struct live_run *run, size_t from, size_t to)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		bool open = false;

		for (size_t i = from; i < to; i++) {
			if (run->steps[i].cpu != cpu)
				continue;
			if (!open)
				page_begin(m, run->steps[i].ts);
			open = true;
			live_put_step(m, &run->steps[i]);
		}
		if (open)
			page_flush(m, 0, cpu);
	}
	assert_int_equal(stream_write(&m->writer, CHUNK_FLUSH, "", 0), 0);
}

static void live_set_cpus(Traced__Capture__Header *h)
{
	h->cpus = h->cpus_online = CPUS;
}

static void live_record_head(struct maker *m)
{
	struct maker_task tasks[TASKS];

	for (int32_t i = 0; i < TASKS; i++)
		tasks[i] = (struct maker_task){ TID + i, TID + i, "task", 0, false };
	maker_init(m, 8, false, 4096);
	m->header = live_set_cpus;
	maker_head(m);
	maker_kernel_formats(m);
	maker_tasks(m, FIRST_TS - 1000, 0, tasks, TASKS);
}

static void live_record(struct maker *m, const struct live_run *run)
{
	size_t from = 0;

	live_record_head(m);
	for (size_t period = 0; period <= PERIODS; period++) {
		live_put_period(m, run, from, run->period_ends[period]);
		from = run->period_ends[period];
	}
	maker_end(m);
}

static const char *const live_names[] = { "sched", "syscalls", "counts", "irq" };

/* All windows' frames, one after the other. */
static void live_follow(int fd, struct buf *frames)
{
	const struct report_options report = { .names = live_names, .count = 4 };
	_cleanup_close_ int to = memory_file("", 0), out = memory_file("", 0);
	struct feed feed = { .to = to, .seed = 5, .slice_max = 64 };
	const struct export_follow follow = { give_slice, &feed };
	const struct export_options options = { .format = "live",
						.report = &report,
						.follow = &follow };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	feed_begin(&feed, fd);
	feed.slice_max = 3000;
	if (export_run(&report_live_ops, to, out, &options, &result, &err) < 0)
		fail_msg("%s", err.message);
	memory_file_read(out, frames);
}

static json_t *live_whole(int fd)
{
	const struct report_options report = { .names = live_names,
					       .count = 3,
					       .form = REPORT_JSON };
	const struct export_options options = { .format = "report", .report = &report };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int out = memory_file("", 0);
	json_t *document;

	if (export_run(&report_sink_ops, fd, out, &options, &result, &err) < 0)
		fail_msg("%s", err.message);
	memory_file_read(out, &text);
	document = json_loads(text.data, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	return document;
}

static uint64_t whole_sum(const json_t *document, size_t report, int32_t tid, const char *key)
{
	const json_t *rows = json_object_get(
		json_array_get(json_object_get(document, "reports"), report), "rows");
	uint64_t sum = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		if (!tid || json_integer_value(json_object_get(row, "tid")) == tid)
			sum += (uint64_t)json_integer_value(json_object_get(row, key));
	}
	return sum;
}

static size_t live_column(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->column_count; i++)
		if (!strcmp(t->columns[i].name, name))
			return i;
	fail_msg("no column %s", name);
	return 0;
}

static uint64_t window_sum(const struct frame_tables *f, size_t table, int32_t tid,
			   const char *name)
{
	const struct table *t = f->tables[table];
	const size_t rows = t->cell_count / t->column_count, column = live_column(t, name);
	uint64_t sum = 0;

	for (size_t row = 0; row < rows; row++) {
		const union cell *cells = &t->cells[row * t->column_count];

		if (!tid || cells[live_column(t, "tid")].number == tid)
			sum += cells[column].count;
	}
	return sum;
}

struct live_sums {
	uint64_t runtime[TASKS], runs[TASKS], migrations[TASKS];
	uint64_t calls, time, call_open, cut, events, span, windows, idle_windows;
};

static void live_add(struct live_sums *sums, const struct frame_tables *f)
{
	uint64_t runtime = 0;

	/* No event of interrupts was recorded. */
	assert_int_equal(f->count, 3);
	for (int32_t i = 0; i < TASKS; i++) {
		sums->runtime[i] += window_sum(f, 0, TID + i, "runtime");
		sums->runs[i] += window_sum(f, 0, TID + i, "runs");
		sums->migrations[i] += window_sum(f, 0, TID + i, "migrations");
		runtime += window_sum(f, 0, TID + i, "runtime");
	}
	/* More than all CPUs had cannot have run in a window. */
	assert_true(runtime <= f->window.span_ns * CPUS);
	sums->cut += window_sum(f, 0, 0, "cut") + window_sum(f, 1, 0, "cut");
	sums->calls += window_sum(f, 1, 0, "calls");
	sums->time += window_sum(f, 1, 0, "total");
	sums->call_open += window_sum(f, 1, 0, "open");
	assert_int_equal(window_sum(f, 2, 0, "count"), f->window.events);
	sums->events += f->window.events;
	sums->span += f->window.span_ns;
	sums->windows++;
	assert_int_equal(f->window.lost + f->window.gaps, 0);
}

static void live_sum(const struct buf *frames, struct live_sums *ret)
{
	struct buf rest = *frames;
	struct frame_header h;
	const char *data;

	*ret = (struct live_sums){ 0 };
	while (rest.len) {
		struct frame_tables f = { 0 };

		assert_int_equal(frame_next(&rest, &h, &data), 1);
		assert_int_equal(h.kind, FRAME_WINDOW);
		assert_int_equal(frame_take(&f, data, h.len), 0);
		live_add(ret, &f);
		frame_tables_deinit(&f);
		rest.data += sizeof(h) + h.len;
		rest.len -= sizeof(h) + h.len;
	}
}

static void windows_add_up_to_the_whole(void **state _unused_)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		_cleanup_buf_ struct buf frames = BUF_INIT;
		static struct live_run run;
		struct live_sums sums;
		struct maker m;
		json_t *whole;

		live_simulate(&run, seed);
		live_record(&m, &run);
		live_follow(m.fd, &frames);
		live_sum(&frames, &sums);
		whole = live_whole(m.fd);
		for (int32_t i = 0; i < TASKS; i++) {
			assert_int_equal(sums.runtime[i],
					 whole_sum(whole, 0, TID + i, "runtime_ns"));
			assert_int_equal(sums.runs[i], whole_sum(whole, 0, TID + i, "runs"));
			assert_int_equal(sums.migrations[i],
					 whole_sum(whole, 0, TID + i, "migrations"));
		}
		assert_int_equal(sums.calls, whole_sum(whole, 1, 0, "calls"));
		assert_int_equal(sums.time, whole_sum(whole, 1, 0, "total_ns"));
		assert_true(sums.calls > 50);
		assert_int_equal(sums.cut, 0);
		assert_int_equal(sums.events, run.count);
		assert_int_equal(sums.span, run.ts - run.steps[0].ts);
		assert_true(sums.windows > PERIODS / REPORT_WINDOW_FLUSHES - 2);
		json_decref(whole);
		maker_deinit(&m);
	}
}

/* The task's longest run is shown in each of its windows, not in the last one only. */
static void a_run_counts_while_it_goes_on(void **state _unused_)
{
	_cleanup_buf_ struct buf frames = BUF_INIT;
	struct live_run run = { .ts = FIRST_TS };
	unsigned with_task = 0;
	struct frame_header h;
	struct maker m;
	const char *data;
	struct buf rest;

	live_step(&run, ID_SWITCH, 0, TID, 0);
	run.runs[0] = TID;
	for (size_t i = 0; i < PERIODS; i++) {
		run.ts += 500000000;
		live_step(&run, ID_WAKING, 1, TID + 1, 0);
		run.period_ends[i] = run.count;
	}
	run.period_ends[PERIODS] = run.count;
	live_record(&m, &run);
	live_follow(m.fd, &frames);
	for (rest = frames; rest.len;) {
		struct frame_tables f = { 0 };

		assert_int_equal(frame_next(&rest, &h, &data), 1);
		assert_int_equal(frame_take(&f, data, h.len), 0);
		assert_int_equal(window_sum(&f, 0, TID, "runtime"), f.window.span_ns);
		assert_int_equal(window_sum(&f, 0, TID, "runs"), 0);
		with_task += f.window.span_ns > 0;
		frame_tables_deinit(&f);
		rest.data += sizeof(h) + h.len;
		rest.len -= sizeof(h) + h.len;
	}
	assert_true(with_task > PERIODS / REPORT_WINDOW_FLUSHES - 2);
	maker_deinit(&m);
}

/* A part of the stream was freed, as of a spool that an exporter followed: what it cuts is cut. */
static void a_freed_part_cuts(void **state _unused_)
{
	const struct step steps[] = {
		{ FIRST_TS, 0, 0, TID, ID_SWITCH, 0 },
		{ FIRST_TS + 1000, 1, 0, TID + 1, ID_WAKING, 0 },
		{ FIRST_TS + 2000, 1, 0, TID + 2, ID_WAKING, 0 },
		{ FIRST_TS + 3000, 0, TID, 0, ID_SWITCH, 1 },
	};
	static struct live_run run;
	uint64_t from = 0, to = 0;
	struct maker m;
	json_t *whole;

	memcpy(run.steps, steps, sizeof(steps));
	live_record_head(&m);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		live_put_period(&m, &run, i, i + 1);
		to = i == 1 ? (uint64_t)lseek(m.fd, 0, SEEK_END) : to;
		from = i == 0 ? (uint64_t)lseek(m.fd, 0, SEEK_END) : from;
	}
	maker_end(&m);
	whole = live_whole(m.fd);
	assert_int_equal(whole_sum(whole, 0, TID, "runtime_ns"), 3000);
	assert_int_equal(whole_sum(whole, 0, TID, "cut"), 0);
	json_decref(whole);
	assert_int_equal(fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
				   (off_t)(to - from)),
			 0);
	whole = live_whole(m.fd);
	assert_int_equal(whole_sum(whole, 0, TID, "runtime_ns"), 0);
	/* Its wait before is cut, too: of the other CPU nothing is known until then. */
	assert_int_equal(whole_sum(whole, 0, TID, "cut"), 2);
	json_decref(whole);
	maker_deinit(&m);
}

static void live_show_all(struct frame_tables *f)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	for (size_t i = 0; i < f->count; i++) {
		const struct report_options options = { .match = "a", .top = 3 };
		const struct table_view view = { .width = 70, .rows = 20 };

		assert_int_equal(table_arrange(f->tables[i], &options, NULL), 0);
		table_write_fitted(f->tables[i], &view, &text);
		assert_int_equal(
			table_write(f->tables[i], &(struct report_options){ 0 }, true, &text, NULL),
			0);
	}
	for (size_t i = 0; i < text.len; i++)
		assert_true(text.data[i] == '\n' || (unsigned char)text.data[i] >= ' ');
}

static void changed_frames_do_no_harm(void **state _unused_)
{
	_cleanup_buf_ struct buf frames = BUF_INIT;
	static struct live_run run;
	uint64_t series = RANDOM_FIRST;
	struct frame_header h;
	unsigned taken = 0;
	struct maker m;
	const char *data;

	live_simulate(&run, 1);
	live_record(&m, &run);
	live_follow(m.fd, &frames);
	assert_int_equal(frame_next(&frames, &h, &data), 1);
	for (unsigned round = 0; round < 20000; round++) {
		/* The copy has its exact size: sanitizers see what is read beyond. */
		size_t len = round % 4 ? h.len : random_next(&series) % h.len;
		_cleanup_free_ char *copy = malloc(len + !len);
		struct frame_tables f = { 0 };

		memcpy(copy, data, len);
		for (unsigned i = 0; len && i < 1 + round % 8; i++)
			copy[random_next(&series) % len] = (char)random_next(&series);
		if (frame_take(&f, copy, len) == 0) {
			live_show_all(&f);
			taken++;
		}
		frame_tables_deinit(&f);
	}
	assert_true(taken > 1000 && taken < 19000);
	maker_deinit(&m);
}

/* A session with 16 histograms has a table of each, beside those of other reports. */
static void histograms_have_a_table_each(void **state _unused_)
{
	static const struct column columns[] = { COLUMN("hitcount", COLUMN_COUNT) };
	const struct frame_window window = { .tables = FRAME_TABLES_MAX };
	const struct report_options options = { .form = REPORT_FRAME };
	_cleanup_buf_ struct buf frame = BUF_INIT;
	struct frame_tables f = { 0 };

	assert_true(FRAME_TABLES_MAX >= 2 * 16);
	buf_append(&frame, &window, sizeof(window));
	for (size_t i = 0; i < FRAME_TABLES_MAX; i++) {
		_cleanup_(table_freep) struct table *table = NULL;

		assert_int_equal(table_new(&table, "hist", columns, 1, "hitcount"), 0);
		table_put_count(table, i);
		if (i % 2)
			table_counts_on(table);
		assert_int_equal(table_write(table, &options, true, &frame, NULL), 0);
	}
	assert_int_equal(frame_take(&f, frame.data, frame.len), 0);
	assert_int_equal(f.count, FRAME_TABLES_MAX);
	for (size_t i = 0; i < f.count; i++)
		assert_int_equal(f.tables[i]->counts_on, i % 2);
	frame_tables_deinit(&f);
}

static void a_frame_comes_in_parts(void **state _unused_)
{
	_cleanup_buf_ struct buf all = BUF_INIT;
	struct frame_header h;
	const char *data;

	frame_put(&all, FRAME_FAILED, "why", 4);
	for (size_t len = 0; len < all.len; len++)
		assert_int_equal(
			frame_next(&(struct buf){ .data = all.data, .len = len }, &h, &data), 0);
	assert_int_equal(frame_next(&all, &h, &data), 1);
	assert_int_equal(h.len, 4);
	assert_string_equal(data, "why");
	h.len = FRAME_MAX + 1;
	memcpy(all.data, &h, sizeof(h));
	assert_int_equal(frame_next(&all, &h, &data), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_add_up_to_the_whole),
		cmocka_unit_test(a_run_counts_while_it_goes_on),
		cmocka_unit_test(a_freed_part_cuts),
		cmocka_unit_test(changed_frames_do_no_harm),
		cmocka_unit_test(histograms_have_a_table_each),
		cmocka_unit_test(a_frame_comes_in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
