/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/events.h"

#include <limits.h>
#include <stdio.h>

#include "daemon/capture/tracefs/feature.h"
#include "document.h"
#include "event_fields.h"
#include "event_list.h"
#include "kernel_types.h"
#include "probe_places.h"

static int events_from_daemon(struct event_list *list, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__EventsQuery query = TRACED__CONTROL__EVENTS_QUERY__INIT;
	int r;

	request.verb_case = TRACED__CONTROL__REQUEST__VERB_EVENTS;
	request.events = &query;
	r = kernel_source_ask(&list->source, &request, &list->reply, err);
	if (r < 0)
		return r;
	list->names = (const char *const *)list->reply->events->names;
	list->count = list->reply->events->n_names;
	return 0;
}

int event_list_init(struct event_list *ret, const struct options *o, struct error *err)
{
	_cleanup_event_list_ struct event_list list = { 0 };
	int r;

	r = kernel_source_open(&list.source, o, err);
	if (r == 0 && list.source.tracefs)
		r = tracefs_events(list.source.tracefs, &list.names, &list.count, err);
	else if (r == 0)
		r = events_from_daemon(&list, err);
	if (r < 0)
		return r;
	*ret = list;
	list = (struct event_list){ 0 };
	return 0;
}

void event_list_deinit(struct event_list *list)
{
	reply_freep(&list->reply);
	kernel_source_deinit(&list->source);
	*list = (struct event_list){ 0 };
}

int event_list_format(struct event_list *list, const char *event, struct buf *out,
		      struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__EventsQuery query = TRACED__CONTROL__EVENTS_QUERY__INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	int r;

	if (list->source.tracefs) {
		r = tracefs_format(list->source.tracefs, event, out);
		return r < 0 ? error_errno(err, r, "cannot read the format of %s", event) : 0;
	}
	query.glob = (char *)event;
	query.formats = true;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_EVENTS;
	request.events = &query;
	r = kernel_source_ask(&list->source, &request, &reply, err);
	if (r < 0)
		return r;
	if (reply->events->n_formats != 1) {
		error_set(err, -ENOSYS, "this traced does not tell the fields of %s", event);
		return error_hint(err, "restart it after an update");
	}
	buf_puts(out, reply->events->formats[0]);
	return 0;
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

/* Returns the exit status. An event may go, with its module, before its format is read. */
static int events_print_fields(struct event_list *list, const struct event_matches *matches,
			       bool as_json)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);
	int status = CLI_WHOLE;

	if (as_json)
		document_open(&j, NULL, '[');
	for (size_t i = 0; i < matches->count; i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf format = BUF_INIT;

		if (event_list_format(list, matches->items[i].name, &format, &err) < 0 ||
		    !buf_string(&format)) {
			status = cli_fail(&err);
			continue;
		}
		if (as_json)
			event_fields_put_json(matches->items[i].name, format.data, &j);
		else
			event_fields_put(matches->items[i].name, format.data, &out);
		if (!as_json && i == matches->count - 1)
			event_fields_put_common(format.data, &out);
	}
	if (as_json) {
		document_close(&j, ']');
		document_print(&j);
	} else {
		fputs(buf_string(&out) ?: "", stdout);
	}
	return status;
}

static void places_print_json(const struct probe_places *p)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	document_open(&j, NULL, '[');
	for (size_t i = 0; i < p->count; i++) {
		document_open(&j, NULL, '{');
		document_string(&j, "kind", p->items[i].kind);
		document_string(&j, "name", p->items[i].name);
		if (p->items[i].module)
			document_string(&j, "module", p->items[i].module);
		if (p->items[i].prototype)
			document_string(&j, "prototype", p->items[i].prototype);
		document_close(&j, '}');
	}
	document_close(&j, ']');
	document_print(&j);
}

/* What --kprobe, --fprobe and --tprobe can name. Root alone may make probes. */
static int events_print_places(const struct tracefs *fs, const struct options *o)
{
	_cleanup_probe_places_ struct probe_places p = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	if (!fs) {
		error_set(&err, -EPERM, "only root may make probes, and list what they can name");
		error_hint(&err, "sudo tracectl events --probe ...");
		return cli_fail(&err);
	}
	if (probe_places_find(&p, fs, KERNEL_TYPES_DIR, o->args, o->arg_count, &err) < 0)
		return cli_fail(&err);
	if (p.untyped)
		cli_warn("tracepoints and arguments are unknown: this kernel has "
			 "no " KERNEL_TYPES_DIR "/" KERNEL_TYPES_OWN " (%s)",
			 feature_needs(FEATURE_PART, "types"));
	if (o->json)
		places_print_json(&p);
	for (size_t i = 0; i < p.count && !o->json; i++) {
		const struct probe_place *place = &p.items[i];

		cli_line(stdout, "%-10s  %s%s%s%s", place->kind, place->prototype ?: place->name,
			 place->module ? " [" : "", place->module ?: "", place->module ? "]" : "");
	}
	return CLI_WHOLE;
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
	if (o->probe)
		return events_print_places(list.source.tracefs, o);
	specs = calloc(o->arg_count ?: 1, sizeof(*specs));
	if (!specs)
		return cli_fail(&err);
	for (size_t i = 0; i < o->arg_count; i++)
		specs[i].glob = o->args[i];
	r = event_matches_find(&matches, o->arg_count ? specs : &all, o->arg_count ?: 1, NULL,
			       list.names, list.count, &err);
	if (r < 0)
		return cli_fail(&err);
	if (o->fields || o->verbose)
		return events_print_fields(&list, &matches, o->json);
	events_print(&matches, o->json);
	return CLI_WHOLE;
}

const struct command command_events = {
	.name = "events",
	.synopsis = "[GLOB...] [--fields | --probe]",
	.summary = "list the events of this kernel, and their fields",
	.text = "All, or those that match a GLOB: sched, 'irq:*', sched_switch, '*:*wakeup*'.\n"
		"--fields (or -v) lists the fields of each, with their types and the operators\n"
		"that a filter (-f) may use with them. 'root only' is for fields whose value may\n"
		"be an address of the kernel.\n"
		"--probe lists functions (--fprobe, --kprobe) and tracepoints (--tprobe) instead,\n"
		"with their arguments, where the kernel has its types.",
	.options = OPTION_SET(OPTION(FIELDS), OPTION(PROBE), OPTION(JSON), OPTION(VERBOSE)),
	.own = OPTION_SET(OPTION(FIELDS), OPTION(PROBE)),
	.args_max = UINT_MAX,
	.complete = COMPLETE_EVENT,
	.run = events_run,
};
