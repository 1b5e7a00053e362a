/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables for programs: JSON, described in docs/report.md, and CSV by RFC 4180. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "report/cell_text.h"
#include "report/table_form.h"

void tables_begin_json(const struct tables_head *head, struct buf *out)
{
	buf_puts(out, head->is_further ? ",\n" : "");
	buf_puts(out, "{\"format\":\"" TABLES_FORMAT "\",\"version\":" TABLES_VERSION);
	if (head->host)
		json_put_string_key(out, "host", head->host);
	json_put_string_key(out, "clock", head->clock);
	json_put_key(out, "reports");
	buf_putc(out, '[');
}

/* Behind the tables: rows may be written before all events are known. */
void tables_end_json(const struct tables_head *head, struct buf *out)
{
	buf_putc(out, ']');
	json_put_u64_key(out, "first_ns", head->first_ns);
	json_put_u64_key(out, "span_ns", head->span_ns);
	json_put_u64_key(out, "events", head->events);
	json_put_u64_key(out, "lost", head->lost);
	json_put_u64_key(out, "gaps", head->gaps);
	json_put_bool_key(out, "incomplete", head->incomplete);
	json_put_bool_key(out, "marks_lost", head->marks_lost);
	if (head->part)
		json_put_string_key(out, "part", head->part);
	buf_puts(out, "}\n");
}

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

void column_put_key(const struct column *c, struct buf *out)
{
	put_key_name(out, c);
	buf_puts(out, column_unit(c));
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

static void json_put_cell(const struct column *c, const union cell_value *v, struct buf *out)
{
	json_put_comma(out);
	buf_putc(out, '"');
	column_put_key(c, out);
	buf_puts(out, "\":");
	switch (c->kind) {
	case COLUMN_TEXT:
		buf_putc(out, '"');
		json_escape(out, v->text.data, v->text.len);
		buf_putc(out, '"');
		break;
	case COLUMN_NUMBER:
		cell_put_number(out, v->number);
		break;
	case COLUMN_HISTOGRAM:
		json_put_histogram(out, v->histogram);
		break;
	default:
		if (v->count == TABLE_UNKNOWN)
			buf_puts(out, "null");
		else
			cell_put_count(out, v->count);
	}
}

static void json_put_totals(const struct table *t, struct buf *out)
{
	json_put_key(out, "totals");
	buf_putc(out, '{');
	for (size_t i = 0; i < t->total_count; i++)
		json_put_u64_key(out, t->totals[i].name, t->totals[i].value);
	buf_putc(out, '}');
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

/* Null for a name that is not there. */
static void json_put_name(const char *key, const char *name, struct buf *out)
{
	if (name) {
		json_put_string_key(out, key, name);
		return;
	}
	json_put_key(out, key);
	buf_puts(out, "null");
}

static void json_put_column(const struct column *c, struct buf *out)
{
	json_put_comma(out);
	buf_putc(out, '{');
	json_put_string_key(out, "name", c->name);
	json_put_string_key(out, "kind", column_kind_names[c->kind]);
	json_put_string_key(out, "adds", column_adds_names[column_adds_of(c)]);
	if (c->of)
		json_put_string_key(out, "of", c->of);
	if (c->over)
		json_put_string_key(out, "over", c->over);
	if (c->adds == ADDS_SHARE)
		json_put_u64_key(out, "same", c->same);
	buf_putc(out, '}');
}

static void json_begin(struct table *t, struct buf *out)
{
	buf_puts(out, "\n{");
	json_put_string_key(out, "name", t->name);
	json_put_name("by", t->by, out);
	json_put_name("sort", t->sort, out);
	if (t->definition)
		json_put_string_key(out, "definition", t->definition);
	json_put_key(out, "columns");
	buf_putc(out, '[');
	for (size_t i = 0; i < t->column_count; i++)
		json_put_column(&t->columns[i], out);
	buf_putc(out, ']');
	json_put_key(out, "rows");
	buf_putc(out, '[');
}

static void json_put_row(struct table *t, const union cell_value *values, bool first,
			 struct buf *out)
{
	buf_puts(out, first ? "\n{" : ",\n{");
	for (size_t i = 0; i < t->column_count; i++)
		json_put_cell(&t->columns[i], &values[i], out);
	buf_putc(out, '}');
}

static void json_end(const struct table *t, struct buf *out)
{
	buf_putc(out, ']');
	if (t->total_count)
		json_put_totals(t, out);
	json_put_notes(t, out);
	buf_putc(out, '}');
}

const struct table_form table_form_json = { json_begin, json_put_row, json_end };

static bool csv_is_plain(struct text text)
{
	for (uint32_t i = 0; i < text.len; i++)
		if (text.data[i] < ' ' || text.data[i] >= 0x7f)
			return false;
	return true;
}

/* Readers may want UTF-8, and a terminal must not obey a task's name. */
static void csv_put_text(struct text text, struct buf *out)
{
	_cleanup_buf_ struct buf visible = BUF_INIT;

	if (!csv_is_plain(text)) {
		cell_put_visible(&visible, text, 4 * (size_t)text.len, 0);
		out->failed |= visible.failed;
		text = (struct text){ visible.data, (uint32_t)visible.len };
	}
	buf_putc(out, '"');
	for (uint32_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"')
			buf_putc(out, '"');
		buf_putc(out, text.data[i]);
	}
	buf_putc(out, '"');
}

static void csv_begin(struct table *t, struct buf *out)
{
	if (t->options->host)
		buf_puts(out, "host,");
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
	for (size_t i = 0; i < t->total_count; i++)
		buf_printf(out, ",%s", t->totals[i].name);
	buf_puts(out, "\r\n");
}

static void csv_put_cell(const struct column *c, const union cell_value *v, struct buf *out)
{
	switch (c->kind) {
	case COLUMN_TEXT:
		csv_put_text(v->text, out);
		break;
	case COLUMN_NUMBER:
		cell_put_number(out, v->number);
		break;
	case COLUMN_HISTOGRAM:
		for (size_t part = 0; part < HISTOGRAM_PARTS; part++) {
			buf_puts(out, part ? "," : "");
			if (v->histogram->count)
				buf_printf(out, "%" PRIu64, histogram_part_of(v->histogram, part));
		}
		break;
	default:
		if (v->count != TABLE_UNKNOWN)
			cell_put_count(out, v->count);
	}
}

static void csv_put_host(const struct table *t, struct buf *out)
{
	const char *host = t->options->host;

	if (!host)
		return;
	csv_put_text((struct text){ host, (uint32_t)strlen(host) }, out);
	buf_putc(out, ',');
}

static void csv_put_row(struct table *t, const union cell_value *values, bool first _unused_,
			struct buf *out)
{
	csv_put_host(t, out);
	for (size_t i = 0; i < t->column_count; i++) {
		buf_puts(out, i ? "," : "");
		csv_put_cell(&t->columns[i], &values[i], out);
	}
	for (size_t i = 0; i < t->total_count; i++)
		buf_putc(out, ',');
	buf_puts(out, "\r\n");
}

/* Totals have a row of their own: they are known only after the last one. */
static void csv_end(const struct table *t, struct buf *out)
{
	if (!t->total_count)
		return;
	csv_put_host(t, out);
	for (size_t i = 0; i < t->column_count; i++)
		for (size_t cells = t->columns[i].kind == COLUMN_HISTOGRAM ? HISTOGRAM_PARTS : 1;
		     cells; cells--)
			buf_putc(out, ',');
	for (size_t i = 0; i < t->total_count; i++)
		buf_printf(out, "%s%" PRIu64, i ? "," : "", t->totals[i].value);
	buf_puts(out, "\r\n");
}

const struct table_form table_form_csv = { csv_begin, csv_put_row, csv_end };
