/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a report's JSON: members come in the order in which table_json.c writes them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/visible.h"
#include "marks/json_value.h"
#include "report/merge_form.h"

/* Longest string in bytes: a row's name, a note. */
#define TEXT_MAX 4096
/* Notes of one report in one file. */
#define NOTES_MAX 16

struct merge_file {
	struct json_read json;
	struct report_merge *m;
	const char *name; /* for notes; safe to show */
	int fd;
	bool has_format, has_version, has_reports;
};

static ssize_t merge_file_read(void *userdata, void *data, size_t len)
{
	struct merge_file *f = userdata;
	ssize_t n;

	do
		n = read(f->fd, data, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	f->m->bytes += (uint64_t)n;
	return f->m->bytes > REPORT_MERGE_BYTES_MAX ? -EFBIG : n;
}

static int merge_bad(const struct merge_file *f, const char *what, struct error *err)
{
	return error_set(err, -EBADMSG, "at byte %" PRIu64 ": %s", json_read_offset(&f->json),
			 what);
}

/* The next token must be that one. */
static int merge_expect(struct merge_file *f, int token, const char *what, struct error *err)
{
	int r = json_read_next(&f->json, err);

	return r < 0 ? r : r == token ? 0 : merge_bad(f, what, err);
}

/* 1: a key, in json.text. 0: the object ends. */
static int merge_next_key(struct merge_file *f, struct error *err)
{
	int r = json_read_next(&f->json, err);

	return r < 0 ? r : r == JSON_KEY;
}

static bool merge_key_is(const struct merge_file *f, const char *key)
{
	const struct buf *text = &f->json.text;

	return text->len == strlen(key) && !memcmp(text->data, key, text->len);
}

static int merge_skip(struct merge_file *f, struct error *err)
{
	int token = json_read_next(&f->json, err);

	return token < 0 ? token : json_read_skip(&f->json, token, err);
}

/* The number that was read last. UINT64_MAX stands for an unknown value. */
static int merge_take_u64(struct merge_file *f, uint64_t *ret, struct error *err)
{
	const char *text = buf_string(&f->json.text);
	char *end;

	if (!text)
		return error_errno(err, -ENOMEM, "can't read a number");
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (*text == '-' || *end || errno || *ret == UINT64_MAX)
		return merge_bad(f, "not a whole number of 64 bits", err);
	return 0;
}

static int merge_read_u64(struct merge_file *f, uint64_t *ret, struct error *err)
{
	int r = merge_expect(f, JSON_NUMBER, "expected a number", err);

	return r < 0 ? r : merge_take_u64(f, ret, err);
}

static int merge_read_i64(struct merge_file *f, int64_t *ret, struct error *err)
{
	int r = merge_expect(f, JSON_NUMBER, "expected a number", err);
	const char *text;
	char *end;

	if (r < 0)
		return r;
	text = buf_string(&f->json.text);
	if (!text)
		return error_errno(err, -ENOMEM, "can't read a number");
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return *end || errno ? merge_bad(f, "not a whole number of 64 bits", err) : 0;
}

/* A string that is kept; NULL: null. */
static int merge_read_name(struct merge_file *f, const char **ret, struct error *err)
{
	int r = json_read_next(&f->json, err);

	if (r < 0)
		return r;
	*ret = NULL;
	if (r == JSON_NULL)
		return 0;
	if (r != JSON_STRING)
		return merge_bad(f, "expected a string", err);
	*ret = merge_keep(f->m, text_of(&f->json.text));
	return *ret ? 0 : error_errno(err, -ENOMEM, "can't read it");
}

/* The index of the string that follows. */
static int merge_read_choice(struct merge_file *f, const char *const *names, size_t count,
			     size_t *ret, struct error *err)
{
	int r = merge_expect(f, JSON_STRING, "expected a string", err);

	if (r < 0)
		return r;
	for (*ret = 0; *ret < count; ++*ret)
		if (merge_key_is(f, names[*ret]))
			return 0;
	return merge_bad(f, "an unknown kind of column", err);
}

static int merge_read_column_member(struct merge_file *f, struct column *c, struct error *err)
{
	size_t choice;
	uint64_t same;
	int r;

	if (merge_key_is(f, "name"))
		return merge_read_name(f, &c->name, err);
	if (merge_key_is(f, "of"))
		return merge_read_name(f, &c->of, err);
	if (merge_key_is(f, "over"))
		return merge_read_name(f, &c->over, err);
	if (merge_key_is(f, "kind")) {
		r = merge_read_choice(f, column_kind_names, COLUMN_KINDS, &choice, err);
		if (r == 0)
			c->kind = (enum column_kind)choice;
		return r;
	}
	if (merge_key_is(f, "adds")) {
		r = merge_read_choice(f, column_adds_names, COLUMN_ADDS, &choice, err);
		if (r == 0)
			c->adds = (enum column_adds)choice;
		return r;
	}
	if (merge_key_is(f, "same")) {
		r = merge_read_u64(f, &same, err);
		if (r == 0)
			c->same = (size_t)MIN(same, (uint64_t)COLUMNS_MAX);
		return r;
	}
	return merge_skip(f, err);
}

static int merge_read_columns(struct merge_file *f, struct merge_description *d, struct error *err)
{
	int r = merge_expect(f, JSON_ARRAY, "expected columns", err);

	if (r == 0 && d->column_count)
		r = merge_bad(f, "a report has columns twice", err);
	while (r == 0) {
		struct column *c = &d->columns[d->column_count];

		r = json_read_next(&f->json, err);
		if (r == JSON_ARRAY_END)
			return 0;
		if (r >= 0 && r != JSON_OBJECT)
			return merge_bad(f, "expected a column", err);
		if (r >= 0 && d->column_count == COLUMNS_MAX)
			return merge_bad(f, "a report has too many columns", err);
		*c = (struct column){ 0 };
		while (r >= 0 && (r = merge_next_key(f, err)) > 0)
			r = merge_read_column_member(f, c, err);
		if (r == 0 && !c->name)
			return merge_bad(f, "a column has no name", err);
		d->column_count += r == 0;
	}
	return r;
}

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
		cell->own = calloc(1, sizeof(*cell->own));
		if (!cell->own)
			return error_errno(err, -ENOMEM, "can't read it");
		return merge_read_histogram(f, cell->own, err);
	default:
		return merge_read_value(f, cell, err);
	}
}

static void merge_row_deinit(const struct table *t, struct merge_row *row)
{
	for (size_t i = 0; i < t->column_count; i++) {
		if (t->columns[i].kind != COLUMN_HISTOGRAM || !row->cells[i].own)
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

static int merge_read_rows(struct merge_file *f, struct merged_table *t, struct error *err)
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

static int merge_read_notes(struct merge_file *f, struct merged_table *t, struct error *err)
{
	int r = merge_expect(f, JSON_ARRAY, "expected notes", err);

	for (unsigned i = 0; r == 0; i++) {
		_cleanup_buf_ struct buf note = BUF_INIT;

		r = json_read_next(&f->json, err);
		if (r == JSON_ARRAY_END)
			return 0;
		if (r < 0)
			return r;
		if (r != JSON_STRING)
			return merge_bad(f, "expected a note", err);
		r = 0;
		if (i < NOTES_MAX && buf_string(&f->json.text))
			buf_visible(&note, buf_string(&f->json.text), VISIBLE_MAX);
		if (i < NOTES_MAX)
			table_note(t->table, "%s: %s", f->name, buf_string(&note) ?: "?");
	}
	return r;
}

static int merge_begin_rows(struct merge_file *f, const struct merge_description *d,
			    struct merged_table **ret, struct error *err)
{
	int r = *ret ? merge_bad(f, "a report has rows twice", err)
		     : merge_check_description(d, err);

	return r < 0 ? r : merge_table(f->m, d, ret, err);
}

/* Its name and columns come before its rows. */
static int merge_read_report(struct merge_file *f, struct error *err)
{
	struct merge_description d = { 0 };
	struct merged_table *t = NULL;
	bool has_notes = false;
	int r;

	while ((r = merge_next_key(f, err)) > 0) {
		if (merge_key_is(f, "name") && !t) {
			r = merge_read_name(f, &d.name, err);
		} else if (merge_key_is(f, "by") && !t) {
			r = merge_read_name(f, &d.by, err);
		} else if (merge_key_is(f, "sort") && !t) {
			r = merge_read_name(f, &d.sort, err);
		} else if (merge_key_is(f, "columns") && !t) {
			r = merge_read_columns(f, &d, err);
		} else if (merge_key_is(f, "rows")) {
			r = merge_begin_rows(f, &d, &t, err);
			if (r == 0)
				r = merge_read_rows(f, t, err);
		} else if (merge_key_is(f, "notes") && t && !has_notes) {
			r = merge_read_notes(f, t, err);
			has_notes = true;
		} else {
			r = merge_skip(f, err);
		}
		if (r < 0)
			return r;
	}
	return r == 0 && !t ? merge_bad(f, "a report has no rows", err) : r;
}

static int merge_read_reports(struct merge_file *f, struct error *err)
{
	int r;

	if (!f->has_format || !f->has_version)
		return merge_bad(f, "reports come before the format and its version", err);
	f->has_reports = true;
	r = merge_expect(f, JSON_ARRAY, "expected reports", err);
	while (r == 0) {
		r = json_read_next(&f->json, err);
		if (r == JSON_ARRAY_END)
			return 0;
		if (r >= 0)
			r = r == JSON_OBJECT ? merge_read_report(f, err)
					     : merge_bad(f, "expected a report", err);
	}
	return r;
}

static int merge_read_version(struct merge_file *f, struct error *err)
{
	int r = merge_expect(f, JSON_NUMBER, "expected the version", err);

	if (r < 0)
		return r;
	f->has_version = merge_key_is(f, TABLES_VERSION);
	if (f->has_version)
		return 0;
	error_set(err, -EINVAL, "it has version %s of the format, not " TABLES_VERSION,
		  buf_string(&f->json.text) ?: "?");
	return error_hint(err, "make the report again with this tracectl");
}

/* Times of different clocks can't be compared. */
static int merge_read_clock(struct merge_file *f, struct error *err)
{
	struct tables_head *head = &f->m->head;
	_cleanup_buf_ struct buf mine = BUF_INIT, other = BUF_INIT;
	const char *clock;
	int r = merge_read_name(f, &clock, err);

	if (r < 0)
		return r;
	if (!head->clock || !clock || !strcmp(head->clock, clock)) {
		head->clock = clock ?: head->clock;
		return 0;
	}
	buf_visible(&mine, clock, VISIBLE_MAX);
	buf_visible(&other, head->clock, VISIBLE_MAX);
	return error_set(err, -EINVAL, "its times are on the clock %s, those before it on %s",
			 buf_string(&mine) ?: "?", buf_string(&other) ?: "?");
}

static int merge_add_head(struct merge_file *f, uint64_t *sum, struct error *err)
{
	uint64_t value;
	int r = merge_read_u64(f, &value, err);

	if (r == 0 && __builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
	return r;
}

static int merge_read_first(struct merge_file *f, struct error *err)
{
	struct tables_head *head = &f->m->head;
	uint64_t first;
	int r = merge_read_u64(f, &first, err);

	if (r == 0 && first)
		head->first_ns = head->first_ns ? MIN(head->first_ns, first) : first;
	return r;
}

static int merge_read_member(struct merge_file *f, struct error *err)
{
	struct tables_head *head = &f->m->head;
	int r;

	if (merge_key_is(f, "format")) {
		r = merge_expect(f, JSON_STRING, "expected the format", err);
		f->has_format = r == 0 && merge_key_is(f, TABLES_FORMAT);
		return r < 0 || f->has_format ? r : merge_bad(f, "another format", err);
	}
	if (merge_key_is(f, "version"))
		return merge_read_version(f, err);
	if (merge_key_is(f, "clock"))
		return merge_read_clock(f, err);
	if (merge_key_is(f, "first_ns"))
		return merge_read_first(f, err);
	if (merge_key_is(f, "span_ns"))
		return merge_add_head(f, &head->span_ns, err);
	if (merge_key_is(f, "events"))
		return merge_add_head(f, &head->events, err);
	if (merge_key_is(f, "lost"))
		return merge_add_head(f, &head->lost, err);
	if (merge_key_is(f, "incomplete")) {
		r = json_read_next(&f->json, err);
		head->incomplete |= r == JSON_TRUE;
		return r < 0 ? r : json_read_skip(&f->json, r, err);
	}
	return merge_key_is(f, "reports") ? merge_read_reports(f, err) : merge_skip(f, err);
}

static int merge_read(struct merge_file *f, struct error *err)
{
	int r = merge_expect(f, JSON_OBJECT, "it is no object", err);

	while (r >= 0 && (r = merge_next_key(f, err)) > 0)
		r = merge_read_member(f, err);
	if (r == 0)
		r = json_read_next(&f->json, err);
	if (r == 0 && !f->has_reports)
		r = error_set(err, -EBADMSG, "it has no reports");
	return r;
}

int report_merge_add(struct report_merge *m, int fd, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf visible = BUF_INIT;
	struct merge_file f = { .m = m, .fd = fd };
	int r;

	buf_visible(&visible, name, VISIBLE_MAX);
	f.name = buf_string(&visible) ?: "?";
	m->files++;
	r = json_read_init(&f.json, merge_file_read, &f, TEXT_MAX);
	r = r < 0 ? error_errno(err, r, "can't read it") : merge_read(&f, err);
	json_read_deinit(&f.json);
	if (r >= 0)
		return 0;
	if ((r == -EBADMSG || r == -ENODATA) && err && !err->hint)
		error_hint(err, "tracectl report --json writes reports that can be merged");
	error_prefix(err, "%s", f.name);
	return r == -ENODATA ? -EBADMSG : r;
}
