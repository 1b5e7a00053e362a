/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Texts of histograms: those of real kernels, and hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fixture.h"
#include "report/hist_text.h"
#include "report/sink.h"

/* hist_fixtures.py made them in guests. */
static const char *const kernels[] = { "6.1.176", "6.12.117", "7.2.13" };

struct sum {
	uint64_t entries, hits, damaged;
};

static struct sum sum_up(const struct hist_text *h)
{
	struct text at = h->entries;
	struct hist_text_entry e;
	struct sum s = { 0 };
	int r;

	while ((r = hist_entry_next(h, &at, &e)) != 0) {
		uint64_t hits = 0;

		s.entries += r > 0;
		s.damaged += r < 0;
		if (r > 0)
			assert_true(hist_text_number(e.values[0], &hits));
		s.hits += hits;
	}
	return s;
}

/* The kernel's totals say whether an entry was missed, or found where there is none. */
static void check_file(const char *trigger, struct text text)
{
	struct hist_text h;
	struct sum s;

	if (hist_text_next(&text, &h) != 1)
		fail_msg("%s: no histogram", trigger);
	s = sum_up(&h);
	if (s.damaged || s.entries != h.entry_count || s.hits != h.hits)
		fail_msg("%s: %d entries of %d, %d hits of %d, %d damaged", trigger, (int)s.entries,
			 (int)h.entry_count, (int)s.hits, (int)h.hits, (int)s.damaged);
	assert_int_equal(hist_text_next(&text, &h), 0);
}

static void each_entry_of_real_kernels_is_found(void **state _unused_)
{
	for (size_t k = 0; k < ARRAY_SIZE(kernels); k++) {
		_cleanup_buf_ struct buf all = BUF_INIT;
		char path[512], *next;
		unsigned files = 0;

		snprintf(path, sizeof(path), TEST_DATA "/%s/hists.gz", kernels[k]);
		fixture_read_gz(path, &all);
		next = strstr(buf_string(&all), "## hist:");
		while (next) {
			char *trigger = next, *text = strchr(next, '\n') + 1;

			next = strstr(text, "\n## hist:");
			if (next)
				*next++ = '\0';
			text[-1] = '\0';
			check_file(trigger, (struct text){ text, (uint32_t)strlen(text) });
			files++;
		}
		assert_in_range(files, 12, 16);
	}
}

#define HEAD(trigger) "# event histogram\n#\n# trigger info: hist:" trigger "\n#\n\n"
#define TOTALS(hits, entries, dropped)                                                             \
	"\nTotals:\n    Hits: " #hits "\n    Entries: " #entries "\n    Dropped: " #dropped "\n"
#define PAD "                                                  "

static struct hist_text parsed(const char *text)
{
	struct text rest = { text, (uint32_t)strlen(text) };
	struct hist_text h;

	assert_int_equal(hist_text_next(&rest, &h), 1);
	return h;
}

static void assert_text(struct text t, const char *wanted)
{
	if (t.len != strlen(wanted) || memcmp(t.data, wanted, t.len) != 0)
		fail_msg("'%.*s' is not '%s'", (int)t.len, t.data, wanted);
}

static void assert_key(const struct hist_text *h, size_t i, struct text key, const char *wanted)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	hist_text_put_key(&h->keys[i], key, &out);
	assert_string_equal(buf_string(&out), wanted);
}

static void keys_are_shown_without_addresses(void **state _unused_)
{
	const struct hist_text h =
		parsed(HEAD("keys=a.sym,b.execname,c.syscall:vals=hitcount,d.hex:size=128 "
			    "[active]") "{ a: [ffffffff81000000] vfs_read [ext4]           , b: a "
					"b, c: 1       "
					"[        12], c: sys_read                      [  0] } "
					"hitcount:          3  "
					"d:         ff\n" TOTALS(3, 1, 9));
	struct text at = h.entries;
	struct hist_text_entry e;

	assert_int_equal(h.dropped, 9);
	assert_int_equal(hist_entry_next(&h, &at, &e), 1);
	assert_key(&h, 0, e.keys[0], "vfs_read [ext4]");
	assert_key(&h, 1, e.keys[1], "a b, c: 1 (12)");
	assert_key(&h, 2, e.keys[2], "sys_read");
	assert_text(e.values[0], "3");
	assert_text(e.values[1], "ff");
	assert_int_equal(hist_entry_next(&h, &at, &e), 0);
}

static void stacks_are_lines(void **state _unused_)
{
	const struct hist_text h = parsed(HEAD("keys=stacktrace,a.stacktrace:vals=hitcount:size="
					       "128") "{ stacktrace:\n         f+0x1/0x2\n         "
						      "g+0x3/0x4\n"
						      ", a.stacktrace         h+0x5/0x6\n} "
						      "hitcount:          3\n"
						      "{ stacktrace:\n, a.stacktrace} hitcount:    "
						      "      1\n" TOTALS(4, 2, 0));
	struct text at = h.entries;
	struct hist_text_entry e;

	assert_int_equal(hist_entry_next(&h, &at, &e), 1);
	assert_key(&h, 0, e.keys[0], "f+0x1/0x2 < g+0x3/0x4");
	assert_key(&h, 1, e.keys[1], "h+0x5/0x6");
	assert_int_equal(hist_entry_next(&h, &at, &e), 1);
	assert_key(&h, 0, e.keys[0], "");
	assert_int_equal(hist_entry_next(&h, &at, &e), 0);
}

static void the_cpu_has_several_names(void **state _unused_)
{
	static const char *const texts[] = {
		HEAD("keys=common_cpu,pid:vals=hitcount:size=128 [active]") "{ cpu:          1, "
									    "pid:          7 } "
									    "hitcount:          "
									    "3\n" TOTALS(3, 1, 0),
		HEAD("keys=cpu,pid:vals=hitcount:size=128 [active]") "{ common_cpu:          1, "
								     "pid:          7 } hitcount:  "
								     "        3\n" TOTALS(3, 1, 0),
		HEAD("keys=common_cpucpu,pid:vals=hitcount:size=128 [active]") "{ cpu:          1, "
									       "pid:          7 } "
									       "hitcount:          "
									       "3\n" TOTALS(3, 1,
											    0),
		HEAD("keys=pid,common_cpu:vals=hitcount:size=128 [active]") "{ pid:          7, "
									    "CPU:          1 } "
									    "hitcount:          "
									    "3\n" TOTALS(3, 1, 0),
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const struct hist_text h = parsed(texts[i]);

		assert_int_equal(sum_up(&h).hits, 3);
	}
}

static void ranges_have_ends(void **state _unused_)
{
	const struct hist_text_field power = { .kind = HIST_TEXT_LOG2 },
				     range = { .kind = HIST_TEXT_RANGE };
	uint64_t from = 0, to = 0;
#define RANGE(f, s) hist_text_range(&(f), (struct text){ s, sizeof(s) - 1 }, &from, &to)

	assert_true(RANGE(power, "~ 2^10"));
	assert_int_equal(from, 513);
	assert_int_equal(to, 1024);
	assert_true(RANGE(power, "~ 2^0"));
	assert_int_equal(from, 0);
	assert_int_equal(to, 1);
	assert_true(RANGE(power, "~ 2^63"));
	assert_false(RANGE(power, "~ 2^64"));
	assert_false(RANGE(power, "~ 2^18446744073709551615"));
	assert_false(RANGE(power, "2^1"));
	assert_true(RANGE(range, "~ 100-199"));
	assert_int_equal(from, 100);
	assert_int_equal(to, 199);
	assert_false(RANGE(range, "~ 18446744073709551600-83"));
	assert_false(RANGE(range, "~ 1-"));
}

/* A name has 15 bytes, so it can't reach beyond the 50 that the kernel pads it to. */
static void short_names_forge_nothing(void **state _unused_)
{
	const struct hist_text h = parsed(HEAD(
		"keys=comm,pid:vals=hitcount:size=128 [active]") "{ comm: } hitcount: 9\n          "
								 "                           , "
								 "pid:          1 } hitcount:      "
								 "    3\n"
								 "{ comm: a, pid: 7 } hi           "
								 "                         , "
								 "pid:          2 } hitcount:      "
								 "    4\n" TOTALS(7, 2, 0));
	struct text at = h.entries;
	struct hist_text_entry e;

	assert_int_equal(hist_entry_next(&h, &at, &e), 1);
	assert_text(e.keys[0], "} hitcount: 9");
	assert_text(e.keys[1], "1");
	assert_int_equal(hist_entry_next(&h, &at, &e), 1);
	assert_text(e.keys[0], "a, pid: 7 } hi");
	assert_text(e.keys[1], "2");
	assert_int_equal(hist_entry_next(&h, &at, &e), 0);
}

/* Writes the table of a text as the report does. */
static void write_table(const char *text, enum report_form form, struct buf *out)
{
	Traced__Capture__Histogram message = TRACED__CAPTURE__HISTOGRAM__INIT, *all = &message;
	const struct trace_info info = { .histograms = &all, .histogram_count = 1 };
	const struct report_kind *kind = report_kind_find("hist");
	const struct report_options options = { .form = form };
	_cleanup_(table_freep) struct table *table = NULL;
	struct report_env env = { .info = &info };
	struct report *report;

	message.event = (char *)"fs:op\033ned";
	message.text = (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
	assert_int_equal(kind->count(&env), 1);
	assert_int_equal(kind->open(&report, &env), 0);
	assert_int_equal(kind->close(report, &table), 0);
	assert_int_equal(table_write(table, &options, true, out, NULL), 0);
	assert_non_null(buf_string(out));
	kind->free(report);
}

static void forged_entries_are_told(void **state _unused_)
{
	_cleanup_buf_ struct buf out = BUF_INIT, two = BUF_INIT;

	write_table(HEAD("keys=name:vals=hitcount:size=128 [active]") "{ name: x" PAD
								      " } hitcount:          7\n{ "
								      "name: y" PAD
								      " } hitcount:          "
								      "2\n" TOTALS(3, 1, 0),
		    REPORT_TEXT, &out);
	assert_non_null(strstr(out.data, "the kernel made 1 entries, and 2 were found"));
	write_table(
		HEAD("keys=name:vals=hitcount:size=128 [active]") "{ name: x" PAD
								  " } hitcount:          7\ny" PAD
								  " } hitcount:          "
								  "2\n" TOTALS(2, 1, 0),
		REPORT_TEXT, &two);
	assert_non_null(strstr(two.data, "the rows may be wrong"));
}

static void texts_that_cannot_be_read_are_told(void **state _unused_)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	write_table(HEAD("keys=name:vals=hitcount:size=128 [active]") "{ name: x", REPORT_TEXT,
		    &out);
	assert_string_equal(out.data,
			    "hist fs:op\\x1bned\nhitcount\nthe text of this histogram is damaged, "
			    "or of an unknown form: its entries are missing\n");
}

static void tables_have_ranges_bars_and_totals(void **state _unused_)
{
	static const char text[] = HEAD(
		"keys=ret.log2,pid:vals=hitcount,len:size=128 [paused]") "{ ret: ~ 2^2 , pid:      "
									 "    7 } hitcount:        "
									 "  1  len:         10\n"
									 "{ ret: ~ 2^0 , pid:      "
									 "   12 } hitcount:        "
									 "  3  len:         "
									 "20\n" TOTALS(4, 2, 5);
	_cleanup_buf_ struct buf out = BUF_INIT, json = BUF_INIT, csv = BUF_INIT;

	write_table(text, REPORT_TEXT, &out);
	assert_string_equal(
		out.data, "hist fs:op\\x1bned by ret, pid\n"
			  "ret  ret-to  pid  hitcount  len  share\n"
			  "  0       1   12         3   20  ##############################\n"
			  "  3       4    7         1   10  ##########\n"
			  "hits 4, entries 2, dropped 5\n"
			  "5 events are in no row: the histogram was full; a larger one (size) has "
			  "room for more\n");
	write_table(text, REPORT_JSON, &json);
	assert_non_null(strstr(json.data, "\"totals\":{\"hits\":4,\"entries\":2,\"dropped\":5}"));
	assert_non_null(strstr(json.data,
			       "{\"ret\":0,\"ret_to\":1,\"pid\":12,\"hitcount\":3,\"len\":20,"
			       "\"share_permille\":750}"));
	write_table(text, REPORT_CSV, &csv);
	assert_non_null(strstr(csv.data, "\r\n0,1,12,3,20,"));
}

static void a_filter_is_in_the_title(void **state _unused_)
{
	_cleanup_buf_ struct buf one = BUF_INIT, none = BUF_INIT;

	write_table(HEAD("keys=pid:vals=hitcount:size=128 if a[1] == \"x\033\" [active]")
			    TOTALS(0, 0, 0),
		    REPORT_TEXT, &one);
	assert_non_null(strstr(one.data, "hist fs:op\\x1bned by pid if a[1] == \"x\\x1b\"\n"));
	write_table(HEAD("keys=pid:vals=hitcount:size=128 [paused]") TOTALS(0, 0, 0), REPORT_TEXT,
		    &none);
	assert_non_null(strstr(none.data, "hist fs:op\\x1bned by pid\n"));
}

static void large_numbers_stay_the_kernels(void **state _unused_)
{
	_cleanup_buf_ struct buf json = BUF_INIT;

	write_table(
		HEAD("keys=ret:vals=hitcount:size=128 [paused]") "{ ret:          1 } hitcount:    "
								 "      1\n"
								 "{ ret: 18446744073709551615 } "
								 "hitcount:          3\n" TOTALS(
									 4, 2, 0),
		REPORT_JSON, &json);
	assert_non_null(strstr(json.data, "{\"ret\":\"18446744073709551615\",\"hitcount\":3,"));
	assert_non_null(strstr(json.data, "{\"ret\":\"1\",\"hitcount\":1,"));
}

static void damaged_texts_are_no_histograms(void **state _unused_)
{
	static const char *const texts[] = {
		"x",
		"# event histogram\n",
		HEAD("keys=a:vals=hitcount"),
		HEAD("vals=hitcount") TOTALS(0, 0, 0),
		HEAD("keys=a") TOTALS(0, 0, 0),
		HEAD("keys=a:vals=b") TOTALS(0, 0, 0),
		HEAD("keys=a b:vals=hitcount") TOTALS(0, 0, 0),
		HEAD("keys=a,b,c,d,e:vals=hitcount") TOTALS(0, 0, 0),
		HEAD("keys=\033[2J:vals=hitcount") TOTALS(0, 0, 0),
		HEAD("keys=a:keys=b:vals=hitcount") TOTALS(0, 0, 0),
		HEAD("keys=a:vals=hitcount") TOTALS(0, 0, x),
		HEAD("keys=a:vals=hitcount") TOTALS(0, 0, 0) "more",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct text rest = { texts[i], (uint32_t)strlen(texts[i]) };
		struct hist_text h;

		if (hist_text_next(&rest, &h) != -EBADMSG)
			fail_msg("text %zu", i);
		assert_int_equal(hist_text_next(&rest, &h), 0);
	}
}

/* Places that look like the end of a key cost no more than a part of the text each. */
static void forged_ends_cost_little(void **state _unused_)
{
	static char text[8 << 20];
	size_t len =
		(size_t)snprintf(text, sizeof(text), "%s", HEAD("keys=a,b:vals=hitcount [active]"));
	struct hist_text h;
	struct sum s;

	while (len < sizeof(text) - 1000) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "{ a: x" PAD ", b: ");
		for (size_t i = 0; i < 2000 && len < sizeof(text) - 900; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "} hitcount: ");
		len += (size_t)snprintf(text + len, sizeof(text) - len, "} hitcount: 1\n");
	}
	snprintf(text + len, sizeof(text) - len, TOTALS(1, 1, 0));
	h = parsed(text);
	s = sum_up(&h);
	assert_true(s.entries > 100);
}

static void several_of_a_file(void **state _unused_)
{
	static const char both[] =
		HEAD("keys=a:vals=hitcount [active]") "{ a:          1 } hitcount:          "
						      "1\n" TOTALS(1, 1, 0) "\n\n" HEAD(
							      "keys=b:vals=hitcount [active]")
							      TOTALS(0, 0, 0);
	struct text rest = { both, sizeof(both) - 1 };
	struct hist_text h;

	assert_int_equal(hist_text_next(&rest, &h), 1);
	assert_text(h.keys[0].name, "a");
	assert_int_equal(sum_up(&h).hits, 1);
	assert_int_equal(hist_text_next(&rest, &h), 1);
	assert_text(h.keys[0].name, "b");
	assert_int_equal(sum_up(&h).entries, 0);
	assert_int_equal(hist_text_next(&rest, &h), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_entry_of_real_kernels_is_found),
		cmocka_unit_test(keys_are_shown_without_addresses),
		cmocka_unit_test(stacks_are_lines),
		cmocka_unit_test(the_cpu_has_several_names),
		cmocka_unit_test(ranges_have_ends),
		cmocka_unit_test(short_names_forge_nothing),
		cmocka_unit_test(forged_entries_are_told),
		cmocka_unit_test(texts_that_cannot_be_read_are_told),
		cmocka_unit_test(tables_have_ranges_bars_and_totals),
		cmocka_unit_test(a_filter_is_in_the_title),
		cmocka_unit_test(large_numbers_stay_the_kernels),
		cmocka_unit_test(damaged_texts_are_no_histograms),
		cmocka_unit_test(forged_ends_cost_little),
		cmocka_unit_test(several_of_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
