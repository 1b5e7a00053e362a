/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Flushes let an exporter follow a recording that is streamed or watched. Twice a second, with the
 * tick and so without an extra wake-up, every CPU's ring is read to its end, including the
 * sub-buffer that the kernel is filling. Then a FLUSH chunk is written.
 *
 * Events before one FLUSH are older than all events after the next one, whatever the trace clock:
 * the later events were not yet written when the earlier ones were read.
 */
#include "base/io.h"
#include "daemon/capture/recording.h"
#include "proto/capture.pb-c.h"

#define FLUSH_NS (450 * NSEC_PER_MSEC) /* below a tick: each tick flushes */
#define FLUSH_BUDGET 256	       /* sub-buffers per slice */

int run_write_flush(struct capture_run *run)
{
	Traced__Capture__Flush message = TRACED__CAPTURE__FLUSH__INIT;
	int r = 0;

	/* Nothing was read since the flush, so the counts match the stream exactly. */
	if (run->flush.with_counts)
		r = run_write_counts(run, CLOCK_PHASE_PERIODIC);
	run->flush.with_counts = false;
	/* The exporter prints the events before this FLUSH with the names written so far. */
	if (r == 0)
		r = names_update(&run->names, &run->writer);
	if (r == 0)
		r = run_write_syncs(run);
	if (r < 0)
		return r;
	message.boot_ns = now_ns(CLOCK_BOOTTIME);
	r = stream_write_message(&run->writer, CHUNK_FLUSH, &message.base);
	run->flush.count += r == 0;
	return r;
}

static void flush_next_cpu(struct flush *f)
{
	f->cpu++;
	f->moved = f->most = 0;
}

/* Returns 1: more to take; 0: done; -EAGAIN: cannot be read now. */
static int flush_cpu(struct capture_run *run, struct ring *ring)
{
	struct flush *f = &run->flush;
	unsigned budget = FLUSH_BUDGET;
	int r = ring_drain_cpu(ring, f->cpu, &run->staging, &run->writer, &budget, TAKE_PRESENT);

	if (r < 0)
		return r;
	if (ring->cpus[f->cpu].reader.refused)
		return -EAGAIN;
	f->moved += FLUSH_BUDGET - budget;
	if (r == 0)
		return 0;
	/*
	 * A busy CPU may write as fast as it is read. Stop after what the ring held at the start.
	 */
	if (!f->most) {
		r = ring_count(ring);
		if (r < 0)
			return r;
		f->most = f->moved + ring_most_subbufs(ring, f->cpu);
	}
	return f->moved < f->most;
}

int run_flush(struct capture_run *run, uint64_t now)
{
	struct flush *f = &run->flush;

	/* A FLUSH needs formats and kernel symbols before it: the exporter decodes up to it. */
	if (!run->names_done || (!f->under_way && now < f->next))
		return 0;
	if (!f->under_way)
		*f = (struct flush){
			.under_way = true,
			.with_counts = f->with_counts,
			.count = f->count,
			.next = now + FLUSH_NS,
		};
	for (; f->buffer < BUFFER_COUNT; f->buffer++, f->cpu = 0) {
		struct ring *ring = &run->rings[f->buffer];

		while (f->cpu < ring->cpu_count) {
			int r = flush_cpu(run, ring);

			if (r == -EAGAIN)
				return 0;
			if (r != 0)
				return r;
			flush_next_cpu(f);
		}
	}
	f->under_way = false;
	return run_write_flush(run);
}

void capture_watch(struct capture *c, bool watched)
{
	atomic_store(&c->run.watched, watched);
}

uint64_t capture_flushes(const struct capture *c)
{
	return c->run.flush.count;
}

int capture_flush(struct capture *c, struct error *err)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID), now = now_ns(CLOCK_BOOTTIME);
	struct capture_run *run = &c->run;
	int r = run->running ? capture_background_slice(c, false) : 0;

	if (r == 0 && run->running) {
		/* No tick comes meanwhile, and a new CPU's events are older than the FLUSH. */
		for (int b = 0; b < BUFFER_COUNT && !run->flush.under_way; b++)
			ring_refresh(&run->rings[b], &run->staging);
		run->flush.next = now;
		r = run_flush(run, now);
	}
	run->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : r;
}
