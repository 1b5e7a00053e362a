/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl status` and `tracectl list`: sessions in detail and in short. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/account.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/plural.h"
#include "base/visible.h"
#include "cli.h"
#include "document.h"
#include "kernel/kernel_list.h"
#include "leftovers.h"
#include "link.h"
#include "private.h"

/* Home, and clear to the end. */
#define CLEAR_SCREEN "\033[H\033[J"

typedef Traced__Control__Session Session;

static const char *state_name(Traced__Control__Session__State state)
{
	switch (state) {
	case TRACED__CONTROL__SESSION__STATE__ARMING:
		return "arming";
	case TRACED__CONTROL__SESSION__STATE__RECORDING:
		return "recording";
	case TRACED__CONTROL__SESSION__STATE__DRAINING:
		return "draining";
	case TRACED__CONTROL__SESSION__STATE__EXPORTING:
		return "exporting";
	case TRACED__CONTROL__SESSION__STATE__STOPPED:
		return "stopped";
	case TRACED__CONTROL__SESSION__STATE__FAILED:
		return "failed";
	default:
		return "?";
	}
}

/* The session whose triggers' events this one has; NULL: none of these. */
static const Session *status_whole_of(const Traced__Control__Status *status, const Session *part)
{
	const size_t len = strlen(part->name), suffix = strlen(TRIGGERS_SUFFIX);

	if (!part->for_conditions || len <= suffix)
		return NULL;
	for (size_t i = 0; i < status->n_sessions; i++) {
		const char *name = status->sessions[i]->name;

		if (strlen(name) == len - suffix && !strncmp(part->name, name, len - suffix))
			return status->sessions[i];
	}
	return NULL;
}

static int status_ask(const struct options *o, Traced__Control__Reply **ret, struct error *err)
{
	_cleanup_link_ struct link link = { 0 };
	int r;

	r = link_open(&link, o, LINK_LISTENING, err);
	if (r < 0)
		return r;
	return link_status(&link, o->arg_count ? o->args[0] : NULL, ret, err);
}

static void status_json_cpus(struct document *j, const Session *s)
{
	document_open(j, "cpus", '[');
	for (size_t i = 0; i < s->n_cpus; i++) {
		document_open(j, NULL, '{');
		document_uint(j, "cpu", s->cpus[i]->cpu);
		document_uint(j, "events", s->cpus[i]->events);
		document_uint(j, "lost", s->cpus[i]->lost);
		document_uint(j, "bytes", s->cpus[i]->bytes);
		document_bool(j, "offline", s->cpus[i]->offline);
		document_close(j, '}');
	}
	document_close(j, ']');
}

static void status_json_session(struct document *j, const Session *s, const Session *whole)
{
	document_open(j, NULL, '{');
	document_string(j, "name", s->name);
	if (whole)
		document_string(j, "part_of", whole->name);
	document_string(j, "state", state_name(s->state));
	document_uint(j, "uid", s->uid);
	document_string(j, "what", s->what);
	document_string(j, "instance", s->instance);
	document_string(j, "place", s->place);
	document_uint(j, "started_boot_ns", s->started_boot_ns);
	document_uint(j, "elapsed_ns", s->elapsed_ns);
	document_uint(j, "duration_ns", s->duration_ns);
	document_uint(j, "events", s->events);
	document_uint(j, "event_types", s->event_types);
	document_uint(j, "lost", s->lost);
	document_uint(j, "overwritten", s->overwritten);
	document_uint(j, "bytes", s->bytes);
	document_uint(j, "spool_bytes", s->spool_bytes);
	document_uint(j, "memory_bytes", s->memory_bytes);
	document_uint(j, "cpu_time_ns", s->cpu_time_ns);
	document_uint(j, "buffer_bytes", s->buffer_bytes);
	document_bool(j, "ring", s->ring);
	document_string(j, "reader", s->reader);
	document_string(j, "error", s->error);
	document_open(j, "warnings", '[');
	for (size_t i = 0; i < s->n_warnings; i++)
		document_string(j, NULL, s->warnings[i]);
	document_close(j, ']');
	status_json_cpus(j, s);
	document_close(j, '}');
}

static void status_json_private(struct document *j, const struct private_recordings *l)
{
	document_open(j, "private", '[');
	for (size_t i = 0; i < l->count; i++) {
		document_open(j, NULL, '{');
		document_string(j, "name", private_recording_name(&l->items[i]));
		document_uint(j, "daemon", (uint64_t)l->items[i].daemon);
		document_string(j, "instance", l->items[i].instance);
		document_string(j, "command", l->items[i].command);
		document_close(j, '}');
	}
	document_close(j, ']');
}

/* private NULL: without them. */
static void status_print_json(const Traced__Control__Status *status, bool daemon,
			      const struct private_recordings *private)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	document_open(&j, NULL, '{');
	if (daemon) {
		document_uint(&j, "uptime_ns", status->uptime_ns);
		document_uint(&j, "cpu_time_ns", status->cpu_time_ns);
		document_uint(&j, "rss_bytes", status->rss_bytes);
		document_uint(&j, "spool_bytes", status->spool_bytes);
		document_uint(&j, "spare_bytes", status->spare_bytes);
	}
	document_open(&j, "sessions", '[');
	for (size_t i = 0; i < status->n_sessions; i++)
		status_json_session(&j, status->sessions[i],
				    status_whole_of(status, status->sessions[i]));
	document_close(&j, ']');
	if (private)
		status_json_private(&j, private);
	document_close(&j, '}');
	document_print(&j);
}

static void status_owner(uint32_t uid, struct buf *out)
{
	_cleanup_free_ char *name = account_name(uid);

	if (name)
		buf_puts(out, name);
	else
		buf_printf(out, "%" PRIu32, uid);
}

static void status_print_cpus(const Session *s)
{
	for (size_t i = 0; i < s->n_cpus; i++) {
		_cleanup_buf_ struct buf line = BUF_INIT;
		const Traced__Control__Cpu *cpu = s->cpus[i];

		buf_printf(&line, "  CPU %-4" PRIu32 " ", cpu->cpu);
		format_count(cpu->events, &line);
		buf_puts(&line, " events, ");
		format_count(cpu->lost, &line);
		buf_puts(&line, " lost, ");
		format_bytes(cpu->bytes, &line);
		puts(buf_string(&line) ?: "");
	}
}

static void status_put_error(const Session *s, struct buf *out)
{
	if (s->error && *s->error) {
		buf_puts(out, ": ");
		buf_visible(out, s->error, VISIBLE_MAX);
	}
}

static void status_print_session(const Session *s, bool verbose)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	buf_visible(&b, s->name, VISIBLE_MAX);
	buf_printf(&b, ": %s%s", state_name(s->state), s->ring ? " (ring)" : "");
	status_put_error(s, &b);
	buf_puts(&b, "\n  what      ");
	if (s->for_conditions)
		buf_puts(&b, "for conditions: ");
	buf_visible(&b, s->what, VISIBLE_MAX);
	buf_printf(&b, " (%" PRIu32 " event type%s), by ", s->event_types,
		   plural_s(s->event_types));
	status_owner(s->uid, &b);
	if (*s->place) {
		buf_puts(&b, "\n  files     ");
		buf_visible(&b, s->place, VISIBLE_MAX);
	}
	buf_puts(&b, "\n  time      ");
	format_duration(s->elapsed_ns, &b);
	if (s->duration_ns) {
		buf_puts(&b, " of ");
		format_duration(s->duration_ns, &b);
	}
	buf_puts(&b, "\n  events    ");
	format_count(s->events, &b);
	/* Excludes what the kernel still holds. */
	if (s->state == TRACED__CONTROL__SESSION__STATE__RECORDING && !s->ring)
		buf_puts(&b, " read so far");
	if (s->elapsed_ns)
		buf_printf(&b, " (%.0f/s)", (double)s->events * 1e9 / (double)s->elapsed_ns);
	buf_puts(&b, ", ");
	format_count(s->lost, &b);
	buf_puts(&b, " lost\n  stream    ");
	format_bytes(s->bytes, &b);
	if (s->spool_bytes) {
		buf_puts(&b, ", of which ");
		format_bytes(s->spool_bytes, &b);
		buf_puts(&b, " wait to be written out");
	}
	buf_puts(&b, "\n  buffer    ");
	format_bytes(s->buffer_bytes, &b);
	buf_puts(&b, " a CPU, read by ");
	buf_visible(&b, s->reader, VISIBLE_MAX);
	/* No percentage: for a while, setting up dominates. */
	buf_puts(&b, "\n  cost      ");
	format_duration(s->cpu_time_ns, &b);
	buf_puts(&b, " of CPU time, setting up included");
	puts(buf_string(&b) ?: "out of memory");
	for (size_t i = 0; i < s->n_warnings; i++)
		cli_line(stdout, "  warning   %.*s", VISIBLE_MAX, s->warnings[i]);
	if (verbose)
		status_print_cpus(s);
}

/* A session that only has the events of the triggers of another one. */
static void status_print_part(const Session *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	buf_puts(&b, "  triggers  ");
	buf_visible(&b, s->name, VISIBLE_MAX);
	buf_printf(&b, ": %s", state_name(s->state));
	status_put_error(s, &b);
	buf_puts(&b, ", ");
	format_count(s->events, &b);
	buf_puts(&b, " events, ");
	format_count(s->lost, &b);
	buf_puts(&b, " lost, ");
	format_duration(s->cpu_time_ns, &b);
	buf_puts(&b, " of CPU time");
	puts(buf_string(&b) ?: "out of memory");
}

static void status_print_sessions(const Traced__Control__Status *status, bool verbose)
{
	for (size_t i = 0; i < status->n_sessions; i++) {
		const Session *s = status->sessions[i];

		if (status_whole_of(status, s))
			continue;
		putchar('\n');
		status_print_session(s, verbose);
		for (size_t k = 0; k < status->n_sessions; k++)
			if (status_whole_of(status, status->sessions[k]) == s)
				status_print_part(status->sessions[k]);
	}
}

static void status_print_private(const struct private_recordings *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct private_recording *p = &l->items[i];

		putchar('\n');
		cli_line(stdout, "private recording %s, by traced %d", private_recording_name(p),
			 (int)p->daemon);
		if (*p->command)
			cli_line(stdout, "  command   %s", p->command);
		cli_line(stdout, "  instance  %s", p->instance);
		cli_line(stdout, "  marks     as root: tracectl mark --name %s TEXT",
			 private_recording_name(p));
	}
}

static void status_print_daemon(const Traced__Control__Status *status)
{
	_cleanup_buf_ struct buf line = BUF_INIT;
	size_t count = 0;

	buf_puts(&line, "traced: up ");
	format_duration(status->uptime_ns, &line);
	buf_puts(&line, ", CPU time ");
	format_duration(status->cpu_time_ns, &line);
	buf_puts(&line, ", memory ");
	format_bytes(status->rss_bytes, &line);
	for (size_t i = 0; i < status->n_sessions; i++)
		count += !status_whole_of(status, status->sessions[i]);
	buf_printf(&line, ", %zu session%s", count, plural_s(count));
	if (status->spare_bytes) {
		buf_puts(&line, ", buffers of ");
		format_bytes(status->spare_bytes, &line);
		buf_puts(&line, " wait for the next recording");
	}
	puts(buf_string(&line) ?: "traced");
}

/* Without a daemon and without --socket, private recordings alone are a status, too. */
static int status_show(const struct options *o)
{
	_cleanup_(private_recordings_deinit) struct private_recordings private = { 0 };
	const Traced__Control__Status none = TRACED__CONTROL__STATUS__INIT, *status = &none;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	int r = status_ask(o, &reply, &err);

	if (!o->arg_count)
		private_recordings_find_usual(&private);
	if (r < 0 && (o->socket || !link_no_daemon(r) || !private.count)) {
		if (!o->json)
			status_print_private(&private);
		return cli_fail(&err);
	}
	if (r == 0)
		status = reply->status;
	if (o->json) {
		status_print_json(status, r == 0, &private);
		return CLI_WHOLE;
	}
	if (r == 0)
		status_print_daemon(status);
	else
		cli_line(stderr, "%s", err.message);
	status_print_sessions(status, o->verbose);
	status_print_private(&private);
	return CLI_WHOLE;
}

/* Once a second, until a signal or a reader that leaves. */
static int status_watch(const struct options *o)
{
	const struct timespec second = { .tv_sec = 1 };
	const bool terminal = isatty(STDOUT_FILENO);
	int r;

	for (;;) {
		if (terminal)
			fputs(CLEAR_SCREEN, stdout);
		r = status_show(o);
		if (r != CLI_WHOLE || !cli_flush())
			return r ?: CLI_FAILED;
		nanosleep(&second, NULL);
	}
}

static int status_run(const struct options *o)
{
	return o->watch ? status_watch(o) : status_show(o);
}

/* On stderr: the table is also for programs. */
static void status_tell_leftovers(const struct options *o)
{
	_cleanup_(leftovers_deinit) struct leftovers left = { 0 };

	leftovers_find(&left, o);
	for (size_t i = 0; i < left.count; i++) {
		_cleanup_buf_ struct buf remedy = BUF_INIT;

		leftover_put_remedy(&left.items[i], "FILE", &remedy);
		cli_line(stderr, "left from an earlier run: %s", buf_string(&remedy) ?: "?");
	}
}

static int list_run(const struct options *o)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	const Traced__Control__Status *status;

	if (o->arg_count)
		return kernel_list_run(o, o->args[0]);
	if (status_ask(o, &reply, &err) < 0)
		return cli_fail(&err);
	status = reply->status;
	if (o->json) {
		status_print_json(status, false, NULL);
		return CLI_WHOLE;
	}
	if (!status->n_sessions)
		cli_line(stderr, "no session; start one with 'tracectl start'");
	status_tell_leftovers(o);
	for (size_t i = 0; i < status->n_sessions; i++) {
		const Session *s = status->sessions[i];
		_cleanup_buf_ struct buf elapsed = BUF_INIT;

		if (status_whole_of(status, s))
			continue;
		format_duration(s->elapsed_ns, &elapsed);
		cli_line(stdout, "%-24s %-10s %10s  %s%s", s->name, state_name(s->state),
			 buf_string(&elapsed) ?: "", s->for_conditions ? "for conditions: " : "",
			 s->what);
	}
	return CLI_WHOLE;
}

const struct command command_status = {
	.name = "status",
	.synopsis = "[SESSION] [--watch] [--json]",
	.summary = "show the sessions, their rates, losses and cost",
	.text = "Shows SESSION, or all sessions; -v adds a line per CPU. Also lists recordings of\n"
		"private daemons ('tracectl record' without a daemon).",
	.options = OPTION_SET(OPTION(JSON), OPTION(VERBOSE), OPTION(WATCH)),
	.own = OPTION_SET(OPTION(WATCH)),
	.args_max = 1,
	.complete = COMPLETE_SESSION,
	.run = status_run,
};

const struct command command_list = {
	.name = "list",
	.synopsis = "[clocks|tracers|options] [--json]",
	.summary = "list the sessions, or what this kernel offers, one per line",
	.text = "Without a word: of each session the name, state, age and what it records.\n"
		"\n"
		"  clocks    the kernel's clocks, for 'record -C CLOCK'\n"
		"  tracers   its tracers, for 'record -p TRACER'\n"
		"  options   its trace options, for 'record -O OPTION'\n"
		"\n"
		"'tracectl events' lists the kernel's events.",
	.options = OPTION_SET(OPTION(JSON)),
	.args_max = 1,
	.words = kernel_list_words,
	.run = list_run,
};
