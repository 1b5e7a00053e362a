/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table of results, and its forms: aligned text, JSON and CSV. */
#pragma once

#include "base/buf.h"
#include "marks/value.h"
#include "report/histogram.h"
#include "report/report.h"

enum column_kind {
	COLUMN_TEXT,
	COLUMN_NUMBER,	  /* int64_t: an id; its sum means nothing */
	COLUMN_COUNT,	  /* uint64_t */
	COLUMN_BYTES,	  /* uint64_t */
	COLUMN_TIME,	  /* uint64_t: ns */
	COLUMN_AT,	  /* uint64_t: ns, on the trace clock; 0: empty */
	COLUMN_PERMILLE,  /* uint64_t: 1000 is all; shown in per cent */
	COLUMN_BAR,	  /* as COLUMN_PERMILLE; for people a bar */
	COLUMN_HISTOGRAM, /* of times: average, p50, p99 and max */
};

struct column {
	const char *name; /* "runtime"; a histogram's parts are NAME-avg, NAME-p50 ... */
	enum column_kind kind;
};

#define COLUMNS_MAX 16

/* A time that is not known: null in JSON. It is sorted as 0. */
#define TABLE_UNKNOWN UINT64_MAX

struct table;

/*
 * Copies columns, at most COLUMNS_MAX; names are borrowed for the table's life. sort: a column's
 * name, the largest value first; or NULL: rows stay in order.
 */
int table_new(struct table **ret, const char *name, const struct column *columns, size_t count,
	      const char *sort);
struct table *table_free(struct table *t);
DEFINE_CLEANUP_FUNC(struct table *, table_free);

/*
 * Values of a row, column by column, then the next row's. Failures are remembered for
 * table_write(). A histogram is borrowed for the table's life.
 */
void table_put_text(struct table *t, struct text text);
void table_put_number(struct table *t, int64_t n);
void table_put_count(struct table *t, uint64_t n); /* also bytes and times */
void table_put_histogram(struct table *t, const struct histogram *h);

/*
 * Sorts and selects rows as o says, again if that was done before. -EINVAL: no such column;
 * -ENOMEM.
 */
int table_arrange(struct table *t, const struct report_options *o, struct error *err);
/* Whether it can be sorted by that name. */
bool table_has_column(const struct table *t, const char *name);
/* True if it has no row. */
bool table_is_empty(const struct table *t);

/* A line below the table, for people and in JSON: what is missing. */
void table_note(struct table *t, const char *fmt, ...) _printf_(2, 3);

/* The part of a table that a screen shows. */
struct table_view {
	size_t width;	    /* characters */
	const char *sort;   /* the column that is sorted by; a mark is before its name; or NULL */
	size_t first, rows; /* of the rows as they are arranged */
};
/*
 * Appends the line of names, then a line for each row, for people. Columns that do not fit are left
 * out: first averages and medians, then the last ones, but never the first one and `sort`.
 */
void table_write_fitted(const struct table *t, const struct table_view *view, struct buf *out);

/*
 * Sorts as o says, and appends the table in its form. first: no table was written before it.
 * -EINVAL: no such column; -ENOMEM.
 */
int table_write(struct table *t, const struct report_options *o, bool first, struct buf *out,
		struct error *err);
