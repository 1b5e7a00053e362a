/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosts.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "hints.h"
#include "push.h"

/* Between two looks whether a silent host has ended. */
#define LOOK_MS 200
/* The most that users may have: what a host prints waits there until the hosts before it end. */
#define PIPE_BYTES (1 << 20)

/* They read and write no file here. record has a way of its own. */
static const struct command *const far_commands[] = {
	&command_status,   &command_list,   &command_events, &command_doctor,
	&command_stop,	   &command_cancel, &command_mark,   &command_sync,
	&command_profiles, &command_report, &command_hist,   &command_top,
};

static bool command_is_far(const struct command *command)
{
	for (size_t i = 0; i < ARRAY_SIZE(far_commands); i++)
		if (far_commands[i] == command)
			return true;
	return false;
}

/* These take their time, so all hosts run them at once. */
static bool command_lasts(const struct command *command)
{
	return command == &command_hist || command == &command_top;
}

/* A far command ends with its time, or when nobody reads what it prints. */
static int hosts_check_lasting(const struct command *command, size_t hosts, int argc, char **argv,
			       struct error *err)
{
	_cleanup_options_ struct options o = { 0 };
	int r = options_parse(&o, argc, argv, command, &(int){ 0 }, err);

	if (r < 0 || o.help)
		return r;
	if (o.output) {
		error_set(err, -EINVAL, "%s -H: -o would write a file on the host", command->name);
		return error_hint(err, "tracectl -H HOST record -o FILE writes one here");
	}
	if (o.duration_ns || (hosts == 1 && (o.watch || command == &command_top)))
		return 0;
	error_set(err, -EINVAL, "%s -H%s: the time is missing", command->name,
		  hosts > 1 ? " of several hosts" : "");
	return error_hint(err, "-t 10s");
}

/* An output of a host on its way to ours. */
struct passing {
	int *fd;
	FILE *to;
	unsigned char last;
};

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

static bool passing_put(struct passing *p, unsigned char *piece, size_t len)
{
	passing_tame(p, piece, len);
	return fwrite(piece, 1, len, p->to) == len && fflush(p->to) == 0;
}

static void passing_read(struct passing *p)
{
	unsigned char piece[4096];
	ssize_t n = read(*p->fd, piece, sizeof(piece));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0 || !passing_put(p, piece, (size_t)n))
		*p->fd = close_fd(*p->fd);
}

/* Passes on what the host prints, and waits for its end. Returns its status. */
static int host_pass_on(struct host_process *p)
{
	struct passing passings[] = { { &p->out, stdout, 0 }, { &p->err, stderr, 0 } };
	bool ended = false;

	p->in = close_fd(p->in);
	while (p->out >= 0 || p->err >= 0) {
		struct pollfd fds[] = { { .fd = p->out, .events = POLLIN },
					{ .fd = p->err, .events = POLLIN } };
		int n = poll(fds, ARRAY_SIZE(fds), ended ? 0 : LOOK_MS);

		/* A process that it left behind may hold the pipes. */
		if (n == 0 && ended)
			break;
		ended = host_has_ended(p);
		for (size_t i = 0; n > 0 && i < ARRAY_SIZE(fds); i++)
			if (fds[i].revents)
				passing_read(&passings[i]);
	}
	close_fd(p->out);
	close_fd(p->err);
	return host_wait(p);
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
	struct passing others = { &p->err, stderr, 0 };
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
			passing_put(&others, line, len);
		len = 0;
	}
	passing_put(&others, line, len);
	while (r >= 0 && push.fd >= 0)
		r = push_go_on(&push, p->in, err);
	return MIN(r, 0);
}

/* A command on its way to a host and back. */
struct far_run {
	struct host_process process;
	struct error err; /* if it did not start */
};

static void far_run_start(struct far_run *f, const struct options *o, const struct host_name *host,
			  char **argv)
{
	*f = (struct far_run){ .err = ERROR_INIT };
	if (host_run(&f->process, host->spec, argv, &f->err) < 0)
		return;
	if (o->push && host_push(&f->process, o, &f->err) < 0)
		error_prefix(&f->err, "%s", host->label);
	f->process.in = close_fd(f->process.in);
}

/* Returns the exit status of the command. */
static int far_run_finish(struct far_run *f, const struct options *o, const struct host_name *host)
{
	int status = f->process.pid ? host_pass_on(&f->process) : CLI_FAILED;

	if (!f->err.code && o->push && push_explain(status))
		error_set(&f->err, -ENOEXEC, "%s: %s", host->label, push_explain(status));
	if (f->err.code)
		status = cli_fail(&f->err);
	error_deinit(&f->err);
	return status;
}

/* Prints one host after the other. Of several statuses the first that is not 0. */
static int hosts_run_words(const struct options *o, const struct host_list *hosts, bool at_once,
			   char **words)
{
	struct far_run runs[HOSTS_MAX];
	int status = CLI_WHOLE;

	for (size_t i = 0; at_once && i < hosts->count; i++) {
		far_run_start(&runs[i], o, &hosts->items[i], words);
		fcntl(runs[i].process.out, F_SETPIPE_SZ, PIPE_BYTES);
	}
	for (size_t i = 0; i < hosts->count; i++) {
		int one;

		if (hosts->count > 1)
			printf("%s%s:\n", i ? "\n" : "", hosts->items[i].label);
		fflush(stdout);
		if (!at_once)
			far_run_start(&runs[i], o, &hosts->items[i], words);
		one = far_run_finish(&runs[i], o, &hosts->items[i]);
		status = status ?: one;
	}
	return status;
}

static int hosts_run_each(const struct options *o, const struct host_list *hosts, bool at_once,
			  int argc, char **argv)
{
	static const char *const push_words[] = { PUSH_WORDS };
	_cleanup_free_ char **far = calloc(ARRAY_SIZE(push_words) + (size_t)argc + 4, sizeof(*far));
	int count = 0;

	if (!far)
		return CLI_FAILED;
	for (size_t i = 0; o->push && i < ARRAY_SIZE(push_words); i++)
		far[count++] = (char *)(uintptr_t)push_words[i];
	far[count++] = (char *)"tracectl";
	if (o->socket) {
		far[count++] = (char *)"--socket";
		far[count++] = (char *)o->socket;
	}
	memcpy(far + count, argv, (size_t)argc * sizeof(*far));
	return hosts_run_words(o, hosts, at_once, far);
}

int hosts_run(const struct options *o, int argc, char **argv)
{
	_cleanup_host_list_ struct host_list hosts = { .count = 0 };
	const struct command *command = command_find(argv[0]);
	_cleanup_error_ struct error err = ERROR_INIT;

	if (host_list_init(&hosts, o, &err) < 0)
		return cli_usage(&err);
	if (command == &command_record)
		return hosts_record(o, &hosts, argc, argv);
	if (!command) {
		command_unknown(argv[0], &err);
		return cli_usage(&err);
	}
	if (!command_is_far(command)) {
		error_set(&err, -EINVAL, "%s does not work with -H", command->name);
		error_hint(&err, "record, status, list, events, doctor, stop, cancel, mark, sync, "
				 "profiles, report, hist and top do");
		return cli_usage(&err);
	}
	if (command_lasts(command) &&
	    hosts_check_lasting(command, hosts.count, argc, argv, &err) < 0)
		return cli_usage(&err);
	return hosts_run_each(o, &hosts, command_lasts(command), argc, argv);
}
