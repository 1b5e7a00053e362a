/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Packets of a Perfetto trace about the recording: ties of clocks, the head, the end. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "formats/perfetto/tasks.h"
#include "perfetto_run.h"

static const PB(ClockSnapshot) * find_tie(const struct perfetto_run *r, size_t *ret_at)
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
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(ClockSnapshot) * tie;
	size_t at;

	maker_kernel(&m, "local");
	end.start_boot_ns = 500 * S;
	assert_int_equal(stream_write_message(&m.writer, CHUNK_END, &end.base), 0);
	perfetto_export(&r, m.fd);
	tie = find_tie(&r, &at);
	assert_non_null(tie);
	assert_int_equal(tie->clocks[0]->timestamp, 100 * S);
	assert_int_equal(tie->clocks[1]->clock_id, 6);
	assert_int_equal(tie->clocks[1]->timestamp, 500 * S);
	assert_true(at < perfetto_find(&r, DATA(FTRACE_EVENTS), 0));
	assert_int_equal(r.trace->packet[perfetto_find(&r, DATA(FTRACE_EVENTS), 0)]
				 ->ftrace_events->ftrace_clock,
			 PERFETTO__PROTOS__FTRACE_CLOCK__FTRACE_CLOCK_LOCAL);
}

static void without_a_mark_the_counts_tie_it(void **state _unused_)
{
	Traced__Capture__CpuStats cpu = TRACED__CAPTURE__CPU_STATS__INIT;
	Traced__Capture__Stats stats = TRACED__CAPTURE__STATS__INIT;
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
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
	perfetto_export(&r, m.fd);
	tie = find_tie(&r, &at);
	assert_non_null(tie);
	assert_int_equal(tie->clocks[0]->timestamp, 200 * S);
	assert_int_equal(tie->clocks[1]->timestamp, 300 * S);
	assert_true(at < perfetto_find(&r, DATA(TRACK_EVENT), 0));
	/* A packet with a time of that clock names the clock. */
	assert_int_equal(
		r.trace->packet[perfetto_find(&r, DATA(TRACK_EVENT), 0)]->timestamp_clock_id, 64);
}

static void an_untied_clock_is_taken_for_boottime(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(ClockSnapshot) * tie;
	size_t at;

	maker_init(&m, 8, false, 4096);
	m.clock = "local";
	maker_head(&m);
	page_begin(&m, 100 * S);
	event_number(&m, 100 * S, 1, 1);
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	tie = find_tie(&r, &at);
	assert_non_null(tie);
	assert_int_equal(tie->clocks[0]->timestamp, tie->clocks[1]->timestamp);
}

static const PB(TracePacket) *
	packet(const struct perfetto_run *r, PB(TracePacket__DataCase) kind, size_t n)
{
	size_t at = perfetto_find(r, kind, n);

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
	h->program = (char *)"traced 1.2.3";
	h->ram_bytes = UINT64_C(8) << 30;
	h->timezone_mins = -210;
}

static void the_head_tells_what_was_recorded_how(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { .out.options.perfetto.legacy_generic =
								 true };
	_cleanup_(maker_deinit) struct maker m;
	const PB(TraceConfig) * config;
	const PB(FtraceConfig) * ftrace;
	const PB(SystemInfo) * system;
	const PB(CpuInfo) * info;

	maker_init(&m, 8, false, 4096);
	m.header = describe;
	maker_head(&m);
	perfetto_export(&r, m.fd);
	assert_int_equal(r.trace->packet[0]->data_case, DATA(TRACE_UUID));
	assert_int_equal(r.trace->packet[0]->trace_uuid->msb, (int64_t)0xabcdef0100000000);
	assert_true(perfetto_find(&r, DATA(SYSTEM_INFO), 0) <
		    perfetto_find(&r, DATA(TRACE_CONFIG), 0));
	system = packet(&r, DATA(SYSTEM_INFO), 0)->system_info;
	assert_string_equal(system->utsname->release, "6.18.0");
	assert_int_equal(system->hz, 100);
	assert_string_equal(system->tracing_service_version, "traced 1.2.3");
	assert_int_equal(system->system_ram_bytes, UINT64_C(8) << 30);
	assert_int_equal(system->timezone_off_mins, -210);
	config = packet(&r, DATA(TRACE_CONFIG), 0)->trace_config;
	assert_int_equal(config->duration_ms, 1500);
	assert_string_equal(config->unique_session_name, "mine");
	assert_int_equal(config->n_data_sources, 1);
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

static void poll(Traced__Capture__Header *h)
{
	static char *polls[] = { (char *)"meminfo,psi@250ms stat", (char *)"process-memory@2s" };
	static Traced__Capture__Request request;

	describe(h);
	request = *h->request;
	request.polls = polls;
	request.n_polls = ARRAY_SIZE(polls);
	h->request = &request;
}

static void the_head_names_the_sources_of_polls_and_samples(void **state _unused_)
{
	Traced__Capture__Sampler sampler = TRACED__CAPTURE__SAMPLER__INIT;
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(TraceConfig) * config;
	const PB(SysStatsConfig) * stats;
	const PB(PerfEventConfig) * perf;

	maker_init(&m, 8, false, 4096);
	m.header = poll;
	maker_head(&m);
	sampler.event = (char *)"cycles";
	sampler.hz = 997;
	sampler.clock = CLOCK_BOOTTIME;
	sampler.type = PERF_TYPE_HARDWARE;
	sampler.config = PERF_COUNT_HW_CPU_CYCLES;
	sampler.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
	assert_int_equal(stream_write_message(&m.writer, CHUNK_SAMPLER, &sampler.base), 0);
	perfetto_export(&r, m.fd);
	config = packet(&r, DATA(TRACE_CONFIG), 0)->trace_config;
	assert_int_equal(config->n_data_sources, 4);
	assert_string_equal(config->data_sources[1]->config->name, "linux.sys_stats");
	stats = config->data_sources[1]->config->sys_stats_config;
	assert_int_equal(stats->meminfo_period_ms, 250);
	assert_int_equal(stats->psi_period_ms, 250);
	assert_int_equal(stats->stat_period_ms, 1000);
	assert_false(stats->has_vmstat_period_ms);
	assert_string_equal(config->data_sources[2]->config->name, "linux.process_stats");
	assert_int_equal(config->data_sources[2]->config->process_stats_config->proc_stats_poll_ms,
			 2000);
	assert_string_equal(config->data_sources[3]->config->name, "linux.perf");
	perf = config->data_sources[3]->config->perf_event_config;
	assert_int_equal(perf->timebase->frequency, 997);
	assert_string_equal(perf->timebase->name, "cycles");
	assert_int_equal(perf->timebase->counter, 10);
	assert_null(perf->timebase->raw_event);
	assert_true(perf->callstack_sampling->kernel_frames);
}

static void the_end_tells_the_counts(void **state _unused_)
{
	Traced__Capture__CpuStats cpu = TRACED__CAPTURE__CPU_STATS__INIT;
	Traced__Capture__Stats stats = TRACED__CAPTURE__STATS__INIT;
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	const PB(FtraceStats) * start, *told;
	const PB(TraceStats) * last;

	end.start_boot_ns = 100 * S + MS;
	end.boot_ns = 200 * S;
	maker_kernel(&m, NULL);
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
	perfetto_export(&r, m.fd);
	/* The first event came before the start was noted: readers drop events before the start. */
	assert_true(packet(&r, DATA(SERVICE_EVENT), 0)->service_event->tracing_started);
	assert_int_equal(packet(&r, DATA(SERVICE_EVENT), 0)->timestamp, 100 * S);
	assert_true(packet(&r, DATA(SERVICE_EVENT), 1)->service_event->tracing_disabled);
	assert_int_equal(packet(&r, DATA(SERVICE_EVENT), 1)->timestamp, 200 * S);
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

static void since(const struct perfetto_run *r, size_t n, uint32_t cpu, uint64_t expected)
{
	const PB(FtraceEventBundle) *b = packet(r, DATA(FTRACE_EVENTS), n)->ftrace_events;

	assert_int_equal(b->cpu, cpu);
	assert_true(b->has_previous_bundle_end_timestamp);
	assert_int_equal(b->previous_bundle_end_timestamp, expected);
}

/* Readers take all CPUs' events for complete from the latest of these times on. */
static void a_flight_recorder_tells_since_when_it_is_complete(void **state _unused_)
{
	static const struct maker_stats start[] = {
		{ .cpu = 0, .entries = 1, .overrun = 7 },
		{ .cpu = 1, .entries = 1 },
		{ .cpu = 2, .entries = 1, .read = 5 },
		{ .cpu = 3, .entries = 1 },
	};
	static const uint64_t missed[] = { 7, 0, 0, 3 };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	maker_stats(&m, 0, start, ARRAY_SIZE(start));
	for (uint32_t cpu = 0; cpu < ARRAY_SIZE(start); cpu++) {
		page_begin(&m, (100 + cpu) * S);
		event_number(&m, (100 + cpu) * S, 1, cpu);
		page_flush(&m, missed[cpu], cpu);
	}
	maker_end(&m);
	perfetto_export(&r, m.fd);
	since(&r, 0, 0, 100 * S); /* overwritten, as the counts and the sub-buffer say */
	since(&r, 1, 1, 0);
	since(&r, 2, 2, 102 * S); /* the events before are in an earlier snapshot */
	since(&r, 3, 3, 103 * S); /* overwritten after the counts were read */
}

/* Readers take the process tree's name for prev_comm of a compact switch. */
static void the_process_tree_has_names_with_their_times(void **state _unused_)
{
	static const struct maker_task tasks[] = { { 50, 50, "shell", 1, false } };
	/* Births precede renames; readers sort packets by time. */
	static const struct {
		int32_t tid;
		uint64_t ts;
		const char *name;
	} expected[] = {
		{ 50, 0, "shell" },	      { 70, 102 * S, "renamed" },
		{ 50, 101 * S, "renamed" },   { 70, 102 * S + 1, "child" },
		{ 70, 102 * S + 2, "grown" },
	};
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	size_t found = 0;

	maker_init(&m, 8, false, 4096);
	maker_head(&m);
	maker_tasks(&m, 100 * S, 0, tasks, 1);
	page_begin(&m, 101 * S);
	event_rename(&m, 101 * S, 50, "shell", "renamed");
	event_newtask(&m, 102 * S, 50, 70, "renamed", 0);
	event_rename(&m, 102 * S + 1, 70, "renamed", "child");
	event_rename(&m, 102 * S + 2, 70, "child", "grown");
	event_rename(&m, 102 * S + 3, 70, "grown", "grown");
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_TASKS, 0);
	page_begin(&m, 100 * S + 1);
	event_number(&m, 100 * S + 1, 50, 1);
	event_number(&m, 103 * S, 70, 1);
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(TracePacket) *p = r.trace->packet[i];
		const PB(ProcessTree) *tree = p->process_tree;

		for (size_t j = 0; p->data_case == DATA(PROCESS_TREE) && j < tree->n_threads; j++) {
			assert_true(found < ARRAY_SIZE(expected));
			assert_int_equal(tree->threads[j]->tid, expected[found].tid);
			assert_int_equal(p->timestamp, expected[found].ts);
			assert_string_equal(tree->threads[j]->name, expected[found].name);
			found++;
		}
	}
	assert_int_equal(found, ARRAY_SIZE(expected));
}

/* Readers take task_newtask for the begin of a thread: what is said of it before is another's. */
static void a_task_is_described_after_its_birth(void **state _unused_)
{
	static const struct maker_task tasks[] = { { 50, 50, "shell", 1, false } };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	uint64_t told = 0;

	maker_init(&m, 8, false, 4096);
	maker_head(&m);
	maker_tasks(&m, 100 * S, 0, tasks, 1);
	page_begin(&m, 101 * S);
	event_newtask(&m, 101 * S, 50, 70, "shell", 0);
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_TASKS, 0);
	page_begin(&m, 101 * S + 400);
	event_newtask(&m, 101 * S + 400, 50, 70, "shell", 0);
	event_number(&m, 103 * S, 70, 1);
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(TracePacket) *p = r.trace->packet[i];

		if (p->data_case == DATA(PROCESS_TREE) && p->process_tree->n_threads &&
		    p->process_tree->threads[0]->tid == 70)
			told = p->timestamp;
	}
	assert_int_equal(told, 101 * S + 401);
	/* The first tasks come before each packet with a time. */
	assert_true(perfetto_find(&r, DATA(PROCESS_TREE), 0) <
		    perfetto_find(&r, DATA(FTRACE_STATS), 0));
}

/* The track of the clocks is described at the time of its first event. */
static void a_sync_has_a_track_at_its_time(void **state _unused_)
{
	Traced__Capture__Clocks sync = TRACED__CAPTURE__CLOCKS__INIT;
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	uint64_t described = 0;

	maker_begin(&m, 4096);
	maker_clocks(&m, 100 * S, 0);
	sync.phase = 3;
	sync.sync_id = (char *)"somebody's";
	sync.sync_before_ns = 102 * S;
	sync.sync_after_ns = 102 * S + 20;
	assert_int_equal(stream_write_message(&m.writer, CHUNK_CLOCKS, &sync.base), 0);
	page_begin(&m, 101 * S);
	event_number(&m, 101 * S, 70, 1);
	event_number(&m, 103 * S, 70, 1);
	maker_finish(&m);
	perfetto_export(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(TracePacket) *p = r.trace->packet[i];

		if (p->data_case == DATA(TRACK_DESCRIPTOR) && p->track_descriptor->name &&
		    !strcmp(p->track_descriptor->name, "clocks"))
			described = p->timestamp;
	}
	assert_int_equal(described, 102 * S + 10);
}

/* A hostile stream dates a life far ahead, and its end before: it is still to be written. */
static void tasks_to_come_are_kept(void **state _unused_)
{
	static const struct task_reading readings[] = {
		{ .tid = 10, .tgid = 10, .ts = 1, .start_ns = 1, .start_ts = 1 },
		{ .tid = 10, .tgid = 10, .ts = 2 * S, .start_ns = 1000 * S, .start_ts = 1000 * S },
		{ .tid = 10, .tgid = 10, .ts = 3 * S, .start_ns = 3 * S, .start_ts = 3 * S },
	};
	_cleanup_(task_table_freep) struct task_table *table = NULL;
	struct pf_tasks t = { 0 };
	const struct task *task;

	assert_int_equal(task_table_new(&table), 0);
	t.table = table;
	assert_int_equal(task_table_read(table, &readings[0]), 0);
	assert_int_equal(task_table_death(table, 10, 1 * S, NULL, 0), 0);
	assert_int_equal(task_table_read(table, &readings[1]), 0);
	assert_int_equal(task_table_read(table, &readings[2]), 0);
	assert_int_equal(pf_tasks_learn(&t), 0);
	while (pf_tasks_next(&t, 10 * S))
		;
	pf_tasks_forget(&t, 10 * S);
	task = pf_tasks_next(&t, 2000 * S);
	assert_non_null(task);
	assert_int_equal(task->from_ts, 1000 * S);
	assert_int_equal(task->tid, 10);
	pf_tasks_deinit(&t);
}

/* A tid may be born again soon: each of its tasks is written after its own birth. */
static void each_task_has_its_own_birth(void **state _unused_)
{
	static const struct pf_birth births[] = { { .tid = 5, .ts = 1 * S + 3 },
						  { .tid = 6, .ts = 1 * S + 4 },
						  { .tid = 5, .ts = 2 * S + 3 },
						  { .tid = 5, .ts = 3 * S + 3 },
						  { .tid = 5, .ts = 3 * S + 4 } };
	static const struct task tasks[] = {
		{ .tid = 5, .from_ts = 1 * S },	    { .tid = 6, .from_ts = 1 * S + 1 },
		{ .tid = 7, .from_ts = 1 * S + 2 }, { .tid = 5, .from_ts = 2 * S },
		{ .tid = 6, .from_ts = 2 * S },	    { .tid = 5, .from_ts = 3 * S + 1000 },
	};
	static const uint64_t expected[] = { 1 * S + 4, 1 * S + 5, 1 * S + 2,
					     2 * S + 4, 2 * S,	   3 * S + 1000 };
	struct pf_tasks t = { 0 };

	assert_int_equal(pf_tasks_see_births(&t, births, 3), 0);
	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++) {
		assert_int_equal(pf_tasks_written_at(&t, &tasks[i]), expected[i]);
		if (i == 3)
			assert_int_equal(pf_tasks_see_births(&t, births + 3, 2), 0);
	}
	pf_tasks_deinit(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_of_the_kernel_alone_is_tied_by_the_mark),
		cmocka_unit_test(without_a_mark_the_counts_tie_it),
		cmocka_unit_test(an_untied_clock_is_taken_for_boottime),
		cmocka_unit_test(the_process_tree_has_names_with_their_times),
		cmocka_unit_test(a_task_is_described_after_its_birth),
		cmocka_unit_test(the_head_tells_what_was_recorded_how),
		cmocka_unit_test(the_head_names_the_sources_of_polls_and_samples),
		cmocka_unit_test(the_end_tells_the_counts),
		cmocka_unit_test(a_flight_recorder_tells_since_when_it_is_complete),
		cmocka_unit_test(a_sync_has_a_track_at_its_time),
		cmocka_unit_test(tasks_to_come_are_kept),
		cmocka_unit_test(each_task_has_its_own_birth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
