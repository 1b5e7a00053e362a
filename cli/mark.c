/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "link.h"
#include "private.h"

/* A bar would end the name, a newline the mark. */
static int mark_check_name(const char *name, size_t len, struct error *err)
{
	if (!len)
		return error_set(err, -EINVAL, "the name is empty");
	if (strcspn(name, "|\n") < len)
		return error_set(err, -EINVAL, "'%.*s' contains '|' or a newline", (int)len, name);
	return 0;
}

static int mark_put_counter(struct buf *text, long pid, const char *counter, struct error *err)
{
	const char *is = strrchr(counter, '=');
	size_t digits = is ? strspn(is + 1 + (is[1] == '-'), "0123456789") : 0;

	if (!digits || is[1 + (is[1] == '-') + digits] || digits > 18) {
		error_set(err, -EINVAL, "--counter %s: not a whole number", counter);
		return error_hint(err, "for example: tracectl mark --counter queue=7");
	}
	buf_printf(text, "C|%ld|%.*s|%s", pid, (int)(is - counter), counter, is + 1);
	return mark_check_name(counter, (size_t)(is - counter), err);
}

/* Words of atrace ("C|1|queue|7"), and marks that tie clocks, stay as they are. */
static bool mark_is_known(const char *text)
{
	return (text[0] >= 'A' && text[0] <= 'Z' && text[1] == '|') ||
	       strncmp(text, "trace_event_clock_sync:", strlen("trace_event_clock_sync:")) == 0;
}

/* An instant on a track of the process: the daemon writes it, so its thread is unknown. */
static int mark_put_instant(struct buf *out, long pid, char *const *words, size_t count,
			    struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (strchr(words[i], '\n'))
			return error_set(err, -EINVAL, "mark: the text contains a newline");
	if (!mark_is_known(words[0]))
		buf_printf(out, "N|%ld|marks|", pid);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s", i ? " " : "", words[i]);
	return 0;
}

/*
 * Slices are asynchronous and belong to the process: the daemon writes them, so their thread is
 * unknown.
 */
static int mark_put_slice(struct buf *text, long pid, char phase, const char *name, const char *id,
			  struct error *err)
{
	if (id && (!*id || strlen(id) > 18 || id[strspn(id, "0123456789")])) {
		error_set(err, -EINVAL, "--id %s: the id of a slice must be a number", id);
		return -EINVAL;
	}
	buf_printf(text, "%c|%ld|%s|%s", phase, pid, name, id ?: "0");
	return mark_check_name(name, strlen(name), err);
}

static int mark_append_text(struct buf *text, const struct options *o, struct error *err)
{
	int kinds = !!o->begin + !!o->end + !!o->counter + !!o->arg_count;
	long pid = o->pid_count ? o->pids[0] : getppid();

	if (kinds != 1 || o->pid_count > 1) {
		error_set(err, -EINVAL,
			  kinds ? "mark: more than one mark is given" : "mark: no mark is given");
		return error_hint(
			err,
			"give one of TEXT, --begin NAME, --end NAME and --counter NAME=NUMBER");
	}
	if (o->begin || o->end)
		return mark_put_slice(text, pid, o->begin ? 'S' : 'F', o->begin ?: o->end, o->id,
				      err);
	if (o->counter)
		return mark_put_counter(text, pid, o->counter, err);
	return mark_put_instant(text, pid, o->args, o->arg_count, err);
}

/* session: NULL: all of the caller's. */
static int mark_session(struct link *link, const char *session, char *text, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Mark mark = TRACED__CONTROL__MARK__INIT;

	mark.text = text;
	if (session)
		mark.session = (char *)(uintptr_t)session;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_MARK;
	request.mark = &mark;
	return link_call(link, &request, NULL, 0, &reply, err);
}

/* The second session of a session with triggers, whose conditions may be about marks. */
static int mark_conditions(struct link *link, const char *session, char *text, struct error *err)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	_cleanup_free_ char *watch = NULL;
	int r;

	if (asprintf(&watch, "%s" TRIGGERS_SUFFIX, session) < 0)
		return error_errno(err, -ENOMEM, "mark");
	r = link_status(link, NULL, &reply, err);
	for (size_t i = 0; r == 0 && i < reply->status->n_sessions; i++) {
		const Traced__Control__Session *s = reply->status->sessions[i];

		if (s->for_conditions && !strcmp(s->name, watch))
			r = mark_session(link, watch, text, err);
	}
	return r;
}

static int mark_send(const struct options *o, char *text, struct error *err)
{
	_cleanup_link_ struct link link = { 0 };
	int r = link_open(&link, o, LINK_LISTENING, err);

	if (r == 0)
		r = mark_session(&link, o->name, text, err);
	if (r == 0 && o->name)
		r = mark_conditions(&link, o->name, text, err);
	return r;
}

/* With --socket only that daemon is meant. */
static bool mark_wants_private(const struct options *o)
{
	return !o->socket && geteuid() == 0;
}

static int mark_run(const struct options *o)
{
	_cleanup_error_ struct error err = ERROR_INIT, private_err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r, count = 0;

	if (mark_append_text(&text, o, &err) < 0)
		return cli_usage(&err);
	if (!buf_string(&text)) {
		error_errno(&err, -ENOMEM, "mark");
		return cli_fail(&err);
	}
	r = mark_send(o, text.data, &err);
	if (mark_wants_private(o))
		count = private_recordings_mark(o->name, text.data, &private_err);
	if (count < 0)
		return cli_fail(&private_err);
	/* A daemon that records nothing, or none at all. */
	if (count && (link_no_daemon(r) || r == -ENOENT))
		return CLI_WHOLE;
	return r < 0 ? cli_fail(&err) : CLI_WHOLE;
}

static const struct option_text mark_texts[] = {
	{ OPT_NAME, "only this session" },
	{ OPT_PID, "the mark is this process's, not the caller's" },
	{ 0 },
};

const struct command command_mark = {
	.name = "mark",
	.synopsis = "TEXT... | --begin NAME | --end NAME | --counter NAME=NUMBER [--name SESSION]",
	.summary = "put a mark into every running session",
	.text = "Writes a mark through trace_marker; it appears among the kernel's events. With\n"
		"--name only that session gets it. Root's marks also reach the recordings of\n"
		"private daemons, unless --socket is given.\n"
		"\n"
		"TEXT is an instant, --begin and --end make a slice, --counter a value, of the\n"
		"process that calls tracectl, a shell mostly, or of -P PID. Slices of one name\n"
		"that overlap need an --id, a number.",
	.texts = mark_texts,
	.options = OPTION_SET(OPTION(NAME), OPTION(BEGIN), OPTION(END), OPTION(COUNTER), OPTION(ID),
			      OPTION(PID)),
	.own = OPTION_SET(OPTION(BEGIN), OPTION(END), OPTION(COUNTER), OPTION(ID)),
	.args_min = 0,
	.args_max = UINT_MAX,
	.run = mark_run,
};
