/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convert loses rights once it has looked into a file. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "cli.h"
#include "confined.h"
#include "make_stream.h"

#define NOBODY 65534

/* The test's folder has: out, temp, elsewhere. */
static char folder[] = "/tmp/traced-confine-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int setup(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	if (!mkdtemp(folder) || mkdir(path_of("out"), 0700) < 0 ||
	    mkdir(path_of("temp"), 0700) < 0 || mkdir(path_of("elsewhere"), 0700) < 0)
		return -1;
	maker_init_fd(&m, open(path_of("in.traced"), O_RDWR | O_CREAT | O_CLOEXEC, 0600), 8, false,
		      1024);
	maker_head(&m);
	page_begin(&m, NSEC_PER_SEC);
	event_number(&m, NSEC_PER_SEC, 7, 1);
	maker_finish(&m);
	return 0;
}

static int teardown(void **state _unused_)
{
	static const char *const names[] = { "out/x.json",  "in.traced", "elsewhere/x",
					     "elsewhere/y", "elsewhere", "out",
					     "temp" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		remove(path_of(names[i]));
	return rmdir(folder);
}

static int convert(const char *out)
{
	char in[128], *argv[] = { (char *)"tracectl",
				  (char *)"convert",
				  (char *)"--format",
				  (char *)"json",
				  in,
				  (char *)(uintptr_t)out,
				  NULL };

	snprintf(in, sizeof(in), "%s/in.traced", folder);
	return tracectl_main(6, argv);
}

static bool may_make(const char *name)
{
	_cleanup_close_ int fd = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return fd >= 0;
}

static bool may_read(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0;
}

/* Negative: the kernel has no Landlock (it came with 5.13), or it is disabled. */
static long landlock_version(void)
{
	return syscall(444, NULL, 0, 1);
}

/* Checks that nobody listens there; 0: somebody does. */
static int try_connect(void)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(9),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&to, sizeof(to));
}

/*
 * Runs in a process of its own, because there is no way back. Returns which check failed; 0: none.
 */
static int try(const char *out)
{
	if (convert(out) != 0)
		return 1;
	if (may_make("elsewhere/x") || errno != EACCES)
		return 2;
	if (mkdir(path_of("elsewhere/y"), 0700) == 0 || errno != EACCES)
		return 3;
	if (unlink(path_of("in.traced")) == 0 || errno != EACCES)
		return 4;
	/* Convert looks into programs that a recording names. */
	if (!may_read("/proc/self/exe") || !may_read(path_of("in.traced")))
		return 5;
	if (landlock_version() >= 4 && (try_connect() == 0 || errno != EACCES))
		return 6;
	execl("/bin/false", "false", (char *)NULL);
	return errno == EACCES ? 0 : 7;
}

static int tried(const char *out)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(try(out));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void nothing_is_written_beside_the_output(void **state _unused_)
{
	_cleanup_free_ char *out = strdup(path_of("out/x.json"));
	struct stat st;

	if (landlock_version() < 1) {
		print_message("this kernel has no Landlock\n");
		skip();
	}
	assert_int_equal(setenv("TMPDIR", path_of("temp"), 1), 0);
	unsetenv("DEBUGINFOD_URLS");
	assert_int_equal(tried(out), 0);
	assert_int_equal(stat(out, &st), 0);
	assert_int_equal(tried("/dev/null"), 0);
}

/*
 * With DEBUGINFOD_URLS elfutils fetches and stores files, at the request of convert's caller; but
 * not root's.
 */
static void with_debuginfod_nothing_is_confined(void **state _unused_)
{
	bool root = geteuid() == 0;
	pid_t pid;
	int status;

	setenv("DEBUGINFOD_URLS", "http://localhost:1/", 1);
	if (root) {
		assert_int_equal(chmod(folder, 0755), 0);
		assert_int_equal(chmod(path_of("in.traced"), 0644), 0);
		assert_int_equal(chmod(path_of("elsewhere"), 0777), 0);
	}
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0 && root && setresuid(NOBODY, NOBODY, NOBODY) < 0)
		_exit(2);
	if (pid == 0)
		_exit(convert("/dev/null") != 0 || !may_make("elsewhere/x"));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	unsetenv("DEBUGINFOD_URLS");
}

/* Returns which check failed, as an error; 0: none. */
static int look_around(void *userdata, struct export_result *ret, struct error *err)
{
	const struct code_opener *opener = confined_opener();
	char magic[4] = "";
	int fd;

	if (may_read("/etc/passwd") || may_make("elsewhere/x") || may_make("out/y"))
		return error_set(err, -3, "paths");
	fd = opener->open(opener->userdata, userdata, CODE_FILE_ELF);
	if (fd < 0 || read(fd, magic, 4) != 4 ||
	    memcmp(magic,
		   "\x7f"
		   "ELF",
		   4) != 0)
		return error_set(err, -5, "no program: %d", fd);
	if (opener->open(opener->userdata, "/etc/passwd", CODE_FILE_ELF) >= 0 ||
	    opener->open(opener->userdata, "/etc/passwd", CODE_FILE_MAP) >= 0 ||
	    opener->open(opener->userdata, "/dev/zero", CODE_FILE_ELF) >= 0 ||
	    opener->open(opener->userdata, folder, CODE_FILE_ELF) >= 0)
		return error_set(err, -6, "another file");
	fd = opener->open(opener->userdata, path_of("perf-1.map"), CODE_FILE_MAP);
	if (fd < 0 || read(fd, magic, 1) != 1 || magic[0] != 'm')
		return error_set(err, -7, "no map: %d", fd);
	ret->events = 12;
	return 0;
}

static int write_much(void *userdata, struct export_result *ret _unused_, struct error *err)
{
	while (write(*(int *)userdata, folder, sizeof(folder)) > 0)
		;
	return error_errno(err, -errno, "write");
}

static void root_decodes_without_paths(void **state _unused_)
{
	struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	char self[PATH_MAX] = "";
	int fd, pipes[2];

	if (geteuid() != 0)
		skip();
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	fd = open(path_of("perf-1.map"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "map", 3), 3);
	close(fd);
	if (confined_run(look_around, self, &result, &err) != 0)
		fail_msg("%s", err.message);
	assert_int_equal(result.events, 12);
	export_result_deinit(&result);
	assert_int_equal(remove(path_of("perf-1.map")), 0);
	/* Errors come over as they are. */
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(confined_run(write_much, &pipes[0], &result, &err), -EBADF);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_decodes_without_paths),
		cmocka_unit_test(nothing_is_written_beside_the_output),
		cmocka_unit_test(with_debuginfod_nothing_is_confined),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
