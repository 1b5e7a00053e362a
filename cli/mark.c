/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "link.h"

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
	for (size_t i = 0; i < o->arg_count; i++)
		buf_printf(text, "%s%s", i ? " " : "", o->args[i]);
	return 0;
}

static int mark_run(const struct options *o)
{
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Mark mark = TRACED__CONTROL__MARK__INIT;

	if (mark_append_text(&text, o, &err) < 0)
		return cli_usage(&err);
	mark.text = buf_string(&text);
	if (!mark.text) {
		error_errno(&err, -ENOMEM, "mark");
		return cli_fail(&err);
	}
	if (o->name)
		mark.session = (char *)o->name;
	if (link_open(&link, o, LINK_LISTENING, &err) < 0)
		return cli_fail(&err);
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_MARK;
	request.mark = &mark;
	if (link_call(&link, &request, NULL, 0, &reply, &err) < 0)
		return cli_fail(&err);
	return CLI_WHOLE;
}

const struct command command_mark = {
	.name = "mark",
	.synopsis = "TEXT... | --begin NAME | --end NAME | --counter NAME=NUMBER [--name SESSION]",
	.summary = "put a mark into every running session",
	.text = "Writes TEXT through trace_marker; it appears among the kernel's events. With\n"
		"--name only that session gets it.\n"
		"\n"
		"--begin and --end make a slice, --counter a value, of the process that calls\n"
		"tracectl, a shell mostly, or of -P PID. Slices of one name that overlap need an\n"
		"--id, a number.",
	.options = OPTION_SET(OPTION(NAME), OPTION(BEGIN), OPTION(END), OPTION(COUNTER), OPTION(ID),
			      OPTION(PID)),
	.own = OPTION_SET(OPTION(BEGIN), OPTION(END), OPTION(COUNTER), OPTION(ID)),
	.args_min = 0,
	.args_max = UINT_MAX,
	.run = mark_run,
};
