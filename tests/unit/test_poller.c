/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading polled files: from a folder that stands in for /proc and /sys, and in a thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/polls/poller.h"
#include "memory_file.h"
#include "own_folder.h"
#include "proto/capture.pb-c.h"
#include "stream/reader.h"

static const struct poll_where where = { .proc = "proc", .sys = "sys" };

static void put_file(const char *path, const char *text)
{
	char dir[200];
	FILE *f;

	for (const char *p = path; (p = strchr(p, '/')); p++) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(p - path), path);
		mkdir(dir, 0755);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static Traced__Capture__Polls *unpack(const struct buf *b)
{
	Traced__Capture__Polls *p =
		traced__capture__polls__unpack(NULL, b->len, (const uint8_t *)b->data);

	assert_non_null(p);
	return p;
}

static void check_file(const Traced__Capture__Poll *poll, size_t i, uint32_t number,
		       const char *label, const char *text)
{
	const Traced__Capture__PolledFile *f = poll->files[i];

	assert_true(i < poll->n_files);
	assert_int_equal(f->number, number);
	assert_int_equal(f->label.len, strlen(label));
	assert_memory_equal(f->label.data, label, f->label.len);
	assert_int_equal(f->text.len, strlen(text));
	assert_memory_equal(f->text.data, text, f->text.len);
}

static void read_once(struct poll_files *f, struct buf *out, int wanted)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_clear(out);
	assert_int_equal(poll_files_read(f, &text, out), wanted);
}

static void a_file_is_read_again(void **state _unused_)
{
	_cleanup_(poll_files_close) struct poll_files f = { 0 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	uint64_t before = now_ns(CLOCK_BOOTTIME);
	Traced__Capture__Polls *polls;

	put_file("proc/meminfo", "MemFree: 1 kB\n");
	assert_int_equal(poll_files_open(&f, POLL_MEMINFO, &where, NULL), 0);
	read_once(&f, &out, 0);
	polls = unpack(&out);
	assert_int_equal(polls->n_polls, 1);
	assert_int_equal(polls->polls[0]->source, TRACED__CAPTURE__POLL__SOURCE__MEMINFO);
	assert_in_range(polls->polls[0]->boot_ns, before, now_ns(CLOCK_BOOTTIME));
	assert_int_equal(polls->polls[0]->n_files, 1);
	check_file(polls->polls[0], 0, 0, "", "MemFree: 1 kB\n");
	traced__capture__polls__free_unpacked(polls, NULL);
	put_file("proc/meminfo", "MemFree: 2 kB\n");
	read_once(&f, &out, 0);
	polls = unpack(&out);
	check_file(polls->polls[0], 0, 0, "", "MemFree: 2 kB\n");
	traced__capture__polls__free_unpacked(polls, NULL);
}

static void numbered_files_are_found(void **state _unused_)
{
	_cleanup_(poll_files_close) struct poll_files cpus = { 0 }, zones = { 0 }, psi = { 0 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	Traced__Capture__Polls *polls;

	put_file("sys/devices/system/cpu/cpu10/cpufreq/scaling_cur_freq", "10\n");
	put_file("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "2\n");
	put_file("sys/devices/system/cpu/cpu3/online", "0\n");
	put_file("sys/devices/system/cpu/cpufreq/boost", "1\n");
	put_file("sys/class/thermal/thermal_zone1/temp", "1000\n");
	put_file("sys/class/thermal/thermal_zone1/type", "acpitz\n");
	put_file("proc/pressure/memory", "some total=1\n");
	put_file("proc/pressure/io", "some total=2\n");
	assert_int_equal(poll_files_open(&cpus, POLL_CPUFREQ, &where, NULL), 0);
	assert_int_equal(poll_files_open(&zones, POLL_THERMAL, &where, NULL), 0);
	assert_int_equal(poll_files_open(&psi, POLL_PSI, &where, NULL), 0);
	read_once(&cpus, &out, 0);
	polls = unpack(&out);
	assert_int_equal(polls->polls[0]->n_files, 2);
	check_file(polls->polls[0], 0, 2, "", "2\n");
	check_file(polls->polls[0], 1, 10, "", "10\n");
	traced__capture__polls__free_unpacked(polls, NULL);
	/* A CPU that comes later. */
	put_file("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "3\n");
	read_once(&cpus, &out, 0);
	polls = unpack(&out);
	assert_int_equal(polls->polls[0]->n_files, 3);
	check_file(polls->polls[0], 1, 3, "", "3\n");
	traced__capture__polls__free_unpacked(polls, NULL);
	read_once(&zones, &out, 0);
	polls = unpack(&out);
	check_file(polls->polls[0], 0, 1, "acpitz", "1000\n");
	traced__capture__polls__free_unpacked(polls, NULL);
	read_once(&psi, &out, 0);
	polls = unpack(&out);
	assert_int_equal(polls->polls[0]->n_files, 2);
	check_file(polls->polls[0], 0, 0, "memory", "some total=1\n");
	check_file(polls->polls[0], 1, 0, "io", "some total=2\n");
	traced__capture__polls__free_unpacked(polls, NULL);
}

#define SIZES "VmPeak:\t 9 kB\nVmRSS:\t 5 kB\nVmSwap:\t 0 kB\n"
#define STATUS "Name:\tx\nTgid:\t%d\n" SIZES "Threads:\t1\n"

static void put_process(int tid, int tgid)
{
	char path[64], text[200];

	snprintf(path, sizeof(path), "proc/%d/status", tid);
	snprintf(text, sizeof(text), STATUS, tgid);
	put_file(path, text);
}

/* Kernel threads have no sizes. */
static void processes_are_read_in_slices(void **state _unused_)
{
	_cleanup_(poll_files_close) struct poll_files f = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT, out = BUF_INIT;
	size_t seen = 0, slices = 1;
	Traced__Capture__Polls *polls;

	put_file("proc/version", "x\n");
	put_file("proc/2/status", "Name:\tkthreadd\nTgid:\t2\nThreads:\t1\n");
	for (int pid = 100; pid < 100 + 2 * POLL_SLICE; pid++)
		put_process(pid, pid);
	assert_int_equal(poll_files_open(&f, POLL_PROCESS_MEMORY, &where, NULL), 0);
	while (poll_files_read(&f, &text, &out) > 0)
		slices++;
	assert_int_equal(slices, 3);
	polls = unpack(&out);
	for (size_t i = 0; i < polls->n_polls; i++) {
		assert_true(polls->polls[i]->n_files <= POLL_SLICE);
		for (size_t k = 0; k < polls->polls[i]->n_files; k++) {
			assert_in_range(polls->polls[i]->files[k]->number, 100,
					99 + 2 * POLL_SLICE);
			check_file(polls->polls[i], k, polls->polls[i]->files[k]->number, "",
				   SIZES);
			seen++;
		}
	}
	assert_int_equal(seen, 2 * POLL_SLICE);
	traced__capture__polls__free_unpacked(polls, NULL);
}

/* Given tasks stand for their processes; a process that ended is left out. */
static void given_processes_are_read(void **state _unused_)
{
	const struct poll_where given = { .proc = "proc",
					  .sys = "sys",
					  .pids = (const pid_t[]){ 101, 104, 103 },
					  .pid_count = 3 };
	_cleanup_(poll_files_close) struct poll_files f = { 0 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	Traced__Capture__Polls *polls;

	put_process(101, 101);
	put_process(102, 102);
	put_process(103, 101);
	assert_int_equal(poll_files_open(&f, POLL_PROCESS_MEMORY, &given, NULL), 0);
	read_once(&f, &out, 0);
	polls = unpack(&out);
	assert_int_equal(polls->polls[0]->n_files, 1);
	check_file(polls->polls[0], 0, 101, "", SIZES);
	traced__capture__polls__free_unpacked(polls, NULL);
}

static void missing_sources_are_reported(void **state _unused_)
{
	_cleanup_(poller_freep) struct poller *p = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct poll_plan plan = { 0 };
	struct capture_report report = { 0 };

	assert_int_equal(poll_plan_add(&plan, "thermal,cpufreq,psi", NULL), 0);
	assert_int_equal(poller_new(&p, &plan, &where, &report, &err), -ENOENT);
	assert_string_equal(err.message, "nothing can be polled: "
					 "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq: "
					 "No such file or directory");
	report_deinit(&report);
	report = (struct capture_report){ 0 };
	put_file("proc/meminfo", "MemFree: 1 kB\n");
	assert_int_equal(poll_plan_add(&plan, "meminfo", NULL), 0);
	assert_int_equal(poller_new(&p, &plan, &where, &report, NULL), 0);
	assert_int_equal(report.warning_count, 3);
	assert_int_equal(report.warnings_missing, 0);
	assert_string_equal(report.warnings[1],
			    "psi is not polled: proc/pressure/cpu: No such file or directory");
	report_deinit(&report);
}

/* Reads the stream's POLLS chunks into one message. */
static void collect(int fd, struct buf *out)
{
	_cleanup_buf_ struct buf payload = BUF_INIT;
	struct stream_reader r;
	struct chunk chunk;

	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	while (stream_reader_next(&r, &chunk, NULL) > 0) {
		assert_int_equal(chunk.type, CHUNK_POLLS);
		assert_int_equal(stream_reader_load(&r, &chunk, &payload, NULL), 0);
		buf_append(out, payload.data, payload.len);
	}
}

/* Even a recording without duration has a reading at its begin and one at its end. */
static void a_thread_reads_and_ends(void **state _unused_)
{
	_cleanup_(poller_freep) struct poller *p = NULL;
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_buf_ struct buf all = BUF_INIT;
	struct capture_report report = { 0 };
	struct poll_plan plan = { 0 };
	struct stream_writer w;
	uint64_t cpu_ns, began = now_ns(CLOCK_MONOTONIC);
	Traced__Capture__Polls *polls;
	unsigned sizes = 0;

	put_file("proc/meminfo", "MemFree: 1 kB\n");
	put_process(101, 101);
	assert_int_equal(poll_plan_add(&plan, "meminfo,process-memory@1h", NULL), 0);
	assert_int_equal(poller_new(&p, &plan, &where, &report, NULL), 0);
	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(poller_start(p), 0);
	while (w.bytes == STREAM_MAGIC_SIZE)
		assert_int_equal(poller_take(p, &w, &cpu_ns), 0);
	poller_stop(p, &report);
	assert_true(now_ns(CLOCK_MONOTONIC) - began < 60 * NSEC_PER_SEC);
	assert_int_equal(poller_take(p, &w, &cpu_ns), 0);
	assert_int_equal(report.warning_count, 0);
	collect(fd, &all);
	polls = unpack(&all);
	for (size_t i = 0; i < polls->n_polls; i++) {
		sizes += polls->polls[i]->source == TRACED__CAPTURE__POLL__SOURCE__MEMINFO;
		if (i)
			assert_true(polls->polls[i]->boot_ns >= polls->polls[i - 1]->boot_ns);
	}
	assert_int_equal(sizes, 2);
	traced__capture__polls__free_unpacked(polls, NULL);
	report_deinit(&report);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, own_folder_setup, own_folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_read_again),	    TEST(numbered_files_are_found),
		TEST(processes_are_read_in_slices), TEST(given_processes_are_read),
		TEST(missing_sources_are_reported), TEST(a_thread_reads_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
