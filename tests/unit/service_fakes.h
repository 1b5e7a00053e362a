/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A capture and an exporter of a few lines, behind the real service: what is
 * recorded is text, and formats are behaviours.
 */
#pragma once

#include "daemon/capture/capture.h"

struct fakes {
	int captures;	    /* that exist now; the worker counts */
	unsigned arming_ms; /* arming takes so long */
	/* capture_snapshot and capture_stop wait while it is closed. */
	_Atomic bool gate_closed;
	_Atomic unsigned at_gate; /* their calls that wait now */
	int spares, spare_error;
	unsigned spares_taken;
	char spare_clock[16]; /* of the last one */
	uint64_t spare_buffer;
	int new_error, start_error, stop_error;
	/* Each recording's thread uses these. */
	_Atomic int dispatch_error;
	_Atomic unsigned dispatches;
	_Atomic bool always_more; /* capture_dispatch never catches up */
	/*
	 * An eventfd of the last capture: readable while its rings hold data. A descriptor of its
	 * own: the worker may be closing the capture's.
	 */
	int data_fd;
	unsigned turned_off;
	unsigned marks;
	unsigned marks_refused; /* of the next ones */
	uint64_t held;		/* bytes that the rings of a flight recorder hold */
	uint64_t rest;		/* a snapshot has so many bytes of names and the like; 0: few */
	char last_mark[64];
	size_t event_count;
	char events[16384];	  /* globs of the last request, with blanks */
	char only[64], never[64]; /* the first of its bounds */
	bool hide_addresses;
	unsigned names_max; /* of functions */
};
extern struct fakes fakes;

static inline int captures(void)
{
	return __atomic_load_n(&fakes.captures, __ATOMIC_SEQ_CST);
}

static inline int spares(void)
{
	return __atomic_load_n(&fakes.spares, __ATOMIC_SEQ_CST);
}

/* Formats: "txt" copies the stream, "fail" reports ENOSPC, "crash", "hang", "mute" (no result),
 * "lie"; "raw" is one with addresses. */
