/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of output formats, and the entry to an export by a format's name. */
#pragma once

#include "export/sink.h"

/* Calls export_run() with the sink of options->format. -EINVAL: unknown format. */
int export_stream(int stream_fd, int out_fd, const struct export_options *options,
		  struct export_result *ret, struct error *err);

const struct export_format *export_formats(size_t *ret_count);
/* Finds a format by name, or if name is NULL by the path's ending; NULL: none. */
const struct export_format *export_format_find(const char *name, const char *path);
/*
 * Joins the parts of several machines into a file of a format with join(). result: theirs; gets the
 * file's size.
 */
int export_join(const struct export_format *format, const struct export_part *parts, size_t count,
		int out_fd, struct export_result *result, struct error *err);
/* Whether marks of applications have a place in it. */
bool export_format_has_marks(const struct export_format *format);

/* -EINVAL if that format, in that trace clock (NULL: any), can't be split into files. */
int export_format_check_rotate(const struct export_format *format, const char *clock,
			       const struct export_rotate *rotate, struct error *err);

/*
 * Sets a choice by key: "generic" (described, legacy), "compact-sched" (on, off) or "compress"
 * (none, deflate, zstd). -EINVAL, listing the valid values.
 */
int perfetto_options_set(struct perfetto_options *o, const char *key, const char *value,
			 struct error *err);
/* Parses "instants" or "slices". -EINVAL, listing the valid values. */
int function_view_find(const char *word, enum function_view *ret, struct error *err);
const char *function_view_name(enum function_view view);
/* -EINVAL if the format can't show functions that way. */
int export_format_check_functions(const struct export_format *format, enum function_view view,
				  struct error *err);
/* -EINVAL if the format has no array form. */
int export_format_check_array(const struct export_format *format, struct error *err);
/* -EINVAL if it is no page. */
int export_format_check_page(const struct export_format *format, struct error *err);
/* -EINVAL if files can't be merged into it. */
int export_format_check_merges(const struct export_format *format, struct error *err);
/* -EINVAL if the format has no such choices, or would be compressed twice. */
int export_format_check_perfetto(const struct export_format *format,
				 const struct perfetto_options *o, struct error *err);
/* Parses export_merge.clock. -EINVAL, listing the valid values. */
int merge_clock_find(const char *word, int *ret, struct error *err);
