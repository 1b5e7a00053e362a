/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tables on their way from the process that decodes to the one that has the terminal. The latter
 * may be root's, so it believes nothing: frame_take() checks every length. Both processes are of
 * one program, so integers are the machine's.
 */
#pragma once

#include "report/table.h"

/* A longer frame is an error. */
#define FRAME_MAX (32U << 20)
/* The most rows of a table in a frame, by the table's usual order. */
#define FRAME_ROWS_MAX 4096
/* One of each report, and one of each histogram, of which a session has 16 at most. */
#define FRAME_TABLES_MAX (2 * REPORTS_MAX)

enum frame_kind {
	FRAME_WINDOW = 1, /* struct frame_window, then tables */
	FRAME_NEEDED,	  /* struct frame_needed */
	FRAME_FAILED,	  /* the message, a NUL, and the hint or nothing */
};

struct frame_header {
	uint32_t kind, len; /* of what follows */
};

/* A window of time, from the end of the one before it. */
struct frame_window {
	uint64_t ts, span_ns; /* of the last event; by the trace clock */
	uint64_t events, lost;
	uint64_t gaps;	 /* places with losses; of some the count is unknown */
	uint64_t cpu_ns; /* of this process, since it began */
	uint64_t tables;
};

/* The end of the head of the followed stream, and the place from which the decoder needs it. */
struct frame_needed {
	uint64_t head, from;
};

/* A window as it was received. */
struct frame_tables {
	struct buf data; /* owned; the tables' names are in it */
	struct frame_window window;
	struct table *tables[FRAME_TABLES_MAX]; /* owned */
	size_t count;
};
void frame_tables_deinit(struct frame_tables *f);

/* Appends a frame. */
void frame_put(struct buf *out, enum frame_kind kind, const void *data, size_t len);
/*
 * Finds the first frame in the data received so far. 1: *ret, and *ret_data in it; 0: more is
 * needed; -EBADMSG: no frame.
 */
int frame_next(const struct buf *in, struct frame_header *ret, const char **ret_data);
/* Takes a FRAME_WINDOW apart. Histograms are columns of times here. -EBADMSG, -ENOMEM. */
int frame_take(struct frame_tables *ret, const char *data, size_t len);
