/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"

/* Shells return it for a failed exec, too, and a program may return it. */
#define EXEC_FAILED 127
/* How long a child that has closed its files may take to end. */
#define EXIT_MS 100

/* A file that can be executed, not a folder. Sets errno if not. */
static bool child_is_program(const char *file)
{
	struct stat st;

	if (access(file, X_OK) < 0 || stat(file, &st) < 0)
		return false;
	errno = EACCES;
	return S_ISREG(st.st_mode);
}

/* Looks up the program as execvp(3) does, so that this is not done while the recording runs. */
static int child_look_up(const char *name, char **ret, struct error *err)
{
	const char *path = getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin";
	int r = -ENOENT;

	if (strchr(name, '/')) {
		*ret = child_is_program(name) ? strdup(name) : NULL;
		return *ret ? 0 : error_errno(err, -errno, "%s", name);
	}
	while (path) {
		_cleanup_free_ char *file = NULL;
		size_t len = strcspn(path, ":");

		/* With a slash, execvp() searches no more. */
		if (asprintf(&file, "%.*s/%s", len ? (int)len : 1, len ? path : ".", name) < 0)
			return error_errno(err, -ENOMEM, "%s", name);
		if (child_is_program(file)) {
			*ret = TAKE_PTR(file);
			return 0;
		}
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

_Noreturn static void child_main(int go_fd, int exec_fd, const char *file, char *const *argv)
{
	char go;
	int r;

	/* The rest, after the go, is in the recording. */
	child_reset_signals();
	if (read_full(go_fd, &go, 1) != 1)
		_exit(EXEC_FAILED);
	execvp(file, argv);
	r = errno;
	write_full(exec_fd, &r, sizeof(r));
	_exit(EXEC_FAILED);
}

static int child_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -EBADF : fd;
}

bool child_can_be_watched(void)
{
	_cleanup_close_ int fd = child_pidfd(getpid());

	return fd >= 0;
}

int child_hold(struct child *c, char *const *argv, bool to_stderr, struct error *err)
{
	_cleanup_close_ int go_r = -EBADF, go_w = -EBADF, exec_r = -EBADF, exec_w = -EBADF;
	_cleanup_free_ char *file = NULL;
	int pair[2], r;

	r = child_look_up(argv[0], &file, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_errno(err, -errno, "socketpair");
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
		child_main(go_r, exec_w, file, argv);
	}
	c->name = argv[0];
	c->go_fd = TAKE_FD(go_w);
	c->end_fd = child_pidfd(c->pid);
	c->exec_fd = TAKE_FD(exec_r);
	return 0;
}

int child_release(struct child *c, struct error *err)
{
	/* The child may have been killed: no SIGPIPE then. */
	bool sent = c->released || send(c->go_fd, "", 1, MSG_NOSIGNAL) == 1;

	c->released = true;
	return sent ? 0 : error_errno(err, -errno, "%s", c->name);
}

int child_check_exec(struct child *c, struct error *err)
{
	int why;

	if (!WIFEXITED(c->status) || WEXITSTATUS(c->status) != EXEC_FAILED ||
	    read_full(c->exec_fd, &why, sizeof(why)) != sizeof(why))
		return 0;
	return error_errno(err, -why, "%s", c->name);
}

bool child_reap(struct child *c)
{
	if (c->pid > 0 && !c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
	return c->ended;
}

/*
 * The daemon may have this socket, too, and may have let the child go already. Then it runs the
 * command, and is left alone. Without an end_fd the daemon has nothing.
 */
static void child_end_held(const struct child *c)
{
	struct pollfd end = { .fd = c->end_fd, .events = POLLIN };
	int why;

	shutdown(c->go_fd, SHUT_RDWR);
	read_full(c->exec_fd, &why, sizeof(why));
	if (c->end_fd < 0 || poll(&end, 1, EXIT_MS) > 0)
		waitpid(c->pid, NULL, 0);
}

void child_deinit(struct child *c)
{
	if (c->go_fd >= 0 && !c->released && !c->ended)
		child_end_held(c);
	close_fd(c->go_fd);
	close_fd(c->end_fd);
	close_fd(c->exec_fd);
	*c = CHILD_INIT;
}
