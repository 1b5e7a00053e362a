/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ownership and order. A capture owns its plan (and by it two tracefs
 * instances), its journal, its readers. What undoes them runs backwards:
 * readers are closed before the instances go (open files and mappings hold
 * them), the journal goes last, and only if everything was undone.
 *
 * The rings come first: a dispatch moves sub-buffers, then does at most one
 * slice of everything else (names, tasks, symbols), so that no ring waits for
 * more than a slice.
 */
#include "capture/capture.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "capture/clocks.h"
#include "capture/metadata.h"
#include "capture/names.h"
#include "capture/request.h"
#include "capture/ring.h"
#include "proto/capture.pb-c.h"
#include "util/io.h"

#define TICK_NS (500 * NSEC_PER_MSEC) /* how old what lies in a ring may get */
#define STATS_NS (2 * NSEC_PER_SEC)
#define CLOCKS_NS (5 * NSEC_PER_SEC)
#define BUDGET_PER_CPU 256 /* sub-buffers in one dispatch */
#define MARK_MAX 1000	   /* bytes; the kernel before 6.8 cuts at about a kilobyte */
#define FLUSH_TRIES 5

struct capture {
	struct capture_env env;
	struct plan plan;
	struct journal journal;
	struct event_matches matches;
	char instance[INSTANCE_NAME_MAX], tasks[INSTANCE_NAME_MAX];
	bool has_tasks;
	bool ring_mode;
	uint64_t stream_limit;
	struct cpu_set cpus; /* bits NULL: all */

	struct ring rings[BUFFER_COUNT];
	struct staging staging;
	int epfd;

	struct buf header, header_page;
	uint8_t uuid[16];
	struct names names;
	bool names_done;
	struct task_scan rescan; /* where there is no task ring */

	struct stream_writer writer;
	bool streaming, running;
	bool full; /* the stream's limit was hit: what was read since is not in it */
	struct clock_snapshot clocks_start;
	uint64_t start_boot_ns, next_tick, next_stats, next_clocks;
	uint64_t cpu_ns, bytes_before; /* of the streams that are closed */

	char **warnings;
	size_t warning_count, warnings_noted;
	struct capture_cpu_stats *cpu_stats;
	unsigned event_types;
};

static uint64_t thread_cpu_ns(void)
{
	return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void warn(struct capture *c, const char *fmt, ...) _printf_(2, 3);
static void warn(struct capture *c, const char *fmt, ...)
{
	char **more = reallocarray(c->warnings, c->warning_count + 1, sizeof(*more)), *text;
	va_list ap;
	int n;

	if (!more)
		return;
	c->warnings = more;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	/* Each is said once. */
	for (size_t i = 0; i < c->warning_count; i++) {
		if (strcmp(c->warnings[i], text) == 0) {
			free(text);
			return;
		}
	}
	c->warnings[c->warning_count++] = text;
}

static int write_note(struct capture *c, const char *text)
{
	Traced__Capture__Note note = TRACED__CAPTURE__NOTE__INIT;

	note.text = (char *)(uintptr_t)text;
	note.boot_ns = now_ns(CLOCK_BOOTTIME);
	note.missing = true;
	return stream_write_message(&c->writer, CHUNK_NOTE, &note.base);
}

static int write_notes(struct capture *c)
{
	int r = 0;

	while (r == 0 && c->warnings_noted < c->warning_count)
		r = write_note(c, c->warnings[c->warnings_noted++]);
	return r;
}

/* Arming. */

static bool has_event(const char *const *names, size_t count, const char *wanted)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], wanted) == 0)
			return true;
	return false;
}

static int name_instances(struct capture *c, const char *name)
{
	snprintf(c->instance, sizeof(c->instance), CAPTURE_INSTANCE_PREFIX "%d-%s", getpid(), name);
	return (size_t)snprintf(c->tasks, sizeof(c->tasks), "%s-tasks", c->instance) <
			       sizeof(c->tasks)
		       ? 0
		       : -ENAMETOOLONG;
}

static int apply(struct capture *c, const struct capture_request *request, struct error *err)
{
	struct tracefs *fs = c->env.tracefs;
	const char *const *names;
	unsigned refused;
	size_t count;
	int r;

	r = tracefs_events(fs, &names, &count, err);
	if (r < 0)
		return r;
	r = event_matches_find(&c->matches, request->events, request->event_count, names, count,
			       err);
	if (r < 0)
		return r;
	c->has_tasks = has_event(names, count, "task:task_newtask");
	if (!c->has_tasks)
		warn(c,
		     "this kernel has no task events: names of short-lived tasks may be missing");
	r = request_plan(&c->plan, request, &c->matches, c->instance,
			 c->has_tasks ? c->tasks : NULL, err);
	if (r < 0)
		return r;
	r = journal_create(&c->journal, c->env.state_dir, c->instance, err);
	if (r < 0)
		return r;
	r = plan_apply(&c->plan, fs, &c->journal, err);
	if (r < 0)
		return r;
	r = request_verify(&c->plan, fs, request, &refused, err);
	if (r < 0)
		return r;
	if (refused)
		warn(c, "%u of %zu events could not be enabled", refused, c->matches.count);
	c->event_types = (unsigned)c->matches.count - refused;
	return 0;
}

static int copy_cpus(struct capture *c, const struct cpu_set *cpus)
{
	if (!cpus)
		return 0;
	c->cpus.bits = calloc(cpus->words, sizeof(*cpus->bits));
	if (!c->cpus.bits)
		return -ENOMEM;
	memcpy(c->cpus.bits, cpus->bits, cpus->words * sizeof(*cpus->bits));
	c->cpus.words = cpus->words;
	return 0;
}

static int open_ring(struct capture *c, enum subbufs_buffer buffer, const char *instance,
		     enum capture_reader kind, struct subbuf_layout *layout, struct error *err)
{
	int dir = tracefs_open_instance(c->env.tracefs, instance);
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct buf *page = buffer == BUFFER_MAIN ? &c->header_page : &text;
	const struct cpu_set *wanted = buffer == BUFFER_MAIN && c->cpus.bits ? &c->cpus : NULL;
	int r;

	if (dir < 0)
		return error_errno(err, dir, "cannot open the tracefs instance %s", instance);
	r = metadata_read_layout(c->env.tracefs, dir, page, layout, err);
	if (r == 0 && !c->staging.data)
		r = staging_init(&c->staging, layout->size);
	if (r < 0) {
		close_fd(dir);
		return r;
	}
	return ring_open(&c->rings[buffer], buffer, dir, capture_env_sys(&c->env), wanted, kind,
			 layout, &c->staging, err);
}

static unsigned online_cpus(const struct ring *ring)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ring->cpu_count; i++)
		n += ring->cpus[i].online;
	return n;
}

static int open_rings(struct capture *c, const struct capture_request *request, struct error *err)
{
	struct subbuf_layout layout;
	struct metadata m;
	int r;

	if (c->has_tasks) {
		/* It is small and quiet: its pages need not be mapped. */
		enum capture_reader kind = request->reader == CAPTURE_READER_READ
						   ? CAPTURE_READER_READ
						   : CAPTURE_READER_SPLICE;

		r = open_ring(c, BUFFER_TASKS, c->tasks, kind, &layout, err);
		if (r < 0)
			return r;
	}
	r = open_ring(c, BUFFER_MAIN, c->instance, request->reader, &layout, err);
	if (r < 0)
		return r;
	m = (struct metadata){
		.env = &c->env,
		.request = request,
		.instance = c->instance,
		.dir = c->rings[BUFFER_MAIN].dir,
		.layout = &c->rings[BUFFER_MAIN].layout,
		.cpus = c->rings[BUFFER_MAIN].cpu_count,
		.cpus_online = online_cpus(&c->rings[BUFFER_MAIN]),
	};
	memcpy(m.uuid, c->uuid, sizeof(c->uuid));
	r = metadata_pack_header(&m, &c->header, err);
	if (r < 0 || c->ring_mode)
		return r;
	for (int b = 0; b < BUFFER_COUNT; b++) {
		r = ring_watch(&c->rings[b], c->epfd);
		if (r < 0)
			return error_errno(err, r, "cannot watch the ring buffers");
	}
	return 0;
}

/* How much the kernel gave: it rounds, and on some kernels gives less without a word. */
static void check_size(struct capture *c, const struct capture_request *request)
{
	uint64_t want = (request->buffer_bytes ?: DEFAULT_BUFFER_BYTES) / 1024, got;

	if (tracefs_read_u64(c->rings[BUFFER_MAIN].dir, "buffer_size_kb", &got) == 0 &&
	    got < want / 100 * 95)
		warn(c, "the kernel gave ring buffers of %llu KiB, not of %llu KiB",
		     (unsigned long long)got, (unsigned long long)want);
}

static int init_names(struct capture *c, struct error *err)
{
	_cleanup_free_ const char **names = calloc(c->matches.count + 1, sizeof(*names));
	int r = -ENOMEM;

	if (names) {
		for (size_t i = 0; i < c->matches.count; i++)
			names[i] = c->matches.items[i].name;
		r = names_init(&c->names, &c->env, names, c->matches.count, false);
	}
	return r < 0 ? error_errno(err, r, "cannot list the events") : 0;
}

int capture_new(struct capture **ret, const struct capture_env *env,
		const struct capture_request *request, struct error *err)
{
	_cleanup_(capture_freep) struct capture *c = NULL;
	uint64_t began = thread_cpu_ns();
	int r = request_check(env, request, err);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(err, -ENOMEM, "out of memory");
	c->env = *env;
	c->journal = JOURNAL_INIT;
	c->staging = STAGING_INIT;
	c->rescan = TASK_SCAN_INIT;
	c->names = (struct names){ .kallsyms = -EBADF, .scan = TASK_SCAN_INIT };
	for (int b = 0; b < BUFFER_COUNT; b++)
		c->rings[b].dir = -EBADF;
	c->ring_mode = request->ring;
	c->stream_limit = request->stream_limit;
	c->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epfd < 0)
		return error_errno(err, -errno, "cannot make an epoll descriptor");
	if (getrandom(c->uuid, sizeof(c->uuid), 0) != sizeof(c->uuid))
		return error_errno(err, -errno, "cannot get random bytes");
	r = copy_cpus(c, request->cpus);
	if (r == 0)
		r = name_instances(c, request->name);
	if (r < 0)
		return error_errno(err, r, "cannot set up the recording");
	r = apply(c, request, err);
	if (r == 0)
		r = open_rings(c, request, err);
	if (r == 0)
		r = init_names(c, err);
	/* They borrow from the request and from the kernel's list, which may change. */
	event_matches_deinit(&c->matches);
	if (r < 0)
		return r;
	check_size(c, request);
	c->cpu_ns += thread_cpu_ns() - began;
	*ret = TAKE_PTR(c);
	return 0;
}

/* Running. */

static int count_and_write(struct capture *c, enum clock_phase phase)
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

static int begin_stream(struct capture *c, int fd, uint64_t limit)
{
	int r = stream_writer_init(&c->writer, fd, limit);

	if (r == 0)
		r = stream_write(&c->writer, CHUNK_HEADER, c->header.data, c->header.len);
	if (r == 0)
		r = stream_write(&c->writer, CHUNK_HEADER_PAGE, c->header_page.data,
				 c->header_page.len);
	if (r == 0)
		r = clocks_write(&c->clocks_start, &c->writer, CLOCK_PHASE_START);
	c->streaming = r == 0;
	c->warnings_noted = 0;
	return r;
}

/*
 * A CPU outside tracing_cpumask refuses trace_marker's writes (EBADF): for the
 * moment of the write the thread moves to one within.
 */
static int write_marker(struct capture *c, const char *text)
{
	int dir = c->rings[BUFFER_MAIN].dir, r;
	cpu_set_t before, allowed;

	if (!c->cpus.bits)
		return tracefs_write(dir, "trace_marker", text);
	CPU_ZERO(&allowed);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (cpu_set_has(&c->cpus, cpu))
			CPU_SET(cpu, &allowed);
	if (sched_getaffinity(0, sizeof(before), &before) < 0 ||
	    sched_setaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	r = tracefs_write(dir, "trace_marker", text);
	sched_setaffinity(0, sizeof(before), &before);
	return r;
}

static void write_sync_marker(struct capture *c)
{
	char text[80];
	int r;

	snprintf(text, sizeof(text), "trace_event_clock_sync: name=traced_%02x%02x%02x%02x",
		 c->uuid[0], c->uuid[1], c->uuid[2], c->uuid[3]);
	r = write_marker(c, text);
	if (r < 0)
		warn(c, "the clock marker could not be written: %s", strerror(-r));
}

static int turn(struct capture *c, bool on)
{
	static const enum subbufs_buffer order[2][BUFFER_COUNT] = {
		{ BUFFER_MAIN, BUFFER_TASKS }, /* off: births stay known to the end */
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
	uint64_t began = thread_cpu_ns();
	int r = 0;

	clocks_read(&c->clocks_start);
	if (!c->ring_mode) {
		r = begin_stream(c, stream_fd, c->stream_limit);
		if (r == 0)
			r = count_and_write(c, CLOCK_PHASE_START);
		if (r < 0)
			return error_errno(err, r, "cannot write the capture stream");
	}
	r = turn(c, true);
	if (r < 0)
		return error_errno(err, r, "cannot turn tracing on in the instance %s",
				   c->instance);
	c->running = true;
	c->start_boot_ns = now_ns(CLOCK_BOOTTIME);
	write_sync_marker(c);
	c->next_tick = c->start_boot_ns;
	c->next_stats = c->start_boot_ns + STATS_NS;
	c->next_clocks = c->start_boot_ns + CLOCKS_NS;
	c->cpu_ns += thread_cpu_ns() - began;
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

/* Descriptors that cry wolf (kernels before 6.1 ignore buffer_percent in poll) are unwatched. */
static void count_idle(struct capture *c, struct cpu_reader *r, bool took)
{
	if (took) {
		r->idle_wakeups = 0;
		return;
	}
	if (++r->idle_wakeups < 8 || !r->watched)
		return;
	epoll_ctl(c->epfd, EPOLL_CTL_DEL, r->fd, NULL);
	r->watched = false;
}

/* 1: a budget was used up. */
static int drain_ready(struct capture *c)
{
	struct epoll_event events[64];
	int n = epoll_wait(c->epfd, events, ARRAY_SIZE(events), 0), more = 0;

	for (int i = 0; i < n; i++) {
		struct ring *ring = &c->rings[events[i].data.u64 >> 32];
		unsigned cpu = (unsigned)events[i].data.u64, budget = BUDGET_PER_CPU;
		int r = ring_drain_cpu(ring, cpu, &c->staging, &c->writer, &budget, false);

		if (r < 0)
			return r;
		count_idle(c, &ring->cpus[cpu].reader, budget < BUDGET_PER_CPU);
		more |= r;
	}
	return more;
}

/* tick: all CPUs; else those that had more than the last visit took. */
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

/* CPUs that have come, counts, clocks, and tasks where no ring tells of them. */
static int periodic(struct capture *c, uint64_t now)
{
	int r = 0;

	for (int b = 0; b < BUFFER_COUNT; b++) {
		ring_refresh(&c->rings[b], capture_env_sys(&c->env), &c->staging);
		if (!c->ring_mode)
			ring_watch(&c->rings[b], c->epfd);
	}
	if (now >= c->next_stats) {
		r = count_and_write(c, CLOCK_PHASE_PERIODIC);
		c->next_stats = now + STATS_NS;
		if (r == 0 && !c->has_tasks && c->names_done && !c->rescan.processes)
			task_scan_start(&c->rescan, c->env.proc);
	}
	if (r == 0 && now >= c->next_clocks) {
		struct clock_snapshot s;

		clocks_read(&s);
		r = clocks_write(&s, &c->writer, CLOCK_PHASE_PERIODIC);
		c->next_clocks = now + CLOCKS_NS;
	}
	return r < 0 ? r : write_notes(c);
}

static int background_slice(struct capture *c)
{
	int r;

	if (!c->names_done) {
		r = names_step(&c->names, &c->writer);
		if (r == 0) {
			c->names_done = true;
			if (c->names.symbols_hidden)
				warn(c, "kernel symbols are hidden (kernel.kptr_restrict): "
					"addresses have no names");
		}
		return r;
	}
	if (c->rescan.processes)
		return task_scan_step(&c->rescan, &c->writer);
	return 0;
}

static int dispatch(struct capture *c)
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
		r = periodic(c, now);
		if (r < 0)
			return r;
		c->next_tick = now + TICK_NS;
	}
	r = background_slice(c);
	return r < 0 ? r : more | r;
}

int capture_dispatch(struct capture *c, struct error *err)
{
	uint64_t began = thread_cpu_ns();
	int r;

	if (!c->running)
		return 0;
	r = c->full ? -EDQUOT : dispatch(c);
	c->full |= r == -EDQUOT;
	c->cpu_ns += thread_cpu_ns() - began;
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : r;
}

/* Ending. */

static uint64_t peak_rss(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

static int write_end(struct capture *c, enum capture_end reason)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	struct clock_snapshot s;
	int r;

	clocks_read(&s);
	r = clocks_write(&s, &c->writer, CLOCK_PHASE_END);
	if (r == 0)
		r = count_and_write(c, CLOCK_PHASE_END);
	if (r == 0)
		r = write_notes(c);
	if (r < 0)
		return r;
	end.reason = (Traced__Capture__End__Reason)reason;
	end.boot_ns = now_ns(CLOCK_BOOTTIME);
	end.start_boot_ns = c->start_boot_ns;
	end.cpu_time_ns = c->cpu_ns;
	end.peak_rss_bytes = peak_rss();
	return stream_write_message(&c->writer, CHUNK_END, &end.base);
}

static int finish_names(struct capture *c)
{
	int r = 0;

	while (!c->names_done) {
		r = background_slice(c);
		if (r < 0)
			break;
	}
	return r;
}

static bool is_empty(const struct ring *ring)
{
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		if (ring->cpus[cpu].counts.entries && ring->cpus[cpu].reader.fd >= 0)
			return false;
	return true;
}

/* A writer that was in the midst of its event when tracing went off comes a moment later. */
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

static int stop_stream(struct capture *c, enum capture_end reason)
{
	int r = finish_names(c), e;

	/* Behind a hole that no sub-buffer announces nothing more may follow. */
	for (int b = 0; r == 0 && !c->full && b < BUFFER_COUNT; b++)
		if (c->rings[b].cpus)
			r = flush_all(c, &c->rings[b]);
	/* The limit leaves room for what closes a stream. */
	if (c->full || r == -EDQUOT)
		warn(c, "the stream reached its limit: the end of the recording is missing");
	else if (r < 0)
		return r;
	e = write_end(c, reason);
	c->streaming = false;
	return e < 0 ? e : r;
}

int capture_stop(struct capture *c, enum capture_end reason, struct error *err)
{
	uint64_t began = thread_cpu_ns();
	int r;

	if (!c->running)
		return 0;
	c->running = false;
	r = turn(c, false);
	if (r == -ENOENT || r == -ENODEV) {
		warn(c, "somebody removed the tracefs instance while it recorded");
		r = 0;
	}
	c->cpu_ns += thread_cpu_ns() - began;
	if (r < 0)
		return error_errno(err, r, "cannot turn tracing off");
	if (!c->streaming)
		return 0;
	r = stop_stream(c, reason);
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : 0;
}

static int snapshot(struct capture *c, int stream_fd, enum capture_end reason)
{
	int r = begin_stream(c, stream_fd, c->stream_limit);

	if (r == 0)
		r = count_and_write(c, CLOCK_PHASE_START);
	/* The rings first: they are being overwritten. */
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
	uint64_t began = thread_cpu_ns();
	int r;

	if (!c->ring_mode)
		return error_set(err, -EINVAL, "only a recording in ring mode gives snapshots");
	write_sync_marker(c);
	r = snapshot(c, stream_fd, reason);
	c->cpu_ns += thread_cpu_ns() - began;
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : 0;
}

int capture_mark(struct capture *c, const char *text, struct error *err)
{
	int r;

	if (strlen(text) > MARK_MAX)
		return error_set(err, -EMSGSIZE, "a mark holds at most %d bytes", MARK_MAX);
	if (!c->running)
		return error_set(err, -ENODATA, "the recording is not running");
	r = write_marker(c, text);
	return r < 0 ? error_errno(err, r, "cannot write the mark") : 0;
}

void capture_get_stats(struct capture *c, struct capture_stats *ret)
{
	struct ring *ring = &c->rings[BUFFER_MAIN];
	struct capture_stats s = {
		.start_boot_ns = c->start_boot_ns,
		.bytes = c->bytes_before + c->writer.bytes,
		.event_types = c->event_types,
		.reader = "none",
		.instance = c->instance,
		.warning_count = c->warning_count,
		.warnings = (const char *const *)c->warnings,
	};

	if (!c->cpu_stats)
		c->cpu_stats = calloc(ring->cpu_count + 1, sizeof(*c->cpu_stats));
	ring_count(ring);
	for (unsigned cpu = 0; c->cpu_stats && cpu < ring->cpu_count; cpu++) {
		const struct ring_cpu *rc = &ring->cpus[cpu];

		c->cpu_stats[cpu] = (struct capture_cpu_stats){
			.cpu = cpu,
			.events = rc->counts.read,
			.lost = rc->counts.commit_overrun + rc->counts.dropped,
			.bytes = rc->reader.bytes,
			.offline = !rc->online,
		};
		if (c->ring_mode)
			c->cpu_stats[cpu].events += rc->counts.entries;
		else
			c->cpu_stats[cpu].lost += rc->counts.overrun;
		s.events += c->cpu_stats[cpu].events;
		s.lost += c->cpu_stats[cpu].lost;
		if (rc->reader.fd >= 0)
			s.reader = cpu_reader_kind_name(rc->reader.kind);
	}
	s.cpus = c->cpu_stats;
	s.cpu_count = c->cpu_stats ? ring->cpu_count : 0;
	*ret = s;
}

struct capture *capture_free(struct capture *c)
{
	if (!c)
		return NULL;
	if (c->running)
		turn(c, false);
	close_fd(c->epfd);
	for (int b = 0; b < BUFFER_COUNT; b++)
		ring_close(&c->rings[b]);
	staging_deinit(&c->staging);
	names_deinit(&c->names);
	task_scan_end(&c->rescan);
	if (plan_undo(&c->plan, c->env.tracefs) == 0)
		journal_drop(&c->journal);
	else
		journal_close(&c->journal);
	plan_deinit(&c->plan);
	event_matches_deinit(&c->matches);
	cpu_set_deinit(&c->cpus);
	buf_deinit(&c->header);
	buf_deinit(&c->header_page);
	for (size_t i = 0; i < c->warning_count; i++)
		free(c->warnings[i]);
	free(c->warnings);
	free(c->cpu_stats);
	free(c);
	return NULL;
}
