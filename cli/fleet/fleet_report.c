/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl fleet report`: one order's reports of all boards, added up, behind a table of the
 * boards that are far from the rest. The files come from a store, so they are parsed as `report
 * --merge` does, from a copy of the bytes that were compared with their names.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/plural.h"
#include "base/search.h"
#include "base/vec.h"
#include "confined.h"
#include "fleet.h"
#include "fleet/rows.h"
#include "fleet_results.h"
#include "input.h"
#include "report/merge.h"
#include "report/outliers.h"
#include "report/rows.h"
#include "reports/named_reports.h"

/* Rows of each table for people. */
#define SHOWN_ROWS 10
/* Other boards that can't be added are left out; each one costs another pass. */
#define PASSES_MAX 16
/*
 * Bounds of memory: report_merge_memory(). Reports of 87 kB take 0.1 MiB. Boards share rows with
 * equal keys; for the other ones all have this much, or so much for each.
 */
#define BOARD_MEMORY_MAX (UINT64_C(16) << 20)
#define MEMORY_MAX (UINT64_C(64) << 20)
#define MEMORY_EACH (UINT64_C(16) << 10)

struct surveyed_board {
	size_t from, to; /* its results */
	uint64_t memory; /* that its reports take alone */
	bool is_out;
};

/* A board's report, or its clock, by report_merge_visit_forms(). */
struct board_form {
	uint64_t report, form;
	size_t board;
	size_t at; /* in the order of boards, and of their reports */
};

/* A board's p99 of a distribution. */
struct board_measure {
	struct row_key key; /* of report and column */
	size_t board;
	uint64_t value;
	bool is_taken; /* by a report of that name */
};

/* The boards that have a report: forms from `from` up to `to`. */
struct board_group {
	size_t from, to;
	size_t boards; /* those that are not left out */
	size_t first;  /* the first one's `at` */
};

struct surveying {
	const struct report_options *options;
	struct fleet_results *results;
	int fd;			       /* the results' content */
	int json_fd;		       /* that of one whose reports are rows */
	struct surveyed_board *boards; /* owned; by name */
	size_t board_count, board_cap;
	struct buf notes;	   /* why they are: strings */
	struct outliers *outliers; /* owned */
	struct board_form *forms;  /* owned */
	size_t form_count, form_cap;
	struct board_measure *measures; /* owned */
	size_t measure_count, measure_cap;
};

static void surveying_deinit(struct surveying *s)
{
	free(s->boards);
	buf_deinit(&s->notes);
	outliers_free(s->outliers);
	free(s->forms);
	free(s->measures);
	close_fd(s->fd);
	close_fd(s->json_fd);
}

static bool is_board_of(const struct fleet_result *a, const struct fleet_result *b)
{
	return !strcmp(a->name.board, b->name.board);
}

static int surveying_add_rows(struct surveying *s, struct report_merge *merge,
			      const struct fleet_result *result, struct error *err)
{
	uint64_t size;
	int r = 0;

	if (lseek(s->json_fd, 0, SEEK_SET) < 0)
		return error_errno(err, -errno, "%s", result->path);
	r = rows_unpack(s->fd, result->size, s->json_fd, FLEET_FILE_MAX, &size, err);
	if (r < 0)
		return error_prefix(err, "%s", result->name.board);
	lseek(s->json_fd, 0, SEEK_SET);
	return report_merge_add_part(merge, s->json_fd, size, result->name.board, err);
}

static int surveying_add(struct surveying *s, struct report_merge *merge, size_t i,
			 struct error *err)
{
	const struct fleet_result *result = &s->results->items[i];

	if (lseek(s->fd, (off_t)result->offset, SEEK_SET) < 0)
		return error_errno(err, -errno, "%s", result->path);
	if (result->name.is_packed)
		return surveying_add_rows(s, merge, result, err);
	return report_merge_add_part(merge, s->fd, result->size, result->name.board, err);
}

static const char *surveying_name(const struct surveying *s, const struct surveyed_board *board)
{
	return s->results->items[board->from].name.board;
}

/* why: begins with the board. CSV has no notes. */
static int surveying_leave_out(struct surveying *s, struct surveyed_board *board, const char *why)
{
	board->is_out = true;
	buf_printf(&s->notes, "left out: %s", why ?: "out of memory");
	buf_putc(&s->notes, '\0');
	if (s->options->form == REPORT_CSV)
		cli_warn("left out: %s", why ?: "out of memory");
	return buf_error(&s->notes);
}

static int surveying_leave_out_for(struct surveying *s, size_t board, const char *why)
{
	struct surveyed_board *b = &s->boards[board];
	_cleanup_error_ struct error err = ERROR_INIT;

	if (b->is_out)
		return 0;
	error_set(&err, -EINVAL, "%s: %s", surveying_name(s, b), why);
	return surveying_leave_out(s, b, err.message);
}

struct board_visit {
	struct surveying *surveying;
	size_t board;
};

static int surveying_key(const char *report, const char *column, struct row_key *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_puts(&text, report);
	buf_putc(&text, '\0');
	buf_puts(&text, column);
	*ret = row_key_of_text((struct text){ text.data, (uint32_t)text.len });
	return buf_error(&text);
}

static int surveying_visit(void *userdata, const char *report, const char *column,
			   const struct histogram *all)
{
	const struct board_visit *v = userdata;
	struct surveying *s = v->surveying;
	struct board_measure m = { .board = v->board, .value = histogram_quantile(all, 0.99) };
	int r = all->count ? surveying_key(report, column, &m.key) : 0;

	return all->count && r == 0 ? vec_push(s->measures, s->measure_count, s->measure_cap, m)
				    : r;
}

static int surveying_visit_form(void *userdata, uint64_t report, uint64_t form)
{
	const struct board_visit *v = userdata;
	struct surveying *s = v->surveying;
	const struct board_form f = { report, form, v->board, s->form_count };

	return vec_push(s->forms, s->form_count, s->form_cap, f);
}

static int surveying_measure(struct surveying *s, size_t board, struct error *err)
{
	_cleanup_(report_merge_freep) struct report_merge *merge = NULL;
	struct board_visit visit = { s, board };
	struct surveyed_board *b = &s->boards[board];
	int r = report_merge_new(&merge);

	if (r == 0) {
		report_merge_join_machines(merge);
		report_merge_bound(merge, FLEET_FILE_MAX, BOARD_MEMORY_MAX);
	}
	for (size_t i = b->from; i < b->to && r == 0; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;

		r = surveying_add(s, merge, i, &why);
		if (r == -ENOMEM)
			return error_move(err, &why);
		/* One such file leaves out its board. */
		if (r < 0)
			return surveying_leave_out(s, b, why.message);
	}
	if (r == 0) {
		b->memory = report_merge_memory(merge);
		r = report_merge_visit(merge, surveying_visit, &visit);
	}
	if (r == 0)
		r = report_merge_visit_forms(merge, surveying_visit_form, &visit);
	return r < 0 ? error_errno(err, r, "can't measure boards") : 0;
}

static int surveying_measure_all(struct surveying *s, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < s->board_count && r == 0; i++)
		r = surveying_measure(s, i, err);
	return r;
}

static int compare_forms(const void *a, const void *b)
{
	const struct board_form *x = a, *y = b;

	if (x->report != y->report)
		return x->report < y->report ? -1 : 1;
	if (x->form != y->form)
		return x->form < y->form ? -1 : 1;
	return (x->board > y->board) - (x->board < y->board);
}

/* How many of the boards that have forms from `from` up to `to` are not left out. */
static size_t surveying_count(const struct surveying *s, size_t from, size_t to)
{
	size_t count = 0;

	for (size_t i = from; i < to; i++)
		count += !s->boards[s->forms[i].board].is_out;
	return count;
}

/* Returns the first `at` of these boards, or SIZE_MAX. */
static size_t surveying_first(const struct surveying *s, size_t from, size_t to)
{
	size_t first = SIZE_MAX;

	for (size_t i = from; i < to; i++)
		if (!s->boards[s->forms[i].board].is_out)
			first = MIN(first, s->forms[i].at);
	return first;
}

/* All forms of a report: leaves out the boards that lack the usual one. */
static int surveying_keep_usual(struct surveying *s, const struct board_group *g)
{
	const struct board_form *f = s->forms;
	size_t usual = g->from, most = 0, first = SIZE_MAX, count, at;
	int r = 0;

	for (size_t i = g->from, next; i < g->to; i = next) {
		for (next = i; next < g->to && f[next].form == f[i].form; next++)
			;
		count = surveying_count(s, i, next);
		at = surveying_first(s, i, next);
		if (count > most || (count == most && at < first)) {
			most = count;
			first = at;
			usual = i;
		}
	}
	for (size_t i = g->from; i < g->to && r == 0; i++)
		if (f[i].form != f[usual].form)
			r = surveying_leave_out_for(
				s, f[i].board,
				f[i].report ? "its reports have other columns than those of most "
					      "boards"
					    : "its times are on another clock than those of most "
					      "boards");
	return r;
}

/* The reports that most boards have come first; in a tie those of the first board. */
static int compare_groups(const void *a, const void *b)
{
	const struct board_group *x = a, *y = b;

	if (x->boards != y->boards)
		return x->boards > y->boards ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/*
 * Sorts the groups: their votes depend on one another, and forms have another order in each run. A
 * merge takes REPORTS_MAX reports: leaves out the boards that have rarer ones.
 */
static int surveying_keep_common(struct surveying *s, struct board_group *groups, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		groups[i].boards = surveying_count(s, groups[i].from, groups[i].to);
		groups[i].first = surveying_first(s, groups[i].from, groups[i].to);
	}
	if (count)
		qsort(groups, count, sizeof(*groups), compare_groups);
	for (size_t i = REPORTS_MAX; i < count; i++)
		for (size_t n = groups[i].from; n < groups[i].to && r == 0; n++)
			r = surveying_leave_out_for(s, s->forms[n].board,
						    "it has a report that few boards have, and all "
						    "boards have too many");
	return r;
}

/* A single board could hide all others if the first one's clock, reports and columns counted. */
static int surveying_choose_forms(struct surveying *s, struct error *err)
{
	_cleanup_free_ struct board_group *groups = NULL;
	size_t count = 0, cap = 0;
	int r = 0;

	if (s->form_count)
		qsort(s->forms, s->form_count, sizeof(*s->forms), compare_forms);
	for (size_t i = 0, next; i < s->form_count && r == 0; i = next) {
		struct board_group g = { .from = i };

		for (next = i; next < s->form_count && s->forms[next].report == s->forms[i].report;
		     next++)
			;
		g.to = next;
		r = s->forms[i].report ? vec_push(groups, count, cap, g)
				       : surveying_keep_usual(s, &g);
	}
	if (r == 0)
		r = surveying_keep_common(s, groups, count);
	for (size_t i = 0; i < count && r == 0; i++)
		r = surveying_keep_usual(s, &groups[i]);
	return r < 0 ? error_errno(err, r, "can't compare boards") : 0;
}

static int compare_board_names(const void *a, const void *b)
{
	const struct surveyed_board *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static int compare_boards(const void *a, const void *b)
{
	const struct surveyed_board *x = a, *y = b;

	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	return compare_board_names(a, b);
}

static int surveying_merge_board(struct surveying *s, struct report_merge *merge,
				 struct surveyed_board *board, struct error *why)
{
	const uint64_t max = MAX(MEMORY_MAX, s->board_count * MEMORY_EACH);
	int r = 0;

	if (report_merge_memory(merge) + board->memory > max)
		return surveying_leave_out_for(s, (size_t)(board - s->boards),
					       "with its reports, those of all boards would take "
					       "too much memory");
	for (size_t i = board->from; i < board->to && r == 0; i++)
		r = surveying_add(s, merge, i, why);
	return r;
}

/* 1: a board is left out: begin again. */
static int surveying_merge(struct surveying *s, struct report_merge **ret, struct error *err)
{
	_cleanup_(report_merge_freep) struct report_merge *merge = NULL;
	int r = report_merge_new(&merge);

	if (r < 0)
		return error_errno(err, r, "can't merge reports");
	report_merge_join_machines(merge);
	/* Each board has its own bounds. */
	report_merge_bound(merge, UINT64_MAX, UINT64_MAX);
	for (size_t i = 0; i < s->board_count; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;

		if (s->boards[i].is_out)
			continue;
		r = surveying_merge_board(s, merge, &s->boards[i], &why);
		if (r == -ENOMEM)
			return error_errno(err, r, "can't merge reports");
		if (r < 0)
			return surveying_leave_out(s, &s->boards[i], why.message) < 0
				       ? error_errno(err, -ENOMEM, "can't merge reports")
				       : 1;
	}
	*ret = TAKE_PTR(merge);
	return 0;
}

/* Boards with many rows come last, so that they are those that memory does not suffice for. */
static int surveying_merge_all(struct surveying *s, struct report_merge **ret, struct error *err)
{
	int r, passes = 0;

	qsort(s->boards, s->board_count, sizeof(*s->boards), compare_boards);
	do
		r = surveying_merge(s, ret, err);
	while (r > 0 && ++passes < PASSES_MAX);
	qsort(s->boards, s->board_count, sizeof(*s->boards), compare_board_names);
	return r > 0 ? error_set(err, -EINVAL, "the boards' reports differ: %s", s->notes.data) : r;
}

static int compare_measures(const void *a, const void *b)
{
	const struct board_measure *x = a, *y = b;
	int r = memcmp(&x->key, &y->key, sizeof(x->key));

	return r ?: (x->board > y->board) - (x->board < y->board);
}

/* A distribution of all boards: compares those that are not left out. */
static int surveying_compare(void *userdata, const char *report, const char *column,
			     const struct histogram *all _unused_)
{
	struct surveying *s = userdata;
	struct board_measure key = { 0 };
	size_t at;
	int r = surveying_key(report, column, &key.key);

	at = lower_bound(i, s->measure_count, compare_measures(&s->measures[i], &key) < 0);
	for (; at < s->measure_count && r == 0; at++) {
		struct board_measure *m = &s->measures[at];
		const struct surveyed_board *board = &s->boards[m->board];

		if (memcmp(&m->key, &key.key, sizeof(key.key)) != 0)
			break;
		if (!board->is_out && !m->is_taken)
			r = outliers_add(s->outliers, report, column, surveying_name(s, board),
					 m->value);
		m->is_taken = true;
	}
	return r;
}

static int surveying_find_outliers(struct surveying *s, const struct report_merge *merge,
				   struct error *err)
{
	int r = outliers_new(&s->outliers);

	if (s->measure_count)
		qsort(s->measures, s->measure_count, sizeof(*s->measures), compare_measures);
	if (r == 0)
		r = report_merge_visit(merge, surveying_compare, s);
	return r < 0 ? error_errno(err, r, "can't compare boards") : 0;
}

static size_t surveying_boards(const struct surveying *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->board_count; i++)
		count += !s->boards[i].is_out;
	return count;
}

static int surveying_write(struct surveying *s, struct report_merge *merge, struct buf *out,
			   struct error *err)
{
	const struct report_options *o = s->options;
	const struct result_name *name = &s->results->items[0].name;
	_cleanup_(table_freep) struct table *table = NULL;
	int r = outliers_table(s->outliers, &table);

	if (r < 0)
		return error_errno(err, r, "can't compare boards");
	table_note(table, "order %llu of %s, boards: %zu", (unsigned long long)name->order,
		   name->fleet, surveying_boards(s));
	for (size_t at = 0; at < s->notes.len; at += strlen(s->notes.data + at) + 1)
		table_note(table, "%s", s->notes.data + at);
	report_merge_put_first(merge, table);
	r = report_merge_write(merge, o, out, err);
	report_merge_put_first(merge, NULL);
	return r;
}

/* Parses the files; for root in a process of its own. */
static int surveying_work(void *userdata, struct export_result *ret, struct error *err)
{
	struct surveying *s = userdata;
	_cleanup_(report_merge_freep) struct report_merge *merge = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r = surveying_measure_all(s, err);

	if (r == 0)
		r = surveying_choose_forms(s, err);
	if (r == 0)
		r = surveying_merge_all(s, &merge, err);
	if (r == 0)
		r = surveying_find_outliers(s, merge, err);
	if (r == 0)
		r = surveying_write(s, merge, &out, err);
	if (r < 0)
		return r;
	ret->bytes = out.len;
	r = report_merge_tell(merge, ret);
	ret->incomplete |= s->notes.len != 0;
	if (r == 0)
		r = write_full(STDOUT_FILENO, out.data, out.len);
	return r < 0 ? error_errno(err, r, "can't write the report") : 0;
}

static int surveying_find_boards(struct surveying *s)
{
	const struct fleet_results *all = s->results;
	int r = 0;

	for (size_t i = 0, next; i < all->count && r == 0; i = next) {
		struct surveyed_board board = { .from = i };

		for (next = i + 1; next < all->count; next++)
			if (!is_board_of(&all->items[i], &all->items[next]))
				break;
		board.to = next;
		r = vec_push(s->boards, s->board_count, s->board_cap, board);
	}
	return r;
}

static int surveying_open(struct surveying *s, const char *folder, struct error *err)
{
	const struct fleet_result *items;
	int r = fleet_results_find(s->results, folder, RESULT_REPORTS, err);

	if (r < 0)
		return r;
	items = s->results->items;
	for (size_t i = 1; i < s->results->count; i++)
		if (items[i].name.order != items[0].name.order ||
		    strcmp(items[i].name.fleet, items[0].name.fleet) != 0) {
			error_set(err, -EINVAL, "%s has results of several orders", folder);
			return error_hint(err, "name one: %s/fleet=%s/order=%llu", folder,
					  items[0].name.fleet,
					  (unsigned long long)items[0].name.order);
		}
	s->fd = input_create_temp();
	s->json_fd = input_create_temp();
	if (s->fd < 0 || s->json_fd < 0)
		return error_errno(err, MIN(s->fd, s->json_fd), "%s", input_temp_place());
	r = fleet_results_gather(s->results, s->fd, err);
	if (r < 0)
		return r;
	if (!s->results->count)
		return error_set(err, -EBADMSG, "%s has no report that is what its name says",
				 folder);
	r = surveying_find_boards(s);
	return r < 0 ? error_errno(err, r, "%s", folder) : 0;
}

int fleet_report(const struct options *o)
{
	_cleanup_fleet_results_ struct fleet_results results = { 0 };
	_cleanup_(named_reports_deinit) struct named_reports reports = { 0 };
	_cleanup_(surveying_deinit) struct surveying s = {
		.options = &reports.options, .results = &results, .fd = -EBADF, .json_fd = -EBADF
	};
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	uint64_t gaps;

	if (o->arg_count != 2) {
		error_set(&err, -EINVAL, "fleet report takes one folder");
		error_hint(&err, "tracectl fleet report results/fleet=doors/order=17");
		return cli_usage(&err);
	}
	if (named_reports_init(&reports, o, NULL, 0, &err) < 0)
		return cli_usage(&err);
	reports.options.form = o->json ? REPORT_JSON : o->csv ? REPORT_CSV : REPORT_TEXT;
	if (reports.options.form == REPORT_TEXT && !reports.options.top)
		reports.options.top = SHOWN_ROWS;
	if (surveying_open(&s, o->args[1], &err) < 0)
		return cli_fail(&err);
	input_confine(-EBADF);
	if (confined_run(surveying_work, &s, &result, &err) < 0)
		return cli_fail(&err);
	gaps = export_result_gaps(&result);
	if (result.lost)
		cli_warn("events were lost on the boards: %" PRIu64, result.lost);
	else if (gaps)
		cli_warn("events were lost on the boards at %" PRIu64 " place%s (count unknown)",
			 gaps, plural_s(gaps));
	return results.refused || result.incomplete ? CLI_MISSING : CLI_WHOLE;
}
