/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page_tables.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "formats/formats.h"

/* Rows of each table, unless --top says how many: a page is to be looked at. */
#define PAGE_ROWS 200

int page_tables_open(struct page_tables *ret, const struct options *o,
		     const struct export_format *format, struct error *err)
{
	int r;

	if (!o->reports.count)
		return 0;
	if (!format->has_tables) {
		error_set(err, -EINVAL, "a .%s shows no report", format->name);
		return error_hint(err, "write a .html, or use 'tracectl report'");
	}
	r = named_reports_init(&ret->reports, o, o->reports.items, o->reports.count, err);
	if (r == 0)
		r = report_options_check(&ret->reports.options, err);
	if (r < 0)
		return r;
	ret->reports.options.form = REPORT_JSON;
	if (!ret->reports.options.top)
		ret->reports.options.top = PAGE_ROWS;
	ret->fd = memfd_create("report", MFD_CLOEXEC);
	return ret->fd < 0 ? error_errno(err, -errno, "can't make the report") : 0;
}

static int page_tables_read(struct page_tables *t)
{
	struct stat st;
	char *to;

	if (fstat(t->fd, &st) < 0)
		return -errno;
	to = buf_reserve(&t->json, (size_t)st.st_size);
	if (!to)
		return -ENOMEM;
	if (pread(t->fd, to, (size_t)st.st_size, 0) != st.st_size)
		return -EIO;
	t->json.len += (size_t)st.st_size;
	return 0;
}

/* Without names, the page has the usual reports, and `hist` is one of them. */
static bool has_histograms(const struct report_options *o)
{
	size_t i = 0;

	while (i < o->count && strcmp(o->names[i], "hist") != 0)
		i++;
	return i < o->count || !o->count;
}

int page_tables_make(struct page_tables *t, int stream_fd, struct export_options *options,
		     struct error *err)
{
	const struct export_options wanted = {
		.format = report_sink_ops.format.name,
		.raw_addresses = options->raw_addresses,
		.report = &t->reports.options,
		.selection = options->selection,
		.pages_fd = options->pages_fd,
	};
	_cleanup_export_result_ struct export_result result = { 0 };
	int r;

	if (t->fd < 0)
		return 0;
	r = export_run(&report_sink_ops, stream_fd, t->fd, &wanted, &result, err);
	if (r < 0)
		return r;
	r = page_tables_read(t);
	if (r < 0)
		return error_errno(err, r, "can't make the report");
	options->tables = t->json.data;
	options->tables_len = t->json.len;
	options->tables_have_histograms = has_histograms(&t->reports.options);
	return 0;
}

void page_tables_deinit(struct page_tables *t)
{
	named_reports_deinit(&t->reports);
	buf_deinit(&t->json);
	t->fd = close_fd(t->fd);
}
