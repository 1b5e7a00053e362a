/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"

/* Looks up the program as execvp(3) does. */
static int child_look_up(const char *name, struct error *err)
{
	const char *path = getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin";
	int r = -ENOENT;

	if (strchr(name, '/')) {
		if (!access(name, X_OK))
			return 0;
		return error_errno(err, -errno, "%s", name);
	}
	while (path) {
		_cleanup_free_ char *file = NULL;
		size_t len = strcspn(path, ":");

		if (asprintf(&file, "%.*s%s%s", (int)len, path, len ? "/" : "", name) < 0)
			return error_errno(err, -ENOMEM, "%s", name);
		if (!access(file, X_OK))
			return 0;
		if (errno == EACCES)
			r = -EACCES;
		path = path[len] ? path + len + 1 : NULL;
	}
	if (r == -ENOENT) {
		error_set(err, r, "%s: command not found", name);
		return error_hint(err, "a builtin command needs its shell: -- sh -c '...'");
	}
	return error_errno(err, r, "%s", name);
}

void child_reset_signals(void)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void child_main(int go_fd, int exec_fd, char *const *argv)
{
	char go;
	int r;

	if (read_full(go_fd, &go, 1) != 1)
		_exit(127);
	child_reset_signals();
	execvp(argv[0], argv);
	r = errno;
	write_full(exec_fd, &r, sizeof(r));
	_exit(127);
}

int child_hold(struct child *c, char *const *argv, bool to_stderr, struct error *err)
{
	_cleanup_close_ int go_r = -EBADF, go_w = -EBADF, exec_r = -EBADF, exec_w = -EBADF;
	int pair[2], r;

	r = child_look_up(argv[0], err);
	if (r < 0)
		return r;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	go_r = pair[0];
	go_w = pair[1];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	exec_r = pair[0];
	exec_w = pair[1];
	fflush(NULL);
	c->pid = fork();
	if (c->pid < 0) {
		c->pid = 0;
		return error_errno(err, -errno, "fork");
	}
	if (!c->pid) {
		close(go_w);
		close(exec_r);
		if (to_stderr)
			dup2(STDERR_FILENO, STDOUT_FILENO);
		child_main(go_r, exec_w, argv);
	}
	c->go_fd = TAKE_FD(go_w);
	c->exec_fd = TAKE_FD(exec_r);
	return 0;
}

int child_release(struct child *c, const char *name, struct error *err)
{
	int r, why;
	ssize_t n;

	if (c->go_fd < 0)
		return 0;
	r = write_full(c->go_fd, "", 1);
	c->go_fd = close_fd(c->go_fd);
	if (r < 0)
		return error_errno(err, r, "%s", name);
	n = read_full(c->exec_fd, &why, sizeof(why));
	c->exec_fd = close_fd(c->exec_fd);
	if (n == sizeof(why))
		return error_errno(err, -why, "%s", name);
	return 0;
}

bool child_reap(struct child *c)
{
	if (c->pid > 0 && !c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
	return c->ended;
}

void child_deinit(struct child *c)
{
	bool held = c->go_fd >= 0;

	close_fd(c->go_fd);
	close_fd(c->exec_fd);
	if (held && c->pid > 0 && !c->ended)
		waitpid(c->pid, NULL, 0);
	*c = CHILD_INIT;
}
