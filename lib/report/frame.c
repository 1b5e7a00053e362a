/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/table_form.h"

#define NAME_BYTES 128
/* A histogram's has its filter. */
#define TITLE_BYTES 640

/* Shares are computed anew from sums of several windows. */
struct frame_column {
	uint32_t kind;
	uint32_t adds;	   /* ADDS_SHARE, ADDS_REMAINDER; or ADDS_USUAL */
	uint32_t of, over; /* numbers of columns, from 1; 0: none */
	uint32_t same;
	char name[NAME_BYTES]; /* terminated */
};

/* Columns, cells, texts and notes follow. */
struct frame_table {
	uint32_t columns, rows, texts, notes; /* numbers; bytes */
	uint32_t counts_on;
	char name[TITLE_BYTES], sort[NAME_BYTES];
};

void frame_put(struct buf *out, enum frame_kind kind, const void *data, size_t len)
{
	const struct frame_header h = { (uint32_t)kind, (uint32_t)len };

	buf_append(out, &h, sizeof(h));
	buf_append(out, data, len);
}

/* Places in the recording mean nothing while it goes on. */
static bool frame_has_column(const struct column *c)
{
	return c->kind != COLUMN_AT;
}

static size_t frame_parts(const struct column *c)
{
	if (!frame_has_column(c))
		return 0;
	return c->kind == COLUMN_HISTOGRAM ? HISTOGRAM_PARTS : 1;
}

/* The number in a frame of the column with that name, from 1; 0: none. */
static uint32_t frame_number(const struct table *t, const char *name)
{
	const struct column *of = table_column(t, name);
	size_t before = 0;

	if (!of || frame_parts(of) != 1)
		return 0;
	for (const struct column *c = t->columns; c < of; c++)
		before += frame_parts(c);
	return (uint32_t)before + 1;
}

static void frame_put_columns(const struct table *t, struct buf *out, uint32_t *ret_count)
{
	for (size_t i = 0; i < t->column_count; i++) {
		const struct column *c = &t->columns[i];
		const bool is_histogram = c->kind == COLUMN_HISTOGRAM;

		for (size_t part = 0; part < frame_parts(c); part++) {
			struct frame_column f = { .kind = is_histogram ? COLUMN_TIME : c->kind };

			if (c->adds == ADDS_SHARE || c->adds == ADDS_REMAINDER) {
				f.adds = c->adds;
				f.of = frame_number(t, c->of);
				f.over = frame_number(t, c->over);
				f.same = (uint32_t)c->same;
			}
			snprintf(f.name, sizeof(f.name), "%s%s%s", c->name, is_histogram ? "-" : "",
				 is_histogram ? histogram_part_names[part] : "");
			buf_append(out, &f, sizeof(f));
			++*ret_count;
		}
	}
}

static void frame_put_cell(const struct table *t, size_t row, size_t column, struct buf *cells,
			   struct buf *texts)
{
	union cell cell = *table_cell(t, row, column);

	if (t->columns[column].kind == COLUMN_HISTOGRAM) {
		for (enum histogram_part part = 0; part < HISTOGRAM_PARTS; part++) {
			const struct histogram *h = cell.histogram;
			union cell value = { .count = h->count ? histogram_part_of(h, part)
							       : TABLE_UNKNOWN };

			buf_append(cells, &value, sizeof(value));
		}
		return;
	}
	if (t->columns[column].kind == COLUMN_TEXT) {
		struct text text = table_text(t, &cell);

		cell.at = (uint32_t)texts->len;
		buf_append(texts, text.data, text.len);
	}
	buf_append(cells, &cell, sizeof(cell));
}

void table_write_frame(const struct table *t, struct buf *out)
{
	_cleanup_buf_ struct buf columns = BUF_INIT, cells = BUF_INIT, texts = BUF_INIT;
	struct frame_table head = { .rows = (uint32_t)t->shown, .counts_on = t->counts_on };

	frame_put_columns(t, &columns, &head.columns);
	for (size_t row = 0; row < t->shown; row++)
		for (size_t i = 0; i < t->column_count; i++)
			if (frame_has_column(&t->columns[i]))
				frame_put_cell(t, row, i, &cells, &texts);
	head.texts = (uint32_t)texts.len;
	head.notes = (uint32_t)t->notes.len;
	snprintf(head.name, sizeof(head.name), "%s", t->name);
	snprintf(head.sort, sizeof(head.sort), "%s", t->sort ?: "");
	buf_append(out, &head, sizeof(head));
	buf_append(out, columns.data, columns.len);
	buf_append(out, cells.data, cells.len);
	buf_append(out, texts.data, texts.len);
	buf_append(out, t->notes.data, t->notes.len);
	if (buf_error(&columns) < 0 || buf_error(&cells) < 0 || buf_error(&texts) < 0)
		out->failed = true;
}

int frame_next(const struct buf *in, struct frame_header *ret, const char **ret_data)
{
	struct frame_header h;

	if (in->len < sizeof(h))
		return 0;
	memcpy(&h, in->data, sizeof(h));
	if (h.len > FRAME_MAX || h.kind < FRAME_WINDOW || h.kind > FRAME_FAILED)
		return -EBADMSG;
	if (in->len - sizeof(h) < h.len)
		return 0;
	*ret = h;
	*ret_data = in->data + sizeof(h);
	return 1;
}

/* The part of a frame that was not taken yet. */
struct frame_rest {
	char *p;
	size_t len;
};

/* NULL: there are fewer bytes. */
static void *frame_cut(struct frame_rest *r, size_t len)
{
	char *p = r->p;

	if (r->len < len)
		return NULL;
	r->p += len;
	r->len -= len;
	return p;
}

/* Terminated, and of characters that are harmless on a terminal. */
static bool frame_name_is_good(const char *name, size_t size)
{
	size_t len = strnlen(name, size), good = 0;

	while (good < len && name[good] >= ' ' && name[good] <= '~')
		good++;
	return good == len && len < size;
}

/* Only numbers may be computed: a text's cell is a place. */
static bool frame_adds_well(const struct frame_column *f, uint32_t count)
{
	if (f->of > count || f->over > count || f->same > count)
		return false;
	return f->adds == ADDS_USUAL || ((f->adds == ADDS_SHARE || f->adds == ADDS_REMAINDER) &&
					 (f->kind == COLUMN_PERMILLE || f->kind == COLUMN_BAR));
}

static int frame_take_columns(struct frame_rest *r, uint32_t count,
			      struct column columns[COLUMNS_MAX])
{
	const char *names[COLUMNS_MAX + 1] = { NULL };
	struct frame_column f;

	if (!count || count > COLUMNS_MAX || r->len / sizeof(f) < count)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++)
		names[i + 1] = r->p + i * sizeof(f) + offsetof(struct frame_column, name);
	for (uint32_t i = 0; i < count; i++) {
		memcpy(&f, frame_cut(r, sizeof(f)), sizeof(f));
		if (!*f.name || !frame_name_is_good(f.name, sizeof(f.name)) ||
		    f.kind >= COLUMN_HISTOGRAM || f.kind == COLUMN_AT ||
		    !frame_adds_well(&f, count))
			return -EBADMSG;
		columns[i] = (struct column)COLUMN(names[i + 1], f.kind, .adds = f.adds,
						   .of = names[f.of], .over = names[f.over],
						   .same = f.same);
	}
	return 0;
}

/* Each text lies within the table's texts. */
static bool frame_texts_fit(const struct table *t)
{
	for (size_t i = 0; i < t->cell_count; i++) {
		const union cell *cell = &t->cells[i];

		if (t->columns[i % t->column_count].kind == COLUMN_TEXT &&
		    (cell->at > t->texts.len || cell->len > t->texts.len - cell->at))
			return false;
	}
	return true;
}

static int frame_take_cells(struct frame_rest *r, struct table *t, const struct frame_table *head)
{
	const size_t count = (size_t)head->rows * head->columns;
	const void *cells, *texts, *notes;

	if (head->rows > FRAME_ROWS_MAX)
		return -EBADMSG;
	cells = frame_cut(r, count * sizeof(*t->cells));
	texts = frame_cut(r, head->texts);
	notes = frame_cut(r, head->notes);
	if (!cells || !texts || !notes)
		return -EBADMSG;
	t->cells = calloc(count ?: 1, sizeof(*t->cells));
	if (!t->cells)
		return -ENOMEM;
	memcpy(t->cells, cells, count * sizeof(*t->cells));
	t->cell_count = t->cell_cap = count;
	/* Never empty: texts without bytes have a place, too. */
	buf_append(&t->texts, texts, head->texts);
	buf_string(&t->texts);
	buf_append(&t->notes, notes, head->notes);
	for (size_t i = 0; i < t->notes.len; i++)
		if (t->notes.data[i] != '\n' && (t->notes.data[i] < ' ' || t->notes.data[i] > '~'))
			t->notes.data[i] = '?';
	if (buf_error(&t->texts) < 0 || buf_error(&t->notes) < 0)
		return -ENOMEM;
	return frame_texts_fit(t) ? 0 : -EBADMSG;
}

static int frame_take_table(struct frame_rest *r, struct table **ret)
{
	struct column columns[COLUMNS_MAX];
	struct frame_table head;
	char *at = frame_cut(r, sizeof(head));
	const char *sort;
	int e;

	if (!at)
		return -EBADMSG;
	memcpy(&head, at, sizeof(head));
	if (!frame_name_is_good(head.name, sizeof(head.name)) ||
	    !frame_name_is_good(head.sort, sizeof(head.sort)))
		return -EBADMSG;
	sort = *head.sort ? at + offsetof(struct frame_table, sort) : NULL;
	e = frame_take_columns(r, head.columns, columns);
	if (e == 0)
		e = table_new(ret, at + offsetof(struct frame_table, name), columns, head.columns,
			      sort);
	if (e == 0 && head.counts_on)
		table_counts_on(*ret);
	if (e == 0)
		e = frame_take_cells(r, *ret, &head);
	return e == 0 && sort && !table_has_column(*ret, sort) ? -EBADMSG : e;
}

int frame_take(struct frame_tables *ret, const char *data, size_t len)
{
	struct frame_rest rest;
	const void *window;
	int r = 0;

	frame_tables_deinit(ret);
	buf_append(&ret->data, data, len);
	if (buf_error(&ret->data) < 0)
		return -ENOMEM;
	rest = (struct frame_rest){ ret->data.data, len };
	window = frame_cut(&rest, sizeof(ret->window));
	if (!window)
		return -EBADMSG;
	memcpy(&ret->window, window, sizeof(ret->window));
	if (ret->window.tables > FRAME_TABLES_MAX)
		return -EBADMSG;
	while (r == 0 && ret->count < ret->window.tables) {
		/* The table is freed also if it is damaged. */
		r = frame_take_table(&rest, &ret->tables[ret->count]);
		ret->count += ret->tables[ret->count] != NULL;
	}
	return r;
}

void frame_tables_deinit(struct frame_tables *f)
{
	for (size_t i = 0; i < f->count; i++)
		table_free(f->tables[i]);
	buf_deinit(&f->data);
	*f = (struct frame_tables){ 0 };
}
