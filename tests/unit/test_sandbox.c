/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * System calls that a sandboxed process can't make; each test runs in a child, because there is no
 * way back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/account.h"
#include "base/buf.h"
#include "base/io.h"
#include "daemon/service/sandbox.h"

enum { OUT_FD = 3, NEXT_FD };

/* Runs body in a sandboxed child with descriptors 0, 1, 2 and OUT_FD; 0: all checks passed. */
static int in_sandbox_with(bool reads, int (*body)(void), int out)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct sandbox s = { .drop = geteuid() == 0,
				     .reads = reads,
				     .files = reads ? 16 : 0 };
		_cleanup_error_ struct error err = ERROR_INIT;

		if (dup2(out, OUT_FD) < 0 || close_range(NEXT_FD, ~0U, 0) < 0)
			_exit(100);
		s.parent = getppid();
		s.file_max = 4096;
		s.cpu_s = 1;
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

static int in_sandbox(int (*body)(void), int out)
{
	return in_sandbox_with(false, body, out);
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
	return 0;
}

/* The parser of SQL opens /proc/mounts. */
static int opens_to_read_only(void)
{
	int fd = open("/proc/mounts", O_RDONLY);

	if (fd < 0)
		return 1;
	close(fd);
	REFUSED(2, open("/tmp/traced-sandbox-test", O_WRONLY | O_CREAT, 0600));
	REFUSED(3, open("/tmp/traced-sandbox-test", O_RDONLY | O_CREAT, 0600));
	REFUSED(4, open("/proc/self/mem", O_RDWR));
	REFUSED(5, mkdir("/tmp/traced-sandbox-test", 0700));
	return 0;
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

/* Calls that take a path, and no descriptor. */
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

/* Calls that take neither a path nor a descriptor. */
static int makes_no_process(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	cpu_set_t cpus = { 0 };

	REFUSED(1, fork());
	REFUSED(2, execl("/bin/true", "true", (char *)NULL));
	REFUSED(3, ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	REFUSED(4, ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	REFUSED(5, kill(getppid(), 0));
	REFUSED(6, kill(getpid(), 0));
	REFUSED(7, prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	REFUSED(8, syscall(SYS_unshare, 0));
	REFUSED(9, syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
	if (mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	    MAP_FAILED)
		return 10;
	/* A thread may choose its own CPUs, but not another's. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return 11;
	REFUSED(12, sched_setaffinity(getpid(), sizeof(cpus), &cpus));
	return 0;
}

static void *count(void *number)
{
	++*(int *)number;
	return NULL;
}

static int makes_threads(void)
{
	pthread_t threads[4];
	int counts[4] = { 0 };
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0 ||
	    sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		return 3;

	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, count, &counts[i]))
			return 1;
	for (int i = 0; i < 4; i++)
		if (pthread_join(threads[i], NULL) || counts[i] != 1)
			return 2;
	return 0;
}

static int crashes(void)
{
	abort();
}

static int burns(void)
{
	for (volatile uint64_t i = 0; i < UINT64_C(1) << 36; i++)
		;
	return 0;
}

/* Waits until the parent has looked at the process. */
static int waits(void)
{
	char byte;

	return write_full(OUT_FD, "x", 1) < 0 || read(OUT_FD, &byte, 1) != 1;
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

static void files_can_be_opened_to_read_only(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);

	if (geteuid() != 0)
		skip();
	assert_int_equal(in_sandbox_with(true, opens_to_read_only, out), 0);
	close(out);
}

/* Landlock does not handle AF_UNIX sockets with a path: the limit of descriptors stops them. */
static void paths_stay_closed_with_a_free_number(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);

	assert_int_equal(in_sandbox(a_free_number_serves_nothing, out), 0);
	close(out);
}

/* Paths are refused even without the limit of descriptors. */
static void paths_are_closed_too(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);

	/* Landlock's version, if the kernel has it (5.13) and it is enabled. */
	if (syscall(444, NULL, 0, 1) < 1) {
		print_message("this kernel has no Landlock\n");
		skip();
	}
	assert_int_equal(in_sandbox(paths_stay_closed, out), 0);
	close(out);
}

static void nothing_but_threads_can_be_made(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);

	assert_int_equal(in_sandbox(makes_threads, out), 0);
	if (!HAVE_SECCOMP || SANDBOX_SANITIZED || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) {
		print_message("no filter of system calls here\n");
		skip();
	}
	assert_int_equal(in_sandbox(makes_no_process, out), 0);
	close(out);
}

static void deaths_are_seen(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC);

	assert_int_equal(in_sandbox(crashes, out), 128 + SIGABRT);
	assert_int_equal(in_sandbox(burns, out), 128 + SIGKILL);
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

static void expect(const char *status, const char *line)
{
	if (!strstr(status, line))
		fail_msg("not \"%s\", but:\n%s", line, status);
}

static void rights_are_gone_for_good(void **state _unused_)
{
	_cleanup_buf_ struct buf status = BUF_INIT;
	char path[64], byte, uid[64];
	struct stat st;
	int ends[2], r;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	if (pid == 0) {
		/* The process ends with this test in any case. */
		close(ends[0]);
		_exit(in_sandbox(waits, ends[1]));
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	/* The sandboxed process is its only child. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	assert_int_equal(read_file_at(AT_FDCWD, path, 64, &status), 0);
	snprintf(path, sizeof(path), "/proc/%ld", strtol(buf_string(&status), NULL, 10));
	strcat(path, "/environ");
	/* A dumpable process would belong to its user. */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	strcpy(strrchr(path, '/'), "/status");
	status.len = 0;
	assert_int_equal(read_file_at(AT_FDCWD, path, 1 << 16, &status), 0);
	buf_string(&status);
	snprintf(uid, sizeof(uid), "\nUid:\t%u\t%u\t%u\t%u\n", sandbox_find_user(),
		 sandbox_find_user(), sandbox_find_user(), sandbox_find_user());
	expect(status.data, uid);
	/* The socket's group, which the user traced belongs to, is dropped. */
	expect(status.data, "\nGid:\t65534\t65534\t65534\t65534\n");
	expect(status.data, "\nGroups:\t \n");
	expect(status.data, "\nCapPrm:\t0000000000000000\n");
	expect(status.data, "\nCapEff:\t0000000000000000\n");
	expect(status.data, "\nCapBnd:\t0000000000000000\n");
	expect(status.data, "\nCapAmb:\t0000000000000000\n");
	expect(status.data, "\nNoNewPrivs:\t1\n");
	assert_int_equal(write(ends[0], "x", 1), 1);
	assert_int_equal(waitpid(pid, &r, 0), pid);
	assert_int_equal(r, 0);
	close(ends[0]);
}

/* Processes of that user may send it signals: file servers often run as nobody. */
static void its_user_is_nobody_elses(void **state _unused_)
{
	uid_t uid = sandbox_find_user();
	_cleanup_free_ char *name = account_name(uid);

	assert_true(uid != 0 && uid != 65534);
	if (name)
		assert_string_equal(name, "traced");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_else_can_be_opened),
		cmocka_unit_test(files_can_be_opened_to_read_only),
		cmocka_unit_test(paths_stay_closed_with_a_free_number),
		cmocka_unit_test(paths_are_closed_too),
		cmocka_unit_test(nothing_but_threads_can_be_made),
		cmocka_unit_test(deaths_are_seen),
		cmocka_unit_test(the_output_can_be_written),
		cmocka_unit_test(rights_are_gone_for_good),
		cmocka_unit_test(its_user_is_nobody_elses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
