/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How columns add up, and columns that follow from others. */
#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "report/table_form.h"

const char *const column_kind_names[COLUMN_KINDS] = {
	"text", "number", "count", "bytes", "time", "at", "permille", "bar", "histogram",
};

const char *const column_adds_names[COLUMN_ADDS] = {
	"usual", "key",	  "sum",	"largest",   "smallest",   "histogram",
	"at",	 "share", "span-share", "remainder", "per-second", "no",
};

enum column_adds column_adds_of(const struct column *c)
{
	if (c->adds != ADDS_USUAL)
		return c->adds;
	switch (c->kind) {
	case COLUMN_TEXT:
	case COLUMN_NUMBER:
		return ADDS_KEY;
	case COLUMN_COUNT:
	case COLUMN_BYTES:
	case COLUMN_TIME:
		return ADDS_SUM;
	case COLUMN_HISTOGRAM:
		return ADDS_HISTOGRAM;
	default:
		return ADDS_NOT;
	}
}

const struct column *table_column(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->column_count; i++)
		if (name && !strcmp(t->columns[i].name, name))
			return &t->columns[i];
	return NULL;
}

struct row_key table_key(const struct table *t, size_t row, size_t columns)
{
	struct row_key key = { 0 };

	for (size_t i = 0; i < columns; i++) {
		const union cell *cell = table_made_cell(t, row, i);

		if (column_adds_of(&t->columns[i]) != ADDS_KEY)
			continue;
		key = row_key_join(key, t->columns[i].kind == COLUMN_TEXT
						? row_key_of_text(table_text(t, cell))
						: (struct row_key){ cell->count, 0 });
	}
	return key;
}

/* An unknown value counts as 0. */
static uint64_t table_value(const struct table *t, size_t row, const struct column *c)
{
	uint64_t value = table_made_cell(t, row, (size_t)(c - t->columns))->count;

	return value == TABLE_UNKNOWN ? 0 : value;
}

static void table_add_value(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static int table_derive_share(struct table *t, const struct column *c, const struct column *of)
{
	const size_t column = (size_t)(c - t->columns);
	struct rows sums;
	int r = 0;

	rows_init(&sums, sizeof(uint64_t), NULL);
	for (size_t i = 0; i < t->rows && r == 0; i++) {
		uint64_t *sum = rows_get(&sums, table_key(t, i, c->same));

		if (sum)
			table_add_value(sum, table_value(t, i, of));
		else
			r = -ENOMEM;
	}
	for (size_t i = 0; i < t->rows && r == 0; i++) {
		const uint64_t *sum = rows_get(&sums, table_key(t, i, c->same));

		table_made_cell(t, i, column)->count = report_permille(table_value(t, i, of), *sum);
	}
	rows_deinit(&sums);
	return r;
}

static uint64_t table_per_second(uint64_t count, uint64_t ns)
{
	double rate = ns ? (double)count * NSEC_PER_SEC / (double)ns + 0.5 : 0;

	return rate < (double)INT64_MAX ? (uint64_t)rate : INT64_MAX;
}

static uint64_t table_derived_value(const struct table *t, size_t row, const struct column *c,
				    const struct column *of, const struct column *over)
{
	uint64_t value = table_value(t, row, of), whole = over ? table_value(t, row, over) : 0;

	switch (c->adds) {
	case ADDS_SPAN_SHARE:
		return report_permille(value, t->span_ns);
	case ADDS_REMAINDER:
		return report_permille(whole - MIN(value, whole), whole);
	default:
		return table_per_second(value, t->span_ns);
	}
}

int table_derive(struct table *t)
{
	t->rows = t->cell_count / t->column_count;
	for (size_t i = 0; i < t->column_count; i++) {
		const struct column *c = &t->columns[i], *of = table_column(t, c->of);
		const struct column *over = table_column(t, c->over);
		int r = 0;

		if (!column_is_derived(c) || !of)
			continue;
		if (c->adds == ADDS_SHARE)
			r = table_derive_share(t, c, of);
		for (size_t row = 0; row < t->rows && c->adds != ADDS_SHARE; row++)
			table_made_cell(t, row, i)->count =
				table_derived_value(t, row, c, of, over);
		if (r < 0)
			return r;
	}
	return 0;
}
