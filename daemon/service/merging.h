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
/* In the words of an exporter: three for each, and one before them. */
#define MERGING_ARGS_MAX (3 * EXPORT_MERGES_MAX + 1)

struct merging {
	char *words[MERGING_ARGS_MAX]; /* owned */
	size_t word_count;	       /* 0: nothing is merged */
	int fds[MERGING_FDS_MAX];      /* owned */
	size_t fd_count;
};

/*
 * What output names, checked; takes those of fds that are for it, which become -EBADF. -EINVAL,
 * -EBADF: they do not fit together, or can't be read. What was taken stays in ret in any case.
 */
int merging_take(struct merging *ret, const Traced__Control__Output *output, int *fds,
		 size_t fd_count, struct error *err);
void merging_deinit(struct merging *m);

/*
 * In the exporter: words as they were, fds from first_fd on. files: room for EXPORT_MERGES_MAX.
 * Sets what concerns merges in options; returns how many descriptors they are, or -EINVAL.
 */
int merging_read(struct export_options *options, struct export_merge *files, char **words,
		 size_t word_count, int first_fd);
