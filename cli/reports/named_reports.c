/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "named_reports.h"

#include <string.h>

static int named_reports_take(struct named_reports *n, const char *const *words, size_t count,
			      struct error *err)
{
	_cleanup_buf_ struct buf all = BUF_INIT;
	char *rest, *name;

	for (size_t i = 0; i < count; i++)
		buf_printf(&all, "%s,", words[i]);
	if (!buf_string(&all))
		return error_errno(err, -ENOMEM, "report");
	n->words = TAKE_PTR(all.data);
	for (rest = n->words; (name = strsep(&rest, ","));) {
		if (!*name)
			continue;
		if (n->options.count == REPORTS_MAX)
			return error_set(err, -EINVAL, "more than %d reports", REPORTS_MAX);
		n->names[n->options.count++] = name;
	}
	return 0;
}

int named_reports_init(struct named_reports *ret, const struct options *o, const char *const *words,
		       size_t count, struct error *err)
{
	*ret = (struct named_reports){
		.options = { .by = o->by,
			     .sort = o->sort,
			     .task = o->task,
			     .top = o->top,
			     .min_ns = o->min_ns,
			     .is_terminal = isatty(STDOUT_FILENO) },
	};
	ret->options.names = ret->names;
	return named_reports_take(ret, words, count, err);
}

void named_reports_deinit(struct named_reports *n)
{
	free(n->words);
	n->words = NULL;
}
