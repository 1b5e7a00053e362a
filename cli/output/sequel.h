/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that an output goes on in. A trace that no viewer can open as one JSON or page is written
 * as several segments, one behind the other (export_options.segments). The first stays in the
 * output's own file; each other one becomes a sequel: "out.0002.json", "out.0003.json" ... A number
 * whose name is taken is skipped: only the output itself replaces a file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "export/sink.h"

struct sequels {
	char **paths; /* owned */
	size_t count, cap;
};
void sequels_deinit(struct sequels *s);

/* The ends of all segments but the last. */
struct segment_ends {
	uint64_t *ends; /* owned */
	size_t count, cap;
};
void segment_ends_deinit(struct segment_ends *e);
/*
 * Finds them in a file of unknown origin. least: in smaller files there is no second segment. 0 or
 * -errno.
 */
int segment_ends_find(struct segment_ends *ret, int fd, const struct export_format *format,
		      uint64_t least);

/*
 * Moves the segments behind the first one from the file to sequels of path. mends: the last one may
 * be incomplete; without a usable part it is dropped. On failure the file is whole and unchanged,
 * and there are no sequels.
 */
int sequels_move(struct sequels *ret, int fd, const char *path, const struct export_format *format,
		 const struct segment_ends *ends, bool mends, struct error *err);
/*
 * For a file that may be incomplete: finds its segments, moves and mends them. 1; 0: nothing usable
 * is left; or -errno.
 */
int sequels_mend(struct sequels *ret, int fd, const char *path, const struct export_format *format,
		 struct error *err);
/* Appends "out.0002.json", or "out.0002.json to out.0004.json". */
void sequels_put(const struct sequels *s, struct buf *out);
