/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For each kernel in tests/data: its captures CASE.traced.gz against CASE.txt.gz, the kernel's own
 * text of the same buffer, line by line; and against CASE.VIEW.txt.gz, its text with the trace
 * options of CASE.VIEW.options. For a name that the kernel forgot ("<...>") ours may be anything.
 * tests/integration/unknowable.txt lists what only the kernel can know.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "fixture.h"

#define KERNELS_MIN 3

struct comparison {
	const char *kernel, *name; /* of the text */
	char *unknowable;	   /* starts with a newline */
	unsigned long lines, different, excused;
};

/* The next line, terminated in place; NULL: there is none. */
static char *next_line(char **text)
{
	char *line = *text, *end;

	if (!line || !*line)
		return NULL;
	end = strchr(line, '\n');
	*text = end ? end + 1 : line + strlen(line);
	if (end)
		*end = '\0';
	return line;
}

/* "NAME-PID [CPU] flags time: event: ...": where "-PID" begins; line itself for any other line. */
static const char *behind_name(const char *line)
{
	const char *p = strstr(line, " [0");

	while (p && p > line && (*p == ' ' || (*p >= '0' && *p <= '9')))
		p--;
	return p && *p == '-' ? p : line;
}

static bool is_unknowable(const struct comparison *c, const char *rest)
{
	const char *event = strstr(rest, ": "), *end;
	char pattern[128];

	if (!event)
		return false;
	event += 2;
	end = strchr(event, ':');
	if (!end)
		return false;
	snprintf(pattern, sizeof(pattern), "\n%.*s:", (int)(end - event), event);
	return strstr(c->unknowable, pattern) != NULL;
}

static void compare_lines(struct comparison *c, const char *kernel, const char *ours)
{
	const char *a = behind_name(kernel), *b = behind_name(ours);
	bool forgotten = a - kernel >= 5 && !strncmp(a - 5, "<...>", 5);

	c->lines++;
	if (!strcmp(a, b) &&
	    (forgotten || (a - kernel == b - ours && !strncmp(kernel, ours, (size_t)(a - kernel)))))
		return;
	if (is_unknowable(c, a)) {
		c->excused++;
		return;
	}
	if (c->different++ < 20)
		print_error("%s/%s:\n  the kernel: %s\n  ours:       %s\n", c->kernel, c->name,
			    kernel, ours);
}

/* name: of the text, CASE or CASE.VIEW. */
static void compare_text(struct comparison *c, const char *name)
{
	_cleanup_buf_ struct buf kernel = BUF_INIT, ours = BUF_INIT, options = BUF_INIT;
	struct export_options text = { .format = "txt", .raw_addresses = true };
	char path[1024], *a, *b;
	bool is_view;

	c->name = name;
	snprintf(path, sizeof(path), TEST_DATA "/%s/%s.txt.gz", c->kernel, name);
	fixture_read_gz(path, &kernel);
	snprintf(path, sizeof(path), TEST_DATA "/%s/%s.options", c->kernel, name);
	is_view = access(path, R_OK) == 0;
	if (is_view)
		assert_int_equal(read_file_at(AT_FDCWD, path, 1 << 16, &options), 0);
	snprintf(path, sizeof(path), TEST_DATA "/%s/%.*s.traced.gz", c->kernel,
		 (int)strcspn(name, "."), name);
	text.trace_options = is_view ? buf_string(&options) : NULL;
	fixture_export(path, &text, &ours);
	a = buf_string(&kernel);
	b = buf_string(&ours);
	for (;;) {
		char *theirs = next_line(&a), *own = next_line(&b);

		if (!theirs && !own)
			break;
		if (!theirs || !own)
			fail_msg("%s/%s: %s has more lines", c->kernel, name,
				 own ? "ours" : "the kernel");
		compare_lines(c, theirs, own);
	}
}

static void compare_kernel(struct comparison *c)
{
	static const char ending[] = ".txt.gz";
	char path[400];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), TEST_DATA "/%s", c->kernel);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		if (len <= strlen(ending) ||
		    strcmp(e->d_name + len - strlen(ending), ending) != 0 ||
		    !strcmp(e->d_name, "formats.txt.gz"))
			continue;
		e->d_name[len - strlen(ending)] = '\0';
		compare_text(c, e->d_name);
	}
	closedir(dir);
}

static bool is_recorded(const char *kernel, const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), TEST_DATA "/%s/%s.traced.gz", kernel, name);
	return access(path, R_OK) == 0;
}

static void the_text_is_the_kernels(void **state _unused_)
{
	_cleanup_buf_ struct buf unknowable = BUF_INIT;
	DIR *data = opendir(TEST_DATA);
	unsigned kernels = 0, wrong = 0;
	struct dirent *e;

	assert_non_null(data);
	buf_putc(&unknowable, '\n');
	assert_int_equal(read_file_at(AT_FDCWD, TEST_DATA "/../integration/unknowable.txt", 1 << 20,
				      &unknowable),
			 0);
	while ((e = readdir(data))) {
		struct comparison c = { .kernel = e->d_name,
					.unknowable = buf_string(&unknowable) };

		if (!is_recorded(e->d_name, "mixed") && !is_recorded(e->d_name, "graph-retval"))
			continue;
		compare_kernel(&c);
		print_message("%s: %lu lines, %lu unknowable, %lu different\n", c.kernel, c.lines,
			      c.excused, c.different);
		assert_true(c.lines > 1000);
		wrong += c.different > 0;
		kernels++;
	}
	closedir(data);
	assert_int_equal(wrong, 0);
	assert_true(kernels >= KERNELS_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_is_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
