/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programs had mapped for execution when sampling began, or everything, by procfs, in slices;
 * the kernel's own records tell of later ones. With build ids where the kernel tells them (Linux
 * 6.11: PROCMAP_QUERY); no file is looked into.
 */
#pragma once

#include <dirent.h>

#include "stream/writer.h"

struct mapping_scan {
	int proc; /* the procfs folder */
	DIR *processes;
	bool all;
};
#define MAPPING_SCAN_INIT ((struct mapping_scan){ .proc = -EBADF })

/* all: not only what is for execution. */
int mapping_scan_start(struct mapping_scan *s, const char *proc, bool all);
/* Writes a MAPPINGS chunk of some more processes. 1: there are more; 0: done; or -errno. */
int mapping_scan_step(struct mapping_scan *s, struct stream_writer *w);
void mapping_scan_end(struct mapping_scan *s);
