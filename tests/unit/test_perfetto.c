/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Perfetto traces of synthetic captures, parsed by protobuf-c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "formats/formats.h"
#include "perfetto_run.h"

#define ID_BPUTS 14

static size_t count_plain(const struct perfetto_run *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->trace->n_packet; i++)
		if (r->trace->packet[i]->data_case == DATA(FTRACE_EVENTS))
			n += r->trace->packet[i]->ftrace_events->n_event;
	return n;
}

static size_t count_compact(const struct perfetto_run *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->trace->n_packet; i++) {
		const PB(FtraceEventBundle) *b = r->trace->packet[i]->ftrace_events;

		if (r->trace->packet[i]->data_case == DATA(FTRACE_EVENTS) && b->compact_sched)
			n += b->compact_sched->n_switch_timestamp;
	}
	return n;
}

static void expand(const PB(TracePacket) * p, struct buf *out)
{
	if (p->data_case == DATA(COMPRESSED_PACKETS)) {
		z_stream z = { .next_in = p->compressed_packets.data,
			       .avail_in = (uInt)p->compressed_packets.len };

		assert_non_null(buf_reserve(out, 1 << 20));
		z.next_out = (unsigned char *)out->data + out->len;
		z.avail_out = 1 << 20;
		assert_int_equal(inflateInit(&z), Z_OK);
		/* One whole frame, nothing behind it. */
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(z.avail_in, 0);
		out->len += z.total_out;
		inflateEnd(&z);
	} else {
		size_t n;

		assert_int_equal(p->data_case, DATA(ZSTD_COMPRESSED_PACKETS));
		assert_non_null(buf_reserve(out, 1 << 20));
		n = ZSTD_decompress(out->data + out->len, 1 << 20, p->zstd_compressed_packets.data,
				    p->zstd_compressed_packets.len);
		assert_false(ZSTD_isError(n));
		out->len += n;
	}
}

static void compressed_packets_hold_the_plain_ones(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	maker_kernel(&m, NULL);
	for (unsigned how = PERFETTO_DEFLATE; how <= PERFETTO_ZSTD; how++) {
		_cleanup_perfetto_run_ struct perfetto_run plain = { 0 };
		_cleanup_perfetto_run_ struct perfetto_run packed = {
			.out.options.perfetto.compression = (enum perfetto_compression)how,
		};
		_cleanup_buf_ struct buf expanded = BUF_INIT;

		perfetto_export(&plain, m.fd);
		perfetto_export(&packed, m.fd);
		assert_true(packed.out.file.len < plain.out.file.len);
		for (size_t i = 0; i < packed.trace->n_packet; i++)
			expand(packed.trace->packet[i], &expanded);
		assert_int_equal(expanded.len, plain.out.file.len);
		assert_memory_equal(expanded.data, plain.out.file.data, plain.out.file.len);
	}
}

static void a_large_trace_is_compressed_in_pieces(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { .out.options.perfetto.compression =
								 PERFETTO_DEFLATE };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf expanded = BUF_INIT;

	maker_begin(&m, 4096);
	for (uint32_t page = 0; page < 500; page++) {
		page_begin(&m, 100 * S + page * MS);
		for (uint32_t i = 0; i < 200; i++)
			event_number(&m, 100 * S + page * MS + i * 1000, 7, page * 200 + i);
		page_end(&m, 0);
	}
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	perfetto_export(&r, m.fd);
	assert_int_equal(r.out.result.events, 500 * 200);
	assert_true(r.trace->n_packet > 4);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		size_t before = expanded.len;

		expand(r.trace->packet[i], &expanded);
		assert_true(expanded.len - before < 512U << 10);
	}
}

static void the_longest_mask_has_room(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { .out.options.perfetto.compression =
								 PERFETTO_PLAIN };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf data = BUF_INIT;

	maker_begin(&m, 16384);
	maker_format(&m, "test", "masks", 200,
		     "\tfield:__data_loc cpumask_t mask;\toffset:8;\tsize:4;\tsigned:0;\n",
		     "\"%s\", __get_cpumask(mask)");
	/* Two bits of three: the longest text is "0-1,3-4,...". */
	maker_u32(&m, &data, 12000U << 16 | 12);
	for (unsigned i = 0; i < 4000; i++)
		buf_append(&data, "\xdb\xb6\x6d", 3);
	page_begin(&m, 100 * S);
	maker_event(&m, 100 * S, 200, 7, data.data, data.len);
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	assert_int_equal(r.out.result.events, 1);
	assert_non_null(memmem(r.out.file.data, r.out.file.len, "0-1,3-4,6-7,", 12));
	assert_non_null(memmem(r.out.file.data, r.out.file.len, ",95997-95998", 12));
}

static void choices_are_for_perfetto_alone(void **state _unused_)
{
	struct perfetto_options o = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(export_format_check_perfetto(export_format_find("json", NULL), &o, &err),
			 -EINVAL);
	assert_non_null(strstr(err.hint, ".pftrace"));
	assert_int_equal(
		export_format_check_perfetto(export_format_find("pftrace", NULL), &o, &err), 0);
	assert_int_equal(perfetto_options_set(&o, "compress", "zstd", &err), 0);
	assert_int_equal(o.compression, PERFETTO_ZSTD);
	assert_int_equal(
		export_format_check_perfetto(export_format_find("pftrace.gz", NULL), &o, &err),
		-EINVAL);
	assert_int_equal(perfetto_options_set(&o, "compact-sched", "off", &err), 0);
	assert_true(o.plain_sched);
	assert_int_equal(perfetto_options_set(&o, "generic", "legacy", &err), 0);
	assert_true(o.legacy_generic);
	assert_int_equal(perfetto_options_set(&o, "generic", "old", &err), -EINVAL);
	assert_non_null(strstr(err.message, "described, legacy"));
	assert_int_equal(perfetto_options_set(&o, "colour", "red", &err), -EINVAL);
}

static void compact_sched_can_be_left(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run compact = { 0 };
	_cleanup_perfetto_run_ struct perfetto_run plain = { .out.options.perfetto.plain_sched =
								     true };
	_cleanup_(maker_deinit) struct maker m;

	maker_kernel(&m, NULL);
	perfetto_export(&compact, m.fd);
	perfetto_export(&plain, m.fd);
	/* The first switch is plain, as are events without a compact form. */
	assert_int_equal(count_compact(&compact), 39);
	assert_int_equal(count_plain(&compact), 5);
	assert_int_equal(count_compact(&plain), 0);
	assert_int_equal(count_plain(&plain), 44);
}

/* Readers end the slice of the task that ran only with a switch away from it. */
static void check_switches_left_out(bool plain)
{
	static const struct {
		uint64_t ts;
		int32_t prev, next;
		const char *next_comm;
	} expected[] = {
		{ 101 * MS, 0, 7, "seven" },	 { 102 * MS, 7, 9, "nine" },
		{ 103 * MS, 9, 8, "eight" },	 { 104 * MS, 8, 6, "six" },
		{ 104 * MS, 6, 0, "swapper/0" },
	};
	_cleanup_perfetto_run_ struct perfetto_run r = { .out.options.perfetto.plain_sched =
								 plain };
	_cleanup_(maker_deinit) struct maker m;
	const PB(FtraceEventBundle) * b;
	size_t found = 0;

	maker_init(&m, 8, false, 4096);
	maker_head(&m);
	page_begin(&m, 101 * MS);
	event_switch(&m, 101 * MS, 0, "swapper/0", 0, 120, 7, "seven");
	event_number(&m, 102 * MS, 9, 1);
	event_number(&m, 102 * MS + 1, 9, 1);
	event_switch(&m, 103 * MS, 9, "nine", 1, 120, 8, "eight");
	event_switch(&m, 104 * MS, 6, "six", 1, 120, 0, "swapper/0");
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	b = r.trace->packet[perfetto_find(&r, DATA(FTRACE_EVENTS), 0)]->ftrace_events;
	for (size_t i = 0; i < b->n_event; i++) {
		const PB(SchedSwitchFtraceEvent) *s = b->event[i]->sched_switch;

		if (b->event[i]->event_case != PERFETTO__PROTOS__FTRACE_EVENT__EVENT_SCHED_SWITCH)
			continue;
		assert_true(found < ARRAY_SIZE(expected));
		assert_int_equal(b->event[i]->timestamp, expected[found].ts);
		assert_int_equal(b->event[i]->pid, expected[found].prev);
		assert_int_equal(s->prev_pid, expected[found].prev);
		assert_int_equal(s->next_pid, expected[found].next);
		assert_string_equal(s->next_comm, expected[found].next_comm);
		/* The mark of those that the kernel did not report. */
		assert_int_equal(s->base.n_unknown_fields, found == 1 || found == 3);
		found++;
	}
	assert_int_equal(found, ARRAY_SIZE(expected));
}

static void a_switch_left_out_by_the_kernel_is_written(void **state _unused_)
{
	check_switches_left_out(false);
	check_switches_left_out(true);
}

/* Addresses as the kernel shows them, never as they are. */
static void addresses_are_symbols(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 },
						   raw = { .out.options.raw_addresses = true };
	_cleanup_(maker_deinit) struct maker m;
	const uint8_t outer[] = { 0x90, 0x80, 0x80, 0x88, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x01 };
	const uint8_t pointer[] = { 0xf8, 0xac, 0xd1, 0x91, 0x81, 0x90, 0xe2, 0xff, 0xff, 0x01 };

	maker_kernel(&m, NULL);
	perfetto_export(&r, m.fd);
	perfetto_export(&raw, m.fd);
	assert_true(perfetto_contains(&r, "inner <- outer <- hidden"));
	assert_true(perfetto_contains(&r, "hidden+0x8/0x1000 [module]"));
	assert_true(perfetto_contains(&r, "track_event_type"));
	assert_true(perfetto_contains(&r, "slice_name"));
	assert_null(memmem(r.out.file.data, r.out.file.len, outer, sizeof(outer)));
	assert_null(memmem(r.out.file.data, r.out.file.len, pointer, sizeof(pointer)));
	assert_non_null(memmem(raw.out.file.data, raw.out.file.len, outer, sizeof(outer)));
	assert_non_null(memmem(raw.out.file.data, raw.out.file.len, pointer, sizeof(pointer)));
	assert_true(perfetto_contains(&raw, "inner <- outer <- hidden"));
}

/* With five levels of page tables the kernel's part of the address space begins lower. */
static void deep_addresses_are_hidden(void **state _unused_)
{
	const uint64_t kinds[] = { MODULE, OUTER, UINT64_C(0xff11000004621700), 0xfffe };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 },
						   raw = { .out.options.raw_addresses = true };
	_cleanup_(maker_deinit) struct maker m;
	const uint8_t deep[] = { 0x80, 0xae, 0x88, 0xa3, 0x80, 0x80, 0xc0, 0x88, 0xff, 0x01 };

	maker_begin(&m, 4096);
	maker_symbol_formats(&m);
	page_begin(&m, 100 * S);
	maker_event(&m, 100 * S, ID_KINDS, 7, kinds, sizeof(kinds));
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	perfetto_export(&raw, m.fd);
	assert_null(memmem(r.out.file.data, r.out.file.len, deep, sizeof(deep)));
	assert_non_null(memmem(raw.out.file.data, raw.out.file.len, deep, sizeof(deep)));
}

static const PB(GenericFtraceEvent) * find_generic(const struct perfetto_run *r, const char *name)
{
	for (size_t i = 0; i < r->trace->n_packet; i++) {
		const PB(TracePacket) *p = r->trace->packet[i];

		if (p->data_case != DATA(FTRACE_EVENTS))
			continue;
		for (size_t j = 0; j < p->ftrace_events->n_event; j++) {
			const PB(FtraceEvent) *e = p->ftrace_events->event[j];

			if (e->event_case == PERFETTO__PROTOS__FTRACE_EVENT__EVENT_GENERIC &&
			    !strcmp(e->generic->event_name, name))
				return e->generic;
		}
	}
	return NULL;
}

static void the_old_form_names_its_fields(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { .out.options.perfetto.legacy_generic =
								 true };
	_cleanup_(maker_deinit) struct maker m;
	const PB(GenericFtraceEvent) * g;

	maker_kernel(&m, NULL);
	perfetto_export(&r, m.fd);
	assert_false(perfetto_contains(&r, "track_event_type"));
	g = find_generic(&r, "kinds");
	assert_non_null(g);
	assert_int_equal(g->n_field, 4);
	assert_string_equal(g->field[0]->name, "site");
	assert_int_equal(g->field[0]->value_case,
			 PERFETTO__PROTOS__GENERIC_FTRACE_EVENT__FIELD__VALUE_STR_VALUE);
	assert_string_equal(g->field[0]->str_value, "hidden+0x8/0x1000 [module]");
	assert_string_equal(g->field[1]->name, "ptr");
	assert_int_equal(g->field[1]->value_case,
			 PERFETTO__PROTOS__GENERIC_FTRACE_EVENT__FIELD__VALUE_UINT_VALUE);
	assert_string_equal(g->field[3]->name, "small");
	assert_int_equal(g->field[3]->value_case,
			 PERFETTO__PROTOS__GENERIC_FTRACE_EVENT__FIELD__VALUE_INT_VALUE);
	assert_int_equal(g->field[3]->int_value, -2);
	g = find_generic(&r, "function");
	assert_non_null(g);
	assert_string_equal(g->field[0]->name, "ip");
	assert_string_equal(g->field[0]->str_value, "inner");
	assert_string_equal(g->field[1]->str_value, "outer");
	for (size_t i = 0; i < r.trace->n_packet; i++)
		if (r.trace->packet[i]->data_case == DATA(FTRACE_EVENTS))
			assert_int_equal(
				r.trace->packet[i]->ftrace_events->n_generic_event_descriptors, 0);
}

/* Readers reject a counter in atrace's form whose value is no whole number. */
static void a_counter_has_fractions(void **state _unused_)
{
	static const char *const marks[] = { "C|7|load|1", "C|7|load|1.5",  "C|7|load|2\n",
					     "C|8|load|3", "C|7|load|1.5x", "C|8|load|0.5" };
	static const double expected[] = { 1.5, 2, 0.5 };
	static const size_t at[] = { 1, 2, 5 };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	size_t found = 0, typed = 0;
	uint64_t track = 0;

	maker_init(&m, 8, false, 4096);
	maker_head(&m);
	page_begin(&m, 101 * S);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		event_print_mark(&m, 101 * S + i, 7, marks[i]);
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(TracePacket) *p = r.trace->packet[i];

		for (size_t j = 0;
		     p->data_case == DATA(FTRACE_EVENTS) && j < p->ftrace_events->n_event; j++)
			typed += p->ftrace_events->event[j]->event_case ==
				 PERFETTO__PROTOS__FTRACE_EVENT__EVENT_PRINT;
		if (p->data_case != DATA(TRACK_EVENT))
			continue;
		assert_true(found < ARRAY_SIZE(expected));
		assert_int_equal(p->timestamp, 101 * S + at[found]);
		assert_true(p->track_event->double_counter_value == expected[found]);
		/* Values of another process are another counter. */
		track = track ?: p->track_event->track_uuid;
		assert_true((p->track_event->track_uuid == track) == (found < 2));
		found++;
	}
	assert_int_equal(found, ARRAY_SIZE(expected));
	/* The first and the fourth; the others are instants of their text. */
	assert_int_equal(typed, 2);
}

/* The reader parses marks like this (ParseSystraceTracePoint of its source). */
static void free_text_becomes_an_instant(void **state _unused_)
{
	static const char *const marks[] = { "B|1|begin",
					     "E|1",
					     "E",
					     "C|1|n|3",
					     "S|1|a|2",
					     "F|1|a|2",
					     "trace_event_clock_sync: parent_ts=1" };
	static const char *const texts[] = { "hello", "Entered", "", "Begin", "C'est" };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	size_t typed = 0, other = 0;

	maker_begin(&m, 4096);
	page_begin(&m, 100 * S);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		event_print_mark(&m, 100 * S + i, 1, marks[i]);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		event_print_mark(&m, 101 * S + i, 1, texts[i]);
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(TracePacket) *p = r.trace->packet[i];

		if (p->data_case != DATA(FTRACE_EVENTS))
			continue;
		for (size_t j = 0; j < p->ftrace_events->n_event; j++) {
			const PB(FtraceEvent) *e = p->ftrace_events->event[j];

			if (e->event_case == PERFETTO__PROTOS__FTRACE_EVENT__EVENT_PRINT) {
				assert_memory_equal(e->print->buf, marks[typed],
						    strlen(marks[typed]));
				typed++;
			} else {
				/* Length, 'I' at field 1, the text at field 2. */
				const ProtobufCMessageUnknownField *f = &e->base.unknown_fields[0];
				size_t len = strlen(texts[other]);

				assert_int_equal(f->len, 1 + 2 + 2 + len);
				assert_int_equal(f->data[1], 1 << 3);
				assert_int_equal(f->data[2], 'I');
				assert_memory_equal(f->data + 5, texts[other], len);
				other++;
			}
		}
	}
	assert_int_equal(typed, ARRAY_SIZE(marks));
	assert_int_equal(other, ARRAY_SIZE(texts));
}

static void trace_printk_becomes_an_instant(void **state _unused_)
{
	static const char formats[] = "0xffffffff82000000 : \"a constant\\n\"\n";
	const uint64_t bputs[] = { INNER, UINT64_C(0xffffffff82000000) };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	maker_symbol_formats(&m);
	maker_format(&m, "ftrace", "bputs", ID_BPUTS,
		     "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:const char * str;\toffset:16;\tsize:8;\tsigned:0;\n",
		     "\"%ps: %s\", (void *)REC->ip, REC->str");
	assert_int_equal(stream_write(&m.writer, CHUNK_PRINTK, formats, sizeof(formats) - 1), 0);
	page_begin(&m, 100 * S);
	maker_event(&m, 100 * S, ID_BPUTS, 1, bputs, sizeof(bputs));
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	assert_true(perfetto_contains(&r, "inner: a constant"));
	assert_false(perfetto_contains(&r, "a constant\n"));
	/* The address is left out. */
	assert_false(perfetto_contains(&r, "\003str"));
}

static void a_machine_that_has_just_started(void **state _unused_)
{
	static const uint64_t times[] = { 1,	   127,		  128,	   (1 << 28) - 1,
					  1 << 28, (1 << 28) + 1, 3 << 28, UINT64_C(1) << 40 };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	size_t found = 0;

	maker_begin(&m, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		page_begin(&m, times[i]);
		event_number(&m, times[i], 1, (uint32_t)i);
		page_end(&m, 0);
	}
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	perfetto_export(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(TracePacket) *p = r.trace->packet[i];

		if (p->data_case != DATA(FTRACE_EVENTS))
			continue;
		for (size_t j = 0; j < p->ftrace_events->n_event; j++)
			assert_int_equal(p->ftrace_events->event[j]->timestamp, times[found++]);
	}
	assert_int_equal(found, ARRAY_SIZE(times));
}

/* Another task's event is older than the last switch: it tells nothing of the next one. */
static void a_switch_left_out_follows_the_last_one(void **state _unused_)
{
	static const uint64_t expected[] = { 101 * MS, 103 * MS, 104 * MS, 104 * MS };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(FtraceEventBundle) * b;
	size_t found = 0;

	maker_init(&m, 8, false, 4096);
	maker_head(&m);
	page_begin(&m, 101 * MS);
	event_switch(&m, 101 * MS, 0, "swapper/0", 0, 120, 7, "seven");
	event_number(&m, 102 * MS, 9, 1);
	/* At the time of the switch, which therefore is plain. */
	event_number(&m, 103 * MS, 7, 1);
	event_switch(&m, 103 * MS, 7, "seven", 1, 120, 8, "eight");
	event_switch(&m, 104 * MS, 9, "nine", 1, 120, 0, "swapper/0");
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	b = r.trace->packet[perfetto_find(&r, DATA(FTRACE_EVENTS), 0)]->ftrace_events;
	assert_null(b->compact_sched);
	for (size_t i = 0; i < b->n_event; i++) {
		if (b->event[i]->event_case != PERFETTO__PROTOS__FTRACE_EVENT__EVENT_SCHED_SWITCH)
			continue;
		assert_true(found < ARRAY_SIZE(expected));
		assert_int_equal(b->event[i]->timestamp, expected[found]);
		found++;
	}
	assert_int_equal(found, ARRAY_SIZE(expected));
}

/* A program with many counters leaves room for another's. */
static void each_program_has_counters_with_fractions(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	size_t found = 0;
	char text[64];

	maker_init(&m, 8, false, 65536);
	maker_head(&m);
	page_begin(&m, 101 * S);
	for (unsigned i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "C|7|load%u|1.5", i);
		event_print_mark(&m, 101 * S + i, 7, text);
	}
	event_print_mark(&m, 102 * S, 8, "C|8|other|1.5");
	event_print_mark(&m, 102 * S + 1, 8, "C|8|other|2");
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++)
		found += r.trace->packet[i]->data_case == DATA(TRACK_EVENT);
	assert_int_equal(found, 302);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_packets_hold_the_plain_ones),
		cmocka_unit_test(a_large_trace_is_compressed_in_pieces),
		cmocka_unit_test(the_longest_mask_has_room),
		cmocka_unit_test(choices_are_for_perfetto_alone),
		cmocka_unit_test(compact_sched_can_be_left),
		cmocka_unit_test(a_switch_left_out_by_the_kernel_is_written),
		cmocka_unit_test(addresses_are_symbols),
		cmocka_unit_test(deep_addresses_are_hidden),
		cmocka_unit_test(the_old_form_names_its_fields),
		cmocka_unit_test(free_text_becomes_an_instant),
		cmocka_unit_test(a_counter_has_fractions),
		cmocka_unit_test(trace_printk_becomes_an_instant),
		cmocka_unit_test(a_machine_that_has_just_started),
		cmocka_unit_test(a_switch_left_out_follows_the_last_one),
		cmocka_unit_test(each_program_has_counters_with_fractions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
