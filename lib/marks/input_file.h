/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of applications that an export merges into the trace. */
#pragma once

/* A file of the Trace Event Format to merge into the trace. */
struct export_merge {
	int fd;		  /* borrowed; positioned at its start */
	const char *name; /* for messages */
	/*
	 * A clockid_t; -1: use its clock_sync events, else CLOCK_MONOTONIC; or MERGE_CLOCK_TRACE.
	 */
	int clock;
#define MERGE_CLOCK_TRACE (-2) /* the trace clock, whichever that is */
	int sync_fd;	       /* borrowed; a file whose clock_sync events also apply; 0: none */
	const char *sync_name;
};

/* A profile of gperftools' CPU profiler to merge into the trace. */
struct export_profile {
	int fd;		  /* borrowed; positioned at its start */
	const char *name; /* for messages */
};
