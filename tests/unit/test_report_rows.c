/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables that do not keep all of their rows, and how their cells are written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "export/output.h"
#include "memory_file.h"
#include "random_series.h"
#include "report/cell_text.h"
#include "report/table.h"

#define ROWS 30000U
#define KEPT 500U

/* The text stands for the time; half a unit of the last digit may be rounded either way. */
static void check_time(uint64_t ns)
{
	char text[12 + CELL_ROOM], unit[8];
	double value, factor;

	*cell_write_time(text, ns, 12) = '\0';
	assert_true(strlen(text) >= 12);
	assert_int_equal(sscanf(text, "%lf %7s", &value, unit), 2);
	if (ns < 1000) {
		assert_string_equal(unit, "ns");
		assert_true(value == (double)ns);
		return;
	}
	factor = !strcmp(unit, "us") ? 1e3 : !strcmp(unit, "ms") ? 1e6 : 1e9;
	/* Four digits, and less than 1000 of each unit but the last. */
	assert_true(value >= 1 && (value < 1000 || factor > 1e8));
	if (value < 1000)
		assert_int_equal(strcspn(text + strspn(text, " "), " "), 5);
	assert_true(fabs(value * factor - (double)ns) <= MAX((double)ns * 0.00050001, 0.5));
	if (value >= 1000)
		assert_true(fabs(value * factor - (double)ns) <= 0.0500001e9);
}

static void times_have_four_digits(void **state _unused_)
{
	static const uint64_t edges[] = { 1000,	    9999,     10000,	10005,	 99994,
					  99995,    999949,   999950,	9999499, 9999500,
					  99994999, 99995000, 999949999 };
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.000 us" },
		{ 99994, "99.99 us" },
		{ 99995, "100.0 us" },
		{ 999950, "1.000 ms" },
		{ 2500000, "2.500 ms" },
		{ 3000000000, "3.000 s" },
		{ UINT64_C(123456789012345), "123456.8 s" },
	};
	uint64_t series = RANDOM_FIRST;

	for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
		for (uint64_t scale = 1; scale <= 1000000; scale *= 1000)
			check_time(edges[i] * scale);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t ns = random_next(&series);

		check_time(ns >> random_next(&series) % 64);
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[CELL_ROOM];

		*cell_write_time(text, cases[i].ns, 0) = '\0';
		assert_string_equal(text, cases[i].text);
	}
}

static void numbers_are_those_of_printf(void **state _unused_)
{
	uint64_t series = RANDOM_FIRST;

	for (unsigned i = 0; i < 20000; i++) {
		const uint64_t n = random_next(&series) >> random_next(&series) % 64;
		const int64_t number = i % 2 ? (int64_t)n : -(int64_t)(n >> 1);
		const int width = (int)(random_next(&series) % 40);
		char wanted[64], text[40 + CELL_ROOM];
		_cleanup_buf_ struct buf out = BUF_INIT;

		snprintf(wanted, sizeof(wanted), "%*lld", width, (long long)number);
		*cell_write_number(text, number, (size_t)width) = '\0';
		assert_string_equal(text, wanted);
		cell_put_number(&out, number);
		assert_string_equal(buf_string(&out), wanted + strspn(wanted, " "));
		snprintf(wanted, sizeof(wanted), "%llu.%06llu", (unsigned long long)n / 1000000000,
			 (unsigned long long)n % 1000000000 / 1000);
		*cell_write_at(text, n, 0) = '\0';
		assert_string_equal(text, n ? wanted : "-");
	}
}

static void texts_are_visible(void **state _unused_)
{
	static const struct {
		const char *text, *wanted;
		bool is_short;
	} cases[] = {
		{ "", "-", true },
		{ "a", "a", true },
		{ "idle", "idle", true },
		{ "idl\x01", "idl\\x01", false },
		{ "kworker/0:1", "kworker/0:1", true },
		{ "sixteen bytes...", "sixteen bytes...", true },
		{ "seventeen bytes..", "seventeen bytes..", false },
		{ "a\x1b", "a\\x1b", false },
		{ "\x7f", "\\x7f", false },
		{ "long name\x1f", "long name\\x1f", false },
		{ "\xc3\xa4", "\xc3\xa4", false },
		{ "long n\xc3\xa4me", "long n\xc3\xa4me", false },
		{ "tab\tin a name", "tab\\tin a name", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct text text = { cases[i].text, (uint32_t)strlen(cases[i].text) };
		const size_t len = strlen(cases[i].wanted);
		_cleanup_buf_ struct buf out = BUF_INIT;
		char fast[30 + CELL_ROOM], *end = cell_write_short(fast, text, 30);

		assert_int_equal(cell_put_visible(&out, text, 60, 30),
				 cell_width(cases[i].wanted, len));
		assert_memory_equal(out.data, cases[i].wanted, len);
		assert_int_equal(cell_width(out.data, out.len), 30);
		assert_int_equal(strspn(buf_string(&out) + len, " "), out.len - len);
		assert_int_equal(end != NULL, cases[i].is_short);
		if (end) {
			assert_int_equal(end - fast, 30);
			assert_memory_equal(fast, out.data, 30);
		}
	}
}

static const struct column columns[] = {
	COLUMN("at", COLUMN_AT, .width = 8),
	COLUMN("name", COLUMN_TEXT, .width = 6),
	COLUMN("time", COLUMN_TIME, .width = 8),
};

static uint64_t time_of_row(uint64_t *series)
{
	const uint64_t n = random_next(series) % 1000;

	return n ? n : TABLE_UNKNOWN;
}

static struct table *table_of_rows(const struct report_options *o, struct output *out)
{
	uint64_t series = RANDOM_FIRST;
	struct table *t;

	assert_int_equal(table_new(&t, "test", columns, ARRAY_SIZE(columns), NULL), 0);
	table_bound(t, o, KEPT, out);
	for (uint64_t i = 1; i <= ROWS; i++) {
		const uint64_t time = time_of_row(&series);
		char name[16];
		const union cell_value values[] = {
			{ .count = i },
			{ .text = { name, (uint32_t)snprintf(name, sizeof(name), "n%llu",
							     (unsigned long long)i) } },
			{ .count = time },
		};

		assert_int_equal(table_put_row(t, values), 0);
	}
	return t;
}

/* The JSON of a table that was bounded; freed by the caller. */
static json_t *json_of_rows(struct report_options o, struct output *output)
{
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_buf_ struct buf own = BUF_INIT;
	struct buf *out = output ? &output->buf : &own;
	json_t *document;

	o.form = REPORT_JSON;
	t = table_of_rows(&o, output);
	assert_int_equal(table_write(t, &o, true, out, NULL), 0);
	if (output) {
		assert_int_equal(output_flush(output, true), 0);
		memory_file_read(output->file.fd, &own);
	}
	document = json_loads(buf_string(&own), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	return document;
}

static uint64_t of_row(const json_t *document, size_t row, const char *key)
{
	return (uint64_t)json_integer_value(
		json_object_get(json_array_get(json_object_get(document, "rows"), row), key));
}

static void check_note(const json_t *document, unsigned shown)
{
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "%u of %u rows are shown", shown, ROWS);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(document, "notes"), 0)), wanted);
}

static void the_first_rows_are_kept(void **state _unused_)
{
	json_t *document = json_of_rows((struct report_options){ 0 }, NULL);

	assert_int_equal(json_array_size(json_object_get(document, "rows")), KEPT);
	for (size_t i = 0; i < KEPT; i++)
		assert_int_equal(of_row(document, i, "at_ns"), i + 1);
	check_note(document, KEPT);
	json_decref(document);
}

struct row {
	uint64_t at, time;
};

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? 1 : -1;
	return (a->at > b->at) - (a->at < b->at);
}

/* The largest of all rows; of equal ones the first. */
static void the_largest_rows_are_kept(void **state _unused_)
{
	static const unsigned tops[] = { 0, 1, 7, KEPT, 2 * KEPT };
	static struct row rows[ROWS];
	uint64_t series = RANDOM_FIRST;

	for (size_t i = 0; i < ROWS; i++) {
		rows[i] = (struct row){ i + 1, time_of_row(&series) };
		if (rows[i].time == TABLE_UNKNOWN)
			rows[i].time = 0;
	}
	qsort(rows, ROWS, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
		const struct report_options o = { .sort = "time", .top = tops[i] };
		const unsigned wanted = MIN(tops[i] ?: KEPT, KEPT);
		json_t *document = json_of_rows(o, NULL);

		assert_int_equal(json_array_size(json_object_get(document, "rows")), wanted);
		for (size_t k = 0; k < wanted; k++)
			assert_int_equal(of_row(document, k, "at_ns"), rows[k].at);
		check_note(document, wanted);
		json_decref(document);
	}
}

static void output_begin(struct output *out)
{
	assert_int_equal(output_init(out, memory_file("", 0), false), 0);
}

static void output_end(struct output *out)
{
	int fd = out->file.fd;

	output_deinit(out);
	close(fd);
}

static void rows_are_written_as_they_come(void **state _unused_)
{
	struct output out;
	json_t *document;

	output_begin(&out);
	document = json_of_rows((struct report_options){ 0 }, &out);
	assert_int_equal(json_array_size(json_object_get(document, "rows")), ROWS);
	for (size_t i = 0; i < ROWS; i++)
		assert_int_equal(of_row(document, i, "at_ns"), i + 1);
	assert_int_equal(json_array_size(json_object_get(document, "notes")), 0);
	json_decref(document);
	output_end(&out);
	output_begin(&out);
	document = json_of_rows((struct report_options){ .top = 10 }, &out);
	assert_int_equal(json_array_size(json_object_get(document, "rows")), 10);
	check_note(document, 10);
	json_decref(document);
	output_end(&out);
	/* Rows to be sorted are kept. */
	output_begin(&out);
	document = json_of_rows((struct report_options){ .sort = "time" }, &out);
	assert_int_equal(json_array_size(json_object_get(document, "rows")), KEPT);
	json_decref(document);
	output_end(&out);
}

/* A long value does not shift the rows behind it, and later rows are aligned with it. */
static void columns_grow(void **state _unused_)
{
	static const union cell_value rows[][3] = {
		{ { .count = 1000000000 }, { .text = TEXT("a") }, { .count = 5 } },
		{ { .count = 2000000000 }, { .text = TEXT("longer name") }, { .count = 1500 } },
		{ { .count = 20000000000 }, { .text = TEXT("b") }, { .count = TABLE_UNKNOWN } },
	};
	const struct report_options o = { 0 };
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct output out;

	output_begin(&out);
	assert_int_equal(table_new(&t, "test", columns, ARRAY_SIZE(columns), NULL), 0);
	table_bound(t, &o, KEPT, &out);
	assert_true(table_is_empty(t));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(table_put_row(t, rows[i]), 0);
	assert_false(table_is_empty(t));
	table_note(t, "a note");
	assert_int_equal(table_write(t, &o, true, &out.buf, NULL), 0);
	assert_int_equal(output_flush(&out, true), 0);
	memory_file_read(out.file.fd, &text);
	assert_string_equal(buf_string(&text), "test\n"
					       "      at  name        time\n"
					       "1.000000  a           5 ns\n"
					       "2.000000  longer name  1.500 us\n"
					       "20.000000  b                   -\n"
					       "a note\n");
	output_end(&out);
}

/* The text of 50 rows, of which those up to `released` wait, 20 at most. */
static void write_held_rows(struct report_options o, uint64_t released, struct buf *text)
{
	_cleanup_(table_freep) struct table *t = NULL;
	bool release = false;
	struct output out;

	output_begin(&out);
	assert_int_equal(table_new(&t, "test", columns, ARRAY_SIZE(columns), NULL), 0);
	table_bound(t, &o, 20, &out);
	if (released)
		table_hold(t, &release);
	for (uint64_t i = 1; i <= 50; i++) {
		const union cell_value values[] = { { .count = i },
						    { .text = TEXT("name") },
						    { .count = i } };

		release = i >= released;
		assert_int_equal(table_put_row(t, values), 0);
		/* The first ones of --top are fewer than those that may wait. */
		if (!o.top || (!release && i <= 20))
			assert_int_equal(out.buf.len == 0, !release && i <= 20);
	}
	release = true;
	assert_int_equal(table_write(t, &o, true, &out.buf, NULL), 0);
	assert_int_equal(output_flush(&out, true), 0);
	memory_file_read(out.file.fd, text);
	output_end(&out);
}

static void rows_that_wait(void **state _unused_)
{
	static const uint64_t released[] = { 1, 2, 20, 21, 22, 50, 51 };

	for (int form = REPORT_TEXT; form <= REPORT_CSV; form++)
		for (uint64_t top = 0; top <= 60; top += 12) {
			const struct report_options o = { .form = (enum report_form)form,
							  .top = top };
			_cleanup_buf_ struct buf wanted = BUF_INIT;

			if (form == REPORT_FRAME)
				continue;
			write_held_rows(o, 0, &wanted);
			for (size_t i = 0; i < ARRAY_SIZE(released); i++) {
				_cleanup_buf_ struct buf text = BUF_INIT;

				write_held_rows(o, released[i], &text);
				assert_string_equal(buf_string(&text), buf_string(&wanted));
			}
		}
}

static void a_failure_ends_the_rows(void **state _unused_)
{
	const struct report_options o = { .form = REPORT_CSV };
	const union cell_value values[] = { { .count = 1 },
					    { .text = TEXT("name") },
					    { .count = 2 } };
	_cleanup_(table_freep) struct table *t = NULL;
	struct output out;
	int r = 0;

	assert_int_equal(output_init(&out, -EBADF, false), 0);
	assert_int_equal(table_new(&t, "test", columns, ARRAY_SIZE(columns), NULL), 0);
	table_bound(t, &o, KEPT, &out);
	for (unsigned i = 0; i < 1000000 && r == 0; i++)
		r = table_put_row(t, values);
	assert_int_equal(r, -EBADF);
	output_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_have_four_digits),
		cmocka_unit_test(numbers_are_those_of_printf),
		cmocka_unit_test(texts_are_visible),
		cmocka_unit_test(the_first_rows_are_kept),
		cmocka_unit_test(the_largest_rows_are_kept),
		cmocka_unit_test(rows_are_written_as_they_come),
		cmocka_unit_test(columns_grow),
		cmocka_unit_test(rows_that_wait),
		cmocka_unit_test(a_failure_ends_the_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
