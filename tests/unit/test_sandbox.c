/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a process can't do any more; each in a child, as there is no way back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "service/sandbox.h"
#include "util/buf.h"
#include "util/io.h"

enum { OUT_FD = 3, NEXT_FD };

/* Runs body in a sandboxed child whose descriptors are 0, 1, 2 and OUT_FD; 0: all was as wanted. */
static int in_sandbox(int (*body)(void), int out)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct sandbox s = { .drop = geteuid() == 0 };
		_cleanup_error_ struct error err = ERROR_INIT;

		if (dup2(out, OUT_FD) < 0 || close_range(NEXT_FD, ~0U, 0) < 0)
			_exit(100);
		s.parent = getppid();
		s.file_max = 4096;
		s.uid = sandbox_find_user();
		signal(SIGXFSZ, SIG_IGN);
		if (sandbox_enter(&s, &err) < 0) {
			dprintf(2, "%s\n", err.message);
			_exit(101);
		}
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define REFUSED(number, call)                                                                      \
	do {                                                                                       \
		if ((call) >= 0)                                                                   \
			return number;                                                             \
	} while (0)

static int opens_nothing(void)
{
	REFUSED(1, open("/etc/passwd", O_RDONLY));
	REFUSED(2, open("/tmp", O_RDONLY | O_DIRECTORY));
	REFUSED(3, open("/tmp/traced-sandbox-test", O_WRONLY | O_CREAT, 0600));
	REFUSED(4, open("/proc/self/mem", O_RDWR));
	REFUSED(5, open("/proc/self/fd/3", O_RDWR));
	REFUSED(6, socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(7, socket(AF_INET, SOCK_STREAM, 0));
	REFUSED(8, memfd_create("x", 0));
	REFUSED(9, dup(0));
	return geteuid() == 0 ? 10 : 0;
}

static int a_free_number_serves_nothing(void)
{
	close(0);
	REFUSED(1, socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(2, memfd_create("x", 0));
	REFUSED(3, dup(OUT_FD));
	REFUSED(4, dup2(OUT_FD, 0));
	return write_full(OUT_FD, "result", 6) < 0 ? 5 : 0;
}

/* What takes no descriptor. */
static int paths_stay_closed(void)
{
	REFUSED(1, mkdir("/tmp/traced-sandbox-test", 0700));
	REFUSED(2, mknod("/tmp/traced-sandbox-test", S_IFIFO | 0600, 0));
	REFUSED(3, execl("/bin/true", "true", (char *)NULL));
	return 0;
}

static int writes_what_it_was_given(void)
{
	char byte = 'x';

	if (write_full(OUT_FD, "result", 6) < 0)
		return 1;
	if (pwrite(OUT_FD, &byte, 1, 5000) >= 0 || errno != EFBIG)
		return 2;
	return 0;
}

static int has_no_way_back(void)
{
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 1;
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return 2;
	for (unsigned long cap = 0; cap < 41; cap++)
		if (getuid() == 0 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return 3;
	REFUSED(4, setuid(0));
	/* The socket's group, of which the user traced is a member, stays behind. */
	if (getgid() != 65534 || getegid() != 65534 || getgroups(0, NULL) != 0)
		return 5;
	return 0;
}

static void nothing_else_can_be_opened(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC), status;

	if (geteuid() != 0)
		skip();
	status = in_sandbox(opens_nothing, out);
	assert_int_equal(status, 0);
	close(out);
}

/* AF_UNIX sockets with a path are outside what Landlock handles: the limit is what stops them. */
static void paths_stay_closed_with_a_free_number(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);

	assert_int_equal(in_sandbox(a_free_number_serves_nothing, out), 0);
	close(out);
}

/* The limit of descriptors is not the only wall. */
static void paths_are_closed_too(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);

	/* Its version, if the kernel has Landlock (5.13) and has it on. */
	if (syscall(444, NULL, 0, 1) < 1) {
		print_message("this kernel has no Landlock\n");
		skip();
	}
	assert_int_equal(in_sandbox(paths_stay_closed, out), 0);
	close(out);
}

static void the_output_can_be_written(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);
	char text[8] = { 0 };

	assert_int_equal(in_sandbox(writes_what_it_was_given, out), 0);
	assert_int_equal(pread_full(out, text, 6, 0), 6);
	assert_string_equal(text, "result");
	close(out);
}

static void rights_are_gone_for_good(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);

	if (geteuid() != 0)
		skip();
	assert_int_equal(in_sandbox(has_no_way_back, out), 0);
	close(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_else_can_be_opened),
		cmocka_unit_test(paths_stay_closed_with_a_free_number),
		cmocka_unit_test(paths_are_closed_too),
		cmocka_unit_test(the_output_can_be_written),
		cmocka_unit_test(rights_are_gone_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
