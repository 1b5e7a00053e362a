/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

#include "base/io.h"
#include "base/visible.h"
#include "cli.h"
#include "hints.h"
#include "hosts/hosts.h"

/* Bytes of one line: room for a path, or a long filter that the kernel rejected. */
#define LINE_MAX_BYTES 8192

static void cli_print_error(const struct error *err)
{
	const char *line = err->message ?: "out of memory";

	fflush(stdout);
	/* The kernel's messages have several lines, and a caret under one. */
	for (const char *lead = "tracectl: "; line; lead = "    ") {
		size_t length = strcspn(line, "\n");

		cli_line(stderr, "%s%.*s", lead, (int)length, line);
		line = line[length] ? line + length + 1 : NULL;
	}
	if (err->hint)
		cli_line(stderr, "  hint: %s%s", err->hint, err->hint_needs_output ? " FILE" : "");
}

int cli_fail(const struct error *err)
{
	/* Expected, for example with `| head`. */
	if (err->code == EPIPE)
		cli_warn("the reader closed the output: the rest was not written");
	else
		cli_print_error(err);
	return CLI_FAILED;
}

int cli_usage(const struct error *err)
{
	cli_print_error(err);
	/* Generated internally, not typed. */
	return err->code == ENOMEM ? CLI_FAILED : CLI_USAGE;
}

static void cli_print_line(FILE *to, const char *lead, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_buf_ struct buf line = BUF_INIT;

	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	buf_visible(&line, text ?: "out of memory", LINE_MAX_BYTES);
	fprintf(to, "%s%s\n", lead, buf_string(&line) ?: "out of memory");
}

void cli_line(FILE *to, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cli_print_line(to, "", fmt, ap);
	va_end(ap);
}

void cli_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cli_print_line(stderr, "tracectl: ", fmt, ap);
	va_end(ap);
}

void cli_pass_on(const char *warning)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_visible(&line, warning, VISIBLE_MAX);
	fprintf(stderr, "tracectl: %s\n", buf_string(&line) ?: "out of memory");
}

int cli_try_flush(struct error *err)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	error_errno(err, errno ? -errno : -EIO, "standard output");
	/* Avoid a second message. */
	__fpurge(stdout);
	clearerr(stdout);
	return -err->code;
}

bool cli_flush(void)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = cli_try_flush(&err);

	if (r < 0 && r != -EPIPE)
		cli_print_error(&err);
	return r == 0;
}

static int tracectl_run(int argc, char **argv)
{
	_cleanup_options_ struct options o = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct command *command;
	int next;

	if (options_parse(&o, argc, argv, NULL, &next, &err) < 0) {
		if (!err.hint)
			error_hint(&err, "'tracectl help' lists commands and options");
		return cli_usage(&err);
	}
	command = next < argc ? command_find(argv[next]) : NULL;
	if (o.version) {
		puts("tracectl " TRACED_VERSION);
		return CLI_WHOLE;
	}
	if (o.help) {
		if (command)
			help_command(command);
		else
			help_overview();
		return CLI_WHOLE;
	}
	if (next >= argc) {
		error_set(&err, -EINVAL, "a command is missing");
		error_hint(&err, "tracectl record -t 10s -o out.json; 'tracectl help' lists all "
				 "commands");
		return cli_usage(&err);
	}
	if (o.hosts.count || o.host_files.count || o.labels.count)
		return hosts_run(&o, argc - next, argv + next);
	if (o.push) {
		error_set(&err, -EINVAL, "--push needs a host");
		error_hint(&err, "tracectl -H root@board --push %s", argv[next]);
		return cli_usage(&err);
	}
	if (!command) {
		command_unknown(argv[next], &err);
		return cli_usage(&err);
	}
	if (options_parse(&o, argc - next, argv + next, command, &(int){ 0 }, &err) < 0) {
		/* `record ls -l`: the option is the command's; "--" is missing. */
		if (command->takes_command && o.arg_count > command->args_max)
			hint_stray_word(&o, command, &err);
		if (!err.hint && err.code != ENOMEM)
			error_hint(&err, "'tracectl help %s' lists its options", command->name);
		return cli_usage(&err);
	}
	if (o.help) {
		help_command(command);
		return CLI_WHOLE;
	}
	if (options_check(&o, command, &err) < 0)
		return cli_usage(&err);
	return command->run(&o);
}

int tracectl_main(int argc, char **argv)
{
	int status;

	reserve_standard_fds();
	/* A reader that leaves is an ordinary error. */
	signal(SIGPIPE, SIG_IGN);
	/* The file size limit (ulimit -f) is, too. */
	signal(SIGXFSZ, SIG_IGN);
	status = tracectl_run(argc, argv);
	return cli_flush() || status != CLI_WHOLE ? status : CLI_FAILED;
}
