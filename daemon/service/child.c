/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/raw_clone.h"
#include "daemon/service/sandbox.h"

/*
 * When it drops descriptors from one number on, Linux rounds that number up to a multiple of 64,
 * and closes those below one by one.
 */
#define RESERVED_FDS 64
_Static_assert(CHILD_FIRST_FD + CHILD_FDS_MAX + 1 <= RESERVED_FDS, "a child's descriptors");

#define RESULT_MAX (1U << 20)
#define ARGS_MAX 48
#define ARGS_BYTES_MAX (32U << 10)

struct child {
	const char *what;
	struct loop *loop;
	struct loop_source *process, *pipe;
	int fd;		/* read end of the result pipe */
	int connection; /* connection to a service, instead of process; closing it ends the service;
			   or -EBADF */
	pid_t pid;	/* 0: a service's, which it has not told */
	struct buf result;
	siginfo_t status;
	bool exited, closed;
	child_done_t done;
	void *userdata;
};

struct child *child_free(struct child *c)
{
	if (!c)
		return NULL;
	loop_source_free(c->process);
	loop_source_free(c->pipe);
	close_fd(c->fd);
	close_fd(c->connection);
	buf_deinit(&c->result);
	free(c);
	return NULL;
}

int child_end(struct child *c)
{
	int fd = -EBADF;

	if (c) {
		c->pipe = loop_source_free(c->pipe);
		fd = TAKE_FD(c->fd);
	}
	child_free(c);
	return fd;
}

static Traced__Control__ExportResult *child_failed_result(int code, const char *message,
							  const char *hint)
{
	Traced__Control__ExportResult *result = malloc(sizeof(*result));
	Traced__Control__Error *error = malloc(sizeof(*error));

	if (!result || !error) {
		free(result);
		free(error);
		return NULL;
	}
	traced__control__export_result__init(result);
	traced__control__error__init(error);
	error->code = (uint32_t)code;
	error->message = strdup(message) ?: error->message;
	if (hint)
		error->hint = strdup(hint) ?: error->hint;
	result->error = error;
	return result;
}

static Traced__Control__ExportResult *child_take_result(struct child *c)
{
	Traced__Control__ExportResult *result = NULL;
	char text[200];

	/*
	 * An empty message is valid protobuf but no result: a result always contains its duration.
	 */
	if ((c->connection >= 0 || (c->status.si_code == CLD_EXITED && c->status.si_status == 0)) &&
	    !buf_error(&c->result) && c->result.len)
		result = traced__control__export_result__unpack(NULL, c->result.len,
								(const uint8_t *)c->result.data);
	if (result)
		return result;
	if (c->connection >= 0) {
		snprintf(text, sizeof(text), "the %s ended without a result", c->what);
		return child_failed_result(
			EIO, text, "journalctl -u '" TRACED_PROGRAM "-export@*' shows more");
	}
	if (c->status.si_code == CLD_EXITED)
		snprintf(text, sizeof(text), "the %s ended with status %d and no result", c->what,
			 c->status.si_status);
	else
		snprintf(text, sizeof(text), "the %s was killed by signal %d (%s)", c->what,
			 c->status.si_status, strsignal(c->status.si_status));
	return child_failed_result(EIO, text, NULL);
}

static void child_report_end(struct child *c)
{
	child_done_t done = c->done;
	void *userdata = c->userdata;
	Traced__Control__ExportResult *result;

	/* Only the service manager knows a service's exit status. */
	if ((!c->exited && c->connection < 0) || !c->closed)
		return;
	loop_doing("the end of the", c->what);
	result = child_take_result(c);
	if (result)
		done(userdata, result);
	else
		loop_exit(c->loop, -ENOMEM);
}

static void child_on_exit(void *userdata, const siginfo_t *si)
{
	struct child *c = userdata;

	c->status = *si;
	c->exited = true;
	child_report_end(c);
}

static void child_on_result(void *userdata, int fd, uint32_t revents _unused_)
{
	struct child *c = userdata;
	char piece[16 << 10];
	ssize_t n = read(fd, piece, sizeof(piece));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && c->result.len + (size_t)n <= RESULT_MAX) {
		buf_append(&c->result, piece, (size_t)n);
		return;
	}
	if (n != 0)
		c->result.failed = true;
	/* Close our end, too: a child that writes too much gets EPIPE. */
	c->closed = true;
	c->pipe = loop_source_free(c->pipe);
	c->fd = close_fd(c->fd);
	child_report_end(c);
}

void child_reserve_descriptors(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && fd < RESERVED_FDS)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	close_fd(fd);
}

/* Moves fds to 3, 4 and so on. */
static int child_place_descriptors(const int *fds, int count)
{
	int high[CHILD_FDS_MAX + 2];

	for (int i = 0; i < count; i++) {
		high[i] = fcntl(fds[i], F_DUPFD, CHILD_FIRST_FD + count);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < count; i++)
		if (dup2(high[i], CHILD_FIRST_FD + i) < 0)
			return -errno;
	return 0;
}

static dev_t tracefs_dev; /* 0: it is not open */

void child_set_tracefs(dev_t dev)
{
	tracefs_dev = dev;
}

/*
 * True if closing it may wait for another user's server: a file or folder of FUSE or NFS, or a TCP
 * socket. Files of tracefs must be closed, or the instances stay.
 */
static bool child_must_keep(int fd)
{
	socklen_t len = sizeof(int);
	int domain = AF_UNSPEC;
	struct statx st;

	/* No sync: a file's server is not asked. */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0 ||
	    !(st.stx_mask & STATX_TYPE))
		return true;
	switch (st.stx_mode & S_IFMT) {
	case S_IFSOCK:
		return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
		       domain != AF_UNIX;
	case S_IFREG:
	case S_IFDIR:
		return makedev(st.stx_dev_major, st.stx_dev_minor) != tracefs_dev;
	default:
		return false;
	}
}

/*
 * The process that has the table alone now. What hangs comes last. opendir() would allocate, and
 * another thread may have had the allocator's lock at the fork. With 64-bit offsets a dirent is
 * what the kernel gives.
 */
_Noreturn static void child_keep_others(void)
{
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), from = 0, fd = 0;
	char list[4096] __attribute__((aligned(8)));
	long n;

	/* In the order of their numbers. Those from `from` to `fd` are harmless, or not open. */
	while (dir >= 0 && (n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0)
		for (long at = 0; at < n;) {
			const struct dirent *e = (const void *)&list[at];

			at += e->d_reclen;
			if (*e->d_name == '.')
				continue;
			fd = atoi(e->d_name);
			if (fd != dir && !child_must_keep(fd))
				continue;
			if (from < fd)
				syscall(SYS_close_range, from, fd - 1, 0);
			from = fd + 1;
		}
	if (from <= fd)
		syscall(SYS_close_range, from, fd, 0);
	_exit(0);
}

/*
 * Drops all descriptors from `first` on without closing them. close() of another user's file of
 * FUSE or NFS waits for its server, at each close, not only the last. A process that shares the
 * table keeps them meanwhile, closes the harmless ones, and then waits for the others instead.
 */
static int child_drop_others(unsigned first)
{
	pid_t other, self = getpid();
	sigset_t go, old;
	long r;
	int sig;

	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, &old);
	other = raw_clone(CLONE_FILES | SIGCHLD);
	if (other < 0)
		return -errno;
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGUSR1);
		/* A parent that was killed before this sends no signal. */
		if (getppid() == self)
			sigwait(&go, &sig);
		child_keep_others();
	}
	r = syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_UNSHARE);
	kill(other, r < 0 ? SIGKILL : SIGUSR1);
	sigprocmask(SIG_SETMASK, &old, NULL);
	/* Before Linux 5.9 */
	return r < 0 ? close_fds_from((int)first) : 0;
}

static void child_set_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* A closed pipe and a full file must be reported as errors, not kill the process. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/*
 * Runs between fork and exec. The daemon's other threads do not exist in the child, and glibc
 * releases its locks there.
 */
static void child_exec(const struct child_spec *spec, int result_fd, pid_t parent)
{
	static const char *const private_vars[] = { "NOTIFY_SOCKET", "WATCHDOG_USEC",
						    "WATCHDOG_PID",  "LISTEN_FDS",
						    "LISTEN_PID",    "LISTEN_FDNAMES" };
	const char *argv[ARGS_MAX + 2] = { "traced" };
	int fds[CHILD_FDS_MAX + 1], count = (int)spec->fd_count, null;

	child_set_signals();
	/* Only recording is urgent. Lowering the priority always succeeds. */
	setpriority(PRIO_PROCESS, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	for (size_t i = 0; i < ARRAY_SIZE(private_vars); i++)
		unsetenv(private_vars[i]);
	memcpy(fds, spec->fds, sizeof(spec->fds));
	fds[count++] = result_fd;
	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    child_place_descriptors(fds, count) < 0 ||
	    child_drop_others((unsigned)(CHILD_FIRST_FD + count)) < 0)
		_exit(127);
	for (int i = 0; i < ARGS_MAX && spec->argv[i]; i++)
		argv[i + 1] = spec->argv[i];
	execv("/proc/self/exe", (char *const *)(void *)argv);
	_exit(127);
}

static int child_fork(struct child *c, const struct child_spec *spec, int result_fd,
		      struct error *err)
{
	pid_t parent = getpid(), pid;
	int r;

	/* It is for the child, where setenv() would allocate. */
	if (SANDBOX_SANITIZED)
		setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
	pid = fork();
	if (pid < 0)
		return error_errno(err, -errno, "can't start the %s", spec->what);
	if (pid == 0)
		child_exec(spec, result_fd, parent);
	c->pid = pid;
	r = loop_add_child(c->loop, &c->process, pid, child_on_exit, c);
	if (r < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return error_errno(err, r, "can't watch the %s", spec->what);
	}
	return 0;
}

/* Sends one message: the arguments, each NUL-terminated, and the descriptors. */
static int child_ask_service(struct child *c, const struct child_spec *spec, int result_fd,
			     struct error *err)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * (CHILD_FDS_MAX + 1))];
	} control = { 0 };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t fds_size = sizeof(int) * (spec->fd_count + 1), len = strlen(spec->service);
	_cleanup_buf_ struct buf args = BUF_INIT;
	const int on = 1;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	int *fds = (int *)(void *)CMSG_DATA(&control.header);

	if (len >= sizeof(sa.sun_path))
		return error_set(err, -ENAMETOOLONG, "%s: no socket has so long a path",
				 spec->service);
	memcpy(sa.sun_path, spec->service, len);
	for (int i = 0; i < ARGS_MAX && spec->argv[i]; i++)
		buf_append(&args, spec->argv[i], strlen(spec->argv[i]) + 1);
	if (buf_error(&args))
		return error_errno(err, buf_error(&args), "%s", spec->what);
	iov = (struct iovec){ .iov_base = args.data, .iov_len = args.len };
	msg.msg_controllen = CMSG_SPACE(fds_size);
	control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					   .cmsg_type = SCM_RIGHTS,
					   .cmsg_len = CMSG_LEN(fds_size) };
	memcpy(fds, spec->fds, sizeof(int) * spec->fd_count);
	fds[spec->fd_count] = result_fd;
	c->connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->connection < 0 ||
	    setsockopt(c->connection, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    connect(c->connection, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    sendmsg(c->connection, &msg, MSG_NOSIGNAL) < 0) {
		error_errno(err, -errno, "can't start the %s: %s", spec->what, spec->service);
		return error_hint(err, "systemctl status " TRACED_PROGRAM "-export.socket");
	}
	return 0;
}

int child_spawn(struct child **ret, struct loop *loop, const struct child_spec *spec,
		child_done_t done, void *userdata, struct error *err)
{
	_cleanup_(child_freep) struct child *c = calloc(1, sizeof(*c));
	_cleanup_close_ int theirs = -EBADF;
	int ends[2], r;

	if (!c)
		return error_errno(err, -ENOMEM, "%s", spec->what);
	c->loop = loop;
	c->fd = c->connection = -EBADF;
	c->what = spec->what;
	c->done = done;
	c->userdata = userdata;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	c->fd = ends[0];
	theirs = ends[1];
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0)
		return error_errno(err, -errno, "pipe");
	r = spec->service ? child_ask_service(c, spec, theirs, err)
			  : child_fork(c, spec, theirs, err);
	if (r < 0)
		return r;
	r = loop_add_io(loop, &c->pipe, c->fd, EPOLLIN, child_on_result, c);
	if (r < 0)
		return error_errno(err, r, "can't watch the %s", spec->what);
	*ret = TAKE_PTR(c);
	return 0;
}

/* A service's process sends one message: the kernel adds its number. */
pid_t child_pid(struct child *c)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *h;
	struct ucred peer;

	if (c->pid || c->connection < 0 || recvmsg(c->connection, &msg, MSG_DONTWAIT) < 0)
		return c->pid;
	h = CMSG_FIRSTHDR(&msg);
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_CREDENTIALS &&
	    h->cmsg_len == CMSG_LEN(sizeof(peer))) {
		memcpy(&peer, CMSG_DATA(h), sizeof(peer));
		c->pid = peer.pid;
	}
	return c->pid;
}

/* Receives the message of child_ask_service(). Returns the number of descriptors, or -errno. */
static int child_receive_request(int connection, char *args, size_t *ret_len, int *fds)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * (CHILD_FDS_MAX + 1))];
	} control;
	struct iovec iov = { .iov_base = args, .iov_len = ARGS_BYTES_MAX };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(connection, &msg, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	size_t size;

	if (n < 0)
		return -errno;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || args[n - 1] ||
	    (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return -EBADMSG;
	size = c->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(c), size);
	*ret_len = (size_t)n;
	return (int)(size / sizeof(int));
}

/* Makes SIGIO end this process when the daemon closes its end. */
static int child_die_with(int connection)
{
	char byte;

	signal(SIGIO, SIG_DFL);
	if (fcntl(connection, F_SETOWN, getpid()) < 0 ||
	    fcntl(connection, F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
		return -errno;
	return recv(connection, &byte, 1, MSG_PEEK) == 0 ? -ECONNRESET : 0;
}

int child_serve(int connection, int (*run)(int argc, char **argv))
{
	static char args[ARGS_BYTES_MAX];
	char *argv[ARGS_MAX + 1] = { NULL };
	int fds[CHILD_FDS_MAX + 2], argc = 0, count;
	size_t len = 0;

	child_set_signals();
	count = child_receive_request(connection, args, &len, fds);
	if (count < 1 || send(connection, "", 1, MSG_NOSIGNAL) != 1)
		return EXIT_FAILURE;
	fds[count] = connection;
	if (child_place_descriptors(fds, count + 1) < 0 ||
	    close_fds_from(CHILD_FIRST_FD + count + 1) < 0 ||
	    child_die_with(CHILD_FIRST_FD + count) < 0)
		return EXIT_FAILURE;
	for (char *p = args; p < args + len && argc < ARGS_MAX; p += strlen(p) + 1)
		argv[argc++] = p;
	return run(argc, argv);
}
