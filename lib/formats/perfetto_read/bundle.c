/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/bundle.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/perfetto/numbers.h"
#include "trace/event_head.h"

/* One event as the message tells it. */
struct plain {
	uint64_t ts;
	int32_t pid;
	const struct bundle_event *kind;
	struct wire_field message;
	bool there;
};

/* The arrays of the compact form, read side by side. */
struct compact {
	struct wire_reader all[PF_COMPACT_FIELDS];
	uint64_t switch_ts, waking_ts; /* of the next */
	bool has_switch, has_waking;
};

/* A bundle while it is read. */
struct reading {
	struct bundles *b;
	uint32_t cpu;
	struct wire_reader fields; /* for the plain events */
	struct plain next;
	struct compact compact;
	struct wire_reader rest, changes;
	struct pf_flags flags;
	uint64_t until_change;
	uint16_t change;
	bool has_change;
	bool lost;
	uint64_t lost_count; /* 0: not known */
	bool damaged;
};

void bundles_deinit(struct bundles *b)
{
	record_maker_deinit(&b->maker);
	pages_deinit(&b->pages);
	free(b->events);
	free(b->running);
}

/* The name that an event has in the form that names it in each, in its message's first field. */
static bool legacy_name(const struct wire_field *m, struct wire_field *ret)
{
	struct wire_reader r = wire_reader_in(m);

	return wire_read(&r, ret) && ret->number == 1 && ret->type == WIRE_BYTES;
}

int bundle_event_order(const struct bundle_event *a, const struct bundle_event *b)
{
	if (a->field != b->field)
		return a->field < b->field ? -1 : 1;
	return a->field == PF_LEGACY_GENERIC ? strcmp(a->e->desc->name, b->e->desc->name) : 0;
}

static int compare_legacy(const struct bundle_event *e, const struct wire_field *name)
{
	size_t len = strlen(e->e->desc->name);
	int r = memcmp(e->e->desc->name, name->data, MIN(len, name->len));

	return r ?: (len > name->len) - (len < name->len);
}

/* Two of one name, of several groups, can't be told apart: the first in the table is taken. */
static const struct bundle_event *find_event(const struct bundles *b, const struct wire_field *m)
{
	bool legacy = m->number == PF_LEGACY_GENERIC;
	size_t low = 0, high = b->event_count;
	struct wire_field name = { 0 };

	if (legacy && !legacy_name(m, &name))
		return NULL;
	while (low < high) {
		const struct bundle_event *e = &b->events[low + (high - low) / 2];
		int order = e->field != m->number ? (e->field < m->number ? -1 : 1)
			    : legacy		  ? compare_legacy(e, &name)
						  : 0;

		if (order == 0)
			return e;
		if (order < 0)
			low += (high - low) / 2 + 1;
		else
			high = low + (high - low) / 2;
	}
	return NULL;
}

static bool read_plain(struct reading *r, const struct wire_field *event)
{
	struct wire_reader fields = wire_reader_in(event);
	struct wire_field f;

	r->next = (struct plain){ 0 };
	while (wire_read(&fields, &f)) {
		if (f.number == EVENT_TIMESTAMP)
			r->next.ts = f.value;
		else if (f.number == EVENT_PID)
			r->next.pid = (int32_t)f.value;
		else if (f.number != EVENT_COMMON_FLAGS && f.type == WIRE_BYTES)
			r->next.message = f;
	}
	if (r->next.message.type == WIRE_BYTES)
		r->next.kind = find_event(r->b, &r->next.message);
	r->next.there = r->next.kind && !fields.bad;
	return r->next.there;
}

/* The next event that is not in the compact form, if there is one. */
static void next_plain(struct reading *r)
{
	struct wire_field f;

	r->next.there = false;
	while (wire_read(&r->fields, &f)) {
		if (f.number != BUNDLE_EVENT || f.type != WIRE_BYTES)
			continue;
		if (read_plain(r, &f))
			return;
		/* What it has beside the bundle can't be told from what others have. */
		r->b->left_out++;
		r->rest.bad = true;
		r->changes.bad = true;
		r->until_change = UINT64_MAX;
		r->has_change = true;
	}
}

static void next_switch(struct compact *c)
{
	uint64_t delta;

	c->has_switch = c->all[SWITCH_TIMESTAMP].at < c->all[SWITCH_TIMESTAMP].end &&
			wire_read_varint(&c->all[SWITCH_TIMESTAMP], &delta);
	c->switch_ts += c->has_switch ? delta : 0;
}

static void next_waking(struct compact *c)
{
	uint64_t delta;

	c->has_waking = c->all[WAKING_TIMESTAMP].at < c->all[WAKING_TIMESTAMP].end &&
			wire_read_varint(&c->all[WAKING_TIMESTAMP], &delta);
	c->waking_ts += c->has_waking ? delta : 0;
}

static void read_compact(struct reading *r, const struct wire_field *message)
{
	struct wire_reader fields = wire_reader_in(message);
	struct wire_field f;

	while (wire_read(&fields, &f)) {
		if (f.type != WIRE_BYTES)
			continue;
		if (f.number == INTERN_TABLE && r->b->comm_count < ARRAY_SIZE(r->b->comms))
			r->b->comms[r->b->comm_count++] = f;
		else if (f.number < PF_COMPACT_FIELDS)
			r->compact.all[f.number] = wire_reader_in(&f);
	}
	r->damaged |= fields.bad;
}

/* All but the events themselves. */
static int read_fields(struct reading *r, const struct wire_field *message)
{
	struct wire_reader fields = wire_reader_in(message);
	bool has_cpu = false;
	struct wire_field f;

	while (wire_read(&fields, &f)) {
		switch (f.number) {
		case BUNDLE_CPU:
			r->cpu = (uint32_t)f.value;
			has_cpu = f.value < BUNDLE_CPUS;
			break;
		case BUNDLE_LOST_EVENTS:
			r->lost = f.value;
			break;
		case BUNDLE_LOST_COUNT:
			r->lost_count = f.value;
			break;
		case BUNDLE_COMPACT_SCHED:
			read_compact(r, &f);
			break;
		case BUNDLE_REST:
			r->rest = wire_reader_in(&f);
			break;
		case BUNDLE_FLAGS:
			r->changes = wire_reader_in(&f);
			break;
		}
	}
	r->damaged |= fields.bad;
	return has_cpu ? 0 : -EBADMSG;
}

static uint16_t next_flags(struct reading *r, uint16_t id)
{
	uint16_t *last = pf_flags_last(&r->flags, id);
	uint64_t value;

	if (!r->has_change) {
		r->has_change = true;
		r->until_change = UINT64_MAX;
		if (r->changes.at < r->changes.end && wire_read_varint(&r->changes, &value)) {
			r->until_change = value;
			if (!wire_read_varint(&r->changes, &value))
				r->until_change = UINT64_MAX;
			r->change = (uint16_t)value;
		}
	}
	if (r->until_change--)
		return *last;
	r->has_change = false;
	return *last = r->change;
}

static int finish(struct reading *r, const struct event *desc, uint64_t ts)
{
	struct record_maker *m = &r->b->maker;
	int e;

	/* Where one made no sense those behind it have no beginning. */
	if (!r->rest.bad)
		record_read_rest(m, &r->rest);
	record_end(m, next_flags(r, desc->id));
	e = pages_add(&r->b->pages, ts, m->data, m->len);
	if (e != -EMSGSIZE)
		return e;
	r->b->left_out++;
	return 0;
}

static struct wire_field comm_at(struct reading *r, uint64_t index)
{
	struct wire_field f = { 0 };

	if (index < r->b->comm_count)
		f = r->b->comms[index];
	else
		r->damaged = true;
	f.len = MIN(f.len, (size_t)PF_COMM_SIZE);
	return f;
}

/* An array that ended early has zeros. */
static uint64_t element(struct reading *r, unsigned field)
{
	uint64_t value = 0;

	r->damaged |= !wire_read_varint(&r->compact.all[field], &value);
	return value;
}

static void put_comm(struct record_maker *m, uint32_t offset, const void *comm, size_t len)
{
	record_put_bytes(m, offset, comm, (uint32_t)len);
}

static int add_switch(struct reading *r)
{
	const struct pf_sched_layout *l = &r->b->layout;
	struct pf_running *run = &r->b->running[r->cpu];
	const struct pf_event *e = r->b->maker.schema->events[l->switch_id];
	uint64_t state = element(r, SWITCH_PREV_STATE);
	struct record_maker *m = &r->b->maker;
	uint64_t ts = r->compact.switch_ts;
	struct wire_field comm;

	record_begin(m, e, run->pid);
	put_comm(m, l->sw.prev_comm, run->comm, sizeof(run->comm));
	record_put_number(m, l->sw.prev_pid, 4, (uint32_t)run->pid);
	record_put_number(m, l->sw.prev_prio, 4, (uint32_t)run->prio);
	record_put_number(m, l->sw.prev_state, l->sw.prev_state_size, state);
	run->pid = (int32_t)element(r, SWITCH_NEXT_PID);
	run->prio = (int32_t)element(r, SWITCH_NEXT_PRIO);
	comm = comm_at(r, element(r, SWITCH_NEXT_COMM));
	memset(run->comm, 0, sizeof(run->comm));
	if (comm.len)
		memcpy(run->comm, comm.data, comm.len);
	record_put_number(m, l->sw.next_pid, 4, (uint32_t)run->pid);
	record_put_number(m, l->sw.next_prio, 4, (uint32_t)run->prio);
	put_comm(m, l->sw.next_comm, run->comm, sizeof(run->comm));
	next_switch(&r->compact);
	return finish(r, e->desc, ts);
}

static int add_waking(struct reading *r)
{
	const struct pf_sched_layout *l = &r->b->layout;
	const struct pf_event *e = r->b->maker.schema->events[l->waking_id];
	struct wire_field comm = comm_at(r, element(r, WAKING_COMM));
	struct record_maker *m = &r->b->maker;
	uint64_t ts = r->compact.waking_ts;

	record_begin(m, e, r->b->running[r->cpu].pid);
	put_comm(m, l->wk.comm, comm.data, comm.len);
	record_put_number(m, l->wk.pid, 4, element(r, WAKING_PID));
	record_put_number(m, l->wk.prio, 4, element(r, WAKING_PRIO));
	record_put_number(m, l->wk.target_cpu, 4, element(r, WAKING_TARGET_CPU));
	next_waking(&r->compact);
	return finish(r, e->desc, ts);
}

/* The next compact switch begins where this one, which was written plain, ended. */
static void see_switch(struct reading *r)
{
	const struct pf_sched_layout *l = &r->b->layout;
	const struct record_maker *m = &r->b->maker;
	struct pf_running *run = &r->b->running[r->cpu];

	if (r->next.kind->e->desc->id != l->switch_id || m->fixed_len < l->sw.size)
		return;
	run->pid = (int32_t)load_u32(m->data + l->sw.next_pid, m->big_endian);
	run->prio = (int32_t)load_u32(m->data + l->sw.next_prio, m->big_endian);
	memcpy(run->comm, m->data + l->sw.next_comm, sizeof(run->comm));
}

static int add_plain(struct reading *r)
{
	struct record_maker *m = &r->b->maker;
	struct plain now = r->next;
	int e;

	record_begin(m, now.kind->e, now.pid);
	r->damaged |= !record_read_message(m, wire_reader_in(&now.message), now.kind->text);
	see_switch(r);
	e = finish(r, now.kind->e->desc, now.ts);
	if (e == 0)
		next_plain(r);
	return e;
}

/* Of equal times the compact one comes first. 1, 0: there are no more; -errno. */
static int add_next(struct reading *r)
{
	const struct compact *c = &r->compact;
	uint64_t plain = r->next.there ? r->next.ts : UINT64_MAX;
	int e;

	if (c->has_switch && c->switch_ts <= plain &&
	    (!c->has_waking || c->switch_ts <= c->waking_ts))
		e = add_switch(r);
	else if (c->has_waking && c->waking_ts <= plain)
		e = add_waking(r);
	else if (r->next.there)
		e = add_plain(r);
	else
		return 0;
	return e < 0 ? e : 1;
}

/* Something makes no sense, or is there that no event took. */
static bool is_damaged(const struct reading *r)
{
	const struct wire_reader *a = r->compact.all;

	return r->damaged || r->rest.bad || r->rest.at < r->rest.end || r->changes.bad ||
	       r->changes.at < r->changes.end || r->fields.bad || a[SWITCH_TIMESTAMP].bad ||
	       a[WAKING_TIMESTAMP].bad;
}

int bundles_add(struct bundles *b, const struct wire_field *message)
{
	struct reading r = { .b = b, .fields = wire_reader_in(message) };
	int e, f;

	b->comm_count = 0;
	e = read_fields(&r, message);
	if (e < 0)
		return e;
	pages_begin(&b->pages, r.cpu, r.lost ? r.lost_count ?: UINT64_MAX : 0);
	if (b->layout.switch_id != PF_NO_EVENT)
		next_switch(&r.compact);
	if (b->layout.waking_id != PF_NO_EVENT)
		next_waking(&r.compact);
	next_plain(&r);
	while ((e = add_next(&r)) > 0)
		;
	b->damaged += is_damaged(&r);
	f = pages_flush(&b->pages);
	return e < 0 ? e : f;
}
