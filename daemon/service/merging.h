/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files to be merged into an output (Merge in control.proto), on their way from the request to the
 * exporter. The daemon does not read them.
 */
#pragma once

#include "base/closer.h"
#include "export/export.h"
#include "proto/control.pb-c.h"

/* Two per file, and one scratch file for what does not fit into memory. */
#define MERGING_FDS_MAX (2 * EXPORT_MERGES_MAX + 1)
struct merging {
	int fds[MERGING_FDS_MAX]; /* owned */
	size_t fd_count;	  /* 0: no merge */
	bool scratch;		  /* the last descriptor is a scratch file */
};

/*
 * Checks the output's merges and takes their descriptors from fds, which become -EBADF. -EINVAL,
 * -EBADF: inconsistent or unreadable. In any case ret owns what was taken.
 */
int merging_take(struct merging *ret, const Traced__Control__Output *output, int *fds,
		 size_t fd_count, struct error *err);
/* account: the client's; closer: for its descriptors. */
void merging_deinit(struct merging *m, struct closer *closer, uid_t account);

/* Number of descriptors for the merges of output, with or without a scratch file. */
int merging_count(const Traced__Control__Output *output, bool scratch);

/*
 * In the exporter: sets the merge options; their strings are output's. There are merging_count()
 * descriptors, from first_fd on; files has room for EXPORT_MERGES_MAX. Returns 0 or -EINVAL.
 */
int merging_read(struct export_options *options, struct export_merge *files,
		 const Traced__Control__Output *output, bool scratch, int first_fd,
		 struct error *err);
