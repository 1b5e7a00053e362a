/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/tracks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/secret_hash.h"
#include "formats/perfetto/numbers.h"
#include "formats/perfetto/packet.h"

DEFINE_TABLE(pf_track_slots, struct pf_track, uint64_t, slot->uuid != 0, hash_number(slot->uuid),
	     slot->uuid == key);

static void track_free(struct pf_track *track)
{
	if (track->actor) {
		free(track->actor->name);
		free(track->actor->labels);
	}
	free(track->actor);
}

void pf_tracks_deinit(struct pf_tracks *t)
{
	TABLE_FOR_EACH(pf_track_slots, &t->all, track)
	track_free(track);
	free(t->all.slots);
	shares_deinit(&t->shares);
	*t = (struct pf_tracks){ 0 };
}

void pf_tracks_restart(struct pf_tracks *t)
{
	TABLE_FOR_EACH(pf_track_slots, &t->all, track)
	track->described = false;
	t->ordered = false;
}

uint64_t pf_track_uuid(char kind, int64_t a, int64_t b, struct text text, uint64_t seed)
{
	const int64_t numbers[] = { kind, a, b };

	seed = XXH3_64bits_withSeed(numbers, sizeof(numbers), seed);
	return XXH3_64bits_withSeed(text.data, text.len, seed) ?: 1;
}

int pf_track_hold(struct pf_tracks *t, struct pf_track *track, const struct mark *by)
{
	const struct share_owner holder = mark_owner_of(by);
	int r;

	if (track->held)
		return 0;
	t->shares.max = PF_TRACKS_HELD_MAX;
	r = shares_take(&t->shares, &holder, 1);
	if (r < 0)
		return r;
	track->held = true;
	track->holder = holder;
	return 0;
}

void pf_track_release(struct pf_tracks *t, struct pf_track *track)
{
	if (!track->held || track->open ||
	    (track->actor && (track->actor->changed || track->actor->flow_count)))
		return;
	track->held = false;
	shares_return(&t->shares, &track->holder, 1);
}

static int tracks_sweep(struct pf_tracks *t)
{
	struct pf_track_slots kept = { 0 };

	if (pf_track_slots_reserve(&kept, t->all.size / 2) < 0)
		return -ENOMEM;
	TABLE_FOR_EACH(pf_track_slots, &t->all, track)
	{
		if (!track->held) {
			track_free(track);
			continue;
		}
		*pf_track_slots_probe(kept.slots, kept.size, hash_number(track->uuid),
				      track->uuid) = *track;
		kept.count++;
	}
	TABLE_DEINIT(&t->all);
	t->all = kept;
	return 0;
}

struct pf_track *pf_track_get(struct pf_tracks *t, uint64_t uuid)
{
	uint64_t hash = hash_number(uuid);
	struct pf_track *track = pf_track_slots_find(&t->all, hash, uuid);

	if (track)
		return track;
	if (t->all.count >= PF_TRACKS_MAX && tracks_sweep(t) < 0)
		return NULL;
	track = pf_track_slots_place(&t->all, hash, uuid);
	if (!track)
		return NULL;
	track->uuid = uuid;
	t->all.count++;
	return track;
}

struct pf_track *pf_track_of(struct pf_tracks *t, int32_t pid, int32_t tid)
{
	struct pf_track *track =
		pf_track_get(t, pf_track_uuid(tid ? 't' : 'p', pid, tid, (struct text){ 0 }, 0));

	if (track && !track->actor) {
		track->actor = calloc(1, sizeof(*track->actor));
		if (!track->actor)
			return NULL;
		track->actor->pid = pid;
		track->actor->tid = tid;
	}
	return track;
}

static int track_end_packet(const struct pf_tracks *t, const struct buf *track, struct buf *out)
{
	size_t packet = pf_open(out, 1);

	if (t->ts)
		pf_uint(out, PACKET_TIMESTAMP, t->ts);
	pf_uint(out, PACKET_SEQUENCE, PF_SEQUENCE_TRACKS);
	if (t->ts && t->clock)
		pf_uint(out, PACKET_CLOCK, t->clock);
	pf_message(out, PACKET_TRACK_DESCRIPTOR, track);
	pf_close(out, packet);
	return buf_error(track) ?: buf_error(out);
}

static void track_put_counter(struct buf *b, const struct pf_track_form *form)
{
	size_t counter = pf_open(b, TRACK_COUNTER);

	/* COUNTER_THREAD_TIME_NS, COUNTER_THREAD_INSTRUCTION_COUNT */
	if (form->kind != PF_TRACK_COUNTER)
		pf_uint(b, COUNTER_TYPE, form->kind == PF_TRACK_THREAD_TIME ? 1 : 2);
	if (form->unit)
		pf_uint(b, COUNTER_UNIT, form->unit);
	if (form->unit_name.len)
		pf_text(b, COUNTER_UNIT_NAME, form->unit_name);
	pf_close(b, counter);
}

int pf_track_describe(const struct pf_tracks *t, struct pf_track *track,
		      const struct pf_track_form *form, struct buf *out)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (track->described)
		return 0;
	track->described = true;
	pf_uint(&b, TRACK_UUID, track->uuid);
	if (form->parent)
		pf_uint(&b, TRACK_PARENT, form->parent);
	if (form->name.len)
		pf_text(&b, TRACK_NAME, form->name);
	if (form->kind != PF_TRACK_SLICES)
		track_put_counter(&b, form);
	if (form->ordering)
		pf_uint(&b, TRACK_CHILD_ORDERING, form->ordering);
	if (form->rank)
		pf_uint(&b, TRACK_RANK, (uint64_t)(int64_t)form->rank);
	return track_end_packet(t, &b, out);
}

/* Readers apply ranks of processes and threads only if the root asks for it. */
static int track_describe_root(struct pf_tracks *t, struct buf *out)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (t->ordered)
		return 0;
	t->ordered = true;
	pf_uint(&b, TRACK_UUID, 0);
	pf_uint(&b, TRACK_PROCESS_ORDERING, 1);
	pf_uint(&b, TRACK_THREAD_ORDERING, 1);
	return track_end_packet(t, &b, out);
}

static struct text track_text(const char *s)
{
	return (struct text){ s, s ? (uint32_t)strlen(s) : 0 };
}

/* A track of its own with its name: readers have no number for it. */
static void track_put_other(struct buf *b, const struct pf_actor *a, uint64_t parent)
{
	char name[32];

	snprintf(name, sizeof(name), a->tid ? "thread %" PRId32 : "process %" PRId32,
		 a->tid ?: a->pid);
	if (parent)
		pf_uint(b, TRACK_PARENT, parent);
	pf_text(b, TRACK_NAME, track_text(a->name ?: name));
}

static void track_put_actor(struct buf *b, const struct pf_actor *a, uint64_t parent)
{
	struct text name = track_text(a->name), labels = track_text(a->labels);
	size_t content;

	if (a->pid <= 0 || a->tid < 0)
		return track_put_other(b, a, parent);
	if (a->tid) {
		pf_uint(b, TRACK_PARENT, parent);
		content = pf_open(b, TRACK_THREAD);
		pf_uint(b, THREAD_PID, (uint64_t)a->pid);
		pf_uint(b, THREAD_TID, (uint64_t)a->tid);
		if (name.len)
			pf_text(b, THREAD_NAME, name);
	} else {
		content = pf_open(b, TRACK_PROCESS);
		pf_uint(b, PROCESS_PID, (uint64_t)a->pid);
		if (name.len)
			pf_text(b, PROCESS_NAME, name);
		if (labels.len)
			pf_text(b, PROCESS_LABELS, labels);
	}
	pf_close(b, content);
}

static int track_describe(struct pf_tracks *t, struct pf_track *track, uint64_t parent,
			  struct buf *out)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct pf_actor *a = track->actor;
	int r;

	if (track->described && !a->changed)
		return 0;
	track->described = true;
	a->changed = false;
	pf_track_release(t, track);
	r = a->has_rank ? track_describe_root(t, out) : 0;
	if (r < 0)
		return r;
	pf_uint(&b, TRACK_UUID, track->uuid);
	track_put_actor(&b, a, parent);
	if (a->has_rank)
		pf_uint(&b, TRACK_RANK, (uint64_t)(int64_t)a->rank);
	return track_end_packet(t, &b, out);
}

int pf_track_describe_actor(struct pf_tracks *t, int32_t pid, int32_t tid, uint64_t *ret_uuid,
			    struct buf *out)
{
	struct pf_track *track = pf_track_of(t, pid, 0);
	uint64_t process;
	int r;

	if (!track)
		return -ENOMEM;
	process = *ret_uuid = track->uuid;
	r = track_describe(t, track, 0, out);
	if (r < 0 || !tid)
		return r;
	track = pf_track_of(t, pid, tid);
	if (!track)
		return -ENOMEM;
	*ret_uuid = track->uuid;
	return track_describe(t, track, process, out);
}

static int actor_by_number(const void *a, const void *b)
{
	const struct pf_actor *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* A time at which the task lived; 0: it lived to the end, or is unknown. */
static uint64_t track_task_time(struct task_table *tasks, const struct pf_actor *a)
{
	const struct task *task = task_table_find(tasks, a->tid ?: a->pid, UINT64_MAX);
	uint64_t gone = task ? task_table_gone(task) : 0;

	return gone ? task->from_ts + (gone - task->from_ts) / 2 : 0;
}

int pf_tracks_describe_rest(struct pf_tracks *t, struct task_table *tasks, struct buf *out)
{
	_cleanup_free_ struct pf_actor *rest = calloc((size_t)t->all.count + 1, sizeof(*rest));
	size_t count = 0;
	int r = 0;

	if (!rest)
		return -ENOMEM;
	TABLE_FOR_EACH(pf_track_slots, &t->all, track)
	if (track->actor && track->actor->changed)
		rest[count++] =
			(struct pf_actor){ .pid = track->actor->pid, .tid = track->actor->tid };
	qsort(rest, count, sizeof(*rest), actor_by_number);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct pf_track *track = pf_track_of(t, rest[i].pid, rest[i].tid);
		uint64_t uuid;

		/* A thread's description also is its process's. */
		if (track && !track->actor->changed)
			continue;
		t->ts = tasks ? track_task_time(tasks, &rest[i]) : 0;
		r = pf_track_describe_actor(t, rest[i].pid, rest[i].tid, &uuid, out);
	}
	return r;
}
