/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables for programs: JSON, described in docs/report.md, and CSV by RFC 4180. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "report/table_form.h"

/* "max-at" and the kind of its values make "max_at_ns". */
static void put_key_name(struct buf *out, const struct column *c)
{
	for (const char *p = c->name; *p; p++)
		buf_putc(out, *p == '-' || *p == ' ' ? '_' : *p);
}

static const char *column_unit(const struct column *c)
{
	switch (c->kind) {
	case COLUMN_TIME:
	case COLUMN_AT:
		return "_ns";
	case COLUMN_BYTES:
		return strcmp(c->name, "bytes") ? "_bytes" : "";
	case COLUMN_PERMILLE:
	case COLUMN_BAR:
		return "_permille";
	default:
		return "";
	}
}

static void json_put_histogram(struct buf *out, const struct histogram *h)
{
	buf_putc(out, '{');
	json_put_u64_key(out, "count", h->count);
	json_put_u64_key(out, "sum_ns", h->sum);
	json_put_u64_key(out, "min_ns", h->count ? h->min : 0);
	json_put_u64_key(out, "max_ns", h->max);
	json_put_u64_key(out, "p50_ns", histogram_quantile(h, 0.5));
	json_put_u64_key(out, "p99_ns", histogram_quantile(h, 0.99));
	json_put_key(out, "buckets");
	buf_putc(out, '[');
	for (uint32_t i = 0; i < h->used; i++)
		buf_printf(out, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", h->buckets[i] >> 48,
			   h->buckets[i] & HISTOGRAM_COUNT_MAX);
	buf_puts(out, "]}");
}

static void json_put_cell(const struct table *t, size_t row, size_t column, struct buf *out)
{
	const union cell *cell = table_cell(t, row, column);
	const struct column *c = &t->columns[column];
	struct text text;

	json_put_comma(out);
	buf_putc(out, '"');
	put_key_name(out, c);
	buf_printf(out, "%s\":", column_unit(c));
	switch (c->kind) {
	case COLUMN_TEXT:
		text = table_text(t, cell);
		buf_putc(out, '"');
		json_escape(out, text.data, text.len);
		buf_putc(out, '"');
		break;
	case COLUMN_NUMBER:
		buf_printf(out, "%" PRId64, cell->number);
		break;
	case COLUMN_HISTOGRAM:
		json_put_histogram(out, cell->histogram);
		break;
	default:
		if (cell->count == TABLE_UNKNOWN)
			buf_puts(out, "null");
		else
			buf_printf(out, "%" PRIu64, cell->count);
	}
}

static void json_put_notes(const struct table *t, struct buf *out)
{
	const char *notes = t->notes.data;

	json_put_key(out, "notes");
	buf_putc(out, '[');
	/* Each note ends with a newline. */
	for (size_t at = 0; at < t->notes.len;) {
		const char *stop = memchr(notes + at, '\n', t->notes.len - at);
		size_t len = stop ? (size_t)(stop - notes) - at : t->notes.len - at;

		json_put_comma(out);
		buf_putc(out, '"');
		json_escape(out, notes + at, len);
		buf_putc(out, '"');
		at += len + 1;
	}
	buf_putc(out, ']');
}

void table_write_json(const struct table *t, struct buf *out)
{
	buf_puts(out, "\n{");
	json_put_string_key(out, "name", t->name);
	json_put_key(out, "rows");
	buf_putc(out, '[');
	for (size_t row = 0; row < t->shown; row++) {
		buf_puts(out, row ? ",\n{" : "\n{");
		for (size_t i = 0; i < t->column_count; i++)
			json_put_cell(t, row, i, out);
		buf_putc(out, '}');
	}
	buf_putc(out, ']');
	json_put_notes(t, out);
	buf_putc(out, '}');
}

static void csv_put_text(struct text text, struct buf *out)
{
	buf_putc(out, '"');
	for (uint32_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"')
			buf_putc(out, '"');
		buf_putc(out, text.data[i]);
	}
	buf_putc(out, '"');
}

static void csv_put_header(const struct table *t, struct buf *out)
{
	for (size_t i = 0; i < t->column_count; i++) {
		const struct column *c = &t->columns[i];
		size_t parts = c->kind == COLUMN_HISTOGRAM ? HISTOGRAM_PARTS : 1;

		for (size_t part = 0; part < parts; part++) {
			buf_puts(out, i || part ? "," : "");
			put_key_name(out, c);
			if (c->kind == COLUMN_HISTOGRAM)
				buf_printf(out, "_%s_ns", histogram_part_names[part]);
			else
				buf_puts(out, column_unit(c));
		}
	}
	buf_puts(out, "\r\n");
}

static void csv_put_cell(const struct table *t, size_t row, size_t column, struct buf *out)
{
	const union cell *cell = table_cell(t, row, column);

	switch (t->columns[column].kind) {
	case COLUMN_TEXT:
		csv_put_text(table_text(t, cell), out);
		break;
	case COLUMN_NUMBER:
		buf_printf(out, "%" PRId64, cell->number);
		break;
	case COLUMN_HISTOGRAM:
		for (size_t part = 0; part < HISTOGRAM_PARTS; part++)
			buf_printf(out, "%s%" PRIu64, part ? "," : "",
				   histogram_part_of(cell->histogram, part));
		break;
	default:
		if (cell->count != TABLE_UNKNOWN)
			buf_printf(out, "%" PRIu64, cell->count);
	}
}

void table_write_csv(const struct table *t, struct buf *out)
{
	csv_put_header(t, out);
	for (size_t row = 0; row < t->shown; row++) {
		for (size_t i = 0; i < t->column_count; i++) {
			buf_puts(out, i ? "," : "");
			csv_put_cell(t, row, i, out);
		}
		buf_puts(out, "\r\n");
	}
}
