/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Texts of events/header_page: the kernel's, and invalid ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stream/layout.h"

#define TIMESTAMP "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
#define COMMIT64 "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
#define COMMIT32 "\tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n"
#define OVERWRITE "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
#define DATA64 "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
#define DATA32 "\tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n"

static const char page64[] = TIMESTAMP COMMIT64 OVERWRITE DATA64;
static const char page32[] = TIMESTAMP COMMIT32 DATA32;

static int parse(struct subbuf_layout *l, const char *text, uint32_t size)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	int r;

	/* Without a terminator: sanitizers see reads beyond it. */
	assert_non_null(copy);
	memcpy(copy, text, len);
	r = subbuf_layout_parse(l, copy, len, size);
	free(copy);
	return r;
}

static void both_word_sizes(void **state)
{
	struct subbuf_layout l;

	(void)state;
	assert_int_equal(parse(&l, page64, 0), 0);
	assert_int_equal(l.size, 4096);
	assert_int_equal(l.timestamp_offset, 0);
	assert_int_equal(l.commit_offset, 8);
	assert_int_equal(l.commit_size, 8);
	assert_int_equal(l.data_offset, 16);
	assert_int_equal(parse(&l, page64, 65536), 0);
	assert_int_equal(l.size, 65536);
	assert_int_equal(parse(&l, page32, 0), 0);
	assert_int_equal(l.size, 4096);
	assert_int_equal(l.commit_size, 4);
	assert_int_equal(l.data_offset, 12);
}

static void no_longer_than_the_kernels(void **state)
{
	struct subbuf_layout l;

	(void)state;
	assert_int_equal(parse(&l, page64, SUBBUF_SIZE_MAX), 0);
	assert_int_equal(parse(&l, page64, SUBBUF_SIZE_MAX + 4), -EBADMSG);
	assert_int_equal(parse(&l, page64, 16), -EBADMSG);
	assert_int_equal(parse(&l, page64, 20), 0);
}

static void every_cut_is_refused(void **state)
{
	struct subbuf_layout l;
	char text[sizeof(page64)];

	(void)state;
	/* Nothing is complete before the last digit's semicolon. */
	for (size_t len = 0; len < strlen(page64) - strlen("\tsigned:0;\n"); len++) {
		snprintf(text, sizeof(text), "%.*s", (int)len, page64);
		assert_int_equal(parse(&l, text, 0), -EBADMSG);
	}
}

static void impossible_layouts_are_refused(void **state)
{
	static const char *const bad[] = {
		"\tfield: local_t xcommit;\toffset:8;\tsize:8;\n" TIMESTAMP DATA64,
		TIMESTAMP COMMIT64 DATA32, /* data overlaps commit */
		TIMESTAMP "\tfield: local_t commit;\toffset:8;\tsize:2;\n" DATA64,
		TIMESTAMP "\tfield: local_t commit;\toffset:4294967295;\tsize:8;\n" DATA64,
		TIMESTAMP "\tfield: local_t commit;\toffset:-8;\tsize:8;\n" DATA64,
		TIMESTAMP COMMIT64 "\tfield: char data;\toffset:4294967280;\tsize:4080;\n",
		TIMESTAMP COMMIT64 "\tfield: char data;\toffset:16;\tsize:4294967295;\n",
		TIMESTAMP COMMIT64 "\tfield: char data;\toffset:16;\tsize:99999999999999;\n",
		TIMESTAMP COMMIT64 "\tfield: char data;\toffset:17;\tsize:4079;\n",
		TIMESTAMP COMMIT64 "\tfield: char data;\toffset:16;\tsize:0;\n",
		"\tfield: u64 timestamp;\toffset:4294967288;\tsize:8;\n" COMMIT64 DATA64,
		"\tfield: u64 timestamp;\toffset:0;\tsize:4;\n" COMMIT64 DATA64,
	};
	struct subbuf_layout l;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse(&l, bad[i], 0), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_word_sizes),
		cmocka_unit_test(no_longer_than_the_kernels),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(impossible_layouts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
