/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Slices that found no room, in a file that begins later; and the memory of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heap.h"
#include "marks/nesting.h"
#include "marks/sort.h"
#include "trace/index.h"

/* Deeper slices are only counted. */
#define KEPT_MAX 65536

static int check(struct nesting *n, int32_t tid, uint8_t phase, const char *name, struct mark *ret)
{
	*ret = (struct mark){ .phase = phase, .pid = 7, .tid = tid, .has = HAS_OWN_FRAMES };
	ret->part[PART_NAME] = (struct text){ name, (uint32_t)strlen(name) };
	return nesting_check(n, ret);
}

static void begin(struct nesting *n, int32_t tid, const char *name)
{
	struct mark mark;

	assert_int_equal(check(n, tid, PHASE_BEGIN, name, &mark), 1);
}

/* named NULL: the end is unmatched. */
static void end(struct nesting *n, const char *named)
{
	struct mark mark;

	assert_int_equal(check(n, 7, PHASE_END, "", &mark), named ? 1 : 0);
	if (named)
		assert_true(
			text_equal(mark.begun, (struct text){ named, (uint32_t)strlen(named) }));
}

struct reopened {
	unsigned count;
	struct text last;
};

static int count_begin(void *userdata, const struct mark *mark, struct error *err _unused_)
{
	struct reopened *r = userdata;

	assert_int_equal(mark->phase, PHASE_BEGIN);
	r->count++;
	r->last = mark->part[PART_NAME];
	return 0;
}

static struct nesting *deep(unsigned depth)
{
	struct nesting *n;

	assert_int_equal(nesting_new(&n), 0);
	for (unsigned i = 0; i < depth; i++)
		begin(n, 7, "slice");
	return n;
}

static void a_slice_without_a_begin_in_the_file_has_no_end(void **state _unused_)
{
	_cleanup_(nesting_freep) struct nesting *n = deep(KEPT_MAX + 2);
	struct reopened r = { 0 };

	end(n, "");
	assert_int_equal(nesting_reopen(n, NULL, 5, count_begin, &r, NULL), 0);
	assert_int_equal(r.count, KEPT_MAX);
	begin(n, 7, "in this file");
	end(n, "");
	end(n, NULL);
	end(n, "slice");
	/* One that begins in this file, at the same depth. */
	begin(n, 7, "kept");
	begin(n, 7, "not kept");
	end(n, "");
	end(n, "kept");
	end(n, "slice");
}

/* The last mark was checked, but belongs to the new file. */
static void an_end_ahead_has_its_begin(void **state _unused_)
{
	_cleanup_(nesting_freep) struct nesting *n = deep(KEPT_MAX + 2);
	struct reopened r = { 0 };
	struct mark ahead;

	assert_int_equal(check(n, 7, PHASE_END, "named so", &ahead), 1);
	assert_int_equal(nesting_reopen(n, &ahead, 5, count_begin, &r, NULL), 0);
	assert_int_equal(r.count, KEPT_MAX + 1);
	assert_true(text_equal(r.last, TEXT("named so")));
	end(n, NULL);
	end(n, "slice");
}

static void a_begin_ahead_is_of_the_new_file(void **state _unused_)
{
	_cleanup_(nesting_freep) struct nesting *n = deep(KEPT_MAX + 1);
	struct reopened r = { 0 };
	struct mark ahead;

	assert_int_equal(check(n, 7, PHASE_BEGIN, "ahead", &ahead), 1);
	assert_int_equal(nesting_reopen(n, &ahead, 5, count_begin, &r, NULL), 0);
	assert_int_equal(r.count, KEPT_MAX);
	end(n, "");
	end(n, NULL);
	end(n, "slice");
}

/* Marks that find no room count as lost, whoever made them. */
static void slices_without_room_are_lost_marks(void **state _unused_)
{
	_cleanup_(nesting_freep) struct nesting *n = NULL;
	_cleanup_free_ char *name = malloc(MARK_PACKED_MAX);
	struct stream_index index = { 0 };
	struct mark mark;
	int r = 1;

	assert_non_null(name);
	memset(name, 'x', MARK_PACKED_MAX - 1);
	name[MARK_PACKED_MAX - 1] = '\0';
	assert_int_equal(nesting_new(&n), 0);
	assert_int_equal(nesting_warn(n, &index), 0);
	assert_false(index.marks_lost);
	for (int32_t tid = 1; tid < 64 && r == 1; tid++)
		r = check(n, tid, PHASE_BEGIN, name, &mark);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(nesting_warn(n, &index), 0);
	assert_true(index.marks_lost);
	assert_int_equal(index.warning_count, 1);
	assert_string_equal(index.warnings[0],
			    "slices are left out (1): process 7 has too many that are open");
	free(index.warnings[0]);
	free(index.warnings);
}

#define THREADS 200
#define SLICES 2000

static void an_idle_thread_keeps_little(void **state _unused_)
{
	_cleanup_(nesting_freep) struct nesting *n = NULL;
	struct mark mark;
	size_t before;

	if (SANITIZED)
		skip();
	assert_int_equal(nesting_new(&n), 0);
	before = heap();
	for (int32_t tid = 1; tid <= THREADS; tid++) {
		for (unsigned i = 0; i < SLICES; i++)
			begin(n, tid, "");
		for (unsigned i = 0; i < SLICES; i++)
			assert_int_equal(check(n, tid, PHASE_END, "", &mark), 1);
	}
	assert_in_range(heap() - before, 0, (size_t)THREADS * 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slice_without_a_begin_in_the_file_has_no_end),
		cmocka_unit_test(an_end_ahead_has_its_begin),
		cmocka_unit_test(a_begin_ahead_is_of_the_new_file),
		cmocka_unit_test(slices_without_room_are_lost_marks),
		cmocka_unit_test(an_idle_thread_keeps_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
