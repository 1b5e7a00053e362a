/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks of Perfetto traces that no exporter wrote: what makes no sense, or is to cost much. */
#include "make_packets.h"

#include <sys/stat.h>

#include "formats/perfetto/message.h"
#include "formats/perfetto_read/known.h"

/* What refers to what is not there is left out, and told of; the event it stands in is kept. */
static void what_is_not_there_is_left_out(void **state _unused_)
{
	_cleanup_import_ struct import i;
	_cleanup_buf_ struct buf b;
	size_t at;

	import_begin(&i, 0);
	add_thread(&i, 5);
	add_simple(&i, 1000, INSTANT, 6, "no such track");
	add_simple(&i, 1000, INSTANT, 0, "the root");
	add_simple(&i, UINT64_MAX, INSTANT, 5, "never");
	add_simple(&i, 1000, COUNTER, 5, "of no counter");
	add_simple(&i, 1000, 0, 5, "of no type");
	begin_event(&b, BEGIN, 5, NULL);
	pf_uint(&b, 10, 77);
	pf_uint(&b, 3, 78);
	at = pf_open(&b, 4);
	pf_uint(&b, 1, 79);
	pf_uint(&b, 4, 7);
	pf_close(&b, at);
	add_event(&i, 2000, &b);
	add_sample(&i, 3000, 5, 80);
	import_end(&i);
	assert_int_equal(i.left_out, 5 + 3 + 1);
	assert_int_equal(i.count, 2);
	assert_string_equal(string_of(event_at(&i, 0), "name"), "unnamed");
	assert_int_equal(integer_of(json_object_get(event_at(&i, 0), "args"), "?"), 7);
	check_readable(&i);
}

/* What is damaged is not taken for what it might have been. */
static void damaged_names_are_not_kept(void **state _unused_)
{
	_cleanup_import_ struct import i;
	_cleanup_buf_ struct buf in = BUF_INIT, event;
	size_t at;

	import_begin(&i, 0);
	add_thread(&i, 5);
	at = pf_open(&in, 2);
	pf_uint(&in, 1, 1);
	pf_text(&in, 2, TEXT("name"));
	buf_putc(&in, '\x80');
	pf_close(&in, at);
	at = pf_open(&in, 2);
	pf_text(&in, 2, TEXT("without a number"));
	pf_close(&in, at);
	add_interned(&i, &in);
	begin_event(&event, INSTANT, 5, NULL);
	pf_uint(&event, 10, 1);
	add_event(&i, 1, &event);
	import_end(&i);
	assert_int_equal(i.left_out, 3);
	assert_string_equal(string_of(event_at(&i, 0), "name"), "unnamed");
}

/* Another thread's end, or one of an earlier time, makes no complete slice. */
static void an_end_is_its_slices_own(void **state _unused_)
{
	static const char *const phases[] = { "B", "E", "B", "E", "X" };
	_cleanup_import_ struct import i;

	import_begin(&i, 0);
	add_thread(&i, 5);
	add_thread(&i, 6);
	add_simple(&i, 1000, BEGIN, 5, "a");
	add_simple(&i, 2000, END, 6, NULL);
	add_simple(&i, 3000, BEGIN, 5, "b");
	add_simple(&i, 2000, END, 5, NULL);
	add_simple(&i, 4000, BEGIN, 5, "c");
	add_simple(&i, 4000, END, 5, NULL);
	import_end(&i);
	assert_int_equal(i.count, ARRAY_SIZE(phases));
	for (size_t n = 0; n < ARRAY_SIZE(phases); n++)
		assert_string_equal(string_of(event_at(&i, n), "ph"), phases[n]);
}

/* A name is told once, and again where it is another one. */
static void names_are_told_once(void **state _unused_)
{
	static const char *const names[] = { "one", "one", "two", "two", "one" };
	_cleanup_import_ struct import i;

	import_begin(&i, 0);
	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		_cleanup_buf_ struct buf b = BUF_INIT;
		size_t process;

		pf_uint(&b, 1, 5);
		process = pf_open(&b, 3);
		pf_uint(&b, 1, 5);
		pf_text(&b, 6, (struct text){ names[n], (uint32_t)strlen(names[n]) });
		pf_close(&b, process);
		pf_uint(&b, 12, n / 2);
		add_track(&i, &b);
	}
	import_end(&i);
	assert_int_equal(i.count, 3 + 3);
	assert_string_equal(string_of(json_object_get(event_at(&i, 2), "args"), "name"), "two");
	assert_int_equal(integer_of(json_object_get(event_at(&i, 3), "args"), "sort_index"), 1);
}

/* The trace's own words are no marks. */
static void losses_and_clocks_are_no_marks(void **state _unused_)
{
	_cleanup_import_ struct import i;
	const uint64_t lost = UINT64_C(0x6c6f737400000003);

	import_begin(&i, 0);
	add_named(&i, lost, 0, "CPU 3 lost events");
	add_named(&i, 100, 0, "Applications");
	add_named(&i, 101, 100, "clocks");
	add_named(&i, 102, 100, "instants");
	add_simple(&i, 1000, BEGIN, lost, "7 events lost");
	add_simple(&i, 2000, END, lost, NULL);
	add_simple(&i, 2000, INSTANT, 101, "clock tied");
	import_end(&i);
	assert_int_equal(i.count, 0);
	assert_int_equal(i.left_out, 0);
}

/* Sequences have names of their own, until they say that they begin anew; tracks are everybody's.
 */
static void names_are_a_sequences_own(void **state _unused_)
{
	static const char *const names[] = { "one", "two", "unnamed", "one again" };
	_cleanup_import_ struct import i;
	_cleanup_buf_ struct buf event;
	const struct {
		uint32_t sequence, flags;
		const char *name;
	} packets[] = { { 1, 0, "one" }, { 3, 0, "two" }, { 3, 1, NULL }, { 1, 1, "one again" } };

	import_begin(&i, 0);
	add_thread(&i, 5);
	begin_event(&event, INSTANT, 5, NULL);
	pf_uint(&event, 10, 1);
	for (size_t n = 0; n < ARRAY_SIZE(packets); n++) {
		_cleanup_buf_ struct buf in = BUF_INIT;
		struct pf_packet p = {
			.sequence = packets[n].sequence,
			.sequence_flags = packets[n].flags,
			.timestamp = 1000 * n,
			.track_event = field_of(&event),
		};

		if (packets[n].name) {
			size_t at = pf_open(&in, 2);

			pf_uint(&in, 1, 1);
			pf_text(&in, 2,
				(struct text){ packets[n].name,
					       (uint32_t)strlen(packets[n].name) });
			pf_close(&in, at);
			p.interned = field_of(&in);
		}
		import_add(&i, &p);
	}
	import_end(&i);
	for (size_t n = 0; n < ARRAY_SIZE(names); n++)
		assert_string_equal(string_of(event_at(&i, n), "name"), names[n]);
	assert_int_equal(i.left_out, 1);
}

/* Times and numbers that no double holds. */
static void numbers_are_exact(void **state _unused_)
{
	_cleanup_import_ struct import i;
	_cleanup_buf_ struct buf b;
	size_t at;

	import_begin(&i, 0);
	add_thread(&i, 5);
	begin_event(&b, INSTANT, 5, "exact");
	at = pf_open(&b, 4);
	pf_text(&b, 10, TEXT("u"));
	pf_uint(&b, 3, INT64_MAX);
	pf_close(&b, at);
	at = pf_open(&b, 4);
	pf_text(&b, 10, TEXT("p"));
	pf_uint(&b, 7, UINT64_MAX);
	pf_close(&b, at);
	at = pf_open(&b, 4);
	pf_text(&b, 10, TEXT("d"));
	pf_double(&b, 5, 1.0 / 0.0);
	pf_close(&b, at);
	add_event(&i, INT64_MAX, &b);
	import_end(&i);
	assert_non_null(strstr(i.text.data, "\"ts\":9223372036854775.807,"));
	assert_non_null(strstr(i.text.data, "\"u\":9223372036854775807,"));
	assert_non_null(strstr(i.text.data, "\"p\":\"0xffffffffffffffff\","));
	assert_non_null(strstr(i.text.data, "\"d\":\"Infinity\"}"));
	check_readable(&i);
}

/* Tracks in a circle, of which none has a process. */
static void circles_end(void **state _unused_)
{
	_cleanup_import_ struct import i;

	import_begin(&i, 0);
	add_named(&i, 1, 2, "a");
	add_named(&i, 2, 3, "b");
	add_named(&i, 3, 1, "c");
	add_named(&i, 4, 4, "Applications");
	for (uint64_t track = 1; track <= 4; track++)
		add_simple(&i, 1000, INSTANT, track, "x");
	import_end(&i);
	assert_int_equal(i.count, 4);
	assert_non_null(json_object_get(json_object_get(event_at(&i, 3), "id2"), "global"));
	check_readable(&i);
}

/* Lists in lists: as deep as the reader of the JSON goes, and no deeper. */
static void depth_is_bounded(void **state _unused_)
{
	static const unsigned depths[] = { 1, 61, 62, 63, 64, 200, 20000 };

	for (size_t n = 0; n < ARRAY_SIZE(depths); n++) {
		_cleanup_buf_ struct buf inner = BUF_INIT, event;
		_cleanup_import_ struct import i;
		size_t at;

		pf_uint(&inner, 4, 1);
		for (unsigned d = 0; d < depths[n]; d++) {
			struct buf outer = BUF_INIT;

			pf_bytes(&outer, 12, inner.data, inner.len);
			buf_deinit(&inner);
			inner = outer;
		}
		begin_event(&event, INSTANT, 5, "deep");
		at = pf_open(&event, 4);
		pf_text(&event, 10, TEXT("k"));
		buf_append(&event, inner.data, inner.len);
		pf_close(&event, at);
		import_begin(&i, 0);
		add_thread(&i, 5);
		add_event(&i, 1, &event);
		import_end(&i);
		assert_int_equal(i.left_out, depths[n] > 61);
		check_readable(&i);
	}
}

/* Whatever text there is, the JSON's reader takes it, or the event is left out. */
static void long_texts_are_bounded(void **state _unused_)
{
	static const struct {
		size_t name, category, argument;
		char byte;
		bool kept;
	} rows[] = {
		{ 100, 100, 1 << 20, 'x', true },     { 3 << 20, 100, 100, 'x', true },
		{ 100, 3 << 20, 100, 'x', true },     { 400 << 10, 400 << 10, 100, '\xff', true },
		{ 100, 100, 3 << 20, '\xff', true },  { 1 << 20, 1 << 20, 1 << 20, '\xff', true },
		{ 100, 100, 12 << 20, '\xff', true },
	};

	for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
		_cleanup_import_ struct import i;
		_cleanup_buf_ struct buf text = BUF_INIT, event;
		size_t at;

		assert_non_null(buf_reserve(&text, 12 << 20));
		memset(text.data, rows[n].byte, 12 << 20);
		import_begin(&i, 0);
		add_thread(&i, 5);
		begin_event(&event, INSTANT, 5, NULL);
		pf_bytes(&event, 23, text.data, rows[n].name);
		pf_bytes(&event, 22, text.data, rows[n].category);
		at = pf_open(&event, 4);
		pf_bytes(&event, 6, text.data, rows[n].argument);
		pf_bytes(&event, 10, text.data, 10);
		pf_close(&event, at);
		add_event(&i, 1, &event);
		import_end(&i);
		assert_int_equal(i.count, rows[n].kept);
		check_readable(&i);
	}
}

/* Events of few bytes that would be many: what they refer to is long, and told often. */
static void references_do_not_add_up(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT, in = BUF_INIT, event;
	_cleanup_import_ struct import i;

	assert_non_null(buf_reserve(&text, 5000));
	memset(text.data, 'x', 5000);
	import_begin(&i, 0);
	add_thread(&i, 5);
	for (uint32_t kind = 1; kind <= 3; kind++) {
		for (uint64_t iid = 1; iid <= 2; iid++) {
			size_t at = pf_open(&in, kind);

			pf_uint(&in, 1, iid);
			pf_bytes(&in, 2, text.data, iid == 1 ? 4096 : 4097);
			pf_close(&in, at);
		}
	}
	add_interned(&i, &in);
	begin_event(&event, INSTANT, 5, "x");
	for (unsigned n = 0; n < 500000; n++)
		pf_uint(&event, 3, 1);
	add_event(&i, 1, &event);
	buf_deinit(&event);
	begin_event(&event, INSTANT, 5, "y");
	for (unsigned n = 0; n < 500000; n++) {
		size_t at = pf_open(&event, 4);

		pf_uint(&event, 1, 1);
		pf_uint(&event, 2, 1);
		pf_close(&event, at);
	}
	add_event(&i, 2, &event);
	import_end(&i);
	/* The first event has a part of its categories; nearly all else is not even looked at. */
	assert_int_equal(i.count, 1);
	assert_true(i.left_out > 900000);
	assert_true(i.text.len < 2 << 20);
	check_readable(&i);
}

/* More than is remembered: it is left out, and told of. */
static void memory_is_bounded(void **state _unused_)
{
	_cleanup_import_ struct import i;
	_cleanup_buf_ struct buf in = BUF_INIT, sequence = BUF_INIT;
	char name[4000];
	size_t at;

	memset(name, 'n', sizeof(name));
	import_begin(&i, 0);
	add_thread(&i, 5);
	for (uint64_t iid = 1; iid <= 20000; iid++) {
		buf_clear(&in);
		at = pf_open(&in, 2);
		pf_uint(&in, 1, iid);
		pf_bytes(&in, 2, name, sizeof(name));
		pf_close(&in, at);
		add_interned(&i, &in);
	}
	for (uint32_t id = 1; id <= 100; id++) {
		struct pf_packet p = { .sequence = id, .interned = field_of(&in) };

		import_add(&i, &p);
	}
	add_named(&i, 6, 0, "a track");
	add_simple(&i, 1, INSTANT, 5, "of a track that is known");
	import_end(&i);
	assert_int_equal(i.count, 1);
	assert_true(i.left_out > 20000 - KNOWN_BYTES_MAX / sizeof(name));
}

/* A stack of few bytes whose frames have long names is not written out for ever. */
static void stacks_are_bounded(void **state _unused_)
{
	_cleanup_import_ struct import i;
	_cleanup_buf_ struct buf in = BUF_INIT;
	struct stat st;
	char name[4000];
	size_t at;

	memset(name, 'n', sizeof(name));
	import_begin(&i, 0);
	at = pf_open(&in, 5);
	pf_uint(&in, 1, 1);
	pf_bytes(&in, 2, name, sizeof(name));
	pf_close(&in, at);
	for (uint64_t frame = 1; frame <= 2; frame++) {
		at = pf_open(&in, 6);
		pf_uint(&in, 1, frame);
		pf_uint(&in, 2, frame); /* of the second one there is no name */
		pf_close(&in, at);
	}
	for (uint64_t stack = 1; stack <= 500; stack++) {
		at = pf_open(&in, 7);
		pf_uint(&in, 1, stack);
		for (unsigned depth = 0; depth < 5000; depth++)
			pf_uint(&in, 2, 1);
		/* Each is another one. */
		for (unsigned bit = 0; bit < 9; bit++)
			pf_uint(&in, 2, stack >> bit & 1 ? 2 : 1);
		for (unsigned depth = 0; depth < 200; depth++)
			pf_uint(&in, 2, 1);
		pf_close(&in, at);
	}
	add_interned(&i, &in);
	for (uint64_t stack = 1; stack <= 500; stack++)
		add_sample(&i, stack, 5, stack);
	import_close(&i);
	assert_int_equal(i.count, 500);
	assert_true(i.left_out > 0);
	/* All of them together would have 500 MiB. */
	assert_int_equal(fstat(i.fd, &st), 0);
	assert_in_range(st.st_size, 60 << 20, 80 << 20);
}

/* Events and samples that come by turns stand apart, in their order, however many they are. */
static void many_are_put_in_order(void **state _unused_)
{
	static const unsigned rows[][2] = {
		{ 8000, 0 }, { 0, 8000 }, { 8000, 8000 }, { 8000, 1 }, { 1, 8000 }
	};

	for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
		_cleanup_import_ struct import i;
		unsigned events = rows[n][0], samples = rows[n][1];
		json_t *row;
		size_t at;

		import_begin(&i, 0);
		add_thread(&i, 5);
		for (unsigned k = 0; k < MAX(events, samples); k++) {
			if (k < events)
				add_simple(&i, k * 1000, INSTANT, 5, "event");
			if (k < samples)
				add_sample(&i, k * 1000, 5, 0);
		}
		import_end(&i);
		assert_int_equal(i.count, events + samples);
		assert_int_equal(json_array_size(rows_of(i.json, "traceEvents")), events);
		assert_int_equal(json_array_size(rows_of(i.json, "samples")), samples);
		json_array_foreach(rows_of(i.json, "traceEvents"), at, row)
			assert_int_equal(integer_of(row, "ts"), at);
		json_array_foreach(rows_of(i.json, "samples"), at, row)
			assert_int_equal(integer_of(row, "ts"), at);
		check_readable(&i);
	}
}

static void a_limit_is_kept(void **state _unused_)
{
	_cleanup_import_ struct import i;
	_cleanup_buf_ struct buf event;
	struct pf_packet p = { .sequence = 1 };
	int r = 0;

	import_begin(&i, 10000);
	add_thread(&i, 5);
	begin_event(&event, INSTANT, 5, "event");
	p.track_event = field_of(&event);
	for (unsigned k = 0; r == 0 && k < 1000; k++)
		r = pf_mark_writer_add(i.writer, &p, &i.err);
	assert_int_equal(r, -EDQUOT);
	assert_non_null(strstr(i.err.message, "10000"));
}

/* Flows that begin nowhere, or twice, or have more ends than an event takes. */
static void flows_are_taken_as_they_come(void **state _unused_)
{
	_cleanup_import_ struct import i;
	_cleanup_buf_ struct buf event;

	import_begin(&i, 0);
	add_thread(&i, 5);
	add_named(&i, 6, 5, "its own");
	begin_event(&event, BEGIN, 5, "a");
	pf_fixed64(&event, 47, 1);
	add_event(&i, 1000, &event);
	buf_deinit(&event);
	begin_event(&event, END, 5, NULL);
	add_event(&i, 2000, &event);
	buf_deinit(&event);
	begin_event(&event, INSTANT, 5, "b");
	pf_fixed64(&event, 47, 1);
	for (unsigned n = 0; n < 100; n++)
		pf_fixed64(&event, 48, 1000 + n);
	pf_fixed64(&event, 47, 1);
	add_event(&i, 3000, &event);
	buf_deinit(&event);
	begin_event(&event, INSTANT, 6, "c");
	pf_fixed64(&event, 47, 1);
	add_event(&i, 4000, &event);
	import_end(&i);
	assert_int_equal(i.left_out, 100 - 64 + 1);
	assert_int_equal(i.count, 2 + 1 + 64 + 1 + 2 + 1);
	assert_string_equal(string_of(event_at(&i, 1), "ph"), "s");
	assert_string_equal(string_of(event_at(&i, 2), "ph"), "E");
	assert_string_equal(string_of(event_at(&i, 3), "ph"), "f");
	assert_string_equal(string_of(event_at(&i, 67), "ph"), "i");
	assert_string_equal(string_of(event_at(&i, 69), "ph"), "t");
	assert_string_equal(string_of(event_at(&i, 69), "name"), "a");
	check_readable(&i);
}

/* What was dropped leaves no gap in which another one would be lost. */
static void the_table_finds_what_it_has(void **state _unused_)
{
	struct known_table t = { 0 };
	struct known_room room = { 0 };
	uint32_t random = 7;
	bool there[1024] = { 0 };
	uint64_t *value;

	for (unsigned n = 0; n < 200000; n++) {
		uint64_t key;

		random = random * 1664525 + 1013904223;
		key = random >> 16 & 1023;
		if (random >> 8 & 1) {
			value = known_add(&t, &room, key, sizeof(*value));
			assert_non_null(value);
			*value = key;
		} else {
			known_drop(&t, &room, key);
		}
		there[key] = random >> 8 & 1;
		random = random * 1664525 + 1013904223;
		key = random >> 16 & 1023;
		value = known_find(&t, key);
		assert_int_equal(value != NULL, there[key]);
		if (value)
			assert_int_equal(*value, key);
	}
	assert_true(room.used > 0);
	known_deinit(&t, &room);
	assert_int_equal(room.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_there_is_left_out),
		cmocka_unit_test(damaged_names_are_not_kept),
		cmocka_unit_test(an_end_is_its_slices_own),
		cmocka_unit_test(names_are_told_once),
		cmocka_unit_test(losses_and_clocks_are_no_marks),
		cmocka_unit_test(names_are_a_sequences_own),
		cmocka_unit_test(numbers_are_exact),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(long_texts_are_bounded),
		cmocka_unit_test(references_do_not_add_up),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(stacks_are_bounded),
		cmocka_unit_test(many_are_put_in_order),
		cmocka_unit_test(a_limit_is_kept),
		cmocka_unit_test(flows_are_taken_as_they_come),
		cmocka_unit_test(the_table_finds_what_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
