/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole synthetic captures as the text that the kernel would print. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "exported.h"
#include "make_formats.h"
#include "make_usual.h"

static const char usual_text[] =
	"       old seven-7       [000] d..2.   101.000000: number: value=1\n"
	"           shell-50      [000] d..2.   101.000001: number: value=2\n"
	"          <idle>-0       [001] d..2.   101.000001: number: value=3\n"
	"           child-71      [000] d..2.   102.000000: number: value=4\n"
	"CPU:1 [LOST 2 EVENTS]\n"
	"           <...>-99      [001] d..2.   103.000000: number: value=5\n"
	"       new seven-7       [000] d..2.   104.000000: number: value=6\n"
	"           child-71      [000] d..2.   104.010000: 0x00001234: hello\n"
	"     kworker/1:2-60      [000] d..2.   104.020000: sched_switch: prev_comm=kworker/1:2 "
	"prev_pid=60 prev_prio=-1 prev_state=I ==> next_comm=new seven next_pid=7 next_prio=120\n"
	"           child-70      [001] d..2.   105.000000: number: value=7\n"
	"           child-71      [001] d..2.   105.000000: 0x00001234: "
	"B|70|work \"here\"\\\x01\xff\xc3\xa4\n"
	"CPU:1 [LOST 3 EVENTS]\n";

static const char usual_head[] = "# tracer: nop\n"
				 "#\n"
				 "# entries-in-buffer/entries-written: 10/13   #P:2\n"
				 "#\n"
				 "#                                _-----=> irqs-off/BH-disabled\n"
				 "#                               / _----=> need-resched\n"
				 "#                              | / _---=> hardirq/softirq\n"
				 "#                              || / _--=> preempt-depth\n"
				 "#                              ||| / _-=> migrate-disable\n"
				 "#                              |||| /     delay\n"
				 "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
				 "#              | |         |   |||||     |         |\n";

static void text_is_the_kernels(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_exported_ struct exported r = { .options.format = "txt" };

		maker_init(&m, machines[i].word_size, machines[i].big_endian, 1024);
		maker_usual(&m);
		export_whole(&r, m.fd);
		assert_string_equal(text_body(r.file.data), usual_text);
		assert_int_equal(text_body(r.file.data) - r.file.data, sizeof(usual_head) - 1);
		assert_memory_equal(r.file.data, usual_head, sizeof(usual_head) - 1);
		assert_int_equal(r.result.bytes, r.file.len);
		assert_false(r.result.incomplete);
		assert_int_equal(r.result.warning_count, 0);
	}
}

/* Sub-buffers of a real kernel, and its own `trace` file of the same buffer with hash-ptr off. */
static void recorded_text_is_the_kernels(void **state _unused_)
{
	_cleanup_close_ int fd = open(TEST_DATA "/6.18.44/sched.traced", O_RDONLY | O_CLOEXEC);
	_cleanup_buf_ struct buf expect = BUF_INIT;
	_cleanup_exported_ struct exported r = { .options = { .format = "txt",
							      .raw_addresses = true } };

	assert_true(fd >= 0);
	assert_int_equal(read_file_at(AT_FDCWD, TEST_DATA "/6.18.44/sched.txt", 1 << 20, &expect),
			 0);
	export_whole(&r, fd);
	assert_int_equal(r.result.events, 1812);
	assert_string_equal(r.file.data, buf_string(&expect));
}

static void tgid_column(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options = { .format = "txt", .tgid = true } };

	maker_init(&m, 8, false, 1024);
	maker_usual(&m);
	export_whole(&r, m.fd);
	assert_non_null(
		strstr(r.file.data, "#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP"));
	assert_non_null(strstr(
		r.file.data,
		"           child-71      (     70) [000] d..2.   102.000000: number: value=4\n"));
	assert_non_null(strstr(
		r.file.data,
		"           <...>-99      (-------) [001] d..2.   103.000000: number: value=5\n"));
	assert_non_null(strstr(
		r.file.data,
		"          <idle>-0       (-------) [001] d..2.   101.000001: number: value=3\n"));
}

/* The same sub-buffer was read while the kernel filled it, and again later. */
static void bytes_read_before_are_skipped(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_begin(&m, 1024);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 0, 1);
	event_number(&m, 2 * S, 0, 2); /* with a time extend: 8 + 16 bytes */
	page_flush(&m, 5, 0);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 0, 1);
	event_number(&m, 2 * S, 0, 2);
	event_number(&m, 3 * S, 0, 3);
	page_end(&m, 5);
	page_begin(&m, 4 * S);
	event_number(&m, 4 * S, 0, 4);
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_MAIN, 16 + 8 + 16);
	maker_end(&m);
	export_whole(&r, m.fd);
	assert_string_equal(text_body(r.file.data),
			    "CPU:0 [LOST 5 EVENTS]\n"
			    "          <idle>-0       [000] d..2.     1.000000: number: value=1\n"
			    "          <idle>-0       [000] d..2.     2.000000: number: value=2\n"
			    "          <idle>-0       [000] d..2.     3.000000: number: value=3\n"
			    "          <idle>-0       [000] d..2.     4.000000: number: value=4\n");
}

static void names_are_searched_where_no_source_tells(void **state _unused_)
{
	static const struct maker_task saved[] = { { 5, 0, "saved", 0, false } };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_begin(&m, 1024);
	maker_tasks(&m, 0, 1, saved, 1);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 5, 1);
	event_number(&m, 1 * S, 6, 2);
	event_switch(&m, 2 * S, 6, "six", 1, 120, 5, "five");
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, "           saved-5       [000] d..2.     1.000000"));
	assert_non_null(strstr(r.file.data, "             six-6       [000] d..2.     1.000000"));
}

static void older_kernels_have_other_columns(void **state _unused_)
{
	static const char head[] =
		"# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:8\n#\n"
		"#                              _-----=> irqs-off\n"
		"#                             / _----=> need-resched\n"
		"#                            | / _---=> hardirq/softirq\n"
		"#                            || / _--=> preempt-depth\n"
		"#                            ||| /     delay\n"
		"#           TASK-PID   CPU#  ||||    TIMESTAMP  FUNCTION\n"
		"#              | |       |   ||||       |         |\n";
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_init(&m, 8, false, 1024);
	m.release = "5.4.0-42-generic";
	m.trace_header = head;
	m.clock = "counter";
	maker_head(&m);
	page_begin(&m, 1);
	event_number(&m, 123, 0, 1);
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, strstr(head, "#                              _")));
	assert_string_equal(text_body(r.file.data),
			    "          <idle>-0     [000] d..2          123: number: value=1\n");
}

/* osnoise and timerlat don't name all columns that the kernel fills. */
static void heads_of_tracers_name_fewer_columns(void **state _unused_)
{
	static const char head[] =
		"# tracer: timerlat\n#\n"
		"#                                _-----=> irqs-off\n"
		"#                               / _----=> need-resched\n"
		"#                              | / _---=> hardirq/softirq\n"
		"#                              || / _--=> preempt-depth\n"
		"#                              || /\n"
		"#                              ||||             ACTIVATION\n"
		"#           TASK-PID      CPU# ||||   TIMESTAMP    ID            CONTEXT"
		"                LATENCY\n"
		"#              | |         |   ||||      |         |                  |"
		"                       |\n";
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_init(&m, 8, false, 1024);
	m.release = "6.12.117+deb13-amd64";
	m.trace_header = head;
	maker_head(&m);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 0, 1);
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_string_equal(text_body(r.file.data),
			    "          <idle>-0       [000] d..2.     1.000000: number: value=1\n");
}

enum { ID_PATCHED = 400 };

/* Common fields of kernels with the patches for PREEMPT_RT. */
#define USUAL_COMMON                                                                               \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
#define LAZY_AT_8                                                                                  \
	USUAL_COMMON                                                                               \
	"\tfield:unsigned char common_preempt_lazy_count;\toffset:8;\tsize:1;\tsigned:0;\n\n"
#define LAZY_AT_9                                                                                  \
	USUAL_COMMON                                                                               \
	"\tfield:unsigned char common_migrate_disable;\toffset:8;\tsize:1;\tsigned:0;\n"           \
	"\tfield:unsigned char common_preempt_lazy_count;\toffset:9;\tsize:1;\tsigned:0;\n\n"

static void patched_for_rt(Traced__Capture__Header *h)
{
	h->kernel_version = (char *)"#1 SMP PREEMPT_RT Debian";
}

/* Kernels with the patches for PREEMPT_RT, until 6.6: as their trace_print_lat_fmt() prints it. */
static const struct {
	const char *release, *common, *columns, *portable;
	bool rt;
	uint8_t flags, preempt, bytes[2];
} patched[] = {
	{ "6.1.0-50-rt-amd64", LAZY_AT_8, ".......", ".....", true, 0, 0, { 0, 0 } },
	{ "6.1.0-50-rt-amd64", LAZY_AT_8, "d..h1..", "d.h1.", true, 0x09, 0x01, { 0, 0 } },
	{ "6.1.0-50-rt-amd64", LAZY_AT_8, "DnLs1a2", "dns12", true, 0xb5, 0x21, { 0xa, 0 } },
	{ "6.1.0-50-rt-amd64", LAZY_AT_8, "b.L..1f3", ".n..3", true, 0xa0, 0x30, { 0x1f, 0 } },
	{ "6.6.0-red-hat", LAZY_AT_8, ".N...2.", ".N...", false, 0x24, 0, { 2, 0 } },
	{ "6.6.0-red-hat", LAZY_AT_8, ".p.Z...", ".pH..", false, 0x68, 0, { 0, 0 } },
	{ "5.10.0-28-rt-amd64", LAZY_AT_9, ".pL.1254", ".N.12", true, 0xa0, 0x12, { 4, 5 } },
	{ "5.10.0-28-rt-amd64", LAZY_AT_9, ".N..1.1", ".N.1", true, 0x24, 0x01, { 1, 0 } },
};

static void put_patched(struct maker *m, size_t i)
{
	uint8_t record[16] = { ID_PATCHED & 0xff, ID_PATCHED >> 8, patched[i].flags,
			       patched[i].preempt };

	memcpy(record + 8, patched[i].bytes, 2);
	maker_init(m, 8, false, 1024);
	m->release = patched[i].release;
	m->common = patched[i].common;
	m->header = patched[i].rt ? patched_for_rt : NULL;
	maker_head(m);
	maker_format(m, "test", "patched", ID_PATCHED,
		     "\tfield:u32 value;\toffset:12;\tsize:4;\tsigned:0;\n",
		     "\"value=%u\", REC->value");
	page_begin(m, 1 * S);
	page_record(m, 1 * S, record, sizeof(record));
	maker_finish(m);
}

static void patches_for_rt_bring_columns(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(patched); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_exported_ struct exported text = { .options.format = "txt" };
		_cleanup_exported_ struct exported json = { .options.format = "json" };
		char expect[200];

		put_patched(&m, i);
		export_whole(&text, m.fd);
		snprintf(expect, sizeof(expect),
			 "          <idle>-0       [000] %s     1.000000: patched: value=0\n",
			 patched[i].columns);
		assert_string_equal(text_body(text.file.data), expect);
		export_whole(&json, m.fd);
		snprintf(expect, sizeof(expect), "[000] %s     1.000000: patched",
			 patched[i].portable);
		assert_non_null(strstr(json.file.data, expect));
	}
}

static void legend_of_patches_for_rt(void **state _unused_)
{
	static const char legend[] =
		"#                                          _-------=> irqs-off/BH-disabled\n"
		"#                                         / _------=> need-resched\n"
		"#                                        | / _-----=> need-resched-lazy\n"
		"#                                        || / _----=> hardirq/softirq\n"
		"#                                        ||| / _---=> preempt-depth\n"
		"#                                        |||| / _--=> preempt-lazy-depth\n"
		"#                                        ||||| / _-=> migrate-disable\n"
		"#                                        |||||| /     delay\n"
		"#           TASK-PID       TGID    CPU#  |||||||  TIMESTAMP  FUNCTION\n"
		"#              | |           |       |   |||||||      |         |\n";
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options = { .format = "txt", .tgid = true } };

	put_patched(&m, 0);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, legend));
}

/* 5.10 has no column for migrate_disable. */
static void legend_of_older_kernels(void **state _unused_)
{
	static const char legend[] = "#                                _-----=> irqs-off\n"
				     "#                               / _----=> need-resched\n"
				     "#                              | / _---=> hardirq/softirq\n"
				     "#                              || / _--=> preempt-depth\n"
				     "#                              ||| /     delay\n"
				     "#           TASK-PID     CPU#  ||||   TIMESTAMP  FUNCTION\n"
				     "#              | |         |   ||||      |         |\n";
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_init(&m, 8, false, 1024);
	m.release = "5.10.0-28-amd64";
	maker_usual(&m);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, legend));
}

static void tasks_in_pages_of_512(Traced__Capture__Header *h)
{
	h->tasks_subbuf_size = 512;
}

/* A top-level buffer may have larger sub-buffers than the instance beside it. */
static void rings_may_differ_in_their_sub_buffers(void **state _unused_)
{
	_cleanup_exported_ struct exported r = { .options = { .format = "txt" } };
	struct maker m, tasks;

	maker_init(&m, 8, false, 4096);
	maker_init(&tasks, 8, false, 512);
	m.header = tasks_in_pages_of_512;
	maker_head(&m);
	for (int32_t pid = 50; pid < 90; pid++) {
		page_begin(&tasks, 100 * S + (uint64_t)pid);
		event_newtask(&tasks, 100 * S + (uint64_t)pid, 1, pid, "born", 0);
		page_end(&tasks, 0);
	}
	buf_append(&m.subbufs, tasks.subbufs.data, tasks.subbufs.len);
	maker_flush(&m, 0, BUFFER_TASKS, 0);
	page_begin(&m, 101 * S);
	for (int32_t pid = 50; pid < 90; pid++)
		event_number(&m, 101 * S + (uint64_t)pid, pid, 1);
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.warning_count, 0);
	assert_int_equal(r.result.events, 40);
	assert_non_null(strstr(r.file.data, "born-50 "));
	assert_non_null(strstr(r.file.data, "born-89 "));
	maker_deinit(&tasks);
	maker_deinit(&m);
}

/* The task ended before procfs was read, and was born before the recording. */
static void an_early_end_gives_the_name(void **state _unused_)
{
	_cleanup_exported_ struct exported r = { .options = { .format = "txt" } };
	struct maker m;

	maker_begin(&m, 4096);
	maker_free_format(&m);
	page_begin(&m, 102 * S);
	event_free(&m, 102 * S, 60, "brief");
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_TASKS, 0);
	page_begin(&m, 101 * S);
	event_number(&m, 101 * S, 60, 1);
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, " brief-60 "));
	maker_deinit(&m);
}

static void name_user_code(Traced__Capture__Header *h)
{
	h->trace_options = (char *)"userstacktrace\nsym-userobj\n";
}

struct mapped {
	uint64_t start;
	const char *path;
};

/* Maps one page each, for process 7. */
static void put_mappings(struct maker *m, const struct mapped *mapped, size_t count, bool all)
{
	Traced__Capture__Mapping mappings[8], *pointers[8];
	Traced__Capture__ProcessMappings process = TRACED__CAPTURE__PROCESS_MAPPINGS__INIT,
					 *processes = &process;
	Traced__Capture__Mappings message = TRACED__CAPTURE__MAPPINGS__INIT;

	for (size_t i = 0; i < count; i++) {
		pointers[i] = &mappings[i];
		mappings[i] = (Traced__Capture__Mapping)TRACED__CAPTURE__MAPPING__INIT;
		mappings[i].start = mapped[i].start;
		mappings[i].end = mapped[i].start + 0x1000;
		mappings[i].path.data = (uint8_t *)(uintptr_t)mapped[i].path;
		mappings[i].path.len = strlen(mapped[i].path);
	}
	process.pid = 7;
	process.n_mappings = count;
	process.mappings = pointers;
	message.n_processes = 1;
	message.processes = &processes;
	message.all = all;
	assert_int_equal(stream_write_message(&m->writer, CHUNK_MAPPINGS, &message.base), 0);
}

/* stack: of process 7, up to the first 0. */
static void check_user_stack(struct maker *m, const uint64_t *stack, const char *text)
{
	_cleanup_exported_ struct exported r = { .options = { .format = "txt" } };
	_cleanup_buf_ struct buf data = BUF_INIT;

	maker_u32(m, &data, 7);
	maker_u32(m, &data, 0);
	for (size_t i = 0; i < 8; i++)
		maker_u64(m, &data, *stack ? *stack++ : 0);
	page_begin(m, 101 * S);
	maker_event(m, 101 * S, 6, 8, data.data, data.len);
	maker_finish(m);
	export_whole(&r, m->fd);
	assert_non_null(strstr(r.file.data, text));
	maker_deinit(m);
}

static void user_stack_head(struct maker *m)
{
	maker_init(m, 8, false, 4096);
	m->header = name_user_code;
	maker_head(m);
	maker_format(m, "ftrace", "user_stack", 6,
		     "\tfield:unsigned int tgid;\toffset:8;\tsize:4;\tsigned:0;\n"
		     "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n",
		     "\"%ps\", (void *)REC->caller[0]");
}

/* The same as seq_print_user_ip() of kernel/trace/trace_output.c, by the recorded mappings. */
static void code_of_programs_is_placed(void **state _unused_)
{
	static const uint64_t stack[] = { 0x7f0000001010, 0x550000000020, 0x10,
					  0x7ffe00000800, 0x7f0000009000, 0 };
	static const struct mapped before[] = { { 0x7f0000001000, "/usr/lib/older.so" } };
	static const struct mapped after[] = { { 0x550000000000, "/tmp/new\nline" },
					       { 0x7f0000001000, "/usr/lib/libc.so.6" },
					       { 0x7ffe00000000, "[vdso]" } };
	struct maker m;

	user_stack_head(&m);
	put_mappings(&m, before, ARRAY_SIZE(before), false);
	put_mappings(&m, after, ARRAY_SIZE(after), false);
	check_user_stack(&m, stack,
			 ": <user stack trace>\n"
			 " => /usr/lib/libc.so.6[+0x10]\n"
			 " => /tmp/new\\012line[+0x20]\n"
			 " =>  <0000000000000010>\n"
			 " =>  <00007ffe00000800>\n"
			 " =>  <00007f0000009000>\n");
}

/* The kernel calls find_vma() and overlooks that an address may lie before what it finds. */
static void no_code_is_placed_as_the_kernel_does(void **state _unused_)
{
	static const uint64_t stack[] = { 0x10,		  0x550000001010, 0x550000002010,
					  0x7f0000009000, 0x7ffe00009000, 0 };
	static const struct mapped before[] = { { 0x550000002000, "/usr/lib/gone.so" },
						{ 0x7fff00000000, "/usr/lib/gone.so" } };
	static const struct mapped after[] = { { 0x550000000000, "/usr/bin/cat" },
					       { 0x550000001000, "" },
					       { 0x7f0000001000, "/usr/lib/libc.so.6" },
					       { 0x7ffe00000000, "[stack]" } };
	struct maker m;

	user_stack_head(&m);
	put_mappings(&m, before, ARRAY_SIZE(before), true);
	put_mappings(&m, after, ARRAY_SIZE(after), true);
	check_user_stack(&m, stack,
			 ": <user stack trace>\n"
			 " => /usr/bin/cat[+0xffffab0000000010]\n"
			 " =>  <0000550000001010>\n"
			 " => /usr/lib/gone.so[+0x10]\n"
			 " =>  <00007f0000009000>\n"
			 " =>  <00007ffe00009000>\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_of_programs_is_placed),
		cmocka_unit_test(no_code_is_placed_as_the_kernel_does),
		cmocka_unit_test(rings_may_differ_in_their_sub_buffers),
		cmocka_unit_test(an_early_end_gives_the_name),
		cmocka_unit_test(text_is_the_kernels),
		cmocka_unit_test(recorded_text_is_the_kernels),
		cmocka_unit_test(tgid_column),
		cmocka_unit_test(bytes_read_before_are_skipped),
		cmocka_unit_test(names_are_searched_where_no_source_tells),
		cmocka_unit_test(older_kernels_have_other_columns),
		cmocka_unit_test(heads_of_tracers_name_fewer_columns),
		cmocka_unit_test(patches_for_rt_bring_columns),
		cmocka_unit_test(legend_of_patches_for_rt),
		cmocka_unit_test(legend_of_older_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
