/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Histograms of the kernel as they are asked for: their syntax, fields, plan and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/capture/plan/hists.h"
#include "fake_root.h"

static const char format[] =
	"name: kmalloc\nID: 1\nformat:\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:int node;\toffset:32;\tsize:4;\tsigned:1;\n"
	"\tfield:char comm[16];\toffset:36;\tsize:16;\tsigned:0;\n\n"
	"print fmt: \"%pS %p %zu %d %s\", (void *)REC->call_site, REC->ptr, REC->bytes_req, "
	"REC->node, REC->comm\n";

struct fixture {
	struct fake_root root, state;
	struct tracefs *fs;
	struct hists hists;
	struct synthetic_list synthetics;
	struct error err;
	struct capture_request request;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	fake_root_init(&f->state);
	fake_file(&f->root, "events/kmem/kmalloc/format", format);
	fake_file(&f->root, "events/kmem/kmalloc/hist", "");
	fake_file(&f->root, "events/kmem/kfree/format", format);
	assert_int_equal(tracefs_open(&f->fs, f->root.path, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	hists_deinit(&f->hists);
	error_deinit(&f->err);
	tracefs_free(f->fs);
	fake_root_deinit(&f->root);
	fake_root_deinit(&f->state);
	free(f);
	return 0;
}

#define WAKEUP "synthetic:sql_0123abcd_wakeup"
static const char *const names[] = { "kmem:kfree", "kmem:kmalloc", WAKEUP, "xen:kmalloc_bulk" };

static int find(struct fixture *f, const char *const *texts, size_t count)
{
	hists_deinit(&f->hists);
	error_deinit(&f->err);
	f->err = ERROR_INIT;
	f->request.hists = (struct capture_words){ texts, count };
	return hists_find(&f->hists, f->fs, &f->request, &f->synthetics, names, ARRAY_SIZE(names),
			  &f->err);
}
#define FIND(...)                                                                                  \
	find(f, (const char *const[]){ __VA_ARGS__ },                                              \
	     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void assert_found(struct fixture *f, const char *text, const char *trigger)
{
	if (FIND(text) < 0)
		fail_msg("%s: %s", text, f->err.message);
	assert_int_equal(f->hists.count, 1);
	assert_string_equal(f->hists.items[0].event, "kmem:kmalloc");
	assert_string_equal(f->hists.items[0].paused, trigger);
}

/* The caret is below the place where `at` begins. */
static void assert_refused(struct fixture *f, const char *text, int code, const char *at,
			   const char *words)
{
	const char *caret, *shown;

	assert_int_equal(FIND(text), code);
	if (!strstr(f->err.message, words) && !(f->err.hint && strstr(f->err.hint, words)))
		fail_msg("%s: %s (%s)", text, f->err.message, f->err.hint);
	if (!at)
		return;
	caret = strrchr(f->err.message, '^');
	shown = strchr(f->err.message, '\n');
	assert_non_null(caret);
	assert_non_null(shown);
	shown += 1 + (caret - strrchr(f->err.message, '\n') - 1);
	if (strncmp(shown, at, strlen(at)) != 0)
		fail_msg("%s: the caret is not at %s:\n%s", text, at, f->err.message);
}

static void requests_become_triggers(void **state)
{
	struct fixture *f = *state;

	assert_found(f, "kmalloc:keys=node", "hist:keys=node:size=2048:pause");
	assert_found(f, "kmem:kmalloc:key=node", "hist:keys=node:size=2048:pause");
	assert_found(
		f, "kmalloc:size=300:vals=bytes_req,hitcount.percent:keys=common_pid.execname,cpu",
		"hist:keys=common_pid.execname,cpu:vals=bytes_req,hitcount.percent:size=300:pause");
	assert_found(
		f,
		"kmalloc:keys=bytes_req.buckets=100,call_site.sym-offset  if  node == 1 && comm ~ "
		"\"a:*\"",
		"hist:keys=bytes_req.buckets=100,call_site.sym-offset:size=2048:pause if node == 1 "
		"&& comm ~ \"a:*\"");
	assert_found(f, "kmalloc:keys=common_timestamp.usecs,stacktrace,comm:val=bytes_req.hex",
		     "hist:keys=common_timestamp.usecs,stacktrace,comm:vals=bytes_req.hex:size="
		     "2048:pause");
	assert_string_equal(f->hists.items[0].counting,
			    "hist:keys=common_timestamp.usecs,stacktrace,comm:vals=bytes_req.hex:"
			    "size=2048:continue");
}

static void mistakes_have_a_caret(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, "kmalloc", -EINVAL, "", "':keys='");
	assert_refused(f, "kmalloc if keys=1", -EINVAL, " if", "':keys='");
	assert_refused(f, "", -EINVAL, "", "':keys='");
	assert_refused(f, "kmalloc:vals=node", -EINVAL, "", "no keys");
	assert_refused(f, ":keys=node", -EINVAL, ":keys", "the event's name is missing");
	assert_refused(f, "kmalloc:keys=", -EINVAL, "", "name of a field is missing");
	assert_refused(f, "kmalloc:keys=node,", -EINVAL, "", "name of a field is missing");
	assert_refused(f, "kmalloc:keys=node.", -EINVAL, "", "modifier of the field is missing");
	assert_refused(f, "kmalloc:keys=node+1", -EINVAL, "+1", "letters");
	assert_refused(f, "kmalloc:keys=node:keys=cpu", -EINVAL, "cpu", "twice");
	assert_refused(f, "kmalloc:keys=a,b,c,d", -EINVAL, "d", "three keys");
	assert_refused(f, "kmalloc:keys=a:vals=a,b,c", -EINVAL, "c", "two values");
	assert_refused(f, "kmalloc:keys=node:size=127", -EINVAL, "127", "128 to 131072");
	assert_refused(f, "kmalloc:keys=node:size=99999999999999999999", -EINVAL, "9999", "128 to");
	assert_refused(f, "kmalloc:keys=node:size=256k", -EINVAL, "k", "ends here");
	assert_refused(f, "kmalloc:keys=node:sort=node", -EINVAL, "node", "--sort");
	assert_refused(f, "kmalloc:keys=node:onmax($x).save(y)", -EINVAL, "onmax", "its parts are");
	assert_refused(f, "kmalloc:keys=node:ts0=common_timestamp", -EINVAL, "ts0",
		       "its parts are");
	assert_refused(f, "kmalloc:keys=node where x", -EINVAL, "where", "'if'");
	assert_refused(f, "kmalloc:keys=node if ", -EINVAL, "", "filter is missing");
	assert_refused(f, "kmalloc:keys=nod", -EINVAL, "nod", "did you mean 'node'");
	assert_refused(f, "kmalloc:keys=hitcount", -EINVAL, "hitcount", "no such field");
	assert_refused(f, "kmalloc:keys=node.lg2", -EINVAL, "lg2", "no such modifier");
	assert_refused(f, "kmalloc:keys=node.buckets", -EINVAL, "buckets", "no such modifier");
	assert_refused(f, "kmalloc:keys=node.log2=3", -EINVAL, "log2", "no such modifier");
	assert_refused(f, "kmalloc:keys=node.buckets=0", -EINVAL, "buckets", "above 0");
	assert_refused(f, "kmalloc:keys=node.buckets=1x", -EINVAL, "buckets", "above 0");
	assert_refused(f, "kmalloc:keys=node.percent", -EINVAL, "percent", "modifier of values");
	assert_refused(f, "kmalloc:keys=node:vals=node.log2", -EINVAL, "log2", "modifier of keys");
	assert_refused(f, "kmalloc:keys=node.execname", -EINVAL, "node", "common_pid");
	assert_refused(f, "kmalloc:keys=comm.log2", -EINVAL, "comm", "numbers");
	assert_refused(f, "kmalloc:keys=node:vals=comm", -EINVAL, "comm", "a value is a number");
}

static void an_event_is_one(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, "kmaloc:keys=node", -ENOENT, NULL, "'kmalloc'");
	assert_refused(f, "kmem:keys=node", -EINVAL, NULL, "kmem:kfree, kmem:kmalloc");
	assert_refused(f, "kfree:keys=node", -EOPNOTSUPP, NULL, "CONFIG_HIST_TRIGGERS");
	fake_file(&f->root, "events/sched/sched_switch/hist", "");
	assert_refused(f, "kfree:keys=node", -EOPNOTSUPP, NULL, "no histograms of kmem:kfree");
	assert_int_equal(FIND("kmalloc:keys=node", "kmem:kmalloc:keys=node"), -EINVAL);
	assert_non_null(strstr(f->err.message, "twice"));
	assert_int_equal(FIND("kmalloc:keys=node", "kmalloc:keys=node:size=256"), 0);
}

/* Only the recording knows what its event is called in the kernel. */
static void an_event_by_sql_is_counted_by_its_own_name(void **state)
{
	struct synthetic_event item = { .wanted = (char *)"wakeup", .event = (char *)WAKEUP };
	_cleanup_buf_ struct buf shown = BUF_INIT;
	struct fixture *f = *state;

	fake_file(&f->root, "events/synthetic/sql_0123abcd_wakeup/format", format);
	fake_file(&f->root, "events/synthetic/sql_0123abcd_wakeup/hist", "");
	assert_refused(f, "wakeup:keys=node", -ENOENT, NULL, "no event");
	f->synthetics = (struct synthetic_list){ &item, 1 };
	assert_int_equal(FIND("wakeup:keys=node.log2"), 0);
	assert_string_equal(f->hists.items[0].event, WAKEUP);
	synthetic_put_shown(WAKEUP, &shown);
	buf_puts(&shown, " ");
	synthetic_put_shown("sched:sched_switch", &shown);
	assert_string_equal(buf_string(&shown), "synthetic:wakeup sched:sched_switch");
}

/* With nothing but histograms there are no addresses in the stream, and no tasks to name. */
static void a_recording_may_only_count(void **state _unused_)
{
	struct capture_sql sql = { .only_counted = true };
	struct capture_request r = { .hists = { (const char *const[]){ "wakeup:keys=node" }, 1 },
				     .sql = &sql,
				     .sql_count = 1 };

	assert_true(capture_counts_only(&r));
	sql.only_counted = false;
	assert_false(capture_counts_only(&r));
}

static void members_count_by_open_fields(void **state)
{
	struct fixture *f = *state;

	f->request.bounds.hide_addresses = true;
	assert_found(
		f,
		"kmalloc:keys=bytes_req.log2,comm,common_pid.execname:vals=node if bytes_req > 9",
		"hist:keys=bytes_req.log2,comm,common_pid.execname:vals=node:size=2048:pause if "
		"bytes_req > 9");
	assert_found(f, "kmalloc:keys=common_timestamp.usecs,common_cpu:size=16384",
		     "hist:keys=common_timestamp.usecs,common_cpu:size=16384:pause");
	assert_refused(f, "kmalloc:keys=call_site", -EPERM, "call_site", "is an address");
	assert_refused(f, "kmalloc:keys=call_site.log2", -EPERM, "call_site", "is an address");
	assert_refused(f, "kmalloc:keys=node:vals=call_site", -EPERM, "call_site", "is an address");
	assert_refused(f, "kmalloc:keys=ptr", -EPERM, "ptr", "is a pointer");
	assert_refused(f, "kmalloc:keys=node.sym", -EPERM, "sym", "names of addresses");
	assert_refused(f, "kmalloc:keys=bytes_req.sym-offset", -EPERM, "sym", "names of addresses");
	assert_refused(f, "kmalloc:keys=stacktrace", -EPERM, "stacktrace", "holds addresses");
	assert_refused(f, "kmalloc:keys=common_stacktrace", -EPERM, "common", "holds addresses");
	assert_refused(f, "kmalloc:keys=node if ptr > 7", -EPERM, "ptr", "only root may compare");
	assert_refused(f, "kmalloc:keys=node:size=16385", -EPERM, NULL, "16384");
	f->request.bounds.never = (struct capture_words){ (const char *const[]){ "kmem:*" }, 1 };
	assert_refused(f, "kmalloc:keys=node", -EPERM, NULL, "kmalloc");
}

static void requests_that_do_not_fit_are_refused(void **state)
{
	struct fixture *f = *state;
	const char *many[HISTS_MAX + 1];
	struct capture_request r = { .hists = { (const char *const[]){ "kmalloc:keys=node" }, 1 } };
	struct cpu_set cpus = { 0 };

	assert_int_equal(hists_check(&r, &f->err), 0);
	r.pid_count = 1;
	assert_int_equal(hists_check(&r, &f->err), -EINVAL);
	assert_non_null(strstr(f->err.message, "a choice of tasks"));
	r.pid_count = 0;
	r.cpus = &cpus;
	assert_int_equal(hists_check(&r, &f->err), -EINVAL);
	r.cpus = NULL;
	r.top_level = true;
	assert_int_equal(hists_check(&r, &f->err), -EINVAL);
	r.top_level = false;
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = "kmalloc:keys=node";
	r.hists = (struct capture_words){ many, ARRAY_SIZE(many) };
	assert_int_equal(hists_check(&r, &f->err), -E2BIG);
}

/* tracing_map_create() rounds up to a power of two. */
static void memory_is_counted(void **state _unused_)
{
	const char *const texts[] = { "a:keys=b", "a:keys=b:size=4097", "no histogram" };
	struct capture_words one = { texts, 1 }, second = { texts + 1, 1 }, all = { texts, 3 };

	assert_true(hists_memory(&one) >= 2048 * (32 + 256));
	assert_int_equal(hists_memory(&second), 4 * hists_memory(&one));
	assert_int_equal(hists_memory(&all), 5 * hists_memory(&one));
}

#define TRIGGERS "instances/traced-1-x/events/kmem/kmalloc/trigger"

static void they_are_planned_switched_and_undone(void **state)
{
	struct fixture *f = *state;
	struct journal journal = JOURNAL_INIT;
	struct plan plan = { 0 };
	int dir;

	assert_int_equal(FIND("kmalloc:keys=node", "kmalloc:keys=cpu:size=256 if node > 1"), 0);
	assert_int_equal(journal_create(&journal, f->state.path, "traced-1-x", NULL), 0);
	fake_file(&f->root, TRIGGERS, "");
	hists_plan(&f->hists, &plan, "traced-1-x");
	assert_int_equal(plan_apply(&plan, f->fs, &journal, NULL), 0);
	assert_string_equal(fake_text(&f->root, TRIGGERS),
			    "hist:keys=node:size=2048:pause"
			    "hist:keys=cpu:size=256:pause if node > 1");
	assert_string_equal(fake_text(&f->state, "traced-1-x.journal"),
			    "append " TRIGGERS " !hist:keys=node:size=2048:pause\n"
			    "append " TRIGGERS " !hist:keys=cpu:size=256:pause if node > 1\n");
	fake_file(&f->root, TRIGGERS, "");
	dir = tracefs_open_instance(f->fs, "traced-1-x");
	assert_true(dir >= 0);
	assert_int_equal(hists_switch(&f->hists, dir, true), 0);
	assert_string_equal(fake_text(&f->root, TRIGGERS),
			    "hist:keys=node:size=2048:continue"
			    "hist:keys=cpu:size=256:continue if node > 1");
	fake_file(&f->root, TRIGGERS, "");
	close_fd(dir);
	plan_end(&plan, f->fs, &journal);
	assert_string_equal(fake_text(&f->root, TRIGGERS),
			    "!hist:keys=cpu:size=256:pause if node > 1"
			    "!hist:keys=node:size=2048:pause");
}

static void the_kernels_refusal_is_told(void **state)
{
	struct fixture *f = *state;
	struct plan_step step = { .kind = PLAN_TRIGGER,
				  .instance = (char *)"traced-1-x",
				  .file = (char *)"events/kmem/kmalloc/trigger",
				  .value = (char *)"hist:keys=node:vals=node.percent:pause" };

	fake_file(&f->root, "instances/traced-1-x/error_log",
		  "[  1.000] hist:kmem:kmalloc: error: Invalid field modifier\n"
		  "  Command: keys=node:vals=node.percent:pause\n"
		  "                               ^\n");
	assert_int_equal(plan_explain(&step, f->fs, -EINVAL, &f->err), -EINVAL);
	assert_non_null(strstr(f->err.message, "event kmem/kmalloc"));
	assert_non_null(strstr(f->err.message, "Invalid field modifier"));
	assert_non_null(strchr(f->err.message, '^'));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(requests_become_triggers),
		TEST(mistakes_have_a_caret),
		TEST(an_event_is_one),
		TEST(an_event_by_sql_is_counted_by_its_own_name),
		cmocka_unit_test(a_recording_may_only_count),
		TEST(members_count_by_open_fields),
		TEST(requests_that_do_not_fit_are_refused),
		TEST(memory_is_counted),
		TEST(they_are_planned_switched_and_undone),
		TEST(the_kernels_refusal_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
