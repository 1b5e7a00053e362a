/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/error.h"
#include "util/io.h"
#include "util/log.h"
#include "util/nearest.h"
#include "util/siphash.h"

static void errors_carry_message_and_hint(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT, other = ERROR_INIT;

	assert_int_equal(error_errno(&err, -ENOENT, "%s", "out.json"), -ENOENT);
	assert_string_equal(err.message, "out.json: No such file or directory");
	assert_int_equal(error_hint(&err, "make %s first", "it"), -ENOENT);
	assert_int_equal(error_prefix(&err, "cannot write"), -ENOENT);
	assert_string_equal(err.message, "cannot write: out.json: No such file or directory");
	assert_string_equal(err.hint, "make it first");
	assert_int_equal(error_move(&other, &err), -ENOENT);
	assert_null(err.message);
	assert_int_equal(other.code, ENOENT);
	/* A message may be built from the one it replaces. */
	error_set(&other, -EIO, "%s!", other.message);
	assert_string_equal(other.message, "cannot write: out.json: No such file or directory!");
	assert_null(other.hint);
	assert_int_equal(error_set(NULL, -EIO, "x"), -EIO);
	/* The wrong sign must not pass for success. */
	assert_int_equal(error_set(NULL, EIO, "x"), -EIO);
	assert_int_equal(error_errno(&err, EIO, "x"), -EIO);
	assert_string_equal(err.message, "x: Input/output error");
}

static void nearest(void **state _unused_)
{
	static const char *const names[] = { "sched",	     "sock",   "irq",
					     "sched_switch", "signal", "syscalls" };
	const char *best[NEAREST_MAX];

	assert_int_equal(nearest_names("shced", names, ARRAY_SIZE(names), best), 1);
	assert_string_equal(best[0], "sched");
	assert_int_equal(nearest_names("switch", names, ARRAY_SIZE(names), best), 1);
	assert_string_equal(best[0], "sched_switch");
	assert_int_equal(nearest_names("zebra", names, ARRAY_SIZE(names), best), 0);
	assert_int_equal(nearest_names("", names, ARRAY_SIZE(names), best), 0);
	assert_true(nearest_names("sch", names, ARRAY_SIZE(names), best) <= NEAREST_MAX);
}

static void siphash_matches_the_reference(void **state _unused_)
{
	uint8_t key[16];

	for (uint8_t i = 0; i < sizeof(key); i++)
		key[i] = i;
	/* The authors' vectors, key 00..0f, message 00..07: 0x93f5f5799a932462. */
	assert_true(siphash_u64(key, UINT64_C(0x0706050403020100)) == UINT64_C(0x93f5f5799a932462));
}

static void small_files(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/stat", 4096, &b), 0);
	assert_true(b.len > 10);
	buf_clear(&b);
	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/stat", 3, &b), -EFBIG);
	assert_int_equal(read_file_at(AT_FDCWD, "/nowhere/at/all", 3, &b), -ENOENT);
}

static void whole_writes(void **state _unused_)
{
	_cleanup_close_ int r = -EBADF, w = -EBADF;
	char text[8] = "";
	int p[2];

	assert_int_equal(pipe(p), 0);
	r = p[0];
	w = p[1];
	struct iovec iov[] = { { .iov_base = (char[]){ 'a', 'b' }, .iov_len = 2 },
			       { .iov_base = NULL, .iov_len = 0 },
			       { .iov_base = (char[]){ 'c' }, .iov_len = 1 } };

	assert_int_equal(writev_full(w, iov, 3), 0);
	w = close_fd(w);
	assert_int_equal(read_full(r, text, sizeof(text)), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(write_full(r, "x", 1), -EBADF);
}

static void log_is_limited(void **state _unused_)
{
	struct log_limit limit = { .burst = 2, .interval_s = 1000 };

	assert_true(log_limit_pass(&limit));
	assert_true(log_limit_pass(&limit));
	assert_false(log_limit_pass(&limit));
	assert_int_equal(limit.held, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_carry_message_and_hint),
		cmocka_unit_test(nearest),
		cmocka_unit_test(siphash_matches_the_reference),
		cmocka_unit_test(small_files),
		cmocka_unit_test(whole_writes),
		cmocka_unit_test(log_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
