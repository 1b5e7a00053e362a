/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "export/block_file.h"
#include "memory_file.h"
#include "own_folder.h"
#include "random_series.h"

#define BLOCK (128U << 10)
/* Several of the stretches for which ext4 allocates space in advance. */
#define LONG (37U << 20)

static char *data; /* LONG bytes, all different */

static int make_data(void **state _unused_)
{
	uint64_t random = RANDOM_FIRST;

	data = malloc(LONG);
	assert_non_null(data);
	for (size_t i = 0; i < LONG; i += sizeof(random)) {
		random_next(&random);
		memcpy(data + i, &random, sizeof(random));
	}
	return 0;
}

static int free_data(void **state _unused_)
{
	free(data);
	return 0;
}

/* In the test's folder, on its filesystem. */
static int open_file(int flags)
{
	int fd = open("file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* ext4 allocates more space than the bytes need. */
static int open_nameless_file(void)
{
	int fd = open(".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd < 0) {
		print_message("this filesystem has no files without a name\n");
		skip();
	}
	return fd;
}

static void assert_holds(int fd, size_t from, size_t len)
{
	_cleanup_buf_ struct buf got = BUF_INIT;

	memory_file_read(fd, &got);
	assert_int_equal(got.len, from + len);
	assert_true(memcmp(got.data + from, data, len) == 0);
}

static uint64_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

/* Writes in batches of up to some hundred kilobytes, with a sync now and then. */
static void write_all(struct block_file *f, int fd, size_t from, size_t len)
{
	uint64_t random = RANDOM_FIRST;

	for (size_t at = 0, n; at < len; at += n) {
		uint64_t r = random_next(&random);

		n = MIN(len - at, r % 16 ? (size_t)(r >> 8) % 600000 : (size_t)(r >> 8) % 3);
		assert_int_equal(block_file_write(f, data + at, n), 0);
		if (r % 37)
			continue;
		assert_int_equal(block_file_flush(f), 0);
		assert_int_equal(size_of(fd), from + at + n);
	}
	assert_int_equal(block_file_flush(f), 0);
}

static void all_of_it_is_there_and_no_more(void **state _unused_)
{
	_cleanup_close_ int fd = open_nameless_file();
	struct block_file f;
	bool allocates;
	struct stat st;

	assert_int_equal(block_file_init(&f, fd), 0);
	if (!f.allocates)
		print_message("not on ext4: nothing is allocated before\n");
	write_all(&f, fd, 0, LONG);
	allocates = f.allocates;
	assert_true(!allocates || f.allocated > LONG);
	block_file_deinit(&f);
	assert_holds(fd, 0, LONG);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	/* The filesystem may add blocks for metadata; XFS allocates in its own way. */
	assert_true(!allocates || (uint64_t)st.st_blocks * 512 < LONG + (256U << 10));
}

static void writes_end_with_blocks(void **state _unused_)
{
	_cleanup_close_ int fd = open_file(0);
	struct block_file f;

	assert_int_equal(block_file_init(&f, fd), 0);
	assert_int_equal(block_file_write(&f, data, 100), 0);
	assert_int_equal(size_of(fd), 0);
	assert_int_equal(block_file_write(&f, data + 100, BLOCK - 101), 0);
	assert_int_equal(size_of(fd), 0);
	assert_int_equal(block_file_write(&f, data + BLOCK - 1, 1), 0);
	assert_int_equal(size_of(fd), BLOCK);
	assert_int_equal(block_file_write(&f, data + BLOCK, 2 * BLOCK + 5), 0);
	assert_int_equal(size_of(fd), 3 * BLOCK);
	assert_int_equal(block_file_flush(&f), 0);
	assert_int_equal(size_of(fd), 3 * BLOCK + 5);
	/* From there to the next boundary. */
	assert_int_equal(block_file_write(&f, data + 3 * BLOCK + 5, BLOCK), 0);
	assert_int_equal(size_of(fd), 4 * BLOCK);
	assert_int_equal(block_file_flush(&f), 0);
	block_file_deinit(&f);
	assert_holds(fd, 0, 4 * BLOCK + 5);
}

static void it_begins_where_the_descriptor_stands(void **state _unused_)
{
	static const char before[] = "what somebody wrote before\n";
	_cleanup_close_ int fd = open_file(0);
	char got[sizeof(before)];
	struct block_file f;

	assert_int_equal(write_full(fd, before, sizeof(before)), 0);
	assert_int_equal(block_file_init(&f, fd), 0);
	write_all(&f, fd, sizeof(before), LONG);
	block_file_deinit(&f);
	assert_holds(fd, sizeof(before), LONG);
	assert_int_equal(pread(fd, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(got, before, sizeof(before));
}

static void what_stands_behind_it_stays(void **state _unused_)
{
	_cleanup_close_ int fd = open_file(0);
	_cleanup_buf_ struct buf got = BUF_INIT;
	struct block_file f;

	assert_int_equal(pwrite(fd, "end", 3, 2 * LONG), 3);
	assert_int_equal(block_file_init(&f, fd), 0);
	for (size_t at = 0; at < LONG; at += 370001)
		assert_int_equal(block_file_write(&f, data + at, MIN(LONG - at, (size_t)370001)),
				 0);
	assert_int_equal(block_file_flush(&f), 0);
	block_file_deinit(&f);
	memory_file_read(fd, &got);
	assert_int_equal(got.len, 2 * LONG + 3);
	assert_true(memcmp(got.data, data, LONG) == 0);
	assert_true(got.data[LONG] == 0 &&
		    memcmp(got.data + LONG, got.data + LONG + 1, LONG - 1) == 0);
	assert_memory_equal(got.data + 2 * LONG, "end", 3);
}

/* A shell and the programs that it left running share its standard error. */
static void who_shares_the_descriptor_loses_nothing(void **state _unused_)
{
	_cleanup_close_ int fd = open_file(0);
	struct block_file f;
	size_t count = 0;

	assert_int_equal(block_file_init(&f, fd), 0);
	/* A file with a name is not truncated. */
	assert_false(f.allocates);
	for (size_t at = 0; at < LONG; at += 370001) {
		assert_int_equal(block_file_write(&f, data + at, MIN(LONG - at, (size_t)370001)),
				 0);
		assert_int_equal(write_full(fd, "another's", 9), 0);
		count++;
	}
	assert_int_equal(block_file_flush(&f), 0);
	assert_int_equal(write_full(fd, "another's", 9), 0);
	block_file_deinit(&f);
	assert_int_equal(size_of(fd), LONG + 9 * (count + 1));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), size_of(fd));
}

static void what_is_always_appended_to_gets_all_at_once(void **state _unused_)
{
	_cleanup_close_ int fd = open_file(O_APPEND);
	struct block_file f;

	assert_int_equal(write_full(fd, data, 5), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(block_file_init(&f, fd), 0);
	assert_int_equal(block_file_write(&f, data + 5, 10), 0);
	assert_int_equal(size_of(fd), 15);
	block_file_deinit(&f);
	assert_holds(fd, 0, 15);
}

static void a_pipe_gets_all_at_once(void **state _unused_)
{
	struct block_file f;
	char got[16];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(block_file_init(&f, fds[1]), 0);
	assert_int_equal(block_file_write(&f, data, 10), 0);
	assert_int_equal(read(fds[0], got, sizeof(got)), 10);
	assert_int_equal(block_file_flush(&f), 0);
	block_file_deinit(&f);
	close(fds[0]);
	close(fds[1]);
}

static void a_limit_is_told(void **state _unused_)
{
	_cleanup_close_ int fd = open_file(0);
	struct rlimit before, small;
	struct block_file f;
	int r = 0;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	/* In the middle of a block. */
	small.rlim_cur = (20U << 20) + 12345;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(block_file_init(&f, fd), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (size_t at = 0; r == 0 && at < LONG - 370001; at += 370001)
		r = block_file_write(&f, data + at, 370001);
	block_file_deinit(&f);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -EFBIG);
	assert_holds(fd, 0, small.rlim_cur);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, own_folder_setup, own_folder_teardown)
	const struct CMUnitTest tests[] = {
		TEST(all_of_it_is_there_and_no_more),
		TEST(writes_end_with_blocks),
		TEST(it_begins_where_the_descriptor_stands),
		TEST(what_stands_behind_it_stays),
		TEST(who_shares_the_descriptor_loses_nothing),
		TEST(what_is_always_appended_to_gets_all_at_once),
		TEST(a_pipe_gets_all_at_once),
		TEST(a_limit_is_told),
	};

	return cmocka_run_group_tests(tests, make_data, free_data);
}
