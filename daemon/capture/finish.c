/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends a recording, and takes snapshots of one that continues. */
#include <sched.h>
#include <sys/resource.h>

#include "base/io.h"
#include "daemon/capture/recording.h"
#include "proto/capture.pb-c.h"

#define FLUSH_TRIES 5

static uint64_t peak_rss(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

static void check_tasks(struct capture *c)
{
	const struct ring *ring = &c->rings[BUFFER_TASKS];
	uint64_t lost = 0;

	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		lost += ring->cpus[cpu].counts.overrun + ring->cpus[cpu].counts.commit_overrun;
	if (lost && !c->ring_mode)
		capture_warn(
			c, "%llu births and names of tasks were lost: some tasks may have no name",
			(unsigned long long)lost);
}

static int write_end(struct capture *c, enum capture_end reason)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	struct clock_snapshot s;
	int r;

	clocks_read(&s);
	r = clocks_write(&s, &c->writer, CLOCK_PHASE_END);
	if (r == 0)
		r = capture_write_counts(c, CLOCK_PHASE_END);
	check_tasks(c);
	if (r == 0)
		r = capture_write_notes(c);
	if (r < 0)
		return r;
	end.reason = (Traced__Capture__End__Reason)reason;
	end.boot_ns = now_ns(CLOCK_BOOTTIME);
	end.start_boot_ns = c->start_boot_ns;
	end.cpu_time_ns = c->cpu_ns;
	end.peak_rss_bytes = peak_rss();
	return stream_write_message(&c->writer, CHUNK_END, &end.base);
}

static int finish_scans(struct capture *c)
{
	int r;

	do {
		r = capture_background_slice(c);
	} while (r > 0);
	return r;
}

static int finish_names(struct capture *c)
{
	int r = finish_scans(c);

	if (r < 0 || !c->wants_mappings)
		return r;
	/* Programs may have started since the last scan. */
	capture_scan_mappings(c);
	return finish_scans(c);
}

static bool is_empty(const struct ring *ring)
{
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		if (ring->cpus[cpu].counts.entries && ring->cpus[cpu].reader.fd >= 0)
			return false;
	return true;
}

/* A writer inside its event when tracing goes off commits it a moment later. */
static int flush_all(struct capture *c, struct ring *ring)
{
	for (int i = 0; i < FLUSH_TRIES; i++) {
		int r = ring_flush(ring, &c->staging, &c->writer);

		if (r == 0)
			r = ring_count(ring);
		if (r < 0)
			return r;
		if (is_empty(ring))
			break;
		sched_yield();
	}
	return 0;
}

/* The last events may be the first ones that name symbols. */
static void finish_symbols(struct capture *c)
{
	int r = finish_scans(c);

	if (r < 0)
		capture_warn_missing(c, "the kernel's symbols are missing: %s", strerror(-r));
}

/* on: tracing could not be turned off, so the rings may never run empty. */
static int stop_stream(struct capture *c, enum capture_end reason, bool on)
{
	int r = capture_sampling_stop(c), e;

	if (r == 0)
		r = finish_names(c);
	if (r == 0)
		r = names_update(&c->names, &c->writer);
	c->streaming = false;
	/* After a gap that no sub-buffer announces, no more events may follow. */
	for (int b = 0; r == 0 && !c->full && b < BUFFER_COUNT; b++)
		if (c->rings[b].cpus)
			r = on ? ring_flush_bounded(&c->rings[b], &c->staging, &c->writer)
			       : flush_all(c, &c->rings[b]);
	if (r == 0 && !c->full)
		finish_symbols(c);
	if (c->full || r == -EDQUOT)
		capture_warn_missing(
			c, "the stream reached its limit: the end of the recording is missing");
	else if (r < 0)
		capture_warn_missing(c, "the end of the recording is missing: %s", strerror(-r));
	/* The stream limit reserves room for the closing chunks. */
	e = write_end(c, reason);
	return r < 0 ? r : e;
}

int capture_stop(struct capture *c, enum capture_end reason, struct error *err)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int off, r = 0;

	if (!c->running)
		return 0;
	c->running = false;
	capture_check_on(c);
	/* Stop sampling before task events: a sample of an unnamed thread is useless. */
	sampler_pause(&c->sampler);
	off = capture_turn(c, false);
	if (off == -ENOENT || off == -ENODEV) {
		capture_warn_missing(c,
				     "somebody removed the tracefs instance during the recording");
		off = 0;
	} else if (off < 0) {
		capture_warn(c, "tracing could not be turned off: %s", strerror(-off));
	}
	c->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	/* Drain the rings even if tracing could not be turned off. */
	if (c->streaming)
		r = stop_stream(c, reason, off < 0);
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	return off < 0 ? error_errno(err, off, "cannot turn tracing off") : 0;
}

static int snapshot(struct capture *c, int stream_fd, enum capture_end reason)
{
	int r = capture_begin_stream(c, stream_fd);

	c->seen = (struct seen_events){ 0 };
	if (r == 0)
		r = capture_write_counts(c, CLOCK_PHASE_START);
	/* The rings first: the kernel is overwriting them. */
	for (int b = 0; r == 0 && b < BUFFER_COUNT; b++)
		if (c->rings[b].cpus)
			r = c->running ? ring_flush_bounded(&c->rings[b], &c->staging, &c->writer)
				       : flush_all(c, &c->rings[b]);
	if (r == 0) {
		names_rewind(&c->names);
		c->names_done = false;
		r = finish_names(c);
	}
	if (r == 0)
		r = write_end(c, reason);
	c->streaming = false;
	c->bytes_before += c->writer.bytes;
	c->writer.bytes = 0;
	return r;
}

int capture_snapshot(struct capture *c, int stream_fd, enum capture_end reason, struct error *err)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r;

	if (!c->ring_mode)
		return error_set(err, -EINVAL, "only a recording in ring mode gives snapshots");
	r = snapshot(c, stream_fd, reason);
	c->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : 0;
}
