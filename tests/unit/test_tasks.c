/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tasks, clocks and counts in a stream. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/clocks.h"
#include "daemon/capture/names/tasks.h"
#include "daemon/capture/report.h"
#include "daemon/capture/rings/ring.h"
#include "fake_capture.h"
#include "proto/capture.pb-c.h"
#include "stream/reader.h"

/* All tasks of the stream's TASKS chunks; the index-th message in *ret. */
static unsigned read_tasks(struct fake_capture *f, Traced__Capture__Tasks **ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_reader reader;
	struct chunk chunk;
	unsigned n = 0;

	*ret = NULL;
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		if (chunk.type != CHUNK_TASKS)
			continue;
		assert_int_equal(stream_reader_load(&reader, &chunk, &b, NULL), 0);
		if (*ret)
			traced__capture__tasks__free_unpacked(*ret, NULL);
		*ret = traced__capture__tasks__unpack(NULL, b.len, (uint8_t *)b.data);
		assert_non_null(*ret);
		n += (unsigned)(*ret)->n_tasks;
	}
	return n;
}

static void stat_lines(void **state)
{
	static const char odd[] = "7 (a) b ) S 3"
				  " 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 250 1 2 3\n";
	static const char *const damaged[] = { "7 (a) b ) S ", "", "1 )x( S 1", "0 (x) S 1" };
	const uint64_t start = 250 * NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	struct fake_capture *f = *state;
	struct task_scan scan;
	Traced__Capture__Tasks *t;

	fake_file(&f->root, "proc/7/stat", odd);
	for (unsigned i = 0; i < ARRAY_SIZE(damaged); i++) {
		char path[64];

		snprintf(path, sizeof(path), "proc/%u/stat", i + 8);
		fake_file(&f->root, path, damaged[i]);
	}
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	assert_int_equal(task_scan_step(&scan, &f->writer), 0);
	assert_int_equal(read_tasks(f, &t), 1);
	assert_int_equal(t->tasks[0]->tid, 7);
	assert_int_equal(t->tasks[0]->ppid, 3);
	assert_int_equal(t->tasks[0]->comm.len, 5);
	assert_memory_equal(t->tasks[0]->comm.data, "a) b ", 5);
	assert_true(t->tasks[0]->kthread);
	assert_int_equal(t->tasks[0]->start_ns, start);
	traced__capture__tasks__free_unpacked(t, NULL);
}

static void scan_finds_threads(void **state)
{
	struct fake_capture *f = *state;
	struct task_scan scan;
	Traced__Capture__Tasks *t;
	bool main_seen = false, thread_seen = false, kthread_seen = false;

	fake_task(f, 10, 10, "main", 0);
	fake_task(f, 10, 11, "worker", 0);
	fake_task(f, 2, 2, "kthreadd", 0x200000);
	fake_dir(&f->root, "proc/99/task/99"); /* it is just ending */
	fake_dir(&f->root, "proc/sys");
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	assert_int_equal(task_scan_step(&scan, &f->writer), 0);
	assert_null(scan.processes);
	assert_int_equal(read_tasks(f, &t), 3);
	assert_int_equal(t->origin, 0);
	for (size_t i = 0; i < t->n_tasks; i++) {
		const Traced__Capture__Task *task = t->tasks[i];

		if (task->tid == 10) {
			main_seen = true;
			assert_int_equal(task->tgid, 10);
			assert_int_equal(task->uid, 1000);
			assert_int_equal(task->ppid, 1);
			assert_int_equal(task->cmdline.len, 9);
			assert_memory_equal(task->cmdline.data, "/bin/x\0-y", 9);
		} else if (task->tid == 11) {
			thread_seen = true;
			assert_int_equal(task->tgid, 10);
			assert_int_equal(task->comm.len, 6);
			assert_memory_equal(task->comm.data, "worker", 6);
			assert_int_equal(task->cmdline.len, 0);
			assert_false(task->kthread);
		} else {
			kthread_seen = true;
			assert_true(task->kthread);
		}
	}
	assert_true(main_seen && thread_seen && kthread_seen);
	traced__capture__tasks__free_unpacked(t, NULL);
}

/* Most tasks are kernel threads, or their process's only thread: one file tells so. */
static void a_scan_reads_no_more_than_needed(void **state)
{
	static const char alone[] = "7 (x) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 250 1 2 3\n";
	struct fake_capture *f = *state;
	struct task_scan scan;
	Traced__Capture__Tasks *t;

	/* Files that may not be read tell of other tasks and users. */
	fake_task(f, 2, 2, "kthreadd", 0x200000);
	fake_task(f, 2, 3, "nobody", 0);
	fake_task(f, 7, 8, "nobody", 0);
	fake_file(&f->root, "proc/7/stat", alone);
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	assert_int_equal(task_scan_step(&scan, &f->writer), 0);
	assert_int_equal(read_tasks(f, &t), 2);
	for (size_t i = 0; i < t->n_tasks; i++)
		assert_int_equal(t->tasks[i]->uid, t->tasks[i]->tid == 2 ? 0 : 1000);
	traced__capture__tasks__free_unpacked(t, NULL);
}

/*
 * The task is renamed while it is read: by the recorded times the new name must be the later one.
 */
static void a_reading_is_dated_before_it(void **state)
{
	struct fake_capture *f = *state;
	uint64_t *renamed = mmap(NULL, sizeof(*renamed), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct task_scan scan;
	Traced__Capture__Tasks *t;
	pid_t pid;

	fake_task(f, 10, 10, "main", 0);
	assert_int_equal(unlink(fake_path(&f->root, "proc/10/status")), 0);
	assert_int_equal(mkfifo(fake_path(&f->root, "proc/10/status"), 0600), 0);
	pid = fork();
	if (!pid) {
		int fd = open(fake_path(&f->root, "proc/10/status"), O_WRONLY);

		*renamed = now_ns(CLOCK_BOOTTIME);
		_exit(write_full(fd, "Uid:\t0\n", 7) < 0);
	}
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	assert_int_equal(task_scan_step(&scan, &f->writer), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(read_tasks(f, &t), 1);
	assert_true(t->boot_ns && t->boot_ns < *renamed);
	traced__capture__tasks__free_unpacked(t, NULL);
	munmap(renamed, sizeof(*renamed));
}

static void long_scan_comes_in_slices(void **state)
{
	struct fake_capture *f = *state;
	struct task_scan scan;
	Traced__Capture__Tasks *t;
	unsigned steps = 1;

	for (int i = 1; i <= 300; i++)
		fake_task(f, i, i, "many", 0);
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	while (task_scan_step(&scan, &f->writer) > 0)
		steps++;
	assert_int_equal(steps, 3);
	assert_int_equal(read_tasks(f, &t), 300);
	traced__capture__tasks__free_unpacked(t, NULL);
}

static void scan_all(struct fake_capture *f, struct task_memory *m)
{
	struct task_scan scan;
	int r;

	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), m), 0);
	while ((r = task_scan_step(&scan, &f->writer)) > 0)
		;
	assert_int_equal(r, 0);
}

static void a_process_of_many_threads_is_divided(void **state)
{
	struct fake_capture *f = *state;
	Traced__Capture__Tasks *t;

	for (int i = 0; i < 1500; i++)
		fake_task(f, 10, 10 + i, "thread", 0);
	scan_all(f, NULL);
	assert_int_equal(read_tasks(f, &t), 1500);
	assert_int_equal(t->tasks[0]->tgid, 10);
	traced__capture__tasks__free_unpacked(t, NULL);
	assert_int_equal(fake_capture_chunks(f, CHUNK_TASKS, NULL, NULL), 2);
}

static void a_later_scan_writes_what_is_new(void **state)
{
	struct fake_capture *f = *state;
	struct task_memory m = { 0 };
	Traced__Capture__Tasks *t;

	for (int i = 1; i <= 300; i++)
		fake_task(f, i, i, "many", 0);
	scan_all(f, &m);
	assert_int_equal(read_tasks(f, &t), 300);
	traced__capture__tasks__free_unpacked(t, NULL);
	scan_all(f, &m);
	assert_int_equal(read_tasks(f, &t), 300);
	traced__capture__tasks__free_unpacked(t, NULL);
	fake_task(f, 7, 7, "renamed", 0);
	fake_task(f, 2000, 2000, "new", 0);
	scan_all(f, &m);
	assert_int_equal(read_tasks(f, &t), 302);
	assert_int_equal(t->n_tasks, 1);
	traced__capture__tasks__free_unpacked(t, NULL);
	/*
	 * Its number returns with another life: the old one was forgotten, or is known to differ.
	 */
	nftw(fake_path(&f->root, "proc/2000"), fake_root_remove, 16, FTW_DEPTH | FTW_PHYS);
	scan_all(f, &m);
	fake_task(f, 2000, 2000, "new", 0x40);
	fake_file(&f->root, "proc/2000/stat",
		  "2000 (new) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 999 1 2 3\n");
	scan_all(f, &m);
	assert_int_equal(read_tasks(f, &t), 303);
	traced__capture__tasks__free_unpacked(t, NULL);
	task_memory_deinit(&m);
}

static void what_is_remembered_is_bounded(void **state)
{
	struct fake_capture *f = *state;
	struct task_memory m = { 0 };

	/* Generations of tasks, each with new numbers. */
	for (int g = 0; g < 20; g++) {
		char path[64];

		for (int i = 0; i < 50; i++)
			fake_task(f, 1000 * g + i + 1, 1000 * g + i + 1, "brief", 0);
		scan_all(f, &m);
		snprintf(path, sizeof(path), "proc");
		nftw(fake_path(&f->root, path), fake_root_remove, 16, FTW_DEPTH | FTW_PHYS);
	}
	assert_true(m.tasks.size <= 512);
	task_memory_deinit(&m);
}

static void many_saved_names_are_divided(void **state)
{
	struct fake_capture *f = *state;
	_cleanup_buf_ struct buf text = BUF_INIT;
	Traced__Capture__Tasks *t;

	for (int i = 1; i <= 3000; i++)
		buf_printf(&text, "%d name\n", i);
	assert_int_equal(tasks_write_saved(buf_string(&text), &f->writer), 0);
	assert_int_equal(read_tasks(f, &t), 3000);
	assert_int_equal(t->origin, 1);
	traced__capture__tasks__free_unpacked(t, NULL);
	assert_int_equal(fake_capture_chunks(f, CHUNK_TASKS, NULL, NULL), 3);
}

/* A missing part makes a recording incomplete; a remark does not. */
static void only_what_is_missing_makes_a_recording_incomplete(void **state)
{
	static const struct {
		const char *text;
		bool missing;
	} notes[] = { { "symbols are hidden", false }, { "the end is missing", true } };
	struct fake_capture *f = *state;
	struct capture_report report = { 0 };
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_reader reader;
	struct chunk chunk;
	size_t n = 0;

	report_warn(&report, "%s", notes[0].text);
	report_warn_missing(&report, "%s", notes[1].text);
	report_warn(&report, "%s", notes[1].text);
	assert_int_equal(report_write_notes(&report, &f->writer), 0);
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		Traced__Capture__Note *note;

		assert_int_equal(chunk.type, CHUNK_NOTE);
		assert_int_equal(stream_reader_load(&reader, &chunk, &b, NULL), 0);
		note = traced__capture__note__unpack(NULL, b.len, (const uint8_t *)b.data);
		assert_non_null(note);
		assert_true(n < ARRAY_SIZE(notes));
		assert_string_equal(note->text, notes[n].text);
		assert_int_equal(note->missing, notes[n++].missing);
		traced__capture__note__free_unpacked(note, NULL);
	}
	assert_int_equal(n, ARRAY_SIZE(notes));
	report_deinit(&report);
}

static void notes_keep_to_their_bounds(void **state)
{
	struct fake_capture *f = *state;
	struct capture_report report = { 0 };
	char text[10000];
	size_t longest;

	/* Two bytes each: a truncated character would be invalid. */
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 3);
	report_warn(&report, "%s", text);
	report_warn(&report, "x%s", text);
	for (int i = 0; i < 100; i++)
		report_warn(&report, "warning %d", i);
	assert_int_equal(report_write_notes(&report, &f->writer), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_NOTE, NULL, &longest), STREAM_NOTES_MAX);
	assert_in_range(longest, STREAM_NOTE_MAX / 2, STREAM_NOTE_MAX);
	report_deinit(&report);
}

static void saved_names(void **state)
{
	struct fake_capture *f = *state;
	Traced__Capture__Tasks *t;

	assert_int_equal(tasks_write_saved("1 init\n20 a b\nx y\n-3 z\n21 last", &f->writer), 0);
	assert_int_equal(read_tasks(f, &t), 3);
	assert_int_equal(t->origin, 1);
	assert_int_equal(t->tasks[1]->tid, 20);
	assert_memory_equal(t->tasks[1]->comm.data, "a b", 3);
	assert_int_equal(t->tasks[2]->comm.len, 4);
	traced__capture__tasks__free_unpacked(t, NULL);
}

static void clocks_are_bracketed(void **state)
{
	struct fake_capture *f = *state;
	_cleanup_buf_ struct buf b = BUF_INIT;
	Traced__Capture__Clocks *msg;
	struct stream_reader reader;
	struct clock_snapshot s;
	struct chunk chunk;

	clocks_read(&s);
	assert_true(s.count >= 4);
	assert_int_equal(clocks_write(&s, &f->writer, CLOCK_PHASE_END), 0);
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	assert_int_equal(stream_reader_next(&reader, &chunk, NULL), 1);
	assert_int_equal(stream_reader_load(&reader, &chunk, &b, NULL), 0);
	msg = traced__capture__clocks__unpack(NULL, b.len, (uint8_t *)b.data);
	assert_non_null(msg);
	assert_int_equal(msg->phase, 2);
	assert_int_equal(msg->n_readings, s.count);
	for (size_t i = 0; i < msg->n_readings; i++) {
		const Traced__Capture__ClockReading *r = msg->readings[i];

		assert_true(r->boot_before_ns <= r->boot_after_ns);
		if (r->clock == CLOCK_BOOTTIME)
			assert_true(r->value_ns >= r->boot_before_ns &&
				    r->value_ns <= r->boot_after_ns);
	}
	traced__capture__clocks__free_unpacked(msg, NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_capture_setup, fake_capture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(stat_lines),
		TEST(scan_finds_threads),
		TEST(a_scan_reads_no_more_than_needed),
		TEST(a_reading_is_dated_before_it),
		TEST(long_scan_comes_in_slices),
		TEST(a_process_of_many_threads_is_divided),
		TEST(a_later_scan_writes_what_is_new),
		TEST(what_is_remembered_is_bounded),
		TEST(saved_names),
		TEST(many_saved_names_are_divided),
		TEST(only_what_is_missing_makes_a_recording_incomplete),
		TEST(notes_keep_to_their_bounds),
		TEST(clocks_are_bracketed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
