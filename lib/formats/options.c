/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Choices of the output formats, by the words used on the command line. */
#include "formats/formats.h"

#include <string.h>
#include <time.h>

#include "base/buf.h"

static const char *const compressions[] = {
	[PERFETTO_PLAIN] = "none",
	[PERFETTO_DEFLATE] = "deflate",
#if HAVE_ZSTD
	[PERFETTO_ZSTD] = "zstd",
#endif
};

static const char *const function_views[] = {
	[FUNCTION_INSTANTS] = "instants",
	[FUNCTION_SLICES] = "slices",
};

const char *function_view_name(enum function_view view)
{
	return function_views[view];
}

/* Index of value in names; -EINVAL. */
static int option_choose(const char *value, const char *const *names, size_t count,
			 struct error *err)
{
	_cleanup_buf_ struct buf good = BUF_INIT;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(value, names[i]) == 0)
			return (int)i;
		buf_printf(&good, "%s%s", i ? ", " : "", names[i]);
	}
	error_set(err, -EINVAL, "'%s' is not one of %s", value, buf_string(&good) ?: "its values");
	return -EINVAL;
}

int perfetto_options_set(struct perfetto_options *o, const char *key, const char *value,
			 struct error *err)
{
	static const char *const generic[] = { "described", "legacy" }, *const sched[] = { "on",
											   "off" };
	int r = -EINVAL;

	if (strcmp(key, "generic") == 0) {
		r = option_choose(value, generic, ARRAY_SIZE(generic), err);
		o->legacy_generic = r > 0;
	} else if (strcmp(key, "compact-sched") == 0) {
		r = option_choose(value, sched, ARRAY_SIZE(sched), err);
		o->plain_sched = r > 0;
	} else if (strcmp(key, "compress") == 0) {
		r = option_choose(value, compressions, ARRAY_SIZE(compressions), err);
		o->compression = r > 0 ? (enum perfetto_compression)r : PERFETTO_PLAIN;
	}
	return r < 0 ? r : 0;
}

int function_view_find(const char *word, enum function_view *ret, struct error *err)
{
	int r = option_choose(word, function_views, ARRAY_SIZE(function_views), err);

	if (r < 0)
		return r;
	*ret = (enum function_view)r;
	return 0;
}

int merge_clock_find(const char *word, int *ret, struct error *err)
{
	static const char *const names[] = { "monotonic", "boottime", "realtime" };
	static const int ids[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	int r = option_choose(word, names, ARRAY_SIZE(names), err);

	if (r < 0)
		return r;
	*ret = ids[r];
	return 0;
}

int export_format_check_functions(const struct export_format *format, enum function_view view,
				  struct error *err)
{
	if (view == FUNCTION_INSTANTS || format->one_string)
		return 0;
	error_set(err, -EINVAL, "this option is for JSON and HTML, not for .%s", format->name);
	return error_hint(err, "write to a name that ends in .json, .json.gz or .html");
}

int export_format_check_array(const struct export_format *format, struct error *err)
{
	if (format->has_array)
		return 0;
	return error_set(err, -EINVAL, "a .%s has no array form: only JSON has one", format->name);
}

int export_format_check_page(const struct export_format *format, struct error *err)
{
	if (format->has_tables)
		return 0;
	return error_set(err, -EINVAL, "a .%s is no page: only .html is one", format->name);
}

int export_format_check_merges(const struct export_format *format, struct error *err)
{
	if (!format->recording)
		return 0;
	error_set(err, -EINVAL, "nothing can be merged into a .%s", format->name);
	return error_hint(
		err, "merge when you convert it: tracectl convert IN.traced OUT.json --merge FILE");
}

int export_format_check_perfetto(const struct export_format *format,
				 const struct perfetto_options *o, struct error *err)
{
	bool layout = o->legacy_generic || o->plain_sched;

	if ((layout || !format->packings) && !format->perfetto_layout) {
		error_set(err, -EINVAL, "this option is for Perfetto traces, not for .%s",
			  format->name);
		return error_hint(err, "write to a name that ends in .pftrace");
	}
	if (o->compression == PERFETTO_PLAIN || format->packings & 1U << o->compression)
		return 0;
	if (format->packings) {
		error_set(err, -EINVAL, "a .%s is compressed by zstd", format->name);
		return error_hint(err, "--compress=zstd");
	}
	error_set(err, -EINVAL, ".%s is compressed already", format->name);
	return error_hint(err, "write to a name that ends in .pftrace");
}
