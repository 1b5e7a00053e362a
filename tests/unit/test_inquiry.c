/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes that keep the kernel from telling what is asked about them. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/names/inquiry.h"
#include "daemon/capture/names/mappings.h"
#include "daemon/capture/names/tasks.h"
#include "fake_capture.h"
#include "proto/capture.pb-c.h"

/* A user who was late stays so for a while: each test has users of its own. */
enum { HANGS = 1000, LINES, SLOW, LEAVES, OTHER, AFTER_ROOT };

#define PATIENCE_NS (200 * NSEC_PER_MSEC)

static atomic_uint discarded;
static atomic_bool asking;

/* "process" is a pipe. */
static void *ask(int process, bool all _unused_)
{
	char *answer = malloc(1);

	asking = true;
	if (answer && read(process, answer, 1) != 1)
		*answer = 'e';
	return answer;
}

static void *ask_slowly(int process _unused_, bool all _unused_)
{
	usleep(15000);
	return malloc(1);
}

static void *ask_late(int process _unused_, bool all _unused_)
{
	usleep(2 * PATIENCE_NS / 1000);
	return malloc(1);
}

/* Without a pipe it takes long enough for the caller to wait. */
static void *ask_either(int process, bool all)
{
	if (process >= 0)
		return ask(process, all);
	usleep(50000);
	return malloc(1);
}

static void discard(void *answer)
{
	free(answer);
	discarded++;
}

static const struct inquiry_kind pipes = { ask, discard }, slow = { ask_slowly, discard };

static void fake_process(struct fake_capture *f, int pid, unsigned uid)
{
	char path[64], text[64];

	fake_task(f, pid, pid, "x", 0);
	snprintf(path, sizeof(path), "proc/%d/status", pid);
	snprintf(text, sizeof(text), "Name:\tx\nUid:\t%u\t0\t0\t0\n", uid);
	fake_file(&f->root, path, text);
	snprintf(path, sizeof(path), "proc/%d/maps", pid);
	fake_file(&f->root, path, "1000-2000 r-xp 00000000 08:01 42    /bin/x\n");
}

/* Whoever opens it hangs, until let_go(). */
static void make_hang(struct fake_capture *f, const char *path)
{
	unlink(fake_path(&f->root, path));
	assert_int_equal(mkfifo(fake_path(&f->root, path), 0600), 0);
}

/* Its name goes first: the reader may open it a second time. */
static void let_go(struct fake_capture *f, const char *path)
{
	char link[64];
	int fifo = open(fake_path(&f->root, path), O_PATH | O_CLOEXEC), writer;

	assert_true(fifo >= 0);
	assert_int_equal(unlink(fake_path(&f->root, path)), 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fifo);
	writer = open(link, O_WRONLY | O_CLOEXEC);
	assert_true(writer >= 0);
	close(writer);
	close(fifo);
}

static uint64_t since(uint64_t began)
{
	return now_ns(CLOCK_MONOTONIC) - began;
}

/* Returns how often it had to be asked again. */
static unsigned scan_mappings(struct fake_capture *f, size_t *ret_unread)
{
	struct mapping_scan scan = MAPPING_SCAN_INIT;
	unsigned again = 0;
	int r;

	assert_int_equal(mapping_scan_start(&scan, fake_path(&f->root, "proc"), false), 0);
	while ((r = mapping_scan_step(&scan, false, &f->writer)) > 0 || r == -EAGAIN)
		again += r == -EAGAIN;
	assert_int_equal(r, 0);
	*ret_unread = scan.unread;
	return again;
}

static void assert_one_mapped(const struct fake_capture *f, unsigned chunks)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	Traced__Capture__Mappings *m;

	assert_int_equal(fake_capture_chunks(f, CHUNK_MAPPINGS, &b, NULL), chunks);
	m = traced__capture__mappings__unpack(NULL, b.len, (uint8_t *)b.data);
	assert_non_null(m);
	assert_int_equal(m->n_processes, 1);
	assert_int_equal(m->processes[0]->pid, 12);
	assert_int_equal(m->processes[0]->n_mappings, 1);
	traced__capture__mappings__free_unpacked(m, NULL);
}

/* The file of a mapping can be one whose server never answers. */
static void mappings_may_hang(void **state)
{
	struct fake_capture *f = *state;
	uint64_t began = now_ns(CLOCK_MONOTONIC), took;
	unsigned scans = 1;
	size_t unread;

	fake_process(f, 10, HANGS);
	fake_process(f, 12, OTHER);
	make_hang(f, "proc/10/maps");
	assert_true(scan_mappings(f, &unread) > 0);
	assert_int_equal(unread, 1);
	assert_true(since(began) >= PATIENCE_NS);
	assert_one_mapped(f, 1);
	/* While it hangs, nobody waits for that user. A busy machine may need several tries. */
	do {
		began = now_ns(CLOCK_MONOTONIC);
		scan_mappings(f, &unread);
		took = since(began);
		assert_int_equal(unread, 1);
		assert_one_mapped(f, ++scans);
	} while (took >= PATIENCE_NS && scans < 20);
	assert_true(took < PATIENCE_NS);
	let_go(f, "proc/10/maps");
}

static void command_lines_may_hang(void **state)
{
	struct fake_capture *f = *state;
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct task_scan scan = TASK_SCAN_INIT;
	Traced__Capture__Tasks *t;

	fake_process(f, 10, LINES);
	fake_process(f, 12, OTHER);
	make_hang(f, "proc/10/cmdline");
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	assert_int_equal(task_scan_step(&scan, &f->writer), 0);
	assert_int_equal(scan.unread, 1);
	assert_int_equal(fake_capture_chunks(f, CHUNK_TASKS, &b, NULL), 1);
	t = traced__capture__tasks__unpack(NULL, b.len, (uint8_t *)b.data);
	assert_non_null(t);
	assert_int_equal(t->n_tasks, 2);
	for (size_t i = 0; i < t->n_tasks; i++)
		assert_int_equal(t->tasks[i]->cmdline.len, t->tasks[i]->tid == 10 ? 0 : 9);
	traced__capture__tasks__free_unpacked(t, NULL);
	let_go(f, "proc/10/cmdline");
}

/* Many that answer at the last moment cost as much as one that never does. */
static void slow_answers_add_up(void **state _unused_)
{
	struct inquiry *i = inquiry_new(&slow, false);
	size_t answers = 0;

	assert_non_null(i);
	for (unsigned n = 0; n < INQUIRY_MAX - 1; n++)
		assert_int_equal(inquiry_add(i, -EBADF, SLOW), 0);
	assert_int_equal(inquiry_add(i, -EBADF, OTHER), 0);
	assert_true(inquiry_add(i, -EBADF, OTHER) < 0);
	inquiry_begin(i);
	assert_true(inquiry_wait(i, UINT64_MAX));
	for (size_t n = 0; n < INQUIRY_MAX; n++) {
		char *answer = inquiry_take(i, n);

		answers += answer != NULL;
		assert_true(n < INQUIRY_MAX - 1 || answer);
		free(answer);
	}
	/* 14 of 15 ms each, fewer on a busy machine, where all of them take two seconds. */
	assert_in_range(answers, 1, 15);
	assert_int_equal(inquiry_unanswered(i), INQUIRY_MAX - answers);
	inquiry_free(i);
}

/* A preempted process with its lock held: root's have more time than others. */
static void processes_of_root_may_be_late(void **state _unused_)
{
	static const struct inquiry_kind late = { ask_late, discard };
	struct inquiry *i = inquiry_new(&late, false);
	char *answer;

	assert_non_null(i);
	assert_int_equal(inquiry_add(i, -EBADF, 0), 0);
	inquiry_begin(i);
	assert_true(inquiry_wait(i, UINT64_MAX));
	answer = inquiry_take(i, 0);
	assert_non_null(answer);
	free(answer);
	assert_int_equal(inquiry_unanswered(i), 0);
	inquiry_free(i);
}

/* A recording can end while a process hangs. */
static void a_thread_outlives_its_caller(void **state _unused_)
{
	struct inquiry *i = inquiry_new(&pipes, false);
	unsigned before = discarded;
	int fds[2];

	assert_non_null(i);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(inquiry_add(i, fds[0], LEAVES), 0);
	inquiry_begin(i);
	for (unsigned n = 0; n < 10000 && !asking; n++)
		usleep(1000);
	assert_false(inquiry_wait(i, NSEC_PER_MSEC));
	inquiry_free(i);
	assert_int_equal(write(fds[1], "x", 1), 1);
	close(fds[1]);
	for (unsigned n = 0; n < 10000 && discarded == before; n++)
		usleep(1000);
	assert_int_equal(discarded - before, 1);
}

/* A caller that waits for a process of root's gives that time to no other one. */
static void a_process_after_roots_has_its_own_time(void **state _unused_)
{
	static const struct inquiry_kind either = { ask_either, discard };
	struct inquiry *i = inquiry_new(&either, false);
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	int fds[2];

	assert_non_null(i);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	asking = false;
	assert_int_equal(inquiry_add(i, -EBADF, 0), 0);
	assert_int_equal(inquiry_add(i, fds[0], AFTER_ROOT), 0);
	inquiry_begin(i);
	assert_true(inquiry_wait(i, UINT64_MAX));
	assert_true(since(began) < 2 * NSEC_PER_SEC);
	assert_true(asking);
	assert_int_equal(inquiry_unanswered(i), 1);
	inquiry_free(i);
	close(fds[1]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_capture_setup, fake_capture_teardown)
	const struct CMUnitTest tests[] = {
		/* First: what the others wait for counts for all users. */
		cmocka_unit_test(slow_answers_add_up),
		TEST(mappings_may_hang),
		TEST(command_lines_may_hang),
		cmocka_unit_test(processes_of_root_may_be_late),
		cmocka_unit_test(a_thread_outlives_its_caller),
		/* Last: from then on no user is asked. */
		cmocka_unit_test(a_process_after_roots_has_its_own_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
