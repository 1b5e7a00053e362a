/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a recording: dispatch, tick, background work. */
#include <malloc.h>
#include <sys/epoll.h>

#include "base/io.h"
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

int run_init(struct capture_run *run, const struct capture_overhead *overhead, struct error *err)
{
	int r;

	run->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (run->epfd < 0)
		return error_errno(err, -errno, "cannot create an epoll descriptor");
	r = overhead_init(&run->overhead, overhead);
	return r < 0 ? error_errno(err, r, "cannot set up the recording") : 0;
}

void run_deinit(struct capture_run *run)
{
	if (run->running)
		run_set_tracing(run, false);
	close_fd(run->epfd);
	close_fd(run->clock_watch);
	for (int b = 0; b < BUFFER_COUNT; b++)
		ring_close(&run->rings[b]);
	sampler_close(&run->sampler);
	mapping_scan_end(&run->mappings);
	staging_deinit(&run->staging);
	names_deinit(&run->names);
	task_scan_end(&run->rescan);
	task_memory_deinit(&run->known);
	overhead_deinit(&run->overhead);
	run_forget_syncs(run);
}

int run_write_counts(struct capture_run *run, enum clock_phase phase)
{
	for (int b = 0; b < BUFFER_COUNT; b++) {
		int r;

		if (!run->rings[b].cpus)
			continue;
		r = ring_count(&run->rings[b]);
		if (r == 0)
			r = ring_write_stats(&run->rings[b], &run->writer, phase);
		if (r < 0)
			return r;
	}
	return 0;
}

int capture_begin_stream(struct capture *c, int fd)
{
	const struct capture_setup *setup = &c->setup;
	struct capture_run *run = &c->run;
	struct stream_writer *w = &run->writer;
	int r = stream_writer_init(w, fd, setup->stream_limit);

	if (r == 0)
		r = stream_write(w, CHUNK_HEADER, setup->header.data, setup->header.len);
	if (r == 0)
		r = stream_write(w, CHUNK_HEADER_PAGE, setup->header_page.data,
				 setup->header_page.len);
	if (r == 0)
		r = clocks_write(&run->clocks_start, w, CLOCK_PHASE_START);
	if (r == 0)
		r = run_write_syncs(run);
	run->streaming = r == 0;
	c->report.warnings_noted = 0;
	return r;
}

void capture_check_on(struct capture *c)
{
	uint64_t on;

	if (c->setup.may_go_off)
		return;
	if (tracefs_read_u64(c->run.rings[BUFFER_MAIN].dir, "tracing_on", &on) == 0 && !on)
		report_warn_missing(&c->report,
				    "somebody turned tracing off during the recording: later "
				    "events are missing");
}

int run_set_tracing(struct capture_run *run, bool on)
{
	static const enum subbufs_buffer order[2][BUFFER_COUNT] = {
		{ BUFFER_MAIN, BUFFER_TASKS }, /* off: the main ring first, so that births stay
						  known to the end */
		{ BUFFER_TASKS, BUFFER_MAIN },
	};
	int failed = 0;

	for (int i = 0; i < BUFFER_COUNT; i++) {
		const struct ring *ring = &run->rings[order[on][i]];
		int r;

		if (!ring->cpus)
			continue;
		r = tracefs_write(ring->dir, "tracing_on", on ? "1" : "0");
		failed = failed ?: r;
	}
	return failed;
}

void capture_scan_mappings(struct capture *c)
{
	const char *proc = c->setup.env.proc;

	if (mapping_scan_start(&c->run.mappings, proc, c->setup.wants_mappings) < 0)
		report_warn(&c->report, "%s cannot be read: programs' code has no names", proc);
}

static int run_start_sampling(struct capture *c)
{
	struct capture_run *run = &c->run;
	bool samples = run->sampler.hz;
	/* Start recording new mappings before reading procfs, so that none is missed. */
	int r = samples ? sampler_start(&run->sampler, &run->writer) : 0;

	if (r == 0 && (samples || (c->setup.wants_mappings && !c->setup.ring_mode)))
		capture_scan_mappings(c);
	return r;
}

int capture_start(struct capture *c, int stream_fd, struct error *err)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct capture_run *run = &c->run;
	int r = 0;

	clocks_read(&run->clocks_start);
	if (!c->setup.ring_mode) {
		r = capture_begin_stream(c, stream_fd);
		if (r == 0)
			r = run_write_counts(run, CLOCK_PHASE_START);
		if (r < 0)
			return error_errno(err, r, "cannot write the capture stream");
	}
	r = run_set_tracing(run, true);
	if (r < 0)
		return error_errno(err, r, "cannot turn tracing on in the instance %s",
				   c->setup.instance);
	run->running = true;
	run->start_boot_ns = now_ns(CLOCK_BOOTTIME);
	capture_sync_start(c);
	r = run_start_sampling(c);
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	run->tick_ns = TICK_NS;
	run->next_tick = run->start_boot_ns;
	run->next_stats = run->start_boot_ns + STATS_NS;
	run->next_clocks = run->start_boot_ns + CLOCKS_NS;
	run->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return 0;
}

int capture_fd(const struct capture *c)
{
	return c->run.epfd;
}

uint64_t capture_deadline(const struct capture *c)
{
	if (!c->run.running)
		return UINT64_MAX;
	return c->run.next_tick;
}

/*
 * Stops watching a descriptor that wakes without data: kernels before 6.1 ignore buffer_percent in
 * poll.
 */
static void run_count_idle(struct capture_run *run, struct cpu_reader *r, bool took)
{
	if (took) {
		r->idle_wakeups = 0;
		return;
	}
	if (++r->idle_wakeups < IDLE_WAKEUPS_MAX || !r->watched)
		return;
	epoll_ctl(run->epfd, EPOLL_CTL_DEL, r->fd, NULL);
	r->watched = false;
	run->tick_ns = FAST_TICK_NS;
}

static int run_write_clocks(struct capture_run *run)
{
	struct clock_snapshot s;

	clocks_read(&s);
	run->next_clocks = now_ns(CLOCK_BOOTTIME) + CLOCKS_NS;
	return clocks_write(&s, &run->writer, CLOCK_PHASE_PERIODIC);
}

/* Returns 1 if a budget was used up. */
static int run_drain_ready(struct capture_run *run)
{
	struct epoll_event events[64];
	int n = epoll_wait(run->epfd, events, ARRAY_SIZE(events), 0), more = 0;

	for (int i = 0; i < n; i++) {
		uint64_t tag = events[i].data.u64 >> 32;
		struct ring *ring = &run->rings[tag < BUFFER_COUNT ? tag : BUFFER_MAIN];
		unsigned cpu = (unsigned)events[i].data.u64, budget = BUDGET_PER_CPU;
		int r = 0;

		if (tag == RUN_SAMPLER_TAG || tag == RUN_CLOCKS_TAG) {
			if (tag == RUN_SAMPLER_TAG)
				r = sampler_drain_cpu(&run->sampler, cpu, &run->writer);
			else if (clocks_were_set(run->clock_watch))
				r = run_write_clocks(run);
			if (r < 0)
				return r;
			continue;
		}
		r = ring_drain_cpu(ring, cpu, &run->staging, &run->writer, &budget, false);
		if (r < 0)
			return r;
		run_count_idle(run, &ring->cpus[cpu].reader, budget < BUDGET_PER_CPU);
		more |= r;
	}
	return more;
}

/* tick: drains all CPUs; otherwise those whose last visit left data. */
static int run_drain_rings(struct capture_run *run, bool tick)
{
	int more = 0;

	for (int b = 0; b < BUFFER_COUNT; b++) {
		struct ring *ring = &run->rings[b];

		for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++) {
			unsigned budget = BUDGET_PER_CPU;
			int r;

			if (!tick && !ring->cpus[cpu].reader.hot)
				continue;
			r = ring_drain_cpu(ring, cpu, &run->staging, &run->writer, &budget, false);
			if (r < 0)
				return r;
			more |= r;
		}
	}
	return more;
}

/* Handles new CPUs, counts, clocks, and task scans if there is no tasks' ring. */
static int run_periodic(struct capture *c, uint64_t now)
{
	const struct capture_setup *setup = &c->setup;
	struct capture_run *run = &c->run;
	int r = 0;

	for (int b = 0; b < BUFFER_COUNT; b++) {
		ring_refresh(&run->rings[b], capture_env_sys(&setup->env), &run->staging);
		if (!setup->ring_mode)
			ring_watch(&run->rings[b], run->epfd);
	}
	if (now >= run->next_stats) {
		capture_check_on(c);
		/*
		 * A streamed recording writes its counts with a flush, so that they match the
		 * stream.
		 */
		run->flush.with_counts = setup->streamed;
		if (!setup->streamed)
			r = run_write_counts(run, CLOCK_PHASE_PERIODIC);
		run->next_stats = now + STATS_NS;
		if (r == 0 && !setup->has_tasks && run->names_done && !run->rescan.processes)
			task_scan_start(&run->rescan, setup->env.proc, &run->known);
	}
	if (r == 0 && now >= run->next_clocks)
		r = run_write_clocks(run);
	return r < 0 ? r : report_write_notes(&c->report, &run->writer);
}

/* After formats, symbols and tasks are written, a recording needs a tenth of its heap. */
static void run_trim_heap(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

static void run_end_names(struct capture *c)
{
	struct capture_run *run = &c->run;

	run->names_done = true;
	overhead_restart(&run->overhead);
	run_trim_heap();
	if (run->names.symbols.hidden)
		report_warn(&c->report, "kernel symbols are hidden (kernel.kptr_restrict): "
					"addresses have no names");
	if (run->names.symbols.cut)
		report_warn(&c->report, "the kernel has more symbols than a stream holds: "
					"some addresses have no names");
}

int capture_background_slice(struct capture *c)
{
	struct capture_run *run = &c->run;
	int r;

	/* Mappings first: processes may end soon. */
	if (run->mappings.processes) {
		r = mapping_scan_step(&run->mappings, &run->writer);
		return r < 0 ? r : 1;
	}
	if (run->names_done && names_lack_symbols(&run->names))
		run->names_done = false;
	if (!run->names_done) {
		r = names_step(&run->names, &run->writer);
		if (r == 0)
			run_end_names(c);
		return r;
	}
	if (run->rescan.processes)
		return task_scan_step(&run->rescan, &run->writer);
	return 0;
}

/* Ring mode only keeps up with CPUs that come online. */
static void run_refresh_rings(struct capture *c, uint64_t now)
{
	struct capture_run *run = &c->run;

	if (now < run->next_tick)
		return;
	for (int b = 0; b < BUFFER_COUNT; b++)
		ring_refresh(&run->rings[b], capture_env_sys(&c->setup.env), &run->staging);
	run->next_tick = now + STATS_NS;
}

static int run_dispatch(struct capture *c, struct error *err)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	struct capture_run *run = &c->run;
	bool tick = now >= run->next_tick;
	int more, r;

	more = run_drain_ready(run);
	if (more < 0)
		return more;
	r = run_drain_rings(run, tick);
	if (r < 0)
		return r;
	more |= r;
	if (tick) {
		r = sampler_drain(&run->sampler, &run->writer);
		if (r == 0)
			r = run_periodic(c, now);
		if (r == 0)
			r = capture_keep_overhead(c, now, err);
		if (r < 0)
			return r;
		run->next_tick = now + run->tick_ns;
	}
	r = capture_background_slice(c);
	if (r < 0)
		return r;
	more |= r;
	r = c->setup.streamed ? run_flush(run, now) : 0;
	return r < 0 ? r : more | r;
}

int capture_dispatch(struct capture *c, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct capture_run *run = &c->run;
	int r = 0;

	if (!run->running)
		return 0;
	if (c->setup.ring_mode)
		run_refresh_rings(c, now_ns(CLOCK_BOOTTIME));
	else
		r = run->full ? -EDQUOT : run_dispatch(c, &why);
	run->full |= r == -EDQUOT;
	run->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	if (why.code)
		return error_move(err, &why);
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : r;
}

int capture_note(struct capture *c, const char *text)
{
	struct capture_run *run = &c->run;
	int r;

	if (!run->streaming)
		return -EOPNOTSUPP;
	r = run->full ? -EDQUOT : report_write_note(&run->writer, text, false);
	run->full |= r == -EDQUOT;
	return r;
}

int capture_append(struct capture *c, enum chunk_type type, const struct iovec *iov, int count)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct capture_run *run = &c->run;
	int r;

	if (!run->streaming)
		return -EOPNOTSUPP;
	r = run->full ? -EDQUOT : stream_write_pieces(&run->writer, type, iov, count);
	run->full |= r == -EDQUOT;
	run->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return r;
}
