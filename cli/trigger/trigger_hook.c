/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trigger_hook.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "child.h"
#include "cli.h"

/* A process that is killed may take a while to end. */
#define KILL_TRIES 50
#define KILL_PAUSE_MS 20

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
	if (h->runs)
		return -EBUSY;
	/* Processes that the hook leaves behind become our children. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	h->pid = fork();
	if (h->pid < 0) {
		h->pid = 0;
		return -errno;
	}
	if (!h->pid)
		trigger_hook_main(path, file, session, condition);
	/* Both set it: who is first does not matter. */
	setpgid(h->pid, h->pid);
	h->runs = true;
	h->until = now_ns(CLOCK_BOOTTIME) + TRIGGER_HOOK_S * NSEC_PER_SEC;
	return 0;
}

/* 0: there is no such process. */
static pid_t trigger_hook_parent(pid_t pid)
{
	char path[32], text[512];
	_cleanup_close_ int fd = -EBADF;
	const char *end;
	ssize_t n;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[MAX(n, 0)] = '\0';
	/* A name may have brackets, too. */
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

/* Kills our children, all of which are the hook's. A killed one's children become ours. */
static void trigger_hook_kill_children(void)
{
	const pid_t self = getpid();
	const struct dirent *entry;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 1 && trigger_hook_parent(pid) == self)
			kill(pid, SIGKILL);
	}
	if (proc)
		closedir(proc);
}

/* Kills the hook and whatever it has started. */
static void trigger_hook_end(struct trigger_hook *h)
{
	if (h->pid) {
		kill(-h->pid, SIGKILL);
		kill(h->pid, SIGKILL);
	}
	for (unsigned i = 0; i < KILL_TRIES; i++) {
		const struct timespec pause = { .tv_nsec = KILL_PAUSE_MS * (long)NSEC_PER_MSEC };
		pid_t pid;

		trigger_hook_kill_children();
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			break;
		nanosleep(&pause, NULL);
	}
	*h = (struct trigger_hook){ 0 };
	cli_line(stderr, "the hook ran for %d s and was killed", TRIGGER_HOOK_S);
}

static void trigger_hook_tell(int status)
{
	if (WIFSIGNALED(status))
		cli_line(stderr, "the hook was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		cli_line(stderr, "the hook ended with exit status %d", WEXITSTATUS(status));
}

bool trigger_hook_reap(struct trigger_hook *h)
{
	int status;
	pid_t pid;

	if (!h->runs)
		return true;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != h->pid)
			continue;
		h->pid = 0;
		trigger_hook_tell(status);
	}
	if (pid < 0)
		*h = (struct trigger_hook){ 0 };
	else if (now_ns(CLOCK_BOOTTIME) > h->until)
		trigger_hook_end(h);
	return !h->runs;
}
