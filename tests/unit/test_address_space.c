/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mappings of processes: which file an address belongs to, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "random_series.h"
#include "samples/address_space.h"

static void map(struct address_spaces *a, int32_t pid, uint64_t start, uint64_t length,
		uint64_t offset, const char *path)
{
	const struct new_mapping m = { start, length, offset, path, strlen(path), NULL, 0 };

	assert_int_equal(address_spaces_map(a, pid, &m), 0);
}

static const char *path_at(const struct address_spaces *a, int32_t pid, uint64_t address,
			   uint64_t *offset)
{
	const struct code_mapping *m = address_spaces_find(a, pid, address);

	if (m)
		*offset = address - m->start + m->offset;
	return m ? a->files[m->file].path : "";
}

static void later_mappings_take_their_place(void **state _unused_)
{
	_cleanup_(address_spaces_deinit) struct address_spaces a = { 0 };
	uint64_t offset;

	map(&a, 1, 0x1000, 0x5000, 0, "/a");
	map(&a, 1, 0x3000, 0x1000, 0, "/b");
	assert_string_equal(path_at(&a, 1, 0x2fff, &offset), "/a");
	assert_string_equal(path_at(&a, 1, 0x3000, &offset), "/b");
	assert_string_equal(path_at(&a, 1, 0x4001, &offset), "/a");
	assert_int_equal(offset, 0x3001);
	assert_string_equal(path_at(&a, 1, 0x6000, &offset), "");
	assert_string_equal(path_at(&a, 1, 0xfff, &offset), "");
	assert_string_equal(path_at(&a, 2, 0x3000, &offset), "");
	map(&a, 1, 0x2000, 0x8000, 0, "/c");
	assert_string_equal(path_at(&a, 1, 0x1fff, &offset), "/a");
	assert_string_equal(path_at(&a, 1, 0x5000, &offset), "/c");
	assert_int_equal(address_spaces_count(&a), 2);
	/* A mapping that ends beyond the last address is invalid. */
	map(&a, 1, UINT64_MAX - 10, 100, 0, "/d");
	map(&a, 1, 0x100, 0, 0, "/d");
	assert_int_equal(address_spaces_count(&a), 2);
	assert_int_equal(address_spaces_fork(&a, 1, 5), 0);
	address_spaces_clear(&a, 1);
	assert_string_equal(path_at(&a, 5, 0x5000, &offset), "/c");
	assert_string_equal(path_at(&a, 1, 0x5000, &offset), "");
	assert_int_equal(address_spaces_count(&a), 2);
	assert_int_equal(a.file_count, 3);
}

#define PIDS 4
#define PAGES 20000

/* A page's file and offset, per process: what the list should say. */
struct model {
	uint32_t file[PIDS][PAGES]; /* number + 1; 0: none */
	uint64_t offset[PIDS][PAGES];
};

static void check_model(const struct address_spaces *a, const struct model *m)
{
	for (int32_t pid = 0; pid < PIDS; pid++)
		for (uint64_t page = 0; page < PAGES; page++) {
			uint64_t offset = 0;
			const char *path = path_at(a, pid, page * 4096 + 7, &offset);

			if (!m->file[pid][page]) {
				assert_string_equal(path, "");
				continue;
			}
			assert_int_equal(path[1] - 'a' + 1, m->file[pid][page]);
			assert_int_equal(offset, m->offset[pid][page] + 7);
		}
}

static void map_both(struct address_spaces *a, struct model *m, uint64_t *random)
{
	int32_t pid = (int32_t)(random_next(random) % PIDS);
	uint64_t first = random_next(random) % PAGES, file = random_next(random) % 20;
	uint64_t pages = random_next(random) % 50 ? random_next(random) % 4 + 1
						  : random_next(random) % 500 + 1;
	char path[] = "/a";

	pages = MIN(pages, PAGES - first);
	path[1] = (char)('a' + file);
	map(a, pid, first * 4096, pages * 4096, first << 20, path);
	for (uint64_t i = 0; i < pages; i++) {
		m->file[pid][first + i] = (uint32_t)file + 1;
		m->offset[pid][first + i] = (first << 20) + i * 4096;
	}
}

/* Many mappings, of processes that share them until one changes its own. */
static void lists_say_what_a_model_says(void **state _unused_)
{
	_cleanup_(address_spaces_deinit) struct address_spaces a = { 0 };
	_cleanup_free_ struct model *m = calloc(1, sizeof(*m));
	uint64_t random = 1;

	assert_non_null(m);
	for (int i = 0; i < 20000; i++) {
		int32_t pid = (int32_t)(random_next(&random) % PIDS);
		int32_t from = (int32_t)(random_next(&random) % PIDS);

		map_both(&a, m, &random);
		if (random_next(&random) % 300 == 0 && from != pid) {
			assert_int_equal(address_spaces_fork(&a, from, pid), 0);
			memcpy(m->file[pid], m->file[from], sizeof(m->file[pid]));
			memcpy(m->offset[pid], m->offset[from], sizeof(m->offset[pid]));
		} else if (random_next(&random) % 2000 == 0) {
			address_spaces_clear(&a, pid);
			memset(m->file[pid], 0, sizeof(m->file[pid]));
		}
		if (i % 1000 == 0)
			check_model(&a, m);
	}
	check_model(&a, m);
	for (int32_t pid = 0; pid < PIDS; pid++)
		address_spaces_clear(&a, pid);
	assert_int_equal(a.memory.used, 0);
	assert_int_equal(a.spaces.count, 0);
	assert_int_equal(a.refused, 0);
}

/* A process has a limit of its own; the others still find room. */
static void a_process_takes_only_its_share(void **state _unused_)
{
	_cleanup_(address_spaces_deinit) struct address_spaces a = { 0 };
	uint64_t offset;

	for (uint64_t i = 0; i < 70000; i++)
		map(&a, 1, (UINT64_C(1) << 40) - i * 8192, 4096, 0, "/greedy");
	assert_in_range(address_spaces_count(&a), 65000, 65536);
	assert_int_equal(a.refused, 70000 - address_spaces_count(&a));
	map(&a, 2, 4096, 4096, 0, "/modest");
	assert_string_equal(path_at(&a, 2, 4096, &offset), "/modest");
}

/* Each is the child of the one before, and they share most mappings. */
static void children_do_not_grow_without_end(void **state _unused_)
{
	_cleanup_(address_spaces_deinit) struct address_spaces a = { 0 };
	const uint64_t full = 65536;
	uint64_t offset;

	for (uint64_t i = 0; i < full; i++)
		map(&a, 1, i * 8192, 4096, 0, "/parent");
	for (int32_t pid = 2; pid < 20; pid++) {
		assert_int_equal(address_spaces_fork(&a, pid - 1, pid), 0);
		/* Replaces one. */
		map(&a, pid, 8192, 4096, 0, "/child");
		assert_string_equal(path_at(&a, pid - 1, 8192, &offset),
				    pid > 2 ? "/child" : "/parent");
		for (uint64_t i = 0; i < 200; i++)
			map(&a, pid, (full + (uint64_t)pid * 200 + i) * 8192, 4096, 0, "/child");
		assert_string_equal(path_at(&a, pid, 16384, &offset), "/parent");
		address_spaces_clear(&a, pid - 1);
		assert_in_range(address_spaces_count(&a), full - 4, full + 256);
	}
	assert_string_equal(path_at(&a, 19, 8192, &offset), "/child");
	assert_in_range(a.refused, 18 * 200 - 256, 18 * 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_mappings_take_their_place),
		cmocka_unit_test(lists_say_what_a_model_says),
		cmocka_unit_test(a_process_takes_only_its_share),
		cmocka_unit_test(children_do_not_grow_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
