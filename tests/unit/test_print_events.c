/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events that the kernel prints by functions of its own: system calls, probes, its own events. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "make_table.h"

static void check_event(const char *system, const char *name, const char *fields,
			const char *print_fmt, const uint8_t *data, uint32_t len, uint32_t kernel,
			const char *expected)
{
	struct event_table_env env = native;
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct event_table *t;

	env.kernel = kernel;
	t = make_table(system, name, fields, print_fmt, &env);
	assert_int_equal(table_print(t, data, len, &out), 0);
	assert_string_equal(buf_string(&out), expected);
	event_table_free(t);
}

static void test_syscalls(void **state)
{
	static const char enter[] = FIELD("int", "__syscall_nr", 8, 4, 1)
		FIELD("unsigned int", "fd", 16, 8, 0) FIELD("size_t", "count", 24, 8, 0);
	static const char format[] = "\"fd: 0x%08lx, count: 0x%08lx\", ((unsigned long)(REC->fd)), "
				     "((unsigned long)(REC->count))";
	static const uint8_t data[32] = { [16] = 3, [24] = 0xff, 0x0f };

	(void)state;
	check_event("syscalls", "sys_enter_read", enter, format, data, 32, 0,
		    "sys_read(fd: 3, count: 0xfff)");
	check_event("syscalls", "sys_enter_read", enter, format, data, 32, 6 << 16 | 1,
		    "sys_read(fd: 3, count: fff)");
	check_event("syscalls", "sys_exit_read",
		    FIELD("int", "__syscall_nr", 8, 4, 1) FIELD("long", "ret", 16, 8, 1),
		    "\"0x%lx\", REC->ret", (const uint8_t[24]){ [16] = 0xf5, [17 ... 23] = 0xff },
		    24, 0, "sys_read -> 0xfffffffffffffff5");
}

static void test_syscall_memory(void **state)
{
	static const char fields[] = FIELD("int", "__syscall_nr", 8, 4, 1)
		FIELD("const char *", "buf", 16, 8, 0) FIELD("size_t", "count", 24, 8, 0)
			FIELD("__data_loc char[]", "__buf_val", 32, 4, 0);
	static const char bytes[] = "\"buf: 0x%08lx (%s), count: 0x%08lx\", REC->buf, "
				    "__print_dynamic_array(__buf_val, 1), REC->count";
	static const char string[] = "\"buf: 0x%08lx \\\"%s\\\", count: 0x%08lx\", REC->buf, "
				     "__get_str(__buf_val), REC->count";
	static const uint8_t cut[40] = { [16] = 0x10, [24] = 9, [32] = 36, 0,	 4,
					 0,	      'a',	'\n',	   0xe9, '\"' };
	static const uint8_t whole[40] = { [16] = 0x10, [24] = 1, [32] = 36, 0, 1, 0, '0', 'x' };
	static const uint8_t binary[40] = { [16] = 0x10, [24] = 2, [32] = 36, 0, 2, 0, 1, 0x7f };
	static const uint8_t binary_cut[40] = {
		[16] = 0x10, [24] = 3, [32] = 36, 0, 2, 0, 1, 0x80
	};
	static const uint8_t text[40] = {
		[16] = 0x10, [24] = 9, [32] = 36, 0, 4, 0, 'a', 'b', 'c'
	};
	/*
	 * Unreadable user memory has length zero, and its location is where the next text begins.
	 */
	static const uint8_t fault[40] = { [16] = 0x10, [32] = 36, [36] = 'a', 'b', 'c' };

	(void)state;
	check_event("syscalls", "sys_enter_open", fields, string, text, 40, 0,
		    "sys_open(buf: 0x10 \"abc\", count: 9)");
	check_event("syscalls", "sys_enter_open", fields, string, fault, 40, 0,
		    "sys_open(buf: 0x10 \"\", count: 0)");
	check_event("syscalls", "sys_enter_write", fields, bytes, cut, 40, 0,
		    "sys_write(buf: 0x10 (61:0a:e9:22, ...) \"a..\"\"..., count: 9)");
	check_event("syscalls", "sys_enter_write", fields, bytes, whole, 40, 0,
		    "sys_write(buf: 0x10 (30) \"0\", count: 1)");
	check_event("syscalls", "sys_enter_write", fields, bytes, binary, 40, 0,
		    "sys_write(buf: 0x10 (01:7f), count: 2)");
	check_event("syscalls", "sys_enter_write", fields, bytes, binary_cut, 40, 0,
		    "sys_write(buf: 0x10 (01:80, ...), count: 3)");
}

static void test_syscall_openat(void **state)
{
	static const char fields[] = FIELD("int", "__syscall_nr", 8, 4, 1)
		FIELD("int", "dfd", 16, 8, 0) FIELD("const char *", "filename", 24, 8, 0)
			FIELD("int", "flags", 32, 8, 0) FIELD("umode_t", "mode", 40, 8, 0)
				FIELD("__data_loc char[]", "__filename_val", 48, 4, 0);
	static const char format[] =
		"\"dfd: 0x%08lx, filename: 0x%08lx \\\"%s\\\", flags: %s%s, mode: 0%03o\", "
		"((unsigned long)(REC->dfd)), ((unsigned long)(REC->filename)), "
		"__get_str(__filename_val), "
		"(REC->flags & ~3) && !(REC->flags & 3) ? \"O_RDONLY|\" : \"\",  "
		"REC->flags ? __print_flags(REC->flags, \"|\", { 0x1, \"O_WRONLY\" }, "
		"{ 0x2, \"O_RDWR\" }, { 0x40, \"O_CREAT\" }, { 0x200, \"O_TRUNC\" }, "
		"{ 0x10000, \"O_DIRECTORY\" }, { 0x80000, \"O_CLOEXEC\" }) : \"O_RDONLY\",  "
		"((unsigned long)(REC->mode))";
	static const struct {
		uint64_t flags;
		const char *text;
	} cases[] = {
		{ 0, "O_RDONLY" },
		{ 1, "O_WRONLY" },
		{ 0x80000, "O_RDONLY|O_CLOEXEC" },
		{ 0x80241, "O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, mode: 0644" },
		{ 0x10000, "O_RDONLY|O_DIRECTORY, mode: 0644" },
		{ 0x410002, "O_TMPFILE|O_RDWR, mode: 0644" },
		{ 0x20000003, "O_WRONLY|O_RDWR|0x20000000" },
		/* The kernel takes the flags as an int. */
		{ 0x80000001, "O_WRONLY|0xffffffff80000000" },
		{ 0x100000000, "O_RDONLY" },
	};
	uint8_t data[56] = { [16] = 0x9c, 0xff, 0xff, 0xff, [24] = 16, [40] = 0xa4, 1,
			     [48] = 52,	  0,	3,    0,    '/',       'x' };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char expected[256];

		memcpy(data + 32, &cases[i].flags, 8);
		snprintf(expected, sizeof(expected),
			 "sys_openat(dfd: 4294967196, filename: 16 \"/x\", flags: %s)",
			 cases[i].text);
		check_event("syscalls", "sys_enter_openat", fields, format, data, 56, 0, expected);
	}
}

/* One event of a damaged stream must not stop the other events. */
static void test_syscall_odd_flags(void **state)
{
	static const char fields[] = FIELD("int", "__syscall_nr", 8, 4, 1)
		FIELD("int", "flags", 16, 3, 0) FIELD("umode_t", "mode", 24, 8, 0)
			FIELD("__data_loc char[]", "__filename_val", 32, 4, 0);
	struct event_table *t = make_table(
		"syscalls", "sys_enter_openat", fields,
		"\"%s\", REC->mode ? __print_flags(REC->mode, \"|\", { 1, \"O_WRONLY\" }) : "
		"\"O_RDONLY\"",
		&native);
	const struct event *ev = event_table_find_name(t, "syscalls", "sys_enter_openat");

	(void)state;
	assert_non_null(ev);
	assert_string_equal(ev->why_fallback, "flags that are not a number");
	event_table_free(t);
}

static void test_dynamic_events(void **state)
{
	static const uint8_t data[32] = { [8] = 0x10, 0x10, 0x00, 0x81, 0xff, 0xff,
					  0xff,	      0xff, 0x04, 0x10, 0x00, 0x81,
					  0xff,	      0xff, 0xff, 0xff, 42 };
	static const uint8_t user[16] = { [8] = 0x00, 0x10, 0x40 };
	static const uint8_t run[280] = { [8] = 7, [16] = 's', 'h', [272] = 3 };
	static const char text_field[] = FIELD("__rel_loc char[]", "name", 8, 4, 0),
			  text_format[] = "\"name=%s\", __get_rel_str(name)";
	static const uint8_t umlaut[24] = { [8] = 2, 0, 4, 0, [14] = 0xc3, 0xa4, '\n', 0 },
			     plain[24] = { [8] = 0, 0, 4, 0, '"', 'a', '"', 0 };
	static const uint8_t mark[40] = { [8] = 'B', [12] = 0xff, 0xff, 0xff, 0xff, [17] = 1,
					  [30] = 5,  [32] = 'w',  'o',	'r',  'k' };

	(void)state;
	check_event("kprobes", "p",
		    FIELD("unsigned long", "__probe_ip", 8, 8, 0) FIELD("u8", "arg1", 24, 1, 0),
		    "\"(%lx) arg1=%u\", REC->__probe_ip, REC->arg1", data, 32, 0,
		    "p: (func+0x10/0x1000) arg1=42");
	check_event("kprobes", "r",
		    FIELD("unsigned long", "__probe_func", 8, 8, 0)
			    FIELD("unsigned long", "__probe_ret_ip", 16, 8, 0),
		    "\"(%lx <- %lx)\", REC->__probe_func, REC->__probe_ret_ip", data, 32, 0,
		    "r: (func+0x4/0x1000 <- func)");
	check_event("uprobes", "u", FIELD("unsigned long", "__probe_ip", 8, 8, 0),
		    "\"(%lx)\", REC->__probe_ip", user, 16, 0, "u: (0x401000)");
	check_event("synthetic", "lat", FIELD("u64", "a", 8, 8, 0) FIELD("u8", "b", 24, 1, 0),
		    "\"a=%llx, b=%u\", REC->a, REC->b", data, 32, 0,
		    "lat: a=ffffffff81001010 b=42");
	/* Linux 7: separated by a blank, and texts as arrays without a length. */
	check_event("synthetic", "lat", FIELD("u64", "a", 8, 8, 0) FIELD("u8", "b", 24, 1, 0),
		    "\"a=%llx b=%u\", REC->a, REC->b", data, 32, 0, "lat: a=ffffffff81001010 b=42");
	check_event("synthetic", "run",
		    FIELD("pid_t", "pid", 8, 4, 1) FIELD("char", "comm[]", 16, 16, 1)
			    FIELD("u64", "lat", 272, 8, 0),
		    "\"pid=%d comm=%s lat=%llu\", REC->pid, REC->comm, REC->lat", run, 280, 0,
		    "run: pid=7 comm=sh lat=3");
	/* Field by field, not by the print fmt. A text begins at 28 + 4. */
	check_event("user_events", "mark",
		    FIELD("char", "phase[77]", 8, 4, 0) FIELD("u32", "id", 12, 4, 0)
			    FIELD("u64", "duration", 16, 8, 0)
				    FIELD("__rel_loc char", "name[1819]", 28, 4, 0),
		    "\"phase=%s id=%u duration=%llu name=%s\", REC->phase, REC->id, "
		    "REC->duration, __get_rel_str(name)",
		    mark, 40, 0, "mark: phase=B id=0xffffffff (-1) duration=0x100 (256) name=work");
	check_event("user_events", "small",
		    FIELD("u16", "port", 8, 2, 0) FIELD("s16", "level", 10, 2, 1)
			    FIELD("u8", "flags", 12, 1, 0) FIELD("s8", "step", 13, 1, 1),
		    "\"port=%u level=%d flags=%u step=%d\", REC->port, REC->level, REC->flags, "
		    "REC->step",
		    (const uint8_t[16]){ [8] = 0x50, 0, 0xfe, 0xff, 0x81, 0xff }, 16, 0,
		    "small: port=0x50 (80) level=0xfffe (65534) flags=(129) step='\xff'(255)");
	check_event("user_events", "small", FIELD("char", "a", 8, 1, 0) FIELD("u8", "b", 9, 1, 0),
		    "\"a=%c b=%u\", REC->a, REC->b", (const uint8_t[16]){ [8] = 'x', 7 }, 16, 0,
		    "small: a='x'(120) b=(7)");
	check_event("user_events", "text", text_field, text_format, umlaut, 24, 6 << 16 | 18,
		    "text: name=\303\244\n");
	check_event("user_events", "text", text_field, text_format, umlaut, 24, 6 << 16 | 19,
		    "text: name=.... (c3:a4:0a:00)");
	check_event("user_events", "text", text_field, text_format, plain, 24, 6 << 16 | 19,
		    "text: name=\"a\"");
}

/* A damaged format: the field has less room than a string's place and length. */
static void test_small_location(void **state)
{
	static const uint8_t data[12] = { 0 };
	struct event_table_env env = native;
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct event_table *t;

	(void)state;
	env.kernel = 6 << 16 | 19;
	t = make_table("user_events", "text", FIELD("__rel_loc char[]", "name", 8, 1, 0),
		       "\"name=%s\", __get_rel_str(name)", &env);
	assert_int_equal(table_print(t, data, 9, &out), -EBADMSG);
	event_table_free(t);
}

static void test_builtins(void **state)
{
	static const uint8_t text[24] = { [8] = 0x00, 0x10, 0x00, 0x81, 0xff, 0xff,
					  0xff,	      0xff, 'h',  'i',	'\n', 0 };
	static const uint8_t stack[40] = {
		[8] = 2, [16] = 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, 0xff, 0xff,
		0xff,	 0xff,	      0xff, 0x7f, 0,	0,    0,    0,	  [32 ... 39] = 0xff
	};
	static const uint8_t raw[16] = { [8] = 0x2a, [12] = 1, 2, 0xff, 0 };
	static const uint8_t binary[40] = { [8] = 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, 0xff, 0xff,
					    0x10,	0x20, 0x30, 0x40, 0x50, 0xff, 0xff, 0xff };

	(void)state;
	check_event("ftrace", "print",
		    FIELD("unsigned long", "ip", 8, 8, 0) FIELD("char", "buf[]", 16, 0, 0),
		    "\"%ps: %s\", (void *)REC->ip, REC->buf", text, 24, 0, "func: hi");
	check_event("ftrace", "kernel_stack",
		    FIELD("int", "size", 8, 4, 1) FIELD("unsigned long", "caller[8]", 16, 64, 0),
		    "\"\"", stack, 40, 0, "<stack trace>\n => func\n => [FTRACE TRAMPOLINE]");
	check_event("ftrace", "raw_data",
		    FIELD("unsigned int", "id", 8, 4, 0) FIELD("char", "buf[]", 12, 0, 0),
		    "\"id:%04x %08x\", REC->id, (int)REC->buf[0]", raw, 16, 0,
		    "# 2a buf: 01 02 ff 00");
	check_event("ftrace", "bprint",
		    FIELD("unsigned long", "ip", 8, 8, 0) FIELD("const char *", "fmt", 16, 8, 0)
			    FIELD("u32", "buf[]", 24, 0, 0),
		    "\"%ps: %s\", (void *)REC->ip, REC->fmt", binary, 40, 0,
		    "func: kernel \"text\"");
	for (uint8_t context = 0; context < 3; context++) {
		static const char *const texts[] = {
			"#7     context    irq timer_latency      4660 ns",
			"#7     context thread timer_latency      4660 ns",
			"#7     context user-ret timer_latency      4660 ns",
		};
		const uint8_t sample[24] = { [8] = 7, [12] = context, [16] = 0x34, 0x12 };

		check_event("ftrace", "timerlat",
			    FIELD("unsigned int", "seqnum", 8, 4, 0)
				    FIELD("int", "context", 12, 4, 1)
					    FIELD("u64", "timer_latency", 16, 8, 0),
			    "\"\"", sample, 24, 0, texts[context]);
	}
	check_event("ftrace", "function",
		    FIELD("unsigned long", "ip", 8, 8, 0)
			    FIELD("unsigned long", "parent_ip", 16, 8, 0),
		    "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip", text, 16 + 8, 0,
		    "func <-0x000a6968");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_syscalls),       cmocka_unit_test(test_syscall_memory),
		cmocka_unit_test(test_syscall_openat), cmocka_unit_test(test_syscall_odd_flags),
		cmocka_unit_test(test_dynamic_events), cmocka_unit_test(test_small_location),
		cmocka_unit_test(test_builtins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
