/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collects the events of one CPU until they are written as one FtraceEventBundle.
 *
 * The problem. A scheduling load is mostly sched_switch and sched_waking. Written one by one they
 * take some 40 bytes each, most of which repeats: the previous task of a switch is the next task of
 * the switch before it. Perfetto's CompactSched stores the difference only, a third of the bytes,
 * and readers infer the rest. But readers infer without a check: if the inference is wrong, the
 * trace shows tasks where they never ran.
 *
 *      TracePacket
 *        interned_data          new kernel symbols
 *        ftrace_events          the bundle: one CPU, up to 1 s or 48 KiB
 *          cpu, lost_events, clock, since
 *          generic descriptors  of the generic events used here
 *          event ...            plain events, in time order
 *          compact_sched        parallel arrays of varints, one entry per event
 *            switch  dt[] prev_state[] next_pid[] next_prio[] next_comm[]
 *            waking  dt[] pid[] target_cpu[] prio[] comm[] flags[]
 *            intern_table       the names that the comm indices refer to
 *          formats, addresses, rest, flags    ours (rest.h); readers ignore them
 *
 * The reader's inference, and the invariant that makes it true:
 * - prev_pid, prev_comm and prev_prio of a switch are the "next" ones of the CPU's last switch. So
 *   b->running holds those, and a switch is compact only if all three match, and common_pid, too.
 * - The waker of a waking is the running task. So a waking is compact only if its common_pid is.
 * - At equal times readers put compact events before plain ones. So an event at the time of the
 *   event before it is plain.
 * - Readers go on inferring after a loss, so running stays as it is; the first switch after it is
 *   mostly plain. A record that is too short, or a new file, ends the inference (running.known =
 *   false), and the first switch after it is plain.
 * - A plain switch ends the slice of the task that the last switch began only if it has the same
 *   prev_pid. It has another after a loss, if a thread took its leader's tid (exec), or if the
 *   kernel left out a switch. So a switch between the two tasks comes before it, marked by a field
 *   of ours. Its time is that of the second task's first event.
 * - A bundle is complete: deltas begin at 0 and names are interned anew, so that a reader which
 *   skips a bundle can read the next. If the table of names is full, the event is plain.
 * - A loss is a flag for the time before a bundle: the sink ends the bundle, then records the loss.
 *
 * Flags and preemption counts are not in the plain events: readers take common_flags for one more
 * event without a name. They are in our field `flags`, as run lengths per kind of event, with what
 * else the messages lack in `rest`. Both are in the events' time order, plain and compact alike.
 *
 * Sizes. A bundle of 48 KiB costs a reader little, and 8 MiB for all CPUs bound the memory: with
 * more than 170 CPUs each gets its part of that. Submessages that may be long have lengths of five
 * bytes (pf_open_wide), so that their content never moves. Buffers that a bundle hardly used are
 * freed: otherwise each would in time grow to its largest size.
 */
#include "formats/perfetto/bundle.h"

#include <byteswap.h>

#include "base/io.h"
#include "base/vec.h"
#include "formats/perfetto/message.h"
#include "formats/perfetto/numbers.h"
#include "formats/perfetto/op.h"
#include "formats/perfetto/packet.h"
#include "formats/perfetto/wire.h"

enum { DESCRIPTOR_FIELD = 1, DESCRIPTOR_MESSAGE = 2, DESCRIPTOR_GROUP = 3 };

static const struct field *find_field(const struct event *e, const char *name, uint32_t size)
{
	const struct field *f = event_field(e, name);

	return f && f->size == size && !f->is_dynamic ? f : NULL;
}

static bool bundle_place_field(const struct event *e, const char *name, uint32_t size,
			       uint32_t *ret_offset, uint32_t *end)
{
	const struct field *f = find_field(e, name, size);

	if (!f)
		return false;
	*ret_offset = f->offset;
	*end = MAX(*end, f->offset + f->size);
	return true;
}

void pf_sched_layout_init(struct pf_sched_layout *l, const struct event_table *table,
			  bool big_endian, bool plain)
{
	const struct event *sw, *wk;

	*l = (struct pf_sched_layout){
		.switch_id = PF_NO_EVENT,
		.waking_id = PF_NO_EVENT,
		.swap = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__),
		.plain = plain,
	};
	sw = event_table_find_name(table, "sched", "sched_switch");
	wk = event_table_find_name(table, "sched", "sched_waking");
	if (!sw)
		return;
	/* prev_state is a long. */
	l->sw.prev_state_size = find_field(sw, "prev_state", 8) ? 8 : 4;
	if (bundle_place_field(sw, "prev_comm", PF_COMM_SIZE, &l->sw.prev_comm, &l->sw.size) &&
	    bundle_place_field(sw, "prev_pid", 4, &l->sw.prev_pid, &l->sw.size) &&
	    bundle_place_field(sw, "prev_prio", 4, &l->sw.prev_prio, &l->sw.size) &&
	    bundle_place_field(sw, "prev_state", l->sw.prev_state_size, &l->sw.prev_state,
			       &l->sw.size) &&
	    bundle_place_field(sw, "next_comm", PF_COMM_SIZE, &l->sw.next_comm, &l->sw.size) &&
	    bundle_place_field(sw, "next_pid", 4, &l->sw.next_pid, &l->sw.size) &&
	    bundle_place_field(sw, "next_prio", 4, &l->sw.next_prio, &l->sw.size))
		l->switch_id = sw->id;
	/* The compact form has no place for a field "success"; kernels before 4.15 have one. */
	if (l->switch_id != PF_NO_EVENT && wk && !find_field(wk, "success", 4) &&
	    bundle_place_field(wk, "comm", PF_COMM_SIZE, &l->wk.comm, &l->wk.size) &&
	    bundle_place_field(wk, "pid", 4, &l->wk.pid, &l->wk.size) &&
	    bundle_place_field(wk, "prio", 4, &l->wk.prio, &l->wk.size) &&
	    bundle_place_field(wk, "target_cpu", 4, &l->wk.target_cpu, &l->wk.size))
		l->waking_id = wk->id;
}

void pf_bundle_init(struct pf_bundle *b, uint32_t cpu, bool late)
{
	*b = (struct pf_bundle){
		.cpu = cpu, .begun = true, .first = true, .since_ts = late ? UINT64_MAX : 0
	};
}

void pf_bundle_deinit(struct pf_bundle *b)
{
	buf_deinit(&b->events);
	for (size_t i = 0; i < ARRAY_SIZE(b->compact); i++)
		buf_deinit(&b->compact[i]);
	buf_deinit(&b->rest);
	buf_deinit(&b->flag_changes);
	TABLE_DEINIT(&b->comms);
	free(b->generics);
}

static inline int32_t load_s32(const struct pf_sched_layout *l, const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return (int32_t)(l->swap ? bswap_32(v) : v);
}

static inline int64_t load_long(const struct pf_sched_layout *l, const uint8_t *p, uint32_t size)
{
	uint64_t v;

	if (size == 4)
		return load_s32(l, p);
	memcpy(&v, p, sizeof(v));
	return (int64_t)(l->swap ? bswap_64(v) : v);
}

static inline bool comm_is_same(const void *a, const void *b)
{
	/* Bytes after the NUL are undefined, but usually unchanged: compare all first. */
	return memcmp(a, b, PF_COMM_SIZE) == 0 || strncmp(a, b, PF_COMM_SIZE) == 0;
}

static size_t comm_hash(const void *comm)
{
	uint64_t words[2], hash;

	memcpy(words, comm, sizeof(words));
	hash = (words[0] ^ words[1] * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
	return (size_t)(hash >> 40);
}

DEFINE_TABLE(pf_comms, struct pf_comm, const void *, slot->number != 0, comm_hash(slot->name),
	     !memcmp(slot->name, key, PF_COMM_SIZE));

static _noinline_ int bundle_add_comm(struct pf_bundle *b, const void *comm)
{
	struct pf_comm *slot;

	if (b->comms.count == PF_COMMS_MAX)
		return -ENOSPC;
	slot = pf_comms_place(&b->comms, comm_hash(comm), comm);
	if (!slot)
		return -ENOMEM;
	memcpy(slot->name, comm, PF_COMM_SIZE);
	slot->number = (uint16_t)++b->comms.count;
	b->aside += PF_COMM_SIZE;
	pf_text(&b->compact[INTERN_TABLE], INTERN_TABLE,
		(struct text){ comm, (uint32_t)strnlen(comm, PF_COMM_SIZE) });
	return slot->number - 1;
}

/* Index of the name in this bundle's table, which must exist; -ENOSPC: it is full; -ENOMEM. */
static int bundle_intern_comm(struct pf_bundle *b, const void *comm)
{
	const struct pf_comm *slot =
		pf_comms_probe(b->comms.slots, b->comms.size, comm_hash(comm), comm);

	return likely(slot->number) ? slot->number - 1 : bundle_add_comm(b, comm);
}

/* Number of events for which room is reserved at one time. */
#define COMPACT_ROOM 64
/* Names for which the table has room at first: few collide in a table that is so empty. */
#define COMMS_ROOM 128

static bool compact_make_room(struct pf_bundle *b)
{
	for (size_t i = SWITCH_TIMESTAMP; i < ARRAY_SIZE(b->compact); i++)
		if (i != INTERN_TABLE &&
		    !buf_reserve(&b->compact[i], (size_t)COMPACT_ROOM * WIRE_VARINT_MAX))
			return false;
	if (pf_comms_reserve(&b->comms, COMMS_ROOM) < 0)
		return false;
	b->compact_room = COMPACT_ROOM;
	return true;
}

/* Makes sure that each array has room for one more event and that the table of names exists. */
static inline bool compact_has_room(struct pf_bundle *b)
{
	return likely(b->compact_room) || compact_make_room(b);
}

static inline void compact_pack(struct pf_bundle *b, unsigned field, uint64_t value)
{
	struct buf *to = &b->compact[field];
	uint8_t *p = (uint8_t *)to->data + to->len;

	to->len += (size_t)(wire_varint_wide(p, value) - p);
}

static inline void compact_added(struct pf_bundle *b)
{
	b->compact_room--;
	b->compact_count++;
}

/* Notes since when another task runs than that of the last switch. */
static _noinline_ void bundle_see_other(struct pf_running *run, const struct trace_event *ev)
{
	if (run->other_ts && run->other == ev->pid)
		return;
	run->other = ev->pid;
	run->other_ts = ev->rec.ts;
}

/* Field numbers of SchedSwitchFtraceEvent, and its own in FtraceEvent. */
enum { EVENT_SCHED_SWITCH = 4 };
enum {
	SWITCH_FULL_PREV_COMM = 1,
	SWITCH_FULL_PREV_PID = 2,
	SWITCH_FULL_PREV_PRIO = 3,
	SWITCH_FULL_PREV_STATE = 4,
	SWITCH_FULL_NEXT_COMM = 5,
	SWITCH_FULL_NEXT_PID = 6,
	SWITCH_FULL_NEXT_PRIO = 7,
};

static struct text comm_text(const void *comm)
{
	return (struct text){ comm, (uint32_t)strnlen(comm, PF_COMM_SIZE) };
}

/* Writes the switch from the task that readers take for running to the one that ev ends. */
static _noinline_ void bundle_add_unreported(struct pf_bundle *b, const struct pf_sched_layout *l,
					     const struct trace_event *ev)
{
	const struct pf_running *run = &b->running;
	const uint8_t *d = ev->rec.data;
	int32_t pid = load_s32(l, d + l->sw.prev_pid);
	bool seen = run->other_ts && run->other == pid;
	size_t event = pf_open(&b->events, BUNDLE_EVENT), content;

	pf_uint(&b->events, EVENT_TIMESTAMP, seen ? run->other_ts : ev->rec.ts);
	pf_uint(&b->events, EVENT_PID, (uint64_t)(int64_t)run->pid);
	content = pf_open(&b->events, EVENT_SCHED_SWITCH);
	pf_text(&b->events, SWITCH_FULL_PREV_COMM, comm_text(run->comm));
	pf_uint(&b->events, SWITCH_FULL_PREV_PID, (uint64_t)(int64_t)run->pid);
	pf_uint(&b->events, SWITCH_FULL_PREV_PRIO, (uint64_t)(int64_t)run->prio);
	/* Unknown: asleep until it is woken or runs. Idle tasks are always runnable. */
	pf_uint(&b->events, SWITCH_FULL_PREV_STATE, run->pid != 0);
	pf_text(&b->events, SWITCH_FULL_NEXT_COMM, comm_text(d + l->sw.prev_comm));
	pf_uint(&b->events, SWITCH_FULL_NEXT_PID, (uint64_t)(int64_t)pid);
	pf_uint(&b->events, SWITCH_FULL_NEXT_PRIO,
		(uint64_t)(int64_t)load_s32(l, d + l->sw.prev_prio));
	pf_uint(&b->events, SWITCH_UNREPORTED, 1);
	pf_close(&b->events, content);
	pf_close(&b->events, event);
}

/* 1: written in compact form; 0: write it plain; -ENOMEM. */
static inline int bundle_add_switch(struct pf_bundle *b, const struct pf_sched_layout *l,
				    const struct trace_event *ev, bool alone)
{
	const uint8_t *d = ev->rec.data;
	struct pf_running *run = &b->running;
	bool inferable;
	int comm;

	if (ev->rec.len < l->sw.size) {
		run->known = false;
		return 0;
	}
	inferable = run->known && load_s32(l, d + l->sw.prev_pid) == run->pid &&
		    ev->pid == run->pid && load_s32(l, d + l->sw.prev_prio) == run->prio &&
		    comm_is_same(d + l->sw.prev_comm, run->comm);
	if (unlikely(!inferable) && run->known && load_s32(l, d + l->sw.prev_pid) != run->pid)
		bundle_add_unreported(b, l, ev);
	run->other_ts = 0;
	run->known = true;
	run->pid = load_s32(l, d + l->sw.next_pid);
	run->prio = load_s32(l, d + l->sw.next_prio);
	memcpy(run->comm, d + l->sw.next_comm, PF_COMM_SIZE);
	if (!inferable || !alone)
		return 0;
	if (!compact_has_room(b))
		return -ENOMEM;
	comm = bundle_intern_comm(b, run->comm);
	if (unlikely(comm < 0))
		return comm == -ENOSPC ? 0 : comm;
	compact_pack(b, SWITCH_TIMESTAMP, ev->rec.ts - b->switch_ts);
	compact_pack(b, SWITCH_PREV_STATE,
		     (uint64_t)load_long(l, d + l->sw.prev_state, l->sw.prev_state_size));
	compact_pack(b, SWITCH_NEXT_PID, (uint64_t)(int64_t)run->pid);
	compact_pack(b, SWITCH_NEXT_PRIO, (uint64_t)(int64_t)run->prio);
	compact_pack(b, SWITCH_NEXT_COMM, (uint64_t)comm);
	b->switch_ts = ev->rec.ts;
	compact_added(b);
	return 1;
}

static inline int bundle_add_waking(struct pf_bundle *b, const struct pf_sched_layout *l,
				    const struct trace_event *ev, bool alone)
{
	const uint8_t *d = ev->rec.data;
	int comm;

	if (ev->rec.len < l->wk.size || !b->running.known || ev->pid != b->running.pid || !alone)
		return 0;
	if (!compact_has_room(b))
		return -ENOMEM;
	comm = bundle_intern_comm(b, d + l->wk.comm);
	if (unlikely(comm < 0))
		return comm == -ENOSPC ? 0 : comm;
	compact_pack(b, WAKING_TIMESTAMP, ev->rec.ts - b->waking_ts);
	compact_pack(b, WAKING_PID, (uint64_t)(int64_t)load_s32(l, d + l->wk.pid));
	compact_pack(b, WAKING_TARGET_CPU, (uint64_t)(int64_t)load_s32(l, d + l->wk.target_cpu));
	compact_pack(b, WAKING_PRIO, (uint64_t)(int64_t)load_s32(l, d + l->wk.prio));
	compact_pack(b, WAKING_COMM, (uint64_t)comm);
	compact_pack(b, WAKING_FLAGS, ev->flags);
	b->waking_ts = ev->rec.ts;
	compact_added(b);
	return 1;
}

static int bundle_need_descriptor(struct pf_bundle *b, const struct pf_event *e)
{
	for (size_t i = b->generic_count; i-- > 0;)
		if (b->generics[i] == e)
			return 0;
	return vec_push(b->generics, b->generic_count, b->generic_cap, e);
}

static _noinline_ int bundle_add_generic(struct pf_bundle *b, struct pf_schema *s,
					 const struct pf_event *e, const struct trace_event *ev)
{
	if (e->noticed)
		e = pf_schema_notice(s, e, ev);
	if (!e)
		return -ENOMEM;
	if (e->generic && bundle_need_descriptor(b, e) < 0)
		return -ENOMEM;
	return pf_event_write(s, e, ev, &b->events);
}

static _noinline_ int bundle_change_flags(struct pf_bundle *b, uint16_t *last, uint16_t now)
{
	uint8_t *start = (uint8_t *)buf_reserve(&b->flag_changes, (size_t)2 * WIRE_VARINT_MAX);

	if (!start)
		return -ENOMEM;
	b->flag_changes.len +=
		(size_t)(wire_varint(wire_varint(start, b->flags.expected), now) - start);
	b->flags.expected = 0;
	*last = now;
	return 0;
}

static _noinline_ int bundle_add_aside(struct pf_bundle *b, struct pf_schema *s, struct pf_event *e,
				       const struct trace_event *ev)
{
	size_t before = b->rest.len + s->new_addresses.len;
	int r = pf_put_format(s, e);

	if (r >= 0)
		r = pf_rest_write(s, e, ev, &b->rest);
	b->aside += b->rest.len + s->new_addresses.len - before;
	return r;
}

/* Adds what is needed to rebuild the record. */
static inline int bundle_add_rest(struct pf_bundle *b, struct pf_schema *s, struct pf_event *e,
				  const struct trace_event *ev)
{
	uint16_t now = (uint16_t)(ev->flags | ev->preempt_count << 8),
		 *last = pf_flags_last(&b->flags, ev->id);
	int r = 0;

	if (likely(*last == now))
		b->flags.expected++;
	else
		r = bundle_change_flags(b, last, now);
	return unlikely(e->aside) && r == 0 ? bundle_add_aside(b, s, e, ev) : r;
}

_hot_ int pf_bundle_add(struct pf_bundle *b, struct pf_schema *s, const struct pf_sched_layout *l,
			const struct trace_event *ev)
{
	struct pf_event *e = s->events[ev->id];
	bool alone = ev->rec.ts != b->end_ts && !l->plain;
	int r;

	if (unlikely(!e))
		return -EBADMSG;
	if (!b->start_ts)
		b->start_ts = ev->rec.ts;
	b->end_ts = ev->rec.ts;
	r = bundle_add_rest(b, s, e, ev);
	if (unlikely(r < 0))
		return r;
	if (ev->id == l->switch_id)
		r = bundle_add_switch(b, l, ev, alone);
	else if (ev->id == l->waking_id)
		r = bundle_add_waking(b, l, ev, alone);
	if (r)
		return MIN(r, 0);
	if (unlikely(ev->pid != b->running.pid) && b->running.known && ev->id != l->switch_id)
		bundle_see_other(&b->running, ev);
	if (e->generic || e->noticed)
		return bundle_add_generic(b, s, e, ev);
	return pf_event_write(s, e, ev, &b->events);
}

void pf_bundle_lost(struct pf_bundle *b, uint64_t count)
{
	/* UINT64_MAX means unknown: saturate. */
	b->lost_count = b->lost_count + count < count ? UINT64_MAX : b->lost_count + count;
	b->lost = true;
	b->since_ts = UINT64_MAX;
}

void pf_bundle_restart(struct pf_bundle *b)
{
	b->first = true;
	b->since_ts = b->end_ts;
	b->running.known = false;
}

#define KEPT_BYTES 1024

/*
 * Frees buffers that this bundle hardly used. Which one is largest depends on the kinds of events,
 * so in time all of a CPU's buffers would be large.
 */
static void bundle_empty_buf(struct buf *b)
{
	if (b->cap > KEPT_BYTES && b->len < b->cap / 4)
		buf_deinit(b);
	buf_clear(b);
}

static void bundle_take_buf(struct buf *from, struct buf *out)
{
	buf_append(out, from->data, from->len);
	out->failed |= from->failed;
	buf_clear(from);
}

static void bundle_put_compact(struct pf_bundle *b, struct buf *out)
{
	size_t content = pf_open_wide(out, BUNDLE_COMPACT_SCHED);

	for (uint32_t field = 1; field < ARRAY_SIZE(b->compact); field++) {
		if (field == INTERN_TABLE)
			bundle_take_buf(&b->compact[field], out);
		else if (b->compact[field].len)
			pf_message(out, field, &b->compact[field]);
	}
	pf_close_wide(out, content);
}

static void bundle_put_descriptors(struct pf_bundle *b, struct buf *out)
{
	for (size_t i = 0; i < b->generic_count; i++) {
		const struct pf_event *e = b->generics[i];
		size_t content = pf_open_wide(out, BUNDLE_GENERIC_DESCRIPTORS);

		pf_uint(out, DESCRIPTOR_FIELD, e->field);
		pf_bytes(out, DESCRIPTOR_MESSAGE, e->descriptor, e->descriptor_len);
		pf_bytes(out, DESCRIPTOR_GROUP, e->desc->system, strlen(e->desc->system));
		pf_close_wide(out, content);
	}
}

static void bundle_put_origin(struct pf_bundle *b, struct pf_schema *s, struct buf *out)
{
	bundle_take_buf(&s->new_formats, out);
	bundle_take_buf(&s->new_addresses, out);
	if (b->rest.len)
		pf_message(out, BUNDLE_REST, &b->rest);
	if (b->flag_changes.len)
		pf_message(out, BUNDLE_FLAGS, &b->flag_changes);
}

static void bundle_put_content(struct pf_bundle *b, unsigned clock, struct pf_schema *s,
			       struct buf *out)
{
	pf_uint(out, BUNDLE_CPU, b->cpu);
	if (b->lost)
		pf_uint(out, BUNDLE_LOST_EVENTS, 1);
	if (b->lost && b->lost_count != UINT64_MAX)
		pf_uint(out, BUNDLE_LOST_COUNT, b->lost_count);
	if (clock)
		pf_uint(out, BUNDLE_CLOCK, clock);
	if (b->first)
		pf_uint(out, BUNDLE_SINCE, MIN(b->since_ts, b->start_ts));
	bundle_put_descriptors(b, out);
	buf_append(out, b->events.data, b->events.len);
	out->failed |= b->events.failed;
	if (b->compact_count)
		bundle_put_compact(b, out);
	bundle_put_origin(b, s, out);
}

static void bundle_make_empty(struct pf_bundle *b)
{
	bundle_empty_buf(&b->events);
	for (size_t i = 0; i < ARRAY_SIZE(b->compact); i++)
		bundle_empty_buf(&b->compact[i]);
	bundle_empty_buf(&b->rest);
	bundle_empty_buf(&b->flag_changes);
	b->flags = (struct pf_flags){ 0 };
	b->lost = b->first = false;
	b->lost_count = 0;
	b->start_ts = b->switch_ts = b->waking_ts = 0;
	b->compact_count = b->compact_room = 0;
	b->generic_count = 0;
	b->aside = 0;
	TABLE_CLEAR(&b->comms);
}

int pf_bundle_finish(struct pf_bundle *b, unsigned clock, struct pf_schema *s, struct buf *out)
{
	struct buf *symbols = &s->new_symbols;
	size_t start = out->len, packet, bundle;
	int r;

	packet = pf_open_wide(out, TRACE_PACKET);
	pf_uint(out, PACKET_SEQUENCE, PF_SEQUENCE);
	pf_uint(out, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_STATE);
	if (symbols->len)
		pf_message(out, PACKET_INTERNED_DATA, symbols);
	bundle = pf_open_wide(out, PACKET_FTRACE_EVENTS);
	bundle_put_content(b, clock, s, out);
	pf_close_wide(out, bundle);
	pf_close_wide(out, packet);
	r = buf_error(out);
	if (r < 0)
		out->len = start;
	buf_clear(symbols);
	bundle_make_empty(b);
	return r;
}
