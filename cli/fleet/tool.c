/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "child.h"

static bool tool_bound(uint64_t file_max)
{
	struct rlimit size;

	if (!file_max)
		return true;
	if (getrlimit(RLIMIT_FSIZE, &size) < 0)
		return false;
	size.rlim_cur = MIN(size.rlim_cur, file_max);
	/* Otherwise one file beyond would end the program, which writes others as well. */
	signal(SIGXFSZ, SIG_IGN);
	return setrlimit(RLIMIT_FSIZE, &size) == 0;
}

/* dup2() of a descriptor to itself would leave it to be closed by the exec. */
static bool tool_give_folder(int folder)
{
	if (folder == TOOL_FOLDER)
		return fcntl(folder, F_SETFD, 0) == 0;
	return folder < 0 || dup2(folder, TOOL_FOLDER) >= 0;
}

_Noreturn static void tool_exec(const char *const *argv, int in, int out, int folder,
				uint64_t file_max, int why)
{
	int e;

	/* The descriptor of the folder's number may be ours for errors. */
	if (why == TOOL_FOLDER && folder >= 0)
		why = fcntl(why, F_DUPFD_CLOEXEC, TOOL_FOLDER + 1);
	child_reset_signals();
	if ((in < 0 || dup2(in, STDIN_FILENO) >= 0) && (out < 0 || dup2(out, STDOUT_FILENO) >= 0) &&
	    tool_give_folder(folder) && tool_bound(file_max)) {
		/* Other descriptors are closed by the exec. */
		execvp(argv[0], (char *const *)(uintptr_t)argv);
	}
	e = errno;
	write_full(why, &e, sizeof(e));
	_exit(127);
}

int tool_start(const char *const *argv, int in, int out, int folder, uint64_t file_max,
	       pid_t *ret_pid, struct error *err)
{
	_cleanup_close_ int why_r = -EBADF, why_w = -EBADF;
	int pair[2], why;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	why_r = pair[0];
	why_w = pair[1];
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return error_errno(err, -errno, "fork");
	if (!pid)
		tool_exec(argv, in, out, folder, file_max, why_w);
	why_w = close_fd(why_w);
	if (read_full(why_r, &why, sizeof(why)) == sizeof(why)) {
		tool_wait(&pid);
		return error_errno(err, -why, "%s", argv[0]);
	}
	*ret_pid = pid;
	return 0;
}

int tool_wait(pid_t *pid)
{
	int status;

	while (waitpid(*pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool tool_has_ended(pid_t *pid)
{
	if (waitpid(*pid, NULL, WNOHANG) == 0)
		return false;
	*pid = 0;
	return true;
}

void tool_end(pid_t *pid)
{
	if (!*pid)
		return;
	kill(*pid, SIGKILL);
	tool_wait(pid);
}

int tool_run(const char *const *argv, int in, int out, int folder, uint64_t file_max,
	     struct error *err)
{
	pid_t pid;
	int r = tool_start(argv, in, out, folder, file_max, &pid, err);

	if (r < 0)
		return r;
	r = tool_wait(&pid);
	return r < 0 ? error_errno(err, r, "%s", argv[0]) : r;
}
