/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/parse.h"
#include "base/plural.h"
#include "report/table_form.h"

#define HELP "q quit  TAB table  <> sort  d decay  f freeze  / filter  s snapshot"

void top_view_init(struct top_view *v, struct frame_tables *shown)
{
	*v = (struct top_view){ .shown = shown };
	top_view_resize(v, 24, 80);
}

void top_view_resize(struct top_view *v, size_t rows, size_t width)
{
	v->rows = rows;
	v->width = width;
	v->first = 0;
}

static struct table *top_view_table(const struct top_view *v)
{
	return v->table < v->shown->count ? v->shown->tables[v->table] : NULL;
}

/* Rows of the table that have a place. */
static size_t top_view_room(const struct top_view *v)
{
	const size_t around = TOP_LINES_ABOVE + 2;

	return v->rows > around ? v->rows - around : 0;
}

static const char *top_view_sort(const struct top_view *v, const struct table *t)
{
	const char *chosen = v->sort[v->table];

	return *chosen && table_has_column(t, chosen) ? chosen : t->sort;
}

void top_view_sort_by(struct top_view *v, const char *column)
{
	for (size_t i = 0; i < TOP_TABLES_MAX; i++)
		snprintf(v->sort[i], sizeof(v->sort[i]), "%s", column);
}

/* The neighbour of the column that is sorted by. */
static void top_view_move_sort(struct top_view *v, bool right)
{
	const struct table *t = top_view_table(v);
	const char *sort = t ? top_view_sort(v, t) : NULL;
	size_t at = 0;

	if (!t)
		return;
	while (sort && at + 1 < t->column_count && strcmp(t->columns[at].name, sort) != 0)
		at++;
	at = (at + (right ? 1 : t->column_count - 1)) % t->column_count;
	snprintf(v->sort[v->table], sizeof(v->sort[v->table]), "%s", t->columns[at].name);
	v->first = 0;
}

static void top_view_move_table(struct top_view *v, size_t table)
{
	if (table < v->shown->count)
		v->table = table;
	v->first = 0;
}

/* Letters of a filter that is being typed. Enter ends it; escape takes it back. */
static enum top_action top_view_type(struct top_view *v, int key)
{
	size_t len = strlen(v->match);

	if (key == '\r' || key == '\n' || key == '\033') {
		v->types_match = false;
		if (key == '\033')
			v->match[0] = '\0';
	} else if (key == TOP_KEY_BACKSPACE || key == 0x7f || key == '\b') {
		if (len)
			v->match[len - 1] = '\0';
	} else if (key >= ' ' && key <= '~' && len + 1 < sizeof(v->match)) {
		v->match[len] = (char)key;
		v->match[len + 1] = '\0';
	}
	v->first = 0;
	return TOP_REDRAW;
}

static void top_view_scroll(struct top_view *v, bool down, size_t rows)
{
	const struct table *t = top_view_table(v);
	size_t room = top_view_room(v), last = t && t->shown > room ? t->shown - room : 0;

	v->first = down ? MIN(v->first + rows, last) : v->first - MIN(rows, v->first);
}

static void top_view_switch(struct top_view *v)
{
	struct frame_tables *shown = v->shown;

	if (!v->other)
		return;
	v->shown = v->other;
	v->other = shown;
	v->is_plain = !v->is_plain;
	v->first = 0;
}

enum top_action top_view_key(struct top_view *v, int key)
{
	v->message[0] = '\0';
	if (v->types_match)
		return top_view_type(v, key);
	switch (key) {
	case 'q':
		return TOP_QUIT;
	case 's':
		return TOP_SNAPSHOT;
	case 'f':
	case ' ':
		v->frozen = !v->frozen;
		break;
	case 'd':
		top_view_switch(v);
		break;
	case '/':
		v->types_match = true;
		v->match[0] = '\0';
		break;
	case '\033':
		v->match[0] = '\0';
		break;
	case '\t':
		top_view_move_table(v, v->shown->count ? (v->table + 1) % v->shown->count : 0);
		break;
	case '<':
	case TOP_KEY_LEFT:
		top_view_move_sort(v, false);
		break;
	case '>':
	case TOP_KEY_RIGHT:
		top_view_move_sort(v, true);
		break;
	case TOP_KEY_UP:
	case TOP_KEY_DOWN:
		top_view_scroll(v, key == TOP_KEY_DOWN, 1);
		break;
	case TOP_KEY_PAGE_UP:
	case TOP_KEY_PAGE_DOWN:
		top_view_scroll(v, key == TOP_KEY_PAGE_DOWN, MAX(top_view_room(v), (size_t)1));
		break;
	default:
		if (key < '1' || key > '9')
			return TOP_NOTHING;
		top_view_move_table(v, (size_t)(key - '1'));
	}
	return TOP_REDRAW;
}

void top_put_rates(const struct frame_window *w, struct buf *out)
{
	/* The span reaches from event to event: one alone has no rate. */
	format_count(w->span_ns ? (uint64_t)((double)w->events * NSEC_PER_SEC / (double)w->span_ns)
				: w->events,
		     out);
	buf_puts(out, w->span_ns ? " events/s, " : plural(w->events, " event, ", " events, "));
	if (!w->gaps && !w->lost)
		buf_puts(out, "none");
	else
		format_count(w->lost, out);
	/* The kernel does not count the events of each gap. */
	buf_printf(out, " lost%s", w->gaps && !w->lost ? " (count unknown)" : "");
	if (!w->span_ns)
		return;
	buf_puts(out, ", in ");
	format_duration(w->span_ns, out);
}

static void top_put_permille(const char *what, uint64_t permille, struct buf *out)
{
	buf_printf(out, "%s %" PRIu64 ".%" PRIu64 " %%", what, permille / 10, permille % 10);
}

void top_put_cost(const struct top_cost *cost, struct buf *out)
{
	if (!cost->is_known) {
		buf_puts(out, "not known yet");
		return;
	}
	top_put_permille("recorder", cost->recorder, out);
	top_put_permille(", decoder", cost->decoder, out);
	top_put_permille(", terminal", cost->terminal, out);
	buf_puts(out, " of a CPU");
}

/* Ends a line, without what is beyond the width. */
static void top_view_end_line(const struct top_view *v, size_t begin, struct buf *out)
{
	if (out->len - begin > v->width)
		out->len = begin + v->width;
	buf_putc(out, '\n');
}

static void top_view_put_tabs(const struct top_view *v, struct buf *out)
{
	for (size_t i = 0; i < v->shown->count; i++)
		buf_printf(out, "%s%s%zu %s%s", i ? " " : "", i == v->table ? "[" : " ", i + 1,
			   v->shown->tables[i]->name, i == v->table ? "]" : " ");
	if (v->other)
		buf_puts(out, v->is_plain ? "  last second" : "  decayed");
	if (v->types_match)
		buf_printf(out, "  filter: %s_", v->match);
	else if (*v->match)
		buf_printf(out, "  filter: %s", v->match);
}

static void top_view_put_above(const struct top_view *v, struct buf *out)
{
	size_t begin = out->len;

	buf_puts(out, v->frozen ? "FROZEN  " : "");
	top_put_rates(&v->shown->window, out);
	top_view_end_line(v, begin, out);
	begin = out->len;
	buf_puts(out, "cost: ");
	top_put_cost(&v->cost, out);
	top_view_end_line(v, begin, out);
	begin = out->len;
	top_view_put_tabs(v, out);
	top_view_end_line(v, begin, out);
}

static size_t top_count_lines(const struct buf *b)
{
	size_t lines = 0;

	for (size_t i = 0; i < b->len; i++)
		lines += b->data[i] == '\n';
	return lines;
}

static void top_view_put_table(struct top_view *v, struct buf *out)
{
	struct table *t = top_view_table(v);
	struct report_options options = { .match = v->match, .top = v->top, .min_ns = v->min_ns };
	struct table_view view = { .width = v->width, .first = v->first, .rows = top_view_room(v) };

	if (!t) {
		buf_puts(out, "waiting for the first second\n");
		return;
	}
	options.sort = view.sort = top_view_sort(v, t);
	if (table_arrange(t, &options, NULL) < 0) {
		out->failed = true;
		return;
	}
	view.first = MIN(v->first, t->shown);
	table_write_fitted(t, &view, out);
}

/* Removes lines that have no place: a terminal may have one line only. */
static void top_view_cut(const struct top_view *v, struct buf *out)
{
	size_t at = 0;

	for (size_t line = 0; line < v->rows && at < out->len; line++)
		at += (size_t)((char *)memchr(out->data + at, '\n', out->len - at) - out->data -
			       at) +
		      1;
	out->len = at;
}

int top_view_draw(struct top_view *v, struct buf *out)
{
	size_t begin, lines;

	buf_clear(out);
	top_view_put_above(v, out);
	top_view_put_table(v, out);
	if (buf_error(out) < 0)
		return -ENOMEM;
	for (lines = top_count_lines(out); lines + 1 < v->rows; lines++)
		buf_putc(out, '\n');
	begin = out->len;
	buf_puts(out, *v->message ? v->message : HELP);
	top_view_end_line(v, begin, out);
	if (buf_error(out) < 0)
		return -ENOMEM;
	top_view_cut(v, out);
	return 0;
}
