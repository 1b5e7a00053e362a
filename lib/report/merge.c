/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/secret_hash.h"
#include "base/vec.h"
#include "report/merge_form.h"

/* What REPORT_MERGE_FILES_MAX files with REPORTS_MAX reports of COLUMNS_MAX columns may have. */
#define STRINGS_MAX (1U << 18)
/* malloc() adds these to a histogram and its buckets. */
#define BLOCK_BYTES 32U

const struct histogram merge_empty = { 0 };

int report_merge_new(struct report_merge **ret)
{
	struct report_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	report_merge_bound(m, REPORT_MERGE_BYTES_MAX, UINT64_MAX);
	*ret = m;
	return 0;
}

struct report_merge *report_merge_free(struct report_merge *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->table_count; i++) {
		for (size_t c = 0; c < COLUMNS_MAX; c++)
			free(m->tables[i].members[c]);
		table_free(m->tables[i].table);
		rows_deinit(&m->tables[i].rows);
	}
	for (size_t i = 0; i < m->histogram_count; i++) {
		histogram_deinit(m->histograms[i]);
		free(m->histograms[i]);
	}
	for (size_t i = 0; i < m->string_count; i++)
		free(m->strings[i]);
	free(m->histograms);
	free(m->strings);
	free(m);
	return NULL;
}

const char *merge_keep(struct report_merge *m, struct text text)
{
	char *copy = m->string_count < STRINGS_MAX ? strndup(text.data ?: "", text.len) : NULL;

	if (!copy || vec_push(m->strings, m->string_count, m->string_cap, copy) < 0) {
		free(copy);
		return NULL;
	}
	return copy;
}

bool merge_is_full(const struct report_merge *m)
{
	return m->string_count == STRINGS_MAX;
}

void merge_drop_strings(struct report_merge *m, size_t string_count)
{
	while (m->string_count > string_count)
		free(m->strings[--m->string_count]);
}

void report_merge_join_machines(struct report_merge *m)
{
	m->joins_machines = true;
}

void report_merge_bound(struct report_merge *m, uint64_t bytes, uint64_t memory)
{
	m->bytes_max = bytes;
	m->memory_max = memory;
}

uint64_t report_merge_memory(const struct report_merge *m)
{
	return m->memory;
}

int merge_take_memory(struct report_merge *m, uint64_t bytes, struct error *err)
{
	m->memory += bytes;
	return m->memory <= m->memory_max
		       ? 0
		       : error_set(err, -EFBIG,
				   "its reports take more than %" PRIu64 " MiB of memory",
				   m->memory_max >> 20);
}

void report_merge_put_first(struct report_merge *m, struct table *table)
{
	m->first = table;
}

static bool merge_name_is_equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool merge_column_is_equal(const struct column *a, const struct column *b)
{
	return merge_name_is_equal(a->name, b->name) && a->kind == b->kind && a->adds == b->adds &&
	       merge_name_is_equal(a->of, b->of) && merge_name_is_equal(a->over, b->over) &&
	       a->same == b->same;
}

/* The report is in a file before this one. */
static int merge_compare(const struct merged_table *t, const struct merge_description *d,
			 struct error *err)
{
	const struct table *table = t->table;

	if (!merge_name_is_equal(table->by, d->by)) {
		error_set(err, -EINVAL,
			  "its report %s has a row by %s, and that of a file before it by %s",
			  d->name, d->by ?: "nothing", table->by ?: "nothing");
		return error_hint(err, "make all reports with the same --by");
	}
	for (size_t i = 0; i < MAX(table->column_count, d->column_count); i++)
		if (i >= MIN(table->column_count, d->column_count) ||
		    !merge_column_is_equal(&table->columns[i], &d->columns[i]))
			goto differs;
	if (merge_name_is_equal(table->sort, d->sort))
		return 0;
differs:
	error_set(err, -EINVAL, "its report %s has other columns than that of a file before it",
		  d->name);
	return error_hint(err, "make all reports with the same tracectl");
}

static int merge_begin_table(struct report_merge *m, const struct merge_description *d,
			     struct error *err)
{
	struct merged_table *t = &m->tables[m->table_count];
	int r;

	if (m->table_count == REPORTS_MAX)
		return error_set(err, -EFBIG, "there are more than %d reports", REPORTS_MAX);
	r = table_new(&t->table, d->name, d->columns, d->column_count, d->sort);
	if (r < 0)
		return error_errno(err, r, "can't merge it");
	rows_init(&t->rows, sizeof(struct merged_row), NULL);
	m->table_count++;
	if (d->sort && !table_has_column(t->table, d->sort))
		return error_set(err, -EBADMSG, "its report %s is sorted by no column", d->name);
	t->table->by = d->by;
	t->table->definition = d->definition;
	table_sort_by_keys(t->table);
	t->row_bytes =
		t->rows.size + 2 * sizeof(struct row_slot) + d->column_count * sizeof(union cell);
	for (size_t i = 0; i < d->column_count; i++) {
		_cleanup_buf_ struct buf member = BUF_INIT;

		column_put_key(&d->columns[i], &member);
		t->members[i] = buf_string(&member);
		t->row_bytes += member.len;
		member = BUF_INIT;
		if (!t->members[i])
			return error_errno(err, -ENOMEM, "can't merge it");
	}
	return 0;
}

int merge_table(struct report_merge *m, const struct merge_description *d,
		struct merged_table **ret, struct error *err)
{
	size_t i = 0;
	int r;

	while (i < m->table_count &&
	       !(merge_name_is_equal(m->tables[i].table->name, d->name) &&
		 merge_name_is_equal(m->tables[i].table->definition, d->definition)))
		i++;
	r = i < m->table_count ? merge_compare(&m->tables[i], d, err)
			       : merge_begin_table(m, d, err);
	if (r < 0)
		return r;
	if (m->tables[i].last == m->files)
		return error_set(err, -EBADMSG, "it has the report %s twice", d->name);
	m->tables[i].last = m->files;
	m->tables[i].files++;
	*ret = &m->tables[i];
	return 0;
}

static void merge_add_value(union cell *to, const union cell *from)
{
	if (to->count == TABLE_UNKNOWN || from->count == TABLE_UNKNOWN)
		to->count = TABLE_UNKNOWN;
	else if (__builtin_add_overflow(to->count, from->count, &to->count) ||
		 to->count == TABLE_UNKNOWN)
		to->count = TABLE_UNKNOWN - 1;
}

static void merge_take_largest(union cell *to, const union cell *from)
{
	if (to->count == TABLE_UNKNOWN || from->count == TABLE_UNKNOWN)
		to->count = TABLE_UNKNOWN;
	else
		to->count = MAX(to->count, from->count);
}

/* Anything known is less than TABLE_UNKNOWN. */
static void merge_take_smallest(union cell *to, const union cell *from)
{
	to->count = MIN(to->count, from->count);
}

/* If largest values are equal, the first one counts. */
static void merge_take_at(const struct table *t, size_t row, const struct column *c,
			  const struct merge_row *from)
{
	const size_t of = (size_t)(table_column(t, c->of) - t->columns);
	const struct histogram *mine = table_made_cell(t, row, of)->histogram;
	const struct histogram *other = from->cells[of].histogram;

	if (other->count && (!mine->count || other->max > mine->max))
		table_made_cell(t, row, (size_t)(c - t->columns))->count =
			from->cells[c - t->columns].count;
}

static uint64_t merge_histogram_bytes(const struct histogram *h)
{
	return BLOCK_BYTES + sizeof(*h) + sizeof(h) + h->cap * sizeof(*h->buckets);
}

/* The histogram is the merge's from now on, unless it is merge_empty. */
static int merge_keep_histogram(struct report_merge *m, union cell *cell)
{
	if (cell->histogram == &merge_empty)
		return 0;
	if (vec_push(m->histograms, m->histogram_count, m->histogram_cap, cell->own) < 0)
		return -ENOMEM;
	m->memory += merge_histogram_bytes(cell->own);
	cell->histogram = &merge_empty;
	return 0;
}

static int merge_add_histogram(struct report_merge *m, union cell *to, union cell *from)
{
	struct histogram *own = from->own;
	uint64_t before;
	int r;

	if (to->histogram != &merge_empty) {
		before = merge_histogram_bytes(to->own);
		r = histogram_merge(to->own, from->histogram);
		m->memory += merge_histogram_bytes(to->own) - before;
		return r;
	}
	r = merge_keep_histogram(m, from);
	if (r == 0)
		to->own = own;
	return r;
}

static int merge_into(struct report_merge *m, const struct table *t, size_t row,
		      struct merge_row *from)
{
	int r = 0;

	/* Before the histograms that they go with. */
	for (size_t i = 0; i < t->column_count; i++)
		if (t->columns[i].adds == ADDS_AT)
			merge_take_at(t, row, &t->columns[i], from);
	for (size_t i = 0; i < t->column_count && r == 0; i++) {
		union cell *cell = table_made_cell(t, row, i);

		switch (t->columns[i].adds) {
		case ADDS_SUM:
			merge_add_value(cell, &from->cells[i]);
			break;
		case ADDS_LARGEST:
			merge_take_largest(cell, &from->cells[i]);
			break;
		case ADDS_SMALLEST:
			merge_take_smallest(cell, &from->cells[i]);
			break;
		case ADDS_HISTOGRAM:
			r = merge_add_histogram(m, cell, &from->cells[i]);
			break;
		default:
			break;
		}
	}
	return r;
}

/* Puts a row of the table. Its histograms stay the row's. */
static void merge_put_row(struct table *t, const struct merge_row *row)
{
	for (size_t i = 0; i < t->column_count; i++) {
		const union cell *cell = &row->cells[i];

		if (t->columns[i].kind == COLUMN_TEXT)
			table_put_text(t, (struct text){ row->texts.data + cell->at, cell->len });
		else if (t->columns[i].kind == COLUMN_HISTOGRAM)
			table_put_histogram(t, cell->histogram);
		else
			table_put_count(t, cell->count);
	}
}

static int merge_keep_histograms(struct report_merge *m, const struct table *t,
				 struct merge_row *row)
{
	int r = 0;

	for (size_t i = 0; i < t->column_count && r == 0; i++)
		if (t->columns[i].kind == COLUMN_HISTOGRAM)
			r = merge_keep_histogram(m, &row->cells[i]);
	return r;
}

int merge_add_row(struct report_merge *m, struct merged_table *merged, struct merge_row *row,
		  struct error *err)
{
	struct table *t = merged->table;
	const size_t cells = t->cell_count, texts = t->texts.len;
	struct merged_row *known;
	int r = 0;

	merge_put_row(t, row);
	if (t->failed || buf_error(&t->texts) < 0)
		return error_errno(err, -ENOMEM, "can't keep its rows");
	known = rows_get(&merged->rows, table_key(t, cells / t->column_count, t->column_count));
	if (known && known == merged->rows.rest)
		return error_set(err, -EFBIG, "the report %s has more than %u rows", t->name,
				 ROWS_MAX);
	if (known && known->number) {
		t->cell_count = cells;
		t->texts.len = texts;
		r = merge_into(m, t, known->number - 1, row);
	} else if (known) {
		known->number = (uint32_t)(cells / t->column_count) + 1;
		m->memory += merged->row_bytes + t->texts.len - texts;
		r = merge_keep_histograms(m, t, row);
	}
	return !known || r < 0 ? error_errno(err, -ENOMEM, "can't keep its rows")
			       : merge_take_memory(m, 0, err);
}

/* Entries of a kernel's histogram with the same keys are one row now. */
static void merge_count_entries(struct table *t)
{
	for (size_t i = 0; i < t->total_count; i++)
		if (!strcmp(t->totals[i].name, "entries"))
			t->totals[i].value = t->cell_count / t->column_count;
}

int report_merge_write(struct report_merge *m, const struct report_options *o, struct buf *out,
		       struct error *err)
{
	int r = 0;

	if (o->form == REPORT_JSON)
		tables_begin_json(&m->head, out);
	if (m->first)
		r = table_write(m->first, o, true, out, err);
	for (size_t i = 0; i < m->table_count && r == 0; i++) {
		struct merged_table *t = &m->tables[i];

		t->table->span_ns = m->head.span_ns;
		merge_count_entries(t->table);
		if (t->files < m->files)
			table_note(t->table, "only %zu of %zu files have this report", t->files,
				   m->files);
		r = table_write(t->table, o, i == 0 && !m->first, out, err);
	}
	if (o->form == REPORT_JSON)
		tables_end_json(&m->head, out);
	else if (o->form == REPORT_TEXT)
		tables_end_text(&m->head, out);
	if (r == 0 && buf_error(out) < 0)
		r = error_errno(err, -ENOMEM, "can't write the reports");
	return r;
}

int report_merge_tell(const struct report_merge *m, struct export_result *ret)
{
	ret->lost = m->head.lost;
	ret->incomplete = m->head.incomplete;
	ret->marks_lost = m->head.marks_lost;
	ret->ledger = calloc(1, sizeof(*ret->ledger));
	if (!ret->ledger)
		return -ENOMEM;
	ret->ledger_count = 1;
	ret->ledger[0].gaps = m->head.gaps;
	return 0;
}

static int merge_sum_column(const struct table *t, size_t column, struct histogram *ret)
{
	int r = 0;

	for (size_t at = column; at < t->cell_count && r == 0; at += t->column_count)
		r = histogram_merge(ret, t->cells[at].histogram);
	return r;
}

static void merge_put_word(struct buf *out, const char *word)
{
	buf_puts(out, word ?: "");
	buf_putc(out, '\0');
}

/* Columns as merge_compare() compares them. */
static void merge_put_form(const struct table *t, struct buf *out)
{
	merge_put_word(out, t->by);
	merge_put_word(out, t->sort);
	for (size_t i = 0; i < t->column_count; i++) {
		const struct column *c = &t->columns[i];

		merge_put_word(out, c->name);
		merge_put_word(out, c->of);
		merge_put_word(out, c->over);
		buf_printf(out, "%d %d %zu,", c->kind, c->adds, c->same);
	}
}

int report_merge_visit_forms(const struct report_merge *m,
			     int (*visit)(void *userdata, uint64_t report, uint64_t form),
			     void *userdata)
{
	const char *clock = m->head.clock;
	int r = clock ? visit(userdata, 0,
			      XXH3_64bits_withSeed(clock, strlen(clock), hash_secret[0]))
		      : 0;

	for (size_t i = 0; i < m->table_count && r == 0; i++) {
		_cleanup_buf_ struct buf name = BUF_INIT, form = BUF_INIT;

		merge_put_word(&name, m->tables[i].table->name);
		merge_put_word(&name, m->tables[i].table->definition);
		merge_put_form(m->tables[i].table, &form);
		if (buf_error(&name) < 0 || buf_error(&form) < 0)
			return -ENOMEM;
		r = visit(userdata, XXH3_64bits_withSeed(name.data, name.len, hash_secret[0]),
			  XXH3_64bits_withSeed(form.data, form.len, hash_secret[0]));
	}
	return r;
}

int report_merge_visit(const struct report_merge *m,
		       int (*visit)(void *userdata, const char *report, const char *column,
				    const struct histogram *all),
		       void *userdata)
{
	int r = 0;

	for (size_t i = 0; i < m->table_count; i++)
		for (size_t c = 0; c < m->tables[i].table->column_count && r == 0; c++) {
			const struct table *t = m->tables[i].table;
			_cleanup_(histogram_deinit) struct histogram all = { 0 };

			if (t->columns[c].kind != COLUMN_HISTOGRAM)
				continue;
			r = merge_sum_column(t, c, &all);
			if (r == 0)
				r = visit(userdata, t->name, t->columns[c].name, &all);
		}
	return r;
}
