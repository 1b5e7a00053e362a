/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes programs' executable mappings, or all mappings, at the start of sampling, from procfs, in
 * slices. The kernel's own records report later ones. Includes build ids where the kernel reports
 * them (Linux 6.11: PROCMAP_QUERY); opens no program's file.
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

/* all: not only executable mappings. */
int mapping_scan_start(struct mapping_scan *s, const char *proc, bool all);
/* Writes a MAPPINGS chunk of the next processes. 1: more to do; 0: done; or -errno. */
int mapping_scan_step(struct mapping_scan *s, struct stream_writer *w);
void mapping_scan_end(struct mapping_scan *s);
