/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/perfetto/packets.h"

#include <inttypes.h>

#include "export/perfetto/wire.h"
#include "proto/perfetto/trace.pb-c.h"
#include "util/io.h"
#include "util/utf8.h"

#define PB(name) Perfetto__Protos__##name

enum { /* TracePacket.sequence_flags */
       SEQ_STATE_CLEARED = 1,
       SEQ_NEEDS_STATE = 2,
};

/* ClockSnapshot's built-in clock for a clockid of clock_gettime; 0: it has none. */
static uint32_t builtin_clock(uint32_t clockid)
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
#define PF_CLOCK_BOOTTIME 6

/* Appends the packet as field 1 of a Trace. */
static int put_packet(PB(TracePacket) * packet, struct buf *out)
{
	size_t size = protobuf_c_message_get_packed_size(&packet->base);
	uint8_t *start = (uint8_t *)buf_reserve(out, size + WIRE_TAG_MAX + WIRE_VARINT_MAX), *p;

	if (!start)
		return -ENOMEM;
	p = wire_varint(wire_tag(start, 1, WIRE_BYTES), size);
	p += protobuf_c_message_pack(&packet->base, p);
	out->len += (size_t)(p - start);
	return 0;
}

/* A packet's time, by a clock that belongs to the sequence perhaps. */
static void set_time(PB(TracePacket) * packet, uint64_t ts, enum pf_clock clock)
{
	packet->has_timestamp = true;
	packet->timestamp = ts;
	packet->has_timestamp_clock_id = clock != PF_CLOCK_BOOT;
	packet->timestamp_clock_id = clock;
	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = PF_SEQUENCE;
}

static int put_uuid(const struct trace_info *info, struct buf *out)
{
	PB(TraceUuid) uuid = PERFETTO__PROTOS__TRACE_UUID__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	uint64_t halves[2] = { 0 };

	memcpy(halves, info->header->uuid.data, MIN(info->header->uuid.len, sizeof(halves)));
	uuid.has_msb = uuid.has_lsb = true;
	uuid.msb = (int64_t)be64toh(halves[0]);
	uuid.lsb = (int64_t)be64toh(halves[1]);
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_UUID;
	packet.trace_uuid = &uuid;
	return put_packet(&packet, out);
}

static int put_system_info(const struct trace_info *info, struct buf *out)
{
	PB(Utsname) utsname = PERFETTO__PROTOS__UTSNAME__INIT;
	PB(SystemInfo) system = PERFETTO__PROTOS__SYSTEM_INFO__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

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
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_SYSTEM_INFO;
	packet.system_info = &system;
	return put_packet(&packet, out);
}

static int put_config(const struct trace_info *info, struct buf *out)
{
	PB(FtraceConfig) ftrace = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	PB(DataSourceConfig) config = PERFETTO__PROTOS__DATA_SOURCE_CONFIG__INIT;
	PB(TraceConfig__DataSource) source = PERFETTO__PROTOS__TRACE_CONFIG__DATA_SOURCE__INIT;
	PB(TraceConfig) trace = PERFETTO__PROTOS__TRACE_CONFIG__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	const Traced__Capture__Request *request = info->header->request;
	_cleanup_free_ char **events = NULL;

	if (!request)
		return 0;
	events = calloc(request->n_events + 1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	for (size_t i = 0; i < request->n_events; i++)
		events[i] = request->events[i]->glob;
	ftrace.n_ftrace_events = request->n_events;
	ftrace.ftrace_events = events;
	ftrace.has_buffer_size_kb = request->buffer_bytes != 0;
	ftrace.buffer_size_kb = (uint32_t)(request->buffer_bytes >> 10);
	config.name = (char *)(uintptr_t) "linux.ftrace";
	config.ftrace_config = &ftrace;
	source.config = &config;
	trace.n_data_sources = 1;
	trace.data_sources = (PB(TraceConfig__DataSource) *[]){ &source };
	trace.has_duration_ms = request->duration_ns != 0;
	trace.duration_ms = (uint32_t)(request->duration_ns / NSEC_PER_MSEC);
	if (request->name && *request->name)
		trace.unique_session_name = request->name;
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_CONFIG;
	packet.trace_config = &trace;
	return put_packet(&packet, out);
}

/* All readings of a snapshot, moved to the instant of its BOOTTIME reading. */
static int put_clocks(const Traced__Capture__Clocks *clocks, struct buf *out)
{
	PB(ClockSnapshot__Clock) values[8], *list[8];
	PB(ClockSnapshot) snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	uint64_t boot = 0;

	for (size_t i = 0; i < clocks->n_readings && snapshot.n_clocks < ARRAY_SIZE(values) - 1;
	     i++) {
		const Traced__Capture__ClockReading *r = clocks->readings[i];
		uint32_t id = builtin_clock(r->clock);
		uint64_t middle = r->boot_before_ns + (r->boot_after_ns - r->boot_before_ns) / 2;

		if (!id || id == PF_CLOCK_BOOTTIME)
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
	values[snapshot.n_clocks].clock_id = PF_CLOCK_BOOTTIME;
	values[snapshot.n_clocks].timestamp = boot;
	list[snapshot.n_clocks] = &values[snapshot.n_clocks];
	snapshot.n_clocks++;
	snapshot.clocks = list;
	snapshot.has_primary_trace_clock = true;
	snapshot.primary_trace_clock = PF_CLOCK_BOOTTIME;
	packet.has_timestamp = true;
	packet.timestamp = boot;
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_CLOCK_SNAPSHOT;
	packet.clock_snapshot = &snapshot;
	return put_packet(&packet, out);
}

int pf_put_clock_tie(uint64_t trace_ts, uint64_t boot_ns, struct buf *out)
{
	PB(ClockSnapshot__Clock) trace = PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT;
	PB(ClockSnapshot__Clock) boot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT;
	PB(ClockSnapshot) snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	trace.has_clock_id = trace.has_timestamp = boot.has_clock_id = boot.has_timestamp = true;
	trace.clock_id = PF_CLOCK_TRACE;
	trace.timestamp = trace_ts;
	boot.clock_id = PF_CLOCK_BOOTTIME;
	boot.timestamp = boot_ns;
	snapshot.n_clocks = 2;
	snapshot.clocks = (PB(ClockSnapshot__Clock) *[]){ &trace, &boot };
	set_time(&packet, boot_ns, PF_CLOCK_BOOT);
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_CLOCK_SNAPSHOT;
	packet.clock_snapshot = &snapshot;
	return put_packet(&packet, out);
}

static int put_stats(const Traced__Capture__Stats *stats, PB(FtraceStats__Phase) phase,
		     bool preserve, struct buf *out)
{
	PB(FtraceStats) message = PERFETTO__PROTOS__FTRACE_STATS__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
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
		list[i] = &cpus[i];
	}
	message.has_phase = true;
	message.phase = phase;
	message.n_cpu_stats = stats->n_cpus;
	message.cpu_stats = list;
	message.has_preserve_ftrace_buffer = preserve;
	message.preserve_ftrace_buffer = preserve;
	packet.has_timestamp = stats->boot_ns != 0;
	packet.timestamp = stats->boot_ns;
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_FTRACE_STATS;
	packet.ftrace_stats = &message;
	return put_packet(&packet, out);
}

static const Traced__Capture__Stats *find_stats(const struct trace_info *info, uint32_t phase)
{
	for (size_t i = 0; i < info->stats_count; i++)
		if (info->stats[i]->phase == phase)
			return info->stats[i];
	return NULL;
}

/* Interned data and track events are taken only once their sequence has begun. */
static int put_sequence_begin(struct buf *out)
{
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	packet.has_trusted_packet_sequence_id = packet.has_sequence_flags = true;
	packet.has_first_packet_on_sequence = packet.first_packet_on_sequence = true;
	packet.trusted_packet_sequence_id = PF_SEQUENCE;
	packet.sequence_flags = SEQ_STATE_CLEARED;
	return put_packet(&packet, out);
}

int pf_put_head(const struct trace_info *info, struct buf *out)
{
	const Traced__Capture__Stats *start = find_stats(info, 0);
	/* What the ring held before the recording began is part of such a trace. */
	bool preserve = info->header->request && info->header->request->ring;
	int r = put_uuid(info, out);

	if (r >= 0)
		r = put_sequence_begin(out);
	if (r >= 0)
		r = put_system_info(info, out);
	if (r >= 0)
		r = put_config(info, out);
	for (size_t i = 0; r >= 0 && i < info->clock_count; i++)
		r = put_clocks(info->clocks[i], out);
	if (r >= 0 && start)
		r = put_stats(start, PERFETTO__PROTOS__FTRACE_STATS__PHASE__START_OF_TRACE,
			      preserve, out);
	return r;
}

#define TASKS_PER_PACKET 256
#define CMDLINE_ARGS_MAX 64
#define CMDLINE_BYTES_MAX 1024 /* of a command line: enough to know it by */

struct task_messages {
	PB(ProcessTree__Process) process;
	PB(ProcessTree__Thread) thread;
	char *args[CMDLINE_ARGS_MAX];
	char comm[sizeof(((struct task *)NULL)->comm) * UTF8_GROWTH + 1];
	char cmdline[CMDLINE_BYTES_MAX * UTF8_GROWTH + 1];
};

/* The arguments of a NUL-separated command line, made UTF-8. */
static size_t split_cmdline(struct task_messages *m, const struct task *t)
{
	size_t len = MIN(t->cmdline_len, (size_t)CMDLINE_BYTES_MAX), count = 0;
	char *p = m->cmdline, *end = utf8_clean(m->cmdline, t->cmdline, len);

	*end = '\0';
	for (; p < end && count < CMDLINE_ARGS_MAX; p += strlen(p) + 1)
		m->args[count++] = p;
	return count;
}

static void fill_process(struct task_messages *m, struct task *t)
{
	PB(ProcessTree__Process) *p = &m->process;

	perfetto__protos__process_tree__process__init(p);
	p->has_pid = p->has_ppid = p->has_uid = p->has_is_kthread = true;
	p->pid = t->tid;
	p->ppid = t->ppid;
	p->uid = (int32_t)t->uid;
	p->is_kthread = t->kthread;
	p->has_process_start_from_boot = t->start_ns != 0;
	p->process_start_from_boot = t->start_ns;
	p->cmdline = m->args;
	p->n_cmdline = split_cmdline(m, t);
	if (!p->n_cmdline) {
		m->args[p->n_cmdline++] = m->comm;
		p->has_cmdline_is_comm = p->cmdline_is_comm = true;
	}
}

static void fill_thread(struct task_messages *m, struct task *t)
{
	perfetto__protos__process_tree__thread__init(&m->thread);
	m->thread.has_tid = true;
	m->thread.tid = t->tid;
	m->thread.has_tgid = t->tgid != 0;
	m->thread.tgid = t->tgid;
	m->thread.name = m->comm;
}

static int put_some_tasks(struct task *const *tasks, size_t count, uint64_t ts, enum pf_clock clock,
			  struct buf *out)
{
	PB(ProcessTree) tree = PERFETTO__PROTOS__PROCESS_TREE__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	_cleanup_free_ struct task_messages *messages = calloc(count + 1, sizeof(*messages));
	_cleanup_free_ PB(ProcessTree__Process) **processes = calloc(count + 1, sizeof(*processes));
	_cleanup_free_ PB(ProcessTree__Thread) **threads = calloc(count + 1, sizeof(*threads));

	if (!messages || !processes || !threads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!tasks[i]->tid) /* the reader knows the idle tasks */
			continue;
		*utf8_clean(messages[i].comm, tasks[i]->comm, strlen(tasks[i]->comm)) = '\0';
		if (tasks[i]->tgid == tasks[i]->tid) {
			fill_process(&messages[i], tasks[i]);
			processes[tree.n_processes++] = &messages[i].process;
		}
		fill_thread(&messages[i], tasks[i]);
		threads[tree.n_threads++] = &messages[i].thread;
	}
	tree.processes = processes;
	tree.threads = threads;
	if (ts)
		set_time(&packet, ts, clock);
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_PROCESS_TREE;
	packet.process_tree = &tree;
	return put_packet(&packet, out);
}

/* In packets of bounded size: a machine may have a hundred thousand tasks. */
int pf_put_tasks(struct task *const *tasks, size_t count, uint64_t ts, enum pf_clock clock,
		 struct buf *out)
{
	int r = 0;

	for (size_t at = 0; r >= 0 && at < count; at += TASKS_PER_PACKET)
		r = put_some_tasks(tasks + at, MIN(count - at, (size_t)TASKS_PER_PACKET), ts, clock,
				   out);
	return r;
}

int pf_put_tail(const struct trace_info *info, const struct export_result *result, struct buf *out)
{
	PB(TraceStats__BufferStats) buffer = PERFETTO__PROTOS__TRACE_STATS__BUFFER_STATS__INIT;
	PB(TraceStats) stats = PERFETTO__PROTOS__TRACE_STATS__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	const Traced__Capture__Stats *end = find_stats(info, 2);
	int r = 0;

	if (end)
		r = put_stats(end, PERFETTO__PROTOS__FTRACE_STATS__PHASE__END_OF_TRACE, false, out);
	if (r < 0)
		return r;
	buffer.has_bytes_written = true;
	buffer.bytes_written = result->bytes;
	stats.n_buffer_stats = 1;
	stats.buffer_stats = (PB(TraceStats__BufferStats) *[]){ &buffer };
	stats.has_final_flush_outcome = true;
	stats.final_flush_outcome =
		result->incomplete
			? PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_FAILED
			: PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_SUCCEEDED;
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_STATS;
	packet.trace_stats = &stats;
	return put_packet(&packet, out);
}

/* A track's uuid has to be the same in all its packets and no other track's. */
static uint64_t loss_track_uuid(uint32_t cpu)
{
	return UINT64_C(0x6c6f737400000000) + cpu; /* "lost" */
}

int pf_put_loss_track(uint32_t cpu, struct buf *out)
{
	PB(TrackDescriptor) track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	char name[48];

	snprintf(name, sizeof(name), "CPU %" PRIu32 " lost events", cpu);
	track.has_uuid = true;
	track.uuid = loss_track_uuid(cpu);
	track.name = name;
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACK_DESCRIPTOR;
	packet.track_descriptor = &track;
	packet.has_trusted_packet_sequence_id = true;
	packet.trusted_packet_sequence_id = PF_SEQUENCE;
	return put_packet(&packet, out);
}

static int put_loss_edge(uint32_t cpu, uint64_t ts, bool begin, uint64_t count, enum pf_clock clock,
			 struct buf *out)
{
	PB(DebugAnnotation) annotation = PERFETTO__PROTOS__DEBUG_ANNOTATION__INIT;
	PB(DebugAnnotation) * annotations[] = { &annotation };
	PB(TrackEvent) event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	PB(TracePacket) packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	char category[] = "loss", *categories[] = { category };
	char count_name[] = "count", name[48];

	event.has_type = event.has_track_uuid = true;
	event.type = begin ? PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN
			   : PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	event.track_uuid = loss_track_uuid(cpu);
	if (begin) {
		if (count == UINT64_MAX)
			snprintf(name, sizeof(name), "events lost, not counted");
		else
			snprintf(name, sizeof(name), "%" PRIu64 " events lost", count);
		event.name = name;
		event.n_categories = 1;
		event.categories = categories;
		annotation.name = count_name;
		annotation.has_uint_value = true;
		annotation.uint_value = count;
		event.n_debug_annotations = count != UINT64_MAX;
		event.debug_annotations = annotations;
	}
	set_time(&packet, ts, clock);
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACK_EVENT;
	packet.track_event = &event;
	return put_packet(&packet, out);
}

int pf_put_loss(uint32_t cpu, uint64_t before_ts, uint64_t after_ts, uint64_t count,
		enum pf_clock clock, struct buf *out)
{
	int r = put_loss_edge(cpu, before_ts ?: after_ts, true, count, clock, out);

	return r < 0 ? r : put_loss_edge(cpu, after_ts, false, count, clock, out);
}

int pf_put_bundle(const struct buf *bundle, const struct buf *symbols, struct buf *out)
{
	size_t bound = bundle->len + symbols->len + 16 * WIRE_VARINT_MAX;
	uint64_t size = 0;
	uint8_t *start, *p;

	/* ftrace_events 1, trusted_packet_sequence_id 10, interned_data 12, sequence_flags 13 */
	size += 1 + wire_size(bundle->len) + bundle->len;
	size += 1 + wire_size(PF_SEQUENCE);
	if (symbols->len)
		size += 1 + wire_size(symbols->len) + symbols->len;
	size += 1 + 1;
	start = (uint8_t *)buf_reserve(out, bound);
	if (!start)
		return -ENOMEM;
	p = wire_varint(wire_tag(start, 1, WIRE_BYTES), size);
	p = wire_bytes(p, 1, bundle->data, bundle->len);
	p = wire_uint(p, 10, PF_SEQUENCE);
	if (symbols->len)
		p = wire_bytes(p, 12, symbols->data, symbols->len);
	p = wire_uint(p, 13, SEQ_NEEDS_STATE);
	out->len += (size_t)(p - start);
	return 0;
}
