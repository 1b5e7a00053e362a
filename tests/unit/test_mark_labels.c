/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decoding of mark labels, and the limit on what strangers can define. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "marks/labels.h"

static void the_first_definition_of_a_label_counts(void **state _unused_)
{
	struct mark_decode_shared shared = MARK_DECODE_SHARED_INIT;
	struct label_table t = { 0 };
	char name[16];

	for (uint32_t id = 1; id <= 1000; id++) {
		snprintf(name, sizeof(name), "n%u", id);
		assert_int_equal(label_define(&t, &shared, id,
					      (struct text){ name, (uint32_t)strlen(name) },
					      TEXT("c"), id),
				 0);
	}
	assert_int_equal(label_define(&t, &shared, 7, TEXT("other"), TEXT(""), 1), 0);
	for (uint32_t id = 1; id <= 1000; id++) {
		const struct label *l = label_find(&t, &shared, id);

		snprintf(name, sizeof(name), "n%u", id);
		assert_non_null(l);
		assert_int_equal(l->name.len, strlen(name));
		assert_memory_equal(l->name.data, name, l->name.len);
		assert_int_equal(l->frame, id);
	}
	assert_int_equal(shared.labels_refused, 0);
	assert_null(label_find(&t, &shared, 0));
	assert_int_equal(shared.labels_refused, 0);
	assert_null(label_find(&t, &shared, 1001));
	assert_null(label_find(&t, &shared, UINT64_MAX));
	assert_int_equal(shared.labels_refused, 2);
	label_table_forget(&t, &shared);
	assert_int_equal(shared.labels.used, 0);
	assert_null(label_find(&t, &shared, 7));
	label_table_forget(&t, &shared);
	mark_decode_shared_deinit(&shared);
}

/* All rings share the memory, but a greedy program leaves room for others. */
static void a_program_takes_only_its_share(void **state _unused_)
{
	struct mark_decode_shared shared = MARK_DECODE_SHARED_INIT;
	struct label_table greedy = { .owner = { 1000, 7 } }, same = { .owner = { 1000, 8 } };
	struct label_table modest = { .owner = { 1001, 9 } };
	const uint32_t len = 1U << 20;
	char *name = calloc(1, len);

	assert_non_null(name);
	for (uint32_t id = 1; id <= 100; id++)
		assert_int_equal(
			label_define(&greedy, &shared, id, (struct text){ name, len }, TEXT(""), 1),
			0);
	/* Four sevenths. */
	assert_in_range(shared.labels.used, MARK_LABELS_MEMORY / 7 * 4 - len,
			MARK_LABELS_MEMORY / 7 * 4 + len);
	assert_int_equal(shared.labels.refused, 100 - shared.labels.used / len);
	assert_int_equal(shared.labels.refused_pid, 7);
	assert_false(shared.labels.refused_others);
	assert_null(label_find(&greedy, &shared, 100));
	assert_non_null(label_find(&greedy, &shared, 1));
	assert_int_equal(shared.labels_refused, 1);
	/* The user's other program, and another user's. */
	for (uint32_t id = 1; id <= 3; id++) {
		assert_int_equal(
			label_define(&same, &shared, id, (struct text){ name, len }, TEXT(""), 1),
			0);
		assert_non_null(label_find(&same, &shared, id));
	}
	for (uint32_t id = 1; id <= 10; id++) {
		assert_int_equal(
			label_define(&modest, &shared, id, (struct text){ name, len }, TEXT(""), 1),
			0);
		assert_non_null(label_find(&modest, &shared, id));
	}
	label_table_forget(&greedy, &shared);
	label_table_forget(&same, &shared);
	label_table_forget(&modest, &shared);
	assert_int_equal(shared.labels.used, 0);
	assert_int_equal(shared.labels.holders.count, 0);
	mark_decode_shared_deinit(&shared);
	free(name);
}

/* Greedy programs of several users leave room for one more. */
static void many_programs_leave_room(void **state _unused_)
{
	struct shares s = { .max = 1 << 18 };

	for (int i = 1; i <= 16; i++)
		while (shares_take(&s, &(struct share_owner){ 1000 + (uint64_t)(i % 4), i }, 1) ==
		       0)
			;
	assert_true(s.used < s.max);
	assert_int_equal(s.refused, 16);
	assert_true(s.refused_others);
	assert_int_equal(shares_take(&s, &(struct share_owner){ 999, 999 }, 1), 0);
	shares_return(&s, &(struct share_owner){ 999, 999 }, 1);
	shares_deinit(&s);
}

static void a_frame_is_new_once(void **state _unused_)
{
	struct mark_decode_shared shared = MARK_DECODE_SHARED_INIT;
	uint64_t main_frame = frame_hash(TEXT("main"), TEXT("c"), 0);
	const struct share_owner owner = { 1000, 7 };

	assert_int_equal(main_frame, frame_hash(TEXT("main"), TEXT("c"), 0));
	assert_int_not_equal(main_frame, frame_hash(TEXT("main"), TEXT("c"), main_frame));
	assert_int_not_equal(main_frame, frame_hash(TEXT("main"), TEXT("d"), 0));
	assert_true(frame_is_new(&shared, &owner, main_frame));
	assert_false(frame_is_new(&shared, &owner, main_frame));
	for (uint64_t i = 1; i <= 3000; i++)
		assert_true(frame_is_new(&shared, &owner, i << 20));
	for (uint64_t i = 1; i <= 3000; i++)
		assert_false(frame_is_new(&shared, &owner, i << 20));
	assert_false(frame_is_new(&shared, &owner, main_frame));
	assert_int_equal(shared.labels_refused, 0);
	/* A full table. */
	shared.stacks.max = shared.stacks.used;
	assert_false(frame_is_new(&shared, &owner, 5));
	assert_int_equal(shared.stacks.refused, 1);
	mark_decode_shared_deinit(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_definition_of_a_label_counts),
		cmocka_unit_test(a_program_takes_only_its_share),
		cmocka_unit_test(many_programs_leave_room),
		cmocka_unit_test(a_frame_is_new_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
