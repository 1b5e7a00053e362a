/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "background.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "destination.h"
#include "document.h"
#include "message_log.h"
#include "output/walk.h"
#include "record.h"

#define LOG_ENDING ".log"

struct background {
	const struct options *o;
	int tell_fd; /* socket to the caller's process: messages, then names between NULs */
	int log_fd;
	char *log;
};

static void background_deinit(struct background *b)
{
	close_fd(b->tell_fd);
	close_fd(b->log_fd);
	free(b->log);
}

/* The messages' file, beside the output. Appends: the next recording of that name has it, too. */
static int background_open_log(struct background *b, struct error *err)
{
	_cleanup_place_ struct place place = PLACE_INIT;
	_cleanup_free_ char *own = NULL;
	const char *output = b->o->output ?: output_default(b->o, OUTPUT_ENDING, &own);
	int r;

	if (!output || asprintf(&b->log, "%s" LOG_ENDING, output) < 0) {
		b->log = NULL;
		return error_errno(err, -ENOMEM, "the log");
	}
	r = place_check_owner(b->log, err);
	if (r == 0)
		r = place_find(&place, b->log, false, err);
	if (r < 0)
		return err->message ? r : error_errno(err, r, "%s", b->log);
	b->log_fd = message_log_open(place.dir_fd, place.base, 0666, b->log, err);
	return MIN(b->log_fd, 0);
}

/* From now on messages go to the file. */
static int background_recording(void *userdata, const Traced__Control__Session *session,
				struct error *err)
{
	struct background *b = userdata;
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = background_open_log(b, err);
	char taken;

	if (r < 0)
		return r;
	fflush(NULL);
	dup2(b->log_fd, STDERR_FILENO);
	buf_putc(&text, '\0');
	buf_append(&text, session->name, strlen(session->name) + 1);
	buf_append(&text, session->instance, strlen(session->instance) + 1);
	buf_puts(&text, b->log);
	buf_putc(&text, '\0');
	/* If the caller is gone (Ctrl-C), it wants no recording, and does not know its name. */
	if (text.failed || write_full(b->tell_fd, text.data, text.len) < 0 ||
	    read_full(b->tell_fd, &taken, 1) != 1)
		raise(SIGTERM);
	b->tell_fd = close_fd(b->tell_fd);
	return 0;
}

static int background_run(struct background *b)
{
	const struct record_mode mode = { background_recording, b };
	_cleanup_close_ int null = -EBADF;
	struct options changed = *b->o;

	/* Descriptors of whoever called tracectl: a lock, for example, must not stay held. */
	close_fds_from_except(STDERR_FILENO + 1, &b->tell_fd, 1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	changed.json = false;
	setsid();
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(b->tell_fd, STDERR_FILENO);
	return record_with(&changed, &mode);
}

static void background_tell(const struct options *o, const char *name, const char *instance,
			    const char *log)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	if (o->json) {
		document_open(&j, NULL, '{');
		document_string(&j, "session", name);
		document_string(&j, "instance", instance);
		document_close(&j, '}');
		document_print(&j);
		return;
	}
	cli_line(stdout, "%s", name);
	if (!o->quiet)
		cli_line(stderr, "recording; tracectl stop %s ends it. Messages: %s", name, log);
}

/* Passes on what the other process says until it records. False: it has failed. */
static bool background_await(const struct options *o, int fd)
{
	_cleanup_buf_ struct buf names = BUF_INIT;
	bool named = false;
	const char *instance;
	unsigned ends = 0;
	char c;

	while (ends < 3 && read_full(fd, &c, 1) == 1) {
		if (!named && c)
			fputc(c, stderr);
		else if (named)
			buf_putc(&names, c);
		ends += named && !c;
		named |= !c;
	}
	if (ends < 3 || names.failed)
		return false;
	instance = names.data + strlen(names.data) + 1;
	background_tell(o, names.data, instance, instance + strlen(instance) + 1);
	write_full(fd, "", 1);
	return true;
}

int background_start(const struct options *o)
{
	_cleanup_(background_deinit) struct background b = { o, -EBADF, -EBADF, NULL };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int listen_fd = -EBADF;
	int ends[2], status = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		error_errno(&err, -errno, "socketpair");
		return cli_fail(&err);
	}
	listen_fd = ends[0];
	b.tell_fd = ends[1];
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		error_errno(&err, -errno, "fork");
		return cli_fail(&err);
	}
	if (!pid) {
		listen_fd = close_fd(listen_fd);
		return background_run(&b);
	}
	b.tell_fd = close_fd(b.tell_fd);
	if (background_await(o, listen_fd))
		return CLI_WHOLE;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : CLI_FAILED;
}
