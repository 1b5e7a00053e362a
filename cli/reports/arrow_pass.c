/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arrow_pass.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/io.h"
#include "export/sink.h"
#include "report/net_arrows.h"
#include "report/report.h"

int arrow_pass_open(struct arrow_pass *ret, const struct options *o,
		    const struct export_format *format, struct error *err)
{
	net_traffic_init(&ret->traffic);
	ret->fd = -EBADF;
	if (!o->net_arrows)
		return 0;
	if (!format->has_array && !format->has_tables && !format->perfetto_layout) {
		error_set(err, -EINVAL, "a .%s has no arrows", format->name);
		return error_hint(err, "write a .json, .html or .pftrace");
	}
	ret->fd = memfd_create("arrows", MFD_CLOEXEC);
	return ret->fd < 0 ? error_errno(err, -errno, "can't make arrows") : 0;
}

int arrow_pass_read(struct arrow_pass *p, int stream_fd, const char *label,
		    const struct export_options *options, struct error *err)
{
	static const char *const name = "net";
	struct report_hosts hosts = { .label = label, .traffic = &p->traffic };
	const struct report_options report = { .names = &name, .count = 1, .hosts = &hosts };
	const uint32_t number = p->traffic.machine_count;
	struct export_options wanted = {
		.format = report_sink_ops.format.name,
		.report = &report,
		.host = options->host,
		.pages_fd = options->pages_fd,
	};
	_cleanup_export_result_ struct export_result result = { 0 };
	int r;

	/* A part of one recording has the arrows of the whole. */
	if (options->host)
		wanted.selection = options->selection;
	r = export_run(&report_sink_ops, stream_fd, p->fd, &wanted, &result, err);
	if (r == 0 && p->traffic.machine_count == number)
		r = -ENODATA;
	return r < 0 ? r : (int)number;
}

int arrow_pass_end(struct arrow_pass *p, bool between, struct error *err)
{
	int r = net_arrows_make(&p->traffic, between, err);

	if (r == 0) {
		cli_warn("there is no arrow: no call and its receipt are certain");
		fprintf(stderr, "  hint: %s\n",
			between ? "record also -e 'sock:*sock_se*' -e sock:sock_recv_length "
				  "-e raw_syscalls:sys_enter"
				: "write a .json or .html for those from one machine to another");
	}
	if (r == NET_ARROWS_MAX)
		cli_warn("there are only %u arrows: the others are left out", NET_ARROWS_MAX);
	return MIN(r, 0);
}

void arrow_pass_deinit(struct arrow_pass *p)
{
	net_traffic_deinit(&p->traffic);
	p->fd = close_fd(p->fd);
}
