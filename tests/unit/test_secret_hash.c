/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Neighbouring keys spread over a table, whatever secret a process draws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/secret_hash.h"

#define SLOTS 4096
#define KEYS (SLOTS / 2)
#define SECRETS 500
/* Random slots of a table that is half full come to a half. */
#define PASSED_MAX (2 * KEYS)

static uint64_t by_u32(uint64_t key)
{
	return hash_u32((uint32_t)key);
}

static uint64_t by_pair(uint64_t key)
{
	return hash_pair((int32_t)(key >> 8), (int32_t)(key & 255));
}

/* Returns how many used slots linear probing passes. */
static size_t fill(uint64_t (*hash)(uint64_t key), uint64_t step)
{
	bool used[SLOTS] = { false };
	size_t passed = 0;

	for (uint64_t i = 0; i < KEYS; i++) {
		uint64_t slot = hash(1000 + i * step) % SLOTS;

		for (; used[slot]; slot = (slot + 1) % SLOTS)
			passed++;
		used[slot] = true;
	}
	return passed;
}

static void neighbours_spread(void **state _unused_)
{
	static const struct {
		const char *name;
		uint64_t (*hash)(uint64_t key);
	} hashes[] = { { "u32", by_u32 }, { "number", hash_number }, { "pair", by_pair } };
	static const uint64_t steps[] = { 1, 2, 16, 4096 };
	uint64_t drawn = 1;

	for (size_t n = 0; n < SECRETS; n++) {
		drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		hash_secret_set(drawn, drawn ^ drawn >> 31);
		for (size_t h = 0; h < ARRAY_SIZE(hashes); h++)
			for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
				size_t passed = fill(hashes[h].hash, steps[s]);

				if (passed > PASSED_MAX)
					fail_msg("%s, step %u, secret %zu: %zu slots for %d keys",
						 hashes[h].name, (unsigned)steps[s], n, passed,
						 KEYS);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
