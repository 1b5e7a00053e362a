/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends a recording, and takes snapshots of one that continues. */
#include <sched.h>
#include <sys/resource.h>

#include "base/io.h"
#include "base/plural.h"
#include "daemon/capture/histograms.h"
#include "daemon/capture/recording.h"
#include "proto/capture.pb-c.h"

#define FLUSH_TRIES 5

static uint64_t peak_rss(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

static void finish_check_tasks(const struct ring *ring, struct capture_report *report)
{
	uint64_t lost = 0;

	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		lost += ring->cpus[cpu].counts.overrun + ring->cpus[cpu].counts.commit_overrun;
	if (lost)
		report_warn(report,
			    "%llu birth%s or name%s of tasks %s lost: some tasks may have no name",
			    (unsigned long long)lost, plural_s(lost), plural_s(lost),
			    plural(lost, "was", "were"));
}

static int finish_write_end(struct capture *c, enum capture_end reason)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	struct capture_run *run = &c->run;
	struct clock_snapshot s;
	int r;

	clocks_read(&s);
	r = run_write_syncs(run);
	if (r == 0)
		r = clocks_write(&s, &run->writer, CLOCK_PHASE_END);
	if (r == 0)
		r = histograms_write(c);
	if (r == 0)
		r = run_write_counts(run, CLOCK_PHASE_END);
	if (!c->setup.ring_mode)
		finish_check_tasks(&run->rings[BUFFER_TASKS], &c->report);
	synthetic_report_drops(&c->setup.synthetics, c->setup.env.tracefs, c->setup.main,
			       &c->report);
	if (r == 0)
		r = report_write_notes(&c->report, &run->writer);
	if (r < 0)
		return r;
	end.reason = (Traced__Capture__End__Reason)reason;
	end.boot_ns = now_ns(CLOCK_BOOTTIME);
	end.start_boot_ns = run->start_boot_ns;
	end.cpu_time_ns = run->cpu_ns;
	end.peak_rss_bytes = peak_rss();
	return stream_write_message(&run->writer, CHUNK_END, &end.base);
}

static int finish_scans(struct capture *c)
{
	int r;

	do {
		r = capture_background_slice(c, true);
	} while (r > 0);
	return r;
}

static int finish_names(struct capture *c)
{
	int r = finish_scans(c);

	if (r < 0 || !c->setup.wants_mappings)
		return r;
	/* Programs may have started since the last scan. */
	capture_scan_mappings(c);
	return finish_scans(c);
}

static bool finish_is_empty(const struct ring *ring)
{
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		if (ring->cpus[cpu].counts.entries && ring->cpus[cpu].reader.fd >= 0)
			return false;
	return true;
}

/* A writer inside its event when tracing goes off commits it a moment later. */
static int finish_ring(struct capture_run *run, struct ring *ring)
{
	for (int i = 0; i < FLUSH_TRIES; i++) {
		int r = ring_flush(ring, &run->staging, &run->writer);

		if (r == 0)
			r = ring_count(ring);
		if (r < 0)
			return r;
		if (finish_is_empty(ring))
			break;
		sched_yield();
	}
	return 0;
}

/* on: tracing is on, so the rings may never run empty. */
static int finish_rings(struct capture_run *run, bool on)
{
	int r = 0;

	for (int b = 0; r == 0 && b < BUFFER_COUNT; b++) {
		if (!run->rings[b].cpus)
			continue;
		/* A CPU may have come since the last tick. */
		ring_refresh(&run->rings[b], &run->staging);
		r = on ? ring_flush_bounded(&run->rings[b], &run->staging, &run->writer)
		       : finish_ring(run, &run->rings[b]);
	}
	return r;
}

/* The kernel's symbols have waited: reading them takes longer than anything else. */
static void finish_symbols(struct capture *c)
{
	int r;

	c->run.names.symbols_wait = false;
	r = finish_scans(c);

	if (r < 0)
		report_warn_missing(&c->report, "the kernel's symbols are missing: %s",
				    strerror(-r));
}

static int finish_polls(struct capture *c)
{
	struct capture_run *run = &c->run;

	if (!run->poller)
		return 0;
	poller_stop(run->poller, &c->report);
	return run->full ? 0 : run_take_polls(run);
}

/* on: tracing could not be turned off. */
static int finish_end_stream(struct capture *c, enum capture_end reason, bool on)
{
	struct capture_run *run = &c->run;
	int r = sampler_stop(&run->sampler, &run->writer), e;

	if (r == 0)
		r = finish_polls(c);
	if (r == 0)
		r = finish_names(c);
	if (r == 0)
		r = names_update(&run->names, &run->writer);
	run->streaming = false;
	/* A full stream lacks sub-buffers without a mark of the gap: no later events may follow. */
	if (r == 0 && !run->full)
		r = finish_rings(run, on);
	if (r == 0 && !run->full)
		finish_symbols(c);
	/* A filesystem may have a quota, too. */
	if ((run->full || r == -EDQUOT) && !run->writer.failed)
		report_warn_missing(
			&c->report,
			"the stream reached its limit: the end of the recording is missing");
	else if (run->full || r < 0)
		report_warn_missing(&c->report, "the end of the recording is missing: %s",
				    strerror(-(run->writer.failed ?: r)));
	/* The stream limit reserves room for the closing chunks. */
	e = finish_write_end(c, reason);
	return r < 0 ? r : e;
}

/* Once. */
static void finish_tell_hit(struct capture *c)
{
	if (c->run.hit && c->setup.by_trigger)
		report_warn(&c->report, "a trigger ended the recording, at its last events: %s",
			    c->setup.off_by);
	else if (c->run.hit)
		report_warn(&c->report,
			    "%s reached --stop-us: the kernel stopped the tracing there",
			    c->setup.off_by ? "a trigger acted, or a latency" : "a latency");
	c->run.hit = false;
}

void capture_turn_off(struct capture *c)
{
	struct capture_run *run = &c->run;

	if (!run->running || atomic_exchange(&run->off, true))
		return;
	run->off_before = capture_was_turned_off(c);
	run->hit = capture_went_off(c);
	/* Stop sampling before task events: a sample of an unnamed thread is useless. */
	sampler_pause(&run->sampler);
	run->off_error = capture_set_tracing(c, false);
}

int capture_stop(struct capture *c, enum capture_end reason, struct error *err)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct capture_run *run = &c->run;
	int off, r = 0;

	if (!run->running)
		return 0;
	capture_turn_off(c);
	run->running = false;
	if (run->off_before)
		capture_warn_of_off(c);
	finish_tell_hit(c);
	off = run->off_error;
	if (off < 0)
		report_warn(&c->report, "tracing could not be turned off: %s", strerror(-off));
	run->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	/* Drain the rings even if tracing could not be turned off. */
	if (run->streaming)
		r = finish_end_stream(c, reason, off < 0);
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	return off < 0 ? error_errno(err, off, "cannot turn tracing off") : 0;
}

static int finish_take_snapshot(struct capture *c, int stream_fd, enum capture_end reason)
{
	struct capture_run *run = &c->run;
	int r = capture_begin_stream(c, stream_fd);

	run->seen = (struct seen_events){ 0 };
	if (atomic_load(&run->off))
		finish_tell_hit(c);
	if (r == 0)
		r = run_write_start(run);
	/* The rings first: the kernel is overwriting them. */
	if (r == 0)
		r = finish_rings(run, run->running && !atomic_load(&run->off));
	if (r == 0) {
		names_rewind(&run->names);
		run->names_done = false;
		r = finish_names(c);
	}
	if (r == 0)
		r = finish_write_end(c, reason);
	run->streaming = false;
	c->report.bytes_before += run->writer.bytes;
	run->writer.bytes = 0;
	return r;
}

static bool finish_is_over(const struct capture *c)
{
	const struct capture_run *run = &c->run;

	return c->setup.ring_mode || !run->running || run->full || atomic_load(&run->off);
}

/* Symbols have waited. Between their slices the rings are read. */
int capture_prepare_part(struct capture *c, struct error *err)
{
	struct capture_run *run = &c->run;
	int r = -ECANCELED;

	if (!finish_is_over(c)) {
		run->names.symbols_wait = false;
		r = capture_dispatch(c, err);
	}
	if (r == -ECANCELED)
		return error_set(err, -ESHUTDOWN, "the recording has ended");
	return r > 0 ? !run->names_done || names_lack_symbols(&run->names) : r;
}

int capture_take_part(struct capture *c, struct capture_part *ret, struct error *err)
{
	struct capture_run *run = &c->run;
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r;

	if (finish_is_over(c))
		return error_set(err, -ESHUTDOWN, "the recording has ended");
	r = sampler_drain(&run->sampler, &run->writer);
	if (r == 0)
		r = finish_rings(run, true);
	if (r == 0)
		r = names_update(&run->names, &run->writer);
	if (r == 0)
		r = run_write_syncs(run);
	if (r == 0)
		r = run_write_clocks(run);
	if (r == 0)
		r = histograms_write(c);
	if (r == 0)
		r = run_write_counts(run, CLOCK_PHASE_PERIODIC);
	run->full |= r == -EDQUOT;
	run->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	*ret = (struct capture_part){ .bytes = run->writer.bytes,
				      .start_boot_ns = run->start_boot_ns,
				      .boot_ns = now_ns(CLOCK_BOOTTIME) };
	return 0;
}

int capture_snapshot(struct capture *c, int stream_fd, enum capture_end reason, struct error *err)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r;

	if (!c->setup.ring_mode)
		return error_set(err, -EINVAL, "only a recording in ring mode gives snapshots");
	r = finish_take_snapshot(c, stream_fd, reason);
	c->run.cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : 0;
}

int capture_count_held(struct capture *c, uint64_t *ret)
{
	uint64_t held = 0;

	for (int b = 0; b < BUFFER_COUNT; b++) {
		struct ring *ring = &c->run.rings[b];
		int r = ring->cpus ? ring_count(ring) : 0;

		if (r < 0)
			return r;
		for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
			held += ring_most_subbufs(ring, cpu) * ring->layout.size;
	}
	*ret = held;
	return 0;
}
