/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <xxhash.h>

#include "formats/perfetto/numbers.h"
#include "formats/perfetto/packets.h"
#include "formats/perfetto/tracks.h"
#include "formats/perfetto_read/mark_writer.h"

enum { TYPE_THREAD_TIME = 1, TYPE_INSTRUCTIONS = 2 }; /* of counters */

#define NAME_MAX_BYTES ((size_t)4096)
#define PARENTS_MAX 16
/* Threads that have a name, of processes that have no number: found by trying. */
#define SEARCHED_TIDS 256
#define SEARCHES_MAX 1024

enum kind { NAMED, PROCESS, THREAD, COUNTER, THREAD_TIME, INSTRUCTIONS };

/* A track as it is kept. */
struct track {
	enum kind kind;
	uint64_t parent;
	int32_t pid, tid; /* of a process or a thread */
	int32_t rank;
	bool has_rank;
	uint64_t given; /* hash of the name and labels that were given */
	uint32_t name_len, unit_len;
	char text[]; /* the name, behind it the unit */
};

/* A descriptor as it was read; texts borrowed. */
struct description {
	enum kind kind;
	uint64_t uuid, parent;
	uint64_t pid, tid;
	struct text name, labels, unit;
	uint64_t rank;
	bool has_rank;
};

static struct text text_in(const struct wire_field *f)
{
	return (struct text){ (const char *)f->data, (uint32_t)MIN(f->len, NAME_MAX_BYTES) };
}

static bool read_process(struct description *d, const struct wire_field *message)
{
	struct wire_reader r = wire_reader_in(message);
	struct wire_field f;

	d->kind = PROCESS;
	while (wire_read(&r, &f)) {
		if (f.number == PROCESS_PID)
			d->pid = f.value;
		else if (f.number == PROCESS_NAME)
			d->name = text_in(&f);
		else if (f.number == PROCESS_LABELS)
			d->labels = text_in(&f);
	}
	return !r.bad && d->pid > 0 && d->pid <= INT32_MAX;
}

static bool read_thread(struct description *d, const struct wire_field *message)
{
	struct wire_reader r = wire_reader_in(message);
	struct wire_field f;

	d->kind = THREAD;
	while (wire_read(&r, &f)) {
		if (f.number == THREAD_PID)
			d->pid = f.value;
		else if (f.number == THREAD_TID)
			d->tid = f.value;
		else if (f.number == THREAD_NAME)
			d->name = text_in(&f);
	}
	return !r.bad && d->pid > 0 && d->pid <= INT32_MAX && d->tid > 0 && d->tid <= INT32_MAX;
}

static bool read_counter(struct description *d, const struct wire_field *message)
{
	static const struct text units[] = {
		[UNIT_TIME_NS] = { "ns", 2 },
		[UNIT_COUNT] = { "count", 5 },
		[UNIT_SIZE_BYTES] = { "bytes", 5 },
	};
	struct wire_reader r = wire_reader_in(message);
	struct wire_field f;

	d->kind = COUNTER;
	while (wire_read(&r, &f)) {
		if (f.number == COUNTER_TYPE)
			d->kind = f.value == TYPE_THREAD_TIME	 ? THREAD_TIME
				  : f.value == TYPE_INSTRUCTIONS ? INSTRUCTIONS
								 : COUNTER;
		else if (f.number == COUNTER_UNIT && f.value < ARRAY_SIZE(units))
			d->unit = units[f.value];
		else if (f.number == COUNTER_UNIT_NAME)
			d->unit = text_in(&f);
	}
	return !r.bad;
}

static bool read_description(struct description *d, const struct wire_field *descriptor)
{
	static const enum wire_type types[] = {
		[TRACK_NAME] = WIRE_BYTES,   [TRACK_PROCESS] = WIRE_BYTES,
		[TRACK_THREAD] = WIRE_BYTES, [TRACK_COUNTER] = WIRE_BYTES,
		[TRACK_RANK] = WIRE_VARINT,
	};
	struct wire_reader r = wire_reader_in(descriptor);
	struct wire_field f;
	bool good = true;

	*d = (struct description){ 0 };
	while (wire_read(&r, &f)) {
		if (f.number < ARRAY_SIZE(types) && f.type != types[f.number])
			continue;
		switch (f.number) {
		case TRACK_UUID:
			d->uuid = f.value;
			break;
		case TRACK_NAME:
			d->name = text_in(&f);
			break;
		case TRACK_PROCESS:
			good &= read_process(d, &f);
			break;
		case TRACK_THREAD:
			good &= read_thread(d, &f);
			break;
		case TRACK_PARENT:
			d->parent = f.value;
			break;
		case TRACK_COUNTER:
			good &= read_counter(d, &f);
			break;
		case TRACK_RANK:
			d->has_rank = true;
			d->rank = f.value;
			break;
		}
	}
	return good && !r.bad;
}

static const struct track *find(const struct pf_mark_writer *w, uint64_t uuid)
{
	return known_find(&w->tracks, uuid);
}

/* "process -5" */
static bool number_behind(struct text name, const char *word, int32_t *ret)
{
	char spelled[32];
	long long v;
	char *end;

	if (name.len >= sizeof(spelled) || name.len <= strlen(word) ||
	    memcmp(name.data, word, strlen(word)) != 0)
		return false;
	memcpy(spelled, name.data, name.len);
	spelled[name.len] = '\0';
	v = strtoll(spelled + strlen(word), &end, 10);
	*ret = (int32_t)v;
	return !*end && v >= INT32_MIN && v <= INT32_MAX;
}

static uint64_t uuid_of(int32_t pid, int32_t tid)
{
	return pf_track_uuid(tid ? 't' : 'p', pid, tid, (struct text){ 0 }, 0);
}

static bool search_thread(struct pf_mark_writer *w, uint64_t uuid, int32_t pid, int32_t *ret)
{
	if (w->searches == SEARCHES_MAX)
		return false;
	w->searches++;
	for (*ret = 1; *ret < SEARCHED_TIDS; ++*ret)
		if (uuid_of(pid, *ret) == uuid)
			return true;
	return false;
}

/*
 * A process or thread whose number readers do not take has a track by name alone, but its uuid
 * tells what it is. True: so it is, named: not by its number.
 */
static bool is_actor(struct pf_mark_writer *w, struct description *d, bool *ret_named)
{
	const struct track *process = d->parent ? find(w, d->parent) : NULL;
	int32_t pid = 0, tid = 0;

	if (d->kind != NAMED)
		return false;
	if (!d->parent) {
		*ret_named = !number_behind(d->name, "process ", &pid);
		if (uuid_of(pid, 0) != d->uuid && uuid_of(pid = 0, 0) != d->uuid)
			return false;
	} else if (process && process->kind == PROCESS) {
		pid = process->pid;
		*ret_named = !number_behind(d->name, "thread ", &tid);
		if ((!tid || uuid_of(pid, tid) != d->uuid) &&
		    (pid > 0 || !search_thread(w, d->uuid, pid, &tid)))
			return false;
	} else {
		return false;
	}
	d->kind = tid ? THREAD : PROCESS;
	d->pid = (uint64_t)pid;
	d->tid = (uint64_t)tid;
	return true;
}

static int put_metadata(struct pf_mark_writer *w, const struct track *t, struct text name,
			struct text key, struct text value, struct error *err)
{
	struct mark m = { .phase = PHASE_METADATA, .pid = t->pid, .tid = t->tid ?: t->pid };
	char spelled[64];

	snprintf(spelled, sizeof(spelled), "%s_%.*s", t->kind == PROCESS ? "process" : "thread",
		 (int)name.len, name.data);
	m.part[PART_NAME] = (struct text){ spelled, (uint32_t)strlen(spelled) };
	buf_clear(&w->args);
	if (value.data)
		value_put_text(&w->args, &key, value);
	else
		value_put_u64(&w->args, &key, VALUE_INT, (uint64_t)(int64_t)t->rank);
	if (buf_error(&w->args) < 0)
		return error_errno(err, -ENOMEM, "can't read a track");
	m.part[PART_ARGS] = (struct text){ w->args.data, (uint32_t)w->args.len };
	return pf_mark_put(w, &m, err);
}

/* What is said of a process or a thread, where that was not said before. */
static int put_actor(struct pf_mark_writer *w, const struct track *t, const struct track *before,
		     const struct description *d, bool named, struct error *err)
{
	bool renamed = !before || before->kind != t->kind || before->given != t->given;
	bool ranked = !before || before->has_rank != t->has_rank || before->rank != t->rank;
	int r = 0;

	if (renamed && named && d->name.len)
		r = put_metadata(w, t, TEXT("name"), TEXT("name"), d->name, err);
	if (r == 0 && renamed && d->labels.len)
		r = put_metadata(w, t, TEXT("labels"), TEXT("labels"), d->labels, err);
	if (r == 0 && ranked && t->has_rank)
		r = put_metadata(w, t, TEXT("sort_index"), TEXT("sort_index"), (struct text){ 0 },
				 err);
	return r;
}

static uint64_t hash_given(const struct description *d)
{
	return XXH3_64bits_withSeed(d->labels.data, d->labels.len,
				    XXH3_64bits(d->name.data, d->name.len));
}

int mark_tracks_take(struct pf_mark_writer *w, const struct wire_field *descriptor,
		     struct error *err)
{
	struct track before = { 0 }, *t;
	const struct track *old;
	struct description d;
	bool named = true, known, actor;

	if (!read_description(&d, descriptor))
		return pf_mark_leave_out(w, 1, "a track that makes no sense");
	/* The root, which says how others are ordered. */
	if (!d.uuid || d.uuid >> 32 == PF_LOSS_TRACKS >> 32)
		return 0;
	actor = is_actor(w, &d, &named) || d.kind == PROCESS || d.kind == THREAD;
	old = find(w, d.uuid);
	known = old;
	if (old)
		before = *old;
	t = known_add(&w->tracks, &w->room, d.uuid, sizeof(*t) + d.name.len + d.unit.len);
	if (!t)
		return pf_mark_leave_out(w, 1, "a track, as there are too many");
	*t = (struct track){
		.kind = d.kind,
		.parent = d.parent,
		.pid = (int32_t)d.pid,
		.tid = (int32_t)d.tid,
		.rank = (int32_t)d.rank,
		.has_rank = d.has_rank,
		.given = hash_given(&d),
		.name_len = d.name.len,
		.unit_len = d.unit.len,
	};
	if (d.name.len)
		memcpy(t->text, d.name.data, d.name.len);
	if (d.unit.len)
		memcpy(t->text + d.name.len, d.unit.data, d.unit.len);
	return actor ? put_actor(w, t, known ? &before : NULL, &d, named, err) : 0;
}

static struct text name_of(const struct track *t)
{
	return (struct text){ t->text, t->name_len };
}

static bool is_called(const struct track *t, const char *name)
{
	return t->kind == NAMED &&
	       text_equal(name_of(t), (struct text){ name, (uint32_t)strlen(name) });
}

/* The children of "Applications", which no process has. */
static enum mark_place_kind kind_of_shared(const struct track *t)
{
	if (is_called(t, "instants"))
		return PLACE_INSTANTS;
	if (is_called(t, "memory"))
		return PLACE_MEMORY;
	/* The exporter's own words on clocks. */
	if (is_called(t, "clocks"))
		return PLACE_SKIP;
	return PLACE_OWN;
}

/* Beneath a thread, or what stands for one. */
static bool is_contexts(const struct track *t, const struct track *parent, uint64_t uuid)
{
	return is_called(t, "contexts") &&
	       (parent->kind == THREAD ||
		uuid == pf_track_uuid('x', 0, 0, (struct text){ 0 }, t->parent));
}

static enum mark_place_kind kind_beneath(const struct track *t, const struct track *parent,
					 uint64_t uuid)
{
	switch (t->kind) {
	case PROCESS:
	case THREAD:
		return PLACE_THREAD;
	case COUNTER:
		return PLACE_COUNTER;
	case THREAD_TIME:
		return PLACE_TIME;
	case INSTRUCTIONS:
		return PLACE_INSTRUCTIONS;
	default:
		if (parent && is_contexts(t, parent, uuid))
			return PLACE_CONTEXTS;
		if (parent && !parent->parent && is_called(parent, "Applications"))
			return kind_of_shared(t);
		return PLACE_OWN;
	}
}

void mark_tracks_find(const struct pf_mark_writer *w, uint64_t uuid, struct mark_place *ret)
{
	const struct track *t = find(w, uuid), *above;

	*ret = (struct mark_place){ .global = true };
	if (uuid >> 32 == PF_LOSS_TRACKS >> 32)
		ret->kind = PLACE_SKIP;
	if (!t)
		return;
	ret->kind = kind_beneath(t, find(w, t->parent), uuid);
	ret->name = name_of(t);
	ret->unit = (struct text){ t->text + t->name_len, t->unit_len };
	above = t;
	/* A circle ends here, too. */
	for (unsigned i = 0; above && i < PARENTS_MAX; i++) {
		if (above->kind == PROCESS || above->kind == THREAD) {
			ret->global = false;
			ret->pid = above->pid;
			ret->tid = above->tid;
			return;
		}
		above = above->parent ? find(w, above->parent) : NULL;
	}
}
