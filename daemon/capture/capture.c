/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arms a recording, reads its counts and removes it again. */
#include "daemon/capture/recording.h"

#include <sys/epoll.h>
#include <sys/random.h>

#include "base/io.h"
#include "daemon/capture/names/metadata.h"
#include "daemon/capture/plan/functions.h"
#include "daemon/capture/plan/spare.h"

static bool has_event(const char *const *names, size_t count, const char *wanted)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], wanted) == 0)
			return true;
	return false;
}

/*
 * Returns NULL for requests with probes: they are removed after their instance, so they must be
 * created before it.
 */
static struct capture_spare *find_spare(struct capture_spare **spare,
					const struct capture_request *request)
{
	bool with_probes = request->kprobes.count || request->uprobes.count;

	return spare && !with_probes && !request->top_level ? *spare : NULL;
}

static int name_instances(struct capture *c, const char *name)
{
	snprintf(c->instance, sizeof(c->instance), CAPTURE_INSTANCE_PREFIX "%d-%s", getpid(), name);
	return (size_t)snprintf(c->tasks, sizeof(c->tasks), "%s-tasks", c->instance) <
			       sizeof(c->tasks)
		       ? 0
		       : -ENAMETOOLONG;
}

static int verify_options(const struct capture *c, const struct capture_request *request,
			  struct error *err)
{
	_cleanup_close_ int dir = tracefs_open_instance(c->env.tracefs, c->main);

	return dir < 0 ? error_errno(err, dir, "cannot open the buffer")
		       : functions_verify(request, dir, err);
}

/*
 * Creates the probes first, so that their events exist when the specs are matched. ret is the
 * request with the probes' events added.
 */
static int make_probes(struct capture *c, const struct capture_request *request,
		       struct capture_request *ret, struct error *err)
{
	const struct probe_list *own = &c->probes;
	struct capture_event_spec *specs;
	char group[PROBE_GROUP_LEN + 1];
	int r;

	snprintf(group, sizeof(group), PROBE_GROUP_PREFIX "%02x%02x%02x%02x", c->uuid[0],
		 c->uuid[1], c->uuid[2], c->uuid[3]);
	r = probes_plan(&c->plan, request, group, &c->probes, err);
	if (r == 0)
		r = plan_apply(&c->plan, c->env.tracefs, &c->journal, err);
	if (r < 0)
		return r;
	*ret = *request;
	specs = calloc(request->event_count + own->count + 1, sizeof(*specs));
	if (!specs)
		return error_set(err, -ENOMEM, "out of memory");
	if (request->event_count)
		memcpy(specs, request->events, request->event_count * sizeof(*specs));
	memcpy(specs + request->event_count, own->specs, own->count * sizeof(*specs));
	ret->event_count += own->count;
	ret->events = c->specs = specs;
	return 0;
}

static int apply(struct capture *c, const struct capture_request *asked, struct error *err)
{
	struct tracefs *fs = c->env.tracefs;
	struct capture_request with_probes;
	const struct capture_request *request = &with_probes;
	const char *const *names;
	unsigned refused;
	size_t count;
	int r = 0;

	/* A capture that took a spare already has its journal. */
	if (c->journal.fd < 0)
		r = journal_create(&c->journal, c->env.state_dir, c->instance, err);
	if (r == 0)
		r = make_probes(c, asked, &with_probes, err);
	if (r == 0)
		r = tracefs_events(fs, &names, &count, err);
	if (r < 0)
		return r;
	r = event_matches_find(&c->matches, request->events, request->event_count, &request->bounds,
			       names, count, err);
	if (r == 0)
		r = overhead_find(&c->overhead, &c->matches, err);
	if (r < 0)
		return r;
	if (c->matches.left_out)
		capture_warn_missing(c, "left out %zu events that only root may record",
				     c->matches.left_out);
	c->has_tasks = has_event(names, count, "task:task_newtask");
	if (!c->has_tasks)
		capture_warn(c, "this kernel has no task events: names of short-lived tasks may be "
				"missing");
	r = request_plan(&c->plan, request, &c->matches, c->main, c->has_tasks ? c->tasks : NULL,
			 err);
	if (r < 0)
		return r;
	r = plan_apply(&c->plan, fs, &c->journal, err);
	if (r < 0)
		return r;
	r = request_verify(&c->plan, fs, request, &refused, err);
	if (r == 0)
		r = verify_options(c, request, err);
	if (r < 0)
		return r;
	if (refused)
		capture_warn_missing(c, "%u of %zu events could not be enabled", refused,
				     c->matches.count);
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
		return error_errno(err, dir, "cannot open the tracefs instance %s",
				   instance ?: "of the top level");
	r = metadata_read_layout(c->env.tracefs, dir, page, layout, err);
	/* The top level's sub-buffers may be larger than the task instance's. */
	if (r == 0 && c->staging.subbuf_size < layout->size) {
		staging_deinit(&c->staging);
		r = staging_init(&c->staging, layout->size);
	}
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

/* Failure is no error: a clock step is then noticed at the next periodic reading. */
static void watch_clocks(struct capture *c)
{
	struct epoll_event e = { .events = EPOLLIN,
				 .data.u64 = (uint64_t)CAPTURE_CLOCKS_TAG << 32 };

	c->clock_watch = clocks_watch();
	if (c->clock_watch >= 0 && epoll_ctl(c->epfd, EPOLL_CTL_ADD, c->clock_watch, &e) < 0)
		c->clock_watch = close_fd(c->clock_watch);
}

static int open_rings(struct capture *c, const struct capture_request *request, struct error *err)
{
	struct subbuf_layout layout;
	struct metadata m;
	int r;

	if (c->has_tasks) {
		/* The tasks' ring is small and quiet: mapping its pages is not worth it. */
		enum capture_reader kind = request->reader == CAPTURE_READER_READ
						   ? CAPTURE_READER_READ
						   : CAPTURE_READER_SPLICE;

		r = open_ring(c, BUFFER_TASKS, c->tasks, kind, &layout, err);
		if (r < 0)
			return r;
	}
	r = open_ring(c, BUFFER_MAIN, c->main, request->reader, &layout, err);
	if (r < 0)
		return r;
	m = (struct metadata){
		.env = &c->env,
		.request = request,
		.instance = c->instance,
		.dir = c->rings[BUFFER_MAIN].dir,
		.layout = &c->rings[BUFFER_MAIN].layout,
		.tasks_subbuf_size = c->has_tasks ? c->rings[BUFFER_TASKS].layout.size : 0,
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
	watch_clocks(c);
	return 0;
}

/* Reads back the buffer size: the kernel rounds it, and some kernels silently allocate less. */
static void check_size(struct capture *c, const struct capture_request *request)
{
	uint64_t want = (request->buffer_bytes ?: DEFAULT_BUFFER_BYTES) / 1024, got;

	if (tracefs_read_u64(c->rings[BUFFER_MAIN].dir, "buffer_size_kb", &got) == 0 &&
	    got < want / 100 * 95)
		capture_warn(c, "the kernel allocated ring buffers of %llu KiB instead of %llu KiB",
			     (unsigned long long)got, (unsigned long long)want);
}

/*
 * Symbols may wait until an event that names one is seen. Not for a streamed recording, whose
 * follower needs them first, nor with a stream limit, which may leave no room for them later.
 */
static bool may_wait_for_symbols(const struct capture *c)
{
	return !c->names.all_symbols && !c->flush.wanted && !c->stream_limit;
}

static int init_names(struct capture *c, bool symbols, struct error *err)
{
	_cleanup_free_ const char **names = calloc(c->matches.count + 1, sizeof(*names));
	int r = -ENOMEM;

	if (names) {
		for (size_t i = 0; i < c->matches.count; i++)
			names[i] = c->matches.items[i].name;
		r = names_init(&c->names, &c->env, names, c->matches.count, symbols);
		if (r == 0)
			r = names_see_options(&c->names, c->rings[BUFFER_MAIN].dir);
		if (!c->has_tasks && !c->ring_mode)
			c->names.known = &c->known;
		if (may_wait_for_symbols(c))
			c->names.seen = c->rings[BUFFER_MAIN].seen = &c->seen;
	}
	return r < 0 ? error_errno(err, r, "cannot list the events") : 0;
}

int capture_new(struct capture **ret, const struct capture_env *env,
		const struct capture_request *request, struct error *err)
{
	return capture_new_from(ret, NULL, env, request, err);
}

/* With function tracers any kernel function may appear, whatever the event formats say. */
static bool may_name_functions(const struct capture_request *request)
{
	return request->functions.tracer || request->functions.only.count ||
	       request->options.count || request->sampling.hz || request->top_level;
}

int capture_new_from(struct capture **ret, struct capture_spare **spare,
		     const struct capture_env *env, const struct capture_request *request,
		     struct error *err)
{
	_cleanup_(capture_freep) struct capture *c = NULL;
	struct capture_spare *found = find_spare(spare, request);
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r = request_check(env, request, found ? capture_spare_bytes(found) : 0, err);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(err, -ENOMEM, "out of memory");
	c->env = *env;
	c->clock_watch = -EBADF;
	c->journal = JOURNAL_INIT;
	c->staging = STAGING_INIT;
	c->rescan = TASK_SCAN_INIT;
	c->mappings = MAPPING_SCAN_INIT;
	c->names = NAMES_INIT;
	for (int b = 0; b < BUFFER_COUNT; b++)
		c->rings[b].dir = -EBADF;
	c->ring_mode = request->ring;
	c->flush.wanted = request->streamed && !request->ring;
	c->wants_mappings = functions_want_mappings(request);
	c->may_go_off = functions_may_turn_off(request);
	c->stream_limit = request->stream_limit;
	c->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epfd < 0)
		return error_errno(err, -errno, "cannot create an epoll descriptor");
	if (getrandom(c->uuid, sizeof(c->uuid), 0) != sizeof(c->uuid))
		return error_errno(err, -errno, "cannot get random bytes");
	r = copy_cpus(c, request->cpus);
	if (r == 0)
		r = overhead_init(&c->overhead, &request->overhead);
	if (r == 0 && !(found && capture_spare_take(TAKE_PTR(*spare), c)))
		r = name_instances(c, request->name);
	c->main = request->top_level ? NULL : c->instance;
	if (r < 0)
		return error_errno(err, r, "cannot set up the recording");
	r = apply(c, request, err);
	if (r == 0)
		r = open_rings(c, request, err);
	if (r == 0)
		r = capture_sampling_open(c, request, err);
	if (r == 0)
		r = init_names(c, may_name_functions(request), err);
	/* The matches point into the request and into the kernel's event list, which may change. */
	event_matches_deinit(&c->matches);
	if (r < 0)
		return r;
	check_size(c, request);
	c->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	*ret = TAKE_PTR(c);
	return 0;
}

void capture_get_stats(struct capture *c, struct capture_stats *ret)
{
	struct ring *ring = &c->rings[BUFFER_MAIN];
	struct capture_stats s = {
		.start_boot_ns = c->start_boot_ns,
		.bytes = c->bytes_before + c->writer.bytes,
		.event_types = c->event_types,
		.reader = "none",
		.instance = c->main ?: "top level",
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
		if (c->ring_mode) {
			c->cpu_stats[cpu].events += rc->counts.entries;
			s.overwritten += rc->counts.overrun;
		} else {
			c->cpu_stats[cpu].lost += rc->counts.overrun;
		}
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
		capture_turn(c, false);
	close_fd(c->epfd);
	close_fd(c->clock_watch);
	for (int b = 0; b < BUFFER_COUNT; b++)
		ring_close(&c->rings[b]);
	sampler_close(&c->sampler);
	mapping_scan_end(&c->mappings);
	staging_deinit(&c->staging);
	names_deinit(&c->names);
	task_scan_end(&c->rescan);
	task_memory_deinit(&c->known);
	plan_take_down(&c->plan, c->env.tracefs, &c->journal);
	event_matches_deinit(&c->matches);
	probe_list_deinit(&c->probes);
	free(c->specs);
	overhead_deinit(&c->overhead);
	cpu_set_deinit(&c->cpus);
	buf_deinit(&c->header);
	buf_deinit(&c->header_page);
	for (size_t i = 0; i < c->warning_count; i++)
		free(c->warnings[i]);
	free(c->warnings);
	capture_forget_syncs(c);
	free(c->cpu_stats);
	free(c);
	return NULL;
}
