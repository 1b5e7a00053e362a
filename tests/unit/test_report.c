/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ground of reports: histograms, rows, fields and tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "random_series.h"
#include "report/fields.h"
#include "report/histogram.h"
#include "report/kind.h"
#include "report/rows.h"
#include "report/table.h"

#define VALUES 2000

/* A random value of a random magnitude. */
static uint64_t value_of(uint64_t *series)
{
	uint64_t v = random_next(series);

	return v >> random_next(series) % 64;
}

static int compare_values(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void buckets_are_contiguous(void **state _unused_)
{
	uint32_t last = histogram_bucket(UINT64_MAX);

	assert_int_equal(histogram_bucket(0), 0);
	assert_int_equal(last, 3775);
	for (uint32_t b = 0; b <= last; b++) {
		uint64_t from = histogram_bucket_from(b);

		assert_int_equal(histogram_bucket(from), b);
		if (b)
			assert_int_equal(histogram_bucket(from - 1), b - 1);
	}
}

static void quantiles_are_within_one_percent(void **state _unused_)
{
	static const double parts[] = { 0.01, 0.5, 0.9, 0.99, 1 };
	static uint64_t values[VALUES];
	uint64_t series = RANDOM_FIRST;

	for (unsigned round = 0; round < 20; round++) {
		struct histogram h = { 0 };
		size_t count = 1 + random_next(&series) % VALUES;

		for (size_t i = 0; i < count; i++) {
			values[i] = value_of(&series);
			assert_int_equal(histogram_add(&h, values[i]), 0);
		}
		qsort(values, count, sizeof(*values), compare_values);
		assert_int_equal(h.count, count);
		assert_int_equal(h.min, values[0]);
		assert_int_equal(h.max, values[count - 1]);
		assert_true(histogram_is_valid(&h));
		for (uint32_t i = 1; i < h.used; i++)
			assert_true(h.buckets[i - 1] >> 48 < h.buckets[i] >> 48);
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
			size_t at = (size_t)((double)count * parts[i]);
			uint64_t wanted, found = histogram_quantile(&h, parts[i]);

			at += (double)at < (double)count * parts[i];
			wanted = values[at ? at - 1 : 0];
			assert_true((double)found <= (double)wanted * 1.01);
			assert_true((double)found >= (double)wanted * 0.99);
		}
		histogram_deinit(&h);
	}
}

static void a_merge_equals_the_histogram_of_all(void **state _unused_)
{
	struct histogram all = { 0 }, parts[3] = { 0 }, merged = { 0 };
	uint64_t series = RANDOM_FIRST;

	for (unsigned i = 0; i < VALUES; i++) {
		uint64_t v = value_of(&series);

		histogram_add(&all, v);
		histogram_add(&parts[i % 3], v);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(histogram_merge(&merged, &parts[i]), 0);
	assert_int_equal(merged.count, all.count);
	assert_int_equal(merged.sum, all.sum);
	assert_int_equal(merged.min, all.min);
	assert_int_equal(merged.max, all.max);
	assert_int_equal(merged.used, all.used);
	assert_memory_equal(merged.buckets, all.buckets, all.used * sizeof(*all.buckets));
	for (unsigned i = 0; i < 3; i++)
		histogram_deinit(&parts[i]);
	histogram_deinit(&all);
	histogram_deinit(&merged);
}

static void late_values_are_in_it_once_settled(void **state _unused_)
{
	uint64_t series = RANDOM_FIRST;

	/* Few buckets have no octaves; the last values are fewer than a batch, or none. */
	for (unsigned count = 0; count <= VALUES; count += count < 20 ? 1 : VALUES / 8) {
		struct histogram at_once = { 0 }, h = { 0 };
		struct histogram_late late = { 0 };
		uint64_t at = 0, late_at = 0;

		for (unsigned i = 0; i < count; i++) {
			uint64_t v = value_of(&series);

			assert_int_equal(histogram_add_at(&at_once, v, i, &at), 0);
			assert_int_equal(histogram_add_late(&h, &late, v, i, &late_at), 0);
		}
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(histogram_settle(&h, &late), 0);
		assert_true(histogram_is_valid(&h));
		assert_int_equal(late_at, at);
		assert_int_equal(h.sum, at_once.sum);
		assert_int_equal(h.used, at_once.used);
		if (h.used)
			assert_memory_equal(h.buckets, at_once.buckets,
					    h.used * sizeof(*h.buckets));
		histogram_deinit(&at_once);
		histogram_deinit(&h);
	}
}

static void a_sum_that_overflows_stays_at_its_end(void **state _unused_)
{
	struct histogram h = { 0 };

	histogram_add(&h, UINT64_MAX);
	histogram_add(&h, 5);
	assert_int_equal(h.sum, UINT64_MAX);
	assert_int_equal(histogram_quantile(&h, 1), UINT64_MAX);
	histogram_deinit(&h);
}

static unsigned rows_ended;

static void row_end(void *row)
{
	rows_ended += (unsigned)*(uint64_t *)row;
}

static void rows_keep_their_places(void **state _unused_)
{
	static uint64_t *places[VALUES];
	struct rows r;

	rows_init(&r, sizeof(uint64_t), row_end);
	for (uint64_t i = 0; i < VALUES; i++) {
		places[i] = rows_get(&r, (struct row_key){ i / 7, i });
		assert_int_equal(*places[i], 0);
		*places[i] = 1;
	}
	for (uint64_t i = 0; i < VALUES; i++) {
		assert_ptr_equal(rows_get(&r, (struct row_key){ i / 7, i }), places[i]);
		assert_ptr_equal(rows_find(&r, (struct row_key){ i / 7, i }), places[i]);
		assert_ptr_equal(rows_at(&r, (uint32_t)i), places[i]);
	}
	assert_null(rows_find(&r, (struct row_key){ 1, 0 }));
	assert_null(r.rest);
	rows_ended = 0;
	rows_deinit(&r);
	assert_int_equal(rows_ended, VALUES);
}

static void rows_have_a_bound(void **state _unused_)
{
	struct rows r;
	void *rest;

	rows_init(&r, 1, NULL);
	for (uint64_t i = 0; i < ROWS_MAX; i++)
		assert_non_null(rows_get(&r, (struct row_key){ i, 0 }));
	rest = rows_get(&r, (struct row_key){ ROWS_MAX, 0 });
	assert_ptr_equal(rest, r.rest);
	assert_ptr_equal(rows_get(&r, (struct row_key){ 0, 1 }), rest);
	assert_ptr_not_equal(rows_get(&r, (struct row_key){ 5, 0 }), rest);
	assert_int_equal(r.count, ROWS_MAX);
	rows_deinit(&r);
}

static void a_field_outside_the_record_is_zero(void **state _unused_)
{
	static const uint8_t data[] = { 0xff, 0xfe, 0x80, 0x01, 0, 0, 0, 0, 0x7f };
	const struct record rec = { .data = data, .len = sizeof(data) };
	struct field_at f = { .offset = 2, .size = 1, .is_signed = true };

	assert_int_equal((int64_t)field_at_read(&f, &rec), -128);
	f.is_signed = false;
	assert_int_equal(field_at_read(&f, &rec), 128);
	f = (struct field_at){ .offset = 0, .size = 2, .is_signed = true };
	assert_int_equal((int64_t)field_at_read(&f, &rec), -257);
	f = (struct field_at){ .offset = 0, .size = 2, .big_endian = true };
	assert_int_equal(field_at_read(&f, &rec), 0xfffe);
	f = (struct field_at){ .offset = 1, .size = 8 };
	assert_int_equal(field_at_read(&f, &rec), UINT64_C(0x7f000000000180fe));
	f.offset = 2;
	assert_int_equal(field_at_read(&f, &rec), 0);
	f = (struct field_at){ .offset = 1U << 20, .size = 4 };
	assert_int_equal(field_at_read(&f, &rec), 0);
}

static void a_string_outside_the_record_is_empty(void **state _unused_)
{
	uint8_t data[16] = { 8, 0, 4, 0, 0, 0, 0, 0, 'a', 'b', 0, 'c', 'd', 'e', 'f', 'g' };
	const struct record rec = { .data = data, .len = sizeof(data) };
	struct string_at s = { .offset = 0, .size = 4, .is_dynamic = true };
	struct text text = string_at_read(&s, &rec);

	assert_int_equal(text.len, 2);
	assert_memory_equal(text.data, "ab", 2);
	/* Not terminated. */
	s = (struct string_at){ .offset = 11, .size = 5 };
	assert_int_equal(string_at_read(&s, &rec).len, 5);
	s.size = 6;
	assert_int_equal(string_at_read(&s, &rec).len, 0);
	data[0] = 14;
	s = (struct string_at){ .offset = 0, .size = 4, .is_dynamic = true };
	assert_int_equal(string_at_read(&s, &rec).len, 0);
	data[0] = 4;
	s.is_relative = true;
	assert_int_equal(string_at_read(&s, &rec).len, 2);
}

static const struct column columns[] = {
	COLUMN("name", COLUMN_TEXT),
	COLUMN("id", COLUMN_NUMBER),
	COLUMN("time", COLUMN_TIME),
	COLUMN("delay", COLUMN_HISTOGRAM),
};

/* Three rows; the caller frees the histograms. */
static struct table *make_table(struct histogram h[static 3])
{
	static const struct {
		struct text name;
		int64_t id;
		uint64_t time, delay;
	} rows[] = {
		{ TEXT("b\x1b[31m"), -1, 1500, 10 },
		{ TEXT("a,\"x\""), 7, 3000000000, 300 },
		{ TEXT("\xc3\xa4"), 7, 1500, 20 },
	};
	struct table *t;

	assert_int_equal(table_new(&t, "test", columns, ARRAY_SIZE(columns), "time"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		h[i] = (struct histogram){ 0 };
		histogram_add(&h[i], rows[i].delay);
		table_put_text(t, rows[i].name);
		table_put_number(t, rows[i].id);
		table_put_count(t, rows[i].time);
		table_put_histogram(t, &h[i]);
	}
	return t;
}

static int write_table(const struct report_options *o, struct buf *out, struct error *err)
{
	struct histogram h[3];
	_cleanup_(table_freep) struct table *t = make_table(h);
	int r = table_write(t, o, true, out, err);

	for (size_t i = 0; i < 3; i++)
		histogram_deinit(&h[i]);
	return r;
}

static void text_is_aligned_and_visible(void **state _unused_)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(write_table(&(struct report_options){ 0 }, &out, NULL), 0);
	assert_string_equal(
		buf_string(&out),
		"test\n"
		"name       id      time  delay-avg  delay-p50  delay-p99  delay-max\n"
		"a,\"x\"       7   3.000 s     300 ns     300 ns     300 ns     300 ns\n"
		"b\\x1b[31m  -1  1.500 us      10 ns      10 ns      10 ns      10 ns\n"
		"\xc3\xa4           7  1.500 us      20 ns      20 ns      20 ns      20 ns\n");
}

static void rows_are_sorted_and_left_out(void **state _unused_)
{
	static const struct {
		struct report_options o;
		const char *order;
	} cases[] = {
		{ { .sort = "name" }, "a b" }, { { .sort = "id" }, "b a" },
		{ { .sort = "delay" }, "a" },  { { .sort = "delay-p50" }, "a" },
		{ { .top = 1 }, "a 1" },       { { .min_ns = 2000 }, "a 1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT;
		_cleanup_free_ char *words = strdup(cases[i].order);
		char *rest = words, *word;
		const char *at;

		assert_int_equal(write_table(&cases[i].o, &out, NULL), 0);
		at = strchr(strchr(buf_string(&out), '\n') + 1, '\n');
		/* Each row begins with its name, and a note with a number. */
		while ((word = strsep(&rest, " "))) {
			char wanted[16];

			snprintf(wanted, sizeof(wanted), "\n%s", word);
			at = strstr(at, wanted);
			assert_non_null(at);
		}
	}
}

static void an_unknown_column_is_named(void **state _unused_)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(write_table(&(struct report_options){ .sort = "delay-p98" }, &out, &err),
			 -EINVAL);
	assert_string_equal(err.message, "the table test has no column 'delay-p98'");
	assert_non_null(strstr(err.hint, "name, id, time, delay-avg"));
	assert_int_equal(out.len, 0);
}

static void json_has_all(void **state _unused_)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	const json_t *row, *delay;
	json_t *table;

	assert_int_equal(
		write_table(&(struct report_options){ .form = REPORT_JSON, .top = 2 }, &out, NULL),
		0);
	table = json_loads(buf_string(&out), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(table);
	assert_int_equal(json_array_size(json_object_get(table, "rows")), 2);
	assert_string_equal(json_string_value(json_array_get(json_object_get(table, "notes"), 0)),
			    "2 of 3 rows are shown");
	row = json_array_get(json_object_get(table, "rows"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "name")), "a,\"x\"");
	assert_int_equal(json_integer_value(json_object_get(row, "time_ns")), 3000000000);
	delay = json_object_get(row, "delay");
	assert_int_equal(json_integer_value(json_object_get(delay, "sum_ns")), 300);
	assert_int_equal(json_integer_value(json_array_get(
				 json_array_get(json_object_get(delay, "buckets"), 0), 0)),
			 histogram_bucket(300));
	json_decref(table);
}

static void csv_quotes(void **state _unused_)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(
		write_table(&(struct report_options){ .form = REPORT_CSV, .top = 1 }, &out, NULL),
		0);
	assert_string_equal(
		buf_string(&out),
		"name,id,time_ns,delay_avg_ns,delay_p50_ns,delay_p99_ns,delay_max_ns\r\n"
		"\"a,\"\"x\"\"\",7,3000000000,300,300,300,300\r\n");
	buf_clear(&out);
	assert_int_equal(write_table(&(struct report_options){ .form = REPORT_CSV }, &out, NULL),
			 0);
	assert_non_null(strstr(buf_string(&out), "\r\n\"b\\x1b[31m\",-1,1500,"));
	assert_non_null(strstr(buf_string(&out), "\r\n\"\xc3\xa4\",7,1500,"));
}

static void an_empty_distribution_has_empty_cells(void **state _unused_)
{
	struct histogram h = { 0 };
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(table_new(&t, "test", columns, ARRAY_SIZE(columns), "time"), 0);
	table_put_text(t, TEXT("a"));
	table_put_number(t, 1);
	table_put_count(t, 1);
	table_put_histogram(t, &h);
	assert_int_equal(
		table_write(t, &(struct report_options){ .form = REPORT_CSV }, true, &out, NULL),
		0);
	assert_non_null(strstr(buf_string(&out), "\r\n\"a\",1,1,,,,\r\n"));
}

/* The cells behind a text that could not be kept must not be taken for others. */
static void a_table_without_a_text_is_not_written(void **state _unused_)
{
	static const struct text too_long = { "x", UINT32_MAX };
	struct histogram h = { 0 };
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(table_new(&t, "test", columns, ARRAY_SIZE(columns), "time"), 0);
	table_put_text(t, TEXT("a"));
	table_put_number(t, 1);
	table_put_count(t, 1);
	table_put_histogram(t, &h);
	table_put_text(t, too_long);
	for (unsigned i = 0; i < 4; i++)
		table_put_count(t, 1);
	assert_int_equal(table_write(t, &(struct report_options){ 0 }, true, &out, NULL), -ENOMEM);
	assert_int_equal(out.len, 0);
}

static void shares_are_bounded(void **state _unused_)
{
	assert_int_equal(report_permille(0, 0), 0);
	assert_int_equal(report_permille(5, 0), 0);
	assert_int_equal(report_permille(1, 3), 333);
	assert_int_equal(report_permille(UINT64_MAX, 1), 1000);
	assert_int_equal(report_permille(UINT64_MAX, UINT64_MAX), 1000);
}

/* 0.88 % is 0.9 %; sixteen times 6.25 % is sixteen times 6.3 %. */
static void shares_are_rounded(void **state _unused_)
{
	static const struct column of_bytes[] = {
		COLUMN("name", COLUMN_TEXT),
		COLUMN("bytes", COLUMN_BYTES),
		COLUMN("share", COLUMN_PERMILLE, .adds = ADDS_SHARE, .of = "bytes"),
	};
	static const struct {
		enum report_form form;
		const char *few, *most;
	} wanted[] = {
		{ REPORT_TEXT, " 0.9 %\n", " 99.1 %\n" },
		{ REPORT_JSON, "\"share_permille\":9}", "\"share_permille\":991}" },
		{ REPORT_CSV, ",9\r\n", ",991\r\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const struct report_options o = { .form = wanted[i].form };
		_cleanup_(table_freep) struct table *t = NULL;
		_cleanup_buf_ struct buf out = BUF_INIT;

		assert_int_equal(table_new(&t, "test", of_bytes, ARRAY_SIZE(of_bytes), "bytes"), 0);
		table_put_text(t, TEXT("few"));
		table_put_count(t, 88);
		table_put_count(t, TABLE_DERIVED);
		table_put_text(t, TEXT("most"));
		table_put_count(t, 9912);
		table_put_count(t, TABLE_DERIVED);
		assert_int_equal(table_write(t, &o, true, &out, NULL), 0);
		assert_non_null(strstr(buf_string(&out), wanted[i].few));
		assert_non_null(strstr(buf_string(&out), wanted[i].most));
	}
	assert_int_equal(report_permille(1, 16), 63);
	assert_int_equal(report_permille(4, 10000), 0);
	assert_int_equal(report_permille(9996, 10000), 1000);
}

static void options_are_checked(void **state _unused_)
{
	static const char *const unknown[] = { "sched", "nothing", "none" };
	static const char *const known[] = { "sched" };
	_cleanup_error_ struct error err = ERROR_INIT, by = ERROR_INIT;

	assert_int_equal(report_options_check(
				 &(struct report_options){ .names = unknown, .count = 3 }, &err),
			 -EINVAL);
	assert_string_equal(err.message, "there is no report 'nothing'\nthere is no report 'none'");
	assert_non_null(strstr(err.hint, "sched, timehist"));
	assert_int_equal(
		report_options_check(
			&(struct report_options){ .names = known, .count = 1, .by = "color" }, &by),
		-EINVAL);
	assert_string_equal(by.hint, "it is made by thread, comm, process, cpu");
	assert_int_equal(
		report_options_check(
			&(struct report_options){ .names = known, .count = 1, .by = "cpu" }, NULL),
		0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_are_contiguous),
		cmocka_unit_test(quantiles_are_within_one_percent),
		cmocka_unit_test(a_merge_equals_the_histogram_of_all),
		cmocka_unit_test(late_values_are_in_it_once_settled),
		cmocka_unit_test(a_sum_that_overflows_stays_at_its_end),
		cmocka_unit_test(rows_keep_their_places),
		cmocka_unit_test(rows_have_a_bound),
		cmocka_unit_test(a_field_outside_the_record_is_zero),
		cmocka_unit_test(a_string_outside_the_record_is_empty),
		cmocka_unit_test(text_is_aligned_and_visible),
		cmocka_unit_test(rows_are_sorted_and_left_out),
		cmocka_unit_test(an_unknown_column_is_named),
		cmocka_unit_test(json_has_all),
		cmocka_unit_test(csv_quotes),
		cmocka_unit_test(an_empty_distribution_has_empty_cells),
		cmocka_unit_test(a_table_without_a_text_is_not_written),
		cmocka_unit_test(shares_are_bounded),
		cmocka_unit_test(shares_are_rounded),
		cmocka_unit_test(options_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
