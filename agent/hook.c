/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/hook.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agent/program.h"
#include "agent/trusted.h"
#include "base/io.h"
#include "base/log.h"

#define LIMIT_NS (10 * NSEC_PER_SEC)
#define AGAIN_NS (60 * NSEC_PER_SEC)

int hook_check(const char *path, uid_t owner, struct error *err)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int dirfd = -EBADF;
	_cleanup_fclose_ FILE *file = NULL;
	int r;

	if (!copy)
		return error_errno(err, -ENOMEM, "%s", path);
	dirfd = trusted_open_folder(dirname(copy), owner, err);
	r = dirfd < 0 ? dirfd : trusted_open(AT_FDCWD, path, owner, &file, err);
	if (r == 0 && access(path, X_OK) < 0)
		r = error_errno(err, -errno, "%s", path);
	return r;
}

static void hook_deny(struct hook *h, const struct policy *policy, uint64_t now)
{
	h->said_no = true;
	h->denials++;
	h->next_ns = now + MIN(policy->interval_ns, AGAIN_NS);
}

/* The child. It leads a group, so that what it starts can be ended as well. */
_Noreturn static void hook_exec(const struct agent_program *program)
{
	if (setpgid(0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(127);
	agent_program_exec(program);
}

static int hook_start(struct hook *h, const struct policy *policy, struct error *err)
{
	static const char *const environment[] = { "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", NULL };
	const char *const argv[] = { policy->only_if, h->question, NULL };
	_cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	_cleanup_close_ int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct agent_program program = { .argv = argv,
					       .environment = environment,
					       .dirfd = root_fd,
					       .in = null_fd,
					       .out = null_fd,
					       .err = -EBADF,
					       .parent = getpid() };
	int r;

	if (null_fd < 0 || root_fd < 0)
		return error_errno(err, -errno, "only_if");
	/* It may have been replaced since the agent's start. */
	r = hook_check(policy->only_if, policy->owner, err);
	if (r < 0)
		return r;
	h->pid = fork();
	if (h->pid < 0) {
		r = -errno;
		h->pid = 0;
		return error_errno(err, r, "fork");
	}
	if (!h->pid)
		hook_exec(&program);
	return 0;
}

bool hook_allows(struct hook *h, const struct policy *policy, uint64_t now)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	bool said_yes = now < h->yes_ns || !policy->only_if;

	h->yes_ns = 0;
	if (said_yes || h->pid || now < h->next_ns)
		return said_yes;
	if (hook_start(h, policy, &err) < 0) {
		if (!h->said_no)
			log_error("only_if: %s", err.message ?: "out of memory");
		hook_deny(h, policy, now);
	} else {
		h->is_late = false;
		h->deadline_ns = now + LIMIT_NS;
	}
	return false;
}

/* Ends the program, and what it has started, before its number is free for others. */
static void hook_kill(const struct hook *h)
{
	kill(-h->pid, SIGKILL);
	kill(h->pid, SIGKILL);
}

static void hook_take_answer(struct hook *h, const struct policy *policy, int status, uint64_t now)
{
	if (!h->is_late && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		h->yes_ns = now + AGAIN_NS;
		h->said_no = false;
		return;
	}
	/* It may say the same each minute. */
	if (!h->said_no && h->is_late)
		log_warning("only_if: no %s now: the program did not end within %d s", h->question,
			    (int)(LIMIT_NS / NSEC_PER_SEC));
	else if (!h->said_no)
		log_notice("only_if: no %s now: the program ended with %s %d", h->question,
			   WIFEXITED(status) ? "status" : "signal",
			   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	hook_deny(h, policy, now);
}

void hook_step(struct hook *h, const struct policy *policy, uint64_t now)
{
	siginfo_t info = { 0 };
	int status;

	if (!h->pid)
		return;
	if (waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
		hook_kill(h);
		waitpid(h->pid, &status, 0);
		h->pid = 0;
		hook_take_answer(h, policy, status, now);
	} else if (now >= h->deadline_ns) {
		/* Its end may take long if the kernel holds it. */
		h->is_late = true;
		h->deadline_ns = now + LIMIT_NS;
		hook_kill(h);
	}
}

uint64_t hook_next_ns(const struct hook *h, uint64_t due)
{
	return h->pid ? h->deadline_ns : MAX(due, h->next_ns);
}

void hook_stop(struct hook *h)
{
	if (!h->pid)
		return;
	hook_kill(h);
	waitpid(h->pid, NULL, WNOHANG);
	h->pid = 0;
}
