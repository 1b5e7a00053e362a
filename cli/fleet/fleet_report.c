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
#include "base/vec.h"
#include "confined.h"
#include "fleet.h"
#include "fleet/rows.h"
#include "fleet_results.h"
#include "input.h"
#include "report/merge.h"
#include "report/outliers.h"
#include "reports/named_reports.h"

/* Rows of each table for people. */
#define SHOWN_ROWS 10
/* Other boards that can't be added are left out; each one costs another pass. */
#define PASSES_MAX 16

/* A board's report, by report_merge_visit_forms(). */
struct board_form {
	uint64_t report, form;
	size_t result; /* the board's first one */
};

struct surveying {
	const struct report_options *options;
	struct fleet_results *results;
	int fd;			   /* the results' content */
	int json_fd;		   /* that of one whose reports are rows */
	bool *is_out;		   /* owned; of each result */
	struct buf notes;	   /* why they are: strings */
	struct outliers *outliers; /* owned */
	struct board_form *forms;  /* owned */
	size_t form_count, form_cap;
};

static void surveying_deinit(struct surveying *s)
{
	free(s->is_out);
	buf_deinit(&s->notes);
	outliers_free(s->outliers);
	free(s->forms);
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

static int surveying_leave_out(struct surveying *s, size_t i, const struct error *why)
{
	s->is_out[i] = true;
	buf_printf(&s->notes, "left out: %s", why->message ?: "out of memory");
	buf_putc(&s->notes, '\0');
	return buf_error(&s->notes);
}

struct board_visit {
	struct surveying *surveying;
	size_t result;
};

static int surveying_visit(void *userdata, const char *report, const char *column,
			   const struct histogram *all)
{
	const struct board_visit *v = userdata;

	return all->count ? outliers_add(v->surveying->outliers, report, column,
					 v->surveying->results->items[v->result].name.board,
					 histogram_quantile(all, 0.99))
			  : 0;
}

static int surveying_visit_form(void *userdata, uint64_t report, uint64_t form)
{
	const struct board_visit *v = userdata;
	struct surveying *s = v->surveying;
	const struct board_form f = { report, form, v->result };

	return vec_push(s->forms, s->form_count, s->form_cap, f);
}

/* The measures of the board that has the results from `from` up to `to`. */
static int surveying_measure(struct surveying *s, size_t from, size_t to, struct error *err)
{
	_cleanup_(report_merge_freep) struct report_merge *merge = NULL;
	struct board_visit visit = { s, from };
	int r = report_merge_new(&merge);

	for (size_t i = from; i < to && r == 0; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;

		r = surveying_add(s, merge, i, &why);
		if (r == -ENOMEM)
			return error_move(err, &why);
		/* Nothing of a board that sends such a file. */
		for (size_t k = from; k < to && r < 0; k++)
			s->is_out[k] = true;
		if (r < 0)
			return surveying_leave_out(s, i, &why);
	}
	if (r == 0)
		r = report_merge_visit(merge, surveying_visit, &visit);
	if (r == 0)
		r = report_merge_visit_forms(merge, surveying_visit_form, &visit);
	return r < 0 ? error_errno(err, r, "can't measure boards") : 0;
}

static int surveying_measure_all(struct surveying *s, struct error *err)
{
	const struct fleet_results *all = s->results;
	int r = 0;

	for (size_t i = 0, next; i < all->count && r == 0; i = next) {
		for (next = i + 1; next < all->count; next++)
			if (!is_board_of(&all->items[i], &all->items[next]))
				break;
		r = surveying_measure(s, i, next, err);
	}
	return r;
}

static int board_form_compare(const void *a, const void *b)
{
	const struct board_form *x = a, *y = b;

	if (x->report != y->report)
		return x->report < y->report ? -1 : 1;
	if (x->form != y->form)
		return x->form < y->form ? -1 : 1;
	return (x->result > y->result) - (x->result < y->result);
}

static int surveying_leave_out_board(struct surveying *s, size_t first)
{
	const struct fleet_results *all = s->results;

	if (s->is_out[first])
		return 0;
	for (size_t i = first; i < all->count && is_board_of(&all->items[first], &all->items[i]);
	     i++)
		s->is_out[i] = true;
	buf_printf(&s->notes,
		   "left out: %s: its reports have other columns than those of most boards",
		   all->items[first].name.board);
	buf_putc(&s->notes, '\0');
	return buf_error(&s->notes);
}

/* All forms of a report, from `from` up to `to`: leaves out the boards that lack the usual one. */
static int surveying_keep_usual(struct surveying *s, size_t from, size_t to)
{
	const struct board_form *f = s->forms;
	size_t usual = from, most = 0;
	int r = 0;

	for (size_t i = from, next; i < to; i = next) {
		for (next = i; next < to && f[next].form == f[i].form; next++)
			;
		if (next - i > most || (next - i == most && f[i].result < f[usual].result)) {
			most = next - i;
			usual = i;
		}
	}
	for (size_t i = from; i < to && r == 0; i++)
		if (f[i].form != f[usual].form)
			r = surveying_leave_out_board(s, f[i].result);
	return r;
}

/* A single board could hide all others if the first one's columns counted. */
static int surveying_choose_forms(struct surveying *s, struct error *err)
{
	int r = 0;

	qsort(s->forms, s->form_count, sizeof(*s->forms), board_form_compare);
	for (size_t i = 0, next; i < s->form_count && r == 0; i = next) {
		for (next = i; next < s->form_count && s->forms[next].report == s->forms[i].report;
		     next++)
			;
		r = surveying_keep_usual(s, i, next);
	}
	return r < 0 ? error_errno(err, r, "can't compare boards") : 0;
}

/* 1: a board is left out: begin again. */
static int surveying_merge(struct surveying *s, struct report_merge **ret, struct error *err)
{
	_cleanup_(report_merge_freep) struct report_merge *merge = NULL;
	int r = report_merge_new(&merge);

	if (r < 0)
		return error_errno(err, r, "can't merge reports");
	report_merge_join_machines(merge);
	for (size_t i = 0; i < s->results->count; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;

		if (s->is_out[i])
			continue;
		r = surveying_add(s, merge, i, &why);
		if (r == -ENOMEM)
			return error_move(err, &why);
		if (r < 0)
			return surveying_leave_out(s, i, &why) < 0
				       ? error_errno(err, -ENOMEM, "can't merge reports")
				       : 1;
	}
	*ret = TAKE_PTR(merge);
	return 0;
}

static size_t surveying_boards(const struct surveying *s)
{
	const struct fleet_results *all = s->results;
	size_t count = 0;

	for (size_t i = 0; i < all->count; i++)
		count += !s->is_out[i] && (!i || s->is_out[i - 1] ||
					   !is_board_of(&all->items[i], &all->items[i - 1]));
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
	int r = outliers_new(&s->outliers), passes = 0;

	if (r < 0)
		return error_errno(err, r, "can't compare boards");
	r = surveying_measure_all(s, err);
	if (r == 0)
		r = surveying_choose_forms(s, err);
	if (r == 0)
		do
			r = surveying_merge(s, &merge, err);
		while (r > 0 && ++passes < PASSES_MAX);
	if (r > 0)
		r = error_set(err, -EINVAL, "the boards' reports differ: %s", s->notes.data);
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
	s->is_out = calloc(s->results->count, sizeof(*s->is_out));
	return s->is_out ? 0 : error_errno(err, -ENOMEM, "%s", folder);
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
			 gaps, gaps == 1 ? "" : "s");
	return results.refused || result.incomplete ? CLI_MISSING : CLI_WHOLE;
}
