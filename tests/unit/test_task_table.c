/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/task_table.h"

#define S UINT64_C(1000000000)

static void reading(struct task_table *t, int32_t tid, int32_t tgid, uint64_t ts, uint64_t start,
		    const char *comm, bool weak)
{
	struct task_reading r = {
		.tid = tid,
		.tgid = tgid,
		.ts = ts,
		.start_ns = start,
		.start_ts = start,
		.weak = weak,
		.comm = comm,
		.comm_len = strlen(comm),
	};

	assert_int_equal(task_table_read(t, &r), 0);
}

static void birth(struct task_table *t, int32_t creator, int32_t tid, uint64_t ts, uint64_t flags,
		  const char *comm)
{
	struct task_birth b = {
		.tid = tid,
		.creator = creator,
		.ts = ts,
		.start_ns = ts,
		.clone_flags = flags,
		.comm = comm,
		.comm_len = strlen(comm),
	};

	assert_int_equal(task_table_birth(t, &b), 0);
}

static const char *name(struct task_table *t, int32_t tid, uint64_t ts)
{
	struct task *task = task_table_find(t, tid, ts);

	return task ? task->comm : NULL;
}

static struct task_table *new_table(void)
{
	struct task_table *t;

	assert_int_equal(task_table_new(&t), 0);
	return t;
}
#define _cleanup_table_ _cleanup_(task_table_freep)

static void a_life_has_its_last_name_throughout(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	reading(t, 10, 10, 5 * S, 1 * S, "first", false);
	assert_int_equal(task_table_rename(t, 10, 6 * S, NULL, 0, "second", 6), 0);
	/* A message with an earlier time no longer counts. */
	assert_int_equal(task_table_rename(t, 10, 4 * S, NULL, 0, "zeroth", 6), 0);
	assert_string_equal(name(t, 10, 0), "second");
	assert_string_equal(name(t, 10, 9 * S), "second");
	reading(t, 10, 10, 8 * S, 1 * S, "third", false);
	assert_string_equal(name(t, 10, 1 * S), "third");
}

static void a_tid_is_used_again(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();
	struct task *const *all;
	size_t count;

	reading(t, 10, 10, 5 * S, 1 * S, "old", false);
	birth(t, 1, 10, 7 * S, 0, "parent");
	assert_int_equal(task_table_rename(t, 10, 7 * S + 1, NULL, 0, "new", 3), 0);
	assert_string_equal(name(t, 10, 7 * S - 1), "old");
	assert_string_equal(name(t, 10, 7 * S), "new");
	assert_int_equal(task_table_until(task_table_find(t, 10, 0)), 7 * S);
	assert_int_equal(task_table_until(task_table_find(t, 10, 8 * S)), UINT64_MAX);
	assert_true(task_is_oldest(task_table_find(t, 10, 0)));
	/* A third task, whose birth was not recorded: /proc has another start time. */
	reading(t, 10, 10, 20 * S, 12 * S, "third", false);
	assert_string_equal(name(t, 10, 12 * S - 1), "new");
	assert_string_equal(name(t, 10, 12 * S), "third");
	all = task_table_all(t, &count);
	assert_int_equal(count, 3);
	assert_string_equal(all[0]->comm, "old");
	assert_string_equal(all[2]->comm, "third");
}

/* procfs was read while the task was being born: one life, which starts at its birth. */
static void a_reading_just_before_the_birth_is_the_same_life(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();
	size_t count;

	reading(t, 10, 10, 5 * S, 5 * S - 3000000, "x", false);
	birth(t, 1, 10, 5 * S + 1000, 0, "parent");
	task_table_all(t, &count);
	assert_int_equal(count, 1);
	assert_string_equal(name(t, 10, 6 * S), "parent");
}

static void threads_belong_to_their_creators_process(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	reading(t, 10, 10, 1 * S, 1 * S, "main", false);
	birth(t, 10, 11, 2 * S, 0x10000, "main");
	birth(t, 11, 12, 3 * S, 0x10000, "main");
	birth(t, 12, 13, 4 * S, 0, "main");
	birth(t, 2, 14, 5 * S, 0, "kthreadd");
	assert_int_equal(task_table_find(t, 11, 2 * S)->tgid, 10);
	assert_int_equal(task_table_find(t, 12, 3 * S)->tgid, 10);
	assert_int_equal(task_table_find(t, 13, 4 * S)->tgid, 13);
	assert_int_equal(task_table_find(t, 13, 4 * S)->ppid, 10);
	assert_true(task_table_find(t, 14, 5 * S)->kthread);
	assert_false(task_table_find(t, 13, 5 * S)->kthread);
}

/* A thread that ran before the recording makes a process, and is read later. */
static void parents_are_processes(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	birth(t, 11, 12, 2 * S, 0, "child");
	assert_int_equal(task_table_parent(t, task_table_find(t, 12, 2 * S)), 11);
	reading(t, 11, 10, 3 * S, 1 * S, "thread", false);
	assert_int_equal(task_table_parent(t, task_table_find(t, 12, 2 * S)), 10);
	/* Its tid is another process's later. */
	birth(t, 1, 11, 4 * S, 0, "other");
	assert_int_equal(task_table_parent(t, task_table_find(t, 12, 2 * S)), 10);
	birth(t, 11, 13, 5 * S, 0, "child");
	assert_int_equal(task_table_parent(t, task_table_find(t, 13, 5 * S)), 11);
	/* A first task has no birth. */
	assert_int_equal(task_table_parent(t, task_table_find(t, 11, 2 * S)), 0);
}

static void weak_names_give_way(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	reading(t, 10, 0, 9 * S, 0, "saved", true);
	assert_string_equal(name(t, 10, 0), "saved");
	reading(t, 10, 10, 1 * S, 1 * S, "proc", false);
	assert_string_equal(name(t, 10, 0), "proc");
	reading(t, 10, 0, 10 * S, 0, "saved", true);
	assert_string_equal(name(t, 10, 0), "proc");
	assert_int_equal(task_table_name(t, 10, 11 * S, "event", 5), 0);
	assert_string_equal(name(t, 10, 0), "proc");
	assert_int_equal(task_table_name(t, 20, 11 * S, "event", 5), 0);
	assert_int_equal(task_table_name(t, 20, 12 * S, "later", 5), 0);
	assert_string_equal(name(t, 20, 0), "later");
}

/* Lines may already be written: a search adds names, and changes none. */
static void a_search_changes_no_name(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	reading(t, 10, 0, 1 * S, 0, "saved", true);
	assert_int_equal(task_table_death(t, 20, 2 * S, "freed", 5), 0);
	assert_int_equal(task_table_name(t, 10, 3 * S, "event", 5), 0);
	assert_int_equal(task_table_name(t, 20, 3 * S, "event", 5), 0);
	assert_string_equal(name(t, 10, 0), "saved");
	assert_string_equal(name(t, 20, 0), "freed");
	/* CPU by CPU, not in order of time. */
	assert_int_equal(task_table_name(t, 30, 4 * S, "last", 4), 0);
	assert_int_equal(task_table_name(t, 30, 3 * S, "event", 5), 0);
	assert_string_equal(name(t, 30, 0), "last");
}

static int fills;

static void fill(void *userdata)
{
	fills++;
	assert_int_equal(task_table_name(userdata, 30, 0, "found", 5), 0);
}

static void unknown_tids_are_searched_once(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	fills = 0;
	reading(t, 10, 10, 1 * S, 1 * S, "known", false);
	task_table_set_filler(t, fill, t);
	assert_string_equal(name(t, 10, 0), "known");
	assert_int_equal(fills, 0);
	assert_string_equal(name(t, 30, 0), "found");
	assert_null(name(t, 31, 0));
	assert_int_equal(fills, 1);
}

static void many_tids(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();
	char comm[16];
	size_t count;

	for (int32_t i = 1; i <= 100000; i++) {
		snprintf(comm, sizeof(comm), "t%d", i);
		birth(t, 1, i, (uint64_t)i * S, 0, comm);
	}
	for (int32_t i = 1; i <= 100000; i += 997) {
		snprintf(comm, sizeof(comm), "t%d", i);
		assert_string_equal(name(t, i, UINT64_MAX), comm);
	}
	task_table_all(t, &count);
	assert_int_equal(count, 100000);
}

static void reading_of_process(struct task_table *t, int32_t pid, int32_t parent,
			       const char *cmdline)
{
	struct task_reading r = {
		.tid = pid,
		.tgid = pid,
		.ppid = parent,
		.ts = S,
		.start_ns = S,
		.start_ts = S,
		.comm = "shell",
		.comm_len = 5,
		.cmdline = cmdline,
		.cmdline_len = strlen(cmdline) + 1,
	};

	assert_int_equal(task_table_read(t, &r), 0);
}

/* A command that was held until the recording began; a process that names its main thread. */
static void a_new_program_has_its_own_arguments(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	reading_of_process(t, 10, 1, "shell");
	reading_of_process(t, 20, 10, "shell");
	reading_of_process(t, 30, 10, "server");
	assert_int_equal(task_table_rename(t, 20, 2 * S, NULL, 0, "command", 7), 0);
	assert_int_equal(task_table_rename(t, 30, 2 * S, NULL, 0, "main thread", 11), 0);
	assert_null(task_table_find(t, 20, 2 * S)->cmdline);
	assert_string_equal(task_table_find(t, 30, 2 * S)->cmdline, "server");
	/* A later reading of procfs gives its own arguments. */
	reading_of_process(t, 20, 10, "command");
	assert_string_equal(task_table_find(t, 20, 2 * S)->cmdline, "command");
}

static size_t lives(struct task_table *t)
{
	size_t count;

	assert_non_null(task_table_all(t, &count));
	return count;
}

static void ended_tasks_are_forgotten(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();
	struct task *task;

	reading(t, 10, 10, 1 * S, 1 * S, "stays", false);
	birth(t, 10, 20, 2 * S, 0, "ends");
	birth(t, 10, 30, 3 * S, 0, "last");
	assert_int_equal(task_table_death(t, 20, 4 * S, NULL, 0), 0);
	assert_int_equal(task_table_death(t, 99, 4 * S, NULL, 0), 0);
	task = task_table_find(t, 20, 3 * S);
	assert_false(task_table_is_gone(task, 4 * S));
	assert_true(task_table_is_gone(task, 5 * S));
	task_table_forget(t, 5 * S - 1);
	assert_string_equal(name(t, 20, 3 * S), "ends");
	task_table_forget(t, 5 * S);
	assert_null(name(t, 20, 3 * S));
	assert_string_equal(name(t, 10, 3 * S), "stays");
	assert_int_equal(lives(t), 2);

	/* The last task that became known stays until another becomes known. */
	assert_int_equal(task_table_death(t, 30, 6 * S, NULL, 0), 0);
	task_table_forget(t, 9 * S);
	assert_string_equal(name(t, 30, 6 * S), "last");
	birth(t, 10, 40, 9 * S, 0, "next");
	task_table_forget(t, 9 * S);
	assert_null(name(t, 30, 6 * S));
	assert_ptr_equal(task_table_next(t, NULL), task_table_find(t, 10, 0));
	assert_ptr_equal(task_table_next(t, task_table_find(t, 10, 0)), task_table_find(t, 40, 0));
}

/* Small systems reuse a number before the kernel has freed its task. */
static void a_late_death_is_the_former_ones(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	birth(t, 1, 20, 2 * S, 0, "former");
	birth(t, 1, 20, 3 * S, 0, "present");
	assert_int_equal(task_table_death(t, 20, 3 * S + 5, NULL, 0), 0);
	assert_false(task_table_is_gone(task_table_find(t, 20, 4 * S), 9 * S));
	assert_true(task_table_is_gone(task_table_find(t, 20, 2 * S), 9 * S));
	task_table_forget(t, 9 * S);
	assert_int_equal(lives(t), 1);
	assert_string_equal(name(t, 20, 2 * S), "present");
	assert_int_equal(task_table_death(t, 20, 9 * S, NULL, 0), 0);
	assert_true(task_table_is_gone(task_table_find(t, 20, 4 * S), 10 * S));
}

/* The task ended before procfs was read: only its end has its name. */
static void an_end_names_a_nameless_task(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	assert_int_equal(task_table_death(t, 20, 2 * S, "unread", 6), 0);
	assert_string_equal(name(t, 20, 1 * S), "unread");
	assert_true(task_table_is_gone(task_table_find(t, 20, 1 * S), 4 * S));
	birth(t, 1, 20, 3 * S, 0, "next");
	assert_string_equal(name(t, 20, 1 * S), "unread");
	assert_string_equal(name(t, 20, 3 * S), "next");

	reading(t, 10, 10, 1 * S, 1 * S, "read", false);
	assert_int_equal(task_table_death(t, 10, 2 * S, "told", 4), 0);
	assert_string_equal(name(t, 10, 1 * S), "read");
	/* Again, for a life that nothing else reported. */
	assert_int_equal(task_table_death(t, 10, 3 * S, "other", 5), 0);
	assert_int_equal(lives(t), 3);
}

/* In a table nearly full of runs, each remaining task is still found. */
static void holes_hide_no_task(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();
	char comm[16];

	for (int32_t i = 1; i <= 60000; i++) {
		snprintf(comm, sizeof(comm), "t%d", i);
		birth(t, 1, i, S, 0, comm);
		if (i % 7)
			assert_int_equal(task_table_death(t, i, 2 * S, NULL, 0), 0);
	}
	task_table_forget(t, 4 * S);
	assert_int_equal(lives(t), 60000 / 7 + 1);
	for (int32_t i = 1; i < 60000; i++) {
		snprintf(comm, sizeof(comm), "t%d", i);
		if (i % 7)
			assert_null(name(t, i, S));
		else
			assert_string_equal(name(t, i, S), comm);
	}
}

static void long_names_are_cut(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();
	char comm[201];

	memset(comm, 'n', 200);
	comm[200] = '\0';
	reading(t, 10, 10, 1 * S, 1 * S, comm, false);
	assert_int_equal(strlen(name(t, 10, 0)), 63);
}

/* A hostile stream dates a life far ahead, and its end before. */
static void a_life_does_not_end_before_it_begins(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();
	struct task *const *all;
	size_t count;

	reading(t, 10, 10, 1, 1, "first", false);
	assert_int_equal(task_table_death(t, 10, 1 * S, NULL, 0), 0);
	reading(t, 10, 10, 2 * S, 1000 * S, "ahead", false);
	reading(t, 10, 10, 3 * S, 3 * S, "present", false);
	all = task_table_all(t, &count);
	assert_int_equal(count, 3);
	assert_string_equal(all[2]->comm, "ahead");
	assert_int_equal(task_table_gone(all[2]), 1000 * S);
	task_table_forget(t, 10 * S);
	assert_int_equal(lives(t), 2);
}

/* The first of three lives is forgotten without an end; the second has one. */
static void a_death_is_not_that_of_an_ended_life(void **state _unused_)
{
	_cleanup_table_ struct task_table *t = new_table();

	birth(t, 1, 10, 1 * S, 0, "first");
	birth(t, 1, 10, 2 * S, 0, "second");
	reading(t, 10, 10, 5 * S, 4 * S + S / 2, "third", false);
	task_table_forget(t, 3 * S + S / 2);
	assert_int_equal(lives(t), 2);
	assert_int_equal(task_table_death(t, 10, 6 * S, NULL, 0), 0);
	assert_int_equal(task_table_gone(task_table_find(t, 10, 6 * S)), 6 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_life_has_its_last_name_throughout),
		cmocka_unit_test(a_tid_is_used_again),
		cmocka_unit_test(a_reading_just_before_the_birth_is_the_same_life),
		cmocka_unit_test(threads_belong_to_their_creators_process),
		cmocka_unit_test(parents_are_processes),
		cmocka_unit_test(weak_names_give_way),
		cmocka_unit_test(a_search_changes_no_name),
		cmocka_unit_test(unknown_tids_are_searched_once),
		cmocka_unit_test(many_tids),
		cmocka_unit_test(a_new_program_has_its_own_arguments),
		cmocka_unit_test(ended_tasks_are_forgotten),
		cmocka_unit_test(a_late_death_is_the_former_ones),
		cmocka_unit_test(an_end_names_a_nameless_task),
		cmocka_unit_test(holes_hide_no_task),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(a_life_does_not_end_before_it_begins),
		cmocka_unit_test(a_death_is_not_that_of_an_ended_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
