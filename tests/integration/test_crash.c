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
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/tracefs/setting.h"
#include "recording.h"

#define ROUNDS 12

static struct tracefs *fs;

static const struct capture_event_spec crash_specs[] = { { .glob = "sched" },
							 { .glob = "irq" },
							 { .glob = "timer" } };
static const struct capture_trigger crash_triggers[] = {
	{ .event = "sched:sched_switch", .action = "stacktrace if prev_pid == 1" },
	{ .event = "sched:sched_waking", .action = "enable_event:irq:softirq_raise:3" },
};
static const struct capture_request crash_request = {
	.name = "crash",
	.events = crash_specs,
	.event_count = 3,
	.triggers = crash_triggers,
	.trigger_count = ARRAY_SIZE(crash_triggers),
	.buffer_bytes = 256 << 10,
};

static void record_until_killed(struct recording *rec, const struct capture_request *request)
{
	struct capture *c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (capture_new(&c, NULL, &rec->env, request, NULL) < 0 ||
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
			record_until_killed(&rec, &crash_request);
		nanosleep(&wait, NULL);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));

		r = capture_recover(&rec.env, NULL, &err);
		if (r < 0)
			fail_msg("%s", err.message);
		undone += (unsigned)r;
		snprintf(prefix, sizeof(prefix), "traced-%d-", pid);
		assert_int_equal(count_instances(fs, prefix), 0);
		/*
		 * A second run finds no leftovers of this recorder (other tests may crash beside
		 * it).
		 */
		assert_true(capture_recover(&rec.env, NULL, &err) >= 0);
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

static const char *const top_files[] = { "tracing_on",	   "trace_clock",    "options/overwrite",
					 "buffer_size_kb", "buffer_percent", "tracing_cpumask",
					 "events/enable" };

static void read_top(char values[][64])
{
	_cleanup_buf_ struct buf size = BUF_INIT, now = BUF_INIT;

	/* "7 (expanded: 1408)" before the first use; sizes are rounded up to pages. */
	assert_int_equal(tracefs_read(tracefs_root(fs), "buffer_size_kb", &now), 0);
	assert_int_equal(setting_text("buffer_size_kb", buf_string(&now), &size), 0);
	assert_int_equal(tracefs_write(tracefs_root(fs), "buffer_size_kb", buf_string(&size)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(top_files); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;

		assert_int_equal(tracefs_read(tracefs_root(fs), top_files[i], &text), 0);
		snprintf(values[i], 64, "%s", buf_string(&text) ?: "");
	}
}

static bool top_reads(const char *file, const char *value)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	return tracefs_read(tracefs_root(fs), file, &text) == 0 && buf_string(&text) &&
	       strncmp(text.data, value, strlen(value)) == 0;
}

/* One test at a time may use the top-level buffer. Held until the descriptor is closed. */
static int lock_top_level(void)
{
	int fd = tracefs_open_file(tracefs_root(fs), O_RDONLY | O_DIRECTORY, ".");

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	return fd;
}

/* Kills a recorder that records in the top-level buffer. False: the buffer is in use. */
static bool kill_in_top_level(struct recording *rec)
{
	static const struct capture_event_spec specs[] = {
		{ .glob = "sched:sched_switch", .filter = "prev_pid > 0" }, { .glob = "irq" }
	};
	const struct capture_request request = { .name = "top",
						 .events = specs,
						 .event_count = ARRAY_SIZE(specs),
						 .top_level = true,
						 .buffer_bytes = 2 << 20 };
	int status;
	pid_t pid = fork();

	if (pid == 0)
		record_until_killed(rec, &request);
	/* Tracing is turned on last. */
	for (int tries = 0; tries < 6000 && !(lseek(rec->fd, 0, SEEK_END) >= 8 &&
					      top_reads("events/sched/sched_switch/enable", "1") &&
					      top_reads("tracing_on", "1"));
	     tries++)
		usleep(10000);
	usleep(200000);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status);
}

/* skip() leaves no scope, so that nothing is cleaned up. */
static void skip_top_level(struct recording *rec, int lock)
{
	recording_deinit(rec);
	close(lock);
	skip();
}

static void the_top_level_is_restored(void **state _unused_)
{
	char before[ARRAY_SIZE(top_files)][64], after[ARRAY_SIZE(top_files)][64];
	_cleanup_close_ int lock = lock_top_level();
	_cleanup_buf_ struct buf kept = BUF_INIT;
	struct recording rec;

	recording_init(&rec, fs);
	read_top(before);
	if (!kill_in_top_level(&rec))
		skip_top_level(&rec, lock);
	assert_true(top_reads("events/enable", "X"));
	assert_true(capture_recover(&rec.env, &kept, NULL) > 0);
	read_top(after);
	for (size_t i = 0; i < ARRAY_SIZE(top_files); i++)
		assert_string_equal(after[i], before[i]);
	assert_int_equal(kept.len, 0);
	assert_true(top_reads("per_cpu/cpu0/stats", "entries: 0\n"));
	recording_deinit(&rec);
}

/* The administrator takes the buffer after the crash, before the next start. */
static void what_was_changed_after_the_crash_stays(void **state _unused_)
{
	char before[ARRAY_SIZE(top_files)][64], after[ARRAY_SIZE(top_files)][64],
		changed[ARRAY_SIZE(top_files)][64];
	_cleanup_close_ int lock = lock_top_level();
	_cleanup_buf_ struct buf kept = BUF_INIT;
	int root = tracefs_root(fs);
	struct recording rec;

	recording_init(&rec, fs);
	read_top(before);
	if (!kill_in_top_level(&rec))
		skip_top_level(&rec, lock);
	bool taken = tracefs_write(root, "trace_clock", "mono") == 0 &&
		     tracefs_write(root, "buffer_size_kb", "512") == 0 &&
		     tracefs_write(root, "events/task/task_rename/enable", "1") == 0;
	read_top(changed);
	taken = taken && tracefs_write(root, "trace_marker", "mine") == 0;
	bool undone = capture_recover(&rec.env, &kept, NULL) > 0;
	read_top(after);
	bool clock = strstr(after[1], "[mono]"), size = strcmp(after[3], changed[3]) == 0,
	     on = strcmp(after[0], before[0]) == 0, percent = strcmp(after[4], before[4]) == 0,
	     event = top_reads("events/task/task_rename/enable", "1"),
	     ours = top_reads("events/sched/sched_switch/enable", "0") &&
		    top_reads("events/irq/enable", "0") &&
		    top_reads("events/sched/sched_switch/filter", "none");
	_cleanup_buf_ struct buf trace = BUF_INIT;
	bool mine = tracefs_read(root, "trace", &trace) == 0 && buf_string(&trace) &&
		    strstr(trace.data, "mine");

	/* Back to what it was, whatever the result. */
	tracefs_write(root, "events/task/task_rename/enable", "0");
	tracefs_write(root, "trace_clock", setting_chosen(before[1]));
	tracefs_write(root, "buffer_size_kb", before[3]);
	tracefs_write(root, "trace", "");
	print_message("%s", buf_string(&kept));
	assert_true(taken && undone);
	assert_true(clock && size && event);
	assert_true(on && percent && ours);
	assert_true(mine);
	assert_non_null(strstr(kept.data, "trace_clock stays 'mono'"));
	assert_non_null(strstr(kept.data, "buffer_size_kb stays '51"));
	assert_non_null(strstr(kept.data, "the events in the top-level buffer stay"));
	recording_deinit(&rec);
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
	assert_true(capture_recover(&rec.env, NULL, &err) >= 0);
	snprintf(prefix, sizeof(prefix), "traced-%d-alive", getpid());
	assert_int_equal(count_instances(fs, prefix), 2);
	c = capture_free(c);
	assert_int_equal(count_instances(fs, prefix), 0);
	recording_deinit(&rec);
}

/* The process as a pid namespace without its maker sees it. */
static void held_by_the_unseen_is_not_waited_for(void **state _unused_)
{
	const struct timespec then = { .tv_sec = time(NULL) - 60 };
	const struct timespec times[] = { then, then };
	int held[3], status;
	char name[80], prefix[64], path[96];
	struct recording rec;
	uint64_t took = UINT64_MAX;
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
		/* A young one would be spared for its age. */
		snprintf(path, sizeof(path), "instances/%s", name);
		assert_int_equal(utimensat(tracefs_root(fs), path, times, 0), 0);
	}
	/* A busy machine may stand still in one of them. */
	for (int i = 0; i < 3; i++) {
		uint64_t began = now_ns(CLOCK_MONOTONIC);

		assert_true(capture_recover(&rec.env, NULL, NULL) >= 0);
		took = MIN(took, now_ns(CLOCK_MONOTONIC) - began);
	}
	assert_int_equal(count_instances(fs, prefix), 3);
	for (int i = 0; i < 3; i++)
		close_fd(held[i]);
	/* Another daemon that starts may be faster. */
	assert_true(capture_recover(&rec.env, NULL, NULL) >= 0);
	assert_int_equal(count_instances(fs, prefix), 0);
	assert_true(took < NSEC_PER_SEC);
	recording_deinit(&rec);
}

#define SWITCH_TRIGGER "events/sched/sched_switch/trigger"

static void set_triggers_until_killed(struct recording *rec, const char *instance)
{
	struct journal j;
	struct plan p = { 0 };

	plan_trigger(&p, instance, SWITCH_TRIGGER,
		     "stacktrace:3 if prev_pid == 0 && next_prio > 9");
	plan_trigger(&p, instance, SWITCH_TRIGGER, "enable_event:sched:sched_waking:1");
	/* A trigger that the kernel refuses, killed before its plan is undone. */
	plan_trigger(&p, instance, SWITCH_TRIGGER, "no_such_command");
	if (p.failed || journal_create(&j, rec->state, instance, NULL) < 0)
		_exit(1);
	p.steps[2].optional = true;
	if (plan_apply(&p, fs, &j, NULL) < 0 || p.steps[2].refused != -EINVAL)
		_exit(1);
	kill(getpid(), SIGKILL);
}

static void triggers_of_the_killed_are_removed(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf set = BUF_INIT, left = BUF_INIT;
	struct recording rec;
	char name[64];
	int status, undone;
	pid_t pid;

	recording_init(&rec, fs);
	/* The instance is in no journal: its end would remove the triggers, too. */
	snprintf(name, sizeof(name), "traced-%d-trig..gers", getpid());
	assert_int_equal(tracefs_make_instance(fs, name), 0);
	pid = fork();
	if (pid == 0)
		set_triggers_until_killed(&rec, name);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	_cleanup_close_ int dir = tracefs_open_instance(fs, name);

	tracefs_read(dir, SWITCH_TRIGGER, &set);
	undone = capture_recover(&rec.env, NULL, &err);
	tracefs_read(dir, SWITCH_TRIGGER, &left);
	dir = close_fd(dir);
	assert_int_equal(tracefs_remove_instance(fs, name), 0);
	assert_true(WIFSIGNALED(status));
	assert_non_null(strstr(buf_string(&set), "if prev_pid == 0 && next_prio > 9"));
	assert_non_null(strstr(buf_string(&set), "enable_event:sched:sched_waking:"));
	if (undone < 0)
		fail_msg("%s", err.message);
	assert_int_equal(undone, 2);
	/* The list of commands, for a file without triggers. */
	assert_int_equal(*buf_string(&left), '#');
	recording_deinit(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_random_moments),
		cmocka_unit_test(the_top_level_is_restored),
		cmocka_unit_test(what_was_changed_after_the_crash_stays),
		cmocka_unit_test(living_recorder_is_left_alone),
		cmocka_unit_test(held_by_the_unseen_is_not_waited_for),
		cmocka_unit_test(triggers_of_the_killed_are_removed),
	};

	fs = open_tracefs_or_skip();
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	tracefs_free(fs);
	return r;
}
