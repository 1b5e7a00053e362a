/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report's memory is bounded, whatever the number of tasks. */
#include <fcntl.h>
#include <jansson.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/export.h"
#include "make_formats.h"
#include "make_many.h"
#include "memory_file.h"
#include "report/report.h"

#define TASKS 100000
#define NAMES 40
#define MEMORY_MAX_KIB (64 << 10)
#define SLICES_MAX_KIB (96 << 10)
#define TASKS_PER_PAGE 5
#define TASKS_PER_CHUNK (16 * TASKS_PER_PAGE)
#define FIRST_TID 100
#define FIRST_TS (UINT64_C(50) * 1000000000)
/* A task's share of the time: it waits 1 us and runs 2 us, in which it makes a call and a slice. */
#define TASK_NS 10000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static void put_waking(struct maker *m, uint64_t ts, int32_t tid, const char name[static 16])
{
	_cleanup_buf_ struct buf data = BUF_INIT;

	buf_append(&data, name, 16);
	maker_u32(m, &data, (uint32_t)tid);
	maker_u32(m, &data, 120);
	maker_u32(m, &data, 0);
	maker_event(m, ts, ID_WAKING, 0, data.data, data.len);
}

static void put_call(struct maker *m, uint64_t ts, int32_t tid)
{
	const uint64_t words[7] = { 1 };

	maker_event(m, ts, ID_ENTER, tid, words, sizeof(words));
	maker_event(m, ts + 500, ID_EXIT, tid, words, 2 * sizeof(*words));
}

static void name_task(char name[static 16], int32_t tid)
{
	memset(name, 0, 16);
	snprintf(name, 16, "name-%d", (int)(tid % NAMES));
}

static void end_of_task(struct maker *m, int32_t i, uint32_t buffer)
{
	if ((i + 1) % TASKS_PER_PAGE == 0)
		page_end(m, 0);
	if ((i + 1) % TASKS_PER_CHUNK == 0)
		maker_flush(m, 0, buffer, 0);
}

/* In the buffer that the recorder has for this. */
static void put_births(struct maker *m, bool ends)
{
	for (int32_t i = 0; i < TASKS; i++) {
		uint64_t ts = FIRST_TS + (uint64_t)i * TASK_NS;
		char name[16];

		name_task(name, FIRST_TID + i);
		if (i % TASKS_PER_PAGE == 0)
			page_begin(m, ts);
		event_newtask(m, ts, 1, FIRST_TID + i, name, 0);
		if (ends)
			event_free(m, ts + 5000, FIRST_TID + i, name);
		end_of_task(m, i, BUFFER_TASKS);
	}
}

static void put_life(struct maker *m, uint64_t ts, int32_t tid, bool ends)
{
	char name[16], mark[32];

	name_task(name, tid);
	put_waking(m, ts + 1000, tid, name);
	event_switch(m, ts + 2000, 0, "swapper", 0, 120, tid, name);
	put_call(m, ts + 2500, tid);
	snprintf(mark, sizeof(mark), "B|%d|slice\n", tid);
	event_print_mark(m, ts + 3200, tid, mark);
	event_print_mark(m, ts + 3300, tid, "E\n");
	event_switch(m, ts + 4000, tid, name, ends ? 0x10 : 1, 120, 0, "swapper");
}

static void make_recording(struct maker *m, bool ends)
{
	maker_begin(m, 4096);
	maker_kernel_formats(m);
	maker_free_format(m);
	put_births(m, ends);
	for (int32_t i = 0; i < TASKS; i++) {
		uint64_t ts = FIRST_TS + (uint64_t)i * TASK_NS;

		if (i % TASKS_PER_PAGE == 0)
			page_begin(m, ts);
		put_life(m, ts, FIRST_TID + i, ends);
		end_of_task(m, i, BUFFER_MAIN);
	}
	maker_end(m);
}

/* With these arguments the program is a report of its input, and checks its own peak. It has no
 * memory of the tests, as a process has that was only forked. */
#define OWN_PROCESS "--report"
enum { ARG_MAX_KIB = 2, ARG_FORM, ARG_BY, ARG_SORT, ARG_TASK, ARG_NAMES };

static const char *given(const char *arg)
{
	return *arg ? arg : NULL;
}

/* The peak since execve(); getrusage() keeps an earlier one. */
static long peak_kib(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	assert_non_null(status);
	while (kib < 0 && fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %ld", &kib);
	fclose(status);
	return kib;
}

static int report_itself(int argc, char *argv[])
{
	const struct report_options o = {
		.names = (const char *const *)argv + ARG_NAMES,
		.count = (size_t)(argc - ARG_NAMES),
		.form = (enum report_form)atoi(argv[ARG_FORM]),
		.by = given(argv[ARG_BY]),
		.sort = given(argv[ARG_SORT]),
		.task = given(argv[ARG_TASK]),
	};
	const struct export_options options = { .format = "report", .report = &o };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	long kib;
	int r;

#ifdef M_PERTURB
	/* Meson's tests set it: it touches all memory, used or not. */
	mallopt(M_PERTURB, 0);
#endif
	r = export_run(&report_sink_ops, STDIN_FILENO, STDOUT_FILENO, &options, &result, &err);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", *o.names, err.message);
	kib = peak_kib();
	if (kib < 0 || kib > atol(argv[ARG_MAX_KIB])) {
		fprintf(stderr, "%s by %s, sorted by %s: %ld KiB\n", *o.names, argv[ARG_BY],
			argv[ARG_SORT], kib);
		return 1;
	}
	return r < 0;
}

static void execute_report(int capture, int out, const struct report_options *o, long max_kib)
{
	char form[] = { (char)('0' + o->form), '\0' }, max[24];
	const char *argv[ARG_NAMES + 3] = { "report",	 OWN_PROCESS,	max,	      form,
					    o->by ?: "", o->sort ?: "", o->task ?: "" };

	snprintf(max, sizeof(max), "%ld", max_kib);
	memcpy(argv + ARG_NAMES, o->names, o->count * sizeof(*o->names));
	if (dup2(capture, STDIN_FILENO) == STDIN_FILENO &&
	    dup2(out, STDOUT_FILENO) == STDOUT_FILENO)
		execv("/proc/self/exe", (char *const *)argv);
	_exit(127);
}

static void check_peak(int capture, int out, const struct report_options *o, long max_kib)
{
	pid_t child;
	int status;

	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		execute_report(capture, out, o, max_kib);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void check_table(int capture, const struct report_options *o, long max_kib, json_t **ret)
{
	_cleanup_close_ int out = memory_file("", 0);
	_cleanup_buf_ struct buf text = BUF_INIT;
	json_t *document;

	check_peak(capture, out, o, max_kib);
	memory_file_read(out, &text);
	document = json_loads(text.data, 0, NULL);
	assert_non_null(document);
	*ret = json_incref(json_array_get(json_object_get(document, "reports"), 0));
	json_decref(document);
}

static void check(int capture, const char *name, const char *by, long max_kib, json_t **ret)
{
	const struct report_options o = {
		.names = &name,
		.count = 1,
		.by = by,
		.form = REPORT_JSON,
		.task = strcmp(name, "critpath") ? NULL : "100",
	};

	check_table(capture, &o, max_kib, ret);
}

static uint64_t sum_of(const json_t *table, const char *key, const char *part)
{
	uint64_t sum = 0;
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		const json_t *value = json_object_get(row, key);

		sum += (uint64_t)json_integer_value(part ? json_object_get(value, part) : value);
	}
	return sum;
}

/* The count in the row of that name; 0: there is none. */
static uint64_t count_of(const json_t *table, const char *key, const char *name)
{
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, key)), name))
			return (uint64_t)json_integer_value(json_object_get(row, "count"));
	}
	return 0;
}

static bool has_note(const json_t *table, const char *text)
{
	size_t i;
	json_t *note;

	json_array_foreach(json_object_get(table, "notes"), i,
			   note) if (strstr(json_string_value(note), text)) return true;
	return false;
}

static void check_all(int capture, bool ends)
{
	static const struct {
		const char *name, *by, *key, *part;
		bool folds;
		uint64_t sum; /* for each task */
	} cases[] = {
		{ "cpus", NULL, "runs", NULL, false, 0 },
		{ "delays", NULL, "delay_ns", NULL, false, 0 },
		{ "sched", "thread", "delay", "sum_ns", true, 1000 },
		{ "sched", "process", "runtime_ns", NULL, true, 2000 },
		{ "runq", "thread", "count", NULL, true, 1 },
		{ "blame", "thread", "time_ns", NULL, true, 1000 },
		{ "syscalls", "thread", "calls", NULL, true, 1 },
		{ "syscalls", "call", "calls", NULL, false, 1 },
		{ "marks", NULL, "count", NULL, false, 1 },
		{ "offcpu", "thread", "count", NULL, true, 0 },
		{ "critpath", NULL, "time_ns", NULL, false, 0 },
		{ "timehist", NULL, "run_ns", NULL, false, 2000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *table;
		uint64_t sum;

		/* Each thread that did not end may still have slices. */
		check(capture, cases[i].name, cases[i].by,
		      !ends && !strcmp(cases[i].name, "marks") ? SLICES_MAX_KIB : MEMORY_MAX_KIB,
		      &table);
		sum = cases[i].sum ? sum_of(table, cases[i].key, cases[i].part) : 0;
		if (sum != cases[i].sum * TASKS)
			fail_msg("%s: %llu", cases[i].name, (unsigned long long)sum);
		if (cases[i].folds && !has_note(table, "share 40 rows by name"))
			fail_msg("%s does not say what was folded", cases[i].name);
		if (!strcmp(cases[i].name, "critpath") &&
		    !has_note(table, "spans of all threads are known"))
			fail_msg("critpath does not say what it forgot");
		json_decref(table);
	}
}

static void tasks_that_end(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	if (SANITIZED)
		skip();
	make_recording(&m, true);
	check_all(m.fd, true);
}

static void tasks_that_stay(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	if (SANITIZED)
		skip();
	make_recording(&m, false);
	check_all(m.fd, false);
}

/* Few tasks can make many pairs, and a stream has more CPUs than its head says. */
static void pairs_of_tasks(void **state _unused_)
{
	static const char *const names[] = { "blame", "offcpu" };
	_cleanup_(maker_deinit) struct maker m;

	if (SANITIZED)
		skip();
	maker_init(&m, 8, false, 4096);
	many_put(&m, many_find("sched"), 512, 3000000);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *table;

		check(m.fd, names[i], "thread", MEMORY_MAX_KIB, &table);
		assert_true(sum_of(table, "count", NULL) > 100000);
		/* Only sleepers and wakers make more pairs than there are rows. */
		if (!strcmp(names[i], "offcpu"))
			assert_true(count_of(table, "task", "(others)") > 0);
		json_decref(table);
	}
}

/* Thousands of tasks wait for one CPU: most pairs share a row, which has the sum of the others. */
static void pairs_that_share_a_row(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	json_t *blame, *sched;

	if (SANITIZED)
		skip();
	maker_init(&m, 8, false, 4096);
	many_put(&m, many_find("sched"), 1, 1000000);
	check(m.fd, "blame", "thread", MEMORY_MAX_KIB, &blame);
	check(m.fd, "sched", "thread", MEMORY_MAX_KIB, &sched);
	assert_true(count_of(blame, "waiter", "(others)") > 1000000);
	assert_int_equal(sum_of(blame, "time_ns", NULL), sum_of(sched, "delay", "sum_ns"));
	json_decref(blame);
	json_decref(sched);
}

#define RUNS_KEPT 100000

/* Two of three events are switches of tasks, whose rows are written, or of which some are kept. */
static void rows_of_runs(void **state _unused_)
{
	static const char *const names[] = { "timehist" }, *const two[] = { "runq", "timehist" };
	static const enum report_form forms[] = { REPORT_TEXT, REPORT_JSON, REPORT_CSV };
	struct report_options o = { .names = names, .count = 1 };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	json_t *table;

	if (SANITIZED)
		skip();
	maker_init(&m, 8, false, 4096);
	many_put(&m, many_find("sched"), 512, 3000000);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		o.form = forms[i];
		check_peak(m.fd, null, &o, MEMORY_MAX_KIB);
	}
	o.form = REPORT_JSON;
	o.sort = "run";
	check_table(m.fd, &o, MEMORY_MAX_KIB, &table);
	assert_int_equal(json_array_size(json_object_get(table, "rows")), RUNS_KEPT);
	assert_true(has_note(table, "100000 of 19"));
	json_decref(table);
	/* Behind another table, the first runs. */
	o = (struct report_options){ .names = two, .count = 2 };
	check_peak(m.fd, null, &o, MEMORY_MAX_KIB);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_that_end), cmocka_unit_test(tasks_that_stay),
		cmocka_unit_test(pairs_of_tasks), cmocka_unit_test(pairs_that_share_a_row),
		cmocka_unit_test(rows_of_runs),
	};

	return argc > ARG_NAMES && !strcmp(argv[1], OWN_PROCESS)
		       ? report_itself(argc, argv)
		       : cmocka_run_group_tests(tests, NULL, NULL);
}
