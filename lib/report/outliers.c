/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/outliers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Makes the MAD of normal values their standard deviation. */
#define MAD_SCALE 1.4826
/* A histogram's quantile is that exact: smaller distances mean nothing. */
#define RESOLUTION 0.01

struct board_value {
	char *board; /* owned */
	uint64_t value;
};

/* One distribution of one report. */
struct measure {
	char *report, *column; /* owned */
	struct board_value *values;
	size_t count, cap;
};

struct outliers {
	struct measure *measures;
	size_t count, cap;
};

int outliers_new(struct outliers **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

struct outliers *outliers_free(struct outliers *o)
{
	if (!o)
		return NULL;
	for (size_t i = 0; i < o->count; i++) {
		struct measure *m = &o->measures[i];

		for (size_t v = 0; v < m->count; v++)
			free(m->values[v].board);
		free(m->values);
		free(m->report);
		free(m->column);
	}
	free(o->measures);
	free(o);
	return NULL;
}

static struct measure *outliers_measure(struct outliers *o, const char *report, const char *column)
{
	struct measure m = { 0 };

	for (size_t i = 0; i < o->count; i++)
		if (!strcmp(o->measures[i].report, report) &&
		    !strcmp(o->measures[i].column, column))
			return &o->measures[i];
	m.report = strdup(report);
	m.column = strdup(column);
	if (!m.report || !m.column || vec_push(o->measures, o->count, o->cap, m) < 0) {
		free(m.report);
		free(m.column);
		return NULL;
	}
	return &o->measures[o->count - 1];
}

int outliers_add(struct outliers *o, const char *report, const char *column, const char *board,
		 uint64_t value)
{
	struct measure *m = outliers_measure(o, report, column);
	struct board_value v = { m ? strdup(board) : NULL, value };

	if (!v.board || vec_push(m->values, m->count, m->cap, v) < 0) {
		free(v.board);
		return -ENOMEM;
	}
	return 0;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Sorts values. */
static uint64_t median(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_u64);
	return count % 2 ? values[count / 2]
			 : values[count / 2 - 1] + (values[count / 2] - values[count / 2 - 1]) / 2;
}

static void outliers_put(const struct measure *m, uint64_t middle, uint64_t mad, struct table *t)
{
	const double unit = MAX(MAD_SCALE * (double)mad, MAX(RESOLUTION * (double)middle, 1.0));

	for (size_t i = 0; i < m->count; i++) {
		const struct board_value *v = &m->values[i];
		const double deviations = (double)distance(v->value, middle) / unit;

		if (deviations <= OUTLIER_DEVIATIONS)
			continue;
		table_put_text(t, (struct text){ v->board, (uint32_t)strlen(v->board) });
		table_put_text(t, (struct text){ m->report, (uint32_t)strlen(m->report) });
		table_put_text(t, (struct text){ m->column, (uint32_t)strlen(m->column) });
		table_put_count(t, v->value);
		table_put_count(t, middle);
		table_put_count(t, mad);
		table_put_count(t, (uint64_t)deviations);
	}
}

static int outliers_judge(const struct measure *m, struct table *t)
{
	_cleanup_free_ uint64_t *values = calloc(m->count, sizeof(*values));
	uint64_t middle;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < m->count; i++)
		values[i] = m->values[i].value;
	middle = median(values, m->count);
	for (size_t i = 0; i < m->count; i++)
		values[i] = distance(m->values[i].value, middle);
	outliers_put(m, middle, median(values, m->count), t);
	return 0;
}

int outliers_table(struct outliers *o, struct table **ret)
{
	static const struct column columns[] = {
		COLUMN("board", COLUMN_TEXT, .is_wide = true),
		COLUMN("report", COLUMN_TEXT),
		COLUMN("value", COLUMN_TEXT),
		COLUMN("p99", COLUMN_TIME, .adds = ADDS_NOT),
		COLUMN("median", COLUMN_TIME, .adds = ADDS_NOT),
		COLUMN("mad", COLUMN_TIME, .adds = ADDS_NOT),
		COLUMN("deviations", COLUMN_COUNT, .adds = ADDS_NOT),
	};
	_cleanup_(table_freep) struct table *t = NULL;
	size_t few = 0;
	int r = table_new(&t, "outliers", columns, ARRAY_SIZE(columns), "deviations");

	for (size_t i = 0; i < o->count && r == 0; i++) {
		if (o->measures[i].count >= OUTLIER_BOARDS_MIN)
			r = outliers_judge(&o->measures[i], t);
		else
			few++;
	}
	if (r < 0)
		return r;
	if (few)
		table_note(t, "fewer than %d boards have %zu of %zu distributions",
			   OUTLIER_BOARDS_MIN, few, o->count);
	if (table_is_empty(t))
		table_note(t, "no board's p99 is more than %.1f deviations from the median of all",
			   OUTLIER_DEVIATIONS);
	*ret = TAKE_PTR(t);
	return 0;
}
