/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "far_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/vec.h"
#include "far_json.h"
#include "input.h"
#include "push.h"

/* Interval of checks whether a host has ended: a silent one, and one that closed its outputs. */
#define LOOK_MS 200
#define LOOK_SOON_MS 10
#define PIECE (64U << 10)
/* How long a host may take to ask for the program: people type passwords. */
#define ASK_S 120

/* An output of a host on its way to ours. */
struct passing {
	int fd; /* -EBADF: it has ended */
	FILE *to;
	int kept;	   /* nameless file for what comes before it is shown; negative: none */
	int error;	   /* -errno: why a part is missing */
	bool collected;	   /* all of it is kept, for a document */
	bool is_data;	   /* nothing of it may change */
	const char *label; /* before each line; NULL: none */
	unsigned char last;
};

/* A command on its way to a host and back. */
struct far_run {
	const struct host_name *name;
	struct host_process process;
	struct error err; /* if it did not start */
	struct passing outputs[2];
	struct push push;
	/* Its messages, while they may be about the program. */
	unsigned char line[128];
	size_t len;
	bool shown;
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

		if (c == '\r' && i + 1 < len && piece[i + 1] == '\n')
			piece[i] = ' '; /* ssh ends its lines so */
		else if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f ||
			 (p->last == 0xc2 && c >= 0x80 && c < 0xa0))
			piece[i] = '?';
		p->last = c;
	}
}

static bool passing_print(struct passing *p, const unsigned char *piece, size_t len)
{
	return fwrite(piece, 1, len, p->to) == len && fflush(p->to) == 0;
}

/* last: the byte before the piece; 0: it is the first one. */
static void passing_label(const struct passing *p, unsigned char last, const unsigned char *piece,
			  size_t len, struct buf *out)
{
	while (len) {
		const unsigned char *end = memchr(piece, '\n', len);
		size_t n = end ? (size_t)(end - piece) + 1 : len;

		if (!last || last == '\n')
			buf_printf(out, "%s: ", p->label);
		buf_append(out, piece, n);
		last = piece[n - 1];
		piece += n;
		len -= n;
	}
}

/* False: nothing more can be taken. */
static bool passing_put(struct passing *p, unsigned char *piece, size_t len, bool shown)
{
	_cleanup_buf_ struct buf labelled = BUF_INIT;
	const unsigned char last = p->last;

	if (!p->is_data)
		passing_tame(p, piece, len);
	if (p->label) {
		passing_label(p, last, piece, len, &labelled);
		p->error = buf_error(&labelled);
		piece = (unsigned char *)labelled.data;
		len = labelled.len;
	}
	/* It is this host's turn: nothing else makes room. */
	if (shown && p->collected && !p->error)
		p->error = p->kept < 0 ? p->kept : input_temp_has_room(p->kept, len) ? 0 : -ENOSPC;
	if (shown && !p->collected)
		return !p->error && passing_print(p, piece, len);
	p->error = p->error ?: write_full(p->kept, piece, len);
	return !p->error;
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

/* Prints what has come so far. */
static void passing_show(struct passing *p)
{
	unsigned char piece[PIECE];
	off_t at = 0;
	ssize_t n;

	if (p->collected)
		return;
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

/* labelled: so are its messages. */
static void far_run_start(struct far_run *f, const struct options *o, const struct host_name *name,
			  bool labelled, char **words)
{
	*f = (struct far_run){ .name = name, .err = ERROR_INIT, .push = PUSH_INIT(o) };
	f->push.limit_ns = now_ns(CLOCK_MONOTONIC) + ASK_S * NSEC_PER_SEC;
	host_run(&f->process, name->spec, words, &f->err);
	if (o->push)
		fcntl(f->process.in, F_SETFL, O_NONBLOCK);
	else
		f->process.in = close_fd(f->process.in);
	f->outputs[0] = (struct passing){ .fd = f->process.out, .to = stdout, .kept = -EBADF };
	f->outputs[1] = (struct passing){ .fd = f->process.err,
					  .to = stderr,
					  .kept = -EBADF,
					  .label = labelled ? name->label : NULL };
}

/* Keeps its output in files until it is shown: hosts are shown one after the other. */
static void far_run_keep(struct far_run *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++)
		f->outputs[i].kept = input_create_temp();
}

/* Shows its output from now on. before: another host was shown before. */
static void far_run_show(struct far_run *f, bool labelled, bool before)
{
	if (labelled && !f->outputs[0].collected)
		printf("%s%s:\n", before ? "\n" : "", f->name->label);
	fflush(stdout);
	f->shown = true;
	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++)
		passing_show(&f->outputs[i]);
}

/* Ends its input. r: 0 or -errno, with f->err. */
static void far_run_end_push(struct far_run *f, int r)
{
	f->push.wanted = false;
	push_deinit(&f->push);
	f->process.in = close_fd(f->process.in);
	if (r < 0)
		error_prefix(&f->err, "%s", f->name->label);
}

static void far_run_take_line(struct far_run *f, size_t size)
{
	struct passing *p = &f->outputs[1];
	unsigned char *last = &f->line[size - 1], c = *last;
	int r;

	*last = '\0';
	r = push_take_line(&f->push, (const char *)f->line, f->process.in, &f->err);
	*last = c;
	if (r < 0)
		far_run_end_push(f, r);
	if (r == 0 && !passing_put(p, f->line, size, f->shown)) {
		p->fd = close_fd(p->fd);
		far_run_end_push(f, 0);
	}
	f->len -= size;
	memmove(f->line, f->line + size, f->len);
}

/* Reads messages until the program is there. */
static void far_run_read_lines(struct far_run *f)
{
	struct passing *p = &f->outputs[1];
	ssize_t n = read(p->fd, f->line + f->len, sizeof(f->line) - f->len);
	const unsigned char *end;

	if (n < 0 && errno == EINTR)
		return;
	f->len += n > 0 ? (size_t)n : 0;
	while (f->push.wanted && p->fd >= 0 &&
	       ((end = memchr(f->line, '\n', f->len)) || f->len == sizeof(f->line)))
		far_run_take_line(f, end ? (size_t)(end - f->line) + 1 : f->len);
	if (n <= 0)
		far_run_end_push(f, 0);
	if (!f->push.wanted && p->fd >= 0 && !passing_put(p, f->line, f->len, f->shown))
		n = 0;
	if (n <= 0)
		p->fd = close_fd(p->fd);
}

/* Sends a piece of the program. */
static void far_run_go_on(struct far_run *f)
{
	int r = push_go_on(&f->push, f->process.in, &f->err);

	if (r < 0)
		far_run_end_push(f, r);
	else if (f->push.fd < 0)
		f->process.in = close_fd(f->process.in);
}

static void far_run_close(struct far_run *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++)
		f->outputs[i].fd = close_fd(f->outputs[i].fd);
}

static void far_run_check_time(struct far_run *f)
{
	if (!f->push.wanted)
		return;
	/* Its lines may be unread: its messages wait until it is shown. */
	if (!passing_may_read(&f->outputs[1], f->shown))
		push_renew(&f->push);
	if (now_ns(CLOCK_MONOTONIC) < f->push.limit_ns)
		return;
	if (f->push.size)
		error_set(&f->err, -ETIMEDOUT, "nothing of the program went there for %d s",
			  PUSH_SILENCE_S);
	else
		error_set(&f->err, -ETIMEDOUT, "it did not ask for the program for %d s", ASK_S);
	far_run_end_push(f, -ETIMEDOUT);
	host_end(&f->process);
	far_run_close(f);
}

/* Descriptors of a host: its outputs, and its input. */
#define FAR_RUN_FDS 3

/* Moves what is ready. */
static void far_run_move(struct far_run *f, const struct pollfd *ready)
{
	bool silent = f->ended;

	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++) {
		silent = silent && ready[i].fd == f->outputs[i].fd && !ready[i].revents;
		if (!ready[i].revents)
			continue;
		if (i == 1 && f->push.wanted)
			far_run_read_lines(f);
		else
			passing_read(&f->outputs[i], f->shown);
	}
	if (ready[2].revents && f->push.fd >= 0)
		far_run_go_on(f);
	if (silent) {
		far_run_end_push(f, 0);
		far_run_close(f);
	}
	far_run_check_time(f);
	f->ended = f->ended || host_has_ended(&f->process);
}

static bool far_run_is_closed(const struct far_run *f)
{
	return f->outputs[0].fd < 0 && f->outputs[1].fd < 0;
}

/* Returns the exit status of the command. */
static int far_run_finish(struct far_run *f, const struct options *o)
{
	int status = host_wait(&f->process);
	const char *why = push_explain(f->name->spec, status, o->push);

	far_run_end_push(f, 0);
	if (!f->err.code && o->push && why)
		error_set(&f->err, -ENOEXEC, "%s: %s", f->name->label, why);
	else if (!f->err.code && why)
		cli_warn("%s: %s", f->name->label, why);
	else if (!f->err.code && status > CLI_MISSING && !ferror(stdout))
		cli_warn("%s: the connection or the command ended with status %d", f->name->label,
			 status);
	for (size_t i = 0; i < ARRAY_SIZE(f->outputs); i++)
		if (!f->err.code && f->outputs[i].error < 0)
			error_errno(&f->err, f->outputs[i].error, "%s: its output is cut: %s",
				    f->name->label, input_temp_place());
	if (f->err.code)
		status = cli_fail(&f->err);
	error_deinit(&f->err);
	return status;
}

/* Adds what the host printed to the document. Returns the exit status. */
static int far_run_put_json(struct far_run *f, int status, struct buf *document)
{
	struct passing *p = &f->outputs[0];
	_cleanup_error_ struct error err = ERROR_INIT;
	struct stat st;

	if (far_json_put(document, f->name->label, status, p->kept, &err) < 0 &&
	    fstat(p->kept, &st) == 0 && st.st_size) {
		cli_warn("%s: its output is no JSON: %s", f->name->label,
			 err.message ?: "out of memory");
		status = status ?: CLI_FAILED;
	}
	p->kept = close_fd(p->kept);
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
	ret[2] =
		(struct pollfd){ .fd = f->push.fd < 0 ? -EBADF : f->process.in, .events = POLLOUT };
	if (waits || f->ended == far_run_is_closed(f) || !f->shown)
		return LOOK_MS;
	return f->ended ? 0 : LOOK_SOON_MS;
}

/* Does poll(2) for open descriptors only: the kernel counts the others against their limit, too. */
static int poll_open(struct pollfd *fds, size_t count, int wait_ms)
{
	struct pollfd open[HOSTS_MAX * FAR_RUN_FDS];
	nfds_t n = 0;
	int r;

	for (size_t i = 0; i < count; i++)
		if (fds[i].fd >= 0)
			open[n++] = fds[i];
	r = poll(open, n, wait_ms);
	while (count-- && n)
		if (fds[count].fd >= 0)
			fds[count].revents = open[--n].revents;
	return r;
}

/* most_ms: waits no longer. */
static void far_runs_wait(struct far_run *runs, size_t count, int most_ms)
{
	struct pollfd fds[HOSTS_MAX][FAR_RUN_FDS];
	int wait_ms = most_ms;

	for (size_t i = 0; i < count; i++) {
		int one_ms = far_run_poll(&runs[i], fds[i]);

		wait_ms = MIN(wait_ms, one_ms);
	}
	if (poll_open(*fds, count * FAR_RUN_FDS, wait_ms) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		far_run_move(&runs[i], fds[i]);
}

static void far_run_on_interrupt(int sig)
{
	interrupted = sig;
}

/* A second interrupt ends us at once. */
static void far_run_catch_interrupts(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	/* A write of what has come goes on; poll() ends. */
	const struct sigaction action = { .sa_handler = far_run_on_interrupt,
					  .sa_flags = (int)SA_RESETHAND | SA_RESTART };
	struct sigaction old;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

int far_run_all(const struct options *o, const struct host_list *hosts, char **words,
		enum far_output output)
{
	_cleanup_buf_ struct buf document = BUF_INIT;
	struct far_run runs[HOSTS_MAX];
	const size_t count = hosts->count;
	const bool json = output == FAR_JSON && count > 1;
	const bool is_data = output == FAR_DATA && !isatty(STDOUT_FILENO);
	int status = CLI_WHOLE;

	far_run_catch_interrupts();
	if (json)
		far_json_begin(&document);
	for (size_t i = 0; i < count; i++) {
		far_run_start(&runs[i], o, &hosts->items[i], count > 1, words);
		if (i || json)
			far_run_keep(&runs[i]);
		runs[i].outputs[0].collected = json;
		runs[i].outputs[0].is_data = is_data;
	}
	for (size_t turn = 0; turn < count; turn++) {
		struct far_run *f = &runs[turn];
		int one;

		/* Its pipes are read also if an interrupt has come. */
		far_runs_wait(f, 1, 0);
		far_run_show(f, count > 1, turn > 0);
		while (!interrupted && !(f->ended && far_run_is_closed(f)))
			far_runs_wait(f, count - turn, LOOK_MS);
		if (interrupted) {
			far_runs_wait(f, 1, 0);
			continue;
		}
		one = far_run_finish(f, o);
		if (json)
			one = far_run_put_json(f, one, &document);
		status = status ?: one;
	}
	if (json) {
		far_json_end(&document);
		fwrite(document.data, 1, document.len, stdout);
		fflush(stdout);
		if (buf_error(&document) < 0) {
			cli_warn("out of memory: the document is cut");
			status = CLI_FAILED;
		}
	}
	/* A command that prints nothing would not notice that nobody reads. */
	for (size_t i = 0; interrupted && i < count; i++)
		if (runs[i].process.pid)
			kill(runs[i].process.pid, SIGTERM);
	if (interrupted)
		raise(interrupted);
	return status;
}
