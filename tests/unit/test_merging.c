/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A client's request to merge files, as the exporter gets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/service/merging.h"

/* An output that names one file with syncs of its own and one without. */
struct asked {
	Traced__Control__Output output;
	Traced__Control__Merge merges[EXPORT_MERGES_MAX + 1], *list[EXPORT_MERGES_MAX + 1];
	int fds[4];
};

static void ask(struct asked *a)
{
	traced__control__output__init(&a->output);
	for (size_t i = 0; i < ARRAY_SIZE(a->merges); i++) {
		traced__control__merge__init(&a->merges[i]);
		a->list[i] = &a->merges[i];
	}
	a->merges[0].name = (char *)"app.json";
	a->merges[0].clock = (char *)"realtime";
	a->merges[0].syncs = true;
	a->merges[0].sync_name = (char *)"ties.json";
	a->merges[1].name = (char *)"other.json";
	a->output.merges = a->list;
	a->output.n_merges = 2;
	for (size_t i = 0; i < ARRAY_SIZE(a->fds); i++)
		a->fds[i] = memfd_create("file", MFD_CLOEXEC);
}

static void forget(struct asked *a, struct merging *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(a->fds); i++)
		close_fd(a->fds[i]);
	merging_deinit(m, NULL, 0);
}

static void the_exporter_gets_what_was_asked_for(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct export_merge files[EXPORT_MERGES_MAX];
	struct export_options options = { 0 };
	struct merging m;
	struct asked a;

	ask(&a);
	assert_int_equal(merging_take(&m, &a.output, a.fds, 4, &err), 0);
	assert_int_equal(m.fd_count, 4);
	for (size_t i = 0; i < ARRAY_SIZE(a.fds); i++)
		assert_int_equal(a.fds[i], -EBADF);
	assert_int_equal(merging_count(&a.output, m.scratch), 4);
	assert_int_equal(merging_read(&options, files, &a.output, m.scratch, 5, &err), 0);
	assert_int_equal(options.merge_count, 2);
	assert_string_equal(options.merges[0].name, "app.json");
	assert_string_equal(options.merges[0].sync_name, "ties.json");
	assert_int_equal(options.merges[0].clock, CLOCK_REALTIME);
	assert_int_equal(options.merges[0].fd, 5);
	assert_int_equal(options.merges[0].sync_fd, 6);
	assert_string_equal(options.merges[1].name, "other.json");
	assert_null(options.merges[1].sync_name);
	assert_int_equal(options.merges[1].clock, -1);
	assert_int_equal(options.merges[1].fd, 7);
	assert_int_equal(options.scratch_fd, 8);
	forget(&a, &m);
}

static void without_a_scratch_file_memory_is_used(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct export_merge files[EXPORT_MERGES_MAX];
	struct export_options options = { 0 };
	struct merging m;
	struct asked a;

	ask(&a);
	assert_int_equal(merging_take(&m, &a.output, a.fds, 3, &err), 0);
	assert_int_equal(merging_count(&a.output, m.scratch), 3);
	assert_int_equal(merging_read(&options, files, &a.output, m.scratch, 5, &err), 0);
	assert_int_equal(options.scratch_fd, 0);
	forget(&a, &m);
	ask(&a);
	a.output.n_merges = 0;
	assert_int_equal(merging_take(&m, &a.output, a.fds, 4, &err), 0);
	assert_int_equal(m.fd_count, 0);
	assert_int_equal(merging_count(&a.output, m.scratch), 0);
	forget(&a, &m);
}

static void refuse(struct asked *a, size_t fd_count, int code, const char *part)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct merging m;

	assert_int_equal(merging_take(&m, &a->output, a->fds, fd_count, &err), code);
	if (!strstr(err.message, part))
		fail_msg("\"%s\" is not in \"%s\"", part, err.message);
	forget(a, &m);
	ask(a);
}

static void inconsistent_requests_are_refused(void **state _unused_)
{
	struct asked a;
	struct merging none = { 0 };

	ask(&a);
	refuse(&a, 2, -EBADF, "other.json: the request names it but has no descriptor for it");
	refuse(&a, 0, -EBADF, "app.json: the request names it but has no descriptor for it");
	a.merges[0].clock = (char *)"tsc";
	refuse(&a, 4, -EINVAL, "'tsc'");
	a.merges[0].sync_name = (char *)"";
	refuse(&a, 4, -EINVAL, "has no name");
	a.output.stream = true;
	refuse(&a, 4, -EINVAL, "that has ended");
	a.output.rotate_ns = 1;
	refuse(&a, 4, -EINVAL, "that has ended");
	a.output.n_merges = EXPORT_MERGES_MAX + 1;
	refuse(&a, 4, -EINVAL, "more than 8");
	forget(&a, &none);
}

static void unreadable_files_are_refused(void **state _unused_)
{
	struct merging none = { 0 };
	struct asked a;
	int ends[2];

	ask(&a);
	close_fd(a.fds[0]);
	a.fds[0] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	refuse(&a, 4, -EBADF, "app.json: not a regular file");
	close_fd(a.fds[1]);
	a.fds[1] = open("/bin/sh", O_PATH | O_CLOEXEC);
	refuse(&a, 4, -EBADF, "ties.json: not a regular file");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close_fd(a.fds[2]);
	a.fds[2] = ends[0];
	refuse(&a, 4, -EBADF, "other.json: not a regular file");
	close_fd(ends[1]);
	/* The exporter writes to the scratch file, which must be a regular file. */
	close_fd(a.fds[3]);
	a.fds[3] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	refuse(&a, 4, -EBADF, "scratch: not a regular file");
	forget(&a, &none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exporter_gets_what_was_asked_for),
		cmocka_unit_test(without_a_scratch_file_memory_is_used),
		cmocka_unit_test(inconsistent_requests_are_refused),
		cmocka_unit_test(unreadable_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
