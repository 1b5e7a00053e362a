/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of output formats, and the entry to an export by a format's name. */
#pragma once

#include "export/sink.h"

/* By a format's name; NULL: none. */
const struct sink_ops *sink_find(const char *name);

/* export_run with the sink of options->format. -EINVAL: there is none of that name. */
int export_stream(int stream_fd, int out_fd, const struct export_options *options,
		  struct export_result *ret, struct error *err);

const struct export_format *export_formats(size_t *ret_count);
/* By explicit name, or if that is NULL by the path's ending; NULL: none fits. */
const struct export_format *export_format_find(const char *name, const char *path);

/* -EINVAL if a file of that format, in that trace clock (NULL: any), can't be followed by another.
 */
int export_format_check_rotate(const struct export_format *format, const char *clock,
			       const struct export_rotate *rotate, struct error *err);

/*
 * Words for one of perfetto_options: key "generic" (described, legacy), "compact-sched" (on,
 * off) or "compress" (none, deflate, zstd). -EINVAL, with the values that there are.
 */
int perfetto_options_set(struct perfetto_options *o, const char *key, const char *value,
			 struct error *err);
/* A word for one of enum function_view, "instants" or "slices". -EINVAL, with those that there are.
 */
int function_view_find(const char *word, enum function_view *ret, struct error *err);
const char *function_view_name(enum function_view view);
/* -EINVAL if the format shows no functions that way. */
int export_format_check_functions(const struct export_format *format, enum function_view view,
				  struct error *err);
/* -EINVAL if the format has no array form. */
int export_format_check_array(const struct export_format *format, struct error *err);
/* -EINVAL if files can't be merged into it. */
int export_format_check_merges(const struct export_format *format, struct error *err);
const char *perfetto_compression_name(enum perfetto_compression compression);
/* -EINVAL if the format has no such choices, or a compressed file would be compressed again. */
int export_format_check_perfetto(const struct export_format *format,
				 const struct perfetto_options *o, struct error *err);
/* The words for export_merge.clock. -EINVAL, with those that there are. */
int merge_clock_find(const char *word, int *ret, struct error *err);
