/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of a table, for its forms. */
#pragma once

#include "report/table.h"

/* A text has an offset: texts may move while the table grows. */
union cell {
	struct {
		uint32_t at, len; /* in table.texts */
	};
	int64_t number;
	uint64_t count;
	const struct histogram *histogram;
};

struct table {
	const char *name, *sort;
	struct column columns[COLUMNS_MAX];
	size_t column_count;
	union cell *cells; /* owned; of all rows */
	size_t cell_count, cell_cap;
	uint32_t *order; /* owned; rows as they are shown */
	size_t shown, rows;
	struct buf texts, notes; /* notes: lines, each with its newline */
	bool failed;
};

static inline const union cell *table_cell(const struct table *t, size_t row, size_t column)
{
	return &t->cells[t->order[row] * t->column_count + column];
}

static inline struct text table_text(const struct table *t, const union cell *cell)
{
	return (struct text){ t->texts.data + cell->at, cell->len };
}

/* The parts of a histogram's column. */
enum histogram_part { PART_AVERAGE, PART_MEDIAN, PART_P99, PART_MAX, HISTOGRAM_PARTS };
extern const char *const histogram_part_names[HISTOGRAM_PARTS];
uint64_t histogram_part_of(const struct histogram *h, enum histogram_part part);

void table_write_text(const struct table *t, const struct report_options *o, struct buf *out);
void table_write_json(const struct table *t, struct buf *out);
void table_write_csv(const struct table *t, struct buf *out);
void table_write_frame(const struct table *t, struct buf *out);
