/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `hist`: histograms that the kernel made. Each one is a table. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/visible.h"
#include "report/hist_text.h"
#include "report/kind.h"

/* A text in which so many entries are damaged is not read on. */
#define DAMAGED_MAX 64
/* More tables are not made; a recording has 16 histograms at most. */
#define HISTOGRAMS_MAX 64
#define NAME_MAX_LEN 80
#define EVENT_MAX_LEN 100
#define FILTER_MAX_LEN 200

struct hist_report {
	struct report report;
	size_t number;	  /* among all histograms of the recording */
	char *title;	  /* owned; the table's name */
	char *definition; /* owned; what the table counts */
	char names[HIST_TEXT_FIELDS_MAX * 3][NAME_MAX_LEN]; /* of columns */
	bool is_number[HIST_TEXT_FIELDS_MAX]; /* or range: each key of that column can be read */
};

/* A histogram while its entries are read. */
struct hist_reading {
	struct hist_report *r;
	const struct hist_text *h;
	struct table *table;
	uint64_t entries, hits, damaged;
};

static bool key_is_range(const struct hist_text_field *f)
{
	return f->kind == HIST_TEXT_LOG2 || f->kind == HIST_TEXT_RANGE;
}

static struct text histogram_text(const Traced__Capture__Histogram *message)
{
	return (struct text){ (const char *)message->text.data, (uint32_t)message->text.len };
}

/*
 * Finds the histogram of that number. Returns its message; NULL: there are *ret_count only. A text
 * that can't be read counts as one, whose *ret has no keys.
 */
static const Traced__Capture__Histogram *hist_find(const struct trace_info *info, size_t number,
						   struct hist_text *ret, size_t *ret_count)
{
	*ret_count = 0;
	for (size_t i = 0; i < info->histogram_count; i++) {
		struct text rest = histogram_text(info->histograms[i]);
		int r;

		while ((r = hist_text_next(&rest, ret)) != 0) {
			if (r < 0)
				*ret = (struct hist_text){ 0 };
			if ((*ret_count)++ == number)
				return info->histograms[i];
		}
	}
	return NULL;
}

static size_t hist_count(const struct report_env *env)
{
	struct hist_text h;
	size_t count = 0;

	/* Each one is searched from the begin. */
	hist_find(env->info, HISTOGRAMS_MAX, &h, &count);
	return MIN(count, (size_t)HISTOGRAMS_MAX);
}

static int hist_open(struct report **ret, struct report_env *env)
{
	struct hist_report *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->report.env = env;
	r->number = env->number;
	*ret = &r->report;
	return 0;
}

/* Takes all entries of the text, whole ones. */
static void hist_read(struct hist_reading *x,
		      void (*take)(struct hist_reading *x, const struct hist_text_entry *e))
{
	struct text at = x->h->entries;
	struct hist_text_entry e;
	int r;

	x->entries = x->hits = x->damaged = 0;
	while ((r = hist_entry_next(x->h, &at, &e)) != 0 && x->damaged < DAMAGED_MAX) {
		uint64_t hits;

		if (r < 0) {
			x->damaged++;
			continue;
		}
		x->entries++;
		if (hist_text_number(e.values[0], &hits))
			x->hits += hits;
		take(x, &e);
	}
}

/* The kernel prints a negative number as a large one. */
static bool key_is_number(const struct hist_text_field *f, struct text key)
{
	uint64_t from, to;

	if (key_is_range(f))
		return hist_text_range(f, key, &from, &to) && to <= INT64_MAX;
	return f->kind == HIST_TEXT_NUMBER && hist_text_number(key, &from) && from <= INT64_MAX;
}

static void hist_judge_entry(struct hist_reading *x, const struct hist_text_entry *e)
{
	for (size_t i = 0; i < x->h->key_count; i++)
		x->r->is_number[i] =
			x->r->is_number[i] && key_is_number(&x->h->keys[i], e->keys[i]);
}

static void hist_put_key(struct hist_reading *x, size_t i, struct text key)
{
	const struct hist_text_field *f = &x->h->keys[i];
	_cleanup_buf_ struct buf text = BUF_INIT;
	uint64_t from = 0, to = 0;

	if (!x->r->is_number[i]) {
		hist_text_put_key(f, key, &text);
		table_put_text(x->table, (struct text){ text.data, (uint32_t)text.len });
	} else if (key_is_range(f)) {
		hist_text_range(f, key, &from, &to);
		table_put_number(x->table, (int64_t)from);
		table_put_number(x->table, (int64_t)to);
	} else {
		hist_text_number(key, &from);
		table_put_number(x->table, (int64_t)from);
	}
}

static void hist_put_entry(struct hist_reading *x, const struct hist_text_entry *e)
{
	uint64_t number = 0;

	for (size_t i = 0; i < x->h->key_count; i++)
		hist_put_key(x, i, e->keys[i]);
	for (size_t i = 0; i < x->h->value_count; i++) {
		if (x->h->values[i].kind != HIST_TEXT_NUMBER) {
			table_put_text(x->table, e->values[i]);
			continue;
		}
		hist_text_number(e->values[i], &number);
		table_put_count(x->table, number);
	}
	table_put_count(x->table, TABLE_DERIVED);
}

static const char *hist_name(struct hist_reading *x, size_t *used, const struct hist_text_field *f,
			     const char *end)
{
	char *name = x->r->names[(*used)++];

	snprintf(name, NAME_MAX_LEN, "%.*s%s%.*s%s", (int)f->name.len, f->name.data,
		 f->kind == HIST_TEXT_PLAIN ? "." : "",
		 f->kind == HIST_TEXT_PLAIN ? (int)MIN(f->modifier.len, UINT32_C(8)) : 0,
		 f->modifier.len ? f->modifier.data : "", end);
	return name;
}

/* Returns the number of columns. */
static size_t hist_make_columns(struct hist_reading *x, struct column columns[COLUMNS_MAX],
				bool *ret_ranges)
{
	size_t count = 0, used = 0;

	for (size_t i = 0; i < x->h->key_count; i++) {
		const struct hist_text_field *f = &x->h->keys[i];
		enum column_kind kind = x->r->is_number[i] ? COLUMN_NUMBER : COLUMN_TEXT;

		columns[count++] = (struct column)COLUMN(hist_name(x, &used, f, ""), kind,
							 .is_wide = f->kind == HIST_TEXT_STACK);
		if (!x->r->is_number[i] || !key_is_range(f))
			continue;
		columns[count++] = (struct column)COLUMN(hist_name(x, &used, f, "-to"), kind);
		*ret_ranges = true;
	}
	for (size_t i = 0; i < x->h->value_count; i++) {
		const struct hist_text_field *f = &x->h->values[i];

		columns[count++] = (struct column)COLUMN(
			hist_name(x, &used, f, ""),
			f->kind == HIST_TEXT_NUMBER ? COLUMN_COUNT : COLUMN_TEXT,
			.adds = f->kind == HIST_TEXT_NUMBER ? ADDS_SUM : ADDS_NOT);
	}
	columns[count++] =
		(struct column)COLUMN("share", COLUMN_BAR, .adds = ADDS_SHARE, .of = "hitcount");
	return count;
}

/* The part " if FILTER" of "hist:keys=a:vals=hitcount if b > 1 [active]"; it may be empty. */
static struct text trigger_filter(struct text trigger)
{
	/* A text that can't be read has no trigger, and memchr() takes no NULL. */
	const char *text = trigger.data ?: "";
	const char *blank = memchr(text, ' ', trigger.len);
	const char *state = memrchr(text, '[', trigger.len);

	if (!blank || !state || state <= blank + 1)
		return (struct text){ 0 };
	return (struct text){ blank, (uint32_t)(state - blank) - 1 };
}

/* Titles have ASCII only: frame.c. */
static void title_put_filter(struct text filter, struct buf *out)
{
	const size_t begin = out->len;

	for (uint32_t i = 0; i < filter.len; i++) {
		if (out->len - begin >= FILTER_MAX_LEN) {
			buf_puts(out, "...");
			return;
		}
		if (filter.data[i] >= ' ' && filter.data[i] <= '~')
			buf_putc(out, filter.data[i]);
		else
			buf_printf(out, "\\x%02x", (unsigned char)filter.data[i]);
	}
}

/* "hist sched:sched_switch by next_comm, prev_pid if prev_prio < 100" */
static int hist_make_title(struct hist_report *r, const char *event, const struct hist_text *h)
{
	_cleanup_buf_ struct buf title = BUF_INIT;

	buf_puts(&title, "hist ");
	buf_visible(&title, event, EVENT_MAX_LEN);
	for (size_t i = 0; i < h->key_count; i++)
		buf_printf(&title, "%s%.*s", i ? ", " : " by ", (int)h->keys[i].name.len,
			   h->keys[i].name.data);
	title_put_filter(trigger_filter(h->trigger), &title);
	free(r->title);
	r->title = NULL;
	if (!buf_string(&title))
		return -ENOMEM;
	r->title = TAKE_PTR(title.data);
	return 0;
}

static void hist_put_part(struct text t, size_t at, size_t len, struct buf *out)
{
	if (out->len)
		buf_putc(out, ':');
	buf_append(out, t.data + at, len);
}

/*
 * The keys, values and filter of "hist:keys=a.log2:vals=hitcount:sort=hitcount:size=2048 if b > 1
 * [active]": what must be equal for entries to add up.
 */
static int hist_make_definition(struct hist_report *r, struct text trigger)
{
	const char *blank = memchr(trigger.data, ' ', trigger.len);
	const struct text filter = trigger_filter(trigger);
	size_t words = blank ? (size_t)(blank - trigger.data) : trigger.len, len;
	_cleanup_buf_ struct buf out = BUF_INIT;

	for (size_t at = 0; at < words; at += len + 1) {
		const char *colon = memchr(trigger.data + at, ':', words - at);

		len = colon ? (size_t)(colon - trigger.data) - at : words - at;
		if (len > 5 && (!memcmp(trigger.data + at, "keys=", 5) ||
				!memcmp(trigger.data + at, "vals=", 5)))
			hist_put_part(trigger, at, len, &out);
	}
	if (filter.len)
		buf_append(&out, filter.data, filter.len);
	free(r->definition);
	r->definition = NULL;
	if (!buf_string(&out))
		return -ENOMEM;
	r->definition = TAKE_PTR(out.data);
	return 0;
}

static void hist_put_totals(struct hist_reading *x)
{
	const struct hist_text *h = x->h;

	table_total(x->table, "hits", h->hits);
	table_total(x->table, "entries", h->entry_count);
	table_total(x->table, "dropped", h->dropped);
	if (h->dropped)
		table_note(x->table,
			   "%" PRIu64 " event%s in no row: the histogram was full; a larger one "
			   "(size) has room for more",
			   h->dropped, plural(h->dropped, " is", "s are"));
	if (x->entries != h->entry_count || x->damaged)
		table_note(x->table,
			   "the rows may be wrong: the kernel made %" PRIu64
			   " entries, and %" PRIu64 " were found in its text",
			   h->entry_count, x->entries);
	else if (x->hits != h->hits && !x->r->report.env->goes_on)
		table_note(x->table,
			   "the rows have %" PRIu64
			   " hit%s: events came while they were read, or a "
			   "key's text looks like the kernel's own",
			   x->hits, plural_s(x->hits));
}

static int hist_make_table(struct hist_reading *x, struct table **ret)
{
	struct column columns[COLUMNS_MAX];
	bool ranges = false;
	size_t count;
	int r;

	for (size_t i = 0; i < HIST_TEXT_FIELDS_MAX; i++)
		x->r->is_number[i] = true;
	hist_read(x, hist_judge_entry);
	count = hist_make_columns(x, columns, &ranges);
	r = table_new(ret, x->r->title, columns, count, ranges ? NULL : "hitcount");
	if (r < 0)
		return r;
	table_define(*ret, x->r->definition);
	if (ranges)
		table_sort_by_keys(*ret);
	table_counts_on(*ret);
	x->table = *ret;
	hist_read(x, hist_put_entry);
	hist_put_totals(x);
	return 0;
}

/* A text that can't be read has no rows, but a reason. */
static int hist_make_note(struct hist_report *r, struct table **ret)
{
	static const struct column column = COLUMN("hitcount", COLUMN_COUNT);
	int e = table_new(ret, r->title, &column, 1, NULL);

	if (e == 0)
		table_note(*ret, "the text of this histogram is damaged, or of an unknown form: "
				 "its entries are missing");
	return e;
}

static int hist_close(struct report *report, struct table **ret)
{
	struct hist_report *r = container_of(report, struct hist_report, report);
	const Traced__Capture__Histogram *message;
	struct hist_text h = { 0 };
	struct hist_reading x = { .r = r, .h = &h };
	size_t count;
	int e;

	message = hist_find(report->env->info, r->number, &h, &count);
	if (!message)
		return -EBADMSG;
	e = hist_make_title(r, message->event, &h);
	if (e == 0 && !h.key_count)
		return hist_make_note(r, ret);
	if (e == 0)
		e = hist_make_definition(r, h.trigger);
	return e < 0 ? e : hist_make_table(&x, ret);
}

/* The kernel goes on counting. */
static int hist_renew(struct report *report _unused_)
{
	return 0;
}

static void hist_free(struct report *report)
{
	struct hist_report *r = container_of(report, struct hist_report, report);

	free(r->title);
	free(r->definition);
	free(r);
}

const struct report_kind report_hist = {
	.about = {
		.name = "hist",
		.summary = "histograms that the kernel made (record --hist)",
		.is_usual = true,
		.events = "--hist sched_switch:keys=next_comm",
	},
	.count = hist_count,
	.open = hist_open,
	.close = hist_close,
	.renew = hist_renew,
	.free = hist_free,
};
