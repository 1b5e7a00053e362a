/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mappings of processes: which file an address belongs to, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
	assert_int_equal(a.mappings, 2);
	/* A mapping that ends beyond the last address is invalid. */
	map(&a, 1, UINT64_MAX - 10, 100, 0, "/d");
	map(&a, 1, 0x100, 0, 0, "/d");
	assert_int_equal(a.mappings, 2);
	assert_int_equal(address_spaces_fork(&a, 1, 5), 0);
	address_spaces_clear(&a, 1);
	assert_string_equal(path_at(&a, 5, 0x5000, &offset), "/c");
	assert_string_equal(path_at(&a, 1, 0x5000, &offset), "");
	assert_int_equal(a.mappings, 2);
	assert_int_equal(a.file_count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_mappings_take_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
