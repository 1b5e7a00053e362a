/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A mark into the thread's ring. */
#include "emit.h"

#include "traced/traced.h"

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

/* < 0: the mark is dropped. */
static inline int64_t label_in(struct thread *t, struct ring *r, struct traced_label *label)
{
	uint32_t number = __atomic_load_n(&label->id, __ATOMIC_RELAXED);

	if (likely(number && ring_knows(r, number)))
		return number;
	return ring_define(t, r, label);
}

void traced_write_plain(char phase, struct traced_label *label)
{
	struct thread *t = &traced_thread;
	struct ring *r;
	int64_t number = 0;

	if (unlikely(t->counts)) {
		traced_write_label(phase, 0, label, NULL, 0);
		return;
	}
	r = ring_begin(t);
	if (!r)
		return;
	if (label)
		number = label_in(t, r, label);
	if (unlikely(label && number <= 0)) {
		ring_end(t);
		if (number == 0)
			traced_write_label(phase, 0, label, NULL, 0);
		return;
	}
	if (likely(ring_room(t, r, 16))) {
		put_record(ring_at(r, r->head), 2, (uint8_t)phase, 0, (uint32_t)number,
			   clock_ns(CLOCK_BOOTTIME));
		ring_publish(r, r->head + 16);
	}
	ring_end(t);
}

void traced_write_label(char phase, unsigned flags, struct traced_label *label,
			const struct traced_arg *args, size_t arg_count)
{
	struct traced_mark mark = {
		.label = label, .flags = flags, .args = args, .arg_count = arg_count
	};

	traced_write(phase, &mark);
}
