/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The page of `tracectl top` without a terminal, and what it keeps for snapshots. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/io.h"
#include "exported.h"
#include "make_stream.h"
#include "own_folder.h"
#include "top/top_decay.h"
#include "top/top_keep.h"
#include "top/top_view.h"

#define ROWS 50
#define PAGE 4096

/* Two tables as the decoder sends them. */
static void fake_window(struct frame_tables *f)
{
	static const struct column sched[] = {
		COLUMN("task", COLUMN_TEXT),	    COLUMN("tid", COLUMN_NUMBER),
		COLUMN("runtime", COLUMN_TIME),	    COLUMN("runs", COLUMN_COUNT),
		COLUMN("migrations", COLUMN_COUNT), COLUMN("delay-avg", COLUMN_TIME),
		COLUMN("delay-p50", COLUMN_TIME),   COLUMN("delay-p99", COLUMN_TIME),
		COLUMN("delay-max", COLUMN_TIME),   COLUMN("cut", COLUMN_COUNT),
		COLUMN("open", COLUMN_COUNT),
	};
	static const struct column counts[] = { COLUMN("event", COLUMN_TEXT),
						COLUMN("count", COLUMN_COUNT) };

	*f = (struct frame_tables){ .window = { .span_ns = 1000000000, .events = 104233 } };
	assert_int_equal(table_new(&f->tables[0], "sched", sched, ARRAY_SIZE(sched), "runtime"), 0);
	assert_int_equal(table_new(&f->tables[1], "counts", counts, ARRAY_SIZE(counts), "count"),
			 0);
	f->count = 2;
	for (unsigned i = 0; i < ROWS; i++) {
		char name[32];
		int len =
			snprintf(name, sizeof(name), "%s%u\033", i % 2 ? "even" : "Odd\xc3\xa9", i);

		table_put_text(f->tables[0], (struct text){ name, (uint32_t)len });
		table_put_number(f->tables[0], (int64_t)i + 1000);
		for (unsigned column = 2; column < ARRAY_SIZE(sched); column++)
			table_put_count(f->tables[0], column * 1000 + (i * 7 + column) % ROWS);
	}
	table_put_text(f->tables[1], TEXT("sched:sched_switch"));
	table_put_count(f->tables[1], 5);
}

static char *line_of(const struct buf *page, size_t number)
{
	const char *p = page->data;

	while (number--)
		p = strchr(p, '\n') + 1;
	return strndup(p, (size_t)(strchr(p, '\n') - p));
}

static void assert_line_has(struct top_view *v, size_t number, const char *text, bool wanted)
{
	_cleanup_buf_ struct buf page = BUF_INIT;
	_cleanup_free_ char *line = NULL;

	assert_int_equal(top_view_draw(v, &page), 0);
	buf_string(&page);
	line = line_of(&page, number);
	if (!strstr(line, text) == wanted)
		fail_msg("'%s' in '%s'", text, line);
}

/* Characters of the longest line; every line has only characters that can be shown. */
static size_t page_width(const struct buf *page, size_t *ret_lines)
{
	size_t width = 0, longest = 0;

	*ret_lines = 0;
	for (size_t i = 0; i < page->len; i++) {
		if (page->data[i] == '\n') {
			longest = MAX(longest, width);
			width = 0;
			++*ret_lines;
			continue;
		}
		assert_true((unsigned char)page->data[i] >= ' ');
		width += (page->data[i] & 0xc0) != 0x80;
	}
	assert_int_equal(width, 0);
	return longest;
}

static void a_page_fits_each_terminal(void **state _unused_)
{
	static const size_t sizes[][2] = { { 24, 80 }, { 24, 20 }, { 5, 80 },  { 1, 1 },
					   { 2, 2 },   { 6, 15 },  { 60, 200 } };
	struct frame_tables f;
	struct top_view v;

	fake_window(&f);
	top_view_init(&v, &f);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_buf_ struct buf page = BUF_INIT;
		size_t lines;

		top_view_resize(&v, sizes[i][0], sizes[i][1]);
		assert_int_equal(top_view_draw(&v, &page), 0);
		assert_true(page_width(&page, &lines) <= sizes[i][1]);
		assert_int_equal(lines, sizes[i][0]);
	}
	frame_tables_deinit(&f);
}

/* A window at that second, with one row; name NULL: with none. */
static void add_window(struct top_decay *d, uint64_t second, const char *name, uint64_t runtime,
		       uint64_t max)
{
	static const struct column columns[] = {
		COLUMN("task", COLUMN_TEXT),	  COLUMN("tid", COLUMN_NUMBER),
		COLUMN("runtime", COLUMN_TIME),	  COLUMN("runs", COLUMN_COUNT),
		COLUMN("delay-avg", COLUMN_TIME), COLUMN("delay-max", COLUMN_TIME),
	};
	struct frame_tables f = { .window = { .ts = second * 1000000000 } };

	assert_int_equal(table_new(&f.tables[0], "sched", columns, ARRAY_SIZE(columns), "runtime"),
			 0);
	f.count = 1;
	if (name) {
		table_put_text(f.tables[0], (struct text){ name, (uint32_t)strlen(name) });
		table_put_number(f.tables[0], 7);
		table_put_count(f.tables[0], runtime);
		table_put_count(f.tables[0], 4);
		table_put_count(f.tables[0], max ? max / 2 : TABLE_UNKNOWN);
		table_put_count(f.tables[0], max ?: TABLE_UNKNOWN);
	}
	top_decay_add(d, &f);
	assert_int_equal(f.count, 0);
}

static void assert_decayed(struct top_decay *d, const char *wanted)
{
	struct report_options options = { .form = REPORT_CSV };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct frame_tables made = { 0 };

	assert_int_equal(top_decay_make(d, &made), 0);
	assert_int_equal(made.count, 1);
	assert_int_equal(table_write(made.tables[0], &options, true, &out, NULL), 0);
	assert_string_equal(strchr(buf_string(&out), '\n') + 1, wanted);
	frame_tables_deinit(&made);
}

static void windows_decay(void **state _unused_)
{
	struct top_decay d = { 0 };

	add_window(&d, 10, "a", 700, 50);
	assert_decayed(&d, "\"a\",7,700,4,25,50\r\n");
	/* Two seconds later it counts half; the weights are 1 and 1/2. */
	add_window(&d, 12, NULL, 0, 0);
	assert_decayed(&d, "\"a\",7,233,1,25,50\r\n");
	/* A largest value stays, an average is the newest known one. */
	add_window(&d, 14, "a", 700, 20);
	assert_decayed(&d, "\"a\",7,500,3,10,50\r\n");
	add_window(&d, 14, "a", 700, 0);
	assert_decayed(&d, "\"a\",7,573,3,10,50\r\n");
	/* Then it is gone. */
	for (unsigned i = 0; i < TOP_DECAY_WINDOWS; i++)
		add_window(&d, 15 + i, NULL, 0, 0);
	assert_int_equal(d.count, TOP_DECAY_WINDOWS);
	assert_decayed(&d, "");
	top_decay_deinit(&d);
}

/* A window with one row of two columns: a text or a number, and a count. */
static void add_pair(struct top_decay *d, uint64_t second, enum column_kind kind, uint64_t count)
{
	const struct column columns[] = { COLUMN("task", kind), COLUMN("runs", COLUMN_COUNT) };
	struct frame_tables f = { .window = { .ts = second * 1000000000 } };

	assert_int_equal(table_new(&f.tables[0], "sched", columns, ARRAY_SIZE(columns), "runs"), 0);
	f.count = 1;
	if (kind == COLUMN_TEXT)
		table_put_text(f.tables[0], TEXT("a"));
	else
		table_put_number(f.tables[0], -1);
	table_put_count(f.tables[0], count);
	top_decay_add(d, &f);
}

/* Shares of what is shown: not the mean of each window's. */
static void shares_are_of_sums(void **state _unused_)
{
	static const struct column columns[] = {
		COLUMN("event", COLUMN_TEXT),
		COLUMN("bytes", COLUMN_BYTES),
		COLUMN("share", COLUMN_PERMILLE, .adds = ADDS_SHARE, .of = "bytes"),
		COLUMN("rest", COLUMN_PERMILLE, .adds = ADDS_REMAINDER, .of = "share",
		       .over = "bytes"),
	};
	static const uint64_t bytes[2][2] = { { 1000, 1000 }, { 10, 90 } };
	struct report_options options = { .form = REPORT_FRAME };
	struct top_decay d = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		struct frame_window window = { .ts = 1000000000, .tables = 1 };
		_cleanup_(table_freep) struct table *t = NULL;
		_cleanup_buf_ struct buf data = BUF_INIT;
		struct frame_tables f = { 0 };

		assert_int_equal(table_new(&t, "counts", columns, ARRAY_SIZE(columns), "bytes"), 0);
		for (unsigned row = 0; row < 2; row++) {
			table_put_text(t, row ? TEXT("b") : TEXT("a"));
			table_put_count(t, bytes[i][row]);
			table_put_count(t, TABLE_DERIVED);
			table_put_count(t, TABLE_DERIVED);
		}
		buf_append(&data, &window, sizeof(window));
		assert_int_equal(table_write(t, &options, true, &data, NULL), 0);
		assert_int_equal(frame_take(&f, data.data, data.len), 0);
		top_decay_add(&d, &f);
	}
	/* 545 and 505 of 1050. */
	assert_decayed(&d, "\"b\",545,519,48\r\n\"a\",505,481,48\r\n");
	top_decay_deinit(&d);
}

/* A decoder that was taken over sends other columns under the same name. */
static void columns_do_not_change(void **state _unused_)
{
	struct top_decay d = { 0 };

	add_pair(&d, 10, COLUMN_NUMBER, 4);
	add_pair(&d, 12, COLUMN_TEXT, 6);
	assert_decayed(&d, "\"a\",4\r\n");
	add_pair(&d, 12, COLUMN_NUMBER, 6);
	assert_decayed(&d, "-1,3\r\n");
	top_decay_deinit(&d);
}

static void counts_may_be_unknown_or_huge(void **state _unused_)
{
	struct top_decay d = { 0 };

	add_pair(&d, 10, COLUMN_TEXT, TABLE_UNKNOWN);
	assert_decayed(&d, "\"a\",\r\n");
	add_pair(&d, 12, COLUMN_TEXT, 6);
	assert_decayed(&d, "\"a\",4\r\n");
	top_decay_deinit(&d);
	add_pair(&d, 10, COLUMN_TEXT, UINT64_MAX - 1);
	assert_decayed(&d, "\"a\",\r\n");
	top_decay_deinit(&d);
}

/* A window with two tables of one name, whose counts go on. */
static void add_totals(struct top_decay *d, uint64_t second, uint64_t one, uint64_t other)
{
	static const struct column columns[] = { COLUMN("task", COLUMN_TEXT),
						 COLUMN("hitcount", COLUMN_COUNT) };
	struct frame_tables f = { .window = { .ts = second * 1000000000 } };

	for (f.count = 0; f.count < 2; f.count++) {
		struct table **t = &f.tables[f.count];

		assert_int_equal(table_new(t, "hist", columns, ARRAY_SIZE(columns), "hitcount"), 0);
		table_counts_on(*t);
		table_put_text(*t, TEXT("a"));
		table_put_count(*t, f.count ? other : one);
	}
	top_decay_add(d, &f);
}

/* A histogram's counts are those since its begin: there is no mean of them. */
static void counts_so_far_do_not_decay(void **state _unused_)
{
	struct report_options options = { .form = REPORT_CSV };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct frame_tables made = { 0 };
	struct top_decay d = { 0 };

	add_totals(&d, 10, 100, 7);
	add_totals(&d, 11, 200, 9);
	assert_int_equal(top_decay_make(&d, &made), 0);
	assert_int_equal(made.count, 2);
	for (size_t i = 0; i < made.count; i++)
		assert_int_equal(table_write(made.tables[i], &options, i == 0, &out, NULL), 0);
	assert_non_null(strstr(buf_string(&out), "\"a\",200\r\n"));
	assert_non_null(strstr(buf_string(&out), "\"a\",9\r\n"));
	frame_tables_deinit(&made);
	top_decay_deinit(&d);
}

/* On 80 columns: what is important has its place, and a column that is sorted by always has. */
static void columns_are_chosen(void **state _unused_)
{
	struct frame_tables f;
	struct top_view v;

	fake_window(&f);
	top_view_init(&v, &f);
	assert_line_has(&v, 3, "task", true);
	assert_line_has(&v, 3, ">runtime", true);
	assert_line_has(&v, 3, "delay-p99", true);
	assert_line_has(&v, 3, "delay-max", true);
	assert_line_has(&v, 3, "delay-avg", false);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(top_view_key(&v, '>'), TOP_REDRAW);
	assert_line_has(&v, 3, ">delay-avg", true);
	for (unsigned i = 0; i < 5; i++)
		top_view_key(&v, TOP_KEY_RIGHT);
	assert_line_has(&v, 3, ">open", true);
	top_view_key(&v, TOP_KEY_RIGHT);
	assert_line_has(&v, 3, ">task", true);
	top_view_key(&v, TOP_KEY_LEFT);
	assert_line_has(&v, 3, ">open", true);
	top_view_resize(&v, 24, 200);
	assert_line_has(&v, 3, "delay-avg", true);
	frame_tables_deinit(&f);
}

static void keys_move_and_filter(void **state _unused_)
{
	struct frame_tables f;
	struct top_view v;

	fake_window(&f);
	top_view_init(&v, &f);
	assert_line_has(&v, 0, "104,233 events/s, none lost", true);
	assert_line_has(&v, 2, "[1 sched]", true);
	top_view_key(&v, '\t');
	assert_line_has(&v, 2, "[2 counts]", true);
	assert_line_has(&v, 4, "sched:sched_switch", true);
	top_view_key(&v, '1');
	/* There is no ninth table. */
	top_view_key(&v, '9');
	assert_line_has(&v, 2, "[1 sched]", true);
	top_view_sort_by(&v, "tid");
	assert_line_has(&v, 4, "Odd", true);
	top_view_key(&v, TOP_KEY_DOWN);
	assert_line_has(&v, 4, "even1", true);
	for (unsigned i = 0; i < 10; i++)
		top_view_key(&v, TOP_KEY_PAGE_DOWN);
	assert_line_has(&v, 22, "even49", true);
	for (unsigned i = 0; i < 10; i++)
		top_view_key(&v, TOP_KEY_PAGE_UP);
	assert_line_has(&v, 4, "Odd", true);
	/* q is a letter here. */
	for (const char *p = "/EVENq"; *p; p++)
		assert_int_equal(top_view_key(&v, *p), TOP_REDRAW);
	assert_line_has(&v, 2, "filter: EVENq_", true);
	top_view_key(&v, TOP_KEY_BACKSPACE);
	top_view_key(&v, '\r');
	assert_line_has(&v, 4, "even1", true);
	assert_line_has(&v, 5, "even3", true);
	assert_line_has(&v, 2, "filter: EVEN", true);
	top_view_key(&v, '\033');
	assert_line_has(&v, 5, "even1", true);
	assert_int_equal(top_view_key(&v, 's'), TOP_SNAPSHOT);
	assert_int_equal(top_view_key(&v, 'q'), TOP_QUIT);
	top_view_key(&v, 'f');
	assert_true(v.frozen);
	assert_line_has(&v, 0, "FROZEN", true);
	frame_tables_deinit(&f);
}

static void losses_are_told(void **state _unused_)
{
	struct frame_tables f;
	struct top_view v;

	fake_window(&f);
	top_view_init(&v, &f);
	f.window.lost = 12;
	f.window.gaps = 1;
	assert_line_has(&v, 0, "12 lost", true);
	f.window.lost = 0;
	assert_line_has(&v, 0, "0 lost (count unknown)", true);
	frame_tables_deinit(&f);
}

/* A page without any table yet. */
static void nothing_yet(void **state _unused_)
{
	struct frame_tables f = { 0 };
	struct top_view v;

	top_view_init(&v, &f);
	assert_line_has(&v, 3, "waiting", true);
	for (int key = 0; key < 300; key++)
		top_view_key(&v, key);
	assert_line_has(&v, 3, "waiting", true);
}

static void keep_append(struct top_keep *k, unsigned pages)
{
	struct stat st;
	char page[PAGE];

	assert_int_equal(fstat(k->fd, &st), 0);
	for (unsigned i = 0; i < pages; i++) {
		memset(page, 'a' + (int)((st.st_size / PAGE + i) % 26), sizeof(page));
		assert_int_equal(pwrite(k->fd, page, PAGE, st.st_size + (off_t)i * PAGE), PAGE);
	}
}

static uint64_t keep_bytes(const struct top_keep *k)
{
	struct stat st;

	assert_int_equal(fstat(k->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* A page a second: the file keeps its head, and about ten seconds. */
static void old_parts_are_freed(void **state _unused_)
{
	struct top_keep k;

	assert_int_equal(top_keep_init(&k, NULL), 0);
	keep_append(&k, 2);
	for (uint64_t second = 0; second < 300; second++) {
		keep_append(&k, 1);
		top_keep_note(&k, PAGE, (2 + second) * PAGE, second * 1000000000);
		assert_true(keep_bytes(&k) <= (2 + 13) * PAGE);
		/* The part that is still needed stays. */
		assert_true(k.freed <= (2 + second) * PAGE);
	}
	assert_int_equal(k.freed, (2 + 299 - 10) * PAGE);
	top_keep_deinit(&k);
}

static void many_bytes_stay_shorter(void **state _unused_)
{
	struct top_keep k;

	assert_int_equal(top_keep_init(&k, NULL), 0);
	assert_int_equal(ftruncate(k.fd, (off_t)(TOP_KEEP_BYTES * 8)), 0);
	for (uint64_t i = 1; i <= 7; i++)
		top_keep_note(&k, PAGE, i * TOP_KEEP_BYTES, i * 1000000);
	assert_int_equal(k.freed, 6 * TOP_KEEP_BYTES);
	top_keep_deinit(&k);
}

static void wrong_notes_are_ignored(void **state _unused_)
{
	struct top_keep k;

	assert_int_equal(top_keep_init(&k, NULL), 0);
	keep_append(&k, 10);
	top_keep_note(&k, 0, 5 * PAGE, 1);
	top_keep_note(&k, 2 * PAGE, PAGE, 1);
	top_keep_note(&k, PAGE, 11 * PAGE, 1);
	top_keep_note(&k, UINT64_MAX, UINT64_MAX, 1);
	assert_int_equal(k.count, 0);
	top_keep_note(&k, PAGE, 3 * PAGE, 1);
	top_keep_note(&k, 2 * PAGE, 4 * PAGE, 1);
	top_keep_note(&k, PAGE, 2 * PAGE, 1);
	assert_int_equal(k.count, 1);
	for (unsigned i = 0; i < 1000; i++)
		top_keep_note(&k, PAGE, 3 * PAGE, 1);
	assert_true(k.count <= TOP_KEEP_MARKS);
	top_keep_deinit(&k);
}

static uint64_t keep_size(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

/* An event a second, a FLUSH after each, and notes of the decoder one second late. */
static void keep_record(struct top_keep *k, struct maker *m, unsigned seconds)
{
	uint64_t head = 0, before = 0;

	maker_begin(m, PAGE);
	for (uint64_t i = 0; i < seconds; i++) {
		uint64_t size;

		page_begin(m, (i + 1) * 1000000000);
		event_number(m, (i + 1) * 1000000000, 0, 5000 + (uint32_t)i);
		page_flush(m, 0, 0);
		assert_int_equal(stream_write(&m->writer, CHUNK_FLUSH, "", 0), 0);
		size = keep_size(m->fd);
		assert_int_equal(ftruncate(k->fd, (off_t)before), 0);
		assert_int_equal(copy_range(k->fd, m->fd, before, size - before), 0);
		head = head ?: size;
		top_keep_note(k, head, MAX(before, head), i * 1000000000);
		before = size;
	}
}

/* It begins with the latest events: those of the recording's begin are left out, not lost. */
static void a_snapshot_has_the_latest_events(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { .options = { .format = "txt" } };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int fd = -EBADF;
	struct top_keep k;
	struct maker m;

	assert_int_equal(top_keep_init(&k, NULL), 0);
	assert_int_equal(top_keep_save(&k, "x.traced", &err), -ENODATA);
	keep_record(&k, &m, 40);
	assert_int_equal(top_keep_save(&k, "x.traced", &err), 0);
	fd = open("x.traced", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	export_whole(&e, fd);
	assert_true(e.result.incomplete);
	assert_int_equal(e.result.events, 11);
	assert_null(strstr(e.file.data, "5000"));
	assert_null(strstr(e.file.data, "5028"));
	assert_non_null(strstr(e.file.data, "5029"));
	assert_non_null(strstr(e.file.data, "5039"));
	assert_null(strstr(e.file.data, "LOST"));
	/* It replaces nothing. */
	assert_int_not_equal(top_keep_save(&k, "x.traced", &err), 0);
	maker_deinit(&m);
	top_keep_deinit(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_decay),
		cmocka_unit_test(shares_are_of_sums),
		cmocka_unit_test(columns_do_not_change),
		cmocka_unit_test(counts_so_far_do_not_decay),
		cmocka_unit_test(counts_may_be_unknown_or_huge),
		cmocka_unit_test(a_page_fits_each_terminal),
		cmocka_unit_test(columns_are_chosen),
		cmocka_unit_test(keys_move_and_filter),
		cmocka_unit_test(losses_are_told),
		cmocka_unit_test(nothing_yet),
		cmocka_unit_test(old_parts_are_freed),
		cmocka_unit_test(many_bytes_stay_shorter),
		cmocka_unit_test(wrong_notes_are_ignored),
		cmocka_unit_test_setup_teardown(a_snapshot_has_the_latest_events, own_folder_setup,
						own_folder_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
