/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Instances that are kept for the next recording, on the running kernel. */
#include "daemon/capture/plan/spare.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/recording.h"
#include "recording.h"

struct fixture {
	struct recording rec;
	struct capture_spare *spare;
	char name[64]; /* of its main instance */
	unsigned tasks;
};

static struct tracefs *fs;

static const struct capture_event_spec specs[] = { { .glob = "sched:sched_switch" } };
static const struct capture_request usual = { .name = "usual", .events = specs, .event_count = 1 };

static int setup(void **state)
{
	static unsigned number;
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	recording_init(&f->rec, fs);
	assert_int_equal(capture_spare_new(&f->spare, &f->rec.env, ++number, &usual, NULL), 0);
	snprintf(f->name, sizeof(f->name), "traced-%d-spare+%u", getpid(), number);
	f->tasks = tracefs_has_event(fs, "task/task_newtask");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char prefix[64], journal[200];

	capture_spare_free(f->spare);
	snprintf(prefix, sizeof(prefix), "traced-%d-", getpid());
	assert_int_equal(count_instances(fs, prefix), 0);
	snprintf(journal, sizeof(journal), "%s/%s.journal", f->rec.state, f->name);
	assert_int_equal(access(journal, F_OK), -1);
	recording_deinit(&f->rec);
	free(f);
	return 0;
}

static struct capture *arm(struct fixture *f, const struct capture_request *request)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture *c = NULL;

	if (capture_new(&c, &f->spare, &f->rec.env, request, &err) < 0)
		fail_msg("%s", err.message);
	return c;
}

static uint64_t setting(const char *instance, const char *file)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, instance);
	uint64_t value = UINT64_MAX;

	assert_int_equal(tracefs_read_u64(dir, file, &value), 0);
	return value;
}

static void change(const char *instance, const char *file, const char *value)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, instance);

	assert_int_equal(tracefs_write(dir, file, value), 0);
}

static unsigned writes_of(const struct capture *c, const char *file)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->setup.plan.count; i++)
		n += c->setup.plan.steps[i].file && strcmp(c->setup.plan.steps[i].file, file) == 0;
	return n;
}

/* Reads the recording; decoded_free() frees the result. */
static struct decoded *record(struct fixture *f, struct capture *c)
{
	assert_int_equal(capture_start(c, f->rec.fd, NULL), 0);
	run_for(c, 100 * NSEC_PER_MSEC);
	assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, NULL), 0);
	return decode(f->rec.fd, NULL, NULL);
}

static void is_taken_as_it_is(void **state)
{
	struct fixture *f = *state;
	struct decoded *d;
	struct capture *c;

	assert_int_equal(count_instances(fs, f->name), 1 + f->tasks);
	assert_int_equal(setting(f->name, "tracing_on"), 0);
	assert_true(capture_spare_bytes(f->spare) >= 4 << 20);
	c = arm(f, &usual);
	assert_null(f->spare);
	assert_string_equal(c->setup.instance, f->name);
	assert_int_equal(count_instances(fs, f->name), 1 + f->tasks);
	assert_int_equal(writes_of(c, "trace_clock"), 1 + f->tasks);
	assert_int_equal(writes_of(c, "buffer_size_kb"), 1 + f->tasks);
	d = record(f, c);
	assert_true(decoded_event_id(d, "sched:sched_switch") > 0);
	assert_string_equal(d->header->trace_clock, "boot");
	assert_true(d->cpus[BUFFER_MAIN][0].subbufs + d->cpus[BUFFER_MAIN][1].subbufs > 0);
	decoded_free(d);
	capture_free(c);
}

static void is_changed_to_what_was_asked_for(void **state)
{
	struct fixture *f = *state;
	struct capture_request other = usual;
	struct decoded *d;
	struct capture *c;

	other.clock = "mono";
	other.buffer_bytes = 512 << 10;
	c = arm(f, &other);
	assert_string_equal(c->setup.instance, f->name);
	assert_in_range(setting(f->name, "buffer_size_kb"), 512, 600);
	d = record(f, c);
	assert_string_equal(d->header->trace_clock, "mono");
	assert_true(d->cpus[BUFFER_MAIN][0].subbufs + d->cpus[BUFFER_MAIN][1].subbufs > 0);
	decoded_free(d);
	capture_free(c);
}

static void is_removed_if_somebody_has_changed_it(void **state)
{
	static const struct {
		const char *file, *value;
	} changes[] = { { "tracing_on", "1" },
			{ "set_event_notrace_pid", "1" },
			{ "trace_marker", "not of the recording" },
			{ "trace_clock", "global" },
			{ "events/irq/enable", "1" },
			{ "options/overwrite", "0" },
			{ "buffer_size_kb", "100" } };
	struct fixture *f = *state;
	unsigned number = 1000;

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct capture *c;

		bool marks = strcmp(changes[i].file, "trace_marker") == 0;

		if (marks)
			change(f->name, "tracing_on", "1");
		change(f->name, changes[i].file, changes[i].value);
		if (marks)
			change(f->name, "tracing_on", "0");
		c = arm(f, &usual);
		assert_null(f->spare);
		assert_int_equal(count_instances(fs, f->name), 0);
		assert_non_null(strstr(c->setup.instance, "-usual"));
		assert_int_equal(setting(c->setup.instance, "tracing_on"), 0);
		capture_free(c);
		assert_int_equal(capture_spare_new(&f->spare, &f->rec.env, ++number, &usual, NULL),
				 0);
		snprintf(f->name, sizeof(f->name), "traced-%d-spare+%u", getpid(), number);
	}
}

static void is_removed_if_the_cpus_have_changed(void **state)
{
	struct fixture *f = *state;
	char path[200], folder[200];
	struct capture *c;

	f->spare = capture_spare_free(f->spare);
	f->rec.env.sys = f->rec.dir;
	snprintf(folder, sizeof(folder), "%s/devices", f->rec.dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	strcat(folder, "/system");
	assert_int_equal(mkdir(folder, 0700), 0);
	strcat(folder, "/cpu");
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/online", folder);
	for (int changed = 0; changed <= 1; changed++) {
		assert_int_equal(capture_spare_new(&f->spare, &f->rec.env, 2000, &usual, NULL), 0);
		if (changed) {
			FILE *file = fopen(path, "we");

			assert_non_null(file);
			fputs("0-63\n", file);
			fclose(file);
		}
		c = arm(f, &usual);
		assert_null(f->spare);
		assert_int_equal(strstr(c->setup.instance, "-usual") != NULL, changed);
		capture_free(c);
	}
}

static void goes_with_a_recording_that_fails(void **state)
{
	static const struct capture_event_spec none = { .glob = "no:such_event" };
	const struct capture_request unknown = { .name = "u", .events = &none, .event_count = 1 };
	const struct capture_request impossible = { .name = "a/b",
						    .events = specs,
						    .event_count = 1 };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct fixture *f = *state;
	struct capture *c = NULL;

	assert_int_equal(capture_new(&c, &f->spare, &f->rec.env, &impossible, &err), -EINVAL);
	assert_non_null(f->spare);
	assert_int_equal(capture_new(&c, &f->spare, &f->rec.env, &unknown, &err), -ENOENT);
	assert_null(f->spare);
	assert_null(c);
	assert_int_equal(count_instances(fs, f->name), 0);
}

static void is_not_for_probes(void **state)
{
	static const struct capture_probe probe = { PROBE_UPROBE,
						    "p:spare_probe /proc/self/exe:0x1000", NULL };
	_cleanup_buf_ struct buf probes = BUF_INIT;
	struct capture_request probed = usual;
	struct fixture *f = *state;
	struct capture *c = NULL;

	probed.probes = &probe;
	probed.probe_count = 1;
	/* Not every kernel has them. */
	capture_new(&c, &f->spare, &f->rec.env, &probed, NULL);
	capture_free(c);
	assert_non_null(f->spare);
	assert_int_equal(count_instances(fs, f->name), 1 + f->tasks);
	if (tracefs_read(tracefs_root(fs), "uprobe_events", &probes) == 0 && probes.len)
		assert_null(strstr(buf_string(&probes), "spare_probe"));
}

static void is_left_alone_while_its_maker_lives(void **state)
{
	struct fixture *f = *state;

	assert_true(capture_recover(&f->rec.env, NULL, NULL) >= 0);
	assert_int_equal(count_instances(fs, f->name), 1 + f->tasks);
	assert_int_equal(tracefs_try_remove_instance(fs, f->name), -EBUSY);
}

static void of_a_killed_one_is_removed(void **state)
{
	struct fixture *f = *state;
	struct capture_spare *s;
	char prefix[64], byte;
	int ready[2], status;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (capture_spare_new(&s, &f->rec.env, 1, &usual, NULL) < 0 ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(2);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	snprintf(prefix, sizeof(prefix), "traced-%d-spare+1", pid);
	assert_int_equal(count_instances(fs, prefix), 1 + f->tasks);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(capture_recover(&f->rec.env, NULL, NULL) >= 1);
	assert_int_equal(count_instances(fs, prefix), 0);
	assert_int_equal(count_instances(fs, f->name), 1 + f->tasks);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(is_taken_as_it_is),
		TEST(is_changed_to_what_was_asked_for),
		TEST(is_removed_if_somebody_has_changed_it),
		TEST(is_removed_if_the_cpus_have_changed),
		TEST(goes_with_a_recording_that_fails),
		TEST(is_not_for_probes),
		TEST(is_left_alone_while_its_maker_lives),
		TEST(of_a_killed_one_is_removed),
	};

	fs = open_tracefs_or_skip();
	int r = cmocka_run_group_tests_name("a spare", tests, NULL, NULL);

	tracefs_free(fs);
	return r;
}
