/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "confined.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "daemon/service/export_result.h"
#include "daemon/service/sandbox.h"
#include "outcome.h"
#include "output/name.h"

#define PROCESS_NAME "tracectl-decode"
#define RESULT_MAX (16U << 20)
/* Descriptors below this number: select() takes no others. */
#define FILES_MAX 1000
#define ELF_MAGIC                                                                                  \
	"\x7f"                                                                                     \
	"ELF"

/* A request has the kind, then the path with its NUL; an answer has a descriptor, or none. */
struct request {
	char kind;
	char path[PATH_MAX];
};

static int opener_fd = -EBADF; /* in the confined process */
static volatile pid_t confined_pid;

bool confined_wanted(void)
{
	return geteuid() == 0;
}

bool confined_here(void)
{
	return opener_fd >= 0;
}

void confined_kill(void)
{
	if (confined_pid > 0)
		kill(confined_pid, SIGKILL);
}

static int confined_send(int to, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	return sendmsg(to, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int confined_receive(int from)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;
	int fd;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) <= 0)
		return -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -ENOENT;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

/* In the confined process. */
static int confined_ask(void *userdata _unused_, const char *path, enum code_file_kind kind)
{
	struct request request = { .kind = (char)kind };
	size_t len = strlen(path) + 1;

	if (len > sizeof(request.path))
		return -ENAMETOOLONG;
	memcpy(request.path, path, len);
	if (send(opener_fd, &request, offsetof(struct request, path) + len, MSG_NOSIGNAL) < 0)
		return -errno;
	return confined_receive(opener_fd);
}

const struct code_opener *confined_opener(void)
{
	static const struct code_opener opener = { .open = confined_ask };

	return confined_wanted() || confined_here() ? &opener : NULL;
}

/*
 * A process that an attacker has taken over can ask for any path: it gets programs, libraries and
 * their debug information, and the maps of compiled code.
 */
static int confined_open(const struct request *request)
{
	const char *name = strrchr(request->path, '/');
	char magic[sizeof(ELF_MAGIC) - 1];
	_cleanup_close_ int fd = -EBADF;
	int pid, end = 0;

	if (request->kind == CODE_FILE_MAP) {
		if (!name || sscanf(name, "/perf-%d.map%n", &pid, &end) != 1 || !end || name[end])
			return -EPERM;
		return code_file_open(request->path, CODE_FILE_MAP);
	}
	fd = code_file_open(request->path, CODE_FILE_ELF);
	if (fd < 0)
		return TAKE_FD(fd);
	if (pread_full(fd, magic, sizeof(magic), 0) != sizeof(magic) ||
	    memcmp(magic, ELF_MAGIC, sizeof(magic)) != 0)
		return -ENOEXEC;
	return TAKE_FD(fd);
}

/* False: the process is gone, or misbehaves. */
static bool confined_serve(int socket)
{
	_cleanup_close_ int fd = -EBADF;
	struct request request;
	ssize_t n = recv(socket, &request, sizeof(request), 0);

	if (n <= (ssize_t)offsetof(struct request, path) || ((char *)&request)[n - 1])
		return false;
	fd = confined_open(&request);
	return confined_send(socket, fd) == 0;
}

/* Serves files until the process closes the pipe of its result. */
static void confined_attend(int socket, int pipe, struct buf *result)
{
	struct pollfd polled[] = { { .fd = pipe, .events = POLLIN },
				   { .fd = socket, .events = POLLIN } };
	const size_t piece = 64U << 10;

	while (result->len < RESULT_MAX) {
		char *to;
		ssize_t n;

		if (poll(polled, ARRAY_SIZE(polled), -1) < 0) {
			if (errno == EINTR)
				continue;
			return;
		}
		if (polled[1].revents && !confined_serve(socket)) {
			/* It may wait for an answer. */
			shutdown(socket, SHUT_RDWR);
			polled[1].fd = -1;
		}
		if (!polled[0].revents)
			continue;
		to = buf_reserve(result, piece);
		n = to ? read(pipe, to, piece) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		result->len += (size_t)n;
	}
}

static int confined_take(const struct buf *packed, int status, struct export_result *ret,
			 struct error *err)
{
	Traced__Control__ExportResult *m =
		!buf_error(packed) && WIFEXITED(status) && !WEXITSTATUS(status)
			? traced__control__export_result__unpack(NULL, packed->len,
								 (const uint8_t *)packed->data)
			: NULL;
	int r = 0;

	if (!m && WIFSIGNALED(status))
		return error_set(err, -ECHILD,
				 PROCESS_NAME ", which reads the input, was killed: %s",
				 strsignal(WTERMSIG(status)));
	if (!m)
		return error_set(err, -ECHILD, PROCESS_NAME ", which reads the input, has failed");
	if (m->error) {
		r = export_result_take_error(m->error, err);
	} else if (outcome_copy_result(ret, m) < 0) {
		r = error_errno(err, -ENOMEM, "the outcome");
	}
	traced__control__export_result__free_unpacked(m, NULL);
	return r;
}

static int confined_enter(pid_t parent, struct error *err)
{
	const struct sandbox sandbox = {
		.drop = true, .uid = sandbox_find_user(), .files = FILES_MAX, .parent = parent
	};
	int r;

	/* The parent handles signals; this process dies with it. */
	output_signals_ignore();
	prctl(PR_SET_NAME, PROCESS_NAME);
	r = sandbox_enter(&sandbox, err);
	if (r >= 0)
		return r;
	error_prefix(err, "root decodes only as another user");
	return error_hint(err, "run tracectl as a user other than root");
}

static int confined_start(int (*work)(void *userdata, struct export_result *ret, struct error *err),
			  void *userdata, const int sockets[2], const int pipes[2])
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	pid_t parent = getpid(), pid = fork();
	int status;

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	close(sockets[0]);
	close(pipes[0]);
	opener_fd = sockets[1];
	if (confined_enter(parent, &err) < 0 || work(userdata, &result, &err) < 0)
		status = export_result_send_error(pipes[1], &err);
	else
		status = export_result_send(pipes[1], &result);
	_exit(status);
}

int confined_run(int (*work)(void *userdata, struct export_result *ret, struct error *err),
		 void *userdata, struct export_result *ret, struct error *err)
{
	_cleanup_buf_ struct buf result = BUF_INIT;
	int sockets[2], pipes[2], status = 0, r;
	siginfo_t ended;
	sigset_t old;

	if (!confined_wanted())
		return work(userdata, ret, err);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return error_errno(err, -errno, "socketpair");
	if (pipe2(pipes, O_CLOEXEC) < 0) {
		r = error_errno(err, -errno, "pipe");
		close(sockets[0]);
		close(sockets[1]);
		return r;
	}
	/* A signal must not end the process before it ignores them. */
	output_signals_block(&old);
	r = confined_start(work, userdata, sockets, pipes);
	confined_pid = r;
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(sockets[1]);
	close(pipes[1]);
	if (r > 0) {
		confined_attend(sockets[0], pipes[0], &result);
		close(pipes[0]);
		close(sockets[0]);
		/* A signal must not reach another process that gets its number. */
		while (waitid(P_PID, (id_t)r, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			;
		confined_pid = 0;
		while (waitpid(r, &status, 0) < 0 && errno == EINTR)
			;
		return confined_take(&result, status, ret, err);
	}
	close(pipes[0]);
	close(sockets[0]);
	return error_errno(err, r, "fork");
}
