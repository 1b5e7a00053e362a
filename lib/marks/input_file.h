/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of applications that an export merges into the trace. */
#pragma once

/* A file of the Trace Event Format that is to be merged in. */
struct export_merge {
	int fd;		  /* borrowed; at its start */
	const char *name; /* for people */
	/* A clockid_t; -1: as its clock_sync events say, else CLOCK_MONOTONIC; or: */
	int clock;
#define MERGE_CLOCK_TRACE (-2) /* the trace clock, whichever it is */
	int sync_fd;	       /* borrowed; a file whose clock_sync events are its own; 0: none */
	const char *sync_name;
};

/* A profile of gperftools' CPU profiler that is to be merged in. */
struct export_profile {
	int fd;		  /* borrowed; at its start */
	const char *name; /* for people */
};
