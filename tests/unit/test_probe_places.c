/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The list of places for probes; test_btf.c tests their arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_root.h"
#include "kernel/probe_places.h"

struct fixture {
	struct fake_root root;
	struct tracefs *fs;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	fake_dir(&f->root, "events");
	fake_dir(&f->root, "instances");
	fake_file(&f->root, "available_filter_functions",
		  "vfs_write\nvfs_read\next4_sync_fs [ext4]\nvfs_readv\n");
	assert_int_equal(tracefs_open(&f->fs, f->root.path, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tracefs_free(f->fs);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

static int find(struct probe_places *p, struct fixture *f, const char *btf, char **globs,
		size_t count, struct error *err)
{
	return probe_places_find(p, f->fs, fake_path(&f->root, btf), globs, count, err);
}

static void functions_are_listed_by_name(void **state)
{
	_cleanup_probe_places_ struct probe_places p = { 0 };
	char *globs[] = { (char *)"vfs_read*", (char *)"ext4_*" };

	assert_int_equal(find(&p, *state, "none", globs, 2, NULL), 0);
	assert_true(p.untyped);
	assert_int_equal(p.count, 3);
	assert_string_equal(p.items[0].name, "ext4_sync_fs");
	assert_string_equal(p.items[0].module, "ext4");
	assert_string_equal(p.items[1].name, "vfs_read");
	assert_null(p.items[1].module);
	assert_null(p.items[1].prototype);
	assert_string_equal(p.items[2].name, "vfs_readv");
}

static void all_are_listed_without_a_glob(void **state)
{
	_cleanup_probe_places_ struct probe_places p = { 0 };

	assert_int_equal(find(&p, *state, "none", NULL, 0, NULL), 0);
	assert_int_equal(p.count, 4);
}

static void a_glob_without_a_match_is_named(void **state)
{
	_cleanup_probe_places_ struct probe_places p = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	char *globs[] = { (char *)"vfs_*", (char *)"vfs_raed" };

	assert_int_equal(find(&p, *state, "none", globs, 2, &err), -ENOENT);
	assert_non_null(strstr(err.message, "'vfs_raed'"));
	assert_non_null(strstr(err.hint, "vfs_read"));
}

static void damaged_types_are_left_out(void **state)
{
	_cleanup_probe_places_ struct probe_places p = { 0 };
	struct fixture *f = *state;
	char *globs[] = { (char *)"vfs_read" };

	fake_file(&f->root, "btf/vmlinux", "\x9f\xeb\x01 and no more");
	fake_file(&f->root, "btf/ext4", "no more");
	assert_int_equal(find(&p, f, "btf", globs, 1, NULL), 0);
	assert_true(p.untyped);
	assert_int_equal(p.count, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(functions_are_listed_by_name),
		TEST(all_are_listed_without_a_glob),
		TEST(a_glob_without_a_match_is_named),
		TEST(damaged_types_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
