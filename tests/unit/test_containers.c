/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each container against a plain model, with random operations; then without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/search.h"
#include "base/table.h"
#include "base/vec.h"

/* The linker sends the program's calls here (--wrap). */
static bool no_memory;
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_reallocarray(void *p, size_t count, size_t size);
void *__wrap_reallocarray(void *p, size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return no_memory ? NULL : __real_calloc(count, size);
}

void *__wrap_reallocarray(void *p, size_t count, size_t size)
{
	return no_memory ? NULL : __real_reallocarray(p, count, size);
}

/* xorshift64 (Marsaglia): the same numbers in each run. */
static uint32_t random_below(uint64_t *state, uint32_t bound)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32) % bound;
}

#define MODEL_MAX 3000

static void vec_is_the_model(void **state _unused_)
{
	static uint32_t model[MODEL_MAX];
	uint32_t *data = NULL, count = 0, cap = 0;
	size_t model_count = 0;
	uint64_t seed = 1;

	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t at = random_below(&seed, (uint32_t)model_count + 1);
		uint32_t n = random_below(&seed, 4), *p;

		if (n < 2 && model_count < MODEL_MAX) {
			if (n) {
				assert_int_equal(vec_push(data, count, cap, step), 0);
				model[model_count++] = step;
			} else {
				p = vec_insert(data, count, cap, at);
				if (!p)
					fail();
				else
					*p = step;
				memmove(&model[at + 1], &model[at],
					(model_count - at) * sizeof(*model));
				model[at] = step;
				model_count++;
			}
		} else if (n == 2 && step % 3 == 0) {
			uint32_t gone = random_below(&seed, (uint32_t)model_count - at + 1) % 40;

			vec_remove(data, count, at, gone);
			memmove(&model[at], &model[at + gone],
				(model_count - at - gone) * sizeof(*model));
			model_count -= gone;
		}
		assert_int_equal(count, model_count);
		assert_true(count <= cap);
		if (count)
			assert_memory_equal(data, model, count * sizeof(*data));
	}
	assert_true(cap > 64);
	free(data);
}

static void vec_grows_in_few_blocks(void **state _unused_)
{
	uint64_t *data = NULL;
	size_t count = 0, cap = 0, blocks = 0;

	for (size_t i = 0; i < 100000; i++) {
		size_t before = cap;

		assert_int_equal(vec_push(data, count, cap, i), 0);
		blocks += cap != before;
		assert_true(cap >= before);
	}
	assert_int_equal(data[99999], 99999);
	assert_in_range(blocks, 2, 20);
	free(data);
}

static void vec_without_memory_keeps_what_it_has(void **state _unused_)
{
	uint32_t *data = NULL, *exact = NULL;
	size_t count = 0, cap = 0, exact_count = 0;

	assert_int_equal(vec_push(data, count, cap, 7), 0);
	if (vec_reserve_exact(exact, exact_count, 1) == 0)
		exact[exact_count++] = 8;
	no_memory = true;
	while (count < cap)
		assert_int_equal(vec_push(data, count, cap, 7), 0);
	assert_int_equal(vec_push(data, count, cap, 9), -ENOMEM);
	assert_null(vec_add(data, count, cap));
	assert_null(vec_insert(data, count, cap, 0));
	assert_null(vec_add_exact(exact, exact_count));
	no_memory = false;
	assert_int_equal(count, cap);
	assert_int_equal(data[0], 7);
	assert_int_equal(data[count - 1], 7);
	assert_int_equal(exact_count, 1);
	assert_int_equal(exact ? exact[0] : 0, 8);
	free(data);
	free(exact);
}

static void vec_does_not_overflow(void **state _unused_)
{
	uint8_t *data = NULL, count = 0, cap = 0;
	uint64_t *words = NULL;
	size_t word_count = 0, word_cap = 0;
	int32_t *ints = NULL;
	int int_count = 0, int_cap = 0;

	for (unsigned i = 0; i < UINT8_MAX; i++)
		assert_int_equal(vec_push(data, count, cap, (uint8_t)i), 0);
	assert_int_equal(count, UINT8_MAX);
	assert_int_equal(vec_push(data, count, cap, 0), -ENOMEM);
	assert_int_equal(vec_reserve_exact(data, count, 1), -ENOMEM);
	assert_int_equal(count, UINT8_MAX);
	assert_int_equal(data[254], 254);
	assert_int_equal(vec_reserve(words, word_count, word_cap, SIZE_MAX), -ENOMEM);
	assert_int_equal(vec_reserve(words, word_count, word_cap, SIZE_MAX / 4), -ENOMEM);
	assert_int_equal(vec_push(words, word_count, word_cap, 1), 0);
	assert_int_equal(vec_reserve(words, word_count, word_cap, SIZE_MAX), -ENOMEM);
	assert_int_equal(vec_reserve(ints, int_count, int_cap, (size_t)INT32_MAX + 1), -ENOMEM);
	assert_int_equal(vec_push(ints, int_count, int_cap, 1), 0);
	free(data);
	free(words);
	free(ints);
}

static void vec_exact_has_no_room_to_spare(void **state _unused_)
{
	uint16_t *data = NULL;
	unsigned count = 0;

	for (uint16_t i = 0; i < 1000; i++) {
		uint16_t *p = vec_add_exact(data, count);

		if (!p)
			fail();
		else
			*p = i;
	}
	assert_int_equal(count, 1000);
	for (uint16_t i = 0; i < 1000; i++)
		assert_int_equal(data[i], i);
	free(data);
}

static void lower_bound_is_the_first(void **state _unused_)
{
	uint32_t sorted[40], total = 0;
	uint64_t seed = 2;

	for (uint32_t n = 0; n <= ARRAY_SIZE(sorted); n++) {
		for (uint32_t i = 0; i < n; i++)
			sorted[i] = i ? sorted[i - 1] + random_below(&seed, 3) : 1;
		for (uint32_t key = 0; key < 90; key++) {
			uint32_t expected = 0;

			while (expected < n && sorted[expected] < key)
				expected++;
			assert_int_equal(lower_bound(i, n, sorted[i] < key), expected);
			total += expected;
		}
	}
	assert_true(total > 0);
	assert_int_equal(lower_bound(i, SIZE_MAX, i < SIZE_MAX - 5), SIZE_MAX - 5);
	assert_int_equal(lower_bound(i, UINT32_MAX, i < UINT32_MAX - 1), UINT32_MAX - 1);
}

struct job {
	uint32_t due, id;
};
DEFINE_HEAP(jobs, struct job *, a->due < b->due || (a->due == b->due && a->id < b->id));

/* Takes the least element out of the model. */
static struct job *take_least(struct job **model, size_t *count)
{
	size_t least = 0;
	struct job *job;

	for (size_t i = 1; i < *count; i++)
		if (jobs_earlier(model[i], model[least]))
			least = i;
	job = model[least];
	model[least] = model[--*count];
	return job;
}

static void heap_is_the_model(void **state _unused_)
{
	struct job all[200], *heap[ARRAY_SIZE(all)], *model[ARRAY_SIZE(all)];
	size_t count = 0, model_count = 0, next = 0;
	uint64_t seed = 3;

	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t what = random_below(&seed, 4);

		if (what < 2 && count < ARRAY_SIZE(all)) {
			/* An element that is in neither. */
			struct job *job = NULL;

			for (bool used = true; used; next++) {
				job = &all[next % ARRAY_SIZE(all)];
				used = false;
				for (size_t i = 0; i < model_count; i++)
					used |= model[i] == job;
			}
			*job = (struct job){ random_below(&seed, 50), step };
			jobs_push(heap, &count, job);
			model[model_count++] = job;
		} else if (what == 2 && count) {
			/* The first element becomes due later. */
			heap[0]->due += random_below(&seed, 30);
			jobs_sift_down(heap, count, 0);
		} else if (what == 3 && count) {
			assert_ptr_equal(heap[0], take_least(model, &model_count));
			jobs_pop(heap, &count);
		}
		assert_int_equal(count, model_count);
	}
	for (size_t i = 0; i < count; i++)
		heap[i]->due = random_below(&seed, 50);
	jobs_build(heap, count);
	assert_true(count > 2);
	while (count) {
		assert_ptr_equal(heap[0], take_least(model, &model_count));
		jobs_pop(heap, &count);
	}
	assert_int_equal(model_count, 0);
}

struct pair {
	uint32_t key, value; /* key 0: free */
};
/* Few home slots: probes are long and wrap around the table's end. */
#define PAIR_HASH(key) ((size_t)((key) % 13 * 5 - 7))
DECLARE_TABLE(pairs, struct pair);
DEFINE_TABLE(pairs, struct pair, uint32_t, slot->key != 0, PAIR_HASH(slot->key), slot->key == key);

#define KEYS 160

static void check_pairs(const struct pairs *t, const uint32_t model[static KEYS])
{
	uint32_t count = 0, seen = 0;

	for (uint32_t key = 1; key < KEYS; key++) {
		const struct pair *p = pairs_find(t, PAIR_HASH(key), key);

		assert_int_equal(p ? p->value : 0, model[key]);
		count += model[key] != 0;
	}
	assert_int_equal(t->count, count);
	assert_true(t->count * 2 <= t->size);
	TABLE_FOR_EACH(pairs, t, p)
	{
		assert_int_equal(p->value, model[p->key]);
		seen++;
	}
	assert_int_equal(seen, count);
}

static void put(struct pairs *t, uint32_t key, uint32_t value)
{
	struct pair *p = pairs_place(t, PAIR_HASH(key), key);

	if (!p) {
		fail();
		return;
	}
	t->count += !p->key;
	*p = (struct pair){ key, value };
}

static void table_is_the_model(void **state _unused_)
{
	uint32_t model[KEYS] = { 0 }, largest = 0;
	struct pairs t = { 0 };
	uint64_t seed = 4;

	check_pairs(&t, model);
	for (uint32_t step = 1; step < 12000; step++) {
		uint32_t key = 1 + random_below(&seed, KEYS - 1);
		struct pair *p = pairs_find(&t, PAIR_HASH(key), key);

		/* The table fills and empties in turn. */
		if (random_below(&seed, 8) < (step / 1000 % 2 ? 2 : 6)) {
			put(&t, key, step);
			model[key] = step;
		} else if (p) {
			pairs_remove(&t, p);
			model[key] = 0;
		}
		largest = MAX(largest, t.count);
		check_pairs(&t, model);
	}
	assert_true(largest > 100);
	TABLE_CLEAR(&t);
	memset(model, 0, sizeof(model));
	check_pairs(&t, model);
	put(&t, 5, 6);
	model[5] = 6;
	check_pairs(&t, model);
	TABLE_DEINIT(&t);
	assert_null(t.slots);
}

static void reserved_table_does_not_move(void **state _unused_)
{
	struct pairs t = { 0 };
	const struct pair *slots, *found;

	assert_int_equal(pairs_reserve(&t, 512), 0);
	assert_int_equal(t.size, 1024);
	slots = t.slots;
	for (uint32_t key = 1; key <= 512; key++)
		put(&t, key, key);
	assert_ptr_equal(t.slots, slots);
	put(&t, 513, 1);
	assert_int_equal(t.size, 2048);
	found = pairs_find(&t, PAIR_HASH(77), 77);
	assert_int_equal(found ? found->value : 0, 77);
	TABLE_DEINIT(&t);
}

static void table_without_memory_keeps_what_it_has(void **state _unused_)
{
	uint32_t model[KEYS] = { 0 };
	struct pairs t = { 0 };

	no_memory = true;
	assert_null(pairs_place(&t, PAIR_HASH(1), 1));
	no_memory = false;
	for (uint32_t key = 1; key <= TABLE_FIRST / 2; key++) {
		put(&t, key, key);
		model[key] = key;
	}
	no_memory = true;
	assert_null(pairs_place(&t, PAIR_HASH(100), 100));
	assert_int_equal(pairs_reserve(&t, 1000), -ENOMEM);
	no_memory = false;
	check_pairs(&t, model);
	TABLE_DEINIT(&t);
}

static void table_has_a_largest_size(void **state _unused_)
{
	struct pairs t = { 0 };

	assert_int_equal(table_size_for(1, 0), TABLE_FIRST);
	assert_int_equal(table_size_for(33, 64), 128);
	assert_int_equal(table_size_for(TABLE_SIZE_MAX / 2, 64), TABLE_SIZE_MAX);
	assert_int_equal(table_size_for(TABLE_SIZE_MAX / 2 + 1, 64), 0);
	assert_int_equal(pairs_reserve(&t, UINT32_MAX), -ENOMEM);
	assert_null(t.slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vec_is_the_model),
		cmocka_unit_test(vec_grows_in_few_blocks),
		cmocka_unit_test(vec_without_memory_keeps_what_it_has),
		cmocka_unit_test(vec_does_not_overflow),
		cmocka_unit_test(vec_exact_has_no_room_to_spare),
		cmocka_unit_test(lower_bound_is_the_first),
		cmocka_unit_test(heap_is_the_model),
		cmocka_unit_test(table_is_the_model),
		cmocka_unit_test(reserved_table_does_not_move),
		cmocka_unit_test(table_without_memory_keeps_what_it_has),
		cmocka_unit_test(table_has_a_largest_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
