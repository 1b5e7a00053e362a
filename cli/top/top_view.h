/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The page of `tracectl top`: what keys do, and its lines. It needs no terminal. */
#pragma once

#include "report/frame.h"

#define TOP_TABLES_MAX REPORTS_MAX
/* Lines around a table's rows: three above, its names, and one below. */
#define TOP_LINES_ABOVE 3

/* Keys without a character. */
enum {
	TOP_KEY_LEFT = 256,
	TOP_KEY_RIGHT,
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_BACKSPACE,
};

enum top_action {
	TOP_NOTHING,
	TOP_REDRAW,
	TOP_SNAPSHOT,
	TOP_QUIT,
};

/* Shares of one CPU, in thousandths. */
struct top_cost {
	bool is_known; /* not on the first page */
	uint64_t recorder, decoder, terminal;
};

struct top_view {
	struct frame_tables *shown; /* borrowed; the tables on the page */
	struct frame_tables *other; /* borrowed; those that a key shows instead; NULL: none */
	bool is_plain;		    /* the last window's tables are shown, not decayed ones */
	size_t table;		    /* in shown->tables */
	/* The column that each table is sorted by, chosen by a key; empty: its usual one. */
	char sort[TOP_TABLES_MAX][32];
	uint64_t top, min_ns; /* as in struct report_options */
	size_t first;	      /* row at the top */
	size_t rows, width;
	char match[64]; /* only rows with this text */
	bool types_match;
	bool frozen;
	char message[256]; /* at the bottom, until the next key; empty: help */
	struct top_cost cost;
};

/* sort: NULL, or the column to sort by at first, in tables that have it. */
void top_view_init(struct top_view *v, struct frame_tables *shown);
/* rows and columns of the terminal. */
void top_view_resize(struct top_view *v, size_t rows, size_t width);
/* Sorts tables that have this column by it. */
void top_view_sort_by(struct top_view *v, const char *column);
enum top_action top_view_key(struct top_view *v, int key);
/*
 * Writes exactly v->rows lines, each with a newline. The names of the table's columns are in line
 * TOP_LINES_ABOVE. Returns 0 or -ENOMEM.
 */
int top_view_draw(struct top_view *v, struct buf *out);

/* "104,233 events/s, none lost, in 1.002 s" */
void top_put_rates(const struct frame_window *w, struct buf *out);
/* "recorder 1.2 %, decoder 0.8 %, terminal 0.1 % of a CPU" */
void top_put_cost(const struct top_cost *cost, struct buf *out);
