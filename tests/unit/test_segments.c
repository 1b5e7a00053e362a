/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording in several files: each opens alone, and together they are the whole. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "formats/formats.h"
#include "make_formats.h"
#include "make_stream.h"
#include "memory_file.h"
#include "occurrences.h"
#include "proto/perfetto/trace.pb-c.h"
#include "segmented.h"

#define PB(name) Perfetto__Protos__##name
#define DATA(name) PERFETTO__PROTOS__TRACE_PACKET__DATA_##name

#define CPUS 3
#define EVENTS 6000
#define STEP UINT64_C(1000000) /* ns between two events */
#define FIRST UINT64_C(5000000000)
#define BORN_AT (EVENTS / 2) /* task 70 is born at this event's time */

/* Event n is at FIRST + n * STEP, on one CPU: a switch, or its number. */
static void put_event(struct maker *m, unsigned cpu, unsigned n, int32_t *running)
{
	uint64_t ts = FIRST + n * STEP;
	int32_t next = *running ? 0 : (int32_t)(50 + cpu);

	if (n % 4 == 3) {
		event_number(m, ts, *running, n);
		return;
	}
	event_switch(m, ts, *running, *running ? "worker" : "swapper", 0, 120, next,
		     next ? "worker" : "swapper");
	*running = next;
}

static const char *tracer = "nop";

static void by_tracer(Traced__Capture__Header *h)
{
	h->tracer = (char *)tracer;
}

static void make_events(struct maker *m)
{
	static const struct maker_task task = { 50, 50, "first", 1, false };
	int32_t running[CPUS] = { 0 };

	maker_init(m, 8, false, 4096);
	m->header = by_tracer;
	maker_head(m);
	maker_tasks(m, FIRST, 0, &task, 1);
	page_begin(m, FIRST + BORN_AT * STEP);
	event_newtask(m, FIRST + BORN_AT * STEP, 50, 70, "late", 0);
	page_end(m, 0);
	maker_flush(m, 0, BUFFER_TASKS, 0);
	/* Pages of 20 events, on each CPU in turn; CPU 1 loses 7 events before each page. */
	for (unsigned n = 0; n < EVENTS; n += 20) {
		unsigned cpu = n / 20 % CPUS;

		page_begin(m, FIRST + n * STEP);
		for (unsigned i = n; i < n + 20; i++)
			put_event(m, cpu, i, &running[cpu]);
		page_flush(m, cpu == 1 ? 7 : 0, cpu);
	}
}

static void make(struct maker *m)
{
	make_events(m);
	maker_end(m);
}

/* Events found in the Perfetto files. */
struct found {
	bool seen[EVENTS];
	uint64_t last_ts[CPUS]; /* in an earlier segment */
	unsigned compact, losses, born;
};

static void find_event(struct found *f, uint64_t ts)
{
	uint64_t n = (ts - FIRST) / STEP;

	assert_in_range(n, 0, EVENTS - 1);
	assert_int_equal(ts, FIRST + n * STEP);
	assert_false(f->seen[n]);
	f->seen[n] = true;
}

struct cpu_state {
	bool begun,
		switched; /* in this segment: a bundle; a switch that the reader can begin with */
	uint64_t last_ts;
};

static void read_bundle(struct found *f, struct cpu_state *cpus, const PB(FtraceEventBundle) * b)
{
	const PB(FtraceEventBundle__CompactSched) *c = b->compact_sched;
	struct cpu_state *cpu = &cpus[b->cpu];
	uint64_t ts = 0;

	assert_true(b->has_previous_bundle_end_timestamp == !cpu->begun);
	if (!cpu->begun)
		assert_int_equal(b->previous_bundle_end_timestamp,
				 b->lost_events ? b->event[0]->timestamp : f->last_ts[b->cpu]);
	cpu->begun = true;
	f->losses += b->lost_events;
	for (size_t i = 0; i < b->n_event; i++) {
		find_event(f, b->event[i]->timestamp);
		cpu->last_ts = MAX(cpu->last_ts, b->event[i]->timestamp);
		cpu->switched |= b->event[i]->event_case ==
				 PERFETTO__PROTOS__FTRACE_EVENT__EVENT_SCHED_SWITCH;
	}
	for (size_t i = 0; c && i < c->n_switch_timestamp; i++) {
		ts += c->switch_timestamp[i];
		find_event(f, ts);
		cpu->last_ts = MAX(cpu->last_ts, ts);
		assert_true(cpu->switched);
		f->compact++;
	}
}

static bool tree_has(const PB(ProcessTree) * tree, int32_t tid)
{
	for (size_t i = 0; i < tree->n_threads; i++)
		if (tree->threads[i]->tid == tid)
			return true;
	return false;
}

static void read_segment(struct found *f, const PB(Trace) * trace)
{
	struct cpu_state cpus[CPUS] = { 0 };
	unsigned system = 0, first = 0, born = 0;

	assert_int_equal(trace->packet[0]->data_case, DATA(TRACE_UUID));
	assert_int_equal(trace->packet[1]->sequence_flags, 1);
	for (size_t i = 0; i < trace->n_packet; i++) {
		const PB(TracePacket) *p = trace->packet[i];

		if (p->data_case == DATA(SYSTEM_INFO))
			system++;
		if (p->data_case == DATA(PROCESS_TREE)) {
			first += tree_has(p->process_tree, 50);
			born += tree_has(p->process_tree, 70);
		}
		if (p->data_case == DATA(FTRACE_EVENTS)) {
			assert_int_equal(system, 1);
			assert_int_equal(first, 1);
			read_bundle(f, cpus, p->ftrace_events);
		}
	}
	assert_in_range(born, f->born, 1);
	f->born = born;
	for (unsigned i = 0; i < CPUS; i++)
		f->last_ts[i] = MAX(f->last_ts[i], cpus[i].last_ts);
}

static void check_perfetto(struct export_options *options, size_t least, size_t most)
{
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_free_ struct found *f = calloc(1, sizeof(*f));
	_cleanup_(maker_deinit) struct maker m;
	int64_t uuid = -1;

	make(&m);
	options->format = "pftrace";
	s = export_segments(m.fd, options);
	assert_int_equal(s->out.code, 0);
	assert_in_range(s->count, least, most);
	assert_int_equal(s->out.result.events, EVENTS);
	for (size_t i = 0; i < s->count; i++) {
		PB(Trace) *trace = perfetto__protos__trace__unpack(
			NULL, s->files[i].data.len, (uint8_t *)s->files[i].data.data);

		assert_non_null(trace);
		assert_int_not_equal(uuid, trace->packet[0]->trace_uuid->lsb);
		uuid = trace->packet[0]->trace_uuid->lsb;
		read_segment(f, trace);
		perfetto__protos__trace__free_unpacked(trace, NULL);
	}
	for (unsigned n = 0; n < EVENTS; n++)
		assert_true(f->seen[n]);
	assert_int_equal(f->losses, EVENTS / 20 / CPUS);
	assert_in_range(f->compact, 1000, EVENTS);
	assert_int_equal(f->born, 1);
}

static void perfetto_files_open_alone(void **state _unused_)
{
	struct export_options by_size = { .rotate.bytes = 4096 };
	struct export_options by_time = { .rotate.ns = EVENTS / 7 * STEP };
	struct export_options both = { .rotate = { .bytes = 1 << 20, .ns = 100 * STEP } };
	struct export_options each = { .rotate.ns = 3 * STEP };

	check_perfetto(&by_size, 3, 100);
	check_perfetto(&by_time, 8, 8);
	check_perfetto(&both, EVENTS / 100, EVENTS / 100);
	check_perfetto(&each, EVENTS / 3, EVENTS / 3);
}

static uint64_t number(json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static json_t *parse(const struct buf *file)
{
	json_error_t error;
	json_t *json = json_loads(file->data, JSON_REJECT_DUPLICATES, &error);

	if (!json)
		fail_msg("%s in %s", error.text, file->data);
	return json;
}

static unsigned find_numbers(const char *text, bool *seen)
{
	unsigned count = 0;

	for (const char *line = text; (line = strstr(line, "number: value=")); line++) {
		unsigned long n = strtoul(line + strlen("number: value="), NULL, 0);

		assert_in_range(n, 0, EVENTS - 1);
		assert_false(seen[n]);
		seen[n] = true;
		count++;
	}
	return count;
}

/* With a tracer the text comes last, otherwise first. */
static int with_function_tracer(void **state _unused_)
{
	tracer = "function";
	return 0;
}

static int without_tracer(void **state _unused_)
{
	tracer = "nop";
	return 0;
}

static void each_json_is_an_object(void **state _unused_)
{
	const struct export_options o = { .format = "json", .rotate.ns = EVENTS / 9 * STEP };
	_cleanup_free_ bool *seen = calloc(EVENTS, sizeof(*seen));
	uint64_t events = 0, lost = 0, written = 0, all = 0;
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_(maker_deinit) struct maker m;
	unsigned numbers = 0;

	make(&m);
	s = export_segments(m.fd, &o);
	assert_int_equal(s->out.code, 0);
	assert_int_equal(s->count, 10);
	for (size_t i = 0; i < s->count; i++) {
		json_t *json = parse(&s->files[i].data),
		       *other = json_object_get(json, "otherData");
		const char *text = json_string_value(json_object_get(json, "systemTraceEvents"));
		size_t lines = occurrences(text, "number: ") + occurrences(text, "sched_switch: ");
		json_t *row;
		size_t cpu;

		assert_int_equal(number(other, "events"), lines);
		assert_int_equal(number(other, "lost"), 7 * occurrences(text, "[LOST 7 EVENTS]"));
		json_array_foreach(json_object_get(other, "cpus"), cpu, row) written +=
			number(row, "written");
		events += number(other, "events");
		lost += number(other, "lost");
		numbers += find_numbers(text, seen);
		json_decref(json);
	}
	for (size_t i = 0; i < s->out.result.ledger_count; i++)
		all += s->out.result.ledger[i].written;
	assert_int_equal(events, EVENTS);
	assert_int_equal(numbers, EVENTS / 4);
	assert_int_equal(lost, s->out.result.lost);
	assert_int_equal(written, all);
}

/* If one object has no room for it, another begins. */
static void a_json_is_cut_before_it_is_full(void **state _unused_)
{
	const struct export_options o = { .format = "json",
					  .rotate.ns = 10 * EVENTS * STEP,
					  .json_string_max = 50000 };
	_cleanup_free_ bool *seen = calloc(EVENTS, sizeof(*seen));
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_(maker_deinit) struct maker m;
	unsigned numbers = 0;

	make(&m);
	s = export_segments(m.fd, &o);
	assert_int_equal(s->out.code, 0);
	assert_in_range(s->count, 5, 100);
	for (size_t i = 0; i < s->count; i++)
		numbers += find_numbers(s->files[i].data.data, seen);
	assert_int_equal(numbers, EVENTS / 4);
}

/* Parses the segments of one output. Returns the number of their numbered events. */
static unsigned read_behind_each_other(const struct exported *e, bool *seen, uint64_t *ret_events)
{
	const struct export_result *r = &e->result;
	unsigned numbers = 0;
	uint64_t at = 0;

	*ret_events = 0;
	for (size_t i = 0; i <= r->segment_count; i++) {
		uint64_t end = i < r->segment_count ? r->segment_ends[i] : r->bytes;
		json_t *json =
			json_loadb(e->file.data + at, end - at, JSON_REJECT_DUPLICATES, NULL);
		const char *text = json_string_value(json_object_get(json, "systemTraceEvents"));

		assert_non_null(text);
		assert_in_range(end - at, 1, e->options.json_string_max);
		numbers += find_numbers(text, seen);
		*ret_events += number(json_object_get(json, "otherData"), "events");
		json_decref(json);
		at = end;
	}
	return numbers;
}

static void one_output_holds_several_jsons(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { .options = { .format = "json",
							      .segments = true,
							      .json_string_max = 50000,
							      .threads = 1 } };
	_cleanup_free_ bool *seen = calloc(EVENTS, sizeof(*seen));
	_cleanup_(maker_deinit) struct maker m;
	uint64_t events;

	make(&m);
	export_whole(&e, m.fd);
	assert_in_range(e.result.segment_count, 5, 100);
	assert_int_equal(read_behind_each_other(&e, seen, &events), EVENTS / 4);
	assert_int_equal(events, EVENTS);
	assert_int_equal(e.result.events, EVENTS);
}

/* The choice changes nothing in a JSON that fits. */
static void one_json_is_enough(void **state _unused_)
{
	_cleanup_exported_ struct exported plain = { .options = { .format = "json" } };
	_cleanup_exported_ struct exported e = { .options = { .format = "json",
							      .segments = true } };
	_cleanup_(maker_deinit) struct maker m;

	make(&m);
	export_whole(&plain, m.fd);
	export_whole(&e, m.fd);
	assert_int_equal(e.result.segment_count, 0);
	assert_string_equal(e.file.data, plain.file.data);
}

static void each_text_has_its_head(void **state _unused_)
{
	const struct export_options o = { .format = "txt", .rotate.bytes = 20000 };
	_cleanup_free_ bool *seen = calloc(EVENTS, sizeof(*seen));
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_(maker_deinit) struct maker m;
	unsigned numbers = 0;
	size_t lines = 0;

	make(&m);
	s = export_segments(m.fd, &o);
	assert_int_equal(s->out.code, 0);
	assert_in_range(s->count, 10, 100);
	for (size_t i = 0; i < s->count; i++) {
		assert_memory_equal(s->files[i].data.data, "# tracer: nop\n#\n", 16);
		assert_int_equal(s->files[i].data.data[s->files[i].data.len - 1], '\n');
		assert_in_range(s->files[i].data.len, i + 1 < s->count ? 20000 : 1, 22000);
		numbers += find_numbers(s->files[i].data.data, seen);
		lines += occurrences(s->files[i].data.data, "\n") -
			 occurrences(s->files[i].data.data, "\n#") - 1;
	}
	assert_int_equal(numbers, EVENTS / 4);
	assert_int_equal(lines, EVENTS + EVENTS / 20 / CPUS);
}

static size_t count_files(const struct export_options *o, uint64_t end_ts, size_t *ret_last)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_(maker_deinit) struct maker m;

	make_events(&m);
	end.boot_ns = end_ts;
	assert_int_equal(stream_write_message(&m.writer, CHUNK_END, &end.base), 0);
	s = export_segments(m.fd, o);
	assert_int_equal(s->out.code, 0);
	assert_true(s->count);
	*ret_last = s->files[s->count - 1].data.len;
	return s->count;
}

#define QUIET (3600 * UINT64_C(1000000000))

/* The last file is no sliver: a tenth of the limit stays in the file before. */
static void a_short_rest_stays_in_the_file_before(void **state _unused_)
{
	const uint64_t end = FIRST + EVENTS * STEP;
	struct export_options o = { .format = "txt" };
	unsigned joined = 0, left = 0;
	size_t last, before;

	for (o.rotate.bytes = 20000; o.rotate.bytes < 40000; o.rotate.bytes += 500) {
		size_t count = count_files(&o, 0, &before);

		if (before < o.rotate.bytes / 10) {
			assert_int_equal(count_files(&o, end, &last), count - 1);
			assert_in_range(last, o.rotate.bytes, o.rotate.bytes * 12 / 10);
			/* A quiet time after the last event changes nothing. */
			assert_int_equal(count_files(&o, end + QUIET, &last), count - 1);
			joined++;
		} else if (before > o.rotate.bytes / 5) {
			assert_int_equal(count_files(&o, end, &last), count);
			assert_int_equal(last, before);
			left++;
		}
	}
	assert_true(joined && left);
	o.rotate = (struct export_rotate){ .ns = EVENTS / 7 * STEP };
	assert_int_equal(count_files(&o, 0, &last), 8);
	assert_int_equal(count_files(&o, end, &last), 7);
	assert_int_equal(count_files(&o, end + QUIET, &last), 7);
	o.rotate.ns = EVENTS / 5 * STEP + EVENTS / 50 * STEP;
	assert_int_equal(count_files(&o, end, &last), 5);
}

static void each_gzip_is_whole(void **state _unused_)
{
	const struct export_options o = { .format = "txt.gz", .rotate.ns = EVENTS / 4 * STEP };
	_cleanup_free_ bool *seen = calloc(EVENTS, sizeof(*seen));
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_free_ char *text = calloc(1, 1 << 20);
	_cleanup_(maker_deinit) struct maker m;
	unsigned numbers = 0;

	make(&m);
	s = export_segments(m.fd, &o);
	assert_int_equal(s->out.code, 0);
	assert_int_equal(s->count, 4);
	for (size_t i = 0; i < s->count; i++) {
		z_stream z = { .next_in = (unsigned char *)s->files[i].data.data,
			       .avail_in = (uInt)s->files[i].data.len,
			       .next_out = (unsigned char *)text,
			       .avail_out = (1 << 20) - 1 };

		assert_int_equal(inflateInit2(&z, 31), Z_OK);
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(z.avail_in, 0);
		text[z.total_out] = '\0';
		inflateEnd(&z);
		numbers += find_numbers(text, seen);
	}
	assert_int_equal(numbers, EVENTS / 4);
}

static void formats_in_one_file_are_refused(void **state _unused_)
{
	const struct export_rotate by_time = { .ns = 1 }, by_size = { .bytes = 1 };
	const struct export_format *txt = export_format_find("txt", NULL);
	const struct export_format *stream = export_format_find("traced", NULL);

	assert_int_equal(export_format_check_rotate(stream, NULL, &by_size, NULL), -EINVAL);
	assert_int_equal(export_format_check_rotate(txt, "counter", &by_time, NULL), -EINVAL);
	assert_int_equal(export_format_check_rotate(txt, "counter", &by_size, NULL), 0);
	assert_int_equal(export_format_check_rotate(txt, "boot", &by_time, NULL), 0);
}

static void an_empty_recording_is_one_file(void **state _unused_)
{
	const struct export_options o = { .format = "pftrace", .rotate.bytes = 4096 };
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 1024);
	maker_end(&m);
	s = export_segments(m.fd, &o);
	assert_int_equal(s->out.code, 0);
	assert_int_equal(s->count, 1);
	assert_in_range(s->files[0].data.len, 20, 4096);
}

/* A long recording of short lives: each task runs for a moment and ends. */
#define LIVES 6000
#define LIFE UINT64_C(100000000) /* ns from one birth to the next */

static void live(struct maker *m, unsigned n)
{
	uint64_t ts = FIRST + n * LIFE, ends = ts + LIFE / 2;
	int32_t tid = (int32_t)(1000 + n);

	page_begin(m, ts);
	if (n)
		event_free(m, ts, tid - 1, "short");
	event_newtask(m, ts, 50, tid, "short", 0);
	page_end(m, 0);
	maker_flush(m, 0, BUFFER_TASKS, 0);
	page_begin(m, ts + 1);
	for (unsigned i = 0; i < 8; i++)
		event_number(m, ts + 1 + i, tid, n);
	event_number(m, ends, 50, n);
	page_flush(m, 0, n % 2);
	if (n % 10 == 9)
		maker_clocks(m, ends, 1);
	assert_int_equal(stream_write(&m->writer, CHUNK_FLUSH, "", 0), 0);
}

static void make_lives(struct maker *m)
{
	static const struct maker_task task = { 50, 50, "lasting", 1, false };

	maker_begin(m, 4096);
	maker_free_format(m);
	maker_clocks(m, FIRST, 0);
	maker_tasks(m, FIRST, 0, &task, 1);
	for (unsigned n = 0; n < LIVES; n++)
		live(m, n);
	maker_end(m);
}

/* Each file of a long recording has a head, and names the tasks in it. */
static void check_head(const PB(Trace) * trace, unsigned number)
{
	unsigned first = 0, clocks = 0, last = 0, named = 0, tids = 0;
	bool lasting = false;

	for (size_t i = 0; i < trace->n_packet; i++) {
		const PB(TracePacket) *p = trace->packet[i];
		const PB(ProcessTree) *tree = p->process_tree;

		if (p->data_case == DATA(FTRACE_EVENTS)) {
			first = first ?: (unsigned)i;
			for (size_t j = 0; j < p->ftrace_events->n_event; j++)
				last = MAX(last, p->ftrace_events->event[j]->pid);
		}
		clocks += !first && p->data_case == DATA(CLOCK_SNAPSHOT);
		for (size_t j = 0; p->data_case == DATA(PROCESS_TREE) && j < tree->n_threads; j++) {
			tids += !first;
			lasting |= tree->threads[j]->tid == 50;
			named = MAX(named, (unsigned)tree->threads[j]->tid);
		}
	}
	assert_true(lasting);
	assert_int_equal(named, last);
	/*
	 * The lasting task; tasks that ended less than a second ago; births before the first
	 * bundle.
	 */
	assert_in_range(tids, 1, 40);
	assert_in_range(clocks, number > 2 ? 5 : 1, 8);
}

static void heads_do_not_grow(void **state _unused_)
{
	const struct export_options o = { .format = "pftrace", .rotate.ns = 20 * LIFE };
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_(maker_deinit) struct maker m;

	make_lives(&m);
	s = export_segments(m.fd, &o);
	assert_int_equal(s->out.code, 0);
	assert_int_equal(s->count, LIVES / 20);
	for (size_t i = 0; i < s->count; i++) {
		PB(Trace) *trace = perfetto__protos__trace__unpack(
			NULL, s->files[i].data.len, (uint8_t *)s->files[i].data.data);

		assert_non_null(trace);
		check_head(trace, (unsigned)i);
		perfetto__protos__trace__free_unpacked(trace, NULL);
	}
}

/* For days, as far as the memory of past lives is concerned. */
static void the_dead_are_forgotten(void **state _unused_)
{
	static const char *const formats[] = { "pftrace", "txt", "json" };
	_cleanup_(maker_deinit) struct maker m;

	make_lives(&m);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_close_ int to = memory_file("", 0);
		_cleanup_close_ int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
		_cleanup_export_result_ struct export_result result;
		struct feed feed = { .to = to, .seed = 1, .slice_max = 1 << 14 };
		const struct export_follow follow = { .wait = give_slice, .userdata = &feed };
		const struct export_options o = { .format = formats[i],
						  .follow = &follow,
						  .rotate.ns = 20 * LIFE };
		size_t early;

		feed_begin(&feed, m.fd);
		assert_int_equal(export_stream(to, out, &o, &result, NULL), 0);
		assert_int_equal(result.events, LIVES * 9);
		early = feed.memory_early;
		/* The lives would take 200 bytes each. */
		assert_in_range(feed.memory_max - early, 0, 400 << 10);
	}
}

static void check_sizes(const char *format, enum perfetto_compression compression)
{
	const struct export_options o = { .format = format,
					  .perfetto.compression = compression,
					  .rotate.bytes = 64 << 10 };
	_cleanup_segmented_ struct segmented *s = NULL;
	_cleanup_(maker_deinit) struct maker m;
	unsigned noise = 1;

	maker_begin(&m, 4096);
	for (unsigned n = 0; n < 1500; n++) {
		page_begin(&m, FIRST + n * 1000);
		for (unsigned i = 0; i < 100; i++) {
			noise = noise * 1103515245 + 12345;
			event_number(&m, FIRST + n * 1000 + i, 50, noise);
		}
		page_flush(&m, 0, n % 16);
	}
	maker_end(&m);
	s = export_segments(m.fd, &o);
	assert_int_equal(s->out.code, 0);
	assert_in_range(s->count, 5, 500);
	for (size_t i = 0; i + 1 < s->count; i++)
		assert_in_range(s->files[i].data.len, (i ? 40 : 16) << 10, 72 << 10);
}

/*
 * Even with much data in many CPUs' bundles, or waiting to be compressed, and although the first
 * file's size is a guess.
 */
static void files_have_their_size(void **state _unused_)
{
	check_sizes("pftrace", PERFETTO_PLAIN);
	check_sizes("pftrace", PERFETTO_DEFLATE);
	check_sizes("pftrace.gz", PERFETTO_PLAIN);
	check_sizes("txt", PERFETTO_PLAIN);
}

/* The recording's last event is at 9 s. Task 70 ends at 2 s, and another is the last one known. */
static void export_merged(struct exported *e, const struct buf *text)
{
	static const struct maker_task tasks[] = { { 70, 70, "seventy", 1, false },
						   { 80, 80, "eighty", 1, false } };
	struct export_merge merge = { .fd = memory_file(text->data, text->len),
				      .name = "app.json",
				      .clock = MERGE_CLOCK_TRACE };
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	maker_free_format(&m);
	maker_tasks(&m, 1000000000, 0, tasks, ARRAY_SIZE(tasks));
	page_begin(&m, 2000000000);
	event_free(&m, 2000000000, 70, "seventy");
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_TASKS, 0);
	page_begin(&m, 2000000000);
	event_number(&m, 2000000000, 80, 1);
	event_number(&m, UINT64_C(9000000000), 80, 1);
	maker_finish(&m);
	e->options = (struct export_options){ .format = "json",
					      .segments = true,
					      .json_string_max = 50000,
					      .threads = 1,
					      .merges = &merge,
					      .merge_count = 1 };
	export_whole(e, m.fd);
	close(merge.fd);
}

static void put_marks(struct buf *text, const char *more)
{
	buf_puts(text, "\"traceEvents\":[");
	for (unsigned i = 0; i < 1000; i++)
		buf_printf(text,
			   "%s{\"name\":\"a mark of some length, to fill files\",\"ph\":\"i\","
			   "\"ts\":1500000,\"pid\":70,\"tid\":70%s}",
			   i ? "," : "", more);
	buf_puts(text, "]}");
	assert_int_equal(buf_error(text), 0);
}

/* Marks fill files after the last event: their threads have died long before it. */
static void files_of_marks_name_the_dead(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT;
	uint64_t at = 0;

	buf_puts(&text, "{");
	put_marks(&text, "");
	export_merged(&e, &text);
	assert_in_range(e.result.segment_count, 1, 20);
	for (size_t i = 0; i <= e.result.segment_count; i++) {
		uint64_t end =
			i < e.result.segment_count ? e.result.segment_ends[i] : e.result.bytes;

		assert_non_null(memmem(e.file.data + at, end - at, "{\"name\":\"seventy\"}", 18));
		at = end;
	}
}

/* Each file has the frames known so far. */
static void frames_are_in_the_room_of_a_json(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT;
	uint64_t at = 0;

	buf_puts(&text, "{\"stackFrames\":{");
	for (unsigned i = 0; i < 100; i++)
		buf_printf(&text, "%s\"%u\":{\"name\":\"%0150u\"}", i ? "," : "", i, i);
	buf_puts(&text, "},");
	put_marks(&text, ",\"sf\":\"1\"");
	export_merged(&e, &text);
	assert_in_range(e.result.segment_count, 1, 20);
	for (size_t i = 0; i <= e.result.segment_count; i++) {
		uint64_t end =
			i < e.result.segment_count ? e.result.segment_ends[i] : e.result.bytes;

		assert_in_range(end - at, 1, e.options.json_string_max);
		at = end;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfetto_files_open_alone),
		cmocka_unit_test(each_json_is_an_object),
		cmocka_unit_test_setup_teardown(each_json_is_an_object, with_function_tracer,
						without_tracer),
		cmocka_unit_test(a_json_is_cut_before_it_is_full),
		cmocka_unit_test_setup_teardown(a_json_is_cut_before_it_is_full,
						with_function_tracer, without_tracer),
		cmocka_unit_test(one_output_holds_several_jsons),
		cmocka_unit_test_setup_teardown(one_output_holds_several_jsons,
						with_function_tracer, without_tracer),
		cmocka_unit_test(one_json_is_enough),
		cmocka_unit_test(each_text_has_its_head),
		cmocka_unit_test(a_short_rest_stays_in_the_file_before),
		cmocka_unit_test(each_gzip_is_whole),
		cmocka_unit_test(formats_in_one_file_are_refused),
		cmocka_unit_test(an_empty_recording_is_one_file),
		cmocka_unit_test(heads_do_not_grow),
		cmocka_unit_test(the_dead_are_forgotten),
		cmocka_unit_test(files_have_their_size),
		cmocka_unit_test(files_of_marks_name_the_dead),
		cmocka_unit_test(frames_are_in_the_room_of_a_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
