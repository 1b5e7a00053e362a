/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a mark into the thread's ring. */
#include "emit.h"

#include "traced/traced.h"

/* Limits of the fast path: such a record fits any ring. */
#define SHORT_ARGS 8
#define SHORT_TEXT 1024

__thread struct thread traced_thread initial_exec;

uint64_t traced_now(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

uint64_t traced_dropped(void)
{
	return __atomic_load_n(&traced_thread.dropped, __ATOMIC_RELAXED);
}

static inline bool ring_room(struct thread *t, struct ring *r, uint32_t need)
{
	return likely(ring_has_room(r, need)) || ring_make_room(t, r, need);
}

/* The label's number; 0: it must be sent as text; < 0: the mark is dropped. */
static inline int64_t ring_label(struct thread *t, struct ring *r, struct traced_label *label)
{
	uint32_t number = __atomic_load_n(&label->id, __ATOMIC_RELAXED);

	if (likely(number && ring_knows(r, number)))
		return number;
	return ring_define(t, r, label);
}

/* The general path, for all kinds of arguments. */
__attribute__((noinline)) static void mark_write_long(char phase, unsigned flags,
						      struct traced_label *label,
						      const struct traced_arg *args,
						      size_t arg_count)
{
	struct traced_mark mark = {
		.label = label, .flags = flags, .args = args, .arg_count = arg_count
	};

	mark_emit(phase, &mark);
}

/* The caller's ring comes next. */
__attribute__((noinline)) static void mark_tell_listeners(char phase, unsigned flags,
							  struct traced_label *label,
							  const struct traced_arg *args,
							  size_t arg_count)
{
	const struct traced_mark mark = {
		.label = label, .flags = flags, .args = args, .arg_count = arg_count
	};

	user_event_write(phase, &mark);
}

void traced_write_plain(char phase, struct traced_label *label)
{
	struct thread *t = &traced_thread;
	struct ring *r;
	int64_t number = 0;

	if (unlikely(user_event_wanted()))
		mark_tell_listeners(phase, 0, label, NULL, 0);
	if (unlikely(t->counts)) {
		mark_write_long(phase, 0, label, NULL, 0);
		return;
	}
	r = ring_begin(t);
	if (!r)
		return;
	if (label)
		number = ring_label(t, r, label);
	if (unlikely(label && number <= 0)) {
		ring_end(t);
		if (number == 0)
			mark_write_long(phase, 0, label, NULL, 0);
		return;
	}
	if (likely(ring_room(t, r, 16))) {
		mark_put_record(ring_at(r, r->head), 2, (uint8_t)phase, 0, (uint32_t)number,
				clock_ns(CLOCK_BOOTTIME));
		ring_publish(r, r->head + 16);
	}
	ring_end(t);
}

/* Bytes of an argument. 0: it needs the general path. < 0: the mark is dropped. */
static inline int64_t mark_arg_bytes(struct thread *t, struct ring *r, const struct traced_arg *a)
{
	int64_t number = likely(!a->named && a->key.label) ? ring_label(t, r, a->key.label) : 0;

	if (unlikely(number <= 0))
		return number;
	if (a->type == TRACED_TYPE_STRING || a->type == TRACED_TYPE_JSON)
		return likely(a->length < SHORT_TEXT) ? mark_text_bytes(a->length) : 0;
	return a->type == TRACED_TYPE_NULL ? 8 : 16;
}

static inline char *mark_put_arg(char *p, const struct traced_arg *a)
{
	uint32_t key = a->key.label->id;
	enum mark_type type = (enum mark_type)a->type;

	if (a->type == TRACED_TYPE_STRING || a->type == TRACED_TYPE_JSON)
		return mark_put_text(p, MARK_ARG, type, key, a->value.text, a->length);
	if (a->type == TRACED_TYPE_NULL)
		return mark_put_field(p, 8, MARK_ARG, type, key);
	p = mark_put_field(p, 16, MARK_ARG, type, key);
	memcpy(p, &a->value, 8);
	return p + 8;
}

/* 1: written. 0: dropped, and counted. -1: needs the general path. */
static inline int mark_write_short(struct thread *t, struct ring *r, char phase, unsigned flags,
				   struct traced_label *label, const struct traced_arg *args,
				   size_t arg_count)
{
	int64_t number = label ? ring_label(t, r, label) : 0;
	uint32_t need = 16;
	char *p;

	if (unlikely(label && number <= 0))
		return number < 0 ? 0 : -1;
	for (size_t i = 0; i < arg_count; i++) {
		int64_t bytes = mark_arg_bytes(t, r, &args[i]);

		if (unlikely(bytes <= 0))
			return bytes < 0 ? 0 : -1;
		need += (uint32_t)bytes;
	}
	if (unlikely(!ring_room(t, r, need)))
		return 0;
	p = ring_at(r, r->head);
	mark_put_record(p, (uint16_t)(need / 8), (uint8_t)phase, (uint8_t)flags, (uint32_t)number,
			clock_ns(CLOCK_BOOTTIME));
	p += 16;
	for (size_t i = 0; i < arg_count; i++)
		p = mark_put_arg(p, &args[i]);
	ring_publish(r, r->head + need);
	return 1;
}

void traced_write_label(char phase, unsigned flags, struct traced_label *label,
			const struct traced_arg *args, size_t arg_count)
{
	struct thread *t = &traced_thread;
	struct ring *r;

	if (unlikely(user_event_wanted()))
		mark_tell_listeners(phase, flags, label, args, arg_count);
	if (likely(!t->counts && arg_count <= SHORT_ARGS)) {
		int written;

		r = ring_begin(t);
		if (!r)
			return;
		written = mark_write_short(t, r, phase, flags, label, args, arg_count);
		ring_end(t);
		if (likely(written >= 0))
			return;
	}
	mark_write_long(phase, flags, label, args, arg_count);
}
