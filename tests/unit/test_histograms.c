/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The texts of histograms on their way into the stream. */
#include "daemon/capture/histograms.h"
#include "fake_capture.h"
#include "proto/capture.pb-c.h"

#include <sys/mman.h>

#include "base/io.h"

#define SWITCH "events/sched/sched_switch/hist"
#define RAISE "events/irq/softirq_raise/hist"
#define TEXT "any text, \xff\n\nTotals:\n"

static void begin(struct capture *c, const struct fake_capture *f)
{
	static char *const events[] = { (char *)"sched:sched_switch", (char *)"irq:softirq_raise",
					(char *)"sched:sched_switch" };

	*c = (struct capture){ .setup = SETUP_INIT, .run = RUN_INIT };
	c->run.rings[BUFFER_MAIN].dir = open(f->root.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	c->run.writer = f->writer;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		c->setup.hists.items[c->setup.hists.count++].event = events[i];
	fake_file(&f->root, SWITCH, TEXT);
	fake_file(&f->root, RAISE, "other\n");
}

static void end(struct capture *c)
{
	close_fd(c->run.rings[BUFFER_MAIN].dir);
	for (size_t i = 0; i < HISTS_MAX; i++)
		close_fd(c->run.hist_files[i]);
	report_deinit(&c->report);
}

static void a_text_is_moved_as_it_is(void **state)
{
	struct fake_capture *f = *state;
	_cleanup_buf_ struct buf last = BUF_INIT;
	Traced__Capture__Histogram *message;
	struct capture c;

	begin(&c, f);
	c.setup.hists.count = 1;
	assert_int_equal(histograms_write(&c), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_HISTOGRAM, &last, NULL), 1);
	message = traced__capture__histogram__unpack(NULL, last.len, (uint8_t *)last.data);
	assert_non_null(message);
	assert_string_equal(message->event, "sched:sched_switch");
	assert_int_equal(message->text.len, strlen(TEXT));
	assert_memory_equal(message->text.data, TEXT, strlen(TEXT));
	assert_true(message->boot_ns > 0);
	traced__capture__histogram__free_unpacked(message, NULL);
	end(&c);
}

static void an_events_file_is_read_once(void **state)
{
	struct fake_capture *f = *state;
	struct capture c;

	begin(&c, f);
	assert_int_equal(histograms_write(&c), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_HISTOGRAM, NULL, NULL), 2);
	assert_int_equal(c.report.warning_count, 0);
	end(&c);
}

static void what_cannot_be_read_is_missing(void **state)
{
	struct fake_capture *f = *state;
	struct capture c;

	begin(&c, f);
	assert_int_equal(unlink(fake_path(&f->root, RAISE)), 0);
	assert_int_equal(truncate(fake_path(&f->root, SWITCH), STREAM_HISTOGRAM_MAX), 0);
	assert_int_equal(histograms_write(&c), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_HISTOGRAM, NULL, NULL), 0);
	assert_int_equal(c.report.warning_count, 2);
	assert_int_equal(c.report.warnings_missing, 3);
	assert_non_null(
		strstr(c.report.warnings[0], "sched:sched_switch is missing: it is too long"));
	assert_non_null(strstr(c.report.warnings[1], "irq:softirq_raise is missing: No such file"));
	end(&c);
}

static void a_full_stream_lacks_them(void **state)
{
	struct fake_capture *f = *state;
	struct capture c;

	begin(&c, f);
	c.run.writer.limit = STREAM_RESERVE;
	assert_int_equal(histograms_write(&c), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_HISTOGRAM, NULL, NULL), 0);
	assert_int_equal(c.report.warning_count, 2);
	end(&c);
}

static void followers_get_them_once_a_second(void **state)
{
	struct fake_capture *f = *state;
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	struct capture c;

	begin(&c, f);
	assert_int_equal(histograms_write_due(&c, now), 0);
	assert_int_equal(histograms_write_due(&c, now + NSEC_PER_SEC / 2), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_HISTOGRAM, NULL, NULL), 2);
	assert_int_equal(histograms_write_due(&c, now + 3600 * NSEC_PER_SEC), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_HISTOGRAM, NULL, NULL), 4);
	end(&c);
}

/* A mark in a ring has an address of the kernel. */
static void a_recording_of_them_alone_takes_no_marks(void **state)
{
	struct fake_capture *f = *state;
	int marks = memfd_create("trace_marker", MFD_CLOEXEC);
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture_sync sync;
	struct capture c;

	begin(&c, f);
	c.run.marker = marks;
	c.run.running = c.setup.counts_only = true;
	assert_int_equal(capture_mark(&c, "mark", &err), -EOPNOTSUPP);
	assert_int_equal(capture_sync(&c, "sync", &sync, &err), -EOPNOTSUPP);
	assert_int_equal(lseek(marks, 0, SEEK_END), 0);
	c.setup.counts_only = false;
	assert_int_equal(capture_mark(&c, "mark", &err), 0);
	assert_int_equal(lseek(marks, 0, SEEK_END), 4);
	close(marks);
	end(&c);
}

/* A file of Linux 6.14 is not readable until the histogram counts. */
static void what_counted_nothing_is_not_read_again(void **state)
{
	struct fake_capture *f = *state;
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	struct capture c;
	int pipe[2];

	begin(&c, f);
	assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
	c.run.hist_files[0] = pipe[0];
	assert_int_equal(histograms_write_due(&c, now), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_HISTOGRAM, NULL, NULL), 1);
	assert_int_equal(c.run.hist_files[0], pipe[0]);
	assert_int_equal(write(pipe[1], "", 1), 1);
	assert_int_equal(histograms_write_due(&c, now + 3600 * NSEC_PER_SEC), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_HISTOGRAM, NULL, NULL), 3);
	close_fd(pipe[1]);
	end(&c);
}

/* A mark has an address of the kernel, which those who may count may not see. */
static void nothing_of_a_ring_without_events_is_taken(void **state)
{
	struct fake_capture *f = *state;
	struct ring_cpu cpu = { .reader = { .fd = STDIN_FILENO } };
	struct ring ring = { .dir = -EBADF, .cpus = &cpu, .cpu_count = 1, .unread = true };
	struct staging staging = STAGING_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture_sync sync;
	unsigned budget = 8;
	struct capture c;

	assert_int_equal(ring_drain_cpu(&ring, 0, &staging, &f->writer, &budget, true), 0);
	assert_int_equal(budget, 8);
	assert_int_equal(ring_count(&ring), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_SUBBUFS, NULL, NULL), 0);
	begin(&c, f);
	c.run.running = c.setup.counts_only = true;
	assert_int_equal(capture_mark(&c, "mark", &err), -EOPNOTSUPP);
	assert_int_equal(capture_sync(&c, "id", &sync, &err), -EOPNOTSUPP);
	end(&c);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, fake_capture_setup, fake_capture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_text_is_moved_as_it_is),
		TEST(an_events_file_is_read_once),
		TEST(what_cannot_be_read_is_missing),
		TEST(a_full_stream_lacks_them),
		TEST(followers_get_them_once_a_second),
		TEST(a_recording_of_them_alone_takes_no_marks),
		TEST(what_counted_nothing_is_not_read_again),
		TEST(nothing_of_a_ring_without_events_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
