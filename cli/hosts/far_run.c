/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "far_run.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "input.h"
#include "push.h"

/* Between two looks whether a silent host has ended; and one that has closed its outputs. */
#define LOOK_MS 200
#define LOOK_SOON_MS 10
#define PIECE (64U << 10)

/* An output of a host on its way to ours. */
struct passing {
	int fd; /* -EBADF: it has ended */
	FILE *to;
	int kept;  /* nameless file for what comes before its turn; negative: none */
	int error; /* -errno: why a part is missing */
	unsigned char last;
};

/* A command on its way to a host and back. */
struct far_run {
	const struct host_name *name;
	struct host_process process;
	struct error err; /* if it did not start */
	struct passing outputs[2];
	bool shown; /* its turn has come */
	bool ended; /* a process that it left behind may hold the pipes */
};

static volatile sig_atomic_t interrupted;

/*
 * Whoever has the host could otherwise control the terminal. U+0080 to U+009F, which begin with
 * 0xc2, are control characters, too.
 */
static void passing_tame(struct passing *p, unsigned char *piece, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = piece[i];

		if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f ||
		    (p->last == 0xc2 && c >= 0x80 && c < 0xa0))
			piece[i] = '?';
		p->last = c;
	}
}

static bool passing_print(struct passing *p, const unsigned char *piece, size_t len)
{
	return fwrite(piece, 1, len, p->to) == len && fflush(p->to) == 0;
}

/* False: nothing more can be taken. */
static bool passing_put(struct passing *p, unsigned char *piece, size_t len, bool shown)
{
	passing_tame(p, piece, len);
	if (shown)
		return passing_print(p, piece, len);
	p->error = write_full(p->kept, piece, len);
	return p->error == 0;
}

static void passing_read(struct passing *p, bool shown)
{
	unsigned char piece[PIECE];
	ssize_t n = read(p->fd, piece, sizeof(piece));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0 || !passing_put(p, piece, (size_t)n, shown))
		p->fd = close_fd(p->fd);
}

/* Prints what has come before its turn. */
static void passing_show(struct passing *p)
{
	unsigned char piece[PIECE];
	off_t at = 0;
	ssize_t n;

	while (p->kept >= 0 && (n = pread_full(p->kept, piece, sizeof(piece), at)) > 0) {
		at += n;
		if (passing_print(p, piece, (size_t)n))
			continue;
		p->fd = close_fd(p->fd);
		break;
	}
	p->kept = close_fd(p->kept);
}

/* Without room for it, the output waits in its pipe. */
static bool passing_may_read(const struct passing *p, bool shown)
{
	return shown || (p->kept >= 0 && input_temp_has_room(p->kept, PIECE));
}

/* Reads a byte of the host's messages. False: there are no more. */
static bool host_read_message(struct host_process *p, unsigned char *ret)
{
	struct pollfd fd = { .fd = p->err, .events = POLLIN };
	bool ended;
	int n;

	do {
		ended = host_has_ended(p);
		n = poll(&fd, 1, ended ? 0 : LOOK_MS);
	} while (n <= 0 && !ended);
	return n > 0 && read(p->err, ret, 1) == 1;
}

/* Sends the program when the host asks for it. Passes on the messages before. */
static int host_push(struct host_process *p, const struct options *o, struct error *err)
{
	_cleanup_(push_deinit) struct push push = PUSH_INIT(o);
	struct passing others = { .fd = p->err, .to = stderr, .kept = -EBADF };
	unsigned char line[128];
	size_t len = 0;
	int r = 0;

	while (r == 0 && host_read_message(p, line + len)) {
		unsigned char c = line[len++];

		if (c != '\n' && len < sizeof(line))
			continue;
		line[len - 1] = '\0';
		r = push_take_line(&push, (const char *)line, p->in, err);
		line[len - 1] = c;
		if (r == 0)
			passing_put(&others, line, len, true);
		len = 0;
	}
	passing_put(&others, line, len, true);
	while (r >= 0 && push.fd >= 0)
		r = push_go_on(&push, p->in, err);
	return MIN(r, 0);
}

/* kept: its output is printed later. */
static void far_run_start(struct far_run *f, const struct options *o, const struct host_name *name,
			  bool kept, char **words)
{
	*f = (struct far_run){ .name = name, .err = ERROR_INIT };
	host_run(&f->process, name->spec, words, &f->err);
	if (f->process.pid && o->push && host_push(&f->process, o, &f->err) < 0)
		error_prefix(&f->err, "%s", name->label);
	f->process.in = close_fd(f->process.in);
	f->outputs[0] = (struct passing){ .fd = f->process.out, .to = stdout, .kept = -EBADF };
	f->outputs[1] = (struct passing){ .fd = f->process.err, .to = stderr, .kept = -EBADF };
	for (size_t i = 0; kept && i < ARRAY_SIZE(f->outputs); i++)
		f->outputs[i].kept = input_create_temp();
}

/* Its turn has come. before: another one's was before. */
static void far_run_show(struct far_run *f, bool labelled, bool before)
{
	if (labelled)
		printf("%s%s:\n", before ? "\n" : "", f->name->label);
	fflush(stdout);
	f->shown = true;
	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++)
		passing_show(&f->outputs[i]);
}

/* Takes what is ready. */
static void far_run_take(struct far_run *f, const struct pollfd *ready)
{
	bool silent = f->ended;

	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++) {
		silent = silent && ready[i].fd == f->outputs[i].fd && !ready[i].revents;
		if (ready[i].revents)
			passing_read(&f->outputs[i], f->shown);
	}
	for (size_t i = 0; silent && i < ARRAY_SIZE(f->outputs); i++)
		f->outputs[i].fd = close_fd(f->outputs[i].fd);
	f->ended = f->ended || host_has_ended(&f->process);
}

static bool far_run_is_closed(const struct far_run *f)
{
	return f->outputs[0].fd < 0 && f->outputs[1].fd < 0;
}

/* Returns the exit status of the command. */
static int far_run_finish(struct far_run *f, const struct options *o)
{
	int status = f->process.pid ? host_wait(&f->process) : CLI_FAILED;

	if (!f->err.code && o->push && push_explain(status))
		error_set(&f->err, -ENOEXEC, "%s: %s", f->name->label, push_explain(status));
	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++)
		if (!f->err.code && f->outputs[i].error < 0)
			error_errno(&f->err, f->outputs[i].error, "%s: its output is cut: %s",
				    f->name->label, input_temp_place());
	if (f->err.code)
		status = cli_fail(&f->err);
	error_deinit(&f->err);
	return status;
}

/* Fills in the poll; returns its longest time in ms. */
static int far_run_poll(const struct far_run *f, struct pollfd *ret)
{
	bool waits = false;

	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++) {
		const struct passing *p = &f->outputs[i];
		const bool may_read = p->fd >= 0 && passing_may_read(p, f->shown);

		ret[i] = (struct pollfd){ .fd = may_read ? p->fd : -EBADF, .events = POLLIN };
		waits |= p->fd >= 0 && !may_read;
	}
	if (waits || f->ended == far_run_is_closed(f))
		return LOOK_MS;
	return f->ended ? 0 : LOOK_SOON_MS;
}

static void far_runs_wait(struct far_run *runs, size_t count)
{
	struct pollfd fds[HOSTS_MAX][ARRAY_SIZE(runs->outputs)];
	int wait_ms = LOOK_MS;

	for (size_t i = 0; i < count; i++) {
		int one_ms = far_run_poll(&runs[i], fds[i]);

		wait_ms = MIN(wait_ms, one_ms);
	}
	if (poll(*fds, (nfds_t)(count * ARRAY_SIZE(*fds)), wait_ms) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		far_run_take(&runs[i], fds[i]);
}

/* Returns the first status that is not 0. */
static int far_runs_print(struct far_run *runs, size_t count, const struct options *o,
			  bool labelled, bool before)
{
	int status = CLI_WHOLE;

	for (size_t turn = 0; turn < count; turn++) {
		struct far_run *f = &runs[turn];
		int one;

		far_run_show(f, labelled, before || turn);
		while (!interrupted && !(f->ended && far_run_is_closed(f)))
			far_runs_wait(runs + turn, count - turn);
		if (interrupted)
			continue;
		one = far_run_finish(f, o);
		status = status ?: one;
	}
	return status;
}

static void far_run_on_interrupt(int sig)
{
	interrupted = sig;
}

/* A second interrupt ends us at once. */
static void far_run_catch_interrupts(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = far_run_on_interrupt,
					  .sa_flags = (int)SA_RESETHAND };
	struct sigaction old;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

int far_run_all(const struct options *o, const struct host_list *hosts, bool at_once, char **words)
{
	struct far_run runs[HOSTS_MAX];
	const size_t step = at_once ? hosts->count : 1;
	int status = CLI_WHOLE;

	for (size_t i = 0; i < hosts->count && !interrupted; i += step) {
		int one;

		for (size_t k = i; k < i + step; k++)
			far_run_start(&runs[k], o, &hosts->items[k], k > i, words);
		far_run_catch_interrupts();
		one = far_runs_print(runs + i, step, o, hosts->count > 1, i > 0);
		status = status ?: one;
	}
	if (interrupted)
		raise(interrupted);
	return status;
}
