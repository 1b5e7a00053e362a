/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top_decay.h"

#include <string.h>

#include "report/kind.h"
#include "report/table_form.h"

/* Rows with the same keys. */
struct decay_row {
	const struct table *in; /* the newest table that has it, and its row there; NULL: new */
	size_t row;
	bool known[COLUMNS_MAX];
	double sum[COLUMNS_MAX]; /* weighted */
	uint64_t one[COLUMNS_MAX];
};

enum decay_way { DECAY_KEY, DECAY_MEAN, DECAY_LARGEST, DECAY_NEWEST };

static bool decay_is_part(const char *name, enum histogram_part part)
{
	const char *end = strrchr(name, '-');

	return end && !strcmp(end + 1, histogram_part_names[part]);
}

/* In a frame, the parts of a histogram are columns of times. */
static enum decay_way decay_way_of(const struct column *c)
{
	if (c->kind == COLUMN_TEXT || c->kind == COLUMN_NUMBER)
		return DECAY_KEY;
	if (c->kind != COLUMN_TIME)
		return DECAY_MEAN;
	if (decay_is_part(c->name, PART_MAX) || decay_is_part(c->name, PART_P99))
		return DECAY_LARGEST;
	if (decay_is_part(c->name, PART_AVERAGE) || decay_is_part(c->name, PART_MEDIAN))
		return DECAY_NEWEST;
	return DECAY_MEAN;
}

/* Halves; in between a straight line is near enough. */
static double decay_weight(uint64_t ago_ns)
{
	double weight = 1;

	for (; ago_ns >= TOP_DECAY_HALF_NS && weight > 1e-9; ago_ns -= TOP_DECAY_HALF_NS)
		weight /= 2;
	return weight * (1 - (double)MIN(ago_ns, TOP_DECAY_HALF_NS) / 2 / TOP_DECAY_HALF_NS);
}

void top_decay_deinit(struct top_decay *d)
{
	for (size_t i = 0; i < d->count; i++)
		frame_tables_deinit(&d->windows[i]);
	d->count = 0;
}

void top_decay_add(struct top_decay *d, struct frame_tables *window)
{
	if (d->count == TOP_DECAY_WINDOWS)
		frame_tables_deinit(&d->windows[--d->count]);
	memmove(d->windows + 1, d->windows, d->count * sizeof(*d->windows));
	d->windows[0] = *window;
	d->count++;
	*window = (struct frame_tables){ 0 };
}

static void decay_take_cells(struct decay_row *r, const struct table *t, size_t row, double weight)
{
	for (size_t i = 0; i < t->column_count; i++) {
		const enum decay_way way = decay_way_of(&t->columns[i]);
		const uint64_t value = t->cells[row * t->column_count + i].count;

		if (way == DECAY_KEY || value == TABLE_UNKNOWN)
			continue;
		if (way == DECAY_LARGEST)
			r->one[i] = MAX(r->one[i], value);
		else if (way == DECAY_NEWEST && !r->known[i])
			r->one[i] = value;
		r->sum[i] += weight * (double)value;
		r->known[i] = true;
	}
}

static int decay_take_table(struct rows *rows, const struct table *t, double weight)
{
	const size_t count = t->cell_count / t->column_count;

	for (size_t row = 0; row < count; row++) {
		struct decay_row *r = rows_get(rows, table_key(t, row, t->column_count));

		if (!r)
			return -ENOMEM;
		if (!r->in) {
			r->in = t;
			r->row = row;
		}
		decay_take_cells(r, t, row, weight);
	}
	return 0;
}

static uint64_t decay_round(double mean)
{
	return mean < 0x1p64 ? (uint64_t)mean : TABLE_UNKNOWN;
}

static void decay_put_row(struct table *to, const struct decay_row *r, double weight)
{
	const struct table *t = r->in;

	for (size_t i = 0; i < t->column_count; i++) {
		const union cell *cell = &t->cells[r->row * t->column_count + i];
		const enum decay_way way = decay_way_of(&t->columns[i]);

		if (t->columns[i].kind == COLUMN_TEXT)
			table_put_text(to, table_text(t, cell));
		else if (way == DECAY_KEY)
			table_put_number(to, cell->number);
		else if (!r->known[i])
			table_put_count(to, TABLE_UNKNOWN);
		else if (way == DECAY_MEAN)
			table_put_count(to, decay_round(r->sum[i] / weight + 0.5));
		else
			table_put_count(to, r->one[i]);
	}
}

static bool decay_has_columns_of(const struct table *t, const struct table *like)
{
	if (t->column_count != like->column_count)
		return false;
	for (size_t i = 0; i < t->column_count; i++)
		if (t->columns[i].kind != like->columns[i].kind ||
		    strcmp(t->columns[i].name, like->columns[i].name) != 0)
			return false;
	return true;
}

/*
 * The table of an older window with the same columns; or NULL. A hostile decoder may send others
 * under the same name: a text's place would then be any number.
 */
static const struct table *decay_find(const struct frame_tables *window, const struct table *like)
{
	for (size_t i = 0; i < window->count; i++)
		if (!strcmp(window->tables[i]->name, like->name) &&
		    decay_has_columns_of(window->tables[i], like))
			return window->tables[i];
	return NULL;
}

static int decay_make_table(const struct top_decay *d, const struct table *like, struct table **ret)
{
	/* A mean of counts so far is a count that never was. */
	const size_t windows = like->counts_on ? 1 : d->count;
	struct rows rows;
	double all = 0;
	int r;

	rows_init(&rows, sizeof(struct decay_row), NULL);
	r = table_new(ret, like->name, like->columns, like->column_count, like->sort);
	for (size_t i = 0; i < windows && r == 0; i++) {
		const struct table *t = i ? decay_find(&d->windows[i], like) : like;
		const uint64_t ago =
			report_elapsed(d->windows[i].window.ts, d->windows[0].window.ts);
		const double weight = decay_weight(ago);

		all += weight;
		r = t ? decay_take_table(&rows, t, weight) : 0;
	}
	for (uint32_t i = 0; i < rows.count && r == 0; i++)
		decay_put_row(*ret, rows_at(&rows, i), all);
	rows_deinit(&rows);
	if (r == 0)
		buf_append(&(*ret)->notes, like->notes.data, like->notes.len);
	return r;
}

int top_decay_make(const struct top_decay *d, struct frame_tables *ret)
{
	const struct frame_tables *newest = &d->windows[0];
	int r = 0;

	frame_tables_deinit(ret);
	ret->window = newest->window;
	while (r == 0 && ret->count < newest->count) {
		r = decay_make_table(d, newest->tables[ret->count], &ret->tables[ret->count]);
		ret->count += ret->tables[ret->count] != NULL;
	}
	return r;
}
