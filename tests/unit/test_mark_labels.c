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
	struct mark_decode_shared shared = { 0 };
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
	assert_int_equal(shared.label_bytes, 0);
	assert_null(label_find(&t, &shared, 7));
	label_table_forget(&t, &shared);
	mark_decode_shared_deinit(&shared);
}

/* All rings share the memory: a greedy one leaves the others nameless, which is counted. */
static void beyond_the_memory_names_are_missing(void **state _unused_)
{
	struct mark_decode_shared shared = { 0 };
	struct label_table greedy = { 0 }, modest = { 0 };
	const uint32_t len = 1U << 20;
	char *name = calloc(1, len);

	assert_non_null(name);
	for (uint32_t id = 1; id <= 100; id++)
		assert_int_equal(
			label_define(&greedy, &shared, id, (struct text){ name, len }, TEXT(""), 1),
			0);
	assert_in_range(shared.label_bytes, MARK_LABELS_MEMORY - len - sizeof(struct label),
			MARK_LABELS_MEMORY);
	assert_int_equal(label_define(&modest, &shared, 1, (struct text){ name, len }, TEXT(""), 1),
			 0);
	assert_null(label_find(&modest, &shared, 1));
	assert_null(label_find(&greedy, &shared, 100));
	assert_non_null(label_find(&greedy, &shared, 1));
	assert_int_equal(shared.labels_refused, 2);
	label_table_forget(&greedy, &shared);
	assert_int_equal(shared.label_bytes, 0);
	assert_int_equal(label_define(&modest, &shared, 1, (struct text){ name, len }, TEXT(""), 1),
			 0);
	assert_non_null(label_find(&modest, &shared, 1));
	label_table_forget(&modest, &shared);
	mark_decode_shared_deinit(&shared);
	free(name);
}

static void a_frame_is_new_once(void **state _unused_)
{
	struct mark_decode_shared shared = { 0 };
	uint64_t main_frame = frame_hash(TEXT("main"), TEXT("c"), 0);

	assert_int_equal(main_frame, frame_hash(TEXT("main"), TEXT("c"), 0));
	assert_int_not_equal(main_frame, frame_hash(TEXT("main"), TEXT("c"), main_frame));
	assert_int_not_equal(main_frame, frame_hash(TEXT("main"), TEXT("d"), 0));
	assert_true(frame_is_new(&shared, main_frame));
	assert_false(frame_is_new(&shared, main_frame));
	for (uint64_t i = 1; i <= 3000; i++)
		assert_true(frame_is_new(&shared, i << 20));
	for (uint64_t i = 1; i <= 3000; i++)
		assert_false(frame_is_new(&shared, i << 20));
	assert_false(frame_is_new(&shared, main_frame));
	assert_int_equal(shared.labels_refused, 0);
	/* A full table. */
	shared.frames.count = UINT32_MAX;
	assert_false(frame_is_new(&shared, 5));
	assert_int_equal(shared.labels_refused, 1);
	mark_decode_shared_deinit(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_definition_of_a_label_counts),
		cmocka_unit_test(beyond_the_memory_names_are_missing),
		cmocka_unit_test(a_frame_is_new_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
