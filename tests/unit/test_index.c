/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams that claim more than any recorder writes: their cost, and the messages. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "make_formats.h"
#include "make_stream.h"
#include "trace/index.h"
#include "trace/task_scan.h"

#define MB (UINT64_C(1) << 20)

static void load(struct stream_index *index, const struct maker *m)
{
	const struct index_options o = { 0 };
	static struct stream_reader reader; /* the index refers to it */

	assert_int_equal(stream_reader_init(&reader, m->fd, NULL), 0);
	assert_int_equal(stream_index_open(index, &reader, &o, NULL), 0);
	assert_int_equal(stream_index_finish(index, NULL), 0);
}

static void begin(struct maker *m)
{
	maker_begin(m, 1024);
}

static void add(struct maker *m, enum chunk_type type, const void *data, size_t len)
{
	assert_int_equal(stream_write_packed(&m->writer, type, data, len), 0);
}

/* One warning, of this kind, and the stream is incomplete. */
static void assert_left_out(const struct stream_index *index, const char *what)
{
	assert_true(index->incomplete);
	assert_int_equal(index->warning_count, 1);
	assert_non_null(strstr(index->warnings[0], what));
	assert_non_null(strstr(index->warnings[0], "left out"));
}

/* Field 1, an empty message, repeated. */
static char *empty_messages(size_t len)
{
	char *p = malloc(len);

	assert_non_null(p);
	for (size_t i = 0; i < len; i += 2)
		memcpy(p + i, "\x0a", 2);
	return p;
}

static const struct {
	enum chunk_type type;
	const char *what;
	size_t len;
	unsigned chunks;
} floods[] = {
	{ CHUNK_TASKS, "task lists", 8 * MB, 2 },  /* too many in one */
	{ CHUNK_TASKS, "task lists", MB / 8, 64 }, /* too many together */
	{ CHUNK_TASKS, "task lists", 32 * MB, 2 }, /* too long */
	{ CHUNK_CLOCKS, "clock readings", MB, 3 }, /* too many in one */
	{ CHUNK_CLOCKS, "clock readings", 1000, 2000 },
	{ CHUNK_STATS, "kernel counts", MB, 3 },
	{ CHUNK_STATS, "kernel counts", 1000, 2000 },
	{ CHUNK_NOTE, "notes", 8 * MB, 3 },
	{ CHUNK_NOTE, "notes", 0, 100 },
	{ CHUNK_END, "ends", 2 * MB, 1 },
	{ CHUNK_PRINTK, "printk formats", 32 * MB, 1 },
	{ CHUNK_PRINTK, "printk formats", 12 * MB, 6 },
	{ CHUNK_ENUMS, "constants", 5 * MB, 1 },
	{ CHUNK_HEADER_PAGE, "descriptions of sub-buffers", MB, 1 },
	{ CHUNK_FORMAT, "event formats", MB, 2 },
	{ CHUNK_KALLSYMS, "kernel symbols", 100 * MB, 1 },
};

static void excessive_messages_are_left_out(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(floods); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_(stream_index_deinit) struct stream_index index;
		_cleanup_free_ char *data = empty_messages(MAX(floods[i].len, (size_t)2));
		size_t before, taken;

		begin(&m);
		for (unsigned n = 0; n < floods[i].chunks; n++)
			add(&m, floods[i].type, data, floods[i].len);
		if (floods[i].type != CHUNK_END)
			maker_end(&m);
		before = mallinfo2().uordblks + mallinfo2().hblkhd;
		load(&index, &m);
		event_table_symbols(index.info.events);
		assert_int_equal(stream_index_settle(&index), 0);
		taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		if (floods[i].type == CHUNK_END) {
			assert_null(index.info.end);
			/* It was not closed, and has no symbols. */
			assert_int_equal(index.warning_count, 3);
		} else {
			assert_left_out(&index, floods[i].what);
			assert_non_null(index.info.end);
		}
		assert_true(taken < 160 * MB);
	}
}

static void rings_of_a_later_version_are_left_out(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	struct iovec page = { (char[4096]){ 0 }, 4096 };

	begin(&m);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(stream_write_subbufs(&m.writer, 0,
						      BUFFER_MORE + BUFFER_MORE_MAX + i, 0, &page,
						      1),
				 0);
	maker_end(&m);
	load(&index, &m);
	assert_left_out(&index, "rings unknown to this version");
}

static void add_histogram(struct maker *m, const char *event, const char *text)
{
	Traced__Capture__Histogram message = TRACED__CAPTURE__HISTOGRAM__INIT;

	message.event = (char *)(uintptr_t)event;
	message.text = (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
	assert_int_equal(stream_write_message(&m->writer, CHUNK_HISTOGRAM, &message.base), 0);
}

static void the_last_histogram_of_an_event_counts(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;

	begin(&m);
	for (unsigned i = 0; i < 1000; i++) {
		add_histogram(&m, "sched:sched_switch", i == 999 ? "last" : "early");
		add_histogram(&m, "irq:softirq_raise", "other");
	}
	maker_end(&m);
	load(&index, &m);
	assert_int_equal(index.warning_count, 0);
	assert_int_equal(index.info.histogram_count, 2);
	assert_string_equal(index.info.histograms[0]->event, "sched:sched_switch");
	assert_memory_equal(index.info.histograms[0]->text.data, "last", 4);
}

static void excessive_histograms_are_left_out(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	char event[16];

	begin(&m);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(event, sizeof(event), "a:%u", i);
		add_histogram(&m, event, "text");
	}
	maker_end(&m);
	load(&index, &m);
	assert_left_out(&index, "histograms");
	assert_int_equal(index.info.histogram_count, 64);
}

static void as_much_as_recorders_write_is_taken(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	_cleanup_free_ char *data = empty_messages(300000 * 2);
	struct buf symbols = BUF_INIT, format = BUF_INIT;
	struct symbol found;

	begin(&m);
	add(&m, CHUNK_TASKS, data, 300000 * 2);
	for (unsigned i = 0; i < 400000; i++)
		buf_printf(&symbols, "ffffffff%08x T symbol_with_a_usual_name_%u\n", i * 64, i);
	add(&m, CHUNK_KALLSYMS, symbols.data, symbols.len);
	/* The longest that the recorder reads. */
	buf_append(&format, "long", 5);
	buf_puts(&format, "name: long\nID: 200\nformat:\n"
			  "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
			  "print fmt: \"");
	while (format.len < (256 << 10) + 3)
		buf_putc(&format, 'x');
	buf_puts(&format, "\"\n");
	add(&m, CHUNK_FORMAT, format.data, format.len);
	for (unsigned i = 0; i < 64; i++)
		add(&m, CHUNK_NOTE, "\x0a\x02hi", 4);
	maker_end(&m);
	load(&index, &m);
	assert_false(index.incomplete);
	assert_int_equal(index.warning_count, 0);
	assert_int_equal(index.info.task_readings[0]->n_tasks, 300000);
	assert_int_equal(index.info.note_count, 64);
	assert_true(symbols_find(event_table_symbols(index.info.events),
				 UINT64_C(0xffffffff00000000) + 399999 * 64, &found));
	assert_non_null(event_table_find(index.info.events, 200));
	buf_deinit(&symbols);
	buf_deinit(&format);
}

static void short_symbol_lines_are_counted(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	struct buf text = BUF_INIT;

	begin(&m);
	for (unsigned i = 0; i < (2U << 20) + 1; i++)
		buf_append(&text, "1 T a\n", 6);
	add(&m, CHUNK_KALLSYMS, text.data, text.len);
	maker_end(&m);
	load(&index, &m);
	assert_int_equal(index.warning_count, 0);
	assert_null(event_table_symbols(index.info.events));
	assert_int_equal(stream_index_settle(&index), 0);
	assert_left_out(&index, "kernel symbols");
	buf_deinit(&text);
}

static void load_with(struct stream_index *index, const struct maker *m,
		      const struct index_options *o)
{
	static struct stream_reader reader; /* the index refers to it */

	assert_int_equal(stream_reader_init(&reader, m->fd, NULL), 0);
	assert_int_equal(stream_index_open(index, &reader, o, NULL), 0);
}

/* Events of CPU 0, a task's birth of CPU 2, a FLUSH, events of CPU 1, and another FLUSH. */
static uint64_t put_two_flushes(struct maker *m)
{
	uint64_t first;

	begin(m);
	event_print_mark(m, 1000, 7, "before");
	maker_flush(m, 0, BUFFER_MAIN, 0);
	event_newtask(m, 1500, 7, 8, "child", 0);
	maker_flush(m, 2, BUFFER_TASKS, 0);
	first = m->writer.bytes;
	add(m, CHUNK_FLUSH, "", 0);
	event_print_mark(m, 2000, 7, "after");
	maker_flush(m, 1, BUFFER_MAIN, 0);
	add(m, CHUNK_FLUSH, "", 0);
	return first;
}

/* The first bytes of a stream are as good as a whole one. */
static void a_part_has_an_end(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	const uint64_t first = put_two_flushes(&m);
	const struct index_options o = { .part = { first, 100, 2500 } };

	load_with(&index, &m, &o);
	assert_int_equal(stream_index_finish(&index, NULL), 0);
	assert_false(index.incomplete);
	assert_int_equal(index.warning_count, 0);
	assert_int_equal(index.info.end->reason, TRACED__CAPTURE__END__REASON__SNAPSHOT);
	assert_int_equal(index.info.end->start_boot_ns, 100);
	assert_int_equal(index.info.end->boot_ns, 2500);
	assert_true(ring_index_has(&index.rings[BUFFER_MAIN], 0));
	assert_false(ring_index_has(&index.rings[BUFFER_MAIN], 1));
}

/* Bytes behind the end are no part of the recording, unless they begin a chunk. */
static void what_follows_the_end_is_told(void **state _unused_)
{
	static const struct {
		const char *data, *warning;
		size_t len;
		bool incomplete;
	} rests[] = {
		{ "junk", "4 bytes follow the recording's end: they are ignored", 4, false },
		{ "\n", "1 byte follows the recording's end: it is ignored", 1, false },
		{ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
		  "40 bytes follow the recording's end: they are ignored", 40, false },
		{ STREAM_MAGIC "CHNK",
		  "another capture follows the recording's end: it is left out (the last 12 bytes "
		  "of the file)",
		  12, true },
		{ "CHN", "the stream was cut: ", 3, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_(stream_index_deinit) struct stream_index index;

		begin(&m);
		maker_end(&m);
		assert_int_equal(
			pwrite(m.fd, rests[i].data, rests[i].len, lseek(m.fd, 0, SEEK_END)),
			rests[i].len);
		load(&index, &m);
		assert_int_equal(index.incomplete, rests[i].incomplete);
		assert_true(index.warning_count > 0);
		assert_memory_equal(index.warnings[index.warning_count - 1], rests[i].warning,
				    strlen(rests[i].warning));
	}
}

/* Events before a FLUSH are left out, but not the names of tasks. */
static void earlier_events_are_skipped(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	const uint64_t first = put_two_flushes(&m);

	for (int i = 0; i < 2; i++) {
		_cleanup_(stream_index_deinit) struct stream_index index;
		/* From the first FLUSH, or from the second one. */
		const struct index_options o = { .skip_from = first + (uint64_t)i };

		load_with(&index, &m, &o);
		assert_int_equal(stream_index_next(&index, NULL), 1);
		assert_int_equal(index.last_flush == first, !i);
		assert_int_equal(index.skip, index.last_flush);
		assert_int_equal(stream_index_finish(&index, NULL), 0);
		assert_true(ring_index_has(&index.rings[BUFFER_TASKS], 2));
		assert_false(ring_index_has(&index.rings[BUFFER_MAIN], 0));
		assert_int_equal(ring_index_has(&index.rings[BUFFER_MAIN], 1), !i);
	}
}

static void a_header_is_not_long(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *data = empty_messages(16 * MB);
	const struct index_options o = { 0 };
	struct stream_reader reader;

	maker_init(&m, 8, false, 1024);
	add(&m, CHUNK_HEADER, data, 16 * MB);
	assert_int_equal(stream_reader_init(&reader, m.fd, NULL), 0);
	assert_int_equal(stream_index_open(&index, &reader, &o, &err), 0);
	assert_int_equal(stream_index_finish(&index, &err), -EBADMSG);
	assert_string_equal(err.message, "the stream's header is too long");
}

static void put_layout(struct maker *m, const char *text)
{
	struct maker head;
	struct stream_reader reader;
	struct chunk chunk;
	_cleanup_buf_ struct buf payload = BUF_INIT;

	/* A header as maker_head writes it, followed by this. */
	maker_begin(&head, 1024);
	assert_int_equal(stream_reader_init(&reader, head.fd, NULL), 0);
	assert_int_equal(stream_reader_next(&reader, &chunk, NULL), 1);
	assert_int_equal(stream_reader_load(&reader, &chunk, &payload, NULL), 0);
	add(m, CHUNK_HEADER, payload.data, payload.len);
	if (text)
		add(m, CHUNK_HEADER_PAGE, text, strlen(text));
	maker_deinit(&head);
}

/* A missing layout and an invalid one have different messages. */
static void a_bad_layout_is_explained(void **state _unused_)
{
	static const char *const rows[][2] = {
		{ NULL, "ends before the layout" },
		{ "\tfield: u64 timestamp;\toffset:0;\tsize:9;\tsigned:0;\n",
		  "sub-buffers is unknown: " },
	};
	const struct index_options o = { 0 };

	for (size_t i = 0; i <= ARRAY_SIZE(rows); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_(stream_index_deinit) struct stream_index index;
		_cleanup_error_ struct error err = ERROR_INIT;
		struct stream_reader reader;

		maker_init(&m, 8, false, 1024);
		if (i < ARRAY_SIZE(rows))
			put_layout(&m, rows[i][0]);
		assert_int_equal(stream_reader_init(&reader, m.fd, NULL), 0);
		assert_int_equal(stream_index_open(&index, &reader, &o, &err), 0);
		assert_int_equal(stream_index_finish(&index, &err), -EBADMSG);
		assert_non_null(strstr(
			err.message, i < ARRAY_SIZE(rows) ? rows[i][1] : "before its header does"));
		assert_non_null(err.hint);
	}
}

/* Recordings of days: the clock readings that are kept span the whole recording. */
static void clock_readings_are_thinned(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	const unsigned count = 100000;
	Traced__Capture__ClockReading rows[6], *list[6];
	Traced__Capture__Clocks clocks = TRACED__CAPTURE__CLOCKS__INIT;
	uint64_t last = 0;

	begin(&m);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		traced__capture__clock_reading__init(&rows[i]);
		rows[i].clock = (uint32_t)i;
		list[i] = &rows[i];
	}
	clocks.readings = list;
	clocks.n_readings = ARRAY_SIZE(list);
	for (unsigned n = 0; n < count; n++) {
		clocks.phase = n == 0 ? 0 : n == count - 1 ? 2 : 1;
		rows[0].value_ns = n + 1;
		assert_int_equal(stream_write_message(&m.writer, CHUNK_CLOCKS, &clocks.base), 0);
	}
	maker_end(&m);
	load(&index, &m);
	assert_false(index.incomplete);
	assert_int_equal(index.warning_count, 0);
	assert_in_range(index.info.clock_count, 5000, 40000);
	for (size_t i = 0; i < index.info.clock_count; i++) {
		uint64_t at = index.info.clocks[i]->readings[0]->value_ns;

		assert_true(at > last && at - last < 100);
		last = at;
	}
	assert_int_equal(index.info.clocks[0]->phase, 0);
	assert_int_equal(last, count);
}

/* Each would be parsed; together they would take minutes. */
static void formats_that_came_before_cost_nothing(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	static const char again[] = "test\0name: other\nID: 100\nformat:\n\nprint fmt: \"\"\n";
	static const char none[] = "test\0name: other\nID: 70000\nformat:\n\nprint fmt: \"\"\n";
	struct timespec from, to;

	begin(&m);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(stream_write(&m.writer, CHUNK_FORMAT, again, sizeof(again) - 1),
				 0);
	add(&m, CHUNK_FORMAT, none, sizeof(none) - 1);
	maker_end(&m);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	load(&index, &m);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_string_equal(event_table_find(index.info.events, 100)->name, "number");
	assert_int_equal(index.warning_count, 1);
	assert_non_null(strstr(index.warnings[0], "without a number"));
	assert_true(to.tv_sec - from.tv_sec < 8);
}

static void formats_are_not_without_number(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;
	size_t count;

	begin(&m);
	for (unsigned i = 1000; i < 21000; i++) {
		struct buf b = BUF_INIT;

		buf_append(&b, "test", 5);
		buf_printf(&b, "name: e%u\nID: %u\nformat:\n\nprint fmt: \"\"\n", i, i);
		add(&m, CHUNK_FORMAT, b.data, b.len);
		buf_deinit(&b);
	}
	maker_end(&m);
	load(&index, &m);
	assert_left_out(&index, "event formats");
	event_table_all(index.info.events, &count);
	assert_int_equal(count, 16384);
}

static bool may_name(bool few_formats, bool tasks_ring)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(stream_index_deinit) struct stream_index index;

	maker_init(&m, 8, false, 1024);
	m.few_formats = few_formats;
	maker_head(&m);
	maker_free_format(&m);
	if (tasks_ring) {
		page_begin(&m, 1);
		event_free(&m, 1, 60, "brief");
		page_end(&m, 0);
		maker_flush(&m, 0, BUFFER_TASKS, 0);
	}
	maker_end(&m);
	load(&index, &m);
	return task_scan_may_name(&index);
}

/* A trace without such events is not searched for names. */
static void events_that_name_tasks_are_known(void **state _unused_)
{
	assert_true(may_name(false, true)); /* sched_switch */
	assert_false(may_name(true, true)); /* the ring's alone */
	assert_true(may_name(true, false)); /* they may be among the trace's */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(excessive_messages_are_left_out),
		cmocka_unit_test(rings_of_a_later_version_are_left_out),
		cmocka_unit_test(the_last_histogram_of_an_event_counts),
		cmocka_unit_test(excessive_histograms_are_left_out),
		cmocka_unit_test(as_much_as_recorders_write_is_taken),
		cmocka_unit_test(short_symbol_lines_are_counted),
		cmocka_unit_test(a_part_has_an_end),
		cmocka_unit_test(what_follows_the_end_is_told),
		cmocka_unit_test(earlier_events_are_skipped),
		cmocka_unit_test(a_header_is_not_long),
		cmocka_unit_test(a_bad_layout_is_explained),
		cmocka_unit_test(clock_readings_are_thinned),
		cmocka_unit_test(formats_that_came_before_cost_nothing),
		cmocka_unit_test(formats_are_not_without_number),
		cmocka_unit_test(events_that_name_tasks_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
