/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/formats.h"

#include <string.h>
#include <strings.h>

#include "export/segment.h"

extern const struct sink_ops sink_text_ops, sink_text_gz_ops, sink_json_ops, sink_json_gz_ops,
	sink_perfetto_ops, sink_perfetto_gz_ops, sink_profile_ops, sink_folded_ops, sink_stream_ops,
	sink_dat_ops, sink_html_ops, sink_ctf_ops;

/* For programs; in no list, and no ending selects it. */
extern const struct sink_ops watch_sink_ops;

static const struct sink_ops *const sinks[] = {
	&sink_json_ops,	    &sink_json_gz_ops,	   &sink_text_ops,    &sink_text_gz_ops,
	&sink_perfetto_ops, &sink_perfetto_gz_ops, &sink_profile_ops, &sink_folded_ops,
	&sink_stream_ops,   &sink_dat_ops,	   &sink_html_ops,    &sink_ctf_ops,
};

static const struct sink_ops *sink_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
		if (strcmp(sinks[i]->format.name, name) == 0)
			return sinks[i];
	return strcmp(watch_sink_ops.format.name, name) ? NULL : &watch_sink_ops;
}

const struct export_format *export_formats(size_t *ret_count)
{
	static struct export_format formats[ARRAY_SIZE(sinks)];

	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
		formats[i] = sinks[i]->format;
	*ret_count = ARRAY_SIZE(sinks);
	return formats;
}

static bool path_ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcasecmp(text + n - m, end) == 0;
}

/* Endings used by Perfetto's own tools. */
static const struct {
	const char *ending;
	const struct sink_ops *ops;
} other_endings[] = {
	{ ".perfetto-trace", &sink_perfetto_ops },
	{ ".perfetto-trace.gz", &sink_perfetto_gz_ops },
	{ ".perfetto", &sink_perfetto_ops },
	{ ".perfetto.gz", &sink_perfetto_gz_ops },
};

const struct export_format *export_format_find(const char *name, const char *path)
{
	const struct sink_ops *s = name ? sink_find(name) : NULL;

	if (name)
		return s ? &s->format : NULL;
	for (size_t i = 0; path && i < ARRAY_SIZE(sinks); i++)
		if (path_ends_with(path, sinks[i]->format.extension))
			return &sinks[i]->format;
	for (size_t i = 0; path && i < ARRAY_SIZE(other_endings); i++)
		if (path_ends_with(path, other_endings[i].ending))
			return &other_endings[i].ops->format;
	return NULL;
}

bool export_format_has_marks(const struct export_format *format)
{
	const struct sink_ops *ops = sink_find(format->name);

	return ops && ops->mark;
}

int export_stream(int stream_fd, int out_fd, const struct export_options *options,
		  struct export_result *ret, struct error *err)
{
	const struct sink_ops *ops = sink_find(options->format);
	int r = 0;

	*ret = (struct export_result){ 0 };
	if (!ops)
		return error_set(err, -EINVAL, "unknown output format \"%s\"", options->format);
	if (options->json_array)
		r = export_format_check_array(&ops->format, err);
	return r < 0 ? r : export_run(ops, stream_fd, out_fd, options, ret, err);
}

int export_join(const struct export_format *format, const struct export_part *parts, size_t count,
		int out_fd, struct export_result *result, struct error *err)
{
	const struct sink_ops *ops = sink_find(format->name);
	struct output out;
	int r = ops && format->join ? output_init(&out, out_fd, ops->gzip) : -EINVAL;

	if (r < 0)
		return error_errno(err, r, "can't begin the file");
	r = format->join(parts, count, result, &out, err);
	if (r == 0) {
		r = output_flush(&out, true);
		if (r < 0)
			error_errno(err, r, "can't write the output");
	}
	result->bytes = out.bytes;
	output_deinit(&out);
	return r;
}

int export_format_check_rotate(const struct export_format *format, const char *clock,
			       const struct export_rotate *rotate, struct error *err)
{
	return segment_check(sink_find(format->name), clock, rotate, err);
}
