/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adds up reports that were written as JSON, docs/report.md: rows with the same keys become one.
 * The files may come from anybody, so the bytes that are read and the rows of a report have bounds.
 * A distribution takes memory only for buckets that are in a file.
 */
#pragma once

#include "base/buf.h"
#include "report/report.h"

#define REPORT_MERGE_FILES_MAX 256
/* All files together. */
#define REPORT_MERGE_BYTES_MAX (UINT64_C(1) << 30)

struct report_merge;

int report_merge_new(struct report_merge **ret);
struct report_merge *report_merge_free(struct report_merge *m);
DEFINE_CLEANUP_FUNC(struct report_merge *, report_merge_free);

/*
 * Adds the file that fd holds from its offset on. name: for messages and notes. -EBADMSG: it is no
 * report; -EINVAL: it can't be added to those before it; -EFBIG; -ENOMEM; or read()'s error. After
 * a failure the merge can only be freed.
 */
int report_merge_add(struct report_merge *m, int fd, const char *name, struct error *err);

/* Appends the tables in their form. */
int report_merge_write(struct report_merge *m, const struct report_options *o, struct buf *out,
		       struct error *err);

/* Events that were lost in all recordings, and whether one of these is incomplete. */
uint64_t report_merge_lost(const struct report_merge *m);
bool report_merge_is_incomplete(const struct report_merge *m);
