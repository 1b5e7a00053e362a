/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/service/folder.h"
#include "own_folder.h"

static bool folder_is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static void test_last_holder_removes(void **state _unused_)
{
	struct folder first = FOLDER_INIT, second = FOLDER_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(folder_take(&first, "./a/b", 0755, &err), 0);
	assert_int_equal(folder_take(&second, "./a/b", 0755, &err), 0);
	assert_true(first.made && !second.made);
	/* Another daemon has it. */
	folder_remove(&first);
	assert_true(folder_is_there("a/b"));
	/* Did not make it. */
	folder_deinit(&first);
	folder_remove(&second);
	assert_true(folder_is_there("a/b"));
	folder_deinit(&second);
	assert_int_equal(rmdir("a/b"), 0);

	assert_int_equal(folder_take(&first, "./a/b", 0755, &err), 0);
	folder_remove(&first);
	assert_false(folder_is_there("a/b"));
	assert_true(folder_is_there("a"));
	folder_deinit(&first);
	rmdir("a");
}

static void test_full_folder_stays(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct folder f = FOLDER_INIT;

	assert_int_equal(folder_take(&f, "./full", 0755, &err), 0);
	assert_int_equal(mkdir("full/kept", 0755), 0);
	folder_remove(&f);
	assert_true(folder_is_there("full/kept"));
	folder_deinit(&f);
	rmdir("full/kept");
	rmdir("full");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_last_holder_removes, own_folder_setup,
						own_folder_teardown),
		cmocka_unit_test_setup_teardown(test_full_folder_stays, own_folder_setup,
						own_folder_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
