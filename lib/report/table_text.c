/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table for people: columns are aligned, each value has its unit. */
#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "base/visible.h"
#include "report/cell_text.h"
#include "report/table_form.h"

#define GAP 2
/* A thread's name has 15 bytes at most; applications' slices have longer ones. */
#define TEXT_MAX 60
#define WIDE_TEXT_MAX 4096
/* Characters of a bar that stands for all. */
#define BAR_MAX 40U

/* Every value but 0 has a bar. On a terminal it is made of full blocks. */
static void cells_put_bar(uint64_t permille, const struct report_options *o, struct buf *out)
{
	uint64_t len = (MIN(permille, UINT64_C(1000)) * BAR_MAX + 999) / 1000;

	for (uint64_t i = 0; i < len; i++)
		buf_puts(out, o->is_terminal ? "\u2588" : "#");
}

/* Values of the usual kinds, written in place. NULL: cells_put_rare() has to. */
static inline char *cells_write(const struct column *c, const union cell_value *v, size_t width,
				char *p)
{
	switch (c->kind) {
	case COLUMN_TEXT:
		return cell_write_short(p, v->text, width);
	case COLUMN_NUMBER:
		return cell_write_number(p, v->number, width);
	case COLUMN_AT:
		return cell_write_at(p, v->count, width);
	case COLUMN_TIME:
		return v->count == TABLE_UNKNOWN ? cell_write_none(p, width)
						 : cell_write_time(p, v->count, width);
	default:
		return NULL;
	}
}

static void cells_put_time(uint64_t ns, struct buf *out)
{
	char *p = buf_reserve(out, CELL_ROOM);

	if (p)
		out->len = (size_t)(cell_write_time(p, ns, 0) - out->data);
}

static void cells_put_histogram(const struct histogram *h, enum histogram_part part,
				struct buf *out)
{
	if (h->count)
		cells_put_time(histogram_part_of(h, part), out);
	else
		buf_putc(out, '-');
}

static void cells_put_unaligned(const struct table *t, const struct shown_column *s,
				const union cell_value *v, struct buf *out)
{
	switch (t->columns[s->column].kind) {
	case COLUMN_HISTOGRAM:
		cells_put_histogram(v->histogram, s->part, out);
		break;
	case COLUMN_BYTES:
		format_bytes(v->count, out);
		break;
	case COLUMN_BAR:
		cells_put_bar(v->count, t->options, out);
		break;
	case COLUMN_PERMILLE:
		buf_printf(out, "%" PRIu64 ".%" PRIu64 " %%", v->count / 10, v->count % 10);
		break;
	default:
		if (v->count == TABLE_UNKNOWN)
			buf_putc(out, '-');
		else
			format_count(v->count, out);
	}
}

static bool cells_is_left(const struct table *t, size_t column)
{
	return t->columns[column].kind == COLUMN_TEXT || t->columns[column].kind == COLUMN_BAR;
}

/* Before the spaces, or after them. */
static size_t cells_put_aligned(bool left, const struct buf *cell, size_t width, struct buf *out)
{
	const struct text text = { cell->data, (uint32_t)cell->len };

	return left ? cell_put_left(out, text, width) : cell_put_right(out, text, width);
}

/* Values that need a buffer. Returns their characters. */
static size_t cells_put_rare(struct table *t, const struct shown_column *s,
			     const union cell_value *v, size_t width, struct buf *out)
{
	const struct column *c = &t->columns[s->column];

	if (c->kind == COLUMN_TEXT)
		return cell_put_visible(out, v->text, c->is_wide ? WIDE_TEXT_MAX : TEXT_MAX, width);
	buf_clear(&t->cell);
	cells_put_unaligned(t, s, v, &t->cell);
	out->failed |= t->cell.failed;
	return cells_put_aligned(cells_is_left(t, s->column), &t->cell, width, out);
}

/* Returns the characters of the value, or, if that is more, of the width. */
static size_t cells_put(struct table *t, const struct shown_column *s, const union cell_value *v,
			size_t width, struct buf *out)
{
	char *p = buf_reserve(out, width + CELL_ROOM);
	char *end = p ? cells_write(&t->columns[s->column], v, width, p) : NULL;

	if (!end)
		return cells_put_rare(t, s, v, width, out);
	out->len = (size_t)(end - out->data);
	return (size_t)(end - p);
}

static void cells_put_header(const struct table *t, size_t column, size_t part, struct buf *out)
{
	if (t->columns[column].kind != COLUMN_HISTOGRAM)
		buf_puts(out, t->columns[column].name);
	else
		buf_printf(out, "%s-%s", t->columns[column].name, histogram_part_names[part]);
}

static size_t cells_list_columns(const struct table *t, struct shown_column shown[SHOWN_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < t->column_count; i++) {
		size_t parts = t->columns[i].kind == COLUMN_HISTOGRAM ? HISTOGRAM_PARTS : 1;

		for (size_t part = 0; part < parts; part++)
			shown[count++] = (struct shown_column){ .column = i, .part = part };
	}
	return count;
}

static void aligned_widen(struct table *t, struct shown_column *s, size_t width)
{
	const bool last = s == &t->shown_columns[t->shown_count - 1];

	t->row_room += width - s->width;
	s->width = width;
	/* No spaces come behind the last column. */
	s->fill = last && cells_is_left(t, s->column) ? 0 : width;
}

static size_t aligned_put_header(struct table *t, size_t i, size_t width, struct buf *out)
{
	const struct shown_column *s = &t->shown_columns[i];

	buf_clear(&t->cell);
	cells_put_header(t, s->column, s->part, &t->cell);
	return cells_put_aligned(cells_is_left(t, s->column), &t->cell, width, out);
}

/* The widest value, of rows that are known already. */
static size_t aligned_measure(struct table *t, const struct shown_column *s)
{
	_cleanup_buf_ struct buf scratch = BUF_INIT;
	union cell_value v;
	size_t width = 0;

	for (size_t row = 0; row < t->shown; row++) {
		buf_clear(&scratch);
		v = table_value_at(t, row, s->column);
		width = MAX(width, cells_put(t, s, &v, 0, &scratch));
	}
	return width;
}

static void aligned_begin(struct table *t, struct buf *out)
{
	_cleanup_buf_ struct buf scratch = BUF_INIT;

	t->shown_count = cells_list_columns(t, t->shown_columns);
	t->row_room = 0;
	buf_printf(out, "%s\n", t->name);
	for (size_t i = 0; i < t->shown_count; i++) {
		struct shown_column *s = &t->shown_columns[i];
		size_t width = t->streams ? t->columns[s->column].width : aligned_measure(t, s);

		t->row_room += CELL_ROOM + GAP;
		aligned_widen(t, s, MAX(width, aligned_put_header(t, i, 0, &scratch)));
		if (i)
			buf_append(out, "  ", GAP);
		aligned_put_header(t, i, s->fill, out);
	}
	buf_putc(out, '\n');
}

static void aligned_put_row(struct table *t, const union cell_value *values, bool first _unused_,
			    struct buf *out)
{
	char *p = buf_reserve(out, t->row_room);

	for (size_t i = 0; i < t->shown_count && likely(p); i++) {
		struct shown_column *s = &t->shown_columns[i];
		const union cell_value *v = &values[s->column];
		char *end = cells_write(&t->columns[s->column], v, s->fill, p);
		size_t width;

		if (likely(end)) {
			width = (size_t)(end - p);
		} else {
			out->len = (size_t)(p - out->data);
			width = cells_put_rare(t, s, v, s->fill, out);
			end = buf_reserve(out, t->row_room);
			if (!end)
				return;
		}
		if (unlikely(width > s->width))
			aligned_widen(t, s, width);
		memcpy(end, "  ", GAP);
		p = end + GAP;
	}
	if (!p)
		return;
	out->len = (size_t)(p - out->data) - GAP;
	buf_putc(out, '\n');
}

static void aligned_end(const struct table *t, struct buf *out)
{
	const size_t totals = t->has_noted_totals ? 0 : t->total_count;

	for (size_t i = 0; i < totals; i++) {
		buf_printf(out, "%s%s ", i ? ", " : "", t->totals[i].name);
		format_count(t->totals[i].value, out);
	}
	if (totals)
		buf_putc(out, '\n');
	buf_append(out, t->notes.data, t->notes.len);
}

void tables_end_text(const struct tables_head *head, struct buf *out)
{
	if (!head->part)
		return;
	buf_puts(out, "a part of the recording: ");
	buf_visible(out, head->part, VISIBLE_MAX);
	buf_putc(out, '\n');
}

const struct table_form table_form_text = { aligned_begin, aligned_put_row, aligned_end };

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

static void fitted_measure(struct table *t, const struct table_view *v, struct shown_column *c)
{
	_cleanup_buf_ struct buf cell = BUF_INIT;

	fitted_put_name(t, v, c->column, &cell);
	c->width = MAX(fitted_width_least(t, c->column), cell_width(cell.data, cell.len));
	for (size_t row = v->first; row < fitted_end(t, v); row++) {
		union cell_value value = table_value_at(t, row, c->column);

		buf_clear(&cell);
		c->width = MAX(c->width, cells_put(t, c, &value, 0, &cell));
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

static size_t fitted_choose(struct table *t, const struct table_view *v,
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

static void fitted_put_cell(struct table *t, const struct shown_column *s, size_t row, bool last,
			    struct buf *line)
{
	const union cell_value v = table_value_at(t, row, s->column);

	cells_put(t, s, &v, last && cells_is_left(t, s->column) ? 0 : s->width, line);
	if (!last)
		buf_append(line, "  ", GAP);
}

void table_write_fitted(struct table *t, const struct table_view *v, struct buf *out)
{
	const struct report_options plain = { 0 };
	struct shown_column shown[SHOWN_MAX];
	_cleanup_buf_ struct buf cell = BUF_INIT, line = BUF_INIT;
	size_t count;

	t->options = &plain;
	count = fitted_choose(t, v, shown);
	for (size_t i = 0; i < count; i++) {
		buf_clear(&cell);
		fitted_put_name(t, v, shown[i].column, &cell);
		cells_put_aligned(cells_is_left(t, shown[i].column), &cell, shown[i].width, &line);
		buf_append(&line, "  ", i + 1 < count ? GAP : 0);
	}
	fitted_put_line(&line, v->width, out);
	for (size_t row = v->first; row < fitted_end(t, v); row++) {
		for (size_t i = 0; i < count; i++)
			fitted_put_cell(t, &shown[i], row, i + 1 == count, &line);
		fitted_put_line(&line, v->width, out);
	}
	t->options = NULL;
	if (buf_error(&line) < 0 || buf_error(&cell) < 0)
		out->failed = true;
}
