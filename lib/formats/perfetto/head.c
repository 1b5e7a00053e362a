/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Packets at a trace's head and end: machine, request, clocks, the kernel's counts. */
#include <string.h>

#include "base/io.h"
#include "base/search.h"
#include "formats/perfetto/config.h"
#include "formats/perfetto/message.h"
#include "formats/perfetto/packet.h"
#include "formats/perfetto/ties.h"

/* BuiltinClock of a clock_gettime() clockid; 0: none. */
static uint32_t pf_head_builtin_clock(uint32_t clockid)
{
	switch (clockid) {
	case CLOCK_REALTIME:
		return 1;
	case CLOCK_MONOTONIC:
		return 3;
	case CLOCK_MONOTONIC_RAW:
		return 5;
	case CLOCK_BOOTTIME:
		return 6;
	default:
		return 0;
	}
}

static int pf_head_put_uuid(const struct trace_info *info, uint32_t segment, struct buf *out)
{
	PB(TraceUuid) uuid = PERFETTO__PROTOS__TRACE_UUID__INIT;
	struct pf_packet packet = { 0 };
	uint64_t halves[2] = { 0 };

	if (info->header->uuid.len)
		memcpy(halves, info->header->uuid.data,
		       MIN(info->header->uuid.len, sizeof(halves)));
	uuid.has_msb = uuid.has_lsb = true;
	uuid.msb = (int64_t)be64toh(halves[0]);
	uuid.lsb = (int64_t)(be64toh(halves[1]) ^ segment);
	packet.field = PACKET_TRACE_UUID;
	packet.message = &uuid.base;
	return pf_put_packet(&packet, out);
}

static int pf_head_put_system_info(const struct trace_info *info, struct buf *out)
{
	PB(Utsname) utsname = PERFETTO__PROTOS__UTSNAME__INIT;
	PB(SystemInfo) system = PERFETTO__PROTOS__SYSTEM_INFO__INIT;
	struct pf_packet packet = { 0 };

	utsname.sysname = info->header->sysname;
	utsname.version = info->header->kernel_version;
	utsname.release = info->header->release;
	utsname.machine = info->header->machine;
	system.utsname = &utsname;
	system.has_hz = info->header->hz != 0;
	system.hz = info->header->hz;
	system.has_page_size = system.has_num_cpus = true;
	system.page_size = info->header->page_size;
	system.num_cpus = info->header->cpus;
	if (*info->header->program)
		system.tracing_service_version = info->header->program;
	system.has_system_ram_bytes = system.has_timezone_off_mins = info->header->ram_bytes != 0;
	system.system_ram_bytes = info->header->ram_bytes;
	system.timezone_off_mins = info->header->timezone_mins;
	packet.field = PACKET_SYSTEM_INFO;
	packet.message = &system.base;
	return pf_put_packet(&packet, out);
}

/* Writes the CPUs' frequencies and capacities, if the kernel gave any. */
static int pf_head_put_cpu_info(const struct trace_info *info, struct buf *out)
{
	const Traced__Capture__Header *h = info->header;
	_cleanup_free_ PB(CpuInfo__Cpu) *cpus = calloc(h->n_cpu_list + 1, sizeof(*cpus));
	_cleanup_free_ PB(CpuInfo__Cpu) **list = calloc(h->n_cpu_list + 1, sizeof(*list));
	PB(CpuInfo) message = PERFETTO__PROTOS__CPU_INFO__INIT;
	struct pf_packet packet = { 0 };

	if (!cpus || !list)
		return -ENOMEM;
	/* The index of an entry is the CPU's number. */
	for (size_t i = 0; i < h->n_cpu_list && h->cpu_list[i]->cpu == i; i++) {
		const Traced__Capture__Cpu *from = h->cpu_list[i];

		perfetto__protos__cpu_info__cpu__init(&cpus[i]);
		if (*from->model)
			cpus[i].processor = from->model;
		cpus[i].n_frequencies = from->n_frequencies_khz;
		cpus[i].frequencies = from->frequencies_khz;
		cpus[i].has_capacity = from->capacity != 0;
		cpus[i].capacity = from->capacity;
		list[message.n_cpus++] = &cpus[i];
	}
	if (!message.n_cpus)
		return 0;
	message.cpus = list;
	packet.field = PACKET_CPU_INFO;
	packet.message = &message.base;
	return pf_put_packet(&packet, out);
}

/* All clocks of a snapshot, converted to the instant of its BOOTTIME reading. */
static int pf_head_put_clocks(const Traced__Capture__Clocks *clocks, struct buf *out)
{
	PB(ClockSnapshot__Clock) values[8], *list[8];
	PB(ClockSnapshot) snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	struct pf_packet packet = { 0 };
	uint64_t boot = 0;

	for (size_t i = 0; i < clocks->n_readings && snapshot.n_clocks < ARRAY_SIZE(values) - 1;
	     i++) {
		const Traced__Capture__ClockReading *r = clocks->readings[i];
		uint32_t id = pf_head_builtin_clock(r->clock);
		uint64_t middle = r->boot_before_ns + (r->boot_after_ns - r->boot_before_ns) / 2;

		if (!id || id == PF_BUILTIN_BOOTTIME)
			continue;
		if (!boot)
			boot = middle;
		values[snapshot.n_clocks] =
			(PB(ClockSnapshot__Clock))PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT;
		values[snapshot.n_clocks].has_clock_id = values[snapshot.n_clocks].has_timestamp =
			true;
		values[snapshot.n_clocks].clock_id = id;
		values[snapshot.n_clocks].timestamp = r->value_ns - (middle - boot);
		list[snapshot.n_clocks] = &values[snapshot.n_clocks];
		snapshot.n_clocks++;
	}
	if (!boot)
		return 0;
	values[snapshot.n_clocks] =
		(PB(ClockSnapshot__Clock))PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT;
	values[snapshot.n_clocks].has_clock_id = values[snapshot.n_clocks].has_timestamp = true;
	values[snapshot.n_clocks].clock_id = PF_BUILTIN_BOOTTIME;
	values[snapshot.n_clocks].timestamp = boot;
	list[snapshot.n_clocks] = &values[snapshot.n_clocks];
	snapshot.n_clocks++;
	snapshot.clocks = list;
	snapshot.has_primary_trace_clock = true;
	snapshot.primary_trace_clock = PF_BUILTIN_BOOTTIME;
	packet.has_timestamp = true;
	packet.ts = boot;
	packet.field = PACKET_CLOCK_SNAPSHOT;
	packet.message = &snapshot.base;
	return pf_put_packet(&packet, out);
}

static int pf_head_put_stats(const struct trace_info *info, const Traced__Capture__Stats *stats,
			     PB(FtraceStats__Phase) phase, struct buf *out)
{
	/* The recording includes the ring's content from before its begin. */
	bool preserve = info->header->request && info->header->request->ring;
	bool end = phase == PERFETTO__PROTOS__FTRACE_STATS__PHASE__END_OF_TRACE;
	PB(FtraceStats) message = PERFETTO__PROTOS__FTRACE_STATS__INIT;
	struct pf_packet packet = { 0 };
	_cleanup_free_ PB(FtraceCpuStats) *cpus = calloc(stats->n_cpus + 1, sizeof(*cpus));
	_cleanup_free_ PB(FtraceCpuStats) **list = calloc(stats->n_cpus + 1, sizeof(*list));

	if (!cpus || !list)
		return -ENOMEM;
	for (size_t i = 0; i < stats->n_cpus; i++) {
		const Traced__Capture__CpuStats *from = stats->cpus[i];

		cpus[i] = (PB(FtraceCpuStats))PERFETTO__PROTOS__FTRACE_CPU_STATS__INIT;
		cpus[i].has_cpu = cpus[i].has_entries = cpus[i].has_overrun = true;
		cpus[i].has_commit_overrun = cpus[i].has_dropped_events = true;
		cpus[i].has_read_events = true;
		cpus[i].cpu = from->cpu;
		cpus[i].entries = from->entries;
		cpus[i].overrun = from->overrun;
		cpus[i].commit_overrun = from->commit_overrun;
		cpus[i].dropped_events = from->dropped;
		cpus[i].read_events = from->read;
		cpus[i].has_bytes_read =
			true; /* despite its name: the kernel's "bytes" are those in the buffer */
		cpus[i].bytes_read = from->bytes;
		cpus[i].has_oldest_event_ts = from->oldest_ns != 0;
		cpus[i].oldest_event_ts = (double)from->oldest_ns / (double)NSEC_PER_SEC;
		cpus[i].has_now_ts = from->now_ns != 0;
		cpus[i].now_ts = (double)from->now_ns / (double)NSEC_PER_SEC;
		list[i] = &cpus[i];
	}
	message.has_phase = true;
	message.phase = phase;
	message.n_cpu_stats = stats->n_cpus;
	message.cpu_stats = list;
	message.has_kernel_symbols_parsed = end;
	message.kernel_symbols_parsed = (uint32_t)event_table_symbol_count(info->events);
	message.has_preserve_ftrace_buffer = preserve;
	message.preserve_ftrace_buffer = preserve;
	packet.has_timestamp = stats->boot_ns != 0;
	packet.ts = stats->boot_ns;
	packet.field = PACKET_FTRACE_STATS;
	packet.message = &message.base;
	return pf_put_packet(&packet, out);
}

static const Traced__Capture__Stats *pf_head_find_stats(const struct trace_info *info,
							uint32_t phase)
{
	for (size_t i = 0; i < info->stats_count; i++)
		if (info->stats[i]->phase == phase)
			return info->stats[i];
	return NULL;
}

/* Readers ignore interned data and track events before their sequence begins. */
static int pf_head_put_sequence_begin(struct buf *out)
{
	size_t content = pf_open(out, TRACE_PACKET);

	pf_uint(out, PACKET_SEQUENCE, PF_SEQUENCE);
	pf_uint(out, PACKET_SEQUENCE_FLAGS, SEQ_STATE_CLEARED);
	pf_uint(out, PACKET_FIRST_ON_SEQUENCE, 1);
	pf_close(out, content);
	return buf_error(out);
}

/* In mono_raw if that is the trace clock, else in BOOTTIME. */
static uint64_t pf_head_taken_at(const struct trace_info *info, const Traced__Capture__Clocks *c)
{
	if (!c->n_readings || strcmp(info->header->trace_clock, "mono_raw") != 0)
		return c->n_readings ? c->readings[0]->boot_before_ns : 0;
	for (size_t i = 0; i < c->n_readings; i++)
		if (c->readings[i]->clock == CLOCK_MONOTONIC_RAW)
			return c->readings[i]->value_ns;
	return 0;
}

/* Number of snapshots taken until then; they are sorted. */
static size_t pf_head_taken_by(const struct trace_info *info, uint64_t ts)
{
	return lower_bound(i, info->clock_count, pf_head_taken_at(info, info->clocks[i]) <= ts);
}

int pf_put_clocks(const struct trace_info *info, uint64_t *from, uint64_t until, struct buf *out)
{
	int r = 0;

	for (size_t i = pf_head_taken_by(info, *from); r >= 0 && i < info->clock_count; i++) {
		uint64_t ts = pf_head_taken_at(info, info->clocks[i]);

		if (ts > until)
			break;
		*from = MAX(*from, ts);
		r = pf_head_put_clocks(info->clocks[i], out);
	}
	return r;
}

/* Readers convert times by the previous snapshot, or between two. */
#define CLOCKS_BEFORE 4

/* Ties of merged files need a trace clock that snapshots can contain. */
static uint32_t pf_head_tied_clock(const struct trace_info *info)
{
	if (strcmp(info->header->trace_clock, "boot") == 0)
		return PF_BUILTIN_BOOTTIME;
	return strcmp(info->header->trace_clock, "mono_raw") == 0 ? PF_CLOCK_MONO_RAW : 0;
}

/* Includes the ties of merged files, which exist neither in a stream nor with several files. */
static int pf_head_put_all_clocks(const struct sink_env *env, uint64_t *from, struct buf *out)
{
	const struct trace_info *info = env->info;
	uint32_t trace = pf_head_tied_clock(info);
	struct pf_tie_cursor ties;
	int r = 0;

	pf_tie_cursor_init(&ties, env->marks);
	if (!trace)
		ties.count = 0;
	for (size_t i = 0; r >= 0 && i < info->clock_count; i++) {
		uint64_t ts = pf_head_taken_at(info, info->clocks[i]);

		*from = MAX(*from, ts);
		r = pf_put_ties(&ties, ts, trace, out);
		if (r >= 0)
			r = pf_head_put_clocks(info->clocks[i], out);
	}
	return r < 0 ? r : pf_put_ties(&ties, UINT64_MAX, trace, out);
}

static int pf_head_put_first_clocks(const struct sink_env *env, uint64_t *from, uint64_t until,
				    struct buf *out)
{
	const struct trace_info *info = env->info;
	size_t before = pf_head_taken_by(info, until);
	int r;

	*from = 0;
	if (until == UINT64_MAX)
		return pf_head_put_all_clocks(env, from, out);
	if (!info->clock_count)
		return 0;
	*from = pf_head_taken_at(
		info, info->clocks[before > CLOCKS_BEFORE ? before - CLOCKS_BEFORE - 1 : 0]);
	r = pf_head_put_clocks(info->clocks[0], out);
	return r < 0 ? r : pf_put_clocks(info, from, until, out);
}

int pf_put_head(const struct sink_env *env, uint32_t segment, uint64_t until, uint64_t *ret_from,
		struct buf *out)
{
	const struct trace_info *info = env->info;
	int r = pf_head_put_uuid(info, segment, out);

	if (r >= 0)
		r = pf_head_put_sequence_begin(out);
	if (r >= 0)
		r = pf_head_put_system_info(info, out);
	if (r >= 0)
		r = pf_put_config(info, &env->options->perfetto, out);
	if (r >= 0)
		r = pf_head_put_cpu_info(info, out);
	if (r >= 0)
		r = pf_head_put_first_clocks(env, ret_from, until, out);
	return r;
}

int pf_put_start(const struct trace_info *info, struct buf *out)
{
	const Traced__Capture__Stats *start = pf_head_find_stats(info, 0);

	return start ? pf_head_put_stats(info, start,
					 PERFETTO__PROTOS__FTRACE_STATS__PHASE__START_OF_TRACE, out)
		     : 0;
}

static int pf_head_put_service_event(PB(TracingServiceEvent) * event, uint64_t ts, uint32_t clock,
				     struct buf *out)
{
	struct pf_packet packet = {
		.has_timestamp = true,
		.ts = ts,
		.clock = clock,
		.field = PACKET_SERVICE_EVENT,
		.message = &event->base,
	};

	return pf_put_packet(&packet, out);
}

/*
 * Tracing was on for a moment before the recorder read the time, and readers drop events before it:
 * the first event may be the start.
 */
static int pf_head_put_started(const struct trace_info *info, uint64_t first_ts,
			       enum pf_clock clock, struct buf *out)
{
	PB(TracingServiceEvent) event = PERFETTO__PROTOS__TRACING_SERVICE_EVENT__INIT;
	bool ring = info->header->request && info->header->request->ring;
	uint64_t start = info->end ? info->end->start_boot_ns : 0;

	event.event_type_case = PERFETTO__PROTOS__TRACING_SERVICE_EVENT__EVENT_TYPE_TRACING_STARTED;
	event.tracing_started = true;
	if (!start || info->end->reason == TRACED__CAPTURE__END__REASON__EXTRACTED)
		return 0;
	/* A ring's events before the start stay: see preserve_ftrace_buffer. */
	if (ring || !first_ts)
		return pf_head_put_service_event(&event, start, PF_CLOCK_BOOT, out);
	if (clock == PF_CLOCK_BOOT)
		first_ts = MIN(first_ts, start);
	return pf_head_put_service_event(&event, first_ts, clock, out);
}

static int pf_head_put_disabled(const struct trace_info *info, struct buf *out)
{
	PB(TracingServiceEvent) event = PERFETTO__PROTOS__TRACING_SERVICE_EVENT__INIT;

	event.event_type_case =
		PERFETTO__PROTOS__TRACING_SERVICE_EVENT__EVENT_TYPE_TRACING_DISABLED;
	event.tracing_disabled = true;
	return info->end && info->end->boot_ns
		       ? pf_head_put_service_event(&event, info->end->boot_ns, PF_CLOCK_BOOT, out)
		       : 0;
}

int pf_put_end(const struct trace_info *info, uint64_t first_ts, enum pf_clock clock,
	       struct buf *out)
{
	int r = pf_head_put_started(info, first_ts, clock, out);

	return r < 0 ? r : pf_head_put_disabled(info, out);
}

int pf_put_tail(const struct trace_info *info, const struct export_result *result, bool last,
		uint64_t bytes, struct buf *out)
{
	PB(TraceStats__BufferStats) buffer = PERFETTO__PROTOS__TRACE_STATS__BUFFER_STATS__INIT;
	PB(TraceStats) stats = PERFETTO__PROTOS__TRACE_STATS__INIT;
	struct pf_packet packet = { 0 };
	const Traced__Capture__Stats *end = last ? pf_head_find_stats(info, 2) : NULL;
	int r = 0;

	if (end)
		r = pf_head_put_stats(info, end,
				      PERFETTO__PROTOS__FTRACE_STATS__PHASE__END_OF_TRACE, out);
	if (r < 0)
		return r;
	buffer.has_bytes_written = true;
	buffer.bytes_written = bytes;
	if (info->header->request && info->header->request->buffer_bytes) {
		buffer.has_buffer_size = true;
		buffer.buffer_size = info->header->request->buffer_bytes * info->header->cpus;
	}
	stats.n_buffer_stats = 1;
	stats.buffer_stats = (PB(TraceStats__BufferStats) *[]){ &buffer };
	stats.has_final_flush_outcome = true;
	stats.final_flush_outcome =
		result->incomplete
			? PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_FAILED
			: PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_SUCCEEDED;
	packet.field = PACKET_TRACE_STATS;
	packet.message = &stats.base;
	return pf_put_packet(&packet, out);
}
