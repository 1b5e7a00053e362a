/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "export/output.h"
#include "report/table_form.h"

const char *const histogram_part_names[HISTOGRAM_PARTS] = { "avg", "p50", "p99", "max" };

uint64_t histogram_part_of(const struct histogram *h, enum histogram_part part)
{
	switch (part) {
	case PART_AVERAGE:
		return histogram_average(h);
	case PART_MEDIAN:
		return histogram_quantile(h, 0.5);
	case PART_P99:
		return histogram_quantile(h, 0.99);
	default:
		return h->max;
	}
}

int table_new(struct table **ret, const char *name, const struct column *columns, size_t count,
	      const char *sort)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->name = name;
	t->sort = sort;
	memcpy(t->columns, columns, count * sizeof(*columns));
	t->column_count = count;
	*ret = t;
	return 0;
}

struct table *table_free(struct table *t)
{
	if (!t)
		return NULL;
	free(t->cells);
	free(t->order);
	buf_deinit(&t->texts);
	buf_deinit(&t->notes);
	buf_deinit(&t->cell);
	free(t);
	return NULL;
}

static void table_put(struct table *t, union cell cell)
{
	if (vec_push(t->cells, t->cell_count, t->cell_cap, cell) < 0)
		t->failed = true;
}

void table_put_text(struct table *t, struct text text)
{
	/* Offsets have 32 bits. */
	if (t->texts.len + text.len > UINT32_MAX) {
		t->failed = true;
		return;
	}
	table_put(t, (union cell){ .at = (uint32_t)t->texts.len, .len = text.len });
	buf_append(&t->texts, text.data, text.len);
}

void table_put_number(struct table *t, int64_t n)
{
	table_put(t, (union cell){ .number = n });
}

void table_put_count(struct table *t, uint64_t n)
{
	table_put(t, (union cell){ .count = n });
}

void table_put_histogram(struct table *t, const struct histogram *h)
{
	table_put(t, (union cell){ .histogram = h });
}

void table_describe(struct table *t, const char *by, uint64_t span_ns)
{
	t->by = by;
	t->span_ns = span_ns;
}

void table_define(struct table *t, const char *definition)
{
	t->definition = definition;
}

void table_spill(struct table *t, struct output *out)
{
	t->output = out;
}

bool table_is_empty(const struct table *t)
{
	return !t->cell_count && !t->streamed;
}

void table_total(struct table *t, const char *name, uint64_t value)
{
	size_t i = 0;

	while (i < t->total_count && strcmp(t->totals[i].name, name) != 0)
		i++;
	if (i == TABLE_TOTALS_MAX)
		return;
	t->totals[i] = (struct table_total){ name, value };
	t->total_count = MAX(t->total_count, i + 1);
}

void table_total_cut(struct table *t, const char *what, uint64_t cut, uint64_t open)
{
	table_total(t, "cut", cut);
	table_total(t, "open", open);
	t->has_noted_totals = true;
	if (cut || open)
		table_note(t, "%s: cut %" PRIu64 ", open %" PRIu64, what, cut, open);
}

void table_sort_by_keys(struct table *t)
{
	t->by_keys = true;
}

void table_counts_on(struct table *t)
{
	t->counts_on = true;
}

void table_note(struct table *t, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_puts(&t->notes, line);
	buf_putc(&t->notes, '\n');
}

/* The column that a table is sorted by. */
struct sort_key {
	const struct table *table;
	size_t column;
	enum histogram_part part;
};

/* "delay-max" is a part of the histogram "delay", and "delay" its maximum. */
static bool column_is_max_of(const struct column *c, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(c->name, name, len) && !strcmp(c->name + len, "-max");
}

static bool sort_key_find(struct sort_key *ret, const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->column_count; i++) {
		const struct column *c = &t->columns[i];
		size_t len = strlen(c->name);

		*ret = (struct sort_key){ t, i, PART_MAX };
		if (!strcmp(name, c->name))
			return true;
		/* Frames have the parts of a histogram as columns. */
		if (column_is_max_of(c, name))
			return true;
		if (c->kind != COLUMN_HISTOGRAM || strncmp(name, c->name, len) != 0 ||
		    name[len] != '-')
			continue;
		for (ret->part = 0; ret->part < HISTOGRAM_PARTS; ret->part++)
			if (!strcmp(name + len + 1, histogram_part_names[ret->part]))
				return true;
	}
	return false;
}

static int sort_key_unknown(const struct table *t, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf all = BUF_INIT;

	for (size_t i = 0; i < t->column_count; i++) {
		buf_printf(&all, "%s%s", i ? ", " : "", t->columns[i].name);
		if (t->columns[i].kind == COLUMN_HISTOGRAM)
			buf_printf(&all, "-avg, %s-p50, %s-p99, %s-max", t->columns[i].name,
				   t->columns[i].name, t->columns[i].name);
	}
	error_set(err, -EINVAL, "the table %s has no column '%s'", t->name, name);
	return error_hint(err, "its columns are %s", buf_string(&all) ?: "?");
}

static uint64_t sort_key_value(const struct sort_key *k, uint32_t row)
{
	const union cell *cell = &k->table->cells[row * k->table->column_count + k->column];

	if (k->table->columns[k->column].kind == COLUMN_HISTOGRAM)
		return histogram_part_of(cell->histogram, k->part);
	return cell->count == TABLE_UNKNOWN ? 0 : cell->count;
}

static int table_compare_texts(const struct table *t, const union cell *a, const union cell *b)
{
	struct text x = table_text(t, a), y = table_text(t, b);
	int r = memcmp(x.data, y.data, MIN(x.len, y.len));

	return r ?: (x.len > y.len) - (x.len < y.len);
}

/* By all keys; they ascend. */
static int table_compare_keys(const void *left, const void *right, void *userdata)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct table *t = userdata;
	int r = 0;

	for (size_t i = 0; i < t->column_count && !r; i++) {
		const union cell *x = table_made_cell(t, a, i), *y = table_made_cell(t, b, i);

		if (column_adds_of(&t->columns[i]) != ADDS_KEY)
			continue;
		if (t->columns[i].kind == COLUMN_TEXT)
			r = table_compare_texts(t, x, y);
		else if (t->columns[i].kind == COLUMN_NUMBER)
			r = (x->number > y->number) - (x->number < y->number);
		else
			r = (x->count > y->count) - (x->count < y->count);
	}
	return r ?: (a > b) - (a < b);
}

/* Texts and ids ascend, values descend. Equal rows keep the order in which they were put. */
static int table_compare(const void *left, const void *right, void *userdata)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct sort_key *k = userdata;
	const struct table *t = k->table;
	const union cell *x = table_made_cell(t, a, k->column);
	const union cell *y = table_made_cell(t, b, k->column);
	uint64_t v, w;
	int r;

	switch (t->columns[k->column].kind) {
	case COLUMN_TEXT:
		r = table_compare_texts(t, x, y);
		break;
	case COLUMN_NUMBER:
		r = (x->number > y->number) - (x->number < y->number);
		break;
	default:
		v = sort_key_value(k, a);
		w = sort_key_value(k, b);
		r = (v < w) - (v > w);
	}
	return r ?: (a > b) - (a < b);
}

static bool column_is_time(const struct column *c)
{
	return c->kind == COLUMN_TIME || c->kind == COLUMN_HISTOGRAM;
}

/* Whether a text of the row contains the one searched for, in either case. */
static bool table_row_matches(const struct table *t, uint32_t row, const char *match)
{
	for (size_t i = 0; i < t->column_count; i++) {
		char text[256];
		struct text cell;
		size_t len;

		if (t->columns[i].kind != COLUMN_TEXT)
			continue;
		cell = table_text(t, table_made_cell(t, row, i));
		len = MIN((size_t)cell.len, sizeof(text) - 1);
		memcpy(text, cell.data, len);
		text[len] = '\0';
		if (strcasestr(text, match))
			return true;
	}
	return false;
}

static bool table_row_passes(const struct table *t, const struct report_options *o,
			     const struct sort_key *key, uint32_t row)
{
	if (o->match && *o->match && !table_row_matches(t, row, o->match))
		return false;
	return !key->table || !o->min_ns || !column_is_time(&t->columns[key->column]) ||
	       sort_key_value(key, row) >= o->min_ns;
}

int table_arrange(struct table *t, const struct report_options *o, struct error *err)
{
	const char *name = o->sort ?: t->sort;
	struct sort_key key = { 0 };
	size_t kept = 0;

	if (name && !sort_key_find(&key, t, name))
		return sort_key_unknown(t, name, err);
	t->rows = t->cell_count / t->column_count;
	free(t->order);
	t->order = calloc(t->rows ?: 1, sizeof(*t->order));
	if (!t->order)
		return error_errno(err, -ENOMEM, "can't sort the table %s", t->name);
	for (uint32_t i = 0; i < t->rows; i++)
		if (table_row_passes(t, o, &key, i))
			t->order[kept++] = i;
	if (name)
		qsort_r(t->order, kept, sizeof(*t->order), table_compare, &key);
	else if (t->by_keys)
		qsort_r(t->order, kept, sizeof(*t->order), table_compare_keys, t);
	t->shown = o->top && o->top < kept ? (size_t)o->top : kept;
	if (t->max)
		t->shown = MIN(t->shown, t->max);
	return 0;
}

bool table_has_column(const struct table *t, const char *name)
{
	struct sort_key key;

	return sort_key_find(&key, t, name);
}

static const struct table_form *table_form_of(enum report_form form)
{
	return form == REPORT_JSON  ? &table_form_json
	       : form == REPORT_CSV ? &table_form_csv
				    : &table_form_text;
}

void table_begin(struct table *t, bool first, struct buf *out)
{
	const enum report_form form = t->options->form;

	if (!first)
		buf_puts(out, form == REPORT_JSON ? "," : "\n");
	table_form_of(form)->begin(t, out);
}

int table_write_row(struct table *t, const union cell_value *values, bool first, struct buf *out)
{
	table_form_of(t->options->form)->put_row(t, values, first, out);
	return t->output ? output_settle(t->output) : 0;
}

static void table_write_rows(struct table *t, struct buf *out)
{
	union cell_value values[COLUMNS_MAX];

	for (size_t row = 0; row < t->shown; row++) {
		for (size_t i = 0; i < t->column_count; i++)
			values[i] = table_value_at(t, row, i);
		/* A failure is the output's. */
		table_write_row(t, values, !row, out);
	}
}

/*
 * --min is about the column that sorts. A table of any number of rows that none sorts applies it
 * itself, and the page without a name has tables of all kinds.
 */
static int table_check_min(const struct table *t, const struct report_options *o, struct error *err)
{
	const char *name = o->sort ?: t->sort;
	_cleanup_buf_ struct buf times = BUF_INIT;
	struct sort_key key;

	if (!o->min_ns || !o->count || (!name && t->max))
		return 0;
	if (name && (!sort_key_find(&key, t, name) || column_is_time(&t->columns[key.column])))
		return 0;
	for (size_t i = 0; i < t->column_count; i++)
		if (column_is_time(&t->columns[i]))
			buf_printf(&times, "%s%s", times.len ? ", " : "", t->columns[i].name);
	if (name)
		error_set(err, -EINVAL, "--min: %s, which sorts the table %s, is no time", name,
			  t->name);
	else
		error_set(err, -EINVAL, "--min: no column sorts the table %s", t->name);
	if (times.len)
		return error_hint(err, "--sort by a time: %s", buf_string(&times) ?: "?");
	return error_hint(err, "it has no column of times");
}

/* Derives columns, and arranges the rows. */
static int table_prepare(struct table *t, const struct report_options *o, struct error *err)
{
	int r;

	/* A cell may be missing: those behind it would be taken for others. */
	if (t->failed || buf_error(&t->texts) < 0 || buf_error(&t->notes) < 0 ||
	    table_derive(t) < 0)
		return error_errno(err, -ENOMEM, "can't write the table %s", t->name);
	r = table_check_min(t, o, err);
	if (r == 0)
		r = table_arrange(t, o, err);
	if (r == 0)
		table_note_left_out(t);
	return r;
}

int table_write(struct table *t, const struct report_options *o, bool first, struct buf *out,
		struct error *err)
{
	int r = table_prepare(t, o, err);

	if (r < 0)
		return r;
	t->options = o;
	if (o->form == REPORT_FRAME) {
		table_write_frame(t, out);
	} else {
		if (!t->streamed)
			table_begin(t, first, out);
		table_write_rows(t, out);
		table_form_of(o->form)->end(t, out);
	}
	t->options = NULL;
	if (buf_error(&t->notes) < 0 || buf_error(out) < 0)
		return error_errno(err, -ENOMEM, "can't write the table %s", t->name);
	return 0;
}
