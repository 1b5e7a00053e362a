/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of a table, for its forms. */
#pragma once

#include "report/rows.h"
#include "report/table.h"

/* A text has an offset: texts may move while the table grows. */
union cell {
	struct {
		uint32_t at, len; /* in table.texts */
	};
	int64_t number;
	uint64_t count;
	const struct histogram *histogram;
	struct histogram *own; /* the same, where the table may change it */
};

/* The parts of a histogram's column. */
enum histogram_part { PART_AVERAGE, PART_MEDIAN, PART_P99, PART_MAX, HISTOGRAM_PARTS };
extern const char *const histogram_part_names[HISTOGRAM_PARTS];
uint64_t histogram_part_of(const struct histogram *h, enum histogram_part part);

/* A column as people see it: a histogram takes several. */
struct shown_column {
	size_t column, part;
	size_t width, fill; /* characters; spaces fill a cell up to that many */
};
#define SHOWN_MAX (COLUMNS_MAX * HISTOGRAM_PARTS)

struct table {
	const char *name, *sort, *by;
	const char *definition; /* NULL: the name says it */
	uint64_t span_ns;
	bool by_keys;	/* sorted by the keys if there is no column to sort by */
	bool counts_on; /* table_counts_on() */
	struct column columns[COLUMNS_MAX];
	size_t column_count;
	struct table_total {
		const char *name;
		uint64_t value;
	} totals[TABLE_TOTALS_MAX];
	size_t total_count;
	bool has_noted_totals; /* for people, a note has them */
	union cell *cells;     /* owned; of all rows */
	size_t cell_count, cell_cap;
	uint32_t *order; /* owned; rows as they are shown */
	size_t shown, rows;
	struct buf texts, notes;	      /* notes: lines, each with its newline */
	struct output *output;		      /* NULL: the buffer takes all */
	const struct report_options *options; /* borrowed; NULL before table_write() or _bound() */
	struct shown_column shown_columns[SHOWN_MAX]; /* for people; set by the form */
	size_t shown_count, row_room;		      /* room: bytes of a row of usual values */
	struct buf cell;			      /* for the form's use */
	size_t max;				      /* rows to keep; 0: all */
	bool streams;				      /* rows are written as they come */
	const bool *release;	    /* borrowed; rows are written once it is true; NULL: at once */
	size_t hold_max;	    /* rows that wait for that */
	bool sorts;		    /* the rows that are kept depend on the order */
	const struct column *least; /* rows of least_value or less in it are not kept; or NULL */
	uint64_t least_value;
	uint64_t streamed, left_out; /* rows that were put: written already; not kept */
	bool failed;
};

/* A form for rows one by one. */
struct table_form {
	void (*begin)(struct table *t, struct buf *out);
	void (*put_row)(struct table *t, const union cell_value *values, bool first,
			struct buf *out);
	void (*end)(const struct table *t, struct buf *out);
};
extern const struct table_form table_form_text, table_form_json, table_form_csv;

/* Up to the first row, and one row; the first one is told apart. t->options says in which form. */
void table_begin(struct table *t, bool first, struct buf *out);
int table_write_row(struct table *t, const union cell_value *values, bool first, struct buf *out);
/* Says how many rows are shown, if not all are. */
void table_note_left_out(struct table *t);

static inline const union cell *table_cell(const struct table *t, size_t row, size_t column)
{
	return &t->cells[t->order[row] * t->column_count + column];
}

static inline struct text table_text(const struct table *t, const union cell *cell)
{
	return (struct text){ t->texts.data + cell->at, cell->len };
}

/* The value of a cell, of the rows as they are shown. */
static inline union cell_value table_value_at(const struct table *t, size_t row, size_t column)
{
	const union cell *cell = table_cell(t, row, column);

	if (t->columns[column].kind == COLUMN_TEXT)
		return (union cell_value){ .text = table_text(t, cell) };
	return (union cell_value){ .count = cell->count };
}

/* The row in order of creation, not as it is shown. */
static inline union cell *table_made_cell(const struct table *t, size_t row, size_t column)
{
	return &t->cells[row * t->column_count + column];
}

/* Names in JSON; the ADDS_USUAL of a column is never written. */
#define COLUMN_KINDS (COLUMN_HISTOGRAM + 1)
#define COLUMN_ADDS (ADDS_NOT + 1)
extern const char *const column_kind_names[COLUMN_KINDS];
extern const char *const column_adds_names[COLUMN_ADDS];
/* How the column adds up: never ADDS_USUAL. */
enum column_adds column_adds_of(const struct column *c);
static inline bool column_is_derived(const struct column *c)
{
	return c->adds >= ADDS_SHARE && c->adds <= ADDS_PER_SECOND;
}
/* Appends the name of its member in JSON: "max_at_ns". */
void column_put_key(const struct column *c, struct buf *out);
/* NULL: there is none. */
const struct column *table_column(const struct table *t, const char *name);
/* The key of a row: its key columns among the first ones. */
struct row_key table_key(const struct table *t, size_t row, size_t columns);
/* Computes the derived columns. Returns 0 or -ENOMEM. */
int table_derive(struct table *t);

void table_write_frame(const struct table *t, struct buf *out);
