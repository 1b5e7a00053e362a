/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Regular expressions for functions: what they match, and the names in their place. */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "daemon/capture/plan/function_names.h"
#include "daemon/capture/tracefs/function_regex.h"
#include "fake_root.h"

#define WORDS(...)                                                                                 \
	((struct capture_words){ .items = (const char *const[]){ __VA_ARGS__ },                    \
				 .count = sizeof((const char *const[]){ __VA_ARGS__ }) /           \
					  sizeof(char *) })

static bool matches(const char *regex, const char *name)
{
	struct function_regex re;

	assert_int_equal(function_regex_compile(&re, regex, strlen(regex), NULL), 0);
	return function_regex_matches(&re, name);
}

/* The C library's regular expressions are the reference. */
static void expressions_match_as_posix_ones(void **state _unused_)
{
	static const char *const expressions[] = {
		"^vfs_(read|write)$",
		"vfs",
		"^vfs",
		"read$",
		"^$",
		"",
		"a*",
		"ab*c",
		"ab+c",
		"ab?c",
		"(ab)+$",
		"^(a|b)*c",
		"^(a|)b$",
		"[a-c]+_",
		"^[^_]*$",
		"[]x]",
		"[^]x]",
		"[a-]$",
		".",
		"x.z",
		"\\.isra",
		"^(vfs|ksys)_(p?(read|write)v?)[0-9]*$",
		"(a|ab)(c|bcd)$",
		"((a*)*)*b",
		"^a|b$",
		"(^a)|(b$)",
		"a^",
		"$a",

	};
	static const char *const names[] = {
		"",	     "a",	  "b",		"ab",
		"abc",	     "ac",	  "abbc",	"abab",
		"vfs_read",  "vfs_readv", "xvfs_write", "ksys_pread64",
		"vfs_write", "vfs",	  "a.isra.0",	"aXisra",
		"]",	     "x",	  "x_z",	"abcd",
		"c_",	     "-",	  "_",		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"aaaaab",    "bcb",
	};

	for (size_t i = 0; i < ARRAY_SIZE(expressions); i++) {
		regex_t reference;

		assert_int_equal(regcomp(&reference, expressions[i], REG_EXTENDED | REG_NOSUB), 0);
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			if (matches(expressions[i], names[k]) !=
			    (regexec(&reference, names[k], 0, NULL, 0) == 0))
				fail_msg("/%s/ and '%s'", expressions[i], names[k]);
		regfree(&reference);
	}
}

static void what_is_no_expression_is_refused(void **state _unused_)
{
	static const struct {
		const char *text, *says;
	} table[] = {
		{ "a(b", "a '(' has no ')'" },
		{ "a)b", "a ')' has no '('" },
		{ "[ab", "a '[' has no ']'" },
		{ "*a", "nothing to repeat" },
		{ "(+)", "nothing to repeat" },
		{ "a{2}", "counts such as {2}" },
		{ "(a)\\1", "backslash" },
		{ "a\\", "backslash" },
		{ "[[:alpha:]]", "classes" },
		{ "[z-a]", "reversed" },
		{ "(((((((((((((((((a)))))))))))))))))", "too deep" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "too many" },
	};
	char nested[300];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct function_regex re;

		assert_true(function_regex_compile(&re, table[i].text, strlen(table[i].text),
						   &err) < 0);
		if (!strstr(err.message, table[i].says))
			fail_msg("/%s/: %s", table[i].text, err.message);
	}
	memset(nested, '(', sizeof(nested));
	assert_int_equal(function_regex_compile(&(struct function_regex){ 0 }, nested, 255, NULL),
			 -EINVAL);
	assert_int_equal(function_regex_compile(&(struct function_regex){ 0 }, nested, 256, NULL),
			 -E2BIG);
}

/* An expression for which other matchers take 2^n steps. */
static void time_has_a_bound(void **state _unused_)
{
	char name[513] = { 0 };
	clock_t began = clock();

	memset(name, 'a', sizeof(name) - 1);
	for (int i = 0; i < 100; i++)
		assert_false(matches("^((a|a|aa)*)*((a*)*)*(a+)+(a+)+.*.*.*.*.*b$", name));
	assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
}

struct fixture {
	struct fake_root root;
	struct tracefs *fs;
	struct function_names names;
	struct capture_functions functions;
	struct error err;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	fake_dir(&f->root, "events");
	fake_file(&f->root, "available_filter_functions",
		  "vfs_read\nvfs_write\nvfs_readv\n__ftrace_invalid_address___12\n"
		  "ext4_read [ext4]\nksys_read\next4_read [ext4]\nxfs_read [xfs]\n");
	assert_int_equal(tracefs_open(&f->fs, f->root.path, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	function_names_deinit(&f->names);
	error_deinit(&f->err);
	tracefs_free(f->fs);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

static int expanded(struct fixture *f, const struct capture_functions *functions)
{
	int r;

	function_names_deinit(&f->names);
	f->functions = *functions;
	/* One word at a time. */
	do
		r = function_names_expand(&f->names, f->fs, &f->functions, 0, &f->err);
	while (r > 0);
	return r;
}
#define EXPAND(...) expanded(f, &(struct capture_functions){ __VA_ARGS__ })

static void make_functions(const struct fixture *f, unsigned count)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	for (unsigned i = 0; i < count; i++)
		buf_printf(&text, "many_%u\n", i);
	assert_non_null(buf_string(&text));
	fake_file(&f->root, "available_filter_functions", text.data);
}

static void check_words(const struct capture_words *words, const struct capture_words *wanted)
{
	assert_int_equal(words->count, wanted->count);
	for (size_t i = 0; i < words->count; i++)
		assert_string_equal(words->items[i], wanted->items[i]);
}

static void names_take_the_place_of_expressions(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(EXPAND(.only = WORDS("ksys_*", "/^vfs_(read|write)$/", "!/v$/",
					      "ksys_read:stacktrace"),
				.never = WORDS("/_read$/:mod:ext4"), .roots = WORDS("/^k/")),
			 0);
	check_words(&f->functions.only, &WORDS("ksys_*", "vfs_read", "vfs_write", "!vfs_readv",
					       "ksys_read:stacktrace"));
	check_words(&f->functions.never, &WORDS("ext4_read:mod:ext4"));
	check_words(&f->functions.roots, &WORDS("ksys_read"));
	/* Without an expression the kernel's list is not read. */
	unlink(fake_path(&f->root, "available_filter_functions"));
	assert_int_equal(EXPAND(.only = WORDS("vfs_*")), 0);
	check_words(&f->functions.only, &WORDS("vfs_*"));
	assert_int_equal(EXPAND(.only = WORDS("/vfs/")), -ENOENT);
	assert_non_null(strstr(f->err.hint, "CONFIG_FUNCTION_TRACER"));
}

static void unusable_expressions_are_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(EXPAND(.only = WORDS("/^vsf_/")), -ENOENT);
	assert_non_null(strstr(f->err.message, "'/^vsf_/'"));
	assert_int_equal(EXPAND(.only = WORDS("/^vfs_/:mod:ext4")), -ENOENT);
	assert_int_equal(EXPAND(.only = WORDS("/vfs")), -EINVAL);
	assert_non_null(strstr(f->err.message, "no '/' at its end"));
	assert_int_equal(EXPAND(.only = WORDS("/")), -EINVAL);
	assert_int_equal(EXPAND(.only = WORDS("!")), 0);
	assert_int_equal(EXPAND(.only = WORDS("")), 0);
	assert_int_equal(EXPAND(.only = WORDS("/vfs/:traceoff")), -EINVAL);
	assert_non_null(strstr(f->err.message, "only :mod:MODULE"));
	assert_int_equal(EXPAND(.never = WORDS("/a(/")), -EINVAL);
}

static void names_have_a_bound(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(EXPAND(.only = WORDS("/vfs/", "schedule"), .names_max = 4), 0);
	assert_int_equal(EXPAND(.only = WORDS("/vfs/", "schedule"), .names_max = 3), -E2BIG);
	assert_non_null(strstr(f->err.message, "more than 3 names"));
	assert_int_equal(EXPAND(.only = WORDS("/vfs/"), .never = WORDS("/vfs/"), .names_max = 5),
			 -E2BIG);
}

/* The words of a request have no bound but the length of its frame. */
static void an_expression_does_not_limit_plain_names(void **state)
{
	static const char *plain[FUNCTION_NAMES_MAX + 100];
	const struct capture_words words = { plain, ARRAY_SIZE(plain) };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		plain[i] = "ksys_read";
	assert_int_equal(EXPAND(.only = words, .never = WORDS("/^vfs_/")), 0);
	check_words(&f->functions.only, &words);
	check_words(&f->functions.never, &WORDS("vfs_read", "vfs_write", "vfs_readv"));
	assert_int_equal(EXPAND(.only = WORDS("/^vfs_/"), .never = words), 0);
	/* Names that expressions match have the usual bound. */
	make_functions(f, FUNCTION_NAMES_MAX + 1);
	assert_int_equal(EXPAND(.only = WORDS("/^many_.*[1-9]$/", "/^many_.*0$/")), -E2BIG);
	assert_non_null(strstr(f->err.message, "'/^many_.*0$/'"));
	assert_non_null(strstr(f->err.message, "more than 1024"));
	make_functions(f, FUNCTION_NAMES_MAX);
	assert_int_equal(EXPAND(.only = words, .never = WORDS("/^many_/")), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_match_as_posix_ones),
		cmocka_unit_test(what_is_no_expression_is_refused),
		cmocka_unit_test(time_has_a_bound),
		TEST(names_take_the_place_of_expressions),
		TEST(unusable_expressions_are_refused),
		TEST(names_have_a_bound),
		TEST(an_expression_does_not_limit_plain_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
