/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "far_words.h"

#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "push.h"

#if HAVE_ZSTD
#define CONTROL "--control=zstd"
#else
#define CONTROL "--control"
#endif

/* Options that concern the file or the reports, and the recording's length, which we count. */
static bool option_stays(int id)
{
	static const int near[] = { OPT_OUTPUT,	     OPT_FORMAT,	OPT_DURATION,
				    OPT_GENERIC,     OPT_COMPACT_SCHED, OPT_COMPRESS,
				    OPT_TGID,	     OPT_FUNCTION_VIEW, OPT_JSON_ARRAY,
				    OPT_VERBOSE,     OPT_QUIET,		OPT_JSON,
				    OPT_BY,	     OPT_SORT,		OPT_TOP,
				    OPT_MIN,	     OPT_TASK,		OPT_CSV,
				    OPT_HOST,	     OPT_HOSTS,		OPT_LABEL,
				    OPT_REQUIRE_ALL, OPT_FAIL_ON_LOSS,	OPT_PUSH };

	for (size_t i = 0; i < ARRAY_SIZE(near); i++)
		if (near[i] == id)
			return true;
	return false;
}

void far_words_deinit(struct far_words *w)
{
	for (size_t i = 0; i < w->owned; i++)
		free(w->items[i]);
	free(w->items);
}

int far_words_init(struct far_words *w, const struct options *o)
{
	static const char *const first[] = { PUSH_WORDS, "tracectl", "record",	 CONTROL, "-q",
					     "-o",	 "-",	     "--format", "traced" };
	static const char *const push_words[] = { PUSH_WORDS };
	char *word;

	for (size_t i = o->push ? 0 : ARRAY_SIZE(push_words);
	     i < ARRAY_SIZE(first) + o->typed_count; i++) {
		const struct typed_option *t =
			i < ARRAY_SIZE(first) ? NULL : &o->typed[i - ARRAY_SIZE(first)];
		const char *value = t && t->value ? t->value : "";

		if (t && option_stays(t->id))
			continue;
		if (!t)
			word = strdup(first[i]);
		else if (asprintf(&word, "--%s%s%s", option_specs[t->id].name, t->value ? "=" : "",
				  value) < 0)
			word = NULL;
		if (!word || vec_push(w->items, w->count, w->cap, word) < 0)
			return -ENOMEM;
		w->owned = w->count;
	}
	if (o->command && vec_push(w->items, w->count, w->cap, (char *)"--") < 0)
		return -ENOMEM;
	for (char **c = o->command; c && *c; c++)
		if (vec_push(w->items, w->count, w->cap, *c) < 0)
			return -ENOMEM;
	return vec_push(w->items, w->count, w->cap, NULL);
}
