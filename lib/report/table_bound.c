/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables that do not keep all of their rows. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/output.h"
#include "report/table_form.h"

/* Rows are sorted once there are twice as many as are kept, but not for a few. */
#define PRUNE_ROWS_LEAST 4096U

void table_bound(struct table *t, const struct report_options *o, size_t max, struct output *out)
{
	t->options = o;
	t->streams = out && !o->sort && !o->match && o->form != REPORT_FRAME;
	t->output = t->streams ? out : NULL;
	t->hold_max = max;
	if (t->streams)
		max = SIZE_MAX;
	t->max = o->top ? MIN((size_t)o->top, max) : max;
	/* table_write() refuses an unknown column. */
	t->sorts = o->sort && table_has_column(t, o->sort);
}

void table_hold(struct table *t, const bool *release)
{
	t->release = release;
}

/* The column whose values sort the rows; NULL: texts or ids do, or the parts of a histogram. */
static const struct column *table_sort_column(const struct table *t)
{
	const struct column *c = t->sorts ? table_column(t, t->options->sort) : NULL;

	return c && c->kind != COLUMN_TEXT && c->kind != COLUMN_NUMBER &&
			       c->kind != COLUMN_HISTOGRAM
		       ? c
		       : NULL;
}

/* An unknown value is sorted as 0. */
static uint64_t table_sort_value(uint64_t value)
{
	return value == TABLE_UNKNOWN ? 0 : value;
}

/* The rows that are kept come before a later one of that value, or of less. */
static void table_note_least(struct table *t)
{
	const struct column *c = table_sort_column(t);

	if (!c || t->shown < t->max)
		return;
	t->least = c;
	t->least_value =
		table_sort_value(table_value_at(t, t->shown - 1, (size_t)(c - t->columns)).count);
}

static bool table_comes_behind(const struct table *t, const union cell_value *values)
{
	return t->least && table_sort_value(values[t->least - t->columns].count) <= t->least_value;
}

static void table_read_row(const struct table *t, size_t row, union cell_value *values)
{
	for (size_t i = 0; i < t->column_count; i++)
		values[i] = table_value_at(t, row, i);
}

static int table_stream_row(struct table *t, const union cell_value *values)
{
	struct buf *out = &t->output->buf;

	if (!t->streamed)
		table_begin(t, true, out);
	return table_write_row(t, values, !t->streamed++, out);
}

/* Writes the rows that waited. */
static int table_stream_kept(struct table *t)
{
	union cell_value values[COLUMNS_MAX];
	int r;

	if (!t->cell_count)
		return 0;
	r = table_arrange(t, t->options, NULL);
	for (size_t row = 0; row < t->shown && r == 0; row++) {
		table_read_row(t, row, values);
		r = table_stream_row(t, values);
	}
	t->cell_count = 0;
	buf_clear(&t->texts);
	return r;
}

static void table_keep_row(struct table *t, const union cell_value *values)
{
	for (size_t i = 0; i < t->column_count; i++) {
		if (t->columns[i].kind == COLUMN_TEXT)
			table_put_text(t, values[i].text);
		else
			table_put_count(t, values[i].count);
	}
}

/* Forgets rows that the order puts behind the first `max`. */
static int table_prune(struct table *t)
{
	_cleanup_(table_freep) struct table *kept = NULL;
	union cell_value values[COLUMNS_MAX];
	union cell *cells = t->cells;
	struct buf texts = t->texts;
	int r = table_new(&kept, t->name, t->columns, t->column_count, t->sort);

	if (r == 0)
		r = table_arrange(t, t->options, NULL);
	if (r < 0)
		return r;
	t->left_out += t->rows - t->shown;
	table_note_least(t);
	for (size_t row = 0; row < t->shown; row++) {
		table_read_row(t, row, values);
		table_keep_row(kept, values);
	}
	if (kept->failed || buf_error(&kept->texts) < 0)
		return -ENOMEM;
	t->cells = kept->cells;
	t->cell_count = kept->cell_count;
	t->cell_cap = kept->cell_cap;
	t->texts = kept->texts;
	kept->cells = cells;
	kept->texts = texts;
	return 0;
}

int table_put_row(struct table *t, const union cell_value *values)
{
	const size_t rows = t->cell_count / t->column_count;
	int r;

	if ((!t->sorts && rows + t->streamed == t->max) || table_comes_behind(t, values)) {
		t->left_out++;
		return 0;
	}
	if (t->streams && (!t->release || *t->release || t->streamed || rows == t->hold_max)) {
		r = table_stream_kept(t);
		return r ?: table_stream_row(t, values);
	}
	table_keep_row(t, values);
	return t->sorts && rows >= MAX(2 * t->max, PRUNE_ROWS_LEAST) ? table_prune(t) : 0;
}

void table_note_left_out(struct table *t)
{
	const uint64_t shown = t->streamed + t->shown;
	const uint64_t all = t->streamed + t->rows + t->left_out;

	if (shown < all)
		table_note(t, "%" PRIu64 " of %" PRIu64 " rows are shown", shown, all);
}
