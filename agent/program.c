/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/program.h"

#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The agent has a few dozen descriptors. */
#define FDS_MAX 65536

/* exec does not close those of libmosquitto. Linux before 5.9 has no call for it. */
static void close_others(void)
{
	struct rlimit limit;

	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) == 0 ||
	    getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	for (rlim_t fd = STDERR_FILENO + 1; fd < limit.rlim_cur && fd < FDS_MAX; fd++)
		close((int)fd);
}

void agent_program_exec(const struct agent_program *p)
{
	sigset_t none;

	sigemptyset(&none);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != p->parent ||
	    fchdir(p->dirfd) < 0 || dup2(p->in, STDIN_FILENO) < 0 ||
	    dup2(p->out, STDOUT_FILENO) < 0 || (p->err >= 0 && dup2(p->err, STDERR_FILENO) < 0))
		_exit(127);
	close_others();
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(p->argv[0], (char *const *)(uintptr_t)p->argv,
	       (char *const *)(uintptr_t)p->environment);
	_exit(127);
}
