/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Perfetto traces of synthetic captures, parsed by protobuf-c. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "base/io.h"
#include "exported.h"
#include "formats/formats.h"
#include "make_formats.h"
#include "memory_file.h"
#include "proto/perfetto/trace.pb-c.h"

#define PB(name) Perfetto__Protos__##name
#define DATA(name) PERFETTO__PROTOS__TRACE_PACKET__DATA_##name

#define MS UINT64_C(1000000)
#define S (UINT64_C(1000) * MS)

#define ID_BPUTS 14
#define ID_KINDS 200

struct run {
	struct exported out;
	PB(Trace) * trace;
};

static void run_deinit(struct run *r)
{
	exported_deinit(&r->out);
	if (r->trace)
		perfetto__protos__trace__free_unpacked(r->trace, NULL);
}
#define _cleanup_run_ _cleanup_(run_deinit)

static void run(struct run *r, int stream_fd)
{
	struct buf *file = &r->out.file;

	r->out.options.format = r->out.options.format ?: "pftrace";
	try_export(&r->out, stream_fd);
	if (r->out.code == 0) {
		r->trace = perfetto__protos__trace__unpack(NULL, file->len, (uint8_t *)file->data);
		assert_non_null(r->trace);
	}
}

static bool contains(const struct run *r, const char *text)
{
	return memmem(r->out.file.data, r->out.file.len, text, strlen(text));
}

/* The index of the n-th packet of that kind; the number of packets if there is none. */
static size_t find(const struct run *r, PB(TracePacket__DataCase) kind, size_t n)
{
	size_t i = 0;

	for (; i < r->trace->n_packet; i++)
		if (r->trace->packet[i]->data_case == kind && !n--)
			break;
	return i;
}

static size_t count_plain(const struct run *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->trace->n_packet; i++)
		if (r->trace->packet[i]->data_case == DATA(FTRACE_EVENTS))
			n += r->trace->packet[i]->ftrace_events->n_event;
	return n;
}

static size_t count_compact(const struct run *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->trace->n_packet; i++) {
		const PB(FtraceEventBundle) *b = r->trace->packet[i]->ftrace_events;

		if (r->trace->packet[i]->data_case == DATA(FTRACE_EVENTS) && b->compact_sched)
			n += b->compact_sched->n_switch_timestamp;
	}
	return n;
}

static void put_kernel_switch(struct maker *m, uint64_t ts, int32_t prev, int32_t next)
{
	event_switch(m, ts, prev, prev ? "task" : "swapper/0", 1, 120, next,
		     next ? "task" : "swapper/0");
}

/* A kernel's events: a stack, a function, addresses shown as symbols. */
static void put_formats(struct maker *m)
{
	maker_function_format(m);
	maker_stack_format(m);
	maker_format(m, "test", "kinds", ID_KINDS,
		     "\tfield:unsigned long site;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n"
		     "\tfield:unsigned long bare;\toffset:24;\tsize:8;\tsigned:0;\n"
		     "\tfield:s16 small;\toffset:32;\tsize:2;\tsigned:1;\n",
		     "\"site=%pS ptr=%p bare=%lu small=%d\", (void *)REC->site, REC->ptr, "
		     "REC->bare, REC->small");
	maker_symbols(m, "ffffffff81000000 T outer\n"
			 "ffffffff81000100 T inner\n"
			 "ffffffff81000200 T last\n"
			 "ffffffffc0000000 t hidden\t[module]\n"
			 "ffffffffc0001000 t hidden_end\t[module]\n");
}

#define OUTER UINT64_C(0xffffffff81000010)
#define INNER UINT64_C(0xffffffff81000100)
#define MODULE UINT64_C(0xffffffffc0000008)

static void put_kernel_events(struct maker *m, uint64_t ts)
{
	const uint64_t function[] = { INNER, OUTER };
	const uint64_t stack[] = { 3, INNER, OUTER, MODULE, UINT64_MAX };
	const uint64_t kinds[] = { MODULE, UINT64_C(0xffff888012345678), OUTER, 0xfffe };

	maker_event(m, ts, ID_FUNCTION, 7, function, sizeof(function));
	maker_event(m, ts + 1, ID_STACK, 7, stack, sizeof(stack));
	maker_event(m, ts + 2, ID_KINDS, 7, kinds, sizeof(kinds));
}

static void make(struct maker *m, const char *clock)
{
	maker_init(m, 8, false, 4096);
	m->clock = clock;
	maker_head(m);
	put_formats(m);
	page_begin(m, 100 * S);
	event_print_mark(m, 100 * S, 1, "trace_event_clock_sync: name=traced_abcdef01");
	for (unsigned i = 0; i < 20; i++) {
		put_kernel_switch(m, 100 * S + (i * 2 + 1) * MS, 0, 7);
		put_kernel_switch(m, 100 * S + (i * 2 + 2) * MS, 7, 0);
	}
	page_end(m, 0);
	page_begin(m, 101 * S);
	put_kernel_events(m, 101 * S);
	page_flush(m, 0, 0);
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

	make(&m, NULL);
	for (unsigned how = PERFETTO_DEFLATE; how <= PERFETTO_ZSTD; how++) {
		_cleanup_run_ struct run plain = { 0 };
		_cleanup_run_ struct run packed = {
			.out.options.perfetto.compression = (enum perfetto_compression)how,
		};
		_cleanup_buf_ struct buf expanded = BUF_INIT;

		run(&plain, m.fd);
		run(&packed, m.fd);
		assert_true(packed.out.file.len < plain.out.file.len);
		for (size_t i = 0; i < packed.trace->n_packet; i++)
			expand(packed.trace->packet[i], &expanded);
		assert_int_equal(expanded.len, plain.out.file.len);
		assert_memory_equal(expanded.data, plain.out.file.data, plain.out.file.len);
	}
}

static void a_large_trace_is_compressed_in_pieces(void **state _unused_)
{
	_cleanup_run_ struct run r = { .out.options.perfetto.compression = PERFETTO_DEFLATE };
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
	run(&r, m.fd);
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
	_cleanup_run_ struct run r = { .out.options.perfetto.compression = PERFETTO_PLAIN };
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
	run(&r, m.fd);
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
	_cleanup_run_ struct run compact = { 0 };
	_cleanup_run_ struct run plain = { .out.options.perfetto.plain_sched = true };
	_cleanup_(maker_deinit) struct maker m;

	make(&m, NULL);
	run(&compact, m.fd);
	run(&plain, m.fd);
	/* The first switch is plain, as are events without a compact form. */
	assert_int_equal(count_compact(&compact), 39);
	assert_int_equal(count_plain(&compact), 5);
	assert_int_equal(count_compact(&plain), 0);
	assert_int_equal(count_plain(&plain), 44);
}

/* Addresses as the kernel shows them, never as they are. */
static void addresses_are_symbols(void **state _unused_)
{
	_cleanup_run_ struct run r = { 0 }, raw = { .out.options.raw_addresses = true };
	_cleanup_(maker_deinit) struct maker m;
	const uint8_t outer[] = { 0x90, 0x80, 0x80, 0x88, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x01 };
	const uint8_t pointer[] = { 0xf8, 0xac, 0xd1, 0x91, 0x81, 0x90, 0xe2, 0xff, 0xff, 0x01 };

	make(&m, NULL);
	run(&r, m.fd);
	run(&raw, m.fd);
	assert_true(contains(&r, "inner <- outer <- hidden"));
	assert_true(contains(&r, "hidden+0x8/0x1000 [module]"));
	assert_true(contains(&r, "track_event_type"));
	assert_true(contains(&r, "slice_name"));
	assert_null(memmem(r.out.file.data, r.out.file.len, outer, sizeof(outer)));
	assert_null(memmem(r.out.file.data, r.out.file.len, pointer, sizeof(pointer)));
	assert_non_null(memmem(raw.out.file.data, raw.out.file.len, outer, sizeof(outer)));
	assert_non_null(memmem(raw.out.file.data, raw.out.file.len, pointer, sizeof(pointer)));
	assert_true(contains(&raw, "inner <- outer <- hidden"));
}

/* With five levels of page tables the kernel's part of the address space begins lower. */
static void deep_addresses_are_hidden(void **state _unused_)
{
	const uint64_t kinds[] = { MODULE, OUTER, UINT64_C(0xff11000004621700), 0xfffe };
	_cleanup_run_ struct run r = { 0 }, raw = { .out.options.raw_addresses = true };
	_cleanup_(maker_deinit) struct maker m;
	const uint8_t deep[] = { 0x80, 0xae, 0x88, 0xa3, 0x80, 0x80, 0xc0, 0x88, 0xff, 0x01 };

	maker_begin(&m, 4096);
	put_formats(&m);
	page_begin(&m, 100 * S);
	maker_event(&m, 100 * S, ID_KINDS, 7, kinds, sizeof(kinds));
	page_flush(&m, 0, 0);
	run(&r, m.fd);
	run(&raw, m.fd);
	assert_null(memmem(r.out.file.data, r.out.file.len, deep, sizeof(deep)));
	assert_non_null(memmem(raw.out.file.data, raw.out.file.len, deep, sizeof(deep)));
}

static const PB(GenericFtraceEvent) * find_generic(const struct run *r, const char *name)
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
	_cleanup_run_ struct run r = { .out.options.perfetto.legacy_generic = true };
	_cleanup_(maker_deinit) struct maker m;
	const PB(GenericFtraceEvent) * g;

	make(&m, NULL);
	run(&r, m.fd);
	assert_false(contains(&r, "track_event_type"));
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

static const PB(ClockSnapshot) * find_tie(const struct run *r, size_t *ret_at)
{
	for (size_t i = 0; i < r->trace->n_packet; i++) {
		const PB(TracePacket) *p = r->trace->packet[i];

		if (p->data_case == DATA(CLOCK_SNAPSHOT) &&
		    p->clock_snapshot->clocks[0]->clock_id == 64) {
			*ret_at = i;
			/* A clock of the bundles' sequence. */
			assert_int_equal(p->trusted_packet_sequence_id, 1);
			return p->clock_snapshot;
		}
	}
	return NULL;
}

static void a_clock_of_the_kernel_alone_is_tied_by_the_mark(void **state _unused_)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	_cleanup_run_ struct run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(ClockSnapshot) * tie;
	size_t at;

	make(&m, "local");
	end.start_boot_ns = 500 * S;
	assert_int_equal(stream_write_message(&m.writer, CHUNK_END, &end.base), 0);
	run(&r, m.fd);
	tie = find_tie(&r, &at);
	assert_non_null(tie);
	assert_int_equal(tie->clocks[0]->timestamp, 100 * S);
	assert_int_equal(tie->clocks[1]->clock_id, 6);
	assert_int_equal(tie->clocks[1]->timestamp, 500 * S);
	assert_true(at < find(&r, DATA(FTRACE_EVENTS), 0));
	assert_int_equal(
		r.trace->packet[find(&r, DATA(FTRACE_EVENTS), 0)]->ftrace_events->ftrace_clock,
		PERFETTO__PROTOS__FTRACE_CLOCK__FTRACE_CLOCK_LOCAL);
}

static void without_a_mark_the_counts_tie_it(void **state _unused_)
{
	Traced__Capture__CpuStats cpu = TRACED__CAPTURE__CPU_STATS__INIT;
	Traced__Capture__Stats stats = TRACED__CAPTURE__STATS__INIT;
	_cleanup_run_ struct run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(ClockSnapshot) * tie;
	size_t at;

	maker_init(&m, 8, false, 4096);
	m.clock = "global";
	maker_head(&m);
	cpu.now_ns = 200 * S;
	stats.boot_ns = 300 * S;
	stats.phase = 2;
	stats.n_cpus = 1;
	stats.cpus = (Traced__Capture__CpuStats *[]){ &cpu };
	assert_int_equal(stream_write_message(&m.writer, CHUNK_STATS, &stats.base), 0);
	page_begin(&m, 100 * S);
	event_number(&m, 100 * S, 1, 1);
	page_end(&m, 0);
	page_begin(&m, 101 * S);
	event_number(&m, 101 * S, 1, 1);
	page_flush(&m, 3, 0);
	run(&r, m.fd);
	tie = find_tie(&r, &at);
	assert_non_null(tie);
	assert_int_equal(tie->clocks[0]->timestamp, 200 * S);
	assert_int_equal(tie->clocks[1]->timestamp, 300 * S);
	assert_true(at < find(&r, DATA(TRACK_EVENT), 0));
	/* A packet with a time of that clock names the clock. */
	assert_int_equal(r.trace->packet[find(&r, DATA(TRACK_EVENT), 0)]->timestamp_clock_id, 64);
}

static void with_nothing_it_is_taken_for_boottime(void **state _unused_)
{
	_cleanup_run_ struct run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(ClockSnapshot) * tie;
	size_t at;

	maker_init(&m, 8, false, 4096);
	m.clock = "local";
	maker_head(&m);
	page_begin(&m, 100 * S);
	event_number(&m, 100 * S, 1, 1);
	page_flush(&m, 0, 0);
	run(&r, m.fd);
	tie = find_tie(&r, &at);
	assert_non_null(tie);
	assert_int_equal(tie->clocks[0]->timestamp, tie->clocks[1]->timestamp);
}

static const PB(TracePacket) * packet(const struct run *r, PB(TracePacket__DataCase) kind, size_t n)
{
	size_t at = find(r, kind, n);

	assert_true(at < r->trace->n_packet);
	return r->trace->packet[at];
}

static void describe(Traced__Capture__Header *h)
{
	static Traced__Capture__EventSpec sched = TRACED__CAPTURE__EVENT_SPEC__INIT;
	static Traced__Capture__EventSpec *events[] = { &sched };
	static Traced__Capture__Request request = TRACED__CAPTURE__REQUEST__INIT;
	static Traced__Capture__Cpu cpus[2] = { TRACED__CAPTURE__CPU__INIT,
						TRACED__CAPTURE__CPU__INIT };
	static Traced__Capture__Cpu *list[] = { &cpus[0], &cpus[1] };
	static uint32_t khz[] = { 800000, 3200000 };
	static int32_t pids[] = { 42 };

	sched.glob = (char *)"sched";
	request.events = events;
	request.n_events = 1;
	request.buffer_bytes = 4 << 20;
	request.duration_ns = 1500 * MS;
	request.pids = pids;
	request.n_pids = 1;
	request.name = (char *)"mine";
	cpus[1].cpu = 1;
	cpus[1].capacity = 512;
	cpus[1].frequencies_khz = khz;
	cpus[1].n_frequencies_khz = 2;
	cpus[1].model = (char *)"a fast one";
	h->request = &request;
	h->cpu_list = list;
	h->n_cpu_list = 2;
	h->tracer = (char *)"function_graph";
	h->hz = 100;
}

static void the_head_tells_what_was_recorded_how(void **state _unused_)
{
	_cleanup_run_ struct run r = { .out.options.perfetto.legacy_generic = true };
	_cleanup_(maker_deinit) struct maker m;
	const PB(TraceConfig) * config;
	const PB(FtraceConfig) * ftrace;
	const PB(CpuInfo) * info;

	maker_init(&m, 8, false, 4096);
	m.header = describe;
	maker_head(&m);
	run(&r, m.fd);
	assert_int_equal(r.trace->packet[0]->data_case, DATA(TRACE_UUID));
	assert_int_equal(r.trace->packet[0]->trace_uuid->msb, (int64_t)0xabcdef0100000000);
	assert_true(find(&r, DATA(SYSTEM_INFO), 0) < find(&r, DATA(TRACE_CONFIG), 0));
	assert_string_equal(packet(&r, DATA(SYSTEM_INFO), 0)->system_info->utsname->release,
			    "6.18.0");
	assert_int_equal(packet(&r, DATA(SYSTEM_INFO), 0)->system_info->hz, 100);
	config = packet(&r, DATA(TRACE_CONFIG), 0)->trace_config;
	assert_int_equal(config->duration_ms, 1500);
	assert_string_equal(config->unique_session_name, "mine");
	assert_string_equal(config->data_sources[0]->config->name, "linux.ftrace");
	ftrace = config->data_sources[0]->config->ftrace_config;
	assert_int_equal(ftrace->n_ftrace_events, 1);
	assert_string_equal(ftrace->ftrace_events[0], "sched");
	assert_int_equal(ftrace->buffer_size_kb, 4096);
	assert_true(ftrace->compact_sched->enabled);
	assert_true(ftrace->enable_function_graph);
	assert_true(ftrace->has_denser_generic_event_encoding);
	assert_false(ftrace->denser_generic_event_encoding);
	assert_int_equal(ftrace->n_tids_to_trace, 1);
	assert_int_equal(ftrace->tids_to_trace[0], 42);
	info = packet(&r, DATA(CPU_INFO), 0)->cpu_info;
	assert_int_equal(info->n_cpus, 2);
	assert_false(info->cpus[0]->has_capacity);
	assert_null(info->cpus[0]->processor);
	assert_int_equal(info->cpus[1]->capacity, 512);
	assert_int_equal(info->cpus[1]->n_frequencies, 2);
	assert_int_equal(info->cpus[1]->frequencies[1], 3200000);
	assert_string_equal(info->cpus[1]->processor, "a fast one");
}

static void the_end_tells_the_counts(void **state _unused_)
{
	Traced__Capture__CpuStats cpu = TRACED__CAPTURE__CPU_STATS__INIT;
	Traced__Capture__Stats stats = TRACED__CAPTURE__STATS__INIT;
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	_cleanup_run_ struct run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(FtraceStats) * start, *told;
	const PB(TraceStats) * last;

	make(&m, NULL);
	maker_stats(&m, 0, &(struct maker_stats){ .cpu = 0 }, 1);
	cpu = (Traced__Capture__CpuStats)TRACED__CAPTURE__CPU_STATS__INIT;
	cpu.entries = 1;
	cpu.overrun = 2;
	cpu.commit_overrun = 3;
	cpu.dropped = 4;
	cpu.read = 44;
	cpu.bytes = 6;
	cpu.now_ns = 2500 * MS;
	cpu.oldest_ns = 1250 * MS;
	stats.phase = 2;
	stats.boot_ns = 7 * S;
	stats.n_cpus = 1;
	stats.cpus = (Traced__Capture__CpuStats *[]){ &cpu };
	assert_int_equal(stream_write_message(&m.writer, CHUNK_STATS, &stats.base), 0);
	assert_int_equal(stream_write_message(&m.writer, CHUNK_END, &end.base), 0);
	run(&r, m.fd);
	start = packet(&r, DATA(FTRACE_STATS), 0)->ftrace_stats;
	assert_int_equal(start->phase, PERFETTO__PROTOS__FTRACE_STATS__PHASE__START_OF_TRACE);
	assert_false(start->cpu_stats[0]->has_now_ts);
	assert_int_equal(packet(&r, DATA(FTRACE_STATS), 1)->timestamp, 7 * S);
	told = packet(&r, DATA(FTRACE_STATS), 1)->ftrace_stats;
	assert_int_equal(told->phase, PERFETTO__PROTOS__FTRACE_STATS__PHASE__END_OF_TRACE);
	assert_int_equal(told->kernel_symbols_parsed, 5);
	assert_int_equal(told->n_cpu_stats, 1);
	assert_int_equal(told->cpu_stats[0]->entries, 1);
	assert_int_equal(told->cpu_stats[0]->overrun, 2);
	assert_int_equal(told->cpu_stats[0]->commit_overrun, 3);
	assert_int_equal(told->cpu_stats[0]->dropped_events, 4);
	assert_int_equal(told->cpu_stats[0]->read_events, 44);
	assert_int_equal(told->cpu_stats[0]->bytes_read, 6);
	assert_true(told->cpu_stats[0]->now_ts == 2.5);
	assert_true(told->cpu_stats[0]->oldest_event_ts == 1.25);
	assert_int_equal(r.trace->packet[r.trace->n_packet - 1]->data_case, DATA(TRACE_STATS));
	last = r.trace->packet[r.trace->n_packet - 1]->trace_stats;
	/* The packets before the last one. */
	assert_true(last->buffer_stats[0]->bytes_written > r.out.file.len - 256);
	assert_true(last->buffer_stats[0]->bytes_written < r.out.file.len);
	assert_int_equal(last->final_flush_outcome,
			 PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_SUCCEEDED);
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
	_cleanup_run_ struct run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	size_t typed = 0, other = 0;

	maker_begin(&m, 4096);
	page_begin(&m, 100 * S);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		event_print_mark(&m, 100 * S + i, 1, marks[i]);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		event_print_mark(&m, 101 * S + i, 1, texts[i]);
	page_flush(&m, 0, 0);
	run(&r, m.fd);
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
	_cleanup_run_ struct run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	put_formats(&m);
	maker_format(&m, "ftrace", "bputs", ID_BPUTS,
		     "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:const char * str;\toffset:16;\tsize:8;\tsigned:0;\n",
		     "\"%ps: %s\", (void *)REC->ip, REC->str");
	assert_int_equal(stream_write(&m.writer, CHUNK_PRINTK, formats, sizeof(formats) - 1), 0);
	page_begin(&m, 100 * S);
	maker_event(&m, 100 * S, ID_BPUTS, 1, bputs, sizeof(bputs));
	page_flush(&m, 0, 0);
	run(&r, m.fd);
	assert_true(contains(&r, "inner: a constant"));
	assert_false(contains(&r, "a constant\n"));
	/* The address is left out. */
	assert_false(contains(&r, "\003str"));
}

static void a_machine_that_has_just_started(void **state _unused_)
{
	static const uint64_t times[] = { 1,	   127,		  128,	   (1 << 28) - 1,
					  1 << 28, (1 << 28) + 1, 3 << 28, UINT64_C(1) << 40 };
	_cleanup_run_ struct run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	size_t found = 0;

	maker_begin(&m, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		page_begin(&m, times[i]);
		event_number(&m, times[i], 1, (uint32_t)i);
		page_end(&m, 0);
	}
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	run(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(TracePacket) *p = r.trace->packet[i];

		if (p->data_case != DATA(FTRACE_EVENTS))
			continue;
		for (size_t j = 0; j < p->ftrace_events->n_event; j++)
			assert_int_equal(p->ftrace_events->event[j]->timestamp, times[found++]);
	}
	assert_int_equal(found, ARRAY_SIZE(times));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_packets_hold_the_plain_ones),
		cmocka_unit_test(a_large_trace_is_compressed_in_pieces),
		cmocka_unit_test(the_longest_mask_has_room),
		cmocka_unit_test(choices_are_for_perfetto_alone),
		cmocka_unit_test(compact_sched_can_be_left),
		cmocka_unit_test(addresses_are_symbols),
		cmocka_unit_test(deep_addresses_are_hidden),
		cmocka_unit_test(the_old_form_names_its_fields),
		cmocka_unit_test(a_clock_of_the_kernel_alone_is_tied_by_the_mark),
		cmocka_unit_test(without_a_mark_the_counts_tie_it),
		cmocka_unit_test(with_nothing_it_is_taken_for_boottime),
		cmocka_unit_test(the_head_tells_what_was_recorded_how),
		cmocka_unit_test(the_end_tells_the_counts),
		cmocka_unit_test(free_text_becomes_an_instant),
		cmocka_unit_test(trace_printk_becomes_an_instant),
		cmocka_unit_test(a_machine_that_has_just_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
