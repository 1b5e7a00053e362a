/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every format of a whole kernel: all compile, and no record, however extreme, is read beyond its
 * end.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <traceevent/event-parse.h>

#include "fixture.h"
#include "print/event_table.h"
#include "random_series.h"

#define KERNEL "6.18.44"
#define EVENTS 2323

static uint64_t random_state = RANDOM_FIRST;

static uint64_t random_u64(void)
{
	return random_next(&random_state);
}

static void add_format(void *userdata, const char *system, const char *text, size_t len)
{
	assert_int_equal(event_table_add(userdata, system, text, len, NULL), 0);
}

/* Without a kernel's constants its enumerators keep their names. */
static struct event_table *make_table(const char *kernel, unsigned word_size, bool big_endian)
{
	const struct event_table_env env = { .word_size = word_size, .big_endian = big_endian };
	_cleanup_buf_ struct buf constants = BUF_INIT;
	struct event_table *t;
	char path[512];

	assert_int_equal(event_table_new(&t, &env), 0);
	fixture_each_format(kernel, add_format, t);
	snprintf(path, sizeof(path), TEST_DATA "/%s/constants.txt", kernel);
	if (access(path, R_OK) == 0) {
		fixture_read_gz(path, &constants);
		assert_int_equal(event_table_add_enums(t, constants.data, constants.len), 0);
	}
	assert_int_equal(event_table_seal(t, NULL), 0);
	return t;
}

static void test_all_compile(void **state)
{
	const struct event_table *t = *state;
	size_t count, len, unknown = 0;
	const struct event *const *all = event_table_all(t, &count);

	assert_int_equal(count, EVENTS);
	for (size_t i = 0; i < count; i++) {
		if (!all[i]->program)
			fail_msg("%s:%s: %s", all[i]->system, all[i]->name, all[i]->why_fallback);
		/* Only the clock at the time of reading is unknown here. */
		if (fixture_prints_unknown(all[i])) {
			const char *text = event_format_text(all[i], &len);

			assert_non_null(memmem(text, len, "jiffies", 7));
			unknown++;
		}
	}
	assert_int_equal(unknown, 3);
	assert_int_equal(event_table_common(t)->pid_offset, 4);
	assert_int_equal(event_table_common(t)->size, 8);
}

/* Locations that lie in the record, as a kernel writes them, reach most of the code. */
static void make_sane(const struct event_table *t, const struct event *ev, uint8_t *data,
		      uint32_t len)
{
	(void)t;
	for (size_t i = 0; i < ev->field_count; i++) {
		const struct field *f = &ev->fields[i];
		uint32_t loc, room, base = f->is_relative ? f->offset + f->size : 0;

		if ((!f->is_dynamic && !f->is_relative) || f->offset + 4 > len || len <= base)
			continue;
		loc = (uint32_t)(random_u64() % (len - base));
		room = len - base - loc;
		loc |= (uint32_t)(random_u64() % (room + 1)) << 16;
		memcpy(data + f->offset, &loc, 4);
	}
}

/* Each record has memory of exactly its size: a sanitizer sees the first byte read beyond it. */
static void print_random(const struct event_table *t, unsigned rounds)
{
	size_t count;
	const struct event *const *all = event_table_all(t, &count);
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct printer *p;

	assert_int_equal(printer_new(&p, t), 0);
	for (size_t i = 0; i < count; i++)
		for (unsigned round = 0; round < rounds; round++) {
			uint32_t len = (uint32_t)(random_u64() % (round % 3 ? 400 : 40));
			_cleanup_free_ uint8_t *data = malloc(len ? len : 1);
			const struct record rec = { .ts = random_u64(), .data = data, .len = len };
			int r;

			for (uint32_t j = 0; j < len; j++)
				data[j] = (uint8_t)(random_u64() & (round % 2 ? 0xff : 0x03));
			if (round % 4 == 1 && !event_table_common(t)->size)
				continue;
			if (round % 2)
				make_sane(t, all[i], data, len);
			buf_clear(&out);
			r = event_print(p, all[i], &rec, &out);
			assert_true(r == 0 || r == -EBADMSG);
			assert_true(out.len > 0 && out.len < 200000);
		}
	printer_free(p);
}

static void test_random_records(void **state)
{
	print_random(*state, 60);
}

static void test_other_machines(void **state)
{
	static const struct {
		unsigned word_size;
		bool big_endian;
	} machines[] = { { 4, false }, { 8, true }, { 4, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		struct event_table *t =
			make_table(KERNEL, machines[i].word_size, machines[i].big_endian);

		print_random(t, 8);
		event_table_free(t);
	}
}

static void test_other_kernels(void **state)
{
	unsigned kernels = 0;
	struct dirent *e;
	DIR *dir = opendir(TEST_DATA);

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		const struct event *const *all;
		struct event_table *t;
		size_t count, fallbacks = 0;
		char path[512];

		snprintf(path, sizeof(path), TEST_DATA "/%s/formats.txt.gz", e->d_name);
		if (!strcmp(e->d_name, KERNEL) || access(path, R_OK) < 0)
			continue;
		t = make_table(e->d_name, 8, false);
		all = event_table_all(t, &count);
		assert_true(count > 2000);
		for (size_t i = 0; i < count; i++)
			/* User space cannot know what the kernel's own functions return. */
			if (!all[i]->program && strncmp(all[i]->why_fallback, "calls ", 6) != 0)
				fail_msg("%s: %s:%s: %s", e->d_name, all[i]->system, all[i]->name,
					 all[i]->why_fallback);
			else
				fallbacks += !all[i]->program;
		assert_in_range(fallbacks, 0, 12);
		print_random(t, 8);
		event_table_free(t);
		kernels++;
	}
	closedir(dir);
	assert_true(kernels >= 3);
}

/* Without spaces in an array's length: the library drops some of them. */
static void describe_type(const char *type, struct buf *out)
{
	bool in_length = false;

	for (; *type; type++) {
		in_length |= *type == '[';
		if (!in_length || *type != ' ')
			buf_append(out, type, 1);
	}
}

static void describe(const struct field *f, struct buf *out)
{
	describe_type(f->type, out);
	buf_printf(out, "|%s|%u+%u|%s%s%s%s%s%s|%u\n", f->name, f->offset, f->size,
		   f->is_signed ? "s" : "", f->is_array ? "a" : "", f->is_string ? "c" : "",
		   f->is_pointer ? "p" : "", f->is_dynamic ? "d" : "", f->is_relative ? "r" : "",
		   f->is_dynamic || (f->is_array && !f->size) ? 0 : f->element_size);
}

/*
 * Kernels before 5.13 print an array's length as it is in the source: "char func[30+1]". The
 * library reads no such length. Its fixtures have arrays of char and int.
 */
static bool has_length_of_source(const char *type)
{
	const char *length = strchr(type, '[');

	return length && length[1 + strspn(length + 1, "0123456789")] != ']';
}

/* The library does not know the properties of its type that we ask for. */
static void describe_by_library(const struct tep_format_field *f, struct buf *out)
{
	bool is_dynamic = f->flags & TEP_FIELD_IS_DYNAMIC;
	bool is_array = (f->flags & TEP_FIELD_IS_ARRAY) && !is_dynamic;

	describe_type(f->type, out);
	buf_printf(out, "|%s|%d+%d|%s%s%s%s%s%s|%u\n", f->name, f->offset, f->size,
		   f->flags & TEP_FIELD_IS_SIGNED ? "s" : "", is_array ? "a" : "",
		   f->flags & TEP_FIELD_IS_STRING ? "c" : "",
		   f->flags & TEP_FIELD_IS_POINTER ? "p" : "", is_dynamic ? "d" : "",
		   f->flags & TEP_FIELD_IS_RELATIVE ? "r" : "",
		   is_dynamic || (is_array && !f->size) ? 0
		   : is_array && has_length_of_source(f->type)
			   ? (f->flags & TEP_FIELD_IS_STRING ? 1U : 4U)
		   /* Ours goes by the type: these kernels are read with both sizes of it. */
		   : is_array && strstr(f->type, "long[")
			   ? (unsigned)tep_get_long_size(f->event->tep)
		   : is_array ? f->elementsize
			      : (unsigned)f->size);
}

struct comparison {
	const struct event_table *ours;
	struct tep_handle *theirs;
	unsigned events, fields;
};

static void compare_fields(void *userdata, const char *system, const char *text, size_t len)
{
	_cleanup_buf_ struct buf ours = BUF_INIT, theirs = BUF_INIT, head = BUF_INIT;
	struct comparison *c = userdata;
	const char *id = memmem(text, len, "\nID:", 4),
		   *print = memmem(text, len, "\nprint fmt:", 11);
	const struct event *ev = event_table_find(c->ours, (uint16_t)atoi(id + 4));
	const struct tep_event *parsed;

	/* Without the print fmt: the library does not accept all of them. */
	buf_append(&head, text, (size_t)(print - text));
	buf_puts(&head, "\nprint fmt: \"\"\n");
	tep_parse_event(c->theirs, head.data, head.len, system);
	parsed = tep_find_event(c->theirs, ev->id);
	assert_non_null(parsed);
	assert_string_equal(ev->name, parsed->name);
	assert_string_equal(ev->system, system);
	for (size_t i = 0; i < ev->common_count; i++)
		describe(&ev->common[i], &ours);
	for (size_t i = 0; i < ev->field_count; i++)
		describe(&ev->fields[i], &ours);
	for (const struct tep_format_field *f = parsed->format.common_fields; f; f = f->next)
		describe_by_library(f, &theirs);
	for (const struct tep_format_field *f = parsed->format.fields; f; f = f->next)
		describe_by_library(f, &theirs);
	assert_string_equal(buf_string(&ours), buf_string(&theirs));
	c->fields += (unsigned)(ev->common_count + ev->field_count);
	c->events++;
}

static void test_fields_as_libtraceevent_reads_them(void **state)
{
	struct dirent *e;
	DIR *dir = opendir(TEST_DATA);
	unsigned kernels = 0;

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		for (unsigned word_size = 4; word_size <= 8; word_size += 4) {
			struct comparison c = { 0 };
			char path[512];

			snprintf(path, sizeof(path), TEST_DATA "/%s/formats.txt.gz", e->d_name);
			if (access(path, R_OK) < 0)
				continue;
			c.ours = make_table(e->d_name, word_size, false);
			c.theirs = tep_alloc();
			assert_non_null(c.theirs);
			tep_set_loglevel(TEP_LOG_NONE);
			tep_set_long_size(c.theirs, (int)word_size);
			fixture_each_format(e->d_name, compare_fields, &c);
			assert_true(c.events > 2000 && c.fields > 8 * c.events);
			tep_free(c.theirs);
			event_table_free((struct event_table *)(uintptr_t)c.ours);
			kernels++;
		}
	}
	closedir(dir);
	assert_true(kernels >= 8);
}

/* Damaged formats: truncated anywhere, one byte changed anywhere. */
#define COMMON                                                                                     \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

/* A user event's counts are what was in memory, and may divide the size. */
static void test_counts(void **state _unused_)
{
	static const char text[] =
		"name: x\nID: 7\nformat:\n" COMMON
		"\tfield:u8 bytes[2];\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:unsigned int words[4];\toffset:16;\tsize:16;\tsigned:0;\n"
		"\tfield:const char * names[2];\toffset:32;\tsize:16;\tsigned:0;\n"
		"\tfield:struct pair pairs[2];\toffset:48;\tsize:24;\tsigned:0;\n"
		"\tfield:__rel_loc char text[2];\toffset:72;\tsize:4;\tsigned:0;\n"
		"\nprint fmt: \"\"\n";
	static const uint32_t sizes[] = { 1, 4, 8, 12, 1 };
	const struct event_table_env env = { .word_size = 8 };
	const struct event *ev;
	struct event_table *t;

	assert_int_equal(event_table_new(&t, &env), 0);
	assert_int_equal(event_table_add(t, "x", text, strlen(text), NULL), 0);
	ev = event_table_find(t, 7);
	assert_int_equal(ev->field_count, ARRAY_SIZE(sizes));
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(ev->fields[i].element_size, sizes[i]);
	event_table_free(t);
}

static void test_attributes(void **state)
{
	static const char text[] =
		"name: x\nID: 7\nformat:\n" COMMON
		"\tfield:const char __attribute__((btf_type_tag(\"user\"))) * file;\toffset:8;"
		"\tsize:8;\tsigned:0;\n\nprint fmt: \"%s\", REC->file\n";
	const struct event_table_env env = { .word_size = 8 };
	const struct event *ev;
	struct event_table *t;

	(void)state;
	assert_int_equal(event_table_new(&t, &env), 0);
	assert_int_equal(event_table_add(t, "x", text, strlen(text), NULL), 0);
	ev = event_table_find(t, 7);
	assert_int_equal(ev->field_count, 1);
	assert_string_equal(ev->fields[0].type, "const char *");
	assert_string_equal(ev->fields[0].name, "file");
	assert_true(ev->fields[0].is_pointer);
	event_table_free(t);
}

/* Properties that libtraceevent does not report, or reports wrongly. */
static void test_elements(void **state)
{
	static const struct {
		const char *declaration;
		unsigned size, element4, element8;
	} fields[] = {
		{ "__data_loc unsigned long[] x", 4, 4, 8 },
		{ "__rel_loc char[] x", 4, 1, 1 },
		{ "unsigned long x[]", 0, 4, 8 },
		{ "u32 x[0x10]", 64, 4, 4 },
		{ "u32 x[020]", 64, 4, 4 },
		{ "u32 x[16U]", 64, 4, 4 },
		{ "__u8 x[sizeof(struct sockaddr_in6)]", 28, 1, 1 },
		{ "u32 x[MAX + 1]", 64, 4, 4 },
		{ "u32 x[2 * 8]", 64, 4, 4 },
		{ "char x[TASK_COMM_LEN]", 16, 1, 1 },
		/* A user event's, with whatever was in memory. */
		{ "char x[1819047278]", 4, 1, 1 },
		{ "__rel_loc char x[1819047278]", 4, 1, 1 },
		{ "u16 x", 2, 2, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		for (unsigned word_size = 4; word_size <= 8; word_size += 4) {
			const struct event_table_env env = { .word_size = word_size };
			struct event_table *t;
			char text[512];

			snprintf(text, sizeof(text),
				 "name: x\nID: 7\nformat:\n" COMMON
				 "\tfield:%s;\toffset:8;\tsize:%u;\tsigned:0;\n\nprint fmt: \"\"\n",
				 fields[i].declaration, fields[i].size);
			assert_int_equal(event_table_new(&t, &env), 0);
			assert_int_equal(event_table_add(t, "x", text, strlen(text), NULL), 0);
			assert_int_equal(event_table_find(t, 7)->fields[0].element_size,
					 word_size == 4 ? fields[i].element4 : fields[i].element8);
			event_table_free(t);
		}
}

static void test_refused_formats(void **state)
{
	static const char *const damaged[] = {
		"",
		"garbage",
		"name: x\nformat:\n",
		"name: x\nID: 7\nformat:\n" COMMON
		"\tfield:__attribute__((user))int x;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: "
		"\"\"\n",
		"name: x\nID: 7\nformat:\n" COMMON
		"\tfield:char comm[\0036];\toffset:8;\tsize:16;\tsigned:0;\n\nprint fmt: \"\"\n",
		"name: x\nID: 7\nformat:\n" COMMON
		"\tfield:int a;\toffset:4294967290;\tsize:8;\tsigned:1;\n\nprint fmt: \"%d\", "
		"REC->a\n",
		"name: x\nID: 7\nformat:\n" COMMON
		"\tfield:int a;\toffset:8;\tsize:99999999;\tsigned:1;\n\nprint fmt: \"%d\", "
		"REC->a\n",
	};
	const struct event_table_env env = { .word_size = 8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct event_table *t;

		assert_int_equal(event_table_new(&t, &env), 0);
		assert_int_equal(event_table_add(t, "x", damaged[i], strlen(damaged[i]), &err),
				 -EBADMSG);
		assert_non_null(err.message);
		event_table_free(t);
	}
}

#define X_AND_Y COMMON "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n\n"

/*
 * The compiler refuses formats that need more than any line has; the event is printed field by
 * field.
 */
static void expect_modest(const char *print_fmt)
{
	const struct event_table_env env = { .word_size = 8 };
	_cleanup_buf_ struct buf text = BUF_INIT, out = BUF_INIT;
	uint8_t data[12] = { 7 };
	struct record rec = { .data = data, .len = sizeof(data) };
	struct event_table *t;
	struct printer *p;

	buf_printf(&text, "name: x\nID: 7\nformat:\n" X_AND_Y "print fmt: %s\n", print_fmt);
	assert_int_equal(event_table_new(&t, &env), 0);
	assert_int_equal(event_table_add(t, "s", text.data, text.len, NULL), 0);
	assert_int_equal(event_table_seal(t, NULL), 0);
	assert_non_null(event_table_find(t, 7)->why_fallback);
	assert_int_equal(printer_new(&p, t), 0);
	event_print(p, event_table_find(t, 7), &rec, &out);
	assert_true(out.len < 1 << 16);
	printer_free(p);
	event_table_free(t);
}

static void repeat(struct buf *out, const char *text, unsigned times)
{
	while (times--)
		buf_puts(out, text);
}

static void test_immodest_formats(void **state)
{
	static const struct {
		const char *before, *again, *between, *again2, *after;
		unsigned times;
	} formats[] = {
		{ "\"", "%99999d", "\"", ",1", "", 42940 },	/* a line of more than 4 GiB */
		{ "\"", "%9999d", "\"", ",1", "", 4000 },	/* of 32 MiB */
		{ "\"%d\", ", "REC->x+", "1", "", "", 200000 }, /* deeply nested on the left */
		{ "\"%d\", ", "REC->x+", "1", "", "", 5000 },
		{ "\"%d\", ", "1?1:", "1", "", "", 400000 }, /* deeply nested on the right */
		{ "\"%d\", ", "1?1:", "1", "", "", 10000 },
		{ "\"%d %s\", REC->x, __print_nothing(", "!", "1", "", ")", 60000 },
	};
	_cleanup_buf_ struct buf shared = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		buf_puts(&b, formats[i].before);
		repeat(&b, formats[i].again, formats[i].times);
		buf_puts(&b, formats[i].between);
		repeat(&b, formats[i].again2, formats[i].times);
		buf_puts(&b, formats[i].after);
		expect_modest(buf_string(&b));
	}
	/*
	 * Each name expands to four times the name before it: 4^14 nodes in less than a kilobyte.
	 */
	buf_puts(&shared, "\"%d\", ({ int a0 = REC->x; ");
	for (int i = 1; i < 15; i++)
		buf_printf(&shared, "int a%d = a%d+a%d+a%d+a%d; ", i, i - 1, i - 1, i - 1, i - 1);
	buf_puts(&shared, "a14; })");
	expect_modest(buf_string(&shared));
}

/* A number of three or eighteen bytes must not be loaded as one of eight. */
static void test_odd_sizes(void **state)
{
	static const struct {
		const char *system, *text;
	} odd[] = {
		{ "syscalls", "name: sys_exit_x\nID: 7\nformat:\n" COMMON
			      "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
			      "\tfield:long ret;\toffset:12;\tsize:3;\tsigned:1;\n\n"
			      "print fmt: \"0x%lx\", REC->ret\n" },
		{ "syscalls", "name: sys_enter_x\nID: 7\nformat:\n" COMMON
			      "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
			      "\tfield:long a;\toffset:12;\tsize:3;\tsigned:1;\n\n"
			      "print fmt: \"a: 0x%08lx\", ((unsigned long)(REC->a))\n" },
		{ "kprobes", "name: p\nID: 7\nformat:\n" COMMON
			     "\tfield:unsigned long __probe_ip;\toffset:12;\tsize:3;\tsigned:0;\n\n"
			     "print fmt: \"(%lx)\", REC->__probe_ip\n" },
	};
	const struct event_table_env env = { .word_size = 8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		/* On the heap, exactly as long as its fields: a sanitizer sees each byte beyond. */
		_cleanup_free_ uint8_t *data = calloc(1, 15);
		_cleanup_buf_ struct buf out = BUF_INIT;
		struct record rec = { .data = data, .len = 15 };
		struct event_table *t;
		struct printer *p;

		data[0] = 7;
		assert_int_equal(event_table_new(&t, &env), 0);
		assert_int_equal(
			event_table_add(t, odd[i].system, odd[i].text, strlen(odd[i].text), NULL),
			0);
		assert_int_equal(event_table_seal(t, NULL), 0);
		assert_int_equal(printer_new(&p, t), 0);
		assert_non_null(event_table_find(t, 7)->why_fallback);
		event_print(p, event_table_find(t, 7), &rec, &out);
		printer_free(p);
		event_table_free(t);
	}
}

static void test_damaged_formats(void **state)
{
	const struct event_table_env env = { .word_size = 8 };
	_cleanup_buf_ struct buf formats = BUF_INIT;

	(void)state;
	fixture_read_gz(TEST_DATA "/" KERNEL "/formats.txt.gz", &formats);
	for (unsigned round = 0; round < 400; round++) {
		size_t at = (size_t)random_u64() % (formats.len - 6000);
		size_t len = 200 + (size_t)random_u64() % 5000;
		char *start = strstr(formats.data + at, "\n## ");
		_cleanup_free_ char *copy = NULL;
		struct event_table *t;

		if (!start)
			continue;
		start = strchr(start + 1, '\n') + 1;
		len = MIN(len, formats.len - (size_t)(start - formats.data));
		copy = malloc(len);
		memcpy(copy, start, len);
		for (int i = 0; i < 3; i++)
			copy[random_u64() % len] = (char)(random_u64() % 96 + 32);
		assert_int_equal(event_table_new(&t, &env), 0);
		event_table_add(t, "x", copy, len, NULL);
		assert_int_equal(event_table_seal(t, NULL), 0);
		print_random(t, 2);
		event_table_free(t);
	}
}

static int set_up(void **state)
{
	*state = make_table(KERNEL, 8, false);
	return 0;
}

static int tear_down(void **state)
{
	event_table_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_compile),
		cmocka_unit_test(test_random_records),
		cmocka_unit_test(test_other_kernels),
		cmocka_unit_test(test_other_machines),
		cmocka_unit_test(test_refused_formats),
		cmocka_unit_test(test_odd_sizes),
		cmocka_unit_test(test_immodest_formats),
		cmocka_unit_test(test_damaged_formats),
		cmocka_unit_test(test_fields_as_libtraceevent_reads_them),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_elements),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
