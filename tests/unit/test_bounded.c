/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The work of an export grows at most like n log n, whatever a hostile program writes.
 *
 * The libraries are built once more, with a call at each basic block: work is the number of these
 * calls, and of the 16 bytes that memmove() and its kin move. It does not depend on the machine's
 * load, and hardly on the secret of the hashes.
 *
 *	test_bounded			all shapes in all formats, small, and the shares
 *	test_bounded shapes		their names
 *	test_bounded COUNT [SHAPE [FORMAT]]	one line for each: COUNT / 8 and COUNT records
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/secret_hash.h"
#include "exported.h"
#include "formats/formats.h"
#include "make_hostile.h"
#include "make_marks.h"
#include "marks/nesting.h"
#include "memory_file.h"

static uint64_t work;
static struct export_rotate rotate; /* of all exports */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	work++;
}

#define COUNT_BYTES(type, name, arg)                                                               \
	void *__real_##name(void *to, type from, size_t len);                                      \
	void *__wrap_##name(void *to, type from, size_t len);                                      \
	void *__wrap_##name(void *to, type from, size_t len)                                       \
	{                                                                                          \
		work += len / 16;                                                                  \
		return __real_##name(to, from, len);                                               \
	}
COUNT_BYTES(const void *, memmove, from)
COUNT_BYTES(const void *, memcpy, from)
COUNT_BYTES(int, memset, value)

/* The formats that have code of their own. */
static const char *const formats[] = { "json", "pftrace", "ctf",  "txt",
				       "html", "dat",	  "prof", "traced" };

static uint64_t work_of(const struct hostile_shape *shape, const char *format, uint64_t count,
			unsigned *warnings)
{
	struct export_merge merge = { .name = shape->name, .clock = -1 };
	struct export_options options = { .format = format, .threads = 1, .rotate = rotate };
	const bool lacks_samples = !shape->has_samples && !strcmp(format, "prof");
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int in = memory_file("", 0), out = -EBADF;
	_cleanup_close_ int file = -EBADF, scratch = -EBADF;
	int r;

	out = !strcmp(format, "dat") || !strcmp(format, "traced")
		      ? memory_file("", 0)
		      : open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(out >= 0);
	shape->make(dup(in), count);
	if (shape->merge) {
		options.merges = &merge;
		options.merge_count = 1;
		merge.fd = file = memory_file("", 0);
		options.scratch_fd = scratch = memory_file("", 0);
		shape->merge(dup(file), count);
		assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	}
	work = 0;
	r = export_stream(in, out, &options, &result, &err);
	if (r != (lacks_samples ? -EINVAL : 0))
		fail_msg("%s to %s: %d, %s", shape->name, format, r, err.message);
	*warnings = (unsigned)result.warning_count;
	for (size_t i = 0; getenv("BOUNDED_VERBOSE") && i < result.warning_count; i++)
		printf("  %s\n", result.warnings[i]);
	return work;
}

/* How many times more work a record takes among `many` than among `few`. */
static double growth(const struct hostile_shape *shape, const char *format, uint64_t few,
		     uint64_t many, bool print)
{
	unsigned warnings;
	uint64_t base = work_of(shape, format, few / 8, &warnings);
	uint64_t less = MAX(work_of(shape, format, few, &warnings), base) - base;
	uint64_t more = MAX(work_of(shape, format, many, &warnings), base) - base;
	double times = (double)more / (double)(many - few / 8) /
		       MAX((double)less / (double)(few - few / 8), 1);

	if (print)
		printf("%s to %s: %.0f a record among %" PRIu64 ", %.0f among %" PRIu64
		       " (%.2f), %u warnings\n",
		       shape->name, format, (double)less / (double)(few - few / 8), few,
		       (double)more / (double)(many - few / 8), many, times, warnings);
	fflush(stdout);
	return times;
}

/* n log n, and a table that has just doubled. */
static double growth_max(uint64_t few, uint64_t many)
{
	return log2((double)many) / log2((double)few) * 1.5;
}

static bool is_bounded(const struct hostile_shape *shape, const char *format, uint64_t few,
		       uint64_t many, bool print)
{
	double times = growth(shape, format, few, many, print);

	if (times <= growth_max(few, many))
		return true;
	print_error("%s to %s: a record among %" PRIu64
		    " takes %.2f times the work of one among %" PRIu64 "\n",
		    shape->name, format, many, times, few);
	return false;
}

#define FEW 2000
#define MANY 16000

static void work_is_bounded(void **state _unused_)
{
	unsigned wrong = 0;

	for (const struct hostile_shape *s = hostile_shapes; s->name; s++)
		for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
			wrong += !is_bounded(s, formats[i], FEW, MANY, false);
	wrong += !is_bounded(&hostile_cpus, "json", FEW, MANY, false);
	assert_int_equal(wrong, 0);
}

/* More than the tables of a Perfetto trace hold. */
static void full_tables_cost_no_more(void **state _unused_)
{
	static const char *const names[] = { "open", "objects", "counters", "threads" };
	unsigned wrong = 0;

	for (const struct hostile_shape *s = hostile_shapes; s->name; s++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (!strcmp(s->name, names[i]))
				wrong += !is_bounded(s, "pftrace", 100000, 400000, false);
	assert_int_equal(wrong, 0);
}

/* Files of a complete recording, whose tasks are all known from the begin. */
static void many_files_cost_no_more(void **state _unused_)
{
	static const char *const rotated[] = { "json", "pftrace", "txt" };
	unsigned wrong = 0;

	rotate.bytes = 64 << 10;
	for (const struct hostile_shape *s = hostile_shapes; s->name; s++)
		for (size_t i = 0; i < ARRAY_SIZE(rotated); i++)
			if (!strcmp(s->name, "lives"))
				wrong += !is_bounded(s, rotated[i], 6 * FEW, 6 * MANY, false);
	rotate.bytes = 0;
	assert_int_equal(wrong, 0);
}

#define CROWD 100000

static void check_slices(struct nesting *n, uint8_t phase, int32_t from, int32_t to)
{
	for (int32_t tid = from; tid < to; tid++) {
		struct mark mark = { .phase = phase, .pid = tid, .tid = tid };

		assert_int_equal(nesting_check(n, &mark), 1);
	}
}

/* A crowd of threads has made the table large; those after it come and go. */
static void a_former_crowd_costs_nothing(void **state _unused_)
{
	_cleanup_(nesting_freep) struct nesting *n = NULL;

	assert_int_equal(nesting_new(&n), 0);
	check_slices(n, PHASE_BEGIN, 1, CROWD);
	check_slices(n, PHASE_END, 1, CROWD);
	work = 0;
	for (int32_t i = 0; i < 100; i++) {
		check_slices(n, PHASE_BEGIN, CROWD + i * 1024, CROWD + (i + 1) * 1024);
		check_slices(n, PHASE_END, CROWD + i * 1024, CROWD + (i + 1) * 1024);
	}
	assert_in_range(work / (100 * 1024), 1, 500);
}

#define GREEDY 300000
/* Four sevenths of three quarters of 2^18. */
#define GREEDY_SHARE 112348

/* A greedy program leaves room for its user's other programs, and for others'. */
static void make_greedy(int fd)
{
	static const struct {
		uint32_t uid;
		int32_t pid;
		uint64_t count;
	} programs[] = { { 1000, 70, GREEDY }, { 1000, 80, 1000 }, { 1001, 90, 10000 } };
	struct marks_maker w;

	marks_maker_begin(&w, fd);
	for (uint32_t p = 0; p < ARRAY_SIZE(programs); p++) {
		marks_ring(&w, p + 1, programs[p].uid, programs[p].pid, programs[p].pid);
		for (uint64_t i = 0; i < programs[p].count; i++) {
			marks_record(&w, 'b', 0);
			marks_text(&w, MARK_NAME, "open");
			marks_number(&w, MARK_ID_LOCAL, MARK_UINT, i);
		}
	}
	marks_maker_end(&w);
}

static void only_the_greedy_program_loses(void **state _unused_)
{
	const struct export_options options = { .format = "pftrace", .threads = 1 };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_close_ int in = memory_file("", 0), out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char expected[200];

	make_greedy(dup(in));
	assert_int_equal(export_stream(in, out, &options, &result, NULL), 0);
	assert_int_equal(result.marks, GREEDY + 1000 + 10000);
	snprintf(expected, sizeof(expected),
		 "slices and names are left out (%d): process 70 has too many that are open or new",
		 GREEDY - GREEDY_SHARE);
	assert_int_equal(result.warning_count, 1);
	assert_string_equal(result.warnings[0], expected);
}

/* Writes all formats with another secret: nothing depends on it. */
static void the_secret_shows_nowhere(void **state _unused_)
{
	for (const struct hostile_shape *s = hostile_shapes; s->name; s++)
		for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
			_cleanup_exported_ struct exported a = { 0 }, b = { 0 };
			_cleanup_close_ int in = memory_file("", 0);

			if (s->merge)
				continue;
			s->make(dup(in), 500);
			a.options.format = b.options.format = formats[i];
			hash_secret_set(1, 2);
			try_export(&a, in);
			hash_secret_set(UINT64_C(0x123456789abcdef0), UINT64_C(0x0fedcba987654321));
			try_export(&b, in);
			assert_int_equal(a.file.len, b.file.len);
			assert_memory_equal(a.file.data, b.file.data, a.file.len);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_is_bounded),
		cmocka_unit_test(full_tables_cost_no_more),
		cmocka_unit_test(many_files_cost_no_more),
		cmocka_unit_test(a_former_crowd_costs_nothing),
		cmocka_unit_test(only_the_greedy_program_loses),
		cmocka_unit_test(the_secret_shows_nowhere),
	};
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	bool good = true;

	if (argc > 1 && !strcmp(argv[1], "shapes")) {
		for (const struct hostile_shape *s = hostile_shapes; s->name; s++)
			puts(s->name);
		return 0;
	}
	if (!count)
		return cmocka_run_group_tests(tests, NULL, NULL);
	for (const struct hostile_shape *s = hostile_shapes; s->name; s++)
		for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
			if ((argc < 3 || !strcmp(argv[2], s->name)) &&
			    (argc < 4 || !strcmp(argv[3], formats[i])))
				good &= is_bounded(s, formats[i], count / 8, count, true);
	return !good;
}
