/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl recover`: lists and exports recordings left by a crash or a failed export. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli.h"
#include "detached.h"
#include "document.h"
#include "leftovers.h"

#define SUFFIX ".traced"

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The session's name in TIME-[UID+]NAME-NUMBER.traced; else the whole name. */
static char *recover_session_of(const char *path)
{
	const char *base = base_of(path), *name = strchr(base, '-'), *end = strrchr(base, '-');
	const char *plus;

	if (!name || name == end)
		return strdup(base);
	name++;
	plus = name + strspn(name, "0123456789");
	if (plus > name && *plus == '+')
		name = plus + 1;
	return strndup(name, (size_t)(end - name));
}

static void recover_when_of(const struct leftover *l, char ret[static 32])
{
	struct tm tm;

	strcpy(ret, "?");
	if (localtime_r(&l->ended, &tm))
		strftime(ret, 32, "%Y-%m-%d %H:%M:%S %z", &tm);
}

static int recover_list(const struct leftovers *left, bool json)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	document_open(&j, NULL, '[');
	for (size_t i = 0; i < left->count; i++) {
		const struct leftover *l = &left->items[i];
		_cleanup_free_ char *session = recover_session_of(l->path);
		_cleanup_buf_ struct buf size = BUF_INIT;
		char when[32];

		recover_when_of(l, when);
		format_bytes(l->bytes, &size);
		if (!json)
			cli_line(stdout, "%-16s %s  %10s  %s", session ?: "?", when,
				 buf_string(&size) ?: "?", l->path);
		document_open(&j, NULL, '{');
		document_string(&j, "session", session ?: "");
		document_string(&j, "file", l->path);
		document_uint(&j, "bytes", l->bytes);
		document_string(&j, "ended", when);
		document_close(&j, '}');
	}
	document_close(&j, ']');
	if (json)
		return document_print(&j) < 0 ? CLI_FAILED : CLI_WHOLE;
	if (!left->count)
		puts(geteuid() == 0 ? "no recording is left" : "no recording of yours is left");
	return CLI_WHOLE;
}

/* By session (the newest), file name or path. */
static const struct leftover *find(const struct leftovers *left, const char *word)
{
	const struct leftover *found = NULL;

	for (size_t i = 0; i < left->count; i++) {
		const struct leftover *l = &left->items[i];
		_cleanup_free_ char *session = recover_session_of(l->path);

		if (!strcmp(l->path, word) || !strcmp(base_of(l->path), word))
			return l;
		/* File names begin with their time. */
		if (session && !strcmp(session, word) &&
		    (!found || strcmp(base_of(l->path), base_of(found->path)) > 0))
			found = l;
	}
	return found;
}

static int recover_export(const struct options *o, const struct leftover *l, struct error *err)
{
	_cleanup_free_ char *session = recover_session_of(l->path), *output = NULL;
	struct options convert = *o;
	char *args[] = { l->path, NULL };

	if (!session || asprintf(&output, "%s.json", session) < 0) {
		error_errno(err, -ENOMEM, "%s", l->path);
		return cli_fail(err);
	}
	convert.args = args;
	convert.arg_count = 1;
	convert.output = o->output ?: output;
	return command_convert.run(&convert);
}

static int recover_run(const struct options *o)
{
	_cleanup_(leftovers_deinit) struct leftovers left = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct leftover *l;
	int r = leftovers_find(&left, o);

	if (r < 0) {
		error_errno(&err, r, "cannot list the recordings that are left");
		return cli_fail(&err);
	}
	if (!o->arg_count)
		return recover_list(&left, o->json);
	l = find(&left, o->args[0]);
	if (!l) {
		error_set(&err, -ENOENT, "no recording of \"%s\" is left", o->args[0]);
		error_hint(&err, "'tracectl recover' lists what is left%s",
			   geteuid() == 0 ? "" : "; run it as root");
		return cli_fail(&err);
	}
	if (geteuid() != 0 && access(l->path, R_OK) < 0) {
		_cleanup_buf_ struct buf remedy = BUF_INIT;

		error_errno(&err, -errno, "%s", l->path);
		leftover_put_remedy(l, "FILE", &remedy);
		error_hint(&err, "%s", buf_string(&remedy) ?: "ask root");
		return cli_fail(&err);
	}
	return recover_export(o, l, &err);
}

const struct command command_recover = {
	.name = "recover",
	.synopsis = "[SESSION|FILE [-o OUT]]",
	.summary = "list and export recordings left by a crash or a failed export",
	.text = "Lists them; with the name of a session, or of a file, writes that one as\n"
		"SESSION.json, or as -o says. A recording that was cut short is written\n"
		"as far as it reached the disk, with a warning. The file stays until\n"
		"it is removed: rm FILE. Users other than root see their own recordings; root\n"
		"writes them, and 'tracectl cancel FILE' removes them.",
	.options = OPTION_SET(OPTIONS_RESULT),
	.args_max = 1,
	.complete = COMPLETE_FILE,
	.run = recover_run,
};
