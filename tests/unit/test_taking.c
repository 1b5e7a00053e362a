/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which recordings take the spare instances, and to whom their memory is charged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/sysinfo.h>

#include <cmocka.h>

#include "daemon/capture/plan/setup.h"
#include "daemon/capture/plan/spare.h"
#include "fake_root.h"

/* Replaces capture's own struct. */
struct capture_spare {
	uint64_t bytes;
	bool will_do;
	unsigned taken;
};

uint64_t capture_spare_bytes(const struct capture_spare *s)
{
	return s->bytes;
}

bool capture_spare_take(struct capture_spare *s, struct capture_setup *to)
{
	s->taken++;
	if (s->will_do)
		strcpy(to->instance, "traced-1-spare+1");
	return s->will_do;
}

struct fixture {
	struct fake_root root;
	char proc[128], state[128];
	struct capture_env env;
	struct capture_spare spare;
};

static const struct capture_event_spec specs[] = { { .glob = "sched:no_such_event" } };
static const struct capture_request usual = { .name = "usual", .events = specs, .event_count = 1 };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	fake_dir(&f->root, "proc");
	fake_dir(&f->root, "state");
	fake_file(&f->root, "events/enable", "0\n");
	fake_file(&f->root, "current_tracer", "nop\n");
	fake_file(&f->root, "available_events", "sched:sched_switch\n");
	snprintf(f->proc, sizeof(f->proc), "%s/proc", f->root.path);
	snprintf(f->state, sizeof(f->state), "%s/state", f->root.path);
	f->env = (struct capture_env){ .proc = f->proc, .state_dir = f->state };
	assert_int_equal(tracefs_open(&f->env.tracefs, f->root.path, NULL), 0);
	f->spare.will_do = true;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tracefs_free(f->env.tracefs);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

/* Arming fails: there is no kernel behind the files. */
static int arm(struct fixture *f, const struct capture_request *request)
{
	struct capture_spare *spare = &f->spare;
	struct capture *c = NULL;
	int r = capture_new(&c, &spare, &f->env, request, NULL);

	assert_null(c);
	assert_int_equal(f->spare.taken, !spare);
	return r;
}

static void by_the_usual_one(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(arm(f, &usual), -ENOENT);
	assert_int_equal(f->spare.taken, 1);
}

static void one_that_will_not_do_is_gone_as_well(void **state)
{
	struct fixture *f = *state;

	f->spare.will_do = false;
	assert_int_equal(arm(f, &usual), -ENOENT);
	assert_int_equal(f->spare.taken, 1);
}

/* A probe stays while an instance uses its event. */
static void not_by_one_with_probes(void **state)
{
	static const struct capture_probe kprobe = { PROBE_KPROBE, "p:k do_exit", NULL };
	static const struct capture_probe uprobe = { PROBE_UPROBE, "p:u /a:0x10", NULL };
	struct capture_request with_kprobe = usual, with_uprobe = usual;
	struct fixture *f = *state;

	with_kprobe.probes = &kprobe;
	with_kprobe.probe_count = 1;
	with_uprobe.probes = &uprobe;
	with_uprobe.probe_count = 1;
	assert_int_equal(arm(f, &with_kprobe), -ENOENT);
	assert_int_equal(f->spare.taken, 0);
	assert_int_equal(arm(f, &with_uprobe), -ENOENT);
	assert_int_equal(f->spare.taken, 0);
}

static void not_for_the_top_level(void **state)
{
	struct capture_request top = usual;
	struct fixture *f = *state;

	top.top_level = true;
	assert_true(arm(f, &top) < 0);
	assert_int_equal(f->spare.taken, 0);
}

static void its_memory_is_free_for_who_takes_it(void **state)
{
	static const struct capture_probe kprobe = { PROBE_KPROBE, "p:k do_exit", NULL };
	struct capture_request with_probe = usual, larger = usual;
	struct fixture *f = *state;

	with_probe.probes = &kprobe;
	with_probe.probe_count = 1;
	larger.buffer_bytes = 2 * DEFAULT_BUFFER_BYTES;
	fake_file(&f->root, "proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   1000 kB\n");
	f->spare.bytes = DEFAULT_BUFFER_BYTES * (uint64_t)get_nprocs() * 3 / 2;
	assert_int_equal(arm(f, &with_probe), -ENOMEM);
	assert_int_equal(arm(f, &larger), -ENOMEM);
	assert_int_equal(f->spare.taken, 0);
	assert_int_equal(capture_new(&(struct capture *){ NULL }, NULL, &f->env, &usual, NULL),
			 -ENOMEM);
	assert_int_equal(arm(f, &usual), -ENOENT);
	assert_int_equal(f->spare.taken, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(by_the_usual_one),
		TEST(one_that_will_not_do_is_gone_as_well),
		TEST(not_by_one_with_probes),
		TEST(not_for_the_top_level),
		TEST(its_memory_is_free_for_who_takes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
