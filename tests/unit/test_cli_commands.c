/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli.h"
#include "destination.h"
#include "formats/formats.h"
#include "hints.h"
#include "kernel/probe.h"
#include "start_request.h"

static void the_table_is_sound(void **state _unused_)
{
	const struct command *const *list;
	size_t count;

	list = commands(&count);
	for (size_t i = 0; i < count; i++) {
		const struct command *c = list[i];

		assert_non_null(c->run);
		assert_true(c->name && c->synopsis && c->summary && c->text);
		assert_true(c->args_min <= c->args_max);
		assert_ptr_equal(command_find(c->name), c);
		/* A command that shares a letter with the common options would hide one of them. */
		assert_false(c->options.has[OPT_SOCKET] || c->options.has[OPT_HELP]);
		for (int id = 0; id < OPT_COUNT; id++)
			assert_true(c->options.has[id] || !c->own.has[id]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(c->name, list[k]->name);
	}
	assert_null(command_find("recor"));
}

static void a_mistyped_command_finds_the_nearest(void **state _unused_)
{
	static const struct {
		const char *typed, *meant;
	} table[] = {
		{ "recrod", "'record'" },
		{ "snapshoot", "'snapshot'" },
		{ "covnert", "'convert'" },
		{ "stauts", "'status'" },
		{ "evnets", "'events'" },
		{ "stat", "'status'?" },
		{ "st", "'start', 'stop' or 'status'" },
		{ "ls", "list'" },
		{ "version", "--version'" },
		{ "split", "convert --split" },
		{ "restore", "recover'" },
		{ "sched", "'tracectl report sched IN'" },
		{ "timehist", "'tracectl report timehist IN'" },
		{ "latency", "'tracectl report sched IN'" },
		{ "stream", "record --stream" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(command_unknown(table[i].typed, &err), -EINVAL);
		assert_non_null(strstr(err.message, table[i].typed));
		assert_non_null(strstr(err.hint, table[i].meant));
		assert_null(strstr(err.hint, "__complete"));
	}
}

static void nothing_named_is_left_to_the_daemon(void **state _unused_)
{
	_cleanup_start_request_ struct start_request s = { 0 };
	struct options o = { 0 };

	assert_int_equal(start_request_init(&s, &o, 0, NULL), 0);
	assert_int_equal(s.message.n_events, 0);
	assert_int_equal(s.message.n_pids, 0);
	assert_false(s.message.detached);
}

static void a_profile_alone_brings_no_defaults(void **state _unused_)
{
	_cleanup_start_request_ struct start_request s = { 0 };
	struct options o = { .profile = "io" };

	assert_int_equal(start_request_init(&s, &o, 0, NULL), 0);
	assert_int_equal(s.message.n_events, 0);
	assert_string_equal(s.message.profile, "io");
}

static void a_request_carries_all_options(void **state _unused_)
{
	struct event_option events[] = { { "irq", NULL }, { "sched", "a < 1" } };
	char *command[] = { (char *)"make", (char *)"-j", NULL };
	int32_t pids[] = { 1 }, threads[] = { getpid() };
	struct options o = { .events = events,
			     .event_count = 2,
			     .pids = pids,
			     .pid_count = 1,
			     .threads = threads,
			     .thread_count = 1,
			     .follow = true,
			     .command = command,
			     .clock = "mono",
			     .cpus = "0-1",
			     .buffer_bytes = 1 << 20,
			     .duration_ns = 5 };
	_cleanup_start_request_ struct start_request s = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(start_request_init(&s, &o, 77, &err), 0);
	assert_string_equal(s.message.events[0]->filter, "");
	assert_string_equal(s.message.events[1]->filter, "a < 1");
	assert_int_equal(s.message.n_pids, 2);
	assert_int_equal(s.message.pids[0], getpid());
	assert_int_equal(s.message.pids[1], 77);
	assert_int_equal(s.message.n_processes, 1);
	assert_int_equal(s.message.processes[0], 1);
	assert_true(s.message.follow_forks);
	assert_int_equal(s.message.n_command, 2);
	assert_string_equal(s.message.clock, "mono");
	assert_string_equal(s.message.cpus, "0-1");
	assert_int_equal(s.message.duration_ns, 5);
	pids[0] = INT32_MAX;
	start_request_deinit(&s);
	assert_int_equal(start_request_init(&s, &o, 77, &err), -ESRCH);
	assert_non_null(err.hint);
	pids[0] = 1;
	threads[0] = INT32_MAX;
	start_request_deinit(&s);
	assert_int_equal(start_request_init(&s, &o, 77, &err), -ESRCH);
	assert_string_equal(err.message, "--thread 2147483647: no such thread");
}

/* -F adds the children of the process, without a command to run. */
static void a_process_is_followed(void **state _unused_)
{
	int32_t pids[] = { getpid() };
	struct options o = { .pids = pids, .pid_count = 1, .follow = true };
	_cleanup_start_request_ struct start_request s = { 0 };

	assert_int_equal(start_request_init(&s, &o, 0, NULL), 0);
	assert_true(s.message.follow_forks);
	assert_int_equal(s.message.n_pids, 0);
	assert_int_equal(s.message.n_processes, 1);
}

static char *definition_of(const char *text, struct error *err)
{
	const struct probe_option probe = { .kind = PROBE_UPROBE, .definition = text };
	char *definition;

	return probe_definition(&definition, &probe, err) < 0 ? NULL : definition;
}

/* "BEFORE/PATH/OF/THIS/PROGRAM:AFTER" */
static char *of_this_program(const char *before, const char *after)
{
	char path[4096], *text;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(n > 0);
	path[n] = '\0';
	assert_true(asprintf(&text, "%s%s:%s", before, path, after) > 0);
	return text;
}

#if HAVE_LIBDW
__attribute__((noinline, used)) static int probed_function(int n)
{
	return n * 5 + 2;
}

static void a_function_of_a_program_has_an_offset(void **state _unused_)
{
	_cleanup_free_ char *text = of_this_program("r8:mine  ",
						    "probed_function+0x4%return a=%di"),
			    *bare = of_this_program(" ", "probed_function"),
			    *back = of_this_program("r ", "probed_function"),
			    *mistyped = of_this_program("p:x ", "probed_functoin"), *found = NULL,
			    *first = NULL, *returned = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	unsigned long long offset;
	char *digits;

	assert_int_equal(probed_function(2), 12);
	found = definition_of(text, &err);
	assert_non_null(found);
	digits = strstr(found, ":0x") + 1;
	assert_memory_equal(found, text, (size_t)(digits - found));
	offset = strtoull(digits, NULL, 16);
	assert_true(offset > 4);
	assert_string_equal(strchr(digits, '%'), "%return a=%di");

	first = definition_of(bare, &err);
	assert_memory_equal(first, "p:probed_function /", 19);
	assert_int_equal(strtoull(strstr(first, ":0x") + 1, NULL, 16), offset - 4);

	returned = definition_of(back, &err);
	assert_memory_equal(returned, "r:probed_function__return /", 27);

	assert_null(definition_of(mistyped, &err));
	assert_non_null(strstr(err.message, "has no function 'probed_functoin'"));
	assert_non_null(strstr(err.hint, "'probed_function'"));
}
#else
static void a_function_of_a_program_has_an_offset(void **state _unused_)
{
	_cleanup_free_ char *text = of_this_program("p:x ", "main");
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_null(definition_of(text, &err));
	assert_non_null(strstr(err.hint, ":0x1234"));
}
#endif

static void other_probes_stay_as_they_are(void **state _unused_)
{
	static const char *const texts[] = { "p:x /bin/sh:0x123 %ax", "/a:b/c:4660", "p:x", "",
					     "p:x sh:main",	      "p:x /bin/sh" };
	_cleanup_error_ struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char *definition = definition_of(texts[i], &err);

		assert_string_equal(definition, texts[i]);
		free(definition);
	}
	assert_null(definition_of("p:x /no/such/program:main", &err));
	assert_int_equal(err.code, ENOENT);
	assert_non_null(strstr(err.message, "p:x /no/such/program:main"));
	assert_null(definition_of("p:x /dev/null:main", &err));
}

static void probes_are_asked_for_with_their_filters(void **state _unused_)
{
	struct probe_option probes[] = { { PROBE_UPROBE, "/bin/sh:0x10", NULL },
					 { PROBE_FPROBE, "vfs_open%return", "x > 1" } };
	struct options o = { .probes = probes, .probe_count = ARRAY_SIZE(probes) };
	_cleanup_start_request_ struct start_request s = { 0 };

	assert_int_equal(start_request_init(&s, &o, 0, NULL), 0);
	assert_int_equal(s.message.n_probes, 2);
	assert_int_equal(s.message.probes[0]->kind, TRACED__CONTROL__PROBE__KIND__UPROBE);
	assert_string_equal(s.message.probes[0]->definition, "/bin/sh:0x10");
	assert_string_equal(s.message.probes[0]->filter, "");
	assert_int_equal(s.message.probes[1]->kind, TRACED__CONTROL__PROBE__KIND__FPROBE);
	assert_string_equal(s.message.probes[1]->definition, "vfs_open%return");
	assert_string_equal(s.message.probes[1]->filter, "x > 1");
}

/* The exit status reports missing data; only --fail-on-loss counts a loss as such. */
static void the_status_tells_what_is_missing(void **state _unused_)
{
	struct options quiet = { .quiet = true }, strict = { .quiet = true, .fail_on_loss = true };
	Traced__Control__Session session = TRACED__CONTROL__SESSION__INIT;
	struct outcome outcome = { .path = "x.json",
				   .format = export_format_find("json", NULL),
				   .result = { .events = 10 } };

	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_WHOLE);
	outcome.result.lost = 1;
	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_WHOLE);
	assert_int_equal(outcome_tell(&outcome, &strict), CLI_MISSING);
	outcome.result.lost = 0;
	outcome.result.incomplete = true;
	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_MISSING);
	outcome.result.incomplete = false;
	outcome.result.events = 0;
	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_MISSING);
	/* The only event may be the recorder's own clock mark. */
	outcome.result.events = 1;
	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_WHOLE);
	outcome.result.own_events = 1;
	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_MISSING);
	outcome.result.events = 2;
	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_WHOLE);
	outcome.ended_early = true;
	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_MISSING);
	outcome.ended_early = false;
	session.error = (char *)"the spool is full";
	outcome.session = &session;
	assert_int_equal(outcome_tell(&outcome, &quiet), CLI_MISSING);
}

/*
 * Recorded on Linux 6.18 under loads that switch tasks or make system calls; functions in guests
 * with other kernels, or generated.
 */
static void the_size_of_a_json_is_estimated(void **state _unused_)
{
	static const struct {
		const char *what, *tracer;
		uint64_t events, bytes, chars;
	} table[] = {
		{ "sched:sched_switch", NULL, 1274816, 88100616, 224431906 },
		{ "sched, irq", NULL, 3378809, 163555440, 448348776 },
		{ "syscalls", NULL, 594968, 23168912, 59531507 },
		{ "raw_syscalls", "nop", 1214555, 60284256, 108147688 },
		{ "functions, 7.2", "function", 986, 32768, 132319 },
		{ "a graph, 6.1", "function_graph", 9168, 266240, 521910 },
		{ "a graph, generated", "function_graph", 1000000, 37305981, 64872373 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		uint64_t guess =
			json_text_estimate(table[i].tracer, table[i].events, table[i].bytes);

		if (guess < table[i].chars * 4 / 5 || guess > table[i].chars * 7 / 5)
			fail_msg("%s: %ju for %ju", table[i].what, (uintmax_t)guess,
				 (uintmax_t)table[i].chars);
	}
}

static void fail_with_hint(struct destination *d, struct error *err, const char *hint)
{
	error_hint(err, "%s", hint);
	err->hint_needs_output = true;
	assert_int_equal(destination_fail(d, err), CLI_FAILED);
	assert_false(err->hint_needs_output);
}

static void a_failure_names_the_file(void **state _unused_)
{
	struct destination d = { .format = export_format_find("json.gz", NULL),
				 .path = "dir/out.JSON.gz" };
	_cleanup_error_ struct error err = ERROR_INIT;

	error_set(&err, -EOVERFLOW, "too long");
	fail_with_hint(&d, &err, "it is safe: tracectl convert /spool/x.traced");
	assert_string_equal(err.hint,
			    "it is safe: tracectl convert /spool/x.traced dir/out.pftrace");
	error_set(&err, -ENOSPC, "no space");
	fail_with_hint(&d, &err, "it is safe: tracectl convert /spool/x.traced");
	assert_string_equal(err.hint,
			    "it is safe: tracectl convert /spool/x.traced DIR/out.JSON.gz "
			    "(DIR on another disk)");
	assert_string_equal(err.message, "dir/out.JSON.gz: no space");
	d.format = export_format_find("txt", NULL);
	fail_with_hint(&d, &err, "tracectl convert /spool/x.traced");
	assert_string_equal(err.hint,
			    "tracectl convert /spool/x.traced DIR/out.JSON.gz --format txt "
			    "(DIR on another disk)");
	d.path = "/dev/full";
	d.in_place = true;
	fail_with_hint(&d, &err, "tracectl convert /spool/x.traced");
	assert_string_equal(err.hint, "tracectl convert /spool/x.traced FILE");
	/* A complete hint stays as it is, whatever its words. */
	error_hint(&err, "tracectl convert FILE");
	destination_fail(&d, &err);
	assert_string_equal(err.hint, "tracectl convert FILE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sound),
		cmocka_unit_test(a_mistyped_command_finds_the_nearest),
		cmocka_unit_test(nothing_named_is_left_to_the_daemon),
		cmocka_unit_test(a_profile_alone_brings_no_defaults),
		cmocka_unit_test(a_function_of_a_program_has_an_offset),
		cmocka_unit_test(other_probes_stay_as_they_are),
		cmocka_unit_test(probes_are_asked_for_with_their_filters),
		cmocka_unit_test(a_request_carries_all_options),
		cmocka_unit_test(a_process_is_followed),
		cmocka_unit_test(the_status_tells_what_is_missing),
		cmocka_unit_test(the_size_of_a_json_is_estimated),
		cmocka_unit_test(a_failure_names_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
