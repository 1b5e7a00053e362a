/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/packet.h"
#include "formats/perfetto/tasks.h"

#include <inttypes.h>

#include "base/io.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "formats/perfetto/message.h"
#include "formats/perfetto/wire.h"

static void packet_put_message(const struct pf_packet *packet, struct buf *out)
{
	size_t size = protobuf_c_message_get_packed_size(packet->message);
	uint8_t *start = (uint8_t *)buf_reserve(out, size + WIRE_TAG_MAX + WIRE_VARINT_MAX), *p;

	if (!start)
		return;
	p = wire_varint(wire_tag(start, packet->field, WIRE_BYTES), size);
	p += protobuf_c_message_pack(packet->message, p);
	out->len += (size_t)(p - start);
}

/* The order of fields is that of their numbers. */
int pf_put_packet(const struct pf_packet *packet, struct buf *out)
{
	size_t content = pf_open(out, TRACE_PACKET);

	if (packet->field < PACKET_TIMESTAMP)
		packet_put_message(packet, out);
	if (packet->has_timestamp)
		pf_uint(out, PACKET_TIMESTAMP, packet->ts);
	if (packet->sequence)
		pf_uint(out, PACKET_SEQUENCE, packet->sequence);
	if (packet->field > PACKET_TIMESTAMP && packet->field < PACKET_CLOCK)
		packet_put_message(packet, out);
	if (packet->clock)
		pf_uint(out, PACKET_CLOCK, packet->clock);
	if (packet->field > PACKET_CLOCK)
		packet_put_message(packet, out);
	pf_close(out, content);
	return buf_error(out);
}

/* Sets a packet's time, possibly in a clock of the sequence. */
static void packet_set_time(struct pf_packet *packet, uint64_t ts, enum pf_clock clock)
{
	packet->has_timestamp = true;
	packet->sequence = PF_SEQUENCE;
	packet->ts = ts;
	packet->clock = clock;
}

int pf_put_clock_tie(uint32_t clock, uint64_t ts, uint32_t builtin, uint64_t builtin_ts,
		     struct buf *out)
{
	PB(ClockSnapshot__Clock) own = PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT;
	PB(ClockSnapshot__Clock) known = PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT;
	PB(ClockSnapshot) snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	struct pf_packet packet = { 0 };
	int r;

	own.has_clock_id = own.has_timestamp = known.has_clock_id = known.has_timestamp = true;
	own.clock_id = clock;
	own.timestamp = ts;
	known.clock_id = builtin;
	known.timestamp = builtin_ts;
	snapshot.n_clocks = 2;
	snapshot.clocks = (PB(ClockSnapshot__Clock) *[]){ &own, &known };
	packet_set_time(&packet, builtin_ts,
			builtin == PF_BUILTIN_BOOTTIME ? PF_CLOCK_BOOT : builtin);
	packet.field = PACKET_CLOCK_SNAPSHOT;
	packet.message = &snapshot.base;
	r = pf_put_packet(&packet, out);
	/* A clock of a sequence is known only there. */
	packet.sequence = PF_SEQUENCE_TRACKS;
	return r < 0 || clock != PF_CLOCK_TRACE ? r : pf_put_packet(&packet, out);
}

#define CMDLINE_ARGS_MAX 64
#define CMDLINE_BYTES_MAX 1024 /* of a command line: enough to recognise it */

struct task_messages {
	PB(ProcessTree__Process) process;
	PB(ProcessTree__Thread) thread;
	char *args[CMDLINE_ARGS_MAX];
	char comm[sizeof(((struct task *)NULL)->comm) * UTF8_GROWTH + 1];
	char cmdline[CMDLINE_BYTES_MAX * UTF8_GROWTH + 1];
};

/* Splits a NUL-separated command line into arguments, as valid UTF-8. */
static size_t packet_split_cmdline(struct task_messages *m, const struct task *t)
{
	size_t len = MIN(t->cmdline_len, (size_t)CMDLINE_BYTES_MAX), count = 0;
	char *p = m->cmdline, *end = utf8_clean(m->cmdline, t->cmdline, len);

	*end = '\0';
	for (; p < end && count < CMDLINE_ARGS_MAX; p += strlen(p) + 1)
		m->args[count++] = p;
	return count;
}

/* The name at the time of the packet: readers take it for the name in compact events. */
static void packet_fill_name(struct task_messages *m, const struct task *t)
{
	const char *name = pf_task_name(t);

	*utf8_clean(m->comm, name, strlen(name)) = '\0';
}

/* Readers take a parent for a process: a thread would appear twice. */
static void packet_fill_process(struct task_messages *m, const struct task_table *table,
				struct task *t)
{
	PB(ProcessTree__Process) *p = &m->process;

	perfetto__protos__process_tree__process__init(p);
	p->has_pid = p->has_ppid = p->has_uid = p->has_is_kthread = true;
	p->pid = t->tid;
	p->ppid = task_table_parent(table, t);
	p->uid = (int32_t)t->uid;
	p->is_kthread = t->kthread;
	p->has_process_start_from_boot = t->start_ns != 0;
	p->process_start_from_boot = t->start_ns;
	p->cmdline = m->args;
	p->n_cmdline = packet_split_cmdline(m, t);
	if (!p->n_cmdline && *m->comm) {
		m->args[p->n_cmdline++] = m->comm;
		p->has_cmdline_is_comm = p->cmdline_is_comm = true;
	}
}

static void packet_fill_thread(struct task_messages *m, const struct task *t)
{
	perfetto__protos__process_tree__thread__init(&m->thread);
	m->thread.has_tid = m->thread.has_tgid = true;
	m->thread.tid = t->tid;
	m->thread.tgid = t->tgid;
	m->thread.name = *m->comm ? m->comm : NULL;
}

int pf_put_tasks(const struct task_table *table, struct task *const *tasks, size_t count,
		 uint64_t ts, enum pf_clock clock, struct buf *out)
{
	PB(ProcessTree) tree = PERFETTO__PROTOS__PROCESS_TREE__INIT;
	struct pf_packet packet = { 0 };
	_cleanup_free_ struct task_messages *messages = calloc(count + 1, sizeof(*messages));
	_cleanup_free_ PB(ProcessTree__Process) **processes = calloc(count + 1, sizeof(*processes));
	_cleanup_free_ PB(ProcessTree__Thread) **threads = calloc(count + 1, sizeof(*threads));

	if (!messages || !processes || !threads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		/* Readers know the idle tasks, and take any other without a process for theirs. */
		if (!tasks[i]->tgid)
			continue;
		packet_fill_name(&messages[i], tasks[i]);
		if (tasks[i]->tgid == tasks[i]->tid) {
			packet_fill_process(&messages[i], table, tasks[i]);
			processes[tree.n_processes++] = &messages[i].process;
		}
		packet_fill_thread(&messages[i], tasks[i]);
		threads[tree.n_threads++] = &messages[i].thread;
	}
	if (!tree.n_threads)
		return 0;
	tree.processes = processes;
	tree.threads = threads;
	packet_set_time(&packet, ts, clock);
	packet.field = PACKET_PROCESS_TREE;
	packet.message = &tree.base;
	return pf_put_packet(&packet, out);
}

int pf_put_rename(const struct task *task, uint64_t ts, enum pf_clock clock, struct buf *out)
{
	PB(ProcessTree) tree = PERFETTO__PROTOS__PROCESS_TREE__INIT;
	struct pf_packet packet = { .field = PACKET_PROCESS_TREE, .message = &tree.base };
	struct task_messages m;

	if (!task->tgid)
		return 0;
	packet_fill_name(&m, task);
	packet_fill_thread(&m, task);
	tree.n_threads = 1;
	tree.threads = (PB(ProcessTree__Thread) *[]){ &m.thread };
	packet_set_time(&packet, ts, clock);
	return pf_put_packet(&packet, out);
}

/* A track's uuid must be unique, and the same in all its packets. */
static uint64_t packet_loss_uuid(uint32_t cpu)
{
	return PF_LOSS_TRACKS + cpu;
}

int pf_put_loss_track(uint32_t cpu, struct buf *out)
{
	PB(TrackDescriptor) track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	struct pf_packet packet = { 0 };
	char name[48];

	snprintf(name, sizeof(name), "CPU %" PRIu32 " lost events", cpu);
	track.has_uuid = true;
	track.uuid = packet_loss_uuid(cpu);
	track.name = name;
	packet.field = PACKET_TRACK_DESCRIPTOR;
	packet.message = &track.base;
	packet.sequence = PF_SEQUENCE;
	return pf_put_packet(&packet, out);
}

static int packet_put_loss_edge(uint32_t cpu, uint64_t ts, bool begin, uint64_t count,
				enum pf_clock clock, struct buf *out)
{
	PB(DebugAnnotation) annotation = PERFETTO__PROTOS__DEBUG_ANNOTATION__INIT;
	PB(DebugAnnotation) * annotations[] = { &annotation };
	PB(TrackEvent) event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	struct pf_packet packet = { 0 };
	char category[] = "loss", *categories[] = { category };
	char count_name[] = "count", name[48];

	event.has_type = event.has_track_uuid = true;
	event.type = begin ? PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN
			   : PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	event.track_uuid = packet_loss_uuid(cpu);
	if (begin) {
		if (count == UINT64_MAX)
			snprintf(name, sizeof(name), "events lost, not counted");
		else
			snprintf(name, sizeof(name), "%" PRIu64 " event%s lost", count,
				 plural_s(count));
		event.name = name;
		event.n_categories = 1;
		event.categories = categories;
		annotation.name = count_name;
		annotation.has_uint_value = true;
		annotation.uint_value = count;
		event.n_debug_annotations = count != UINT64_MAX;
		event.debug_annotations = annotations;
	}
	packet_set_time(&packet, ts, clock);
	packet.field = PACKET_TRACK_EVENT;
	packet.message = &event.base;
	return pf_put_packet(&packet, out);
}

int pf_put_loss(uint32_t cpu, uint64_t before_ts, uint64_t after_ts, uint64_t count,
		enum pf_clock clock, struct buf *out)
{
	int r = packet_put_loss_edge(cpu, before_ts ?: after_ts, true, count, clock, out);

	return r < 0 ? r : packet_put_loss_edge(cpu, after_ts, false, count, clock, out);
}
