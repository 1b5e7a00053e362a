/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/kernel_lists.h"

#include <string.h>

#include "daemon/capture/tracefs/events.h"
#include "daemon/service/start.h"

struct kernel_texts {
	char *items[KERNEL_FORMATS_MAX]; /* owned */
	size_t count;
};

static void kernel_texts_deinit(struct kernel_texts *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->items[i]);
}

static int kernel_read_formats(struct kernel_texts *ret, const struct tracefs *fs,
			       const char *const *names, size_t count, struct error *err)
{
	if (count > KERNEL_FORMATS_MAX)
		return error_set(err, -E2BIG, "formats of more than %d events", KERNEL_FORMATS_MAX);
	for (size_t i = 0; i < count; i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		int r = tracefs_format(fs, names[i], &text);

		if (r == 0 && !buf_string(&text))
			r = -ENOMEM;
		if (r < 0)
			return error_errno(err, r, "cannot read the format of %s", names[i]);
		ret->items[ret->count++] = TAKE_PTR(text.data);
	}
	return 0;
}

int kernel_reply_events(struct connection *c, const Traced__Control__Request *request,
			struct error *err)
{
	const Traced__Control__EventsQuery *query = request->events;
	_cleanup_(kernel_texts_deinit) struct kernel_texts formats = { .count = 0 };
	Traced__Control__Events events = TRACED__CONTROL__EVENTS__INIT;
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;
	_cleanup_free_ const char **chosen = NULL;
	const struct capture_env *env;
	const char *const *names;
	size_t count;
	int r;

	/* The loop matches it with each name. */
	if (strlen(query->glob) > START_GLOB_MAX)
		return error_set(err, -E2BIG, "a name of an event of more than %d bytes",
				 START_GLOB_MAX);
	r = manager_env(c->manager, &env, err);
	if (r >= 0)
		r = tracefs_events(env->tracefs, &names, &count, err);
	if (r < 0)
		return r;
	chosen = calloc(count + 1, sizeof(*chosen));
	if (!chosen)
		return error_errno(err, -ENOMEM, "events");
	for (size_t i = 0; i < count; i++)
		if (!*query->glob || event_glob_matches(query->glob, names[i]))
			chosen[events.n_names++] = names[i];
	if (query->formats) {
		r = kernel_read_formats(&formats, env->tracefs, chosen, events.n_names, err);
		if (r < 0)
			return r;
	}
	events.names = (char **)(void *)chosen;
	events.formats = formats.items;
	events.n_formats = formats.count;
	reply.body_case = TRACED__CONTROL__REPLY__BODY_EVENTS;
	reply.events = &events;
	connection_reply(c, request->id, &reply);
	return 0;
}

static int kernel_list_of(Traced__Control__ListQuery__What what, enum tracefs_list *ret)
{
	switch (what) {
	case TRACED__CONTROL__LIST_QUERY__WHAT__CLOCKS:
		*ret = TRACEFS_CLOCKS;
		return 0;
	case TRACED__CONTROL__LIST_QUERY__WHAT__TRACERS:
		*ret = TRACEFS_TRACERS;
		return 0;
	case TRACED__CONTROL__LIST_QUERY__WHAT__OPTIONS:
		*ret = TRACEFS_OPTIONS;
		return 0;
	default:
		return -EINVAL;
	}
}

int kernel_reply_list(struct connection *c, const Traced__Control__Request *request,
		      struct error *err)
{
	Traced__Control__Events events = TRACED__CONTROL__EVENTS__INIT;
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;
	_cleanup_free_ char **names = NULL;
	_cleanup_buf_ struct buf words = BUF_INIT;
	const struct capture_env *env;
	enum tracefs_list list;
	char *rest, *word;
	int r;

	if (kernel_list_of(request->list->what, &list) < 0)
		return error_set(err, -EINVAL, "this traced does not know that list");
	r = manager_env(c->manager, &env, err);
	if (r < 0)
		return r;
	r = tracefs_list(env->tracefs, list, &words);
	if (r == 0 && !buf_string(&words))
		r = -ENOMEM;
	if (r < 0)
		return error_errno(err, r, "cannot read the list");
	/* Not more words than bytes. */
	names = calloc(words.len + 1, sizeof(*names));
	if (!names)
		return error_errno(err, -ENOMEM, "cannot read the list");
	for (rest = words.data; (word = strsep(&rest, " "));)
		if (*word)
			names[events.n_names++] = word;
	events.names = names;
	reply.body_case = TRACED__CONTROL__REPLY__BODY_EVENTS;
	reply.events = &events;
	connection_reply(c, request->id, &reply);
	return 0;
}
