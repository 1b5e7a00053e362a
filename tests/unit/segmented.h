/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An export into frames, as files. */
#pragma once

#include "export/segment.h"
#include "exported.h"

#define SEGMENTED_MAX 4096

struct segmented_file {
	char name[SEGMENT_NAME_MAX + 1]; /* "": files without names */
	struct buf data;
};

struct segmented {
	struct exported out;
	struct segmented_file files[SEGMENTED_MAX];
	size_t count;
};

/* May fail, as out.code then says. */
struct segmented *export_segments(int stream_fd, const struct export_options *options);
void segmented_freep(struct segmented **s);
#define _cleanup_segmented_ _cleanup_(segmented_freep)
