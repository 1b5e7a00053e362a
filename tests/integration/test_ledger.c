/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbered marks under overload, with rings far too small: each mark is in the stream or counted as
 * lost, and the sum is exact, for each way of reading.
 *
 * test_ledger [MARKS]: marks per writer; an emulated machine needs fewer
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/tracefs/tracefs.h"
#include "recording.h"

#define WRITERS 2
/* An event that does not occur: the rings have marks only. */
#define QUIET_EVENT "sched:sched_process_hang"

static struct tracefs *fs;
static unsigned mark_count = 120000;

struct writer {
	pthread_t thread;
	int fd;
	unsigned number;
	unsigned pause_every; /* marks between two short sleeps; 0: none */
	bool done;
};

static void *write_marks(void *arg)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct writer *w = arg;
	char text[64];

	for (unsigned i = 0; i < mark_count; i++) {
		int n = snprintf(text, sizeof(text), "ledger %u %u %.*s\n", w->number, i,
				 (int)(i % 23), "padpadpadpadpadpadpadpad");

		if (write(w->fd, text, (size_t)n) != n)
			return (void *)1;
		if (w->pause_every && i % w->pause_every == 0)
			nanosleep(&pause, NULL);
	}
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

struct seen {
	uint64_t marks;
	uint8_t *present[WRITERS];
};

static void see(void *userdata, enum subbufs_buffer buffer, unsigned cpu _unused_,
		const struct record *rec)
{
	struct seen *s = userdata;
	unsigned writer, n;
	const char *text;

	if (buffer != BUFFER_MAIN)
		return;
	text = memmem(rec->data, rec->len, "ledger ", 7);
	if (!text || sscanf(text, "ledger %u %u", &writer, &n) != 2)
		return;
	assert_true(writer < WRITERS && n < mark_count);
	/* No mark occurs twice. */
	assert_int_equal(s->present[writer][n], 0);
	s->present[writer][n] = 1;
	s->marks++;
}

static void record_marks(struct recording *rec, enum capture_reader reader, unsigned pause_every,
			 bool dispatch)
{
	const struct capture_event_spec spec = { .glob = QUIET_EVENT };
	const struct capture_request request = { .name = "ledger",
						 .events = &spec,
						 .event_count = 1,
						 .buffer_bytes = 32 << 10,
						 .reader = reader };
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int dir = -EBADF;
	struct writer writers[WRITERS];
	struct capture_stats stats;

	if (capture_new(&c, NULL, &rec->env, &request, &err) < 0)
		fail_msg("%s", err.message);
	capture_get_stats(c, &stats);
	dir = tracefs_open_instance(fs, stats.instance);
	assert_int_equal(capture_start(c, rec->fd, &err), 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .number = i, .pause_every = pause_every };
		writers[i].fd = tracefs_open_file(dir, O_WRONLY, "trace_marker");
		assert_true(writers[i].fd >= 0);
		pthread_create(&writers[i].thread, NULL, write_marks, &writers[i]);
	}
	while (dispatch && !(__atomic_load_n(&writers[0].done, __ATOMIC_ACQUIRE) &&
			     __atomic_load_n(&writers[1].done, __ATOMIC_ACQUIRE)))
		run_for(c, NSEC_PER_MSEC);
	for (unsigned i = 0; i < WRITERS; i++) {
		void *result;

		pthread_join(writers[i].thread, &result);
		assert_null(result);
		close_fd(writers[i].fd);
	}
	assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), 0);
	capture_get_stats(c, &stats);
	if (reader != CAPTURE_READER_AUTO)
		assert_string_equal(stats.reader, reader == CAPTURE_READER_MMAP	    ? "mmap"
						  : reader == CAPTURE_READER_SPLICE ? "splice"
										    : "read");
}

static void check_ledger(enum capture_reader reader, unsigned pause_every, bool dispatch)
{
	uint64_t written = 0, events = 0, missed = 0, uncounted = 0, lost = 0, unread = 0;
	struct seen seen = { 0 };
	struct recording rec;
	struct decoded *d;

	recording_init(&rec, fs);
	record_marks(&rec, reader, pause_every, dispatch);
	for (int i = 0; i < WRITERS; i++) {
		seen.present[i] = calloc(mark_count, 1);
		assert_non_null(seen.present[i]);
	}
	d = decode(rec.fd, see, &seen);
	assert_false(d->cut);
	assert_int_equal(d->ends, 1);
	for (unsigned cpu = 0; cpu < DECODED_CPUS; cpu++) {
		const struct decoded_cpu *c = &d->cpus[BUFFER_MAIN][cpu];
		const Traced__Capture__CpuStats *s = &c->stats;

		/* Each CPU's own account: the number read equals the number in the stream. */
		assert_int_equal(s->read, c->events);
		/* A sub-buffer announces every loss, except one without room for the count. */
		if (!c->uncounted)
			assert_int_equal(s->overrun, c->missed);
		else
			assert_true(c->missed < s->overrun);
		events += c->events;
		missed += c->missed;
		uncounted += c->uncounted;
		unread += s->entries;
		lost += s->overrun + s->commit_overrun + s->dropped;
		written += s->entries + s->overrun + s->commit_overrun + s->dropped + s->read;
	}
	print_message("written %llu = %llu in the stream + %llu lost (%llu placed, %llu gaps "
		      "without a count)\n",
		      (unsigned long long)written, (unsigned long long)events,
		      (unsigned long long)lost, (unsigned long long)missed,
		      (unsigned long long)uncounted);
	/* One more is the clock marker. */
	assert_int_equal(written, WRITERS * mark_count + 1);
	assert_int_equal(events + lost, WRITERS * mark_count + 1);
	assert_int_equal(unread, 0);
	assert_true(seen.marks == events || seen.marks + 1 == events);
	if (!pause_every)
		assert_true(lost > 0);
	for (int i = 0; i < WRITERS; i++)
		free(seen.present[i]);
	decoded_free(d);
	recording_deinit(&rec);
}

static void mmap_overload(void **state _unused_)
{
	if (!kernel_maps_rings())
		skip();
	check_ledger(CAPTURE_READER_MMAP, 0, true);
}

static void splice_overload(void **state _unused_)
{
	check_ledger(CAPTURE_READER_SPLICE, 0, true);
}

static void read_overload(void **state _unused_)
{
	check_ledger(CAPTURE_READER_READ, 0, true);
}

static void mmap_trickle(void **state _unused_)
{
	if (!kernel_maps_rings())
		skip();
	check_ledger(CAPTURE_READER_MMAP, 500, true);
}

static void splice_trickle(void **state _unused_)
{
	check_ledger(CAPTURE_READER_SPLICE, 500, true);
}

static void read_trickle(void **state _unused_)
{
	check_ledger(CAPTURE_READER_READ, 500, true);
}

static void nobody_reads_until_the_end(void **state _unused_)
{
	check_ledger(CAPTURE_READER_AUTO, 0, false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mmap_overload),
		cmocka_unit_test(splice_overload),
		cmocka_unit_test(read_overload),
		cmocka_unit_test(mmap_trickle),
		cmocka_unit_test(splice_trickle),
		cmocka_unit_test(read_trickle),
		cmocka_unit_test(nobody_reads_until_the_end),
	};

	if (argc > 1)
		mark_count = (unsigned)strtoul(argv[1], NULL, 10);
	fs = open_tracefs_or_skip();
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	tracefs_free(fs);
	return r;
}
