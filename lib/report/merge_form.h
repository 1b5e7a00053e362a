/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of a merge: the tables that it makes, and what one file has. */
#pragma once

#include "report/merge.h"
#include "report/table_form.h"

/* The table of all files' reports of a name. */
struct merged_table {
	struct table *table;	    /* owned */
	char *members[COLUMNS_MAX]; /* owned; names of the columns' values in JSON */
	struct rows rows;	    /* of struct merged_row, by table_key() */
	size_t files;		    /* that have the report */
	size_t last;		    /* number of the last one of them, from 1 */
	size_t row_bytes;	    /* memory of a row, and its members' names in JSON */
};

struct merged_row {
	uint32_t number; /* of the table's row, plus 1; 0: new */
};

struct report_merge {
	struct merged_table tables[REPORTS_MAX];
	size_t table_count;
	struct histogram **histograms; /* owned; the tables borrow them */
	size_t histogram_count, histogram_cap;
	char **strings; /* owned; names of tables and columns */
	size_t string_count, string_cap;
	struct tables_head head;
	struct table *first; /* NULL: none */
	bool joins_machines;
	size_t files;
	uint64_t bytes, bytes_max;   /* read so far */
	uint64_t memory, memory_max; /* report_merge_memory() */
};

/* A report's description in a file. Texts are owned by the merge. */
struct merge_description {
	const char *name, *by, *sort, *definition;
	struct column columns[COLUMNS_MAX];
	size_t column_count;
};

/* A row of a file. */
struct merge_row {
	union cell cells[COLUMNS_MAX]; /* a text's place is in texts; histograms are owned,
					  except merge_empty */
	bool has[COLUMNS_MAX];
	struct buf texts;
};

/* Stands for each empty distribution, which can have fewer bytes in a file than a histogram has. */
extern const struct histogram merge_empty;

/* Keeps a copy. NULL: out of memory, or merge_is_full(). */
const char *merge_keep(struct report_merge *m, struct text text);
bool merge_is_full(const struct report_merge *m);
/* Forgets those that were kept since there were so many. */
void merge_drop_strings(struct report_merge *m, size_t string_count);
/* -EBADMSG: its columns are not what a report can have. */
int merge_check_description(const struct merge_description *d, struct error *err);
/* The table for that report, which is new or is described alike. */
int merge_table(struct report_merge *m, const struct merge_description *d,
		struct merged_table **ret, struct error *err);
/* Counts memory. -EFBIG: beyond the bound. */
int merge_take_memory(struct report_merge *m, uint64_t bytes, struct error *err);
/* Adds a row; all of its cells are there, and their histograms are the merge's from now on. */
int merge_add_row(struct report_merge *m, struct merged_table *t, struct merge_row *row,
		  struct error *err);
