/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applications' marks use CLOCK_BOOTTIME, and so does the kernel's ring: events made one after the
 * other are always in that order. The same for syncs.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/recording.h"
#include "recording.h"

#define MARKS 10000U

static struct tracefs *fs;
static struct {
	uint64_t before, ts, after;
	unsigned seen;
} marks[MARKS];

static const struct capture_event_spec specs[] = { { .glob = "sched:sched_process_hang" } };

static void see_mark(void *userdata _unused_, enum subbufs_buffer buffer, unsigned cpu _unused_,
		     const struct record *r)
{
	const char *at = memmem(r->data, r->len, "order ", 6);
	unsigned i;

	if (buffer != BUFFER_MAIN || !at || sscanf(at, "order %u", &i) != 1 || i >= MARKS)
		return;
	marks[i].ts = r->ts;
	marks[i].seen++;
}

static void marks_and_events_are_in_order(void **state _unused_)
{
	const struct capture_request request = {
		.name = "order", .events = specs, .event_count = 1, .buffer_bytes = 4 << 20
	};
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int marker = -EBADF;
	struct recording rec;
	unsigned wrong = 0;

	recording_init(&rec, fs);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), 0);
	assert_int_equal(capture_start(c, rec.fd, &err), 0);
	marker = tracefs_open_file(c->run.rings[BUFFER_MAIN].dir, O_WRONLY, "trace_marker");
	assert_true(marker >= 0);
	for (unsigned i = 0; i < MARKS; i++) {
		char text[32];
		int n = snprintf(text, sizeof(text), "order %u\n", i);

		/* Dates a mark as libtraced does. */
		marks[i].before = now_ns(CLOCK_BOOTTIME);
		assert_int_equal(write(marker, text, (size_t)n), n);
		marks[i].after = now_ns(CLOCK_BOOTTIME);
		if (i % 500 == 0)
			assert_true(capture_dispatch(c, &err) >= 0);
	}
	marker = close_fd(marker);
	assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), 0);
	decoded_free(decode(rec.fd, see_mark, NULL));
	for (unsigned i = 0; i < MARKS; i++) {
		assert_int_equal(marks[i].seen, 1);
		wrong += marks[i].ts < marks[i].before || marks[i].ts > marks[i].after;
	}
	if (wrong)
		fail_msg("%u of %u are out of order", wrong, MARKS);
	recording_deinit(&rec);
}

struct seen_sync {
	const char *id;
	uint64_t ts;
	unsigned count;
};

static void see_sync(void *userdata, enum subbufs_buffer buffer, unsigned cpu _unused_,
		     const struct record *r)
{
	struct seen_sync *s = userdata;
	const char *at = memmem(r->data, r->len, s->id, strlen(s->id));

	if (buffer != BUFFER_MAIN || !at)
		return;
	s->ts = r->ts;
	s->count++;
}

static void a_sync_lies_between_its_readings(void **state _unused_)
{
	_cleanup_(capture_freep) struct capture *c = NULL;
	const struct capture_request request = { .name = "sync",
						 .events = specs,
						 .event_count = 1 };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct seen_sync seen = { .id = "name=an-id_1" };
	char longest[CAPTURE_SYNC_ID_MAX + 2];
	struct capture_sync sync, other;
	struct recording rec;

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	recording_init(&rec, fs);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), 0);
	assert_int_equal(capture_sync(c, "early", &sync, &err), -ENODATA);
	assert_int_equal(capture_start(c, rec.fd, &err), 0);
	assert_int_equal(capture_sync(c, "an-id_1", &sync, &err), 0);
	assert_int_equal(capture_sync(c, "an-id_1", &other, &err), -EEXIST);
	assert_int_equal(capture_sync(c, "", &other, &err), -EINVAL);
	assert_int_equal(capture_sync(c, "an id", &other, &err), -EINVAL);
	assert_int_equal(capture_sync(c, longest, &other, &err), -EINVAL);
	longest[CAPTURE_SYNC_ID_MAX] = '\0';
	assert_int_equal(capture_sync(c, longest, &other, &err), 0);
	/* The recorder's own sync, and these two. */
	for (unsigned i = 3; i < CAPTURE_SYNCS_MAX; i++) {
		char id[16];

		snprintf(id, sizeof(id), "n%u", i);
		assert_int_equal(capture_sync(c, id, &other, &err), 0);
	}
	assert_int_equal(capture_sync(c, "one-too-many", &other, &err), -ENOSPC);
	assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), 0);
	decoded_free(decode(rec.fd, see_sync, &seen));
	assert_int_equal(seen.count, 1);
	assert_in_range(seen.ts, sync.before_ns, sync.after_ns);
	recording_deinit(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_and_events_are_in_order),
		cmocka_unit_test(a_sync_lies_between_its_readings),
	};

	fs = open_tracefs_or_skip();
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	tracefs_free(fs);
	return r;
}
