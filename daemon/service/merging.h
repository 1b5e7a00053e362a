/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files that an output is to have merged in (Merge of control.proto): from the request that
 * brings them to the exporter that reads them. The daemon itself does not look into them.
 */
#pragma once

#include "export/export.h"
#include "proto/control.pb-c.h"

/* Two for each, and one for what memory does not hold. */
#define MERGING_FDS_MAX (2 * EXPORT_MERGES_MAX + 1)
struct merging {
	int fds[MERGING_FDS_MAX]; /* owned */
	size_t fd_count;	  /* 0: nothing is merged */
	bool scratch;		  /* the last one is the scratch file */
};

/*
 * What output names, checked; takes those of fds that are for it, which become -EBADF. -EINVAL,
 * -EBADF: they do not fit together, or can't be read. What was taken stays in ret in any case.
 */
int merging_take(struct merging *ret, const Traced__Control__Output *output, int *fds,
		 size_t fd_count, struct error *err);
void merging_deinit(struct merging *m);

/* How many descriptors the merges of output have, with or without a scratch file. */
int merging_count(const Traced__Control__Output *output, bool scratch);

/*
 * In the exporter: sets what concerns merges in options, whose strings are output's. The
 * descriptors are merging_count() from first_fd on; files has room for EXPORT_MERGES_MAX. 0 or
 * -EINVAL.
 */
int merging_read(struct export_options *options, struct export_merge *files,
		 const Traced__Control__Output *output, bool scratch, int first_fd,
		 struct error *err);
