/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output/framed.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "export/segment.h"
#include "output/framed_watch.h"
#include "output/name.h"

#define PROCESS_NAME "tracectl-files"
/* The longest that somebody who gives up waits for a file system. */
#define LEAVE_S 3
#define REAP_MS_MAX 50

int framed_refuse(struct error *err)
{
	return error_set(err, -EPROTO, "invalid data from the exporter");
}

static int framed_take_all(const struct framed_ops *ops, void *maker, struct framed_report *report,
			   char *data, struct error *err)
{
	struct segment_frame head;
	int r = 0;

	while (r == 0 && !report->left &&
	       read_full(STDIN_FILENO, &head, sizeof(head)) == sizeof(head)) {
		struct frame frame = { .kind = head.kind, .data = data };
		ssize_t n;

		if (head.kind < SEGMENT_DATA || head.kind > SEGMENT_SYNC ||
		    head.len > SEGMENT_FRAME_MAX)
			return framed_refuse(err);
		n = read_full(STDIN_FILENO, data, head.len);
		if (n < 0)
			return error_errno(err, (int)n, "cannot read from the exporter");
		frame.len = (size_t)n;
		framed_busy(report, true);
		r = head.kind == SEGMENT_SYNC ? 0 : ops->take(maker, &frame, err);
		framed_busy(report, false);
		report->whole = r == 0 && head.kind == SEGMENT_LAST;
		/* The exporter may be gone, or keeps the recorded data until this answer. */
		if (report->whole || head.kind == SEGMENT_SYNC)
			(void)!send(STDIN_FILENO, "", 1, MSG_NOSIGNAL);
	}
	return r;
}

static void framed_unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The recorder handles signals; this process ends with its socket. */
static void framed_leave_others(int fd, int kept)
{
	output_signals_ignore();
	framed_unblock_signals();
	prctl(PR_SET_NAME, PROCESS_NAME);
	dup2(fd, STDIN_FILENO);
	fd = open("/dev/null", O_WRONLY);
	if (fd >= 0)
		dup2(fd, STDOUT_FILENO);
	for (fd = STDERR_FILENO + 1; fd < kept; fd++)
		close(fd);
	close_fds_from(MAX(kept, STDERR_FILENO) + 1);
}

_Noreturn static void framed_run(const struct framed_ops *ops, void *maker, const char *path,
				 struct framed_report *report, char *data, int fd, int kept)
{
	struct error err = ERROR_INIT;

	framed_leave_others(fd, kept);
	framed_watch(report, path);
	if (framed_take_all(ops, maker, report, data, &err) < 0) {
		report->code = err.code;
		snprintf(report->message, sizeof(report->message), "%s", err.message);
		snprintf(report->hint, sizeof(report->hint), "%s", err.hint ?: "");
	}
	framed_busy(report, true);
	ops->end(maker);
	_exit(0);
}

static int framed_fork(struct framed *f, const struct framed_ops *ops, void *maker,
		       const char *path, int kept, struct error *err)
{
	_cleanup_free_ char *data = malloc(SEGMENT_FRAME_MAX);
	_cleanup_close_ int theirs = -EBADF;
	sigset_t old;
	int ends[2];

	if (!data)
		return error_errno(err, -ENOMEM, "cannot start the process that writes the files");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return error_errno(err, -errno, "socketpair");
	theirs = ends[0];
	f->fd = ends[1];
	/* A signal must not end the process before it ignores them. */
	output_signals_block(&old);
	f->pid = fork();
	if (f->pid == 0) {
		/* Otherwise the socket would never report its end. */
		close(f->fd);
		framed_run(ops, maker, path, f->report, data, theirs, kept);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return f->pid < 0 ? error_errno(err, -errno, "fork") : 0;
}

int framed_start(struct framed *ret, const struct framed_ops *ops, void *maker, const char *path,
		 int kept, struct error *err)
{
	void *report = mmap(NULL, ops->report_size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (report == MAP_FAILED)
		return error_errno(err, -errno, "cannot start the process that writes the files");
	*ret = FRAMED_INIT;
	ret->report = report;
	ret->report_size = ops->report_size;
	r = framed_fork(ret, ops, maker, path, kept, err);
	if (r < 0)
		framed_deinit(ret);
	return r;
}

/* Its file system does not answer: the kernel keeps the process until it does. */
static void framed_leave(struct framed *f)
{
	f->report->left = true;
	f->left = f->pid;
	f->pid = 0;
}

static void framed_wait(struct framed *f)
{
	unsigned ms = 1;
	int status = 0;
	pid_t r;

	f->fd = close_fd(f->fd);
	while (f->pid > 0 && (r = waitpid(f->pid, &status, WNOHANG)) <= 0) {
		if (r < 0 && errno != EINTR)
			break;
		/* The user's signals end us from now on. */
		if (f->report->give_up || framed_busy_s(f->report) >= LEAVE_S)
			framed_unblock_signals();
		if (f->report->give_up && framed_busy_s(f->report) >= LEAVE_S)
			framed_leave(f);
		usleep(ms * 1000);
		ms = MIN(ms * 2, (unsigned)REAP_MS_MAX);
	}
	if (WIFSIGNALED(status))
		f->killed_by = WTERMSIG(status);
	f->pid = 0;
}

int framed_finish(struct framed *f, struct error *err)
{
	const struct framed_report *report = f->report;

	framed_wait(f);
	if (report->code) {
		error_set(err, -report->code, "%s", report->message);
		if (*report->hint)
			error_hint(err, "%s", report->hint);
		return -report->code;
	}
	if (f->killed_by)
		return error_set(err, -ECHILD,
				 PROCESS_NAME ", which writes the files, was killed: %s",
				 strsignal(f->killed_by));
	return report->whole ? 0 : error_set(err, -EPIPE, "the trace is incomplete");
}

void framed_give_up(struct framed *f)
{
	if (f->report)
		f->report->give_up = true;
}

void framed_deinit(struct framed *f)
{
	framed_wait(f);
	if (f->report)
		munmap(f->report, f->report_size);
	*f = FRAMED_INIT;
}
