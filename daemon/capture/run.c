/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a recording: dispatch, tick, background work. */
#include <malloc.h>
#include <sys/epoll.h>

#include "base/io.h"
#include "daemon/capture/names/metadata.h"
#include "daemon/capture/recording.h"

/*
 * Maximum age of a full sub-buffer in a ring. One that is being filled waits until it is full, or
 * for the flush.
 */
#define TICK_NS (500 * NSEC_PER_MSEC)
#define FAST_TICK_NS (30 * NSEC_PER_MSEC) /* if poll does not report full rings */
#define STATS_NS (2 * NSEC_PER_SEC)
#define CLOCKS_NS (5 * NSEC_PER_SEC)
#define BUDGET_PER_CPU 256 /* sub-buffers per dispatch */

int capture_write_counts(struct capture *c, enum clock_phase phase)
{
	for (int b = 0; b < BUFFER_COUNT; b++) {
		int r;

		if (!c->rings[b].cpus)
			continue;
		r = ring_count(&c->rings[b]);
		if (r == 0)
			r = ring_write_stats(&c->rings[b], &c->writer, phase);
		if (r < 0)
			return r;
	}
	return 0;
}

int capture_begin_stream(struct capture *c, int fd)
{
	int r = stream_writer_init(&c->writer, fd, c->stream_limit);

	if (r == 0)
		r = stream_write(&c->writer, CHUNK_HEADER, c->header.data, c->header.len);
	if (r == 0)
		r = stream_write(&c->writer, CHUNK_HEADER_PAGE, c->header_page.data,
				 c->header_page.len);
	if (r == 0)
		r = clocks_write(&c->clocks_start, &c->writer, CLOCK_PHASE_START);
	if (r == 0)
		r = capture_write_syncs(c);
	c->streaming = r == 0;
	c->warnings_noted = 0;
	return r;
}

void capture_check_on(struct capture *c)
{
	uint64_t on;

	if (c->may_go_off)
		return;
	if (tracefs_read_u64(c->rings[BUFFER_MAIN].dir, "tracing_on", &on) == 0 && !on)
		capture_warn_missing(c, "somebody turned tracing off during the recording: later "
					"events are missing");
}

int capture_turn(struct capture *c, bool on)
{
	static const enum subbufs_buffer order[2][BUFFER_COUNT] = {
		{ BUFFER_MAIN, BUFFER_TASKS }, /* off: the main ring first, so that births stay
						  known to the end */
		{ BUFFER_TASKS, BUFFER_MAIN },
	};
	int failed = 0;

	for (int i = 0; i < BUFFER_COUNT; i++) {
		const struct ring *ring = &c->rings[order[on][i]];
		int r;

		if (!ring->cpus)
			continue;
		r = tracefs_write(ring->dir, "tracing_on", on ? "1" : "0");
		failed = failed ?: r;
	}
	return failed;
}

int capture_start(struct capture *c, int stream_fd, struct error *err)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r = 0;

	clocks_read(&c->clocks_start);
	if (!c->ring_mode) {
		r = capture_begin_stream(c, stream_fd);
		if (r == 0)
			r = capture_write_counts(c, CLOCK_PHASE_START);
		if (r < 0)
			return error_errno(err, r, "cannot write the capture stream");
	}
	r = capture_turn(c, true);
	if (r < 0)
		return error_errno(err, r, "cannot turn tracing on in the instance %s",
				   c->instance);
	c->running = true;
	c->start_boot_ns = now_ns(CLOCK_BOOTTIME);
	capture_sync_start(c);
	r = capture_sampling_start(c);
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	c->tick_ns = TICK_NS;
	c->next_tick = c->start_boot_ns;
	c->next_stats = c->start_boot_ns + STATS_NS;
	c->next_clocks = c->start_boot_ns + CLOCKS_NS;
	c->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return 0;
}

int capture_fd(const struct capture *c)
{
	return c->epfd;
}

uint64_t capture_deadline(const struct capture *c)
{
	if (!c->running)
		return UINT64_MAX;
	return c->next_tick;
}

/*
 * Stops watching a descriptor that wakes without data: kernels before 6.1 ignore buffer_percent in
 * poll.
 */
static void count_idle(struct capture *c, struct cpu_reader *r, bool took)
{
	if (took) {
		r->idle_wakeups = 0;
		return;
	}
	if (++r->idle_wakeups < IDLE_WAKEUPS_MAX || !r->watched)
		return;
	epoll_ctl(c->epfd, EPOLL_CTL_DEL, r->fd, NULL);
	r->watched = false;
	c->tick_ns = FAST_TICK_NS;
}

static int write_clocks(struct capture *c)
{
	struct clock_snapshot s;

	clocks_read(&s);
	c->next_clocks = now_ns(CLOCK_BOOTTIME) + CLOCKS_NS;
	return clocks_write(&s, &c->writer, CLOCK_PHASE_PERIODIC);
}

/* Returns 1 if a budget was used up. */
static int drain_ready(struct capture *c)
{
	struct epoll_event events[64];
	int n = epoll_wait(c->epfd, events, ARRAY_SIZE(events), 0), more = 0;

	for (int i = 0; i < n; i++) {
		uint64_t tag = events[i].data.u64 >> 32;
		struct ring *ring = &c->rings[tag < BUFFER_COUNT ? tag : BUFFER_MAIN];
		unsigned cpu = (unsigned)events[i].data.u64, budget = BUDGET_PER_CPU;
		int r = 0;

		if (tag == CAPTURE_SAMPLER_TAG || tag == CAPTURE_CLOCKS_TAG) {
			if (tag == CAPTURE_SAMPLER_TAG)
				r = sampler_drain_cpu(&c->sampler, cpu, &c->writer);
			else if (clocks_were_set(c->clock_watch))
				r = write_clocks(c);
			if (r < 0)
				return r;
			continue;
		}
		r = ring_drain_cpu(ring, cpu, &c->staging, &c->writer, &budget, false);
		if (r < 0)
			return r;
		count_idle(c, &ring->cpus[cpu].reader, budget < BUDGET_PER_CPU);
		more |= r;
	}
	return more;
}

/* tick: all CPUs; otherwise those whose last visit left data. */
static int drain_rings(struct capture *c, bool tick)
{
	int more = 0;

	for (int b = 0; b < BUFFER_COUNT; b++) {
		struct ring *ring = &c->rings[b];

		for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++) {
			unsigned budget = BUDGET_PER_CPU;
			int r;

			if (!tick && !ring->cpus[cpu].reader.hot)
				continue;
			r = ring_drain_cpu(ring, cpu, &c->staging, &c->writer, &budget, false);
			if (r < 0)
				return r;
			more |= r;
		}
	}
	return more;
}

/* Handles new CPUs, counts, clocks, and task scans if there is no tasks' ring. */
static int periodic(struct capture *c, uint64_t now)
{
	int r = 0;

	for (int b = 0; b < BUFFER_COUNT; b++) {
		ring_refresh(&c->rings[b], capture_env_sys(&c->env), &c->staging);
		if (!c->ring_mode)
			ring_watch(&c->rings[b], c->epfd);
	}
	if (now >= c->next_stats) {
		capture_check_on(c);
		/*
		 * A streamed recording writes its counts with a flush, so that they match the
		 * stream.
		 */
		c->flush.with_counts = c->flush.wanted;
		if (!c->flush.wanted)
			r = capture_write_counts(c, CLOCK_PHASE_PERIODIC);
		c->next_stats = now + STATS_NS;
		if (r == 0 && !c->has_tasks && c->names_done && !c->rescan.processes)
			task_scan_start(&c->rescan, c->env.proc, &c->known);
	}
	if (r == 0 && now >= c->next_clocks)
		r = write_clocks(c);
	return r < 0 ? r : capture_write_notes(c);
}

/* After formats, symbols and tasks are written, a recording needs a tenth of the heap. */
static void give_back_memory(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

int capture_background_slice(struct capture *c)
{
	int r;

	/* Mappings first: processes may end soon. */
	if (c->mappings.processes) {
		r = mapping_scan_step(&c->mappings, &c->writer);
		return r < 0 ? r : 1;
	}
	if (c->names_done && names_lack_symbols(&c->names))
		c->names_done = false;
	if (!c->names_done) {
		r = names_step(&c->names, &c->writer);
		if (r == 0) {
			c->names_done = true;
			overhead_begin_anew(&c->overhead);
			give_back_memory();
			if (c->names.symbols.hidden)
				capture_warn(c, "kernel symbols are hidden (kernel.kptr_restrict): "
						"addresses have no names");
			if (c->names.symbols.cut)
				capture_warn(c, "the kernel has more symbols than a stream holds: "
						"some addresses have no names");
		}
		return r;
	}
	if (c->rescan.processes)
		return task_scan_step(&c->rescan, &c->writer);
	return 0;
}

static int dispatch(struct capture *c, struct error *err)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	bool tick = now >= c->next_tick;
	int more, r;

	if (c->ring_mode) {
		if (tick) {
			ring_refresh(&c->rings[BUFFER_MAIN], capture_env_sys(&c->env), &c->staging);
			ring_refresh(&c->rings[BUFFER_TASKS], capture_env_sys(&c->env),
				     &c->staging);
			c->next_tick = now + STATS_NS;
		}
		return 0;
	}
	more = drain_ready(c);
	if (more < 0)
		return more;
	r = drain_rings(c, tick);
	if (r < 0)
		return r;
	more |= r;
	if (tick) {
		r = sampler_drain(&c->sampler, &c->writer);
		if (r == 0)
			r = periodic(c, now);
		if (r == 0)
			r = overhead_keep(c, now, err);
		if (r < 0)
			return r;
		c->next_tick = now + c->tick_ns;
	}
	r = capture_background_slice(c);
	if (r < 0)
		return r;
	more |= r;
	r = capture_flush_slice(c, now);
	return r < 0 ? r : more | r;
}

int capture_dispatch(struct capture *c, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r;

	if (!c->running)
		return 0;
	r = c->full ? -EDQUOT : dispatch(c, &why);
	c->full |= r == -EDQUOT;
	c->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	if (why.code)
		return error_move(err, &why);
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : r;
}
