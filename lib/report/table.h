/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table of results, and its forms: aligned text, JSON and CSV. */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
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

/* How values of several reports, or of one report's rows, make one value. */
enum column_adds {
	/*
	 * Texts and numbers are keys; counts, bytes and times are sums; histograms are merged. A
	 * report that has any other column with it can't be merged.
	 */
	ADDS_USUAL,
	ADDS_KEY,	 /* rows with equal keys are one row */
	ADDS_SUM,	 /* unknown if one of the values is */
	ADDS_LARGEST,	 /* the largest value */
	ADDS_SMALLEST,	 /* the smallest known value */
	ADDS_HISTOGRAM,	 /* their values together */
	ADDS_AT,	 /* the time of the largest value of the histogram `of` */
	ADDS_SHARE,	 /* `of` as a part of its sum over the rows with the same first columns */
	ADDS_SPAN_SHARE, /* `of` as a part of the whole recording */
	ADDS_REMAINDER,	 /* what `of` leaves of `over`, as a part of that */
	ADDS_PER_SECOND, /* `of` by the seconds of the recording */
	ADDS_NOT,
};

/* Cells from ADDS_SHARE to ADDS_PER_SECOND are put as TABLE_DERIVED: the table computes them. */
struct column {
	const char *name; /* "runtime"; a histogram's parts are NAME-avg, NAME-p50 ... */
	enum column_kind kind;
	enum column_adds adds;
	const char *of, *over; /* names of columns; or NULL */
	size_t same;	       /* of ADDS_SHARE: the number of first columns */
	bool is_wide;	       /* for people, its texts are not cut */
	size_t width;	       /* for people, of rows that are written as they come: at least */
};

/* An initializer: COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "delay"). */
#define COLUMN(n, k, ...)                                                                          \
	{                                                                                          \
		.name = (n), .kind = (k), __VA_ARGS__                                              \
	}

#define COLUMNS_MAX 16

/* A time or count that is not known: null in JSON. It is sorted as 0. */
#define TABLE_UNKNOWN UINT64_MAX
#define TABLE_DERIVED 0

struct output;
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

/* A cell's value. A text and a histogram are borrowed. */
union cell_value {
	int64_t number;
	uint64_t count; /* also bytes and times */
	struct text text;
	const struct histogram *histogram;
};

/*
 * For tables of any number of rows. table_bound() comes before the first row, and then each row is
 * put by table_put_row(). o is borrowed for the table's life.
 *
 * With `out`, rows that need no order are written there as they come; for people, a wider value
 * widens its column from then on. Otherwise the table keeps `max` rows: the first ones in the order
 * that o asks for. A note counts the others.
 */
void table_bound(struct table *t, const struct report_options *o, size_t max, struct output *out);
/*
 * After table_bound(): up to its `max` rows wait until *release, which is borrowed until the last
 * row is put. More than that are written without.
 */
void table_hold(struct table *t, const bool *release);
/* Values of all columns; no histograms. Returns 0, or -errno if the output failed. */
int table_put_row(struct table *t, const union cell_value *values);

/* Tells the choice of `by`, or NULL, which is borrowed, and the recording's span. */
void table_describe(struct table *t, const char *by, uint64_t span_ns);

/* part of whole, rounded to nearest, 1000 at most; 0 of nothing. */
static inline uint64_t report_permille(uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((double)MIN(part, whole) * 1000 / (double)whole + 0.5) : 0;
}

/* The definition says what is counted: it must be equal for tables to be merged. Borrowed. */
void table_define(struct table *t, const char *definition);

/* Has rows written as they come, if table_write()'s buffer is that output's. */
void table_spill(struct table *t, struct output *out);

/*
 * Sorts and selects rows as o says, again if that was done before. -EINVAL: no such column;
 * -ENOMEM.
 */
int table_arrange(struct table *t, const struct report_options *o, struct error *err);
/* Whether it can be sorted by that name: a column, or a part of one. */
bool table_has_column(const struct table *t, const char *name);
/* True if it has no row. */
bool table_is_empty(const struct table *t);

/*
 * A total of all rows, shown or not: below the table, in JSON, and in the last row of CSV. name is
 * borrowed. A table whose rows are written as they come has the names before its first row; the
 * last value of a name counts.
 */
#define TABLE_TOTALS_MAX 5
void table_total(struct table *t, const char *name, uint64_t value);
/* The totals `cut` and `open` of a table whose rows can't have them. what: for people. */
void table_total_cut(struct table *t, const char *what, uint64_t cut, uint64_t open);
/* Without a column to sort by, rows are sorted by their keys. */
void table_sort_by_keys(struct table *t);
/* Its counts are of all the time so far, not of one window. */
void table_counts_on(struct table *t);

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
void table_write_fitted(struct table *t, const struct table_view *view, struct buf *out);

/*
 * Derives columns, sorts as o says, and appends the table in its form. first: no table was written
 * before it. -EINVAL: no such column; -ENOMEM.
 */
int table_write(struct table *t, const struct report_options *o, bool first, struct buf *out,
		struct error *err);

/* A JSON's members beside its tables. */
struct tables_head {
	const char *clock, *host; /* host: a label, or NULL */
	bool is_further;	  /* not the first host of the document */
	uint64_t first_ns, span_ns, events, lost;
	uint64_t gaps; /* places where events were lost, counted or not */
	bool incomplete, marks_lost;
	const char *part; /* of the recording; NULL: the whole */
};
#define TABLES_FORMAT "traced-report"
#define TABLES_VERSION "1"
/* Reports of several machines: docs/report.md. */
#define TABLES_HOSTS_FORMAT "traced-report-hosts"
/* Around the tables that are written as JSON. Counts and times need not be known at the begin. */
void tables_begin_json(const struct tables_head *head, struct buf *out);
void tables_end_json(const struct tables_head *head, struct buf *out);
/* For people, below the tables: of which part of a recording they are. */
void tables_end_text(const struct tables_head *head, struct buf *out);
