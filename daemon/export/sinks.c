/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/sinks.h"

#include <string.h>
#include <strings.h>

static const struct sink_ops *const sinks[] = {
	&sink_json_ops,	    &sink_json_gz_ops,	   &sink_text_ops,    &sink_text_gz_ops,
	&sink_perfetto_ops, &sink_perfetto_gz_ops, &sink_profile_ops, &sink_stream_ops,
	&sink_dat_ops,	    &sink_html_ops,	   &sink_ctf_ops,
};

const struct sink_ops *sink_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
		if (strcmp(sinks[i]->format.name, name) == 0)
			return sinks[i];
	return NULL;
}

const struct export_format *export_formats(size_t *ret_count)
{
	static struct export_format formats[ARRAY_SIZE(sinks)];

	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
		formats[i] = sinks[i]->format;
	*ret_count = ARRAY_SIZE(sinks);
	return formats;
}

bool export_format_has_marks(const struct export_format *format)
{
	const struct sink_ops *ops = sink_find(format->name);

	return ops && ops->mark;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcasecmp(text + n - m, end) == 0;
}

/* Perfetto's own tools call their files so. */
static const struct {
	const char *ending, *name;
} other_endings[] = {
	{ ".perfetto-trace", "pftrace" },
	{ ".perfetto-trace.gz", "pftrace.gz" },
	{ ".perfetto", "pftrace" },
	{ ".perfetto.gz", "pftrace.gz" },
};

const struct export_format *export_format_find(const char *name, const char *path)
{
	const struct sink_ops *s = name ? sink_find(name) : NULL;

	if (name)
		return s ? &s->format : NULL;
	for (size_t i = 0; path && i < ARRAY_SIZE(sinks); i++)
		if (ends_with(path, sinks[i]->format.extension))
			return &sinks[i]->format;
	for (size_t i = 0; path && i < ARRAY_SIZE(other_endings); i++)
		if (ends_with(path, other_endings[i].ending))
			return &sink_find(other_endings[i].name)->format;
	return NULL;
}

int export_format_check_clock(const struct export_format *format, const char *clock,
			      struct error *err)
{
	_cleanup_buf_ struct buf good = BUF_INIT;

	if (!format->clocks)
		return 0;
	for (const char *const *c = format->clocks; *c; c++) {
		if (strcmp(*c, clock) == 0)
			return 0;
		buf_printf(&good, " %s", *c);
	}
	error_set(err, -EINVAL, "no reader of .%s understands the trace clock '%s'", format->name,
		  clock);
	error_hint(err, "write .txt or .traced, or record by one of these clocks (-C):%s",
		   buf_string(&good) ?: "");
	return -EINVAL;
}

int sink_print(struct printer *printer, const struct trace_event *ev, struct buf *out)
{
	int r;

	if (unlikely(!ev->desc)) {
		/* As print_trace_fmt() of kernel/trace/trace.c. */
		buf_printf(out, "Unknown type %d", ev->id);
		return buf_error(out);
	}
	r = event_print(printer, ev->desc, &ev->rec, out);
	/* It says so itself: "[truncated]". */
	return r == -EBADMSG ? 0 : r;
}
