/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trigger_hook.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "child.h"
#include "cli.h"

static bool trigger_hook_is_safe(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int trigger_hook_check(const char *path, struct error *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return error_errno(err, -errno, "--hook: %s", path);
	if (!trigger_hook_is_safe(&st)) {
		error_set(err, -EPERM, "--hook: other users may change %s", path);
		return error_hint(err, "it must belong to root, and nobody else may write to it");
	}
	return S_ISDIR(st.st_mode);
}

int trigger_hook_find(const char *folder, const char *name, char **ret, struct error *err)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (!*folder) {
		error_set(err, -EPERM, "--hook: traced.conf allows no hooks");
		return error_hint(err, "\"hooks = FOLDER\" in [daemon] allows those in a folder");
	}
	if (!*name || *name == '.' || strchr(name, '/')) {
		error_set(err, -EINVAL, "--hook: '%s' is not the name of a hook", name);
		return error_hint(err, "name a program in %s", folder);
	}
	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return error_errno(err, -ENOMEM, "--hook");
	r = trigger_hook_check(folder, err);
	if (r < 0)
		return r;
	r = trigger_hook_check(path, err);
	if (r < 0)
		return r;
	if (r || access(path, X_OK) < 0)
		return error_set(err, -EACCES, "--hook: %s is not a program", path);
	*ret = TAKE_PTR(path);
	return 0;
}

_Noreturn static void trigger_hook_main(const char *path, const char *file, const char *session,
					const char *condition)
{
	setpgid(0, 0);
	setenv("TRACED_SESSION", session, 1);
	setenv("TRACED_CONDITION", condition, 1);
	setenv("TRACED_FILE", file, 1);
	child_reset_signals();
	close_fds_from(STDERR_FILENO + 1);
	execl(path, path, file, (char *)NULL);
	cli_line(stderr, "%s: %s", path, strerror(errno));
	_exit(127);
}

int trigger_hook_start(struct trigger_hook *h, const char *path, const char *file,
		       const char *session, const char *condition)
{
	if (h->pid)
		return -EBUSY;
	h->pid = fork();
	if (h->pid < 0) {
		h->pid = 0;
		return -errno;
	}
	if (!h->pid)
		trigger_hook_main(path, file, session, condition);
	/* Both set it: who is first does not matter. */
	setpgid(h->pid, h->pid);
	h->until = now_ns(CLOCK_BOOTTIME) + TRIGGER_HOOK_S * NSEC_PER_SEC;
	return 0;
}

bool trigger_hook_reap(struct trigger_hook *h)
{
	int status;

	if (!h->pid)
		return true;
	if (now_ns(CLOCK_BOOTTIME) > h->until) {
		kill(-h->pid, SIGKILL);
		/* It may have left its group. */
		kill(h->pid, SIGKILL);
		waitpid(h->pid, NULL, 0);
		h->pid = 0;
		cli_line(stderr, "the hook ran for %d s and was killed", TRIGGER_HOOK_S);
		return true;
	}
	if (waitpid(h->pid, &status, WNOHANG) != h->pid)
		return false;
	h->pid = 0;
	if (WIFSIGNALED(status))
		cli_line(stderr, "the hook was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		cli_line(stderr, "the hook ended with exit status %d", WEXITSTATUS(status));
	return true;
}
