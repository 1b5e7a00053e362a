/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples of a recording: the kernel's records, what was mapped where and when, both outputs. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/io.h"
#include "formats/formats.h"
#include "heap.h"
#include "make_stream.h"
#include "memory_file.h"
#include "samples/cpu_profile.h"
#include "samples/perf_record.h"
#include "samples/sample_reader.h"

/* Copied from <linux/perf_event.h>: the test uses the kernel's numbers, not the code's. */
enum { LOST = 2, COMM = 3, EXIT = 4, THROTTLE = 5, FORK = 7, SAMPLE = 9, MMAP2 = 10 };
enum { KERNEL = 1, USER = 2, EXEC = 1 << 13, BUILD_ID = 1 << 14 };
#define TYPE_PLAIN UINT64_C(0x187) /* IP, TID, TIME, CPU, PERIOD */
#define TYPE_STACKS (TYPE_PLAIN | 0x20)

static size_t record_begin(const struct maker *m, struct buf *b, uint32_t type, uint16_t misc)
{
	size_t at = b->len;

	maker_u32(m, b, type);
	maker_u16(m, b, misc);
	maker_u16(m, b, 0);
	return at;
}

static void record_end(const struct maker *m, struct buf *b, size_t at)
{
	struct buf size = BUF_INIT;

	maker_u16(m, &size, (uint16_t)(b->len - at));
	memcpy(b->data + at + 6, size.data, 2);
	buf_deinit(&size);
}

static void put_id(const struct maker *m, struct buf *b, uint64_t time, uint32_t pid, uint32_t tid,
		   uint32_t cpu)
{
	maker_u32(m, b, pid);
	maker_u32(m, b, tid);
	maker_u64(m, b, time);
	maker_u32(m, b, cpu);
	maker_u32(m, b, 0);
}

static void put_sample(const struct maker *m, struct buf *b, uint16_t misc, uint64_t time,
		       uint32_t pid, uint32_t cpu, uint64_t ip, const uint64_t *chain, size_t count)
{
	size_t at = record_begin(m, b, SAMPLE, misc);

	maker_u64(m, b, ip);
	put_id(m, b, time, pid, pid, cpu);
	maker_u64(m, b, 1003009);
	if (chain) {
		maker_u64(m, b, count);
		for (size_t i = 0; i < count; i++)
			maker_u64(m, b, chain[i]);
	}
	record_end(m, b, at);
}

static void put_map(const struct maker *m, struct buf *b, uint64_t time, uint32_t pid,
		    uint64_t start, uint64_t length, uint64_t offset, const char *path)
{
	size_t at = record_begin(m, b, MMAP2, USER | BUILD_ID);

	maker_u32(m, b, pid);
	maker_u32(m, b, pid);
	maker_u64(m, b, start);
	maker_u64(m, b, length);
	maker_u64(m, b, offset);
	buf_append(b, "\x04\0\0\0", 4);
	buf_append(b, "abcd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	maker_u64(m, b, 0);
	buf_puts(b, path);
	do
		buf_putc(b, '\0');
	while (b->len % 8);
	put_id(m, b, time, pid, pid, 0);
	record_end(m, b, at);
}

static void put_task(const struct maker *m, struct buf *b, uint32_t type, uint64_t time,
		     uint32_t pid, uint32_t parent)
{
	size_t at = record_begin(m, b, type, 0);

	maker_u32(m, b, pid);
	maker_u32(m, b, parent);
	maker_u32(m, b, pid);
	maker_u32(m, b, parent);
	maker_u64(m, b, time);
	put_id(m, b, time, pid, pid, 0);
	record_end(m, b, at);
}

static void put_numbers(const struct maker *m, struct buf *b, uint32_t type, uint16_t misc,
			uint64_t time, uint32_t pid, uint64_t first, uint64_t second)
{
	size_t at = record_begin(m, b, type, misc);

	maker_u64(m, b, first);
	maker_u64(m, b, second);
	put_id(m, b, time, pid, pid, 0);
	record_end(m, b, at);
}

#define BEGIN UINT64_C(5000000000)
#define CALL_OF UINT64_C(-128)
#define PROGRAM UINT64_C(-512)

/* CPU 0: a stack through kernel and program; a child that executes another program; losses. */
static void fill_first(const struct maker *m, struct buf *b)
{
	const uint64_t both[] = { CALL_OF, 0x1010, 0x1121, PROGRAM, 0x400010, 0x400021 };
	const uint64_t child[] = { PROGRAM, 0x400010 };
	const uint64_t other[] = { PROGRAM, 0x400010, 0x900000, 0 };

	put_sample(m, b, KERNEL, BEGIN + 1000, 70, 0, 0x1010, both, 6);
	put_task(m, b, FORK, BEGIN + 2000, 71, 70);
	put_sample(m, b, USER, BEGIN + 3000, 71, 0, 0x400010, child, 2);
	put_numbers(m, b, COMM, EXEC, BEGIN + 4000, 71, 71, 0);
	put_map(m, b, BEGIN + 4100, 71, 0x400000, 0x1000, 0x2000, "/bin/other");
	put_sample(m, b, USER, BEGIN + 5000, 71, 0, 0x400010, other, 4);
	put_numbers(m, b, LOST, 0, BEGIN + 6000, 0, 9, 3);
	put_numbers(m, b, THROTTLE, 0, BEGIN + 7000, 0, 0, 0);
	put_task(m, b, EXIT, BEGIN + 7500, 71, 70);
	put_sample(m, b, USER, BEGIN + 8000, 71, 0, 0x400010, child, 2);
}

static void write_samples(struct maker *m, uint32_t cpu, const struct buf *b)
{
	struct iovec iov = { b->data, b->len };

	assert_int_equal(stream_write_samples(&m->writer, cpu, &iov, 1), 0);
}

static void write_head(struct maker *m, uint64_t sample_type)
{
	Traced__Capture__Sampler sampler = TRACED__CAPTURE__SAMPLER__INIT;
	Traced__Capture__Mappings maps = TRACED__CAPTURE__MAPPINGS__INIT;
	Traced__Capture__ProcessMappings process = TRACED__CAPTURE__PROCESS_MAPPINGS__INIT;
	Traced__Capture__Mapping map = TRACED__CAPTURE__MAPPING__INIT;
	const struct maker_task tasks[] = { { 70, 70, "seventy", 0, false },
					    { 71, 71, "child", 0, false } };

	maker_head(m);
	maker_symbols(m, "0000000000001000 T kernel_leaf\n0000000000001100 t kernel_caller\t[mod]\n"
			 "0000000000001200 T end\n");
	maker_tasks(m, 1, 0, tasks, 2);
	sampler.event = (char *)"cpu-clock";
	sampler.hz = 997;
	sampler.clock = CLOCK_BOOTTIME;
	sampler.sample_type = sample_type;
	assert_int_equal(stream_write_message(&m->writer, CHUNK_SAMPLER, &sampler.base), 0);
	map.start = 0x400000;
	map.end = 0x401000;
	map.path = (ProtobufCBinaryData){ 9, (uint8_t *)"/bin/tool" };
	process.pid = 70;
	process.n_mappings = 1;
	process.mappings = (Traced__Capture__Mapping *[]){ &map };
	maps.n_processes = 1;
	maps.processes = (Traced__Capture__ProcessMappings *[]){ &process };
	assert_int_equal(stream_write_message(&m->writer, CHUNK_MAPPINGS, &maps.base), 0);
}

static void write_events(struct maker *m)
{
	page_begin(m, BEGIN);
	event_number(m, BEGIN + 10, 7, 1);
	page_flush(m, 0, 0);
}

static void write_end(struct maker *m, uint64_t lost)
{
	Traced__Capture__SampleCounts counts = TRACED__CAPTURE__SAMPLE_COUNTS__INIT;
	Traced__Capture__SampleCount zero = TRACED__CAPTURE__SAMPLE_COUNT__INIT;

	zero.lost = lost;
	zero.counted = true;
	counts.n_cpus = 1;
	counts.cpus = (Traced__Capture__SampleCount *[]){ &zero };
	assert_int_equal(stream_write_message(&m->writer, CHUNK_SAMPLE_COUNTS, &counts.base), 0);
	maker_end(m);
}

static const char *find_name(void *userdata _unused_, const struct code_place *place)
{
	if (strcmp(place->path, "/bin/tool") == 0)
		return place->offset == 0x10 ? "leaf" : place->offset == 0x20 ? "caller" : NULL;
	/* Code that a program compiled at run time. */
	if (!*place->path)
		return NULL;
	assert_string_equal(place->path, "/bin/other");
	assert_int_equal(place->build_id_len, 4);
	assert_memory_equal(place->build_id, "abcd", 4);
	return place->offset == 0x2010 ? "other@V_2" : NULL;
}

/* Returns 0 with the text in *ret (owned), or the error of export_stream(). */
static int export_as(struct maker *m, const char *format, char **ret, size_t *ret_len,
		     struct export_result *result, struct error *err)
{
	const struct export_symbols symbols = { find_name, NULL };
	const struct export_options o = { .format = format, .symbols = &symbols };
	_cleanup_close_ int out = memory_file("", 0);
	struct buf text = BUF_INIT;
	int r = export_stream(m->fd, out, &o, result, err);

	if (r < 0)
		return r;
	memory_file_read(out, &text);
	*ret = text.data;
	*ret_len = text.len;
	return 0;
}

static json_t *export_json(struct maker *m, struct export_result *result)
{
	_cleanup_free_ char *text = NULL;
	json_t *json;
	size_t len;

	assert_int_equal(export_as(m, "json", &text, &len, result, NULL), 0);
	json = json_loadb(text, len, 0, NULL);
	assert_non_null(json);
	return json;
}

static void check_sample(const json_t *json, size_t i, uint64_t ns, int tid, unsigned cpu,
			 const char *const *stack)
{
	json_t *s = json_array_get(json_object_get(json, "samples"), i), *frame;
	const char *id = json_string_value(json_object_get(s, "sf"));

	assert_int_equal((uint64_t)(json_number_value(json_object_get(s, "ts")) * 1000 + 0.5), ns);
	assert_int_equal(json_integer_value(json_object_get(s, "tid")), tid);
	assert_int_equal(json_integer_value(json_object_get(s, "cpu")), cpu);
	assert_int_equal(json_integer_value(json_object_get(s, "weight")), 1003009);
	assert_string_equal(json_string_value(json_object_get(s, "name")), "cpu-clock");
	for (; *stack; stack += 2) {
		if (!id)
			fail_msg("sample %zu ends before %s", i, *stack);
		frame = json_object_get(json_object_get(json, "stackFrames"), id);
		assert_string_equal(json_string_value(json_object_get(frame, "name")), stack[0]);
		assert_string_equal(json_string_value(json_object_get(frame, "category")),
				    stack[1]);
		id = json_string_value(json_object_get(frame, "parent"));
	}
	assert_null(id);
}
#define STACK(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const json_t *told(const json_t *json, const char *key)
{
	return json_object_get(json_object_get(json_object_get(json, "otherData"), "samples"), key);
}

static bool names_thread(const json_t *json, int tid)
{
	json_t *e;
	size_t i;

	json_array_foreach(json_object_get(json, "traceEvents"), i,
			   e) if (json_integer_value(json_object_get(e, "tid")) == tid) return true;
	return false;
}

static void samples_have_their_stacks(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		_cleanup_buf_ struct buf first = BUF_INIT, second = BUF_INIT;
		const uint64_t chain[] = { PROGRAM, 0x400010 };
		struct export_result result;
		struct maker m;
		json_t *json;

		maker_init(&m, machines[i].word_size, machines[i].big_endian, 4096);
		write_head(&m, TYPE_STACKS);
		fill_first(&m, &first);
		put_sample(&m, &second, USER, BEGIN + 2500, 70, 1, 0x400010, chain, 2);
		write_samples(&m, 1, &second);
		write_events(&m);
		write_samples(&m, 0, &first);
		write_end(&m, 5);
		json = export_json(&m, &result);
		assert_int_equal(json_array_size(json_object_get(json, "samples")), 5);
		check_sample(json, 0, BEGIN + 1000, 70, 0,
			     STACK("kernel_leaf", "[kernel]", "kernel_caller", "[mod]", "leaf",
				   "tool", "caller", "tool"));
		check_sample(json, 1, BEGIN + 2500, 70, 1, STACK("leaf", "tool"));
		check_sample(json, 2, BEGIN + 3000, 71, 0, STACK("leaf", "tool"));
		check_sample(json, 3, BEGIN + 5000, 71, 0,
			     STACK("other", "other", "[unknown]", "[unknown]"));
		check_sample(json, 4, BEGIN + 8000, 71, 0, STACK("[unknown]", "[unknown]"));
		assert_true(names_thread(json, 70) && names_thread(json, 71));
		assert_int_equal(json_integer_value(told(json, "samples")), 5);
		assert_int_equal(json_integer_value(told(json, "lost")), 5);
		assert_int_equal(json_integer_value(told(json, "throttled")), 1);
		assert_int_equal(result.warning_count, 2);
		assert_int_equal(result.marks, 0);
		assert_false(result.incomplete);
		json_decref(json);
		export_result_deinit(&result);
		maker_deinit(&m);
	}
}

/* Without --call-graph a sample has one frame, in kernel or user space as its record says. */
static void plain_samples_have_one_frame(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct export_result result;
	json_t *json;

	maker_init(&m, 8, false, 4096);
	write_head(&m, TYPE_PLAIN);
	put_sample(&m, &b, KERNEL, BEGIN + 1, 70, 0, 0x1100, NULL, 0);
	put_sample(&m, &b, USER, BEGIN + 2, 70, 0, 0x400010, NULL, 0);
	put_sample(&m, &b, USER, BEGIN + 3, 70, 0, 0x400333, NULL, 0);
	put_sample(&m, &b, KERNEL, BEGIN + 4, 70, 0, 0x500, NULL, 0);
	write_samples(&m, 0, &b);
	write_events(&m);
	write_end(&m, 0);
	json = export_json(&m, &result);
	check_sample(json, 0, BEGIN + 1, 70, 0, STACK("kernel_caller", "[mod]"));
	check_sample(json, 1, BEGIN + 2, 70, 0, STACK("leaf", "tool"));
	check_sample(json, 2, BEGIN + 3, 70, 0, STACK("tool+0x333", "tool"));
	/* Its address would reveal where the kernel lies. */
	check_sample(json, 3, BEGIN + 4, 70, 0, STACK("[unknown]", "[kernel]"));
	assert_int_equal(result.warning_count, 0);
	json_decref(json);
	export_result_deinit(&result);
}

static bool has_text(const char *data, size_t len, const char *text)
{
	return memmem(data, len, text, strlen(text));
}

static void perfetto_has_them(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf b = BUF_INIT;
	_cleanup_free_ char *data = NULL;
	struct export_result result;
	size_t len, count = 0;

	maker_init(&m, 8, false, 4096);
	write_head(&m, TYPE_STACKS);
	fill_first(&m, &b);
	write_samples(&m, 0, &b);
	write_events(&m);
	write_end(&m, 0);
	assert_int_equal(export_as(&m, "pftrace", &data, &len, &result, NULL), 0);
	assert_true(has_text(data, len, "kernel_leaf") && has_text(data, len, "caller") &&
		    has_text(data, len, "cpu-clock"));
	/* Field 66 of a packet; pid 70 or 71 is its second member. */
	for (size_t i = 0; i + 6 < len; i++)
		count += !memcmp(data + i, "\x92\x04", 2) &&
			 (!memcmp(data + i + 3, "\x08\x00\x10\x46", 4) ||
			  !memcmp(data + i + 3, "\x08\x00\x10\x47", 4));
	assert_int_equal(count, 4);
	export_result_deinit(&result);
}

#define PLACE(file, offset) (UINT64_C(0x10000000000) + (file)*UINT64_C(0x100000000) + (offset))

static void check_stack(const struct cpu_profile *p, uint64_t count, const uint64_t *pcs,
			uint32_t depth)
{
	for (size_t i = 0; i < p->stack_count; i++) {
		const struct cpu_profile_stack *s = &p->stacks[i];
		uint32_t same = 0;

		while (s->depth == depth && same < depth && cpu_profile_pc(p, s, same) == pcs[same])
			same++;
		if (same == depth) {
			assert_int_equal(s->count, count);
			return;
		}
	}
	fail_msg("no stack that begins with 0x%llx", (unsigned long long)pcs[0]);
}
#define CHECK_STACK(p, count, ...)                                                                 \
	check_stack((p), (count), (const uint64_t[]){ __VA_ARGS__ },                               \
		    sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* All processes share a file's addresses; kernel addresses are left out. */
static void a_profile_is_made_of_them(void **state _unused_)
{
	const int32_t child = 71;
	struct export_options o = { .format = "prof" };

	for (int i = 0; i < 4; i++) {
		_cleanup_close_ int out = memory_file("", 0);
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_buf_ struct buf b = BUF_INIT;
		_cleanup_error_ struct error err = ERROR_INIT;
		struct export_result result;
		struct cpu_profile p;
		struct stat st;
		uint8_t *data;
		int r;

		maker_init(&m, 8, i & 1, 4096);
		write_head(&m, TYPE_STACKS);
		fill_first(&m, &b);
		write_samples(&m, 0, &b);
		write_events(&m);
		write_end(&m, 0);
		o.raw_addresses = i == 1;
		o.selection = (struct export_selection){ .pids = &child, .pid_count = i == 2 };
		o.selection.comm = i == 3 ? "nobody" : NULL;
		r = export_stream(m.fd, out, &o, &result, &err);
		/* fill_first() writes a record of lost samples, and one of throttling. */
		assert_int_equal(result.warning_count, r < 0 ? 0 : 2);
		export_result_deinit(&result);
		assert_int_equal(r, i == 3 ? -EINVAL : 0);
		if (r < 0)
			continue;
		assert_int_equal(fstat(out, &st), 0);
		data = malloc((size_t)st.st_size);
		assert_int_equal(pread_full(out, data, (size_t)st.st_size, 0), st.st_size);
		assert_int_equal(cpu_profile_parse(&p, data, (size_t)st.st_size, NULL), 0);
		assert_int_equal(p.slot, 8);
		assert_int_equal(p.big_endian, i & 1);
		assert_int_equal(p.period_us, 1003);
		assert_int_equal(p.samples, i == 2 ? 3 : 4);
		if (i == 0)
			CHECK_STACK(&p, 1, PLACE(0, 0x10), PLACE(0, 0x21));
		if (i == 1)
			CHECK_STACK(&p, 1, 0x1010, 0x1121, PLACE(0, 0x10), PLACE(0, 0x21));
		CHECK_STACK(&p, 1, PLACE(0, 0x10));
		CHECK_STACK(&p, 1, PLACE(1, 0x2010));
		/* The process had already ended. */
		CHECK_STACK(&p, 1, 0x1000);
		assert_string_equal(cpu_profile_find(&p, PLACE(1, 0x2010))->path, "/bin/other");
		cpu_profile_deinit(&p);
		free(data);
	}
}

/* Each message says what the reader can do. */
static void a_missing_profile_is_explained(void **state _unused_)
{
	static const char *const says[][2] = {
		{ "none of the 1 sample matches", "--thread, --comm" },
		{ "all samples were taken in the kernel", "--raw-addresses" },
		{ "the samples can't be read", ".json or .txt" },
		{ "not one sample was taken", "ran long enough" },
	};
	struct export_options o = { .format = "prof" };

	for (size_t i = 0; i < ARRAY_SIZE(says); i++) {
		_cleanup_close_ int out = memory_file("", 0);
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_buf_ struct buf b = BUF_INIT;
		_cleanup_error_ struct error err = ERROR_INIT;
		struct export_result result;
		off_t end;

		maker_init(&m, 8, false, 4096);
		write_head(&m, TYPE_PLAIN);
		if (i < 3)
			put_sample(&m, &b, i ? KERNEL : USER, BEGIN + 1, 70, 0,
				   i ? 0x1100 : 0x400010, NULL, 0);
		if (i < 3)
			write_samples(&m, 0, &b);
		end = lseek(m.fd, 0, SEEK_CUR);
		/* Within the record. */
		if (i == 2)
			assert_int_equal(pwrite(m.fd, "\xff", 1, end - 3), 1);
		write_events(&m);
		write_end(&m, 0);
		o.selection.comm = i == 0 ? "nobody" : NULL;
		assert_int_equal(export_stream(m.fd, out, &o, &result, &err), -EINVAL);
		export_result_deinit(&result);
		if (!strstr(err.message, says[i][0]))
			fail_msg("%zu: %s", i, err.message);
		assert_non_null(strstr(err.hint, says[i][1]));
	}
}

/* Records truncated anywhere, or with any byte changed: never more samples than there are. */
static void damage_is_bounded(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct perf_format f = { .sample_type = TYPE_STACKS };
	struct maker m;

	maker_init(&m, 8, false, 4096);
	fill_first(&m, &b);
	for (size_t len = 0; len <= b.len; len++) {
		_cleanup_free_ uint8_t *copy = malloc(len ?: 1);
		struct perf_record r;
		size_t at = 0, size;

		memcpy(copy, b.data, len);
		while (at < len && (size = perf_record_read(&r, &f, copy + at, len - at)))
			at += size;
		assert_true(at <= len);
	}
	for (size_t i = 0; i < b.len; i++) {
		_cleanup_free_ uint8_t *copy = malloc(b.len);
		struct perf_record r;
		size_t at = 0, size;

		memcpy(copy, b.data, b.len);
		copy[i] = (uint8_t)~copy[i];
		while (at < b.len && (size = perf_record_read(&r, &f, copy + at, b.len - at))) {
			if (r.kind == PERF_SAMPLED && r.sample.count)
				perf_record_chain(&r, &f, r.sample.count - 1);
			at += size;
		}
	}
	maker_deinit(&m);
}

/* A whole stream. The last `cut` bytes of its samples are missing. */
static void make_first(struct maker *m, size_t cut, uint64_t lost)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_init(m, 8, false, 4096);
	write_head(m, TYPE_STACKS);
	fill_first(m, &b);
	b.len -= cut;
	write_samples(m, 0, &b);
	write_events(m);
	write_end(m, lost);
}

static void damage_is_reported(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	struct export_result result;
	json_t *json;

	make_first(&m, 8, 0);
	json = export_json(&m, &result);
	assert_int_equal(json_array_size(json_object_get(json, "samples")), 3);
	assert_true(result.incomplete);
	json_decref(json);
	export_result_deinit(&result);
}

static void a_profile_reports_what_it_lacks(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_free_ char *text = NULL;
	struct export_result result;
	size_t len;

	make_first(&m, 8, 5);
	assert_int_equal(export_as(&m, "prof", &text, &len, &result, NULL), 0);
	assert_non_null(memmem(text, len, "\n# CPU 0 lost 5 records of samples\n", 35));
	assert_true(result.incomplete);
	assert_int_equal(result.warning_count, 3);
	assert_non_null(strstr(result.warnings[0], "records of samples were lost"));
	assert_non_null(strstr(result.warnings[1], "held samples back"));
	assert_non_null(strstr(result.warnings[2], "1 chunk of samples is damaged"));
	export_result_deinit(&result);
}

/* By the kernel's count, also where the samples themselves are left out. */
static void every_format_counts_lost_samples(void **state _unused_)
{
	static const char *const formats[] = { "json", "pftrace", "txt", "html", "prof", "dat" };

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_free_ char *text = NULL;
		struct export_result result;
		size_t len;

		make_first(&m, 0, 5);
		assert_int_equal(export_as(&m, formats[i], &text, &len, &result, NULL), 0);
		assert_int_equal(result.ledger_count, 1);
		assert_int_equal(result.ledger[0].samples_lost, 5);
		if (!strcmp(formats[i], "json") || !strcmp(formats[i], "html"))
			assert_non_null(memmem(text, len, "\"samples_lost\":5", 16));
		export_result_deinit(&result);
	}
}

/* The last of several files has the account of all samples. */
static void the_last_file_counts_lost_samples(void **state _unused_)
{
	const struct export_options o = { .format = "json",
					  .rotate = { .bytes = EXPORT_ROTATE_BYTES_MIN } };
	_cleanup_close_ int out = memory_file("", 0);
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf frames = BUF_INIT;
	struct export_result result;

	make_first(&m, 0, 5);
	assert_int_equal(export_stream(m.fd, out, &o, &result, NULL), 0);
	memory_file_read(out, &frames);
	assert_non_null(memmem(frames.data, frames.len, "\"samples_lost\":5", 16));
	export_result_deinit(&result);
}

/* A chunk above the limit is refused before memory is reserved for it. */
static void a_long_chunk_takes_no_memory(void **state _unused_)
{
	_cleanup_(stream_index_deinit) struct stream_index index;
	_cleanup_(sample_reader_freep) struct sample_reader *samples = NULL;
	const struct index_options options = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_reader reader;
	struct perf_record record;
	struct sample_sum sum;
	size_t before;

	if (SANITIZED)
		skip();
	maker_init(&m, 8, false, 4096);
	write_head(&m, TYPE_STACKS);
	buf_reserve(&b, 20 << 20);
	memset(b.data, 0, 20 << 20);
	b.len = 20 << 20;
	write_samples(&m, 0, &b);
	buf_clear(&b);
	fill_first(&m, &b);
	write_samples(&m, 0, &b);
	write_end(&m, 0);
	buf_deinit(&b);
	assert_int_equal(stream_reader_init(&reader, m.fd, NULL), 0);
	assert_int_equal(stream_index_open(&index, &reader, &options, NULL), 0);
	assert_int_equal(stream_index_finish(&index, NULL), 0);
	before = heap();
	assert_int_equal(sample_reader_new(&samples, &index, &reader), 0);
	assert_int_equal(sample_reader_next(samples, &record), 1);
	assert_true(heap() - before < 1 << 20);
	sample_reader_sum(samples, &sum);
	assert_int_equal(sum.damaged, 1);
}

static void formats_without_samples_warn(void **state _unused_)
{
	static const char *const formats[] = { "txt", "dat" };

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_buf_ struct buf b = BUF_INIT;
		_cleanup_free_ char *text = NULL;
		struct export_result result;
		char wanted[80];
		size_t len;

		maker_init(&m, 8, false, 4096);
		write_head(&m, TYPE_PLAIN);
		put_sample(&m, &b, KERNEL, BEGIN + 1, 70, 0, 0x1100, NULL, 0);
		write_samples(&m, 0, &b);
		write_events(&m);
		write_end(&m, 0);
		assert_int_equal(export_as(&m, formats[i], &text, &len, &result, NULL), 0);
		snprintf(wanted, sizeof(wanted),
			 "a .%s has no place for samples: they are left out", formats[i]);
		assert_int_equal(result.warning_count, 1);
		assert_string_equal(result.warnings[0], wanted);
		assert_false(result.incomplete);
		export_result_deinit(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_have_their_stacks),
		cmocka_unit_test(plain_samples_have_one_frame),
		cmocka_unit_test(perfetto_has_them),
		cmocka_unit_test(a_profile_is_made_of_them),
		cmocka_unit_test(a_missing_profile_is_explained),
		cmocka_unit_test(formats_without_samples_warn),
		cmocka_unit_test(damage_is_bounded),
		cmocka_unit_test(damage_is_reported),
		cmocka_unit_test(a_profile_reports_what_it_lacks),
		cmocka_unit_test(every_format_counts_lost_samples),
		cmocka_unit_test(the_last_file_counts_lost_samples),
		cmocka_unit_test(a_long_chunk_takes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
