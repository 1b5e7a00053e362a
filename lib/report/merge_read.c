/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a report's JSON: members come in the order in which table_json.c writes them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/visible.h"
#include "report/merge_file.h"

/* Notes of one report in one file. */
#define NOTES_MAX 16

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
	if (*ret)
		return 0;
	return merge_is_full(f->m) ? error_set(err, -EFBIG, "it has too many names")
				   : error_errno(err, -ENOMEM, "can't read it");
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

/* Leaves out columns whose numbers belong to one machine. */
static void merge_join_machines(struct merge_description *d)
{
	for (size_t i = d->column_count; i-- > 0;) {
		const struct column *c = &d->columns[i];

		if (c->kind != COLUMN_NUMBER || (strcmp(c->name, "tid") && strcmp(c->name, "pid")))
			continue;
		d->column_count--;
		for (size_t s = i; s < d->column_count; s++) {
			d->columns[s] = d->columns[s + 1];
			d->columns[s].same -= d->columns[s].same > i;
		}
	}
}

static int merge_read_columns(struct merge_file *f, struct merge_description *d, struct error *err)
{
	int r = merge_expect(f, JSON_ARRAY, "expected columns", err);

	if (r == 0 && d->column_count)
		r = merge_bad(f, "a report has columns twice", err);
	while (r == 0) {
		struct column *c = &d->columns[d->column_count];

		r = json_read_next(&f->json, err);
		if (r == JSON_ARRAY_END && f->m->joins_machines)
			merge_join_machines(d);
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

static int merge_add_sum(struct merge_file *f, uint64_t *sum, struct error *err)
{
	uint64_t value;
	int r = merge_read_u64(f, &value, err);

	if (r == 0 && __builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
	return r;
}

/* The name as a table may keep it; NULL: no total. */
static const char *merge_total_name(const struct merge_file *f)
{
	static const char *const names[] = { "hits", "entries", "dropped", "cut", "open" };

	static_assert(ARRAY_SIZE(names) <= TABLE_TOTALS_MAX, "a table has room for these");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (merge_key_is(f, names[i]))
			return names[i];
	return NULL;
}

static int merge_read_total(struct merge_file *f, struct table *t, struct error *err)
{
	const char *name = merge_total_name(f);
	uint64_t value, sum = 0;
	int r;

	if (!name)
		return merge_skip(f, err);
	for (size_t i = 0; i < t->total_count; i++)
		if (t->totals[i].name == name)
			sum = t->totals[i].value;
	r = merge_read_u64(f, &value, err);
	if (r < 0)
		return r;
	if (strcmp(name, "cut") == 0)
		f->cut = value;
	else if (strcmp(name, "open") == 0)
		f->open = value;
	table_total(t, name, value > UINT64_MAX - sum ? UINT64_MAX : sum + value);
	return 0;
}

static int merge_read_totals(struct merge_file *f, struct table *t, struct error *err)
{
	int r = merge_expect(f, JSON_OBJECT, "expected totals", err);

	while (r >= 0 && (r = merge_next_key(f, err)) > 0)
		r = merge_read_total(f, t, err);
	return r;
}

/* The note repeats this file's totals (table_total_cut()), whose sums the merged table has. */
static bool merge_is_total(const struct merge_file *f, const char *note)
{
	char wanted[64];
	int len = snprintf(wanted, sizeof(wanted), ": cut %" PRIu64 ", open %" PRIu64, f->cut,
			   f->open);

	return strlen(note) > (size_t)len && !strcmp(note + strlen(note) - len, wanted);
}

static int merge_read_notes(struct merge_file *f, struct merged_table *t, struct error *err)
{
	const size_t before = t->table->notes.len;
	int r = merge_expect(f, JSON_ARRAY, "expected notes", err);

	for (unsigned i = 0; r == 0; i++) {
		_cleanup_buf_ struct buf note = BUF_INIT;

		r = json_read_next(&f->json, err);
		if (r == JSON_ARRAY_END)
			return merge_take_memory(f->m, t->table->notes.len - before, err);
		if (r < 0)
			return r;
		if (r != JSON_STRING)
			return merge_bad(f, "expected a note", err);
		r = 0;
		if (i < NOTES_MAX && buf_string(&f->json.text) &&
		    merge_is_total(f, f->json.text.data))
			continue;
		if (i < NOTES_MAX && buf_string(&f->json.text))
			buf_visible(&note, buf_string(&f->json.text), VISIBLE_MAX);
		if (i < NOTES_MAX)
			table_note(t->table, "%s: %s", f->name, buf_string(&note) ?: "?");
	}
	return r;
}

/* Whether its values can be added up. If not, its name is kept, and of the first one the reason. */
static bool merge_adds_up(struct merge_file *f, const struct merge_description *d)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (merge_check_description(d, &err) != -EINVAL)
		return true;
	buf_printf(&f->left_out, "%s%s", f->left_out.len ? ", " : "", d->name);
	if (!f->refused.message)
		error_move(&f->refused, &err);
	return false;
}

/* strings: those that were kept before the description's. */
static int merge_begin_rows(struct merge_file *f, const struct merge_description *d, size_t strings,
			    struct merged_table **ret, struct error *err)
{
	const size_t tables = f->m->table_count;
	int r = merge_check_description(d, err);

	if (r == 0)
		r = merge_table(f->m, d, ret, err);
	/* A known table has them. */
	if (r == 0 && f->m->table_count == tables)
		merge_drop_strings(f->m, strings);
	return r;
}

/* Its name and columns come before its rows. */
static int merge_read_report(struct merge_file *f, struct error *err)
{
	const size_t strings = f->m->string_count;
	struct merge_description d = { 0 };
	struct merged_table *t = NULL;
	bool has_notes = false, has_totals = false, is_left_out = false;
	int r;

	f->cut = f->open = 0;
	while ((r = merge_next_key(f, err)) > 0) {
		/* Then its strings may be gone. */
		const bool has_rows = t || is_left_out;

		if (merge_key_is(f, "name") && !has_rows) {
			r = merge_read_name(f, &d.name, err);
		} else if (merge_key_is(f, "by") && !has_rows) {
			r = merge_read_name(f, &d.by, err);
		} else if (merge_key_is(f, "sort") && !has_rows) {
			r = merge_read_name(f, &d.sort, err);
		} else if (merge_key_is(f, "definition") && !has_rows) {
			r = merge_read_name(f, &d.definition, err);
		} else if (merge_key_is(f, "columns") && !has_rows) {
			r = merge_read_columns(f, &d, err);
		} else if (merge_key_is(f, "rows") && has_rows) {
			r = merge_bad(f, "a report has rows twice", err);
		} else if (merge_key_is(f, "rows") && !merge_adds_up(f, &d)) {
			is_left_out = true;
			merge_drop_strings(f->m, strings);
			r = merge_skip(f, err);
		} else if (merge_key_is(f, "rows")) {
			f->has_rows = true;
			r = merge_begin_rows(f, &d, strings, &t, err);
			if (r == 0)
				r = merge_read_rows(f, t, err);
		} else if (merge_key_is(f, "totals") && t && !has_totals) {
			r = merge_read_totals(f, t->table, err);
			has_totals = true;
		} else if (merge_key_is(f, "notes") && t && !has_notes) {
			r = merge_read_notes(f, t, err);
			has_notes = true;
		} else {
			r = merge_skip(f, err);
		}
		if (r < 0)
			return r;
	}
	return r == 0 && !t && !is_left_out ? merge_bad(f, "a report has no rows", err) : r;
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
	const size_t strings = f->m->string_count;
	const char *clock;
	int r = merge_read_name(f, &clock, err);

	if (r < 0)
		return r;
	if (!head->clock || !clock) {
		head->clock = clock ?: head->clock;
		return 0;
	}
	if (!strcmp(head->clock, clock)) {
		merge_drop_strings(f->m, strings);
		return 0;
	}
	buf_visible(&mine, clock, VISIBLE_MAX);
	buf_visible(&other, head->clock, VISIBLE_MAX);
	return error_set(err, -EINVAL, "its times are on the clock %s, those before it on %s",
			 buf_string(&mine) ?: "?", buf_string(&other) ?: "?");
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

/* The sum of a part and a whole recording is a part. */
static int merge_read_part(struct merge_file *f, struct error *err)
{
	struct tables_head *head = &f->m->head;
	const size_t strings = f->m->string_count;
	const char *part;
	int r = merge_read_name(f, &part, err);

	if (r < 0 || !part)
		return r;
	if (!head->part) {
		head->part = part;
		return 0;
	}
	if (strcmp(head->part, part) != 0)
		head->part = "several parts";
	merge_drop_strings(f->m, strings);
	return 0;
}

/* True in one file, true in all together. */
static int merge_add_flag(struct merge_file *f, bool *flag, struct error *err)
{
	int token = json_read_next(&f->json, err);

	*flag |= token == JSON_TRUE;
	return token < 0 ? token : json_read_skip(&f->json, token, err);
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
		return merge_add_sum(f, &head->span_ns, err);
	if (merge_key_is(f, "events"))
		return merge_add_sum(f, &head->events, err);
	if (merge_key_is(f, "lost"))
		return merge_add_sum(f, &head->lost, err);
	if (merge_key_is(f, "gaps"))
		return merge_add_sum(f, &head->gaps, err);
	if (merge_key_is(f, "incomplete"))
		return merge_add_flag(f, &head->incomplete, err);
	if (merge_key_is(f, "marks_lost"))
		return merge_add_flag(f, &head->marks_lost, err);
	if (merge_key_is(f, "part"))
		return merge_read_part(f, err);
	return merge_key_is(f, "reports") ? merge_read_reports(f, err) : merge_skip(f, err);
}

/* Reports of one file that can't be merged are told, unless it has no others. */
static int merge_tell_left_out(struct merge_file *f, struct error *err)
{
	const char *names = buf_string(&f->left_out);

	if (!names)
		return error_errno(err, -ENOMEM, "can't read it");
	if (*names && !f->has_rows)
		return error_move(err, &f->refused);
	if (*names)
		table_note(f->m->tables[0].table, "%s: left out, as it can't be merged: %s",
			   f->name, names);
	return 0;
}

static int merge_read(struct merge_file *f, struct error *err)
{
	int r = merge_expect(f, JSON_OBJECT, "it is no object", err);

	while (r >= 0 && (r = merge_next_key(f, err)) > 0)
		r = merge_read_member(f, err);
	/* The first line of rows is an object. */
	if (r == 0 && !f->has_reports) {
		r = error_set(err, -EBADMSG, "it has no reports");
		return json_read_next(&f->json, NULL) == 0
			       ? r
			       : error_hint(err, "rows are read compressed: as .ndjson.zst");
	}
	if (r == 0)
		r = json_read_next(&f->json, err);
	return r == 0 ? merge_tell_left_out(f, err) : r;
}

static int report_merge_read(struct report_merge *m, int fd, uint64_t size, const char *name,
			     struct error *err)
{
	_cleanup_buf_ struct buf visible = BUF_INIT;
	struct merge_file f;
	int r;

	buf_visible(&visible, name, VISIBLE_MAX);
	m->files++;
	r = merge_file_init(&f, m, fd, buf_string(&visible) ?: "?");
	f.left = size;
	r = r < 0 ? error_errno(err, r, "can't read it") : merge_read(&f, err);
	merge_file_deinit(&f);
	if (r >= 0)
		return 0;
	if ((r == -EBADMSG || r == -ENODATA || r == -EFBIG) && err && !err->hint)
		error_hint(err, "tracectl report --json writes reports that can be merged");
	error_prefix(err, "%s", f.name);
	return r == -ENODATA ? -EBADMSG : r;
}

int report_merge_add(struct report_merge *m, int fd, const char *name, struct error *err)
{
	return report_merge_read(m, fd, UINT64_MAX, name, err);
}

int report_merge_add_part(struct report_merge *m, int fd, uint64_t size, const char *name,
			  struct error *err)
{
	return report_merge_read(m, fd, size, name, err);
}
