/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/watch_slices.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "base/secret_hash.h"
#include "report/slice_text.h"

#define OPEN_MAX 65536U

/* Slices of a thread for one condition; or of one id across threads, with a depth of at most 1. */
struct watch_slice {
	uint32_t depth; /* of all slices */
	uint32_t at;	/* depth of the one that counts; 0: none */
	uint64_t since, mark;
};

void watch_slices_init(struct watch_slices *s, struct report_env *env,
		       int (*ended)(void *userdata, size_t condition, int32_t tid, uint64_t from,
				    uint64_t to),
		       void *userdata)
{
	*s = (struct watch_slices){ .env = env, .ended = ended, .userdata = userdata };
	rows_init(&s->open, sizeof(struct watch_slice), NULL);
}

void watch_slices_deinit(struct watch_slices *s)
{
	rows_deinit(&s->open);
}

void watch_slices_want(struct watch_slices *s, size_t condition, const char *name)
{
	s->names[condition] = name;
}

void watch_slices_forget(struct watch_slices *s)
{
	if (s->open.count < OPEN_MAX)
		return;
	rows_deinit(&s->open);
	rows_init(&s->open, sizeof(struct watch_slice), NULL);
}

static bool watch_slices_has(const struct watch_slices *s, size_t i, struct text name)
{
	return s->names[i] &&
	       text_equal(name, (struct text){ s->names[i], (uint32_t)strlen(s->names[i]) });
}

/* *ret NULL: there are too many. A slice that a loss may have cut is forgotten. */
static int watch_slices_get(struct watch_slices *s, struct row_key key, struct watch_slice **ret)
{
	struct watch_slice *slice = rows_get(&s->open, key);

	if (!slice)
		return -ENOMEM;
	*ret = slice == s->open.rest ? NULL : slice;
	if (!report_is_whole(s->env, slice->mark))
		*slice = (struct watch_slice){ .mark = report_mark(s->env) };
	return 0;
}

static void watch_slice_begin(struct watch_slice *slice, uint64_t ts, bool counts)
{
	slice->depth++;
	if (!counts || slice->at)
		return;
	slice->at = slice->depth;
	slice->since = ts;
}

/* True if the one that counts has ended. */
static bool watch_slice_end(struct watch_slice *slice)
{
	bool ended = slice->depth && slice->at == slice->depth;

	if (ended)
		slice->at = 0;
	slice->depth -= slice->depth > 0;
	return ended;
}

/* begin: of that name; otherwise the innermost slice of the thread ends. */
static int watch_slices_thread(struct watch_slices *s, int32_t tid, uint64_t ts, bool begin,
			       struct text name)
{
	int r = 0;

	for (size_t i = 0; i < WATCH_CONDITIONS_MAX && r == 0; i++) {
		struct watch_slice *slice;

		if (!s->names[i])
			continue;
		r = watch_slices_get(s, (struct row_key){ (uint32_t)tid, i + 1 }, &slice);
		if (r < 0 || !slice)
			return r;
		if (begin)
			watch_slice_begin(slice, ts, watch_slices_has(s, i, name));
		else if (watch_slice_end(slice))
			r = s->ended(s->userdata, i, tid, slice->since, ts);
	}
	return r;
}

static int watch_slices_async(struct watch_slices *s, const struct slice_text *text, uint64_t ts)
{
	XXH128_hash_t id = XXH3_128bits_withSeed(text->id.data ?: "", text->id.len,
						 hash_secret[0] ^ (uint32_t)text->pid);
	int r = 0;

	for (size_t i = 0; i < WATCH_CONDITIONS_MAX && r == 0; i++) {
		/* The second half has bits that no number of a condition has. */
		struct row_key key = { id.low64, (id.high64 | UINT64_C(1) << 63) + i };
		struct watch_slice *slice;

		if (!watch_slices_has(s, i, text->name))
			continue;
		r = watch_slices_get(s, key, &slice);
		if (r < 0 || !slice)
			return r;
		if (text->kind == SLICE_ASYNC_BEGIN)
			*slice = (struct watch_slice){ 1, 1, ts, slice->mark };
		else if (watch_slice_end(slice))
			r = s->ended(s->userdata, i, text->pid, slice->since, ts);
	}
	return r;
}

int watch_slices_text(struct watch_slices *s, int32_t tid, uint64_t ts, struct text text)
{
	struct slice_text slice;

	if (!slice_text_parse(text, &slice))
		return 0;
	if (slice.kind == SLICE_BEGIN || slice.kind == SLICE_END)
		return watch_slices_thread(s, tid, ts, slice.kind == SLICE_BEGIN, slice.name);
	return watch_slices_async(s, &slice, ts);
}

/* Its time is known. */
static int watch_slices_complete(struct watch_slices *s, const struct mark *mark)
{
	uint64_t end;
	int r = 0;

	if (!(mark->has & HAS_DUR) || __builtin_add_overflow(mark->ts, mark->dur, &end))
		return 0;
	for (size_t i = 0; i < WATCH_CONDITIONS_MAX && r == 0; i++)
		if (watch_slices_has(s, i, mark->part[PART_NAME]))
			r = s->ended(s->userdata, i, mark->tid, mark->ts, end);
	return r;
}

int watch_slices_mark(struct watch_slices *s, const struct mark *mark)
{
	const struct slice_text text = {
		.kind = mark->phase == PHASE_ASYNC_BEGIN ? SLICE_ASYNC_BEGIN : SLICE_ASYNC_END,
		.pid = mark->pid,
		.name = mark->part[PART_NAME],
		.id = mark->part[PART_ID],
	};

	switch (mark->phase) {
	case PHASE_BEGIN:
	case PHASE_END:
		return watch_slices_thread(s, mark->tid, mark->ts, mark->phase == PHASE_BEGIN,
					   text.name);
	case PHASE_COMPLETE:
		return watch_slices_complete(s, mark);
	case PHASE_ASYNC_BEGIN:
	case PHASE_ASYNC_END:
		return watch_slices_async(s, &text, mark->ts);
	default:
		return 0;
	}
}
