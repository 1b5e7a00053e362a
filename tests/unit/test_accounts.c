/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/service/accounts.h"
#include "own_folder.h"

#define SUBUID "subuid"

static void put(const char *path, const char *text)
{
	assert_int_equal(replace_file(path, text, strlen(text), 0644, false), 0);
}

static struct accounts *made(const char *subuid)
{
	struct accounts *a;

	put(SUBUID, subuid);
	put("passwd", "root:x:0:0::/root:/bin/sh\n"
		      "alice:x:1000:1000::/:/bin/sh\n"
		      "+broken\n"
		      "bob:x:1001:1001::/:/bin/sh\n"
		      "1003:x:1004:1004::/:/bin/sh\n");
	assert_int_equal(accounts_new(&a), 0);
	a->subuid = SUBUID;
	a->passwd = "passwd";
	return a;
}

static void ranges_count_as_their_owner(void **state _unused_)
{
	struct accounts *a = made("bob:165536:65536\n\n# a comment\nalice:100000:65536\n"
				  "1002:231072:1\nalice:300000:10\n1003:400000:1\n"
				  "alice:0x80000:010");

	assert_int_equal(accounts_of(a, 1000), 1000);
	assert_int_equal(accounts_of(a, 99999), 99999);
	assert_int_equal(accounts_of(a, 100000), 1000);
	assert_int_equal(accounts_of(a, 165535), 1000);
	assert_int_equal(accounts_of(a, 165536), 1001);
	assert_int_equal(accounts_of(a, 231071), 1001);
	assert_int_equal(accounts_of(a, 231072), 1002);
	assert_int_equal(accounts_of(a, 231073), 231073);
	assert_int_equal(accounts_of(a, 300009), 1000);
	/* A user whose name is a number. */
	assert_int_equal(accounts_of(a, 400000), 1004);
	assert_int_equal(accounts_of(a, 0x80007), 1000);
	assert_int_equal(accounts_of(a, 0x80008), 0x80008);
	accounts_free(a);
}

static void nobody_counts_as_root(void **state _unused_)
{
	struct accounts *a =
		made("root:100000:65536\n0:200000:100\nalice:0:10\nnobody-here:300000:9\n"
		     "root:0:1\nroot:4294967294:1\nroot:20:4\n");

	assert_int_equal(accounts_of(a, 0), 0);
	assert_int_equal(accounts_of(a, 1), 1000);
	assert_int_equal(accounts_of(a, 9), 1000);
	assert_int_equal(accounts_of(a, 10), 10);
	assert_int_equal(accounts_of(a, 23), 20);
	assert_int_equal(accounts_of(a, 165535), 100000);
	assert_int_equal(accounts_of(a, 200099), 200000);
	assert_int_equal(accounts_of(a, 300008), 300000);
	assert_int_equal(accounts_of(a, UINT32_MAX - 1), UINT32_MAX - 1);
	accounts_free(a);
}

static void shared_parts_count_as_nobodys(void **state _unused_)
{
	struct accounts *a = made("alice:100000:1000\nbob:100500:1000\nalice:100000:10\n"
				  "root:100900:10\n");

	assert_int_equal(accounts_of(a, 100005), 1000);
	assert_int_equal(accounts_of(a, 100499), 1000);
	assert_int_equal(accounts_of(a, 100500), 100500);
	assert_int_equal(accounts_of(a, 100899), 100500);
	assert_int_equal(accounts_of(a, 100905), 100900);
	assert_int_equal(accounts_of(a, 100999), 100500);
	assert_int_equal(accounts_of(a, 101000), 1001);
	accounts_free(a);
}

static void broken_lines_hide_no_others(void **state _unused_)
{
	static const char *const broken[] = {
		"alice",
		"alice:",
		"alice:1",
		"alice:100000:",
		"alice::10",
		":100000:10",
		"alice:-1:10",
		"alice:100000:-1",
		"alice:100000:0",
		"alice:100000:10:",
		"alice:100000:10:1",
		"alice:1e5:10",
		"alice: 100000:10",
		"alice:100000:10 ",
		"alice:4294967295:1",
		"alice:99999999999999999999:10",
		"alice:100000:99999999999999999999999",
		"::",
		":::",
		"alice:0:1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		struct accounts *a;

		buf_printf(&text, "%s\nbob:100000:10\n%s", broken[i], broken[i]);
		a = made(buf_string(&text));
		assert_int_equal(accounts_of(a, 100009), 1001);
		assert_int_equal(accounts_of(a, 100010), 100010);
		assert_int_equal(accounts_of(a, 0), 0);
		accounts_free(a);
	}
}

static void a_zero_spoils_its_line(void **state _unused_)
{
	static const char text[] = "alice\0:5:1\nbob:100000:10\n";
	struct accounts *a = made("");

	assert_int_equal(replace_file(SUBUID, text, sizeof(text) - 1, 0644, false), 0);
	assert_int_equal(accounts_of(a, 5), 5);
	assert_int_equal(accounts_of(a, 100000), 1001);
	accounts_free(a);
}

static void ranges_end_with_the_last_id(void **state _unused_)
{
	struct accounts *a =
		made("alice:4294960000:18446744073709551615\nbob:4000000000:4294967296\n");

	assert_int_equal(accounts_of(a, 4000000000), 1001);
	assert_int_equal(accounts_of(a, 4294959999), 1001);
	assert_int_equal(accounts_of(a, 4294960001), 4294960000);
	assert_int_equal(accounts_of(a, UINT32_MAX - 1), 4294960000);
	/* No user's. */
	assert_int_equal(accounts_of(a, UINT32_MAX), UINT32_MAX);
	accounts_free(a);
}

static void a_changed_file_is_read_again(void **state _unused_)
{
	struct accounts *a = made("alice:100000:10\n");

	assert_int_equal(accounts_of(a, 100000), 1000);
	put(SUBUID, "bob:100000:10\n");
	assert_int_equal(accounts_of(a, 100000), 1001);
	assert_int_equal(unlink(SUBUID), 0);
	assert_int_equal(accounts_of(a, 100000), 100000);
	/* A name's number changes, and a name has none any more. */
	put(SUBUID, "bob:100000:10\n");
	assert_int_equal(accounts_of(a, 100000), 1001);
	put("passwd", "bob:x:1003:1003::/:/bin/sh\n");
	assert_int_equal(accounts_of(a, 100000), 1003);
	assert_int_equal(unlink("passwd"), 0);
	assert_int_equal(accounts_of(a, 100009), 100000);
	put(SUBUID, "bob:100000:10\n1002:200000:10\n");
	assert_int_equal(accounts_of(a, 100009), 100000);
	assert_int_equal(accounts_of(a, 200009), 1002);
	accounts_free(a);
}

static void a_large_file_is_not_read(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct accounts *a = made("");

	for (unsigned i = 0; i < 60000; i++)
		buf_printf(&text, "alice:%u:9\n", 100000 + i * 10);
	assert_true(text.len < 1 << 20);
	put(SUBUID, buf_string(&text));
	assert_int_equal(accounts_of(a, 100000 + 59999 * 10), 1000);
	assert_int_equal(accounts_of(a, 100000 + 59998 * 10 + 9), 100000 + 59998 * 10 + 9);
	while (text.len <= 1 << 20)
		buf_puts(&text, "alice:5:1\n");
	put(SUBUID, buf_string(&text));
	assert_int_equal(accounts_of(a, 100000), 100000);
	accounts_free(a);
}

#define FOLDER_TEST(name)                                                                          \
	cmocka_unit_test_setup_teardown(name, own_folder_setup, own_folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(ranges_count_as_their_owner),
		FOLDER_TEST(nobody_counts_as_root),
		FOLDER_TEST(shared_parts_count_as_nobodys),
		FOLDER_TEST(broken_lines_hide_no_others),
		FOLDER_TEST(a_zero_spoils_its_line),
		FOLDER_TEST(ranges_end_with_the_last_id),
		FOLDER_TEST(a_changed_file_is_read_again),
		FOLDER_TEST(a_large_file_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
