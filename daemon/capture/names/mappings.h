/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes programs' executable mappings, or all mappings, at the start of sampling, from procfs, in
 * slices. The kernel's own records report later ones. Includes build ids where the kernel reports
 * them (Linux 6.11: PROCMAP_QUERY); opens no program's file.
 */
#pragma once

#include <dirent.h>

#include "daemon/capture/names/inquiry.h"
#include "stream/writer.h"

#define MAPPING_SLICE 8 /* processes */

struct mapping_scan {
	int proc; /* the procfs folder */
	DIR *processes;
	bool all;
	struct inquiry *inquiry; /* about a slice of processes; NULL: none is under way */
	int32_t pids[MAPPING_SLICE];
	size_t count;
	uint64_t boot_ns; /* before the slice was asked for */
	bool last;	  /* no process is left for another slice */
	size_t unread;	  /* processes that held it up; stays after the end */
};
#define MAPPING_SCAN_INIT ((struct mapping_scan){ .proc = -EBADF })

/* all: not only executable mappings. */
int mapping_scan_start(struct mapping_scan *s, const char *proc, bool all);
/*
 * Writes a MAPPINGS chunk of the next processes. 1: more to do; 0: done; -EAGAIN: a process does
 * not answer yet, if it may not block; or another -errno, which ends the scan.
 */
int mapping_scan_step(struct mapping_scan *s, bool block, struct stream_writer *w);
void mapping_scan_end(struct mapping_scan *s);
