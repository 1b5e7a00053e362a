/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a recording: dispatch, tick, background work. */
#include <sys/epoll.h>

#include "base/io.h"
#include "base/plural.h"
#include "daemon/capture/histograms.h"
#include "daemon/capture/recording.h"

/*
 * Maximum age of a full sub-buffer in a ring. One that is being filled waits until it is full, or
 * for the flush.
 */
#define TICK_NS NSEC_PER_SEC
#define STREAMED_TICK_NS (500 * NSEC_PER_MSEC)
/*
 * A recording that fills no more sub-buffers than these in a tick doubles the next one, up to this:
 * what the recorder does itself would be most of the trace. Poll calls for it if a ring fills.
 */
#define QUIET_SUBBUFS 16
#define QUIET_TICK_NS (32 * NSEC_PER_SEC)
#define LACKING_TICK_NS (8 * NSEC_PER_SEC) /* if a CPU may come online */
#define FAST_TICK_NS (30 * NSEC_PER_MSEC)  /* if poll does not report full rings */
#define STATS_NS (2 * NSEC_PER_SEC)
#define CLOCKS_NS (5 * NSEC_PER_SEC)
#define BUDGET_PER_CPU 256		       /* sub-buffers per dispatch */
#define MAPPINGS_AGAIN_NS (10 * NSEC_PER_MSEC) /* after a process did not answer at once */

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
	close_fd(run->epfd);
	close_fd(run->clock_watch);
	close_fd(run->marker);
	close_fd(run->copies);
	for (size_t i = 0; i < ARRAY_SIZE(run->hist_files); i++)
		close_fd(run->hist_files[i]);
	for (int b = 0; b < BUFFER_COUNT; b++)
		ring_close(&run->rings[b]);
	sampler_close(&run->sampler);
	poller_free(run->poller);
	targets_free(run->targets);
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
	struct stream_writer *w = &c->run.writer;
	int r = stream_writer_init(w, fd, setup->stream_limit);

	if (r == 0)
		r = stream_write(w, CHUNK_HEADER, setup->header.data, setup->header.len);
	if (r == 0)
		r = stream_write(w, CHUNK_HEADER_PAGE, setup->header_page.data,
				 setup->header_page.len);
	c->report.warnings_noted = 0;
	return r;
}

int run_write_start(struct capture_run *run)
{
	int r = clocks_write(&run->clocks_start, &run->writer, CLOCK_PHASE_START);

	run->syncs_written = 0;
	if (r == 0)
		r = run_write_syncs(run);
	if (r == 0)
		r = run_write_counts(run, CLOCK_PHASE_START);
	run->streaming = r == 0;
	return r;
}

bool capture_was_turned_off(const struct capture *c)
{
	return !c->setup.may_go_off && ring_is_on(&c->run.rings[BUFFER_MAIN]) == 0;
}

bool capture_went_off(const struct capture *c)
{
	return c->setup.stops && ring_is_on(&c->run.rings[BUFFER_MAIN]) == 0;
}

enum capture_end capture_cancel_reason(const struct capture *c)
{
	return c->setup.by_trigger ? CAPTURE_END_TRIGGER : CAPTURE_END_STOPPED;
}

void capture_warn_of_off(struct capture *c)
{
	report_warn_missing(&c->report,
			    "somebody turned tracing off during the recording: later events are "
			    "missing");
}

int run_set_ring(struct capture_run *run, enum subbufs_buffer buffer, bool on)
{
	return run->rings[buffer].cpus ? ring_switch(&run->rings[buffer], on) : 0;
}

static int run_set_tracing(struct capture_run *run, bool on)
{
	static const enum subbufs_buffer order[2][BUFFER_COUNT] = {
		{ BUFFER_MAIN, BUFFER_TASKS }, /* off: the main ring first, so that births stay
						  known to the end */
		{ BUFFER_TASKS, BUFFER_MAIN },
	};
	int failed = 0;

	for (int i = 0; i < BUFFER_COUNT; i++) {
		int r = run_set_ring(run, order[on][i], on);

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

int run_take_polls(struct capture_run *run)
{
	uint64_t cpu_ns = 0;
	int r = run->poller ? poller_take(run->poller, &run->writer, &cpu_ns) : 0;

	run->cpu_ns += cpu_ns;
	return r;
}

/*
 * A write to the top level's trace_marker goes to one instance after the other, the newest first,
 * and ends with an error at the first that refuses it. An instance refuses it while its tracing is
 * off, so it takes copies only while that is on.
 */
static int run_copy_marks(const struct capture_run *run, bool on)
{
	return run->copies < 0 || pwrite(run->copies, on ? "1" : "0", 1, 0) == 1 ? 0 : -errno;
}

/* The top level's tracing_on is in the journal, which must know its value. */
int capture_set_tracing(struct capture *c, bool on)
{
	struct capture_setup *s = &c->setup;
	int noted = s->main ? 0 : journal_writes(&s->journal, "tracing_on"), r;

	if (!on)
		run_copy_marks(&c->run, false);
	r = hists_switch(&s->hists, c->run.rings[BUFFER_MAIN].dir, on);
	r = run_set_tracing(&c->run, on) ?: r ?: noted;
	/* Removing triggers takes long: tracing goes off first, and again if one turned it on. */
	if (!on && s->may_go_on) {
		plan_undo(&s->triggers.before, s->env.tracefs);
		r = run_set_tracing(&c->run, false) ?: r;
	}
	if (on && r == 0 && run_copy_marks(&c->run, true) < 0)
		report_warn_missing(&c->report, "programs' writes to the top level's trace_marker "
						"cannot be recorded");
	/* A trigger changes the value by itself. */
	if (r == 0 && !s->main && !s->may_go_off)
		r = journal_wrote(&s->journal, s->env.tracefs, "tracing_on");
	return r;
}

static int run_start_sampling(struct capture *c)
{
	struct capture_run *run = &c->run;
	int r;

	if (!run->sampler.hz)
		return 0;
	/* Start recording new mappings before reading procfs, so that none is missed. */
	r = sampler_start(&run->sampler, &run->writer);
	if (r == 0)
		capture_scan_mappings(c);
	return r;
}

/*
 * Writes the names before the main ring records, so that reading them leaves no events there. The
 * tasks' ring records already: each task is in it, or in procfs, or in both.
 */
static int prepare_names(struct capture *c)
{
	struct capture_run *run = &c->run;
	int r = run_set_ring(run, BUFFER_TASKS, true);

	if (r == 0 && c->setup.wants_mappings && !run->sampler.hz)
		capture_scan_mappings(c);
	while (r == 0 && (r = capture_background_slice(c, true)) > 0)
		r = 0;
	/* The next dispatch reports it. */
	run->full |= r == -EDQUOT;
	return r == -EDQUOT ? 0 : r;
}

/* A slice. The tasks' ring is still off: it would not last from one slice to the next. */
static int prepare_formats(struct capture *c, uint64_t until_ns)
{
	int r;

	do
		r = names_step_formats(&c->run.names, &c->run.writer);
	while (r > 0 && now_ns(CLOCK_MONOTONIC) < until_ns);
	c->run.full |= r == -EDQUOT;
	return r == -EDQUOT ? 0 : r;
}

int capture_prepare(struct capture *c, int stream_fd, struct error *err)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID), until_ns = capture_slice_end(c);
	int r = 0;

	if (c->setup.ring_mode)
		return 0;
	if (!c->run.preparing)
		r = capture_begin_stream(c, stream_fd);
	c->run.preparing = true;
	if (r == 0)
		r = prepare_formats(c, until_ns);
	if (r == 0)
		r = prepare_names(c);
	c->run.prepared = r == 0;
	c->run.cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : r;
}

int capture_start(struct capture *c, int stream_fd, struct error *err)
{
	struct capture_run *run = &c->run;
	uint64_t began;
	int r = 0;

	while (r >= 0 && !run->prepared && !c->setup.ring_mode)
		r = capture_prepare(c, stream_fd, err);
	if (r < 0)
		return r;
	began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	run->writer.fd = stream_fd;
	clocks_read(&run->clocks_start);
	r = c->setup.ring_mode ? 0 : run_write_start(run);
	/* A follower learns at the stream's begin that there are histograms. */
	if (r == 0 && c->setup.streamed)
		r = histograms_write(c);
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	/* The rest of the start is short; to measure it would leave events. */
	run->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	r = setup_arm(&c->setup, false, err);
	if (r < 0)
		return r;
	r = run->poller ? poller_start(run->poller) : 0;
	if (r < 0)
		return error_errno(err, r, "cannot start a thread to poll files");
	r = capture_set_tracing(c, true);
	if (r < 0)
		return error_errno(err, r, "cannot turn tracing on in the instance %s",
				   c->setup.instance);
	run->running = true;
	run->start_boot_ns = now_ns(CLOCK_BOOTTIME);
	r = setup_arm(&c->setup, true, err);
	if (r < 0)
		return r;
	/* Without events there are no times to relate. */
	if (!c->setup.counts_only)
		capture_sync_start(c);
	else if (c->setup.synthetics.count)
		r = capture_start_counting(c);
	if (r < 0)
		return error_errno(err, r, "cannot start the histograms");
	r = run_start_sampling(c);
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	/* The cost of a recording with a limit is judged at each tick. */
	run->tick_ns = c->setup.streamed || run->overhead.permille ? STREAMED_TICK_NS : TICK_NS;
	run->wait_ns = run->tick_ns;
	run->next_tick = run->start_boot_ns + run->wait_ns;
	run->next_stats = run->start_boot_ns + STATS_NS;
	run->next_clocks = run->start_boot_ns + CLOCKS_NS;
	return 0;
}

uint64_t capture_started_ns(const struct capture *c)
{
	return c->run.start_boot_ns;
}

int capture_fd(const struct capture *c)
{
	return c->run.epfd;
}

uint64_t capture_bytes(const struct capture *c)
{
	return c->run.writer.bytes;
}

uint64_t capture_deadline(const struct capture *c)
{
	const struct capture_run *run = &c->run;
	uint64_t at = MIN(run->next_tick, targets_deadline(run->targets));

	if (!run->running)
		return UINT64_MAX;
	return run->mappings.inquiry ? MIN(at, now_ns(CLOCK_BOOTTIME) + MAPPINGS_AGAIN_NS) : at;
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

int run_write_clocks(struct capture_run *run)
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
		r = ring_drain_cpu(ring, cpu, &run->staging, &run->writer, &budget, TAKE_FULL);
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
			r = ring_drain_cpu(ring, cpu, &run->staging, &run->writer, &budget,
					   TAKE_FULL);
			if (r < 0)
				return r;
			more |= r;
		}
	}
	return more;
}

static bool run_is_followed(const struct capture *c)
{
	return c->setup.streamed || atomic_load(&c->run.watched);
}

static uint64_t run_taken(const struct capture_run *run)
{
	uint64_t taken = 0;

	for (int b = 0; b < BUFFER_COUNT; b++)
		taken += run->rings[b].subbufs;
	return taken;
}

static bool run_took_little(const struct capture_run *run)
{
	return run_taken(run) - run->subbufs_before <= QUIET_SUBBUFS;
}

/* True if little was recorded since the last tick, and nobody waits for what a tick does. */
static bool run_is_quiet(const struct capture *c)
{
	const struct capture_setup *setup = &c->setup;
	const struct capture_run *run = &c->run;

	return run_took_little(run) && run->tick_ns == TICK_NS && !run_is_followed(c) &&
	       !setup->stops && !run->poller && !run->sampler.hz && run->names_done &&
	       (setup->has_tasks || setup->counts_only);
}

/* Handles new CPUs, counts, clocks, and task scans if there is no tasks' ring. */
static int run_periodic(struct capture *c, uint64_t now, bool quiet)
{
	const struct capture_setup *setup = &c->setup;
	struct capture_run *run = &c->run;
	int r = 0;

	run->lacking = false;
	for (int b = 0; b < BUFFER_COUNT; b++) {
		run->lacking |= ring_refresh(&run->rings[b], &run->staging);
		if (!setup->ring_mode)
			ring_watch(&run->rings[b], run->epfd);
	}
	/* Also if it is quiet: that may be why. `off` is set before tracing goes off. */
	if (now >= run->next_stats && capture_was_turned_off(c) && !atomic_load(&run->off))
		capture_warn_of_off(c);
	if (!quiet && now >= run->next_stats) {
		/*
		 * A followed recording writes its counts with a flush, so that they match the
		 * stream.
		 */
		run->flush.with_counts = run_is_followed(c);
		if (!run->flush.with_counts)
			r = run_write_counts(run, CLOCK_PHASE_PERIODIC);
		run->next_stats = now + STATS_NS;
		if (r == 0 && !setup->has_tasks && !setup->counts_only && run->names_done &&
		    !run->rescan.processes)
			task_scan_start(&run->rescan, setup->env.proc, &run->known);
	}
	if (r == 0)
		r = run_write_syncs(run);
	if (r == 0 && now >= run->next_clocks)
		r = run_write_clocks(run);
	return r < 0 ? r : report_write_notes(&c->report, &run->writer);
}

/* names/inquiry.c does not wait for every process. */
static void run_warn_of_unread(struct capture *c, size_t *unread, const char *what)
{
	if (*unread)
		report_warn(
			&c->report,
			"%s of %zu process%s are missing: a process or its user kept the kernel "
			"from reading them",
			what, *unread, plural(*unread, "", "es"));
	*unread = 0;
}

static void run_end_names(struct capture *c)
{
	_cleanup_buf_ struct buf gone = BUF_INIT;
	struct capture_run *run = &c->run;

	run->names_done = true;
	overhead_restart(&run->overhead);
	run_warn_of_unread(c, &run->names.scan.unread, "command lines");
	if (run->names.stage != NAMES_DONE)
		return;
	if (kernel_symbols_find_gone(&run->names.symbols, &gone) == 0 && gone.len)
		report_warn(&c->report,
			    "addresses in modules that were unloaded have no names: %.*s",
			    (int)gone.len - 1, gone.data);
	if (run->names.symbols.hidden)
		report_warn(&c->report, "kernel symbols are hidden (kernel.kptr_restrict): "
					"addresses have no names");
	if (run->names.symbols.cut)
		report_warn(&c->report, "the kernel has more symbols than a stream holds: "
					"some addresses have no names");
}

int capture_background_slice(struct capture *c, bool block)
{
	struct capture_run *run = &c->run;
	int r;

	/* Mappings first: processes may end soon. */
	if (run->mappings.processes) {
		r = mapping_scan_step(&run->mappings, block, &run->writer);
		if (r == -EAGAIN)
			return 0;
		if (!run->mappings.processes)
			run_warn_of_unread(c, &run->mappings.unread, "mappings");
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
	if (run->rescan.processes) {
		r = task_scan_step(&run->rescan, &run->writer);
		if (!run->rescan.processes)
			run_warn_of_unread(c, &run->rescan.unread, "command lines");
		return r;
	}
	return 0;
}

/* Ring mode only keeps up with CPUs that come online. */
static void run_refresh_rings(struct capture *c, uint64_t now)
{
	struct capture_run *run = &c->run;

	if (now < run->next_tick)
		return;
	run->lacking = false;
	for (int b = 0; b < BUFFER_COUNT; b++)
		run->lacking |= ring_refresh(&run->rings[b], &run->staging);
	run->next_tick = now + (run->lacking || c->setup.stops ? STATS_NS : QUIET_TICK_NS);
}

static uint64_t run_next_wait(const struct capture_run *run, bool quiet, bool followed)
{
	if (quiet)
		return MIN(run->wait_ns * 2, run->lacking ? LACKING_TICK_NS : QUIET_TICK_NS);
	return followed ? MIN(run->tick_ns, STREAMED_TICK_NS) : run->tick_ns;
}

static int run_dispatch(struct capture *c, struct error *err)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	struct capture_run *run = &c->run;
	bool followed = run_is_followed(c), tick, quiet;
	int more, r;

	if (followed)
		run->next_tick = MIN(run->next_tick, now + STREAMED_TICK_NS);
	tick = now >= run->next_tick;

	/* The space of all that is read later can be returned. */
	if (c->setup.streamed && run->names_done && !run->flush.count) {
		r = run_write_flush(run);
		if (r < 0)
			return r;
	}
	more = run_drain_ready(run);
	if (more < 0)
		return more;
	/* Visits those again that used up their budget. */
	more = run_drain_rings(run, tick);
	if (more < 0)
		return more;
	if (tick) {
		quiet = run_is_quiet(c);
		r = sampler_drain(&run->sampler, &run->writer);
		if (r == 0)
			r = run_periodic(c, now, quiet);
		if (r == 0)
			r = capture_keep_overhead(c, now, err);
		if (r < 0)
			return r;
		run->wait_ns = run_next_wait(run, quiet, followed);
		run->next_tick = now + run->wait_ns;
		run->subbufs_before = run_taken(run);
	} else if (!run_took_little(run)) {
		/* The quiet is over, and a long wait with it. */
		run->next_tick = MIN(run->next_tick, now + run->tick_ns);
	}
	/* An exporter that follows needs symbols before the first FLUSH, whatever events come. */
	if (followed) {
		run->names.symbols_wait = false;
		run->names.seen = NULL;
		run->seen.off = true;
	}
	r = capture_background_slice(c, false);
	if (r < 0)
		return r;
	more |= r;
	r = run_take_polls(run);
	if (r < 0)
		return r;
	r = followed ? histograms_write_due(c, now) ?: run_flush(run, now) : 0;
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
	/* `off` is set before tracing goes off. */
	if (now_ns(CLOCK_BOOTTIME) >= run->next_tick && capture_went_off(c) &&
	    !atomic_load(&run->off))
		return -ECANCELED;
	targets_check(run->targets, now_ns(CLOCK_BOOTTIME), &c->report);
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

int capture_note(struct capture *c, const char *text, enum note_kind kind)
{
	struct capture_run *run = &c->run;
	int r;

	if (!run->streaming)
		return -EOPNOTSUPP;
	r = run->full ? -EDQUOT : report_write_note(&run->writer, text, kind);
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
