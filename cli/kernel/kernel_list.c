/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel_list.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "document.h"
#include "kernel_source.h"

const char *const kernel_list_words[] = { "clocks", "tracers", "options", NULL };

static const enum tracefs_list kernel_list_kinds[] = { TRACEFS_CLOCKS, TRACEFS_TRACERS,
						       TRACEFS_OPTIONS };
static const Traced__Control__ListQuery__What kernel_list_queries[] = {
	TRACED__CONTROL__LIST_QUERY__WHAT__CLOCKS,
	TRACED__CONTROL__LIST_QUERY__WHAT__TRACERS,
	TRACED__CONTROL__LIST_QUERY__WHAT__OPTIONS,
};

static int kernel_list_read(struct kernel_source *s, int which, struct buf *out, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__ListQuery query = TRACED__CONTROL__LIST_QUERY__INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	int r;

	if (s->tracefs) {
		r = tracefs_list(s->tracefs, kernel_list_kinds[which], out);
		return r < 0 ? error_errno(err, r, "cannot read the %s", kernel_list_words[which])
			     : 0;
	}
	query.what = kernel_list_queries[which];
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_LIST;
	request.list = &query;
	r = kernel_source_ask(s, &request, &reply, err);
	for (size_t i = 0; r == 0 && i < reply->events->n_names; i++)
		buf_printf(out, "%s%s", i ? " " : "", reply->events->names[i]);
	return r;
}

static void kernel_list_print(char *words, bool as_json)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);
	char *rest = words, *word;

	if (as_json)
		document_open(&j, NULL, '[');
	while ((word = strsep(&rest, " "))) {
		if (as_json && *word)
			document_string(&j, NULL, word);
		else if (*word)
			cli_line(stdout, "%s", word);
	}
	if (as_json) {
		document_close(&j, ']');
		document_print(&j);
	}
}

static void kernel_list_unknown(const char *what, struct error *err)
{
	const size_t count = ARRAY_SIZE(kernel_list_words) - 1;
	const struct command *command = command_find(what);
	const char *best[NEAREST_MAX];

	error_set(err, -EINVAL, "'%s' is nothing to list", what);
	if (command && !command->hidden)
		error_hint(err, "did you mean 'tracectl %s'?", what);
	else if (nearest_names(what, kernel_list_words, count, best))
		error_hint(err, "did you mean 'tracectl list %s'?", best[0]);
	else
		error_hint(err,
			   "it lists clocks, tracers or options, and without a word the "
			   "sessions; 'tracectl status %s' shows one",
			   what);
}

int kernel_list_run(const struct options *o, const char *what)
{
	_cleanup_kernel_source_ struct kernel_source source = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf words = BUF_INIT;
	int which = 0;

	while (kernel_list_words[which] && strcmp(kernel_list_words[which], what) != 0)
		which++;
	if (!kernel_list_words[which]) {
		kernel_list_unknown(what, &err);
		return cli_usage(&err);
	}
	if (kernel_source_open(&source, o, &err) < 0 ||
	    kernel_list_read(&source, which, &words, &err) < 0)
		return cli_fail(&err);
	if (buf_string(&words))
		kernel_list_print(words.data, o->json);
	return CLI_WHOLE;
}
