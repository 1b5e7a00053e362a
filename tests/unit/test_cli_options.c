/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli.h"

/* A command that takes all options but --from: those that do take no filters of the kernel. */
static struct command all;
static const struct command only_json = { .options = OPTION_SET(OPTION(JSON)) };

struct parsed {
	struct options o;
	struct error err;
	char *argv[32];
	int r, next;
};

/* words: what follows the command's name, with NULL at the end. */
static void parse_as(struct parsed *p, const struct command *command, const char *const *words)
{
	int argc = 0;

	*p = (struct parsed){ 0 };
	p->argv[argc++] = (char *)"tracectl";
	while (*words)
		p->argv[argc++] = (char *)*words++;
	p->r = options_parse(&p->o, argc, p->argv, command, &p->next, &p->err);
}
#define PARSE(p, ...) parse_as(p, &all, (const char *const[]){ __VA_ARGS__, NULL })

static void parsed_deinit(struct parsed *p)
{
	options_deinit(&p->o);
	error_deinit(&p->err);
}

static void letters_and_names_are_unique(void **state _unused_)
{
	for (int a = 0; a < OPT_COUNT; a++) {
		assert_non_null(option_specs[a].name);
		assert_non_null(option_specs[a].help);
		assert_non_null(option_specs[a].set);
		for (int b = 0; b < a; b++) {
			assert_string_not_equal(option_specs[a].name, option_specs[b].name);
			if (option_specs[a].letter)
				assert_int_not_equal(option_specs[a].letter,
						     option_specs[b].letter);
		}
	}
}

/* The functions whose callees are wanted name the tracer, too. */
static void graphs_imply_their_tracer(void **state _unused_)
{
	struct parsed p;

	PARSE(&p, "-g", "do_sys_openat2");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.o.tracer, "function_graph");
	parsed_deinit(&p);
	PARSE(&p, "--max-graph-depth", "2");
	assert_string_equal(p.o.tracer, "function_graph");
	parsed_deinit(&p);
	PARSE(&p, "-g", "do_sys_openat2", "-p", "function");
	assert_string_equal(p.o.tracer, "function");
	parsed_deinit(&p);
	PARSE(&p, "-l", "do_sys_openat2");
	assert_null(p.o.tracer);
	parsed_deinit(&p);
}

static void a_whole_line_is_read(void **state _unused_)
{
	struct parsed p;

	PARSE(&p, "-t", "1.5s", "-e", "sched:sched_switch", "-f", "next_prio < 100", "--event=irq",
	      "-o", "out.json", "-P", "12,34", "-P5", "-b", "16M", "--cpus", "0-1", "-F", "-qvv",
	      "--", "make", "-t", "x");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.duration_ns, 1500000000);
	assert_int_equal(p.o.event_count, 2);
	assert_string_equal(p.o.events[0].glob, "sched:sched_switch");
	assert_string_equal(p.o.events[0].filter, "next_prio < 100");
	assert_string_equal(p.o.events[1].glob, "irq");
	assert_null(p.o.events[1].filter);
	assert_string_equal(p.o.output, "out.json");
	assert_int_equal(p.o.pid_count, 3);
	assert_int_equal(p.o.pids[1], 34);
	assert_int_equal(p.o.pids[2], 5);
	assert_int_equal(p.o.buffer_bytes, 16 << 20);
	assert_string_equal(p.o.cpus, "0-1");
	assert_true(p.o.follow && p.o.quiet);
	assert_int_equal(p.o.verbose, 2);
	assert_int_equal(p.o.arg_count, 0);
	assert_string_equal(p.o.command[0], "make");
	assert_string_equal(p.o.command[1], "-t");
	assert_null(p.o.command[3]);
	parsed_deinit(&p);
}

static void a_filter_is_of_the_option_before_it(void **state _unused_)
{
	struct parsed p;

	PARSE(&p, "--kprobe", "p:a f x=%di", "-f", "x > 1", "-e", "irq", "-f", "irq == 3",
	      "--uprobe", "/bin/sh:main", "-f", "common_pid == 7");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.event_count, 1);
	assert_string_equal(p.o.events[0].filter, "irq == 3");
	assert_int_equal(p.o.probe_count, 2);
	assert_string_equal(p.o.probes[0].definition, "p:a f x=%di");
	assert_string_equal(p.o.probes[0].filter, "x > 1");
	assert_int_equal(p.o.probes[0].kind, PROBE_KPROBE);
	assert_int_equal(p.o.probes[1].kind, PROBE_UPROBE);
	assert_string_equal(p.o.probes[1].filter, "common_pid == 7");
	parsed_deinit(&p);
	PARSE(&p, "-e", "irq", "--kprobe", "f", "-f", "x > 1", "-f", "x < 9");
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.message, "--kprobe f has two filters"));
	parsed_deinit(&p);
}

static void a_name_is_of_the_sql_before_it(void **state _unused_)
{
	struct parsed p;

	PARSE(&p, "--sql", "SELECT 1", "--sql", "SELECT 2", "--as", "two");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.sql_count, 2);
	assert_string_equal(p.o.sql[0].text, "SELECT 1");
	assert_null(p.o.sql[0].name);
	assert_string_equal(p.o.sql[1].name, "two");
	parsed_deinit(&p);
	PARSE(&p, "--sql", "SELECT 1", "--as", "one", "--as", "two");
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.message, "--as two has no --sql before it"));
	parsed_deinit(&p);
}

static void a_trigger_is_of_the_option_before_it_or_names_its_event(void **state _unused_)
{
	struct parsed p;

	PARSE(&p, "-e", "irq", "--trigger", "stacktrace if irq == 3", "--fprobe", "vfs_read",
	      "--trigger", "traceoff", "--trigger", "sched:sched_switch: enable_event:irq:x",
	      "--trigger", "x:  stacktrace", "--trigger", "enable_event:a:b: stray", "-e", "a",
	      "--trigger", "traceoff if comm == \"a: b\"");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.trigger_count, 6);
	assert_string_equal(p.o.triggers[0].event, "irq");
	assert_string_equal(p.o.triggers[0].action, "stacktrace if irq == 3");
	assert_null(p.o.triggers[1].event);
	assert_int_equal(p.o.triggers[1].probe, 1);
	assert_string_equal(p.o.triggers[2].event, "sched:sched_switch");
	assert_string_equal(p.o.triggers[2].action, "enable_event:irq:x");
	assert_string_equal(p.o.triggers[3].event, "x");
	assert_string_equal(p.o.triggers[3].action, "stacktrace");
	assert_string_equal(p.o.triggers[4].event, "enable_event:a:b");
	assert_string_equal(p.o.triggers[5].event, "a");
	assert_string_equal(p.o.triggers[5].action, "traceoff if comm == \"a: b\"");
	parsed_deinit(&p);
	PARSE(&p, "--trigger", "stacktrace");
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.message, "'stacktrace' has no event before it"));
	parsed_deinit(&p);
}

static void positionals_may_stand_anywhere(void **state _unused_)
{
	struct parsed p;

	PARSE(&p, "in.traced", "-v", "out.json", "--json", "-");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.arg_count, 3);
	assert_string_equal(p.o.args[0], "in.traced");
	assert_string_equal(p.o.args[1], "out.json");
	assert_string_equal(p.o.args[2], "-");
	assert_null(p.o.args[3]);
	assert_null(p.o.command);
	parsed_deinit(&p);
}

static void a_value_may_be_two_dashes(void **state _unused_)
{
	struct parsed p;

	PARSE(&p, "-o", "--", "--", "true");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.o.output, "--");
	assert_string_equal(p.o.command[0], "true");
	parsed_deinit(&p);
}

static void globals_end_at_the_command(void **state _unused_)
{
	struct parsed p;

	parse_as(&p, NULL, (const char *const[]){ "--socket", "/s", "record", "-t", "1", NULL });
	assert_int_equal(p.r, 0);
	assert_string_equal(p.o.socket, "/s");
	assert_string_equal(p.argv[p.next], "record");
	parsed_deinit(&p);
}

static void value_may_be_left_out(void **state _unused_)
{
	struct parsed p;

	parse_as(&p, NULL, (const char *const[]){ "--push", "record", NULL });
	assert_int_equal(p.r, 0);
	assert_true(p.o.push && !p.o.push_from);
	assert_string_equal(p.argv[p.next], "record");
	parsed_deinit(&p);
	parse_as(&p, NULL, (const char *const[]){ "--push=/p", "record", NULL });
	assert_int_equal(p.r, 0);
	assert_string_equal(p.o.push_from, "/p");
	assert_string_equal(p.argv[p.next], "record");
	parsed_deinit(&p);
}

struct bad {
	const char *words[8];
	const char *message, *hint;
};

static void bad_lines_say_what_and_how(void **state _unused_)
{
	static const struct bad table[] = {
		{ { "--duratoin", "1" }, "unknown option --duratoin", NULL },
		{ { "--outptu=x" }, "unknown option --outptu", "--output" },
		{ { "--fromat", "x" }, "unknown option --fromat", "--format" },
		{ { "--process", "1" }, "unknown option --process", "-P PID" },
		{ { "-X" }, "unknown option -X", NULL },
		{ { "--ring=3" }, "--ring takes no value", NULL },
		{ { "--f", "x" }, "may mean several", "--" },
		{ { "-t" }, "--time takes a value: TIME", NULL },
		{ { "--output" }, "--output takes a value: FILE", NULL },
		{ { "-t", "ten" }, "--time: 'ten' is not a duration", "10s" },
		{ { "-t", "0" }, "'0' is not a duration", "above zero" },
		{ { "-t", "-1s" }, "'-1s' is not a duration", "10s" },
		{ { "-b", "much" }, "'much' is not a size", NULL },
		{ { "-b", "8192" }, "'8192' has no unit", "-b 8192K" },
		{ { "-M", "3" }, "unknown option -M", "--cpus" },
		{ { "-T" }, "unknown option -T", "-O stacktrace" },
		{ { "-i", "in.traced" }, "unknown option -i", "name the file" },
		{ { "--cpus", "3-1" }, "--cpus: '3-1' is not a list of CPUs", "0-3,8" },
		{ { "--cpus", "" }, "empty", NULL },
		{ { "-P", "bash" }, "'bash' is not a process id", "-P 1234" },
		{ { "-P", "0" }, "'0' is not a process id", NULL },
		{ { "-P", "1,,2" }, "'' is not a process id", NULL },
		{ { "-P", "99999999999" }, "'99999999999' is not a process id", NULL },
		{ { "--thread", "x" }, "'x' is not a thread id", "--thread 1234,5678" },
		{ { "-e", "irq", "-f", "a<1", "-f", "b<1" },
		  "-e irq has two filters",
		  "'(a<1) && (b<1)'" },
		{ { "--buckets", "log2", "--buckets", "1" },
		  "the key that SQL selects last has buckets already",
		  "--key" },
		{ { "--key", "a", "--buckets", "x" }, "'x' is no size of buckets", "100us" },
		{ { "--key", "a", "--buckets", "1", "--buckets", "2" },
		  "the key a has buckets already",
		  NULL },
		{ { "--key", "" }, "--key: the name is empty", NULL },
		{ { "--entries", "many" }, "--entries: 'many'", NULL },
		{ { "-e", "" }, "-e takes", NULL },
		{ { "-o", "" }, "empty", NULL },
		{ { "-o", "x.json", "-o", "y.json" },
		  "one output only: x.json, or y.json",
		  "convert" },
		{ { "--rotate", "0" }, "--rotate: '0' is not above zero", "100M or 10m" },
		{ { "--rotate", "0s" }, "'0s' is not above zero", "100M or 10m" },
		{ { "--rotate", "0M" }, "'0M' is not above zero", "100M or 10m" },
		{ { "--rotate", "1s", "--rotate", "2s" }, "'2s' is a second time", "one of each" },
		{ { "--rotate", "1M", "--rotate", "2M" }, "'2M' is a second size", "one of each" },
		{ { "-t", "99999999999999999999s" }, "is too long", "106751d" },
		{ { "--name", "" }, "--name: the value is empty", "omit the option" },
		{ { "--symbols", "" }, "--symbols: the value is empty", NULL },
		{ { "--comm", "" }, "--comm: the value is empty", NULL },
		{ { "--format", "" }, "--format: the value is empty", NULL },
		{ { "--clock", "" }, "--clock: the value is empty", NULL },
		{ { "--profile", "" }, "--profile: the value is empty", NULL },
		{ { "--max-memory", "500" },
		  "--max-memory: '500' has no unit",
		  "--max-memory 500K" },
		{ { "--socket", "" }, "--socket: the value is empty", NULL },
		{ { "--on", "" }, "--on: the name is empty", NULL },
		{ { "--hook", "" }, "--hook: the value is empty", NULL },
		{ { "--at-most", "3" }, "'3' is not a number of snapshots", "1/10m" },
		{ { "--at-most", "0/1m" }, "'0/1m' is not a number of snapshots", "1/10m" },
		{ { "--at-most", "1001/1m" }, "is not a number of snapshots", "1000" },
		{ { "--at-most", "-1/1m" }, "is not a number of snapshots", NULL },
		{ { "--at-most", "1/soon" }, "--at-most: 'soon' is not a duration", NULL },
		{ { "--max-size", "10" }, "--max-size: '10' has no unit", "--max-size 10K" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct parsed p;

		parse_as(&p, &all, table[i].words);
		assert_int_not_equal(p.r, 0);
		assert_non_null(p.err.message);
		if (!strstr(p.err.message, table[i].message))
			fail_msg("'%s' lacks '%s'", p.err.message, table[i].message);
		if (table[i].hint && (!p.err.hint || !strstr(p.err.hint, table[i].hint)))
			fail_msg("'%s': the hint '%s' lacks '%s'", p.err.message, p.err.hint ?: "",
				 table[i].hint);
		parsed_deinit(&p);
	}
}

static void an_option_of_another_command_is_unknown(void **state _unused_)
{
	struct parsed p;

	parse_as(&p, &only_json, (const char *const[]){ "--ring", NULL });
	assert_int_equal(p.r, -EINVAL);
	parsed_deinit(&p);
	parse_as(&p, &only_json, (const char *const[]){ "-o", "x", NULL });
	assert_int_equal(p.r, -EINVAL);
	parsed_deinit(&p);
}

/* One of a recording names its events, and is of no option before it. */
static void a_kernel_filter_follows_an_event(void **state _unused_)
{
	struct command reading = all;
	struct parsed p;

	reading.options.has[OPT_FROM] = true;
	parse_as(&p, &all, (const char *const[]){ "-f", "a < 1", NULL });
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.message, "has no event before it"));
	assert_non_null(strstr(p.err.hint, "-e"));
	parsed_deinit(&p);
	parse_as(
		&p, &reading,
		(const char *const[]){ "-f", "irq", "-e", "sched", "-f", "x", "-f", "y: a", NULL });
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.event_filters.count, 3);
	assert_string_equal(p.o.event_filters.items[1], "x");
	parsed_deinit(&p);
}

/* A surplus word gets an error that suggests what was meant. */
static void stray_words_say_where_they_go(void **state _unused_)
{
	static const struct {
		const char *words[8], *hint;
	} table[] = {
		{ { "make" }, "record -- make " },
		{ { "make", "all" }, "record -- make ..." },
		{ { "a.json" }, "-o a.json" },
		{ { "a.JSON" }, "-o a.JSON" },
		{ { "trace.perfetto-trace" }, "-o trace.perfetto-trace" },
		{ { "10s" }, "-t 10s" },
		{ { "-t", "1", "s" }, "-t 1s" },
		{ { "sched:sched_switch" }, "-e 'sched:sched_switch'" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct parsed p;

		parse_as(&p, &all, table[i].words);
		assert_int_equal(p.r, 0);
		assert_int_equal(options_check(&p.o, &command_record, &p.err), -EINVAL);
		if (!strstr(p.err.hint, table[i].hint))
			fail_msg("the hint '%s' lacks '%s'", p.err.hint, table[i].hint);
		parsed_deinit(&p);
	}
}

/* record makes a report only if one is named. */
static void options_of_a_report_need_one(void **state _unused_)
{
	static const char *const words[][2] = { { "--by", "comm" },   { "--sort", "runs" },
						{ "--top", "3" },     { "--min", "1ms" },
						{ "--task", "make" }, { "--csv", NULL } };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct parsed p;

		parse_as(&p, &command_record,
			 (const char *const[]){ words[i][0], words[i][1], NULL });
		assert_int_equal(p.r, 0);
		assert_int_equal(options_check(&p.o, &command_record, &p.err), -EINVAL);
		assert_non_null(strstr(p.err.message, words[i][0]));
		assert_non_null(strstr(p.err.hint, "--report sched"));
		parsed_deinit(&p);
		parse_as(&p, &command_record,
			 (const char *const[]){ "--report", "sched", words[i][0], words[i][1],
						NULL });
		assert_int_equal(options_check(&p.o, &command_record, &p.err), 0);
		parsed_deinit(&p);
		parse_as(&p, &command_report,
			 (const char *const[]){ words[i][0], words[i][1], NULL });
		assert_int_equal(options_check(&p.o, &command_report, &p.err), 0);
		parsed_deinit(&p);
	}
}

static void an_option_before_its_command(void **state _unused_)
{
	struct parsed p;

	parse_as(&p, NULL, (const char *const[]){ "-o", "x.txt", "stop", "name", NULL });
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.hint, "tracectl stop -o FILE"));
	parsed_deinit(&p);
	parse_as(&p, &command_list, (const char *const[]){ "-t", "1s", NULL });
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.hint, "-t is an option of: record, start"));
	parsed_deinit(&p);
	parse_as(&p, &command_list, (const char *const[]){ "--version", NULL });
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.hint, "tracectl --version"));
	parsed_deinit(&p);
}

static void a_clock_belongs_to_its_file(void **state _unused_)
{
	struct parsed p;

	PARSE(&p, "--merge", "a.json", "--merge", "b.json", "--merge-clock", "realtime");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.merge_count, 2);
	assert_string_equal(p.o.merges[0].path, "a.json");
	assert_null(p.o.merges[0].clock);
	assert_string_equal(p.o.merges[1].clock, "realtime");
	parsed_deinit(&p);

	PARSE(&p, "--merge-clock", "realtime");
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.message, "must follow a --merge"));
	parsed_deinit(&p);

	PARSE(&p, "--merge", "a.json", "--merge-clock", "tsc");
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.message, "monotonic, boottime, realtime"));
	parsed_deinit(&p);

	PARSE(&p, "--merge", "a.json", "--merge", "b.json", "--sync-file", "s.json", "--sync-bound",
	      "1ms");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.merge_count, 2);
	assert_null(p.o.merges[0].syncs);
	assert_string_equal(p.o.merges[1].syncs, "s.json");
	assert_int_equal(p.o.sync_bound_ns, 1000000);
	parsed_deinit(&p);
	PARSE(&p, "--merge", "a.json", "--sync-file", "s.json", "--sync-file", "t.json");
	assert_int_equal(p.r, -EINVAL);
	assert_non_null(strstr(p.err.message, "a.json already has the sync file s.json"));
	parsed_deinit(&p);
	PARSE(&p, "--sync-file", "s.json");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.o.merges[0].path, "s.json");
	parsed_deinit(&p);
	PARSE(&p, "--merge", "");
	assert_int_equal(p.r, -EINVAL);
	parsed_deinit(&p);
}

static void a_limit_of_files_is_a_size_or_a_time(void **state _unused_)
{
	static const char *const wrong[] = { "10", "", "1K", "x", "0M", "5x" };
	struct parsed p;

	PARSE(&p, "--rotate", "10m", "--rotate", "100M", "--keep", "5");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.rotate_ns, UINT64_C(600000000000));
	assert_int_equal(p.o.rotate_bytes, 100 << 20);
	assert_int_equal(p.o.keep, 5);
	parsed_deinit(&p);

	PARSE(&p, "--rotate", "64k");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.rotate_bytes, 64 << 10);
	parsed_deinit(&p);

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		PARSE(&p, "--rotate", wrong[i]);
		assert_int_equal(p.r, -EINVAL);
		assert_non_null(strstr(p.err.message, "--rotate"));
		parsed_deinit(&p);
	}
	PARSE(&p, "--keep", "0");
	assert_int_equal(p.r, -EINVAL);
	parsed_deinit(&p);
}

static void combinations_are_checked(void **state _unused_)
{
	static const struct command plain = {
		.name = "plain", .synopsis = "A", .args_min = 1, .args_max = 1
	};
	static const struct command runs = { .name = "runs",
					     .synopsis = "",
					     .options = OPTION_SET(OPTION(EVENT)),
					     .takes_command = true };
	struct parsed p;

	PARSE(&p, "-q");
	assert_int_equal(options_check(&p.o, &plain, &p.err), -EINVAL);
	assert_int_equal(options_check(&p.o, &runs, &p.err), 0);
	parsed_deinit(&p);

	PARSE(&p, "a", "b");
	assert_int_equal(options_check(&p.o, &plain, &p.err), -EINVAL);
	assert_non_null(strstr(p.err.message, "'b' is one argument too many"));
	parsed_deinit(&p);

	/* Missing dashes get an error of their own. */
	PARSE(&p, "make");
	assert_int_equal(options_check(&p.o, &runs, &p.err), -EINVAL);
	assert_non_null(strstr(p.err.hint, "runs -- make"));
	parsed_deinit(&p);

	PARSE(&p, "a", "--", "make");
	assert_int_equal(options_check(&p.o, &plain, &p.err), -EINVAL);
	parsed_deinit(&p);

	PARSE(&p, "-F");
	assert_int_equal(options_check(&p.o, &runs, &p.err), -EINVAL);
	parsed_deinit(&p);
}

int main(void)
{
	memset(all.options.has, true, sizeof(all.options.has));
	all.options.has[OPT_FROM] = false;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_and_names_are_unique),
		cmocka_unit_test(a_whole_line_is_read),
		cmocka_unit_test(graphs_imply_their_tracer),
		cmocka_unit_test(a_filter_is_of_the_option_before_it),
		cmocka_unit_test(a_name_is_of_the_sql_before_it),
		cmocka_unit_test(a_trigger_is_of_the_option_before_it_or_names_its_event),
		cmocka_unit_test(positionals_may_stand_anywhere),
		cmocka_unit_test(a_value_may_be_two_dashes),
		cmocka_unit_test(globals_end_at_the_command),
		cmocka_unit_test(value_may_be_left_out),
		cmocka_unit_test(bad_lines_say_what_and_how),
		cmocka_unit_test(an_option_of_another_command_is_unknown),
		cmocka_unit_test(a_kernel_filter_follows_an_event),
		cmocka_unit_test(stray_words_say_where_they_go),
		cmocka_unit_test(options_of_a_report_need_one),
		cmocka_unit_test(an_option_before_its_command),
		cmocka_unit_test(a_clock_belongs_to_its_file),
		cmocka_unit_test(a_limit_of_files_is_a_size_or_a_time),
		cmocka_unit_test(combinations_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
