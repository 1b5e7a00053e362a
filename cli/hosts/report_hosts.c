/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report_hosts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "confined.h"
#include "host_parts.h"
#include "outcome.h"
#include "report/net_traffic.h"
#include "report/table.h"

struct hosts_report {
	const struct options *o;
	struct report_options options;
	struct report_hosts hosts;
	struct net_traffic traffic;
	struct host_part parts[HOST_PARTS_MAX];
	size_t count;
	bool together; /* one report of all; otherwise reports of each */
	bool labelled;
};

static const struct report_about *report_hosts_find(const char *name)
{
	const struct report_about *all;
	size_t count;

	all = report_all(&count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			return &all[i];
	return NULL;
}

size_t report_hosts_inputs(const struct options *o)
{
	const struct report_about *first = o->arg_count ? report_hosts_find(o->args[0]) : NULL;

	return first && first->takes_hosts && o->arg_count > 2 && !report_hosts_find(o->args[1])
		       ? o->arg_count - 1
		       : 1;
}

static int hosts_report_export(struct hosts_report *h, struct host_part *p,
			       struct export_result *ret, struct error *err)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	struct export_options options = {
		.format = report_sink_ops.format.name,
		.report = &h->options,
	};
	int r = host_part_options(p, &options, err);

	if (r < 0)
		return r;
	h->hosts.label = p->origin.label;
	h->hosts.is_last = p == &h->parts[h->count - 1];
	h->options.host = h->labelled ? p->origin.label : NULL;
	if (h->options.is_further && h->options.form != REPORT_JSON)
		dprintf(STDOUT_FILENO, "\n");
	if (h->labelled && h->options.form == REPORT_TEXT)
		dprintf(STDOUT_FILENO, "%s:\n", p->origin.label);
	r = export_run(&report_sink_ops, p->input->fd, STDOUT_FILENO, &options, &result, err);
	if (r < 0)
		return error_prefix(err, "%s", p->origin.label);
	h->options.is_further = h->labelled;
	if (!h->o->quiet)
		cli_warn("%s: %s", p->origin.label, p->tie);
	r = host_part_add_result(ret, p->origin.label, &result);
	return r < 0 ? error_errno(err, r, "the outcome") : 0;
}

/* One machine's damaged recording leaves the others their reports. */
static int hosts_report_leave_out(struct host_part *p, struct export_result *ret, struct error *err)
{
	if (err->code != EBADMSG && err->code != ENODATA && err->code != EINVAL)
		return -err->code;
	ret->incomplete = true;
	return host_part_add_warning(ret, "left out", err->message ?: p->origin.label);
}

/* For root in a process of its own. */
static int hosts_report_decode(void *userdata, struct export_result *ret, struct error *err)
{
	struct hosts_report *h = userdata;
	const bool is_list = h->labelled && h->options.form == REPORT_JSON;
	int r = host_parts_open(h->parts, h->count, err);

	if (r < 0)
		return r;
	r = host_parts_place(h->parts, h->count, ret);
	if (r < 0)
		return error_errno(err, r, "the outcome");
	if (is_list)
		dprintf(STDOUT_FILENO, "{\"format\":\"" TABLES_HOSTS_FORMAT
				       "\",\"version\":" TABLES_VERSION ",\"hosts\":[\n");
	for (size_t i = 0; i < h->count && r == 0; i++) {
		r = hosts_report_export(h, &h->parts[i], ret, err);
		if (r < 0 && h->labelled)
			r = hosts_report_leave_out(&h->parts[i], ret, err);
	}
	if (r == 0 && is_list)
		dprintf(STDOUT_FILENO, "]}\n");
	return r;
}

/* The error has all recordings that cannot be opened. */
static int hosts_report_open(struct hosts_report *h, struct host_input *inputs, char *const *paths,
			     size_t count, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		struct host_input *in = &inputs[h->count];

		*in = (struct host_input){ input_open(paths[i], &why), paths[i] };
		if (in->fd < 0) {
			r = error_add(err, &why);
			continue;
		}
		h->parts[h->count++] = (struct host_part){ .input = in, .fd = -EBADF };
		if (confined_wanted())
			input_reserve_temps(&h->parts[h->count - 1].beside);
	}
	return r;
}

static int hosts_report_check(const struct options *o, size_t count, struct error *err)
{
	if (count > HOST_PARTS_MAX)
		return error_set(err, -EINVAL, "more than %d recordings", HOST_PARTS_MAX);
	if (!o->instance && !o->session)
		return 0;
	return error_set(err, -EINVAL, "several recordings and --%s exclude each other",
			 o->session ? "session" : "instance");
}

int report_hosts_run(const struct options *o, const struct report_options *reports,
		     char *const *paths, size_t count, bool several)
{
	_cleanup_outcome_ struct outcome outcome = { .path = "the recordings", .of_hosts = true };
	const struct options quiet = { .quiet = true,
				       .fail_on_loss = o->fail_on_loss,
				       .told = o->told };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct host_input inputs[HOST_PARTS_MAX];
	const struct report_about *first =
		reports->count == 1 ? report_hosts_find(*reports->names) : NULL;
	struct hosts_report h = { .o = o,
				  .options = *reports,
				  .together = first && first->takes_hosts };
	int r = hosts_report_check(o, count, &err);

	if (r < 0)
		return cli_usage(&err);
	h.labelled = several && !h.together;
	net_traffic_init(&h.traffic);
	h.hosts.traffic = &h.traffic;
	h.options.hosts = h.together ? &h.hosts : NULL;
	r = hosts_report_open(&h, inputs, paths, count, &err);
	if (r == 0) {
		input_confine(-EBADF);
		r = confined_run(hosts_report_decode, &h, &outcome.result, &err);
	}
	for (size_t i = 0; i < h.count; i++) {
		input_beside_deinit(&h.parts[i].beside);
		close_fd(inputs[i].fd);
	}
	net_traffic_deinit(&h.traffic);
	return r < 0 ? cli_fail(&err) : outcome_tell(&outcome, &quiet);
}
