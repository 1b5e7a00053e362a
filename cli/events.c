/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/events.h"

#include <limits.h>
#include <stdio.h>

#include "document.h"
#include "event_list.h"

static int events_from_daemon(struct event_list *list, struct link *link, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__EventsQuery query = TRACED__CONTROL__EVENTS_QUERY__INIT;
	int r;

	request.verb_case = TRACED__CONTROL__REQUEST__VERB_EVENTS;
	request.events = &query;
	r = link_call(link, &request, NULL, 0, &list->reply, err);
	if (r < 0)
		return r;
	if (list->reply->body_case != TRACED__CONTROL__REPLY__BODY_EVENTS)
		return error_set(err, -EPROTO, "unexpected reply from traced");
	list->names = (const char *const *)list->reply->events->names;
	list->count = list->reply->events->n_names;
	return 0;
}

int event_list_init(struct event_list *ret, const struct options *o, struct error *err)
{
	_cleanup_event_list_ struct event_list list = { 0 };
	_cleanup_error_ struct error refused = ERROR_INIT;
	_cleanup_link_ struct link link = { 0 };
	int r;

	r = link_open(&link, o, LINK_OR_ROOT, &refused);
	if (!r) {
		r = events_from_daemon(&list, &link, err);
	} else if (!link_no_daemon(r) || geteuid() != 0) {
		error_move(err, &refused);
	} else {
		r = tracefs_open(&list.tracefs, NULL, err);
		if (!r)
			r = tracefs_events(list.tracefs, &list.names, &list.count, err);
	}
	if (r < 0)
		return r;
	*ret = list;
	list = (struct event_list){ 0 };
	return 0;
}

void event_list_deinit(struct event_list *list)
{
	reply_freep(&list->reply);
	tracefs_free(list->tracefs);
	*list = (struct event_list){ 0 };
}

static void events_print(const struct event_matches *matches, bool as_json)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	if (!as_json) {
		for (size_t i = 0; i < matches->count; i++)
			cli_line(stdout, "%s", matches->items[i].name);
		return;
	}
	document_open(&j, NULL, '[');
	for (size_t i = 0; i < matches->count; i++)
		document_string(&j, NULL, matches->items[i].name);
	document_close(&j, ']');
	document_print(&j);
}

static int events_run(const struct options *o)
{
	static const struct capture_event_spec all = { .glob = "*:*" };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_event_list_ struct event_list list = { 0 };
	_cleanup_event_matches_ struct event_matches matches = { 0 };
	_cleanup_free_ struct capture_event_spec *specs = NULL;
	int r;

	r = event_list_init(&list, o, &err);
	if (r < 0)
		return cli_fail(&err);
	specs = calloc(o->arg_count ?: 1, sizeof(*specs));
	if (!specs)
		return cli_fail(&err);
	for (size_t i = 0; i < o->arg_count; i++)
		specs[i].glob = o->args[i];
	r = event_matches_find(&matches, o->arg_count ? specs : &all, o->arg_count ?: 1, NULL,
			       list.names, list.count, &err);
	if (r < 0)
		return cli_fail(&err);
	events_print(&matches, o->json);
	return CLI_WHOLE;
}

const struct command command_events = {
	.name = "events",
	.synopsis = "[GLOB...]",
	.summary = "list the events of this kernel",
	.text = "All, or those that match a GLOB: sched, 'irq:*', sched_switch, '*:*wakeup*'.",
	.options = OPTION_SET(OPTION(JSON)),
	.args_max = UINT_MAX,
	.complete = COMPLETE_EVENT,
	.run = events_run,
};
