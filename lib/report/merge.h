/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adds up reports that were written as JSON, docs/report.md: rows with the same keys become one.
 * The files may come from anybody, so the bytes that are read and the rows of a report have bounds.
 * A distribution takes memory only for buckets that are in a file.
 */
#pragma once

#include "base/buf.h"
#include "export/export.h"
#include "report/histogram.h"
#include "report/report.h"

/* Files that a command line may name. */
#define REPORT_MERGE_FILES_MAX 256
/* All files together, unless report_merge_bound() says more. */
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

/* The same for size bytes from there on, which leaves the offset behind them. */
int report_merge_add_part(struct report_merge *m, int fd, uint64_t size, const char *name,
			  struct error *err);

/*
 * The reports are of several machines: before the first one. Columns of tids and pids are left out,
 * as the same number is another thread on each machine.
 */
void report_merge_join_machines(struct report_merge *m);
/*
 * Before the first file: bounds of the bytes that are read, and of report_merge_memory(), which has
 * none otherwise. Beyond one of them, adding a file fails with -EFBIG.
 */
void report_merge_bound(struct report_merge *m, uint64_t bytes, uint64_t memory);
/* Bytes of memory that rows and notes take, also when they are written. Another merge grows by
 * about that, or less, if it gets the same files. */
uint64_t report_merge_memory(const struct report_merge *m);
/* A table that is written before the others; borrowed. */
struct table;
void report_merge_put_first(struct report_merge *m, struct table *table);
/* For each column of distributions: all rows' together. Returns the first value that is not 0. */
int report_merge_visit(const struct report_merge *m,
		       int (*visit)(void *userdata, const char *report, const char *column,
				    const struct histogram *all),
		       void *userdata);

/*
 * For each report: a number for its name, and one for its columns, which are equal in all merges of
 * this process if it can be added to those. The number 0 stands for the clock, whose form is that
 * of its name. Returns the first value that is not 0, or -ENOMEM.
 */
int report_merge_visit_forms(const struct report_merge *m,
			     int (*visit)(void *userdata, uint64_t report, uint64_t form),
			     void *userdata);

/* Appends the tables in their form. */
int report_merge_write(struct report_merge *m, const struct report_options *o, struct buf *out,
		       struct error *err);

/* Tells what was lost in all recordings, and whether one of these is incomplete. 0 or -ENOMEM. */
int report_merge_tell(const struct report_merge *m, struct export_result *ret);
