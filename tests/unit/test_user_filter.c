/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Filters of users who may not see addresses: which fields they compare, and hostile texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/user_filter.h"
#include "daemon/capture/tracefs/event_field.h"
#include "fake_root.h"
#include "fixture.h"

#define COMMON                                                                                     \
	"name: x\nID: 1\nformat:\n"                                                                \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELD(decl, size) "\tfield:" decl ";\toffset:8;\tsize:" size ";\tsigned:0;\n"

static const char kmalloc[] = COMMON FIELD("unsigned long call_site", "8") FIELD(
	"const void * ptr",
	"8") FIELD("size_t bytes_req",
		   "8") FIELD("unsigned long gfp_flags",
			      "8") FIELD("int node",
					 "4") FIELD("unsigned long secret",
						    "8") FIELD("__data_loc char[] name",
							       "4") FIELD("char comm[16]",
									  "16") FIELD("u64 runtime",
										      "8")
	FIELD("long state",
	      "8") "\nprint fmt: \"call_site=%pS ptr=%p bytes_req=%zu gfp_flags=%s %s %s %Lu %s\", "
		   "(void *)REC->call_site, REC->ptr, REC->bytes_req, (REC->gfp_flags) ? "
		   "__print_flags(REC->gfp_flags, \"|\", {( unsigned long)(1), \"A\"}) : \"none\", "
		   "__get_str(name), REC->comm, (unsigned long long)REC->runtime, "
		   "REC->state & (((1 | 2) + 1) << 1) - 1 ? __print_flags(REC->state & ((0x1 << 1) "
		   "- 1), "
		   "\"|\", {1, \"S\"}) : \"R\"\n";

static void assert_check(const char *format, const char *filter, int code, const char *message,
			 const char *hint)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = user_filter_check("kmem:kmalloc", format, filter, &err);

	if (r != code)
		fail_msg("'%s': %d instead of %d: %s", filter, r, code, err.message ?: "");
	if (message && !strstr(err.message, message))
		fail_msg("'%s': '%s' is not in: %s", filter, message, err.message);
	if (hint && !strstr(err.hint, hint))
		fail_msg("'%s': '%s' is not in the hint: %s", filter, hint, err.hint);
	if (r < 0)
		assert_true(strchr(err.message, '^') && err.hint);
}

static void the_bisect_is_refused(void **state _unused_)
{
	assert_check(kmalloc, "call_site >= 0xffffffff81000000", -EPERM,
		     "the filter for kmem:kmalloc: only root may compare 'call_site', which is an "
		     "address\n  call_site >= 0xffffffff81000000\n  ^",
		     "its open fields are bytes_req, gfp_flags, node, name, comm, runtime, state; "
		     "root may do it, or allow it: \"raw_addresses = yes\" in [users]");
}

static void closed_fields_are_found_wherever_they_are(void **state _unused_)
{
	static const char *const filters[] = {
		"ptr == 0",
		"bytes_req > 10 && call_site & 0x1000",
		"(node == 1) || (!(ptr != 5))",
		"!(!(call_site < 3))",
		"!call_site == 3",
		"((((bytes_req==1||node==2)&&ptr==3))))",
		"  call_site\t>= 1",
		"name == \"call_site\" || call_site==1",
		"name == 'a\" && b' && ptr<1",
		"stacktrace ~ \"x\"",
		"secret > 5",
	};

	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		/* One has a parenthesis too many, which comes behind the closed field. */
		assert_check(kmalloc, filters[i], strstr(filters[i], "))))") ? -EINVAL : -EPERM,
			     NULL, NULL);
}

static void open_fields_are_compared(void **state _unused_)
{
	static const char *const filters[] = {
		"bytes_req > 100",
		"bytes_req>=0x100&&node!=-1",
		"common_pid == 1",
		"(gfp_flags & 0x10) || comm ~ \"call_site >= 5*\"",
		"!(name == 'ptr == 1') && cpu < 2",
		"COMM == \"a\\\" || CPU & CPUS{0-3,7}",
		"runtime > 1000000",
		"state == 2",
		"\tnode == 1 ",
	};

	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		assert_check(kmalloc, filters[i], 0, NULL, NULL);
}

static void what_cannot_be_parsed_is_refused(void **state _unused_)
{
	static const struct {
		const char *filter, *message;
	} wrong[] = {
		{ "", "the name of a field is missing\n  \n  ^" },
		{ "0", "an operator is missing" },
		{ "none", "an operator is missing" },
		{ "bytes_req", "an operator is missing" },
		{ "bytes_req >", "a number or a quoted text is missing" },
		{ "bytes_req > node", "a number or a quoted text is missing" },
		{ "bytes_req = 1", "an operator is missing" },
		{ "bytes_req > 1 & node == 1", "&& or || is missing\n"
					       "  bytes_req > 1 & node == 1\n"
					       "                ^" },
		{ "bytes_req > 1 node == 1", "&& or || is missing" },
		{ "bytes_req > 1_ptr==1", "&& or || is missing" },
		{ "bytes_req > 1;ptr==1", "&& or || is missing" },
		{ "bytes_req > 1\240&&ptr==1", "&& or || is missing" },
		{ "bytes_req\240> 1", "an operator is missing" },
		{ "\303\244 == 1", "the name of a field is missing" },
		{ "(bytes_req > 1", "a ')' is missing" },
		{ "bytes_req > 1)", "there is no '(' for this ')'" },
		{ "bytes_req > 1 &&", "the name of a field is missing" },
		{ "name == \"x", "the closing quote is missing" },
		{ "name == 'x\"", "the closing quote is missing" },
		{ "call_site.function == kmalloc", "a field's value only" },
		{ "name.ustring ~ \"root*\"", "a field's value only" },
		{ "cpu & CPUS{0-3", "a number or a quoted text is missing" },
		{ "cpu & CPUS{0} ptr == 1}", "&& or || is missing" },
		{ "node == --1", "a number or a quoted text is missing" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_check(kmalloc, wrong[i].filter, -EINVAL, wrong[i].message, NULL);
}

static void a_missing_field_gets_its_neighbours(void **state _unused_)
{
	assert_check(kmalloc, "bytes_rq > 1", -EINVAL, "'bytes_rq' is no field of this event",
		     "did you mean 'bytes_req'?");
	assert_check("", "bytes_req > 1", -EINVAL, "is no field", NULL);
}

static void a_long_filter_is_shown_in_part(void **state _unused_)
{
	_cleanup_buf_ struct buf filter = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	for (int i = 0; i < 50; i++)
		buf_puts(&filter, "name != \"\303\244\303\244\303\244\" && ");
	buf_puts(&filter, "ptr == 1");
	for (int i = 0; i < 50; i++)
		buf_puts(&filter, " && node != 1");
	assert_int_equal(user_filter_check("a:b", kmalloc, buf_string(&filter), &err), -EPERM);
	assert_true(strlen(err.message) < 400);
	/* The caret is below the field, in characters. */
	const char *line = strchr(err.message, '\n') + 1, *ptr = strstr(line, "ptr"),
		   *caret = strchr(line, '^');
	size_t column = 0;

	for (const char *p = line; p < ptr; p++)
		column += ((unsigned char)*p & 0xc0) != 0x80;
	assert_int_equal(caret - strchr(line, '\n') - 1, column);
}

static void fields_are_bounded(void **state _unused_)
{
	_cleanup_buf_ struct buf filter = BUF_INIT;

	for (int i = 0; i < USER_FILTER_FIELDS_MAX; i++)
		buf_puts(&filter, "node == 1 || node == 2 || ");
	buf_puts(&filter, "node == 1");
	assert_check(kmalloc, buf_string(&filter), 0, NULL, NULL);
	for (int i = 0; i < USER_FILTER_FIELDS_MAX; i++)
		buf_printf(&filter, " || f%d == 1", i);
	assert_check(kmalloc, buf_string(&filter), -EINVAL, "32 different fields", NULL);
}

static void fields_are_judged_by_type_name_and_text(void **state _unused_)
{
#define FORMAT(decl, size, print) COMMON FIELD(decl, size) "\nprint fmt: " print "\n"
	static const struct {
		const char *format;
		enum event_field_kind kind;
	} cases[] = {
		{ FORMAT("unsigned long f", "8", "\"%lu\", REC->f"), EVENT_FIELD_OPEN },
		{ FORMAT("unsigned long f", "8", "\"%d %lx\", 1, ((unsigned long)(REC->f))"),
		  EVENT_FIELD_OPEN },
		{ FORMAT("unsigned long f", "8", "\"%*d %lx\", 1, 2, REC->f"), EVENT_FIELD_OPEN },
		{ FORMAT("unsigned long f", "8", "\"%*d\", REC->f, 2"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"100%% %lx\", REC->f"), EVENT_FIELD_OPEN },
		{ FORMAT("unsigned long f", "8", "\"%p\", (void *)REC->f"), EVENT_FIELD_PRINTED },
		{ FORMAT("unsigned long f", "8", "\"%pK\", (void *)REC->f"), EVENT_FIELD_PRINTED },
		{ FORMAT("unsigned long f", "8", "\"%px\", (void *)REC->f"), EVENT_FIELD_PRINTED },
		{ FORMAT("unsigned long f", "8", "\"%lx %-10pS\", REC->f, (void *)REC->f"),
		  EVENT_FIELD_PRINTED },
		{ FORMAT("unsigned long f", "8", "\"%p\", (base + (REC->f))"),
		  EVENT_FIELD_PRINTED },
		{ FORMAT("unsigned long f", "8", "\"%s\", REC->f ? \"a\" : \"b\""),
		  EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\", REC->f ^ secret"),
		  EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\", hash(REC->f)"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\", REC->f > 5"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\", REC->f & 1"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\", REC->f2"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\""), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"\", REC->f"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\", REC->f, 1"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"a \"%lx\" b\", REC->f"),
		  EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\", \"REC->f\""), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%lx\", (REC->f"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", "\"%s\", __print_symbolic(REC->f, {1, \"a\"})"),
		  EVENT_FIELD_OPEN },
		{ FORMAT("unsigned long f", "8",
			 "\"%s\", __print_symbolic(test(REC->f), {1, \"a\"})"),
		  EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("unsigned long f", "8", ""), EVENT_FIELD_NOT_SHOWN },
		{ COMMON FIELD("unsigned long f", "8"), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("xfs_lsn_t f", "8", "\"\""), EVENT_FIELD_NOT_SHOWN },
		{ FORMAT("size_t f", "8", "\"\""), EVENT_FIELD_OPEN },
		{ FORMAT("unsigned int f", "8", "\"\""), EVENT_FIELD_OPEN },
		{ FORMAT("enum x f", "8", "\"\""), EVENT_FIELD_OPEN },
		{ FORMAT("u16 f", "2", "\"\""), EVENT_FIELD_OPEN },
		{ FORMAT("size_t f", "8", "\"%p\", REC->f"), EVENT_FIELD_PRINTED },
		{ FORMAT("void *f", "8", "\"%lx\", REC->f"), EVENT_FIELD_POINTER },
		{ FORMAT("char * f", "8", "\"%s\", REC->f"), EVENT_FIELD_POINTER },
		{ FORMAT("__data_loc void *[] f", "4", "\"\""), EVENT_FIELD_POINTER },
		{ FORMAT("__data_loc unsigned long[] f", "4", "\"\""), EVENT_FIELD_COMPOUND },
		{ FORMAT("__rel_loc u8[] f", "4", "\"\""), EVENT_FIELD_COMPOUND },
		{ FORMAT("unsigned long f[4]", "32", "\"\""), EVENT_FIELD_COMPOUND },
		{ FORMAT("struct x f", "4", "\"\""), EVENT_FIELD_COMPOUND },
		{ FORMAT("char f[16]", "16", "\"%s\", REC->f"), EVENT_FIELD_OPEN },
		{ FORMAT("char f[16]", "16", "\"%pU\", REC->f"), EVENT_FIELD_PRINTED },
		{ FORMAT("__rel_loc char[] f", "4", "\"\""), EVENT_FIELD_OPEN },
		{ FORMAT("__data_loc cpumask_t f", "4", "\"\""), EVENT_FIELD_OPEN },
		{ COMMON FIELD("unsigned long f", "8")
			  FIELD("void * f", "8") "\nprint fmt: \"%lx\", REC->f\n",
		  EVENT_FIELD_POINTER },
		{ "", EVENT_FIELD_MISSING },
	};
	static const char *const names[] = { "ip",     "parent_ip", "__probe_ip", "call_site",
					     "ptr",    "skbaddr",   "function",	  "__probe_func",
					     "caller", "address",   "CALLER_ADDR" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (event_field_judge(cases[i].format, "f", 1) != cases[i].kind)
			fail_msg("case %zu is %d:\n%s", i,
				 event_field_judge(cases[i].format, "f", 1), cases[i].format);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char format[512];

		snprintf(format, sizeof(format),
			 COMMON "\tfield:unsigned long %s;\toffset:8;\tsize:8;\tsigned:0;\n"
				"\nprint fmt: \"%%lx\", REC->%s\n",
			 names[i], names[i]);
		assert_int_equal(event_field_judge(format, names[i], strlen(names[i])),
				 EVENT_FIELD_NAMED);
	}
}

/* Judges every field of a kernel's events, by an independent rule of thumb. */
static void judge_all(char *text, unsigned *open, unsigned *closed)
{
	static const char *const usual[] = { "sched_switch prev_state",
					     "sched_switch next_comm",
					     "sched_stat_runtime runtime",
					     "block_rq_issue sector",
					     "kmalloc bytes_req",
					     "hrtimer_start expires",
					     "sys_enter id",
					     "sys_exit ret",
					     "task_newtask clone_flags",
					     "sys_enter_read fd" };
	/* Addresses that the kernel prints as numbers. */
	static const char *const places[] = {
		"alloc_vmap_area addr",
		"alloc_vmap_area vstart",
		"alloc_vmap_area vend",
		"purge_vmap_area_lazy start",
		"purge_vmap_area_lazy end",
		"free_vmap_area_noflush va_start",
		"read_msr val",
		"write_msr val",
		"rdpmc val",
		"error_report_end id",
		"mmiotrace_map virt",
	};
	unsigned found = 0;
	char *next;

	for (char *event = strstr(text, "name: "); event; event = next) {
		const char *at = event, *name, *print_fmt = strstr(event, "print fmt:");
		char event_name[128], both[256];
		size_t len;

		next = strstr(event + 1, "\nname: ");
		if (next)
			*next++ = '\0';
		assert_int_equal(sscanf(event, "name: %127s", event_name), 1);
		while ((len = event_field_next(&at, &name))) {
			const char *line = memrchr(event, '\t', (size_t)(name - event));
			bool is_open = event_field_judge(event, name, len) == EVENT_FIELD_OPEN;
			char cast[128];

			*(is_open ? open : closed) += 1;
			snprintf(cast, sizeof(cast), "(void *)REC->%.*s,", (int)len, name);
			if (is_open && (memchr(line, '*', (size_t)(name - line)) ||
					(print_fmt && strstr(print_fmt, cast))))
				fail_msg("%s: %.*s is open", event_name, (int)len, name);
			snprintf(both, sizeof(both), "%s %.*s", event_name, (int)len, name);
			for (size_t i = 0; i < ARRAY_SIZE(places); i++)
				if (is_open && strcmp(both, places[i]) == 0)
					fail_msg("%s is open", both);
			for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
				if (strcmp(both, usual[i]) == 0) {
					found++;
					if (!is_open)
						fail_msg("%s is closed", both);
				}
		}
	}
	assert_true(found >= 8);
}

/* The same as filter_assign_type() and parse_pred() of the kernel. */
static void fields_are_described(void **state _unused_)
{
	static const char format[] = COMMON
		"\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		"\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n" FIELD(
			"__data_loc char[] name", "4") FIELD("const char * path", "8")
			FIELD("void * ptr", "8") FIELD("__data_loc cpumask_t cpus", "4")
				FIELD("u8 mac[6]", "6") FIELD("__data_loc u8[] bytes", "4")
					FIELD("struct x y", "8") FIELD("char one", "1")
						FIELD("u128 wide", "16") "\nprint fmt: \"\"\n";
	static const struct {
		const char *name, *type, *array;
		enum event_field_filter filter;
	} expected[] = {
		{ "common_type", "unsigned short", "", EVENT_FILTER_NUMBER },
		{ "common_pid", "int", "", EVENT_FILTER_NUMBER },
		{ "comm", "char", "[16]", EVENT_FILTER_TEXT },
		{ "pid", "pid_t", "", EVENT_FILTER_NUMBER },
		{ "name", "__data_loc char[]", "", EVENT_FILTER_TEXT },
		{ "path", "const char *", "", EVENT_FILTER_TEXT },
		{ "ptr", "void *", "", EVENT_FILTER_NUMBER },
		{ "cpus", "__data_loc cpumask_t", "", EVENT_FILTER_CPUS },
		{ "mac", "u8", "[6]", EVENT_FILTER_NONE },
		{ "bytes", "__data_loc u8[]", "", EVENT_FILTER_NONE },
		{ "y", "struct x", "", EVENT_FILTER_NONE },
		{ "one", "char", "", EVENT_FILTER_NUMBER },
		{ "wide", "u128", "", EVENT_FILTER_NONE },
	};
	struct event_field f;
	const char *at = format;

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_true(event_field_describe(&at, &f));
		assert_int_equal(f.name_len, strlen(expected[i].name));
		assert_memory_equal(f.name, expected[i].name, f.name_len);
		assert_int_equal(f.type_len, strlen(expected[i].type));
		assert_memory_equal(f.type, expected[i].type, f.type_len);
		assert_int_equal(f.array_len, strlen(expected[i].array));
		assert_memory_equal(f.array, expected[i].array, f.array_len);
		if (f.filter != expected[i].filter)
			fail_msg("%s: %d", expected[i].name, f.filter);
		assert_int_equal(f.is_signed, i == 1 || i == 3);
	}
	assert_false(event_field_describe(&at, &f));
}

static void fields_of_real_kernels(void **state _unused_)
{
	static const char *const kernels[] = { "5.10.223", "6.1.176", "6.12.107", "6.18.44",
					       "7.2.13" };

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		_cleanup_buf_ struct buf formats = BUF_INIT;
		unsigned open = 0, closed = 0;
		char path[512];

		snprintf(path, sizeof(path), TEST_DATA "/%s/formats.txt.gz", kernels[i]);
		fixture_read_gz(path, &formats);
		assert_non_null(buf_string(&formats));
		judge_all(formats.data, &open, &closed);
		print_message("%s: %u fields are open, %u closed\n", kernels[i], open, closed);
		assert_true(open > 10 * closed && closed > 500);
	}
}

static void every_matched_event_is_checked(void **state _unused_)
{
	struct event_match items[] = { { .name = "kmem:kfree" },
				       { .name = "kmem:kmalloc", .filter = "node == 1" } };
	const struct event_matches m = { .items = items, .count = ARRAY_SIZE(items) };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct fake_root root;
	struct tracefs *fs;

	fake_root_init(&root);
	fake_file(&root, "events/kmem/kmalloc/format", kmalloc);
	assert_int_equal(tracefs_open(&fs, root.path, NULL), 0);
	assert_int_equal(user_filters_check(fs, &m, &err), 0);
	items[1].filter = "ptr == 1";
	assert_int_equal(user_filters_check(fs, &m, &err), -EPERM);
	assert_non_null(strstr(err.message, "kmem:kmalloc"));
	/* An event without a readable format cannot be judged. */
	items[0].filter = "node == 1";
	assert_int_equal(user_filters_check(fs, &m, &err), -ENOENT);
	tracefs_free(fs);
	fake_root_deinit(&root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bisect_is_refused),
		cmocka_unit_test(closed_fields_are_found_wherever_they_are),
		cmocka_unit_test(open_fields_are_compared),
		cmocka_unit_test(what_cannot_be_parsed_is_refused),
		cmocka_unit_test(a_missing_field_gets_its_neighbours),
		cmocka_unit_test(a_long_filter_is_shown_in_part),
		cmocka_unit_test(fields_are_bounded),
		cmocka_unit_test(fields_are_judged_by_type_name_and_text),
		cmocka_unit_test(fields_are_described),
		cmocka_unit_test(fields_of_real_kernels),
		cmocka_unit_test(every_matched_event_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
