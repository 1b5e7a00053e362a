/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/nested.h"

#include "base/secret_hash.h"

#define NESTED_THREADS_MAX (1U << 14)

DEFINE_TABLE(nested_threads, struct nested_thread, const struct mark *, slot->used,
	     hash_pair(slot->pid, slot->tid), slot->pid == key->pid && slot->tid == key->tid);

void nested_threads_deinit(struct nested_threads *t)
{
	TABLE_DEINIT(t);
}

static struct nested_thread *nested_thread_get(struct nested_threads *t, const struct mark *mark)
{
	uint64_t hash = hash_pair(mark->pid, mark->tid);
	struct nested_thread *thread = nested_threads_find(t, hash, mark);

	if (thread)
		return thread;
	/* Only equal begins need what is forgotten here. */
	if (t->count == NESTED_THREADS_MAX)
		TABLE_CLEAR(t);
	thread = nested_threads_place(t, hash, mark);
	if (!thread)
		return NULL;
	thread->used = true;
	thread->pid = mark->pid;
	thread->tid = mark->tid;
	t->count++;
	return thread;
}

static void nested_push(struct nested_thread *t, struct nested_slice slice)
{
	if (t->count == NESTED_MAX)
		memmove(t->slices, t->slices + 1, --t->count * sizeof(*t->slices));
	t->slices[t->count++] = slice;
}

static void nested_end(struct nested_thread *t)
{
	for (unsigned i = t->count; i-- > 0;) {
		if (!t->slices[i].open)
			continue;
		t->slices[i].open = false;
		return;
	}
}

uint64_t nested_begin(struct nested_threads *t, const struct mark *mark)
{
	struct nested_slice slice = { mark->ts, mark->ts, mark->phase == PHASE_BEGIN };
	struct nested_thread *thread;

	/* The marks of a file are sorted: outer ones come first. */
	if (!(mark->has & HAS_OWN_FRAMES) || !memchr("BEX", mark->phase, 3))
		return mark->ts;
	thread = nested_thread_get(t, mark);
	if (!thread)
		return mark->ts;
	if (mark->phase == PHASE_END) {
		nested_end(thread);
		return mark->ts;
	}
	/* Slices that this one encloses: they are closed. */
	while (mark->phase == PHASE_COMPLETE && thread->count) {
		const struct nested_slice *last = &thread->slices[thread->count - 1];

		if (last->open || last->begin < mark->ts)
			break;
		if (mark->dur && last->written && last->written <= slice.written)
			slice.written = last->written - 1;
		thread->count--;
	}
	nested_push(thread, slice);
	return slice.written;
}
