/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What lets an exporter follow a recording: now and then every CPU's ring is
 * taken to its end, the sub-buffer that the kernel is filling included, and a
 * FLUSH chunk says so. What came before one FLUSH is older than all that comes
 * after the next one, whatever clock dates it: the latter was not yet written when the
 * former was read. Twice a second, with the tick: no wake-up more.
 */
#include "base/io.h"
#include "daemon/capture/recording.h"
#include "proto/capture.pb-c.h"

#define FLUSH_NS (450 * NSEC_PER_MSEC) /* a little less than a tick: each tick has one */
#define FLUSH_BUDGET 256	       /* sub-buffers in one slice */

static int write_flush(struct capture *c)
{
	Traced__Capture__Flush message = TRACED__CAPTURE__FLUSH__INIT;
	int r = 0;

	/* Nothing was read since the flush: the counts are exactly those of the stream. */
	if (c->flush.with_counts)
		r = capture_write_counts(c, CLOCK_PHASE_PERIODIC);
	c->flush.with_counts = false;
	/* The events before it are printed by what is known up to it. */
	if (r == 0)
		r = names_update(&c->names, &c->writer);
	if (r < 0)
		return r;
	message.boot_ns = now_ns(CLOCK_BOOTTIME);
	r = stream_write_message(&c->writer, CHUNK_FLUSH, &message.base);
	c->flush.count += r == 0;
	return r;
}

static void next_cpu(struct flush *f)
{
	f->cpu++;
	f->moved = f->most = 0;
}

/* 1: there is more to take; 0: it was; -EAGAIN: it can't be had now. */
static int flush_cpu(struct capture *c, struct ring *ring)
{
	struct flush *f = &c->flush;
	unsigned budget = FLUSH_BUDGET;
	int r = ring_drain_cpu(ring, f->cpu, &c->staging, &c->writer, &budget, true);

	if (r < 0)
		return r;
	if (ring->cpus[f->cpu].reader.refused)
		return -EAGAIN;
	f->moved += FLUSH_BUDGET - budget;
	if (r == 0)
		return 0;
	/* Where as much is written as can be read the end never comes: what there was is enough. */
	if (!f->most) {
		r = ring_count(ring);
		if (r < 0)
			return r;
		f->most = f->moved + ring_most_subbufs(ring, f->cpu);
	}
	return f->moved < f->most;
}

int capture_flush_slice(struct capture *c, uint64_t now)
{
	struct flush *f = &c->flush;

	/* Before it there must be all that decodes: formats, the kernel's symbols. */
	if (!f->wanted || !c->names_done || (!f->under_way && now < f->next))
		return 0;
	if (!f->under_way)
		*f = (struct flush){
			.wanted = true,
			.under_way = true,
			.with_counts = f->with_counts,
			.count = f->count,
			.next = now + FLUSH_NS,
		};
	for (; f->buffer < BUFFER_COUNT; f->buffer++, f->cpu = 0) {
		struct ring *ring = &c->rings[f->buffer];

		while (f->cpu < ring->cpu_count) {
			int r = flush_cpu(c, ring);

			if (r == -EAGAIN)
				return 0;
			if (r != 0)
				return r;
			next_cpu(f);
		}
	}
	f->under_way = false;
	return write_flush(c);
}

uint64_t capture_flushes(const struct capture *c)
{
	return c->flush.count;
}
