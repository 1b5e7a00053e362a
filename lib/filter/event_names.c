/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter/event_names.h"

#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/expression.h"

#define HINT                                                                                       \
	"events come before a colon: 'sched_switch: next_prio < 100'; the recording must have "    \
	"them"
#define BLANKS " \t\n"

/* A word of the list. system NULL: event is the name of an event or of a system. */
struct event_word {
	char *system, *event;
	regex_t system_regex, event_regex;
};

static char *event_word_trim(char *text)
{
	char *end;

	if (!text)
		return NULL;
	text += strspn(text, BLANKS);
	end = text + strlen(text);
	while (end > text && strchr(BLANKS, end[-1]))
		end--;
	*end = '\0';
	return text;
}

static bool event_word_globs(const struct event_word *w, const struct event *ev)
{
	if (w->system)
		return fnmatch(w->system, ev->system, 0) == 0 &&
		       fnmatch(w->event, ev->name, 0) == 0;
	return fnmatch(w->event, ev->system, 0) == 0 || fnmatch(w->event, ev->name, 0) == 0;
}

static bool event_word_matches(const struct event_word *w, const struct event *ev)
{
	bool event = regexec(&w->event_regex, ev->name, 0, NULL, 0) == 0;

	if (w->system)
		return event && regexec(&w->system_regex, ev->system, 0, NULL, 0) == 0;
	return event || regexec(&w->event_regex, ev->system, 0, NULL, 0) == 0;
}

static bool event_word_choose_by(bool (*has)(const struct event_word *w, const struct event *ev),
				 const struct event_word *w, const struct event *const *events,
				 size_t count, bool *chosen)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		if (has(w, events[i]))
			any = chosen[i] = true;
	return any;
}

static bool event_word_compile(regex_t *regex, const char *word)
{
	_cleanup_free_ char *whole = NULL;

	return asprintf(&whole, "^\\(%s\\)$", word) >= 0 &&
	       expression_compile_regex(regex, whole) == 0;
}

static bool event_word_choose_by_regex(struct event_word *w, const struct event *const *events,
				       size_t count, bool *chosen)
{
	bool any = false;

	if (!event_word_compile(&w->event_regex, w->event))
		return false;
	if (!w->system || event_word_compile(&w->system_regex, w->system)) {
		any = event_word_choose_by(event_word_matches, w, events, count, chosen);
		if (w->system)
			regfree(&w->system_regex);
	}
	regfree(&w->event_regex);
	return any;
}

/* Changes the word. */
static bool event_word_choose(char *word, const struct event *const *events, size_t count,
			      bool *chosen)
{
	struct event_word w = { .event = word };
	char *end = strpbrk(word, "/:");

	if (end) {
		*end = '\0';
		w.system = event_word_trim(word);
		w.event = end + 1;
	}
	w.event = event_word_trim(w.event);
	return event_word_choose_by(event_word_globs, &w, events, count, chosen) ||
	       event_word_choose_by_regex(&w, events, count, chosen);
}

int event_names_choose(const char *whole, size_t len, const struct event *const *events,
		       size_t count, bool *chosen, struct error *err)
{
	_cleanup_free_ char *list = strndup(whole, len);
	char *rest = list, *word;

	if (!list)
		return error_errno(err, -ENOMEM, "can't begin the filter");
	while ((word = strsep(&rest, ","))) {
		const char *at = whole + (word - list);

		if (event_word_choose(word, events, count, chosen))
			continue;
		expression_error(whole, at + strspn(at, BLANKS), err, "no event found");
		return error_hint(err, HINT);
	}
	return 0;
}
