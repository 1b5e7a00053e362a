/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plan, journal, recovery, on a folder in place of tracefs. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/sysinfo.h>
#include <time.h>

#include <cmocka.h>

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/plan/request.h"
#include "fake_root.h"

/* Calls that still find an instance busy. */
static int busy, removals;

int __real_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags);

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	removals++;
	if (!busy)
		return __real_unlinkat(dir, path, flags);
	busy--;
	errno = EBUSY;
	return -1;
}

struct fixture {
	struct fake_root root;
	struct tracefs *fs;
	struct journal journal;
	char state[128];
	struct capture_env env;
};

static const struct capture_env env = { .proc = "/proc" };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	busy = 0;
	fake_root_init(&f->root);
	fake_dir(&f->root, "events");
	fake_dir(&f->root, "instances");
	fake_dir(&f->root, "state");
	fake_dir(&f->root, "proc");
	fake_file(&f->root, "trace_clock", "[local] global boot mono\n");
	fake_file(&f->root, "tracing_thresh", "0\n");
	fake_file(&f->root, "tracing_on", "1\n");
	assert_int_equal(tracefs_open(&f->fs, f->root.path, NULL), 0);
	snprintf(f->state, sizeof(f->state), "%s/state", f->root.path);
	f->env = (struct capture_env){ .tracefs = f->fs, .state_dir = f->state };
	f->env.proc = strdup(fake_path(&f->root, "proc"));
	assert_int_equal(journal_create(&f->journal, f->state, "traced-1-unit", NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	journal_close(&f->journal);
	tracefs_free(f->fs);
	free((char *)(uintptr_t)f->env.proc);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

static bool exists(const struct fixture *f, const char *path)
{
	struct stat st;

	return stat(fake_path(&f->root, path), &st) == 0;
}

static void applied_and_undone(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_instance(&p, "traced-1-unit");
	plan_set(&p, NULL, "tracing_thresh", "100", NULL);
	plan_write(&p, NULL, "tracing_on", "0");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_true(exists(f, "instances/traced-1-unit"));
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "100");
	assert_string_equal(fake_text(&f->root, "state/traced-1-unit.journal"),
			    "instance traced-1-unit\nrestore tracing_thresh 0\n"
			    "wrote tracing_thresh 100\n");
	assert_int_equal(plan_undo(&p, f->fs), 0);
	assert_false(exists(f, "instances/traced-1-unit"));
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0");
	/* A second undo does no harm. */
	assert_int_equal(plan_undo(&p, f->fs), 0);
	journal_drop(&f->journal);
	assert_false(exists(f, "state/traced-1-unit.journal"));
	plan_deinit(&p);
}

#define HISTS "events/sched/sched_switch/trigger"
#define OUR_HISTS "instances/traced-1-a..b/" HISTS
#define HIST_A "hist:keys=next_pid:t=common_timestamp"
#define HIST_B "hist:keys=next_pid:d=common_timestamp-$t if prio > 9"

static void plan_two_hists(struct fixture *f, struct plan *p)
{
	fake_dir(&f->root, "instances/traced-1-a..b");
	fake_dir(&f->root, "instances/traced-1-a..b/events");
	fake_dir(&f->root, "instances/traced-1-a..b/events/sched");
	fake_dir(&f->root, "instances/traced-1-a..b/events/sched/sched_switch");
	fake_file(&f->root, OUR_HISTS, "# as before\n");
	assert_non_null(plan_trigger(p, "traced-1-a..b", HISTS, HIST_A));
	assert_non_null(plan_trigger(p, "traced-1-a..b", HISTS, HIST_B));
	assert_int_equal(plan_apply(p, f->fs, &f->journal, NULL), 0);
	assert_string_equal(fake_text(&f->root, OUR_HISTS), "# as before\n" HIST_A HIST_B);
	assert_string_equal(fake_text(&f->root, "state/traced-1-unit.journal"),
			    "append " OUR_HISTS " !" HIST_A "\n"
			    "append " OUR_HISTS " !" HIST_B "\n");
	/* A file of the kernel has no end to append to. */
	fake_file(&f->root, OUR_HISTS, "");
}

static void triggers_are_removed_last_first(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_two_hists(f, &p);
	assert_int_equal(plan_undo(&p, f->fs), 0);
	assert_string_equal(fake_text(&f->root, OUR_HISTS), "!" HIST_B "!" HIST_A);
	plan_deinit(&p);
}

static void triggers_of_the_dead_are_removed_last_first(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_two_hists(f, &p);
	journal_close(&f->journal);
	assert_int_equal(capture_recover(&f->env, NULL, NULL), 2);
	assert_string_equal(fake_text(&f->root, OUR_HISTS), "!" HIST_B "!" HIST_A);
	assert_false(exists(f, "state/traced-1-unit.journal"));
	plan_deinit(&p);
}

static void refused_trigger_removes_those_before(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_two_hists(f, &p);
	plan_trigger(&p, "traced-1-a..b", "events/sched/no_such/trigger", "stacktrace");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), -ENOENT);
	assert_string_equal(fake_text(&f->root, OUR_HISTS), "!" HIST_B "!" HIST_A);
	plan_deinit(&p);
}

static void triggers_of_a_removed_instance_are_undone(void **state)
{
	struct fixture *f = *state;

	journal_append(&f->journal, "instances/traced-1-gone/" HISTS, "!" HIST_A);
	journal_close(&f->journal);
	assert_int_equal(capture_recover(&f->env, NULL, NULL), 0);
	assert_false(exists(f, "state/traced-1-unit.journal"));
}

static void refused_step_undoes_those_before(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct plan p = { 0 };

	plan_instance(&p, "traced-1-unit");
	plan_set(&p, NULL, "tracing_thresh", "100", NULL);
	plan_write(&p, NULL, "no_such_file", "1");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, &err), -ENOENT);
	assert_non_null(strstr(err.message, "no_such_file"));
	assert_false(exists(f, "instances/traced-1-unit"));
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0");
	plan_deinit(&p);
}

static void optional_step_may_be_refused(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_write(&p, NULL, "no_such_file", "1")->optional = true;
	plan_write(&p, NULL, "tracing_on", "0");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_int_equal(p.steps[0].refused, -ENOENT);
	assert_false(p.steps[0].done);
	assert_string_equal(fake_text(&f->root, "tracing_on"), "0");
	plan_deinit(&p);
}

static void a_step_done_by_another_is_not_taken(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_write(&p, NULL, "no_such_file", "1")->optional = true;
	plan_write(&p, NULL, "tracing_thresh", "5");
	plan_write(&p, NULL, "tracing_on", "refused")->by = 1;
	plan_write(&p, NULL, "trace_clock", "done")->by = 2;
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_string_equal(fake_text(&f->root, "tracing_on"), "refused");
	assert_string_equal(fake_text(&f->root, "trace_clock"), "[local] global boot mono\n");
	assert_true(p.steps[2].done && p.steps[3].done);
	plan_deinit(&p);
}

static void what_was_applied_is_not_planned_again(void **state)
{
	struct fixture *f = *state;
	const struct plan_step *done;
	struct plan p = { 0 };

	plan_instance(&p, "traced-1-unit");
	plan_write(&p, NULL, "trace_clock", "boot");
	plan_write(&p, NULL, "tracing_on", "0");
	plan_write(&p, NULL, "no_such_file", "1")->optional = true;
	/* A step without a value to restore is repeated each time. */
	plan_write(&p, NULL, "tracing_on", "0");
	assert_int_equal(p.count, 5);
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	fake_file(&f->root, "trace_clock", "untouched");
	fake_file(&f->root, "no_such_file", "0");

	plan_instance(&p, "traced-1-unit");
	done = plan_write(&p, NULL, "trace_clock", "boot");
	assert_ptr_equal(done, &p.steps[1]);
	assert_int_equal(p.count, 5);
	plan_instance(&p, "traced-1-other");
	plan_write(&p, "traced-1-unit", "trace_clock", "boot")->optional = true;
	plan_write(&p, NULL, "no_such_file", "1");
	assert_int_equal(p.count, 8);
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_string_equal(fake_text(&f->root, "trace_clock"), "untouched");
	assert_string_equal(fake_text(&f->root, "no_such_file"), "1");
	assert_int_equal(plan_undo(&p, f->fs), 0);
	assert_false(exists(f, "instances/traced-1-unit") || exists(f, "instances/traced-1-other"));
	plan_deinit(&p);
}

static void what_was_written_over_is_planned_again(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_write(&p, NULL, "trace_clock", "boot");
	plan_write(&p, NULL, "tracing_on", "0");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	plan_write(&p, NULL, "trace_clock", "mono");
	plan_write(&p, NULL, "trace_clock", "boot");
	plan_write(&p, NULL, "tracing_on", "1");
	assert_int_equal(p.count, 5);
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_string_equal(fake_text(&f->root, "trace_clock"), "boot");
	plan_write(&p, NULL, "tracing_on", "1");
	assert_int_equal(p.count, 5);
	plan_write(&p, NULL, "tracing_on", "0");
	assert_int_equal(p.count, 6);
	assert_int_equal(plan_undo(&p, f->fs), 0);
	/* An undone step is no longer in force. */
	plan_write(&p, NULL, "trace_clock", "boot");
	assert_int_equal(p.count, 7);
	plan_deinit(&p);
}

static void a_system_that_is_on_is_found_again(void **state _unused_)
{
	const struct capture_event_spec specs[] = { { .glob = "irq" }, { .glob = "timer" } };
	const struct capture_request request = { .events = specs, .event_count = 2 };
	struct event_match items[] = {
		{ .name = "irq:irq_handler_entry", .spec = &specs[0], .whole_system = true },
		{ .name = "timer:timer_start", .spec = &specs[1], .whole_system = true },
		{ .name = "timer:timer_init", .spec = &specs[1], .whole_system = true },
	};
	const struct event_matches irq = { .items = items, .count = 1 };
	const struct event_matches both = { .items = items, .count = ARRAY_SIZE(items) };
	struct plan p = { 0 };

	assert_int_equal(request_plan(&p, &env, &request, &irq, "traced-1-unit", NULL, NULL), 0);
	for (size_t i = 0; i < p.count; i++)
		p.steps[i].done = true;
	p.tried = p.count;
	assert_int_equal(request_plan(&p, &env, &request, &both, "traced-1-unit", NULL, NULL), 0);
	assert_int_equal(p.count, p.tried + 3);
	for (size_t i = 0; i < p.count; i++) {
		const struct plan_step *s = &p.steps[i];

		if (!s->tag)
			continue;
		assert_in_range(s->by, 1, i);
		assert_string_equal(p.steps[s->by - 1].file, s->tag == &items[0]
								     ? "events/irq/enable"
								     : "events/timer/enable");
	}
	plan_deinit(&p);
}

/* Another recording allocates its rings between two slices. */
static void memory_is_checked_until_the_rings_are_there(void **state)
{
	const struct capture_event_spec spec = { .glob = "irq" };
	const struct event_matches none = { 0 };
	const struct capture_request request = {
		.events = &spec,
		.event_count = 1,
		.buffer_bytes = (UINT64_C(80) << 20) / (unsigned)get_nprocs(),
	};
	const char *instance = "traced-1-unit";
	_cleanup_error_ struct error err = ERROR_INIT;
	struct fixture *f = *state;
	struct plan p = { 0 };

	assert_int_equal(request_plan(&p, &env, &request, &none, instance, NULL, NULL), 0);
	fake_file(&f->root, "proc/meminfo", "MemAvailable: 102400 kB\n");
	assert_int_equal(request_check_room(&f->env, &request, &p, instance, &err), 0);
	fake_file(&f->root, "proc/meminfo", "MemAvailable: 51200 kB\n");
	assert_int_equal(request_check_room(&f->env, &request, &p, instance, &err), -ENOMEM);
	assert_non_null(strstr(err.message, "do not fit"));
	/* Ours has as much already. */
	fake_file(&f->root, "instances/traced-1-unit/buffer_total_size_kb", "51200\n");
	assert_int_equal(request_check_room(&f->env, &request, &p, instance, &err), 0);
	fake_file(&f->root, "proc/meminfo", "MemAvailable: 0 kB\n");
	for (size_t i = 0; i < p.count; i++)
		p.steps[i].done = true;
	assert_int_equal(request_check_room(&f->env, &request, &p, instance, &err), 0);
	plan_deinit(&p);
}

static void a_slice_ends_with_a_step(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_instance(&p, "traced-1-unit");
	plan_set(&p, NULL, "tracing_thresh", "100", NULL);
	plan_write(&p, NULL, "tracing_on", "0");
	assert_int_equal(plan_apply_slice(&p, f->fs, &f->journal, 0, NULL), 1);
	assert_true(exists(f, "instances/traced-1-unit"));
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0\n");
	/* The next step's line is not in the journal before the step's slice. */
	assert_string_equal(fake_text(&f->root, "state/traced-1-unit.journal"),
			    "instance traced-1-unit\n");
	assert_int_equal(plan_apply_slice(&p, f->fs, &f->journal, 0, NULL), 1);
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "100");
	assert_string_equal(fake_text(&f->root, "tracing_on"), "1\n");
	assert_int_equal(plan_apply_slice(&p, f->fs, &f->journal, 0, NULL), 0);
	assert_string_equal(fake_text(&f->root, "tracing_on"), "0");
	assert_true(plan_undo_slice(&p, f->fs, 0));
	assert_true(plan_undo_slice(&p, f->fs, 0));
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0");
	assert_true(exists(f, "instances/traced-1-unit"));
	assert_false(plan_undo_slice(&p, f->fs, 0));
	assert_false(exists(f, "instances/traced-1-unit"));
	plan_deinit(&p);
}

static void a_refusal_leaves_the_undoing_to_slices(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_instance(&p, "traced-1-unit");
	plan_write(&p, NULL, "no_such_file", "1");
	assert_int_equal(plan_apply_slice(&p, f->fs, &f->journal, UINT64_MAX, NULL), -ENOENT);
	assert_true(exists(f, "instances/traced-1-unit"));
	assert_false(plan_undo_slice(&p, f->fs, UINT64_MAX));
	assert_false(exists(f, "instances/traced-1-unit"));
	plan_deinit(&p);
}

static void slices_pass_what_cannot_be_undone(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_set(&p, NULL, "tracing_thresh", "100", NULL);
	plan_instance(&p, "traced-1-unit");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	fake_file(&f->root, "instances/traced-1-unit/file", "");
	assert_true(plan_undo_slice(&p, f->fs, 0));
	assert_false(plan_undo_slice(&p, f->fs, 0));
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0");
	assert_int_equal(plan_undo(&p, f->fs), -ENOTEMPTY);
	unlink(fake_path(&f->root, "instances/traced-1-unit/file"));
	/* Another try. */
	assert_int_equal(plan_undo(&p, f->fs), 0);
	assert_false(exists(f, "instances/traced-1-unit"));
	plan_deinit(&p);
}

/* Somebody reads the instance. */
static void a_busy_instance_is_waited_for_once(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_instance(&p, "traced-1-unit");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	busy = 10000;
	assert_false(plan_undo_slice(&p, f->fs, 0));
	removals = 0;
	assert_int_equal(plan_undo(&p, f->fs), -EBUSY);
	assert_int_equal(removals, 1);
	busy = 0;
	assert_int_equal(plan_undo(&p, f->fs), 0);
	assert_false(exists(f, "instances/traced-1-unit"));
	plan_deinit(&p);
}

#define MANY 40

/* The step that writes the file; or an empty one. */
static const struct plan_step *find_step(const struct plan *p, const char *file)
{
	static const struct plan_step none;

	for (size_t i = 0; i < p->count; i++)
		if (p->steps[i].file && strcmp(p->steps[i].file, file) == 0)
			return &p->steps[i];
	return &none;
}

static void plan_many(struct plan *p, const char *system, size_t count)
{
	const struct capture_event_spec spec = { .glob = "*:*" };
	const struct capture_request request = { .events = &spec, .event_count = 1 };
	struct event_match items[MANY];
	char names[MANY][32];

	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "%s:e%02zu", system, i);
		items[i] = (struct event_match){ .name = names[i],
						 .spec = &spec,
						 .whole_system = true };
	}
	assert_int_equal(request_plan(p, &env, &request,
				      &(struct event_matches){ .items = items, .count = count },
				      "traced-1-unit", NULL, NULL),
			 0);
}

/* No call of the kernel takes long: neither the writes nor, with all events off, the removal. */
static void many_events_are_enabled_and_disabled_one_by_one(void **state _unused_)
{
	struct plan few = { 0 }, many = { 0 }, calls = { 0 };

	plan_many(&few, "irq", 20);
	assert_non_null(find_step(&few, "events/irq/enable")->file);
	assert_null(find_step(&few, "events/irq/enable")->old);
	plan_many(&many, "xfs", MANY);
	assert_null(find_step(&many, "events/xfs/enable")->file);
	assert_int_equal(find_step(&many, "events/xfs/e39/enable")->by, 0);
	assert_string_equal(find_step(&many, "events/xfs/e39/enable")->old, "0");
	plan_many(&calls, "syscalls", MANY);
	assert_string_equal(find_step(&calls, "events/syscalls/enable")->old, "0");
	plan_deinit(&few);
	plan_deinit(&many);
	plan_deinit(&calls);
}

static void events_go_off_before_their_instance(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	fake_file(&f->root, "system", "");
	fake_file(&f->root, "event", "untouched");
	plan_instance(&p, "traced-1-unit");
	plan_write(&p, NULL, "system", "1")->old = strdup("0");
	plan_write(&p, NULL, "event", "1")->old = strdup("0");
	p.steps[2].by = 2;
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_true(plan_undo_slice(&p, f->fs, 0));
	assert_true(plan_undo_slice(&p, f->fs, 0));
	assert_string_equal(fake_text(&f->root, "event"), "untouched");
	assert_string_equal(fake_text(&f->root, "system"), "0");
	assert_true(exists(f, "instances/traced-1-unit"));
	assert_int_equal(plan_undo(&p, f->fs), 0);
	plan_deinit(&p);
}

static void instance_that_is_there_is_not_removed(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct plan p = { 0 };

	fake_dir(&f->root, "instances/traced-1-unit");
	plan_instance(&p, "traced-1-unit");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, &err), -EEXIST);
	assert_true(exists(f, "instances/traced-1-unit"));
	plan_deinit(&p);
}

static void instance_removed_by_others_is_fine(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_instance(&p, "traced-1-unit");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_int_equal(rmdir(fake_path(&f->root, "instances/traced-1-unit")), 0);
	assert_int_equal(plan_undo(&p, f->fs), 0);
	plan_deinit(&p);
}

static void journal_of_the_living_is_left_alone(void **state)
{
	struct fixture *f = *state;

	fake_dir(&f->root, "instances/traced-1-unit");
	assert_int_equal(journal_instance(&f->journal, "traced-1-unit"), 0);
	assert_int_equal(capture_recover(&f->env, NULL, NULL), 0);
	assert_true(exists(f, "instances/traced-1-unit"));
	assert_true(exists(f, "state/traced-1-unit.journal"));
}

static void journal_of_the_dead_is_undone(void **state)
{
	struct fixture *f = *state;

	fake_dir(&f->root, "instances/traced-1-unit");
	fake_dir(&f->root, "instances/traced-1-unit-tasks");
	journal_instance(&f->journal, "traced-1-unit");
	journal_restore(&f->journal, "tracing_thresh", "two\\lines\nhere");
	journal_instance(&f->journal, "traced-1-unit-tasks");
	journal_instance(&f->journal, "traced-1-never-made");
	journal_close(&f->journal);
	assert_int_equal(capture_recover(&f->env, NULL, NULL), 3);
	assert_false(exists(f, "instances/traced-1-unit"));
	assert_false(exists(f, "instances/traced-1-unit-tasks"));
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "two\\lines\nhere");
	assert_false(exists(f, "state/traced-1-unit.journal"));
	assert_int_equal(capture_recover(&f->env, NULL, NULL), 0);
}

/* Undoes the journal as after a crash. Returns what stays; valid until the next call. */
static const char *recover(struct fixture *f, int undone)
{
	static char text[512];
	_cleanup_buf_ struct buf kept = BUF_INIT;

	journal_close(&f->journal);
	assert_int_equal(capture_recover(&f->env, &kept, NULL), undone);
	assert_false(exists(f, "state/traced-1-unit.journal"));
	snprintf(text, sizeof(text), "%s", buf_string(&kept) ?: "");
	return text;
}

static void a_value_changed_after_the_crash_stays(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_set(&p, NULL, "tracing_thresh", "100", NULL);
	plan_set(&p, NULL, "trace_clock", "mono", NULL);
	plan_set(&p, NULL, "tracing_on", "0", NULL);
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	/* The kernel's way to show the clock that was written. */
	fake_file(&f->root, "trace_clock", "local global boot [mono]\n");
	journal_wrote(&f->journal, f->fs, "trace_clock");
	/* The administrator's. */
	fake_file(&f->root, "tracing_thresh", "7\n");
	assert_string_equal(recover(f, 2),
			    "tracing_thresh stays '7': it was changed after the crash\n");
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "7\n");
	assert_string_equal(fake_text(&f->root, "trace_clock"), "local");
	assert_string_equal(fake_text(&f->root, "tracing_on"), "1");
	plan_deinit(&p);
}

static void an_old_value_is_not_written_again(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_set(&p, NULL, "tracing_thresh", "100", NULL);
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	/* The file's last newline shows that nobody wrote it. */
	fake_file(&f->root, "tracing_thresh", "0\n");
	assert_string_equal(recover(f, 0), "");
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0\n");
	plan_deinit(&p);
}

/* The kernel removes tasks that end. */
static void a_list_that_became_empty_is_removed(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	fake_file(&f->root, "set_ftrace_notrace_pid", "no pid\n");
	plan_set(&p, NULL, "set_ftrace_notrace_pid", "4711\n", NULL);
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	fake_file(&f->root, "set_ftrace_notrace_pid", "\n");
	assert_string_equal(recover(f, 1), "");
	assert_string_equal(fake_text(&f->root, "set_ftrace_notrace_pid"), "");
	plan_deinit(&p);
}

static void a_write_that_a_crash_cut_is_undone(void **state)
{
	struct fixture *f = *state;

	journal_restore(&f->journal, "tracing_thresh", "0");
	journal_restore(&f->journal, "tracing_on", "1");
	journal_wrote(&f->journal, f->fs, "tracing_on");
	journal_writes(&f->journal, "tracing_on");
	fake_file(&f->root, "tracing_thresh", "50");
	fake_file(&f->root, "tracing_on", "0");
	assert_string_equal(recover(f, 2), "");
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0");
	assert_string_equal(fake_text(&f->root, "tracing_on"), "1");
}

static void a_file_set_twice_is_restored_to_its_first_value(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_set(&p, NULL, "tracing_thresh", "100", NULL);
	plan_set(&p, NULL, "tracing_thresh", "200", NULL);
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_string_equal(recover(f, 2), "");
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0");
	plan_deinit(&p);
}

/* Only a file's name must not lead outside. */
static void a_value_may_have_dots(void **state)
{
	struct fixture *f = *state;
	struct plan p = { 0 };

	plan_set(&p, NULL, "tracing_thresh", "../100", "0");
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_string_equal(recover(f, 1), "");
	assert_string_equal(fake_text(&f->root, "tracing_thresh"), "0");
	plan_deinit(&p);
}

static void a_long_value_is_compared_too(void **state)
{
	struct fixture *f = *state;
	char text[4000], *at = text;
	struct plan p = { 0 };
	const char *kept;

	for (int i = 0; i < 200; i++)
		at += sprintf(at, "function_%d\n", i);
	fake_file(&f->root, "set_ftrace_filter", "#### all functions enabled ####\n");
	plan_set(&p, NULL, "set_ftrace_filter", text, NULL);
	assert_int_equal(plan_apply(&p, f->fs, &f->journal, NULL), 0);
	assert_true(strlen(fake_text(&f->root, "state/traced-1-unit.journal")) < 200);
	at[-2] = 'x';
	fake_file(&f->root, "set_ftrace_filter", text);
	kept = recover(f, 0);
	assert_non_null(strstr(kept, "set_ftrace_filter stays "));
	assert_string_equal(fake_text(&f->root, "set_ftrace_filter"), text);
	plan_deinit(&p);
}

static void events_of_a_buffer_in_use_stay(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "trace", "somebody's");
	fake_file(&f->root, "events/enable", "X\n");
	journal_restore(&f->journal, "trace", "");
	assert_string_equal(recover(f, 0),
			    "the events in the top-level buffer stay: somebody uses it\n");
	assert_string_equal(fake_text(&f->root, "trace"), "somebody's");
}

static void events_of_an_unused_buffer_go(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "trace", "ours");
	fake_file(&f->root, "events/enable", "0\n");
	fake_file(&f->root, "current_tracer", "nop\n");
	journal_restore(&f->journal, "trace", "");
	assert_string_equal(recover(f, 1), "");
	assert_string_equal(fake_text(&f->root, "trace"), "");
}

static void cut_line_never_happened(void **state)
{
	struct fixture *f = *state;

	fake_dir(&f->root, "instances/a");
	fake_dir(&f->root, "instances/b");
	fake_file(&f->root, "state/x.journal", "instance a\ninstance b");
	assert_int_equal(capture_recover(&f->env, NULL, NULL), 1);
	assert_false(exists(f, "instances/a"));
	assert_true(exists(f, "instances/b"));
}

static void journal_reaches_nothing_outside(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;

	fake_dir(&f->root, "instances/a/deep");
	fake_dir(&f->root, "outside");
	fake_file(&f->root, "precious", "old");
	fake_file(&f->root, "state/x.journal",
		  "instance ../outside\nrestore ../precious new\nrestore /etc/x new\nnonsense\n");
	assert_true(capture_recover(&f->env, NULL, &err) < 0);
	assert_true(exists(f, "outside"));
	assert_string_equal(fake_text(&f->root, "precious"), "old");
	/* Steps that failed to undo stay for another try. */
	assert_true(exists(f, "state/x.journal"));
}

/* Dates a folder so many seconds ago. */
static void make_older(struct fixture *f, const char *name, time_t seconds)
{
	const struct timespec then = { .tv_sec = time(NULL) - seconds };
	const struct timespec times[] = { then, then };

	assert_int_equal(utimensat(AT_FDCWD, fake_path(&f->root, name), times, 0), 0);
}

static void orphans_of_the_dead_go(void **state)
{
	struct fixture *f = *state;

	fake_dir(&f->root, "proc/77");
	fake_dir(&f->root, "instances/traced-76-dead");
	make_older(f, "instances/traced-76-dead", 60);
	/* The clock was set back since. */
	fake_dir(&f->root, "instances/traced-74-dead");
	make_older(f, "instances/traced-74-dead", -3600);
	/* Its maker may live in another namespace, and has not opened a file yet. */
	fake_dir(&f->root, "instances/traced-75-young");
	fake_dir(&f->root, "instances/traced-77-alive");
	fake_dir(&f->root, "instances/traced-x");
	fake_dir(&f->root, "instances/foreign");
	assert_int_equal(capture_recover(&f->env, NULL, NULL), 2);
	assert_false(exists(f, "instances/traced-76-dead"));
	assert_false(exists(f, "instances/traced-74-dead"));
	assert_true(exists(f, "instances/traced-75-young"));
	assert_true(exists(f, "instances/traced-77-alive"));
	assert_true(exists(f, "instances/traced-x"));
	assert_true(exists(f, "instances/foreign"));
}

static void owner_is_in_the_name(void **state _unused_)
{
	assert_int_equal(capture_instance_owner("traced-123-a"), 123);
	assert_int_equal(capture_instance_owner("traced-123-a-tasks"), 123);
	assert_int_equal(capture_instance_owner("traced-123"), 0);
	assert_int_equal(capture_instance_owner("traced--1-a"), 0);
	assert_int_equal(capture_instance_owner("traced-99999999999-a"), 0);
	assert_int_equal(capture_instance_owner("perfetto"), 0);
}

static void unknown_clock_is_explained(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct plan p = { 0 };

	plan_write(&p, NULL, "trace_clock", "sundial");
	assert_int_equal(plan_explain(&p.steps[0], f->fs, -EINVAL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "'sundial'"));
	assert_string_equal(err.hint, "it has: local global boot mono");
	plan_deinit(&p);
}

static void unknown_field_is_explained(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct plan p = { 0 };

	fake_dir(&f->root, "events/sched/sched_switch");
	fake_file(&f->root, "events/sched/sched_switch/format",
		  "name: sched_switch\nID: 1\nformat:\n"
		  "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
		  "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		  "\tfield:__data_loc char[] what;\toffset:8;\tsize:16;\tsigned:0;\n"
		  "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n"
		  "print fmt: \"no\"\n");
	plan_write(&p, NULL, "events/sched/sched_switch/filter",
		   "common_pid > 0 && prev_comm == \"a <b\" && next_pri < 100");
	assert_int_equal(plan_explain(&p.steps[0], f->fs, -EINVAL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "sched:sched_switch"));
	assert_string_equal(err.hint, "did you mean 'next_prio'? Its fields are prev_comm, what, "
				      "next_prio; a filter applies to every event that its glob "
				      "matches");
	plan_deinit(&p);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(applied_and_undone),
		TEST(triggers_are_removed_last_first),
		TEST(triggers_of_the_dead_are_removed_last_first),
		TEST(refused_trigger_removes_those_before),
		TEST(triggers_of_a_removed_instance_are_undone),
		TEST(refused_step_undoes_those_before),
		TEST(optional_step_may_be_refused),
		TEST(a_step_done_by_another_is_not_taken),
		TEST(what_was_applied_is_not_planned_again),
		TEST(what_was_written_over_is_planned_again),
		TEST(a_system_that_is_on_is_found_again),
		TEST(memory_is_checked_until_the_rings_are_there),
		TEST(a_slice_ends_with_a_step),
		TEST(a_refusal_leaves_the_undoing_to_slices),
		TEST(slices_pass_what_cannot_be_undone),
		TEST(a_busy_instance_is_waited_for_once),
		TEST(many_events_are_enabled_and_disabled_one_by_one),
		TEST(events_go_off_before_their_instance),
		TEST(instance_that_is_there_is_not_removed),
		TEST(instance_removed_by_others_is_fine),
		TEST(journal_of_the_living_is_left_alone),
		TEST(journal_of_the_dead_is_undone),
		TEST(a_value_changed_after_the_crash_stays),
		TEST(an_old_value_is_not_written_again),
		TEST(a_list_that_became_empty_is_removed),
		TEST(a_write_that_a_crash_cut_is_undone),
		TEST(a_file_set_twice_is_restored_to_its_first_value),
		TEST(a_value_may_have_dots),
		TEST(a_long_value_is_compared_too),
		TEST(events_of_a_buffer_in_use_stay),
		TEST(events_of_an_unused_buffer_go),
		TEST(cut_line_never_happened),
		TEST(journal_reaches_nothing_outside),
		TEST(orphans_of_the_dead_go),
		TEST(owner_is_in_the_name),
		TEST(unknown_clock_is_explained),
		TEST(unknown_field_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
