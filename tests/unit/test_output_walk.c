/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Outputs in other users' folders. */
#include "output/walk.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "formats/formats.h"
#include "output/name.h"
#include "output/part.h"
#include "own_folder.h"

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	close(fd);
}

static void the_way_is_found(void **state _unused_)
{
	static const struct {
		const char *path, *dir, *base;
		int r;
	} table[] = {
		{ "out.json", ".", "out.json", 0 },
		{ "./out.json", ".", "out.json", 0 },
		{ "sub/out.json", "sub", "out.json", 0 },
		{ "sub//../sub/out.json", "sub/../sub", "out.json", 0 },
		{ "sub/", "sub", "", 0 },
		{ "link/out.json", "sub", "out.json", 0 },
		{ "name", "sub", "file", 0 },
		{ "chain", "sub", "file", 0 },
		{ "null", "/dev", "null", 0 },
		{ "/dev/null", "/dev", "null", 0 },
		{ "missing/out.json", NULL, NULL, -ENOENT },
		{ "sub/file/out.json", NULL, NULL, -ENOTDIR },
		{ "loop", NULL, NULL, -ELOOP },
		{ "loop/out.json", NULL, NULL, -ELOOP },
		{ "", NULL, NULL, -ENOENT },
	};

	assert_int_equal(mkdir("sub", 0755), 0);
	put("sub/file", "");
	assert_int_equal(symlink("sub", "link"), 0);
	assert_int_equal(symlink("link/file", "name"), 0);
	assert_int_equal(symlink("./name", "chain"), 0);
	assert_int_equal(symlink("/dev/null", "null"), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_place_ struct place p = PLACE_INIT;

		assert_int_equal(place_find(&p, table[i].path, true, NULL), table[i].r);
		if (table[i].r < 0)
			continue;
		if (strncmp(table[i].dir, "sub/..", 6) != 0)
			assert_non_null(strstr(p.dir, table[i].dir));
		assert_string_equal(p.base, table[i].base);
	}
}

static void links_of_another_user_lead_nowhere(void **state _unused_)
{
	static const char *const paths[] = { "theirs/link/out.json", "theirs/link/../out.json",
					     "own/out.json", "theirs/out.json" };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf name = BUF_INIT;
	struct output_name f;

	need_root();
	assert_int_equal(mkdir("secret", 0700), 0);
	assert_int_equal(mkdir("theirs", 0755), 0);
	assert_int_equal(symlink("../secret", "theirs/link"), 0);
	assert_int_equal(symlink("../secret/out.json", "theirs/out.json"), 0);
	assert_int_equal(symlink("theirs/link", "own"), 0);
	put("secret/out.json.part", "{}");
	/* The folder is theirs, and not sticky. Its links need not be. */
	assert_int_equal(chown("theirs", 65534, 65534), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		for (int kind = OUTPUT_FILE; kind <= OUTPUT_DIRECTORY; kind++) {
			int r = output_name_open(&f, paths[i], kind, &err);

			if (kind == OUTPUT_DIRECTORY && i == 3)
				assert_int_equal(r, -EEXIST);
			else
				assert_int_equal(r, -EPERM);
		}
		assert_int_equal(part_recover(paths[i], export_format_find("json", NULL), &name),
				 0);
	}
	assert_int_equal(access("secret/out.json.part", F_OK), 0);
	assert_int_equal(access("secret/out.json", F_OK), -1);
	/* Their folder itself is no danger. */
	assert_int_equal(output_name_open(&f, "theirs/mine.json", OUTPUT_FILE, &err), 0);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	assert_int_equal(access("theirs/mine.json", F_OK), 0);
}

static void pipes_and_devices_of_another_user_are_not_opened(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int reader = -EBADF;
	struct output_name f;

	need_root();
	assert_int_equal(mkfifo("pipe.json", 0666), 0);
	reader = open("pipe.json", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(output_name_open(&f, "pipe.json", OUTPUT_FILE, &err), 0);
	output_name_deinit(&f);
	assert_int_equal(chown("pipe.json", 65534, 65534), 0);
	assert_int_equal(output_name_open(&f, "pipe.json", OUTPUT_FILE, &err), -EPERM);
	assert_non_null(strstr(err.message, "a pipe of uid 65534"));
	assert_int_equal(symlink("pipe.json", "own.json"), 0);
	assert_int_equal(output_name_open(&f, "own.json", OUTPUT_FILE, &err), -EPERM);
	assert_int_equal(setenv("SUDO_UID", "65534", 1), 0);
	assert_int_equal(output_name_open(&f, "own.json", OUTPUT_FILE, &err), 0);
	output_name_deinit(&f);
	unsetenv("SUDO_UID");
	if (mknod("null", S_IFCHR | 0666, makedev(1, 3)) == 0) {
		assert_int_equal(output_name_open(&f, "null", OUTPUT_FILE, &err), 0);
		output_name_deinit(&f);
		assert_int_equal(chown("null", 65534, 65534), 0);
		assert_int_equal(output_name_open(&f, "null", OUTPUT_FILE, &err), -EPERM);
	}
}

/* An attacker exchanges a folder and a link all the time. */
static void a_folder_that_becomes_a_link_is_not_followed(void **state _unused_)
{
	pid_t pid;

	need_root();
	assert_int_equal(mkdir("secret", 0700), 0);
	assert_int_equal(mkdir("theirs", 0755), 0);
	assert_int_equal(mkdir("theirs/a", 0777), 0);
	assert_int_equal(chown("theirs", 65534, 65534), 0);
	assert_int_equal(symlink("../secret", "theirs/b"), 0);
	pid = fork();
	while (pid == 0)
		renameat2(AT_FDCWD, "theirs/a", AT_FDCWD, "theirs/b", RENAME_EXCHANGE);
	assert_true(pid > 0);
	for (int i = 0; i < 3000; i++) {
		struct output_name f;

		if (output_name_open(&f, "theirs/a/out.json", OUTPUT_FILE, NULL) < 0)
			continue;
		output_name_commit(&f, NULL);
		output_name_deinit(&f);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(rmdir("secret"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, own_folder_setup, own_folder_teardown)
		T(the_way_is_found),
		T(links_of_another_user_lead_nowhere),
		T(pipes_and_devices_of_another_user_are_not_opened),
		T(a_folder_that_becomes_a_link_is_not_followed),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
