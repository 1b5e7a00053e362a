/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of a report in a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/merge_file.h"

static int merge_read_buckets(struct merge_file *f, struct histogram *h, struct error *err)
{
	int r = merge_expect(f, JSON_ARRAY, "expected buckets", err);
	uint64_t bucket, count, next = 0;

	while (r == 0) {
		r = json_read_next(&f->json, err);
		if (r == JSON_ARRAY_END)
			return 0;
		if (r >= 0 && r != JSON_ARRAY)
			return merge_bad(f, "expected a bucket", err);
		if (r >= 0)
			r = merge_read_u64(f, &bucket, err);
		if (r == 0)
			r = merge_read_u64(f, &count, err);
		if (r == 0)
			r = merge_expect(f, JSON_ARRAY_END, "expected a bucket's end", err);
		if (r < 0)
			return r;
		if (bucket < next || bucket >= HISTOGRAM_BUCKETS || !count ||
		    count > HISTOGRAM_COUNT_MAX)
			return merge_bad(f, "no such bucket", err);
		next = bucket + 1;
		r = histogram_put_bucket(h, (uint32_t)bucket, count);
		if (r < 0)
			return error_errno(err, r, "can't read it");
	}
	return r;
}

static int merge_read_histogram(struct merge_file *f, struct histogram *h, struct error *err)
{
	int r = merge_expect(f, JSON_OBJECT, "expected a distribution", err);

	while (r >= 0 && (r = merge_next_key(f, err)) > 0) {
		if (merge_key_is(f, "count"))
			r = merge_read_u64(f, &h->count, err);
		else if (merge_key_is(f, "sum_ns"))
			r = merge_read_u64(f, &h->sum, err);
		else if (merge_key_is(f, "min_ns"))
			r = merge_read_u64(f, &h->min, err);
		else if (merge_key_is(f, "max_ns"))
			r = merge_read_u64(f, &h->max, err);
		else if (merge_key_is(f, "buckets"))
			r = merge_read_buckets(f, h, err);
		else
			r = merge_skip(f, err);
	}
	return r == 0 && !histogram_is_valid(h) ? merge_bad(f, "an invalid distribution", err) : r;
}

/* A distribution of its own, or merge_empty. */
static int merge_read_distribution(struct merge_file *f, union cell *cell, struct error *err)
{
	_cleanup_(histogram_deinit) struct histogram h = { 0 };
	int r = merge_read_histogram(f, &h, err);

	if (r < 0)
		return r;
	if (!h.count) {
		cell->histogram = &merge_empty;
		return 0;
	}
	cell->own = calloc(1, sizeof(*cell->own));
	if (!cell->own)
		return error_errno(err, -ENOMEM, "can't read it");
	*cell->own = h;
	h = (struct histogram){ 0 };
	return 0;
}

static int merge_read_value(struct merge_file *f, union cell *cell, struct error *err)
{
	int r = json_read_next(&f->json, err);

	if (r < 0)
		return r;
	if (r == JSON_NULL) {
		cell->count = TABLE_UNKNOWN;
		return 0;
	}
	return r == JSON_NUMBER ? merge_take_u64(f, &cell->count, err)
				: merge_bad(f, "expected a number or null", err);
}

static int merge_read_cell(struct merge_file *f, const struct column *c, union cell *cell,
			   struct buf *texts, struct error *err)
{
	const struct buf *text = &f->json.text;
	int r;

	if (column_is_derived(c))
		return merge_skip(f, err);
	switch (c->kind) {
	case COLUMN_TEXT:
		r = merge_expect(f, JSON_STRING, "expected a string", err);
		if (r == 0) {
			cell->at = (uint32_t)texts->len;
			cell->len = (uint32_t)text->len;
			buf_append(texts, text->data, text->len);
			r = buf_error(texts) < 0 ? error_errno(err, -ENOMEM, "can't read it") : 0;
		}
		return r;
	case COLUMN_NUMBER:
		return merge_read_i64(f, &cell->number, err);
	case COLUMN_HISTOGRAM:
		return merge_read_distribution(f, cell, err);
	default:
		return merge_read_value(f, cell, err);
	}
}

static void merge_row_deinit(const struct table *t, struct merge_row *row)
{
	for (size_t i = 0; i < t->column_count; i++) {
		if (t->columns[i].kind != COLUMN_HISTOGRAM || !row->cells[i].own ||
		    row->cells[i].histogram == &merge_empty)
			continue;
		histogram_deinit(row->cells[i].own);
		free(row->cells[i].own);
	}
	buf_deinit(&row->texts);
}

static int merge_read_members(struct merge_file *f, const struct merged_table *t,
			      struct merge_row *row, struct error *err)
{
	const struct table *table = t->table;
	size_t expected = 0, found = 0;
	int r;

	while ((r = merge_next_key(f, err)) > 0) {
		size_t i = expected;

		/* Mostly they come in the columns' order. */
		if (i >= table->column_count || !merge_key_is(f, t->members[i]))
			for (i = 0; i < table->column_count; i++)
				if (merge_key_is(f, t->members[i]))
					break;
		if (i == table->column_count) {
			r = merge_skip(f, err);
		} else if (row->has[i]) {
			r = merge_bad(f, "a row has a member twice", err);
		} else {
			r = merge_read_cell(f, &table->columns[i], &row->cells[i], &row->texts,
					    err);
			row->has[i] = true;
			found++;
		}
		if (r < 0)
			return r;
		expected = i + 1;
	}
	return r == 0 && found < table->column_count ? merge_bad(f, "a row lacks a column", err)
						     : r;
}

int merge_read_rows(struct merge_file *f, struct merged_table *t, struct error *err)
{
	int r = merge_expect(f, JSON_ARRAY, "expected rows", err);

	while (r == 0) {
		struct merge_row row = { 0 };

		r = json_read_next(&f->json, err);
		if (r == JSON_ARRAY_END)
			return 0;
		if (r >= 0 && r != JSON_OBJECT)
			return merge_bad(f, "expected a row", err);
		if (r >= 0)
			r = merge_read_members(f, t, &row, err);
		if (r == 0)
			r = merge_add_row(f->m, t, &row, err);
		merge_row_deinit(t->table, &row);
	}
	return r;
}
