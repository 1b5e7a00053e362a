/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table for people: columns are aligned, each value has its unit. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/parse.h"
#include "base/visible.h"
#include "report/table_form.h"

#define GAP 2
/* A thread's name has 15 bytes at most; applications' slices have longer ones. */
#define TEXT_MAX 60
#define WIDE_TEXT_MAX 4096
/* Characters of a bar that stands for all. */
#define BAR_MAX 40U

static void cells_put_time(uint64_t ns, struct buf *out)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = { { NSEC_PER_SEC, "s" }, { NSEC_PER_MSEC, "ms" }, { NSEC_PER_USEC, "us" } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		double value = (double)ns / (double)units[i].ns;

		/* Four digits; 999.96 us would round to 1000.0. */
		if (value < 0.99995)
			continue;
		buf_printf(out, "%.*f %s",
			   value < 9.9995   ? 3
			   : value < 99.995 ? 2
					    : 1,
			   value, units[i].name);
		return;
	}
	buf_printf(out, "%" PRIu64 " ns", ns);
}

/* Every value but 0 has a bar. On a terminal it is made of full blocks. */
static void cells_put_bar(uint64_t permille, const struct report_options *o, struct buf *out)
{
	uint64_t len = (MIN(permille, UINT64_C(1000)) * BAR_MAX + 999) / 1000;

	for (uint64_t i = 0; i < len; i++)
		buf_puts(out, o->is_terminal ? "\u2588" : "#");
}

static void cells_put_at(uint64_t ts, struct buf *out)
{
	if (ts)
		buf_printf(out, "%" PRIu64 ".%06" PRIu64, ts / NSEC_PER_SEC,
			   ts % NSEC_PER_SEC / NSEC_PER_USEC);
	else
		buf_putc(out, '-');
}

static void cells_put_visible(struct text text, bool is_wide, struct buf *out)
{
	const size_t max = is_wide ? WIDE_TEXT_MAX : TEXT_MAX;
	char copy[WIDE_TEXT_MAX + 1];
	size_t len = MIN(text.len, max);

	memcpy(copy, text.data, len);
	copy[len] = '\0';
	buf_visible(out, len ? copy : "-", max);
}

static void cells_put_cell(const struct table *t, const struct report_options *o, size_t row,
			   size_t column, size_t part, struct buf *out)
{
	const union cell *cell = table_cell(t, row, column);

	switch (t->columns[column].kind) {
	case COLUMN_TEXT:
		cells_put_visible(table_text(t, cell), t->columns[column].is_wide, out);
		break;
	case COLUMN_NUMBER:
		buf_printf(out, "%" PRId64, cell->number);
		break;
	case COLUMN_COUNT:
		if (cell->count == TABLE_UNKNOWN)
			buf_putc(out, '-');
		else
			format_count(cell->count, out);
		break;
	case COLUMN_BYTES:
		format_bytes(cell->count, out);
		break;
	case COLUMN_TIME:
		if (cell->count == TABLE_UNKNOWN)
			buf_putc(out, '-');
		else
			cells_put_time(cell->count, out);
		break;
	case COLUMN_BAR:
		cells_put_bar(cell->count, o, out);
		break;
	case COLUMN_AT:
		cells_put_at(cell->count, out);
		break;
	case COLUMN_PERMILLE:
		buf_printf(out, "%" PRIu64 ".%" PRIu64 " %%", cell->count / 10, cell->count % 10);
		break;
	case COLUMN_HISTOGRAM:
		if (cell->histogram->count)
			cells_put_time(histogram_part_of(cell->histogram, part), out);
		else
			buf_putc(out, '-');
		break;
	}
}

static void cells_put_header(const struct table *t, size_t column, size_t part, struct buf *out)
{
	if (t->columns[column].kind != COLUMN_HISTOGRAM)
		buf_puts(out, t->columns[column].name);
	else
		buf_printf(out, "%s-%s", t->columns[column].name, histogram_part_names[part]);
}

/* The columns as they are shown: a histogram takes several. */
struct shown_column {
	size_t column, part;
	size_t width;
};
#define SHOWN_MAX (COLUMNS_MAX * HISTOGRAM_PARTS)

static size_t cells_list_columns(const struct table *t, struct shown_column shown[SHOWN_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < t->column_count; i++) {
		size_t parts = t->columns[i].kind == COLUMN_HISTOGRAM ? HISTOGRAM_PARTS : 1;

		for (size_t part = 0; part < parts; part++)
			shown[count++] = (struct shown_column){ i, part, 0 };
	}
	return count;
}

static size_t cells_width(struct buf *cell)
{
	size_t width = 0;

	/* Characters, not bytes: those of more columns than one are rare in names. */
	for (size_t i = 0; i < cell->len; i++)
		width += (cell->data[i] & 0xc0) != 0x80;
	return width;
}

static void cells_put_padded(struct buf *out, struct buf *cell, const struct shown_column *c,
			     bool left, bool last)
{
	size_t width = cells_width(cell), pad = c->width > width ? c->width - width : 0;

	for (size_t i = 0; !left && i < pad; i++)
		buf_putc(out, ' ');
	buf_append(out, cell->data, cell->len);
	for (size_t i = 0; left && !last && i < pad; i++)
		buf_putc(out, ' ');
	if (!last)
		buf_append(out, "  ", GAP);
	buf_clear(cell);
}

static bool cells_is_left(const struct table *t, size_t column)
{
	return t->columns[column].kind == COLUMN_TEXT || t->columns[column].kind == COLUMN_BAR;
}

void table_write_text(const struct table *t, const struct report_options *o, struct buf *out)
{
	struct shown_column shown[SHOWN_MAX];
	const size_t count = cells_list_columns(t, shown);
	_cleanup_buf_ struct buf cell = BUF_INIT;

	for (size_t i = 0; i < count; i++) {
		cells_put_header(t, shown[i].column, shown[i].part, &cell);
		shown[i].width = cells_width(&cell);
		buf_clear(&cell);
		for (size_t row = 0; row < t->shown; row++) {
			cells_put_cell(t, o, row, shown[i].column, shown[i].part, &cell);
			shown[i].width = MAX(shown[i].width, cells_width(&cell));
			buf_clear(&cell);
		}
	}
	buf_printf(out, "%s\n", t->name);
	for (size_t i = 0; i < count; i++) {
		bool left = cells_is_left(t, shown[i].column);

		cells_put_header(t, shown[i].column, shown[i].part, &cell);
		cells_put_padded(out, &cell, &shown[i], left, i + 1 == count);
	}
	buf_putc(out, '\n');
	for (size_t row = 0; row < t->shown; row++) {
		for (size_t i = 0; i < count; i++) {
			bool left = cells_is_left(t, shown[i].column);

			cells_put_cell(t, o, row, shown[i].column, shown[i].part, &cell);
			cells_put_padded(out, &cell, &shown[i], left, i + 1 == count);
		}
		buf_putc(out, '\n');
		table_settle(t);
	}
	for (size_t i = 0; i < t->total_count; i++) {
		buf_printf(out, "%s%s ", i ? ", " : "", t->totals[i].name);
		format_count(t->totals[i].value, out);
	}
	if (t->total_count)
		buf_putc(out, '\n');
	buf_append(out, t->notes.data, t->notes.len);
}

/* While values change, columns keep their places. */
static size_t fitted_width_least(const struct table *t, size_t column)
{
	static const size_t widths[] = {
		[COLUMN_TEXT] = 8,     [COLUMN_NUMBER] = 7, [COLUMN_COUNT] = 6, [COLUMN_BYTES] = 8,
		[COLUMN_PERMILLE] = 7, [COLUMN_TIME] = 8,   [COLUMN_BAR] = 10,
	};
	const enum column_kind kind = t->columns[column].kind;

	if (!column)
		return 15;
	return kind < ARRAY_SIZE(widths) ? widths[kind] : 0;
}

static bool fitted_is_sort(const struct table *t, const struct table_view *v, size_t column)
{
	return v->sort && !strcmp(v->sort, t->columns[column].name);
}

static void fitted_put_name(const struct table *t, const struct table_view *v, size_t column,
			    struct buf *out)
{
	buf_printf(out, "%s%s", fitted_is_sort(t, v, column) ? ">" : "", t->columns[column].name);
}

static size_t fitted_end(const struct table *t, const struct table_view *v)
{
	return v->first >= t->shown ? v->first : v->first + MIN(v->rows, t->shown - v->first);
}

static void fitted_measure(const struct table *t, const struct table_view *v,
			   struct shown_column *c)
{
	const struct report_options plain = { 0 };
	_cleanup_buf_ struct buf cell = BUF_INIT;

	fitted_put_name(t, v, c->column, &cell);
	c->width = MAX(fitted_width_least(t, c->column), cells_width(&cell));
	for (size_t row = v->first; row < fitted_end(t, v); row++) {
		buf_clear(&cell);
		cells_put_cell(t, &plain, row, c->column, c->part, &cell);
		c->width = MAX(c->width, cells_width(&cell));
	}
}

/* Averages and medians are the first to go. */
static bool fitted_is_detail(const char *name)
{
	const char *end = strrchr(name, '-');

	return end && (!strcmp(end, "-avg") || !strcmp(end, "-p50"));
}

/* Index of the column to leave out; 0: none. */
static size_t fitted_least_wanted(const struct table *t, const struct table_view *v,
				  const struct shown_column *shown, size_t count)
{
	size_t last = 0;

	for (size_t i = count; i-- > 1;) {
		if (fitted_is_sort(t, v, shown[i].column))
			continue;
		if (fitted_is_detail(t->columns[shown[i].column].name))
			return i;
		last = last ?: i;
	}
	return last;
}

static size_t fitted_choose(const struct table *t, const struct table_view *v,
			    struct shown_column shown[SHOWN_MAX])
{
	size_t count = cells_list_columns(t, shown), total = 0;

	for (size_t i = 0; i < count; i++) {
		fitted_measure(t, v, &shown[i]);
		total += shown[i].width + (i ? GAP : 0);
	}
	while (total > v->width) {
		size_t out = fitted_least_wanted(t, v, shown, count);

		if (!out)
			break;
		total -= shown[out].width + GAP;
		count--;
		memmove(&shown[out], &shown[out + 1], (count - out) * sizeof(*shown));
	}
	return count;
}

/* Characters beyond the width would go into the next line. */
static void fitted_put_line(struct buf *line, size_t width, struct buf *out)
{
	size_t len = 0, characters = 0;

	while (len < line->len) {
		characters += (line->data[len] & 0xc0) != 0x80;
		if (characters > width)
			break;
		len++;
	}
	buf_append(out, line->data, len);
	buf_putc(out, '\n');
	buf_clear(line);
}

void table_write_fitted(const struct table *t, const struct table_view *v, struct buf *out)
{
	const struct report_options plain = { 0 };
	struct shown_column shown[SHOWN_MAX];
	const size_t count = fitted_choose(t, v, shown);
	_cleanup_buf_ struct buf cell = BUF_INIT, line = BUF_INIT;

	for (size_t i = 0; i < count; i++) {
		fitted_put_name(t, v, shown[i].column, &cell);
		cells_put_padded(&line, &cell, &shown[i], cells_is_left(t, shown[i].column),
				 i + 1 == count);
	}
	fitted_put_line(&line, v->width, out);
	for (size_t row = v->first; row < fitted_end(t, v); row++) {
		for (size_t i = 0; i < count; i++) {
			cells_put_cell(t, &plain, row, shown[i].column, shown[i].part, &cell);
			cells_put_padded(&line, &cell, &shown[i], cells_is_left(t, shown[i].column),
					 i + 1 == count);
		}
		fitted_put_line(&line, v->width, out);
	}
	if (buf_error(&line) < 0 || buf_error(&cell) < 0)
		out->failed = true;
}
