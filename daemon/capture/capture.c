/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arms a recording and removes it again. */
#include "daemon/capture/recording.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "base/io.h"
#include "daemon/capture/names/metadata.h"
#include "daemon/capture/plan/event_triggers.h"
#include "daemon/capture/plan/function_names.h"
#include "daemon/capture/plan/spare.h"

/*
 * Returns NULL for requests with probes or SQL: their events are removed after their instance, so
 * they must be created before it.
 */
static struct capture_spare *find_spare(struct capture_spare **spare,
					const struct capture_request *request)
{
	bool with_probes = request->probe_count || request->sql_count;

	return spare && !with_probes && !request->top_level ? *spare : NULL;
}

static int open_ring(struct capture *c, enum subbufs_buffer buffer, const char *instance,
		     enum capture_reader kind, struct error *err)
{
	struct capture_setup *setup = &c->setup;
	struct staging *staging = &c->run.staging;
	int dir = tracefs_open_instance(setup->env.tracefs, instance);
	bool is_main = buffer == BUFFER_MAIN;
	const struct cpu_set *wanted = is_main && setup->cpus.bits ? &setup->cpus : NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct subbuf_layout layout;
	int r;

	if (dir < 0)
		return error_errno(err, dir, "cannot open the tracefs instance %s",
				   instance ?: "of the top level");
	r = metadata_read_layout(setup->env.tracefs, dir, is_main ? &setup->header_page : &text,
				 &layout, err);
	/* The top level's sub-buffers may be larger than the task instance's. */
	if (r == 0 && staging->subbuf_size < layout.size) {
		staging_deinit(staging);
		r = staging_init(staging, layout.size);
	}
	if (r < 0) {
		close_fd(dir);
		return r;
	}
	r = ring_open(&c->run.rings[buffer], buffer, dir, capture_env_sys(&setup->env), wanted,
		      kind, &layout, staging, err);
	if (r < 0)
		return r;
	r = ring_open_switch(&c->run.rings[buffer]);
	return r < 0 ? error_errno(err, r, "cannot open tracing_on") : 0;
}

static unsigned online_cpus(const struct ring *ring)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ring->cpu_count; i++)
		n += ring->cpus[i].online;
	return n;
}

static int make_header(struct capture_setup *setup, const struct ring *rings,
		       const struct capture_request *request, struct error *err)
{
	const struct ring *ring = &rings[BUFFER_MAIN];
	struct metadata m = {
		.env = &setup->env,
		.request = request,
		.instance = setup->instance,
		.dir = ring->dir,
		.layout = &ring->layout,
		.tasks_subbuf_size = setup->has_tasks ? rings[BUFFER_TASKS].layout.size : 0,
		.cpus = ring->cpu_count,
		.cpus_online = online_cpus(ring),
	};

	memcpy(m.uuid, setup->uuid, sizeof(m.uuid));
	return metadata_pack_header(&m, &setup->header, err);
}

/* Failure is no error: a clock step is then noticed at the next periodic reading. */
static void watch_clocks(struct capture_run *run)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)RUN_CLOCKS_TAG << 32 };

	run->clock_watch = clocks_watch();
	if (run->clock_watch >= 0 && epoll_ctl(run->epfd, EPOLL_CTL_ADD, run->clock_watch, &e) < 0)
		run->clock_watch = close_fd(run->clock_watch);
}

/* tasks: the request with the threads of its processes. */
static int open_rings(struct capture *c, const struct capture_request *request,
		      const struct capture_request *tasks, struct error *err)
{
	struct capture_request described = *request;
	struct capture_run *run = &c->run;
	int r = 0;

	if (c->setup.has_tasks) {
		/* The tasks' ring is small and quiet: mapping its pages is not worth it. */
		enum capture_reader kind = request->reader == CAPTURE_READER_READ
						   ? CAPTURE_READER_READ
						   : CAPTURE_READER_SPLICE;

		r = open_ring(c, BUFFER_TASKS, c->setup.tasks, kind, err);
	}
	if (r == 0)
		r = open_ring(c, BUFFER_MAIN, c->setup.main, request->reader, err);
	described.pids = tasks->pids;
	described.pid_count = tasks->pid_count;
	if (r == 0)
		r = make_header(&c->setup, run->rings, &described, err);
	/* Histograms of synthetic events begin with a mark. */
	if (!c->setup.counts_only || c->setup.synthetics.count)
		run->marker = tracefs_open_file(run->rings[BUFFER_MAIN].dir, O_WRONLY | O_TRUNC,
						"trace_marker");
	if (c->setup.copies_marks)
		run->copies = tracefs_open_file(run->rings[BUFFER_MAIN].dir, O_WRONLY,
						"options/copy_trace_marker");
	if (r < 0 || c->setup.ring_mode)
		return r;
	for (int b = 0; b < BUFFER_COUNT; b++) {
		r = ring_watch(&run->rings[b], run->epfd);
		if (r < 0)
			return error_errno(err, r, "cannot watch the ring buffers");
	}
	watch_clocks(run);
	return 0;
}

static int open_sampler(struct capture_run *run, const struct capture_request *request,
			struct error *err)
{
	int r;

	if (!request->sampling.hz)
		return 0;
	r = sampler_open(&run->sampler, &request->sampling, request->clock ?: DEFAULT_CLOCK,
			 run->rings[BUFFER_MAIN].cpu_count, request->cpus, err);
	if (r < 0)
		return r;
	r = sampler_watch(&run->sampler, run->epfd, RUN_SAMPLER_TAG);
	return r < 0 ? error_errno(err, r, "cannot watch the rings of samples") : 0;
}

static int open_poller(struct capture *c, const struct capture_request *request,
		       const struct capture_request *tasks, struct error *err)
{
	const struct capture_env *env = &c->setup.env;
	/* Children are not known in advance: all processes are read. */
	bool given = tasks->pid_count && !request->follow_forks;
	const struct poll_where where = {
		.proc = env->proc,
		.sys = capture_env_sys(env),
		.pids = given ? tasks->pids : NULL,
		.pid_count = given ? tasks->pid_count : 0,
	};
	struct poll_plan plan = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < request->polls.count; i++)
		r = poll_plan_add(&plan, request->polls.items[i], err);
	if (r < 0 || poll_plan_is_empty(&plan))
		return r;
	return poller_new(&c->run.poller, &plan, &where, &c->report, err);
}

/* Reads back the buffer size: the kernel rounds it, and some kernels silently allocate less. */
static void check_size(struct capture *c, const struct capture_request *request)
{
	uint64_t want = (request->buffer_bytes ?: DEFAULT_BUFFER_BYTES) / 1024, got;

	if (tracefs_read_u64(c->run.rings[BUFFER_MAIN].dir, "buffer_size_kb", &got) == 0 &&
	    got < want / 100 * 95)
		report_warn(&c->report,
			    "the kernel allocated ring buffers of %llu KiB instead of %llu KiB",
			    (unsigned long long)got, (unsigned long long)want);
}

/* With function tracers and stacks any kernel function may appear, whatever the event formats say.
 */
static bool may_name_functions(const struct capture_request *request)
{
	return request->functions.tracer || request->functions.only.count ||
	       request->options.count || request->sampling.hz || request->top_level ||
	       event_triggers_have(request, "stacktrace");
}

/*
 * Symbols may wait until the recording has ended. Not for a streamed recording, whose follower
 * needs them first, nor with a stream limit, which may leave no room for them later.
 */
static bool may_wait_for_symbols(const struct capture *c)
{
	return !c->setup.streamed && !c->setup.stream_limit;
}

static int init_names(struct capture *c, const struct setup_events *events, struct error *err)
{
	const struct event_matches *matches = &events->matches;
	const struct trigger_targets *targets = &events->targets;
	size_t count = matches->count + targets->count;
	_cleanup_free_ const char **names = calloc(count + 1, sizeof(*names));
	struct capture_run *run = &c->run;
	struct ring *ring = &run->rings[BUFFER_MAIN];
	int r = -ENOMEM;

	if (names) {
		for (size_t i = 0; i < matches->count; i++)
			names[i] = matches->items[i].name;
		for (size_t i = 0; i < targets->count; i++)
			names[matches->count + i] = targets->names[i];
		r = names_init(&run->names, &c->setup.env, names, count,
			       may_name_functions(&events->request));
		if (r == 0)
			r = names_see_options(&run->names, ring->dir);
		if (!c->setup.has_tasks && !c->setup.ring_mode)
			run->names.known = &run->known;
		/* A mark has an address of the kernel, which those may not see who may count. */
		run->names.unwanted = ring->unread = c->setup.counts_only;
		run->names.symbols_wait = may_wait_for_symbols(c) && !c->setup.ring_mode;
		if (may_wait_for_symbols(c) && !run->names.all_symbols)
			run->names.seen = ring->seen = &run->seen;
	}
	return r < 0 ? error_errno(err, r, "cannot list the events") : 0;
}

/* Consumes *spare if it may serve the request. */
static int take_spare(struct capture_setup *setup, struct capture_spare **spare,
		      const struct capture_request *request, struct error *err)
{
	int r = 0;

	if (!(find_spare(spare, request) && capture_spare_take(TAKE_PTR(*spare), setup)))
		r = setup_name_instances(setup, request->name, request->owner);
	return r < 0 ? error_errno(err, r, "cannot set up the recording") : 0;
}

/* Arming needs it until it is over. */
struct capture_making {
	struct capture_spare **spare;
	const struct capture_env *env;
	struct function_names names;
	struct capture_request request; /* with the names in place of regular expressions */
	struct setup_events events;
	size_t stage;
};

static struct capture_making *making_free(struct capture_making *m)
{
	if (!m)
		return NULL;
	setup_events_deinit(&m->events);
	function_names_deinit(&m->names);
	free(m);
	return NULL;
}

int capture_begin(struct capture **ret, struct capture_spare **spare, const struct capture_env *env,
		  const struct capture_request *request, struct error *err)
{
	struct capture_making *m = calloc(1, sizeof(*m));
	struct capture *c = malloc(sizeof(*c));

	if (!c || !m) {
		free(c);
		free(m);
		return error_set(err, -ENOMEM, "out of memory");
	}
	m->spare = spare;
	m->env = env;
	m->request = *request;
	*c = (struct capture){ .making = m, .setup = SETUP_INIT, .run = RUN_INIT };
	*ret = c;
	return 0;
}

static int stage_names(struct capture *c, uint64_t until_ns, struct error *err)
{
	struct capture_making *m = c->making;

	return function_names_expand(&m->names, m->env->tracefs, &m->request.functions, until_ns,
				     err);
}

static int stage_check(struct capture *c, uint64_t until_ns _unused_, struct error *err)
{
	const struct capture_making *m = c->making;
	const struct capture_request *request = &m->request;
	struct capture_spare *found = find_spare(m->spare, request);
	int r = request_check(m->env, request, found ? capture_spare_bytes(found) : 0, err);

	if (r == 0)
		r = setup_init(&c->setup, m->env, request, err);
	if (r == 0)
		r = run_init(&c->run, &request->overhead, err);
	return r < 0 ? r : take_spare(&c->setup, m->spare, request, err);
}

static int stage_probes(struct capture *c, uint64_t until_ns _unused_, struct error *err)
{
	struct capture_making *m = c->making;

	return setup_plan_probes(&c->setup, &m->request, &m->events, err);
}

static int stage_apply(struct capture *c, uint64_t until_ns, struct error *err)
{
	int r = request_check_room(c->making->env, &c->making->request, &c->setup.plan,
				   c->setup.main, err);

	return r < 0 ? r : setup_apply_slice(&c->setup, until_ns, err);
}

static int stage_plan(struct capture *c, uint64_t until_ns _unused_, struct error *err)
{
	struct capture_making *m = c->making;
	int r = setup_find_events(&c->setup, &m->request, &m->events, err);

	if (r == 0)
		r = targets_new(&c->run.targets, c->setup.env.proc, &m->request, err);
	if (r == 0)
		r = targets_fill(c->run.targets, &m->events.request, err);
	if (r == 0)
		r = overhead_find(&c->run.overhead, &m->events.matches, err);
	return r < 0 ? r : setup_plan(&c->setup, &m->events, &c->report, err);
}

static int stage_open(struct capture *c, uint64_t until_ns _unused_, struct error *err)
{
	const struct setup_events *events = &c->making->events;
	const struct capture_request *request = &c->making->request;
	int r = setup_verify(&c->setup, events, &c->report, err);

	if (r == 0)
		r = open_rings(c, request, &events->request, err);
	if (r == 0)
		r = targets_begin(c->run.targets, c->run.rings[BUFFER_MAIN].dir, !c->setup.main,
				  &c->report, err);
	if (r == 0)
		r = open_sampler(&c->run, request, err);
	if (r == 0)
		r = open_poller(c, request, &events->request, err);
	if (r == 0)
		r = init_names(c, events, err);
	if (r == 0)
		check_size(c, request);
	return r;
}

/*
 * Slices end after so long. Not in the top-level buffer: nobody may look whether it is free while
 * it is half set up, or half undone.
 */
#define SLICE_NS (50 * NSEC_PER_MSEC)

uint64_t capture_slice_end(const struct capture *c)
{
	bool whole = c->making ? c->making->request.top_level : !c->setup.main;

	return whole ? UINT64_MAX : now_ns(CLOCK_MONOTONIC) + SLICE_NS;
}

int capture_arm(struct capture *c, struct error *err)
{
	static int (*const stages[])(struct capture * c, uint64_t until_ns, struct error * err) = {
		stage_names, stage_check, stage_probes, stage_apply,
		stage_plan,  stage_apply, stage_open,
	};
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID), until_ns = capture_slice_end(c);
	int r = 0;

	while (c->making && r == 0) {
		r = stages[c->making->stage](c, until_ns, err);
		if (r == 0 && ++c->making->stage == ARRAY_SIZE(stages))
			c->making = making_free(c->making);
		else if (r == 0)
			r = now_ns(CLOCK_MONOTONIC) >= until_ns;
	}
	c->run.cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return r;
}

int capture_new(struct capture **ret, struct capture_spare **spare, const struct capture_env *env,
		const struct capture_request *request, struct error *err)
{
	_cleanup_(capture_freep) struct capture *c = NULL;
	int r = capture_begin(&c, spare, env, request, err);

	if (!c)
		return r;
	while (r == 0 && c->making)
		r = MIN(capture_arm(c, err), 0);
	if (r == 0)
		*ret = TAKE_PTR(c);
	return r;
}

bool capture_undo(struct capture *c)
{
	uint64_t until_ns = capture_slice_end(c);

	if (setup_undo_triggers(&c->setup, until_ns))
		return true;
	if (c->run.running && !atomic_load(&c->run.off))
		capture_set_tracing(c, false);
	/* Open files hold the instances. */
	run_deinit(&c->run);
	c->run = RUN_INIT;
	return setup_undo_plan(&c->setup, until_ns);
}

struct capture *capture_free(struct capture *c)
{
	if (!c)
		return NULL;
	if (c->run.running && !atomic_load(&c->run.off))
		capture_set_tracing(c, false);
	run_deinit(&c->run);
	setup_deinit(&c->setup);
	making_free(c->making);
	report_deinit(&c->report);
	free(c);
	return NULL;
}
