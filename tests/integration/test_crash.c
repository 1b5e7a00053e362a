/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorder is killed at random moments. Afterwards capture_recover leaves nothing in tracefs, and
 * the stream reads up to its last whole chunk.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "recording.h"

#define ROUNDS 12

static struct tracefs *fs;

static const struct capture_event_spec crash_specs[] = { { .glob = "sched" },
							 { .glob = "irq" },
							 { .glob = "timer" } };
static const struct capture_request crash_request = {
	.name = "crash", .events = crash_specs, .event_count = 3, .buffer_bytes = 256 << 10
};

static void record_until_killed(struct recording *rec)
{
	struct capture *c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (capture_new(&c, NULL, &rec->env, &crash_request, NULL) < 0 ||
	    capture_start(c, rec->fd, NULL) < 0)
		_exit(1);
	run_for(c, 60 * NSEC_PER_SEC);
	_exit(2);
}

/* The time here from the start to a stream with content. */
static uint64_t time_to_record(void)
{
	uint64_t start = now_ns(CLOCK_MONOTONIC), took;
	struct recording rec;
	struct capture *c;

	recording_init(&rec, fs);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &crash_request, NULL), 0);
	assert_int_equal(capture_start(c, rec.fd, NULL), 0);
	took = now_ns(CLOCK_MONOTONIC) - start;
	capture_free(c);
	recording_deinit(&rec);
	return took;
}

static void killed_at_random_moments(void **state _unused_)
{
	const uint64_t span = 300 * NSEC_PER_MSEC + 3 * time_to_record();
	unsigned seed = (unsigned)now_ns(CLOCK_REALTIME), undone = 0, recorded = 0;

	print_message("seed %u\n", seed);
	for (int round = 0; round < ROUNDS; round++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct timespec wait;
		uint64_t ns;
		struct recording rec;
		char prefix[64];
		int status, r;
		pid_t pid;

		recording_init(&rec, fs);
		/* From the middle of arming to well within the recording. */
		ns = span / 1000 * ((unsigned)rand_r(&seed) % 1000);
		wait = (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
					  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
		pid = fork();
		if (pid == 0)
			record_until_killed(&rec);
		nanosleep(&wait, NULL);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));

		r = capture_recover(&rec.env, &err);
		if (r < 0)
			fail_msg("%s", err.message);
		undone += (unsigned)r;
		snprintf(prefix, sizeof(prefix), "traced-%d-", pid);
		assert_int_equal(count_instances(fs, prefix), 0);
		/*
		 * A second run finds no leftovers of this recorder (other tests may crash beside
		 * it).
		 */
		assert_true(capture_recover(&rec.env, &err) >= 0);
		if (lseek(rec.fd, 0, SEEK_END) >= 8) {
			struct decoded *d = decode(rec.fd, NULL, NULL);

			assert_int_equal(d->ends, 0);
			recorded += d->header != NULL;
			decoded_free(d);
		}
		recording_deinit(&rec);
	}
	print_message("%u instances removed, %u streams read\n", undone, recorded);
	assert_true(undone > 0);
	assert_true(recorded > 0);
}

static void living_recorder_is_left_alone(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "irq" } };
	const struct capture_request request = {
		.name = "alive", .events = specs, .event_count = 1, .buffer_bytes = 64 << 10
	};
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct recording rec;
	char prefix[64];

	recording_init(&rec, fs);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), 0);
	assert_true(capture_recover(&rec.env, &err) >= 0);
	snprintf(prefix, sizeof(prefix), "traced-%d-alive", getpid());
	assert_int_equal(count_instances(fs, prefix), 2);
	c = capture_free(c);
	assert_int_equal(count_instances(fs, prefix), 0);
	recording_deinit(&rec);
}

/* The process as a pid namespace without its maker sees it. */
static void held_by_the_unseen_is_not_waited_for(void **state _unused_)
{
	int held[3], status;
	char name[80], prefix[64];
	struct recording rec;
	uint64_t took;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	recording_init(&rec, fs);
	snprintf(prefix, sizeof(prefix), "traced-%d-held", pid);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%d", prefix, i);
		assert_int_equal(tracefs_make_instance(fs, name), 0);
		held[i] = tracefs_open_file(tracefs_root(fs), O_WRONLY, "instances/%s/tracing_on",
					    name);
		assert_true(held[i] >= 0);
	}
	took = now_ns(CLOCK_MONOTONIC);
	assert_true(capture_recover(&rec.env, NULL) >= 0);
	took = now_ns(CLOCK_MONOTONIC) - took;
	assert_int_equal(count_instances(fs, prefix), 3);
	for (int i = 0; i < 3; i++)
		close_fd(held[i]);
	/* Another daemon that starts may be faster. */
	assert_true(capture_recover(&rec.env, NULL) >= 0);
	assert_int_equal(count_instances(fs, prefix), 0);
	assert_true(took < NSEC_PER_SEC);
	recording_deinit(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_random_moments),
		cmocka_unit_test(living_recorder_is_left_alone),
		cmocka_unit_test(held_by_the_unseen_is_not_waited_for),
	};

	fs = open_tracefs_or_skip();
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	tracefs_free(fs);
	return r;
}
