/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/request.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/sysinfo.h>

#include "base/io.h"
#include "base/meminfo.h"
#include "daemon/capture/plan/event_triggers.h"
#include "daemon/capture/plan/functions.h"
#include "daemon/capture/plan/hists.h"
#include "daemon/capture/plan/probes.h"
#include "daemon/capture/plan/synthetic.h"
#include "daemon/capture/tracefs/feature.h"
#include "stream/poll_plan.h"

#define NAME_LEN_MAX 64
/* The kernel takes a filter in one write of less than a page. */
#define FILTER_LEN_MAX 4000
#define TASKS_BUFFER_KB 64
/* In ring mode the tasks' ring must last from one snapshot to the next, too. */
#define TASKS_RING_BUFFER_KB 512
/*
 * Percent of the ring that is filled before its reader wakes. The rest is reserve for a busy
 * machine.
 */
#define WAKEUP_PERCENT "25"

static bool request_name_is_valid(const char *name)
{
	size_t n = 0;

	for (; name[n]; n++)
		if (!isalnum((unsigned char)name[n]) && !strchr("_.-", name[n]))
			return false;
	return n > 0 && n <= NAME_LEN_MAX;
}

/* Check the size early: otherwise the kernel's allocator fails at the last CPU. */
static int request_check_memory(const struct capture_env *env,
				const struct capture_request *request, uint64_t held,
				struct error *err)
{
	uint64_t each = request->buffer_bytes ?: DEFAULT_BUFFER_BYTES;
	uint64_t hists = hists_memory(&request->hists), available = meminfo_available(env->proc);
	_cleanup_buf_ struct buf want = BUF_INIT, have = BUF_INIT;
	unsigned cpus = (unsigned)get_nprocs();

	if (!available)
		return 0;
	available += held;
	available -= MIN(available, hists);
	if (each <= available / 10 * 9 / MAX(cpus, 1U))
		return 0;
	format_bytes(each, &want);
	format_bytes(available, &have);
	error_set(err, -ENOMEM, "ring buffers of %s for each of %u CPUs do not fit: %s are free",
		  buf_string(&want) ?: "?", cpus, buf_string(&have) ?: "?");
	return error_hint(err, "ask for a smaller buffer (-b)");
}

static bool is_size_of(const struct plan_step *s, const char *instance)
{
	return s->file && strcmp(s->file, "buffer_size_kb") == 0 &&
	       strcmp(s->instance ?: "", instance ?: "") == 0;
}

int request_check_room(const struct capture_env *env, const struct capture_request *request,
		       const struct plan *plan, const char *instance, struct error *err)
{
	_cleanup_close_ int dir = -EBADF;
	uint64_t kb = 0;
	size_t i = 0;

	while (i < plan->count && !is_size_of(&plan->steps[i], instance))
		i++;
	if (i == plan->count || plan->steps[i].done)
		return 0;
	dir = tracefs_open_instance(env->tracefs, instance);
	if (dir >= 0)
		tracefs_read_u64(dir, "buffer_total_size_kb", &kb);
	/* With what the kernel needs for each page. */
	return request_check_memory(env, request, kb * 1024 / 64 * 65, err);
}

/* tracing_cpumask rejects a mask without naming the CPU that does not exist. */
static int request_check_cpus(const struct capture_env *env, const struct cpu_set *cpus,
			      struct error *err)
{
	_cleanup_(cpu_set_deinit) struct cpu_set possible = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[256];

	if (!cpus)
		return 0;
	if (!cpu_set_count(cpus))
		return error_set(err, -EINVAL, "the list of CPUs is empty");
	snprintf(path, sizeof(path), "%s/devices/system/cpu/possible", capture_env_sys(env));
	/* If the possible CPUs are unknown, the kernel has to refuse by itself. */
	if (read_file_at(AT_FDCWD, path, 4096, &text) < 0 || !buf_string(&text) ||
	    parse_cpu_list(text.data, &possible, NULL) < 0)
		return 0;
	for (unsigned cpu = 0; cpu < cpus->words * 64; cpu++) {
		if (!cpu_set_has(cpus, cpu) || cpu_set_has(&possible, cpu))
			continue;
		error_set(err, -EINVAL, "this machine has no CPU %u", cpu);
		return error_hint(err, "it has %.*s", (int)strcspn(text.data, "\n"), text.data);
	}
	return 0;
}

int kernel_check(const char *proc, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned version = feature_kernel(proc, &text);

	/* An unknown version passes. */
	if (!version || version >= FEATURE_KERNEL(4, 19))
		return 0;
	error_set(err, -EOPNOTSUPP, "this is Linux %.*s: traced needs 4.19 at least",
		  (int)strcspn(text.data, "\n"), text.data);
	return error_hint(err, "trace-cmd records on older kernels, too");
}

static int request_check_filter(const char *filter, const char *of, struct error *err)
{
	if (!filter || strlen(filter) <= FILTER_LEN_MAX)
		return 0;
	error_set(err, -E2BIG, "the filter for '%.200s' has more than %d bytes", of,
		  FILTER_LEN_MAX);
	return error_hint(err, "give it fewer conditions");
}

static int request_check_filters(const struct capture_request *request, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < request->event_count && r == 0; i++)
		r = request_check_filter(request->events[i].filter, request->events[i].glob, err);
	for (size_t i = 0; i < request->probe_count && r == 0; i++)
		r = request_check_filter(request->probes[i].filter, request->probes[i].definition,
					 err);
	for (size_t i = 0; i < request->sql_count && r == 0; i++) {
		const struct capture_sql *sql = &request->sql[i];

		r = request_check_filter(sql->start.filter, sql->name, err);
		if (r == 0)
			r = request_check_filter(sql->end.filter, sql->name, err);
	}
	return r;
}

static int request_check_polls(const struct capture_request *request, struct error *err)
{
	struct poll_plan plan = { 0 };
	int r = 0;

	if (request->polls.count && request->ring)
		return error_set(err, -EINVAL, "polled files cannot be combined with --ring");
	for (size_t i = 0; i < request->polls.count && r == 0; i++)
		r = poll_plan_add(&plan, request->polls.items[i], err);
	return r;
}

int request_check(const struct capture_env *env, const struct capture_request *request,
		  uint64_t held, struct error *err)
{
	int r;

	if (!request->name || !request_name_is_valid(request->name)) {
		error_set(err, -EINVAL, "'%s' is not a valid name of a recording",
			  request->name ?: "");
		return error_hint(err, "1 to %d letters, digits, dots, dashes and underscores",
				  NAME_LEN_MAX);
	}
	if (!request->event_count && !request->functions.tracer && !request->probe_count &&
	    !request->sql_count && !request->hists.count)
		return error_set(err, -EINVAL, "no events were requested");
	if (request->sampling.hz && (request->ring || request->streamed))
		return error_set(err, -EINVAL,
				 "samples cannot be combined with --ring or --stream");
	r = request_check_filters(request, err);
	if (r == 0)
		r = hists_check(request, err);
	if (r == 0)
		r = request_check_polls(request, err);
	if (r == 0)
		r = kernel_check(env->proc, err);
	if (r == 0 && request->sampling.hz)
		r = sampling_check(&request->sampling, err);
	if (r == 0)
		r = request_check_cpus(env, request->cpus, err);
	if (r == 0)
		r = probes_check(request, env->tracefs, err);
	if (r == 0)
		r = event_triggers_check(env, request, err);
	if (r == 0)
		r = synthetic_check(env->tracefs, request, err);
	if (r == 0)
		r = request_check_memory(env, request, held, err);
	if (r == 0)
		r = functions_check(env, request, err);
	return r < 0 || !request->top_level ? r : toplevel_check(env->tracefs, err);
}

static void plan_event_pids(struct plan *plan, const struct capture_request *request,
			    const char *instance)
{
	_cleanup_buf_ struct buf pids = BUF_INIT;

	if (!request->pid_count)
		return;
	for (size_t i = 0; i < request->pid_count; i++)
		buf_printf(&pids, "%d ", request->pids[i]);
	if (request->follow_forks)
		plan_put(plan, instance, "options/event-fork", "1");
	if (buf_string(&pids))
		plan_put(plan, instance, "set_event_pid", pids.data);
	else
		plan->failed = true;
}

static void plan_cpus(struct plan *plan, const struct capture_request *request,
		      const char *instance)
{
	_cleanup_buf_ struct buf mask = BUF_INIT;

	if (!request->cpus)
		return;
	cpu_set_format_mask(request->cpus, &mask);
	if (buf_string(&mask))
		plan_put(plan, instance, "tracing_cpumask", mask.data);
	else
		plan->failed = true;
}

static void plan_buffer(struct plan *plan, const char *instance, const char *clock, uint64_t kb)
{
	struct plan_step *s;
	char size[32];

	snprintf(size, sizeof(size), "%llu", (unsigned long long)kb);
	if (instance)
		plan_instance(plan, instance);
	else
		/* The buffer was empty and must be empty again. */
		plan_set(plan, NULL, "trace", "", "");
	/* A new instance starts with tracing on. */
	plan_put(plan, instance, "tracing_on", "0");
	plan_put(plan, instance, "trace_clock", clock);
	/*
	 * Overwrite mode: without it the kernel counts what it drops but does not say where.
	 * options/record-cmd stays untouched: it acts on the enabled events of every instance, not
	 * on ours alone (trace_event_enable_cmd_record()).
	 */
	plan_put(plan, instance, "options/overwrite", "1");
	plan_put(plan, instance, "buffer_size_kb", size);
	/* Linux 5.0+. */
	s = plan_put(plan, instance, "buffer_percent", WAKEUP_PERCENT);
	if (s)
		s->optional = true;
}

static bool glob_is_exact(const char *glob)
{
	return strchr(glob, ':') && !strpbrk(glob, "*?[");
}

/*
 * The kernel enables at most so many events in one call. Each takes a millisecond, ten on a busy
 * machine, and other recordings wait for the worker meanwhile. All system calls share two
 * tracepoints.
 */
#define EVENTS_AT_ONCE 32
#define SYSTEM_CALLS "syscalls:"

static bool matches_share_system(const struct event_matches *m, size_t a, size_t b)
{
	const char *name = m->items[a].name;

	return strncmp(name, m->items[b].name, strcspn(name, ":") + 1) == 0;
}

static bool starts_whole_system(const struct event_matches *m, size_t i)
{
	return m->items[i].whole_system && (!i || !matches_share_system(m, i, i - 1));
}

/* i: the first event of its system. */
static bool system_takes_one_write(const struct event_matches *m, size_t i)
{
	size_t end = i + 1;

	if (!m->items[i].whole_system)
		return false;
	while (end < m->count && matches_share_system(m, i, end))
		end++;
	return end - i <= EVENTS_AT_ONCE ||
	       strncmp(m->items[i].name, SYSTEM_CALLS, strlen(SYSTEM_CALLS)) == 0;
}

/*
 * Enables a whole system with one write; if the kernel refuses, the events follow one by one.
 * Returns the step's number.
 */
static size_t plan_system(struct plan *plan, const char *name, const char *instance)
{
	struct plan_step *s;
	char path[512];

	snprintf(path, sizeof(path), "events/%.*s/enable", (int)strcspn(name, ":"), name);
	s = plan_write(plan, instance, path, "1");
	if (!s)
		return 0;
	s->optional = true;
	return (size_t)(s - plan->steps) + 1;
}

/* Has a write to `enable` undone before the instance is removed. */
static void plan_disable(struct plan *plan, struct plan_step *s)
{
	if (s->old)
		return;
	s->old = strdup("0");
	plan->failed |= !s->old;
}

/*
 * All events were off at the top level, otherwise it could not have been taken. Only ours go off
 * again: after a crash others may be somebody's.
 */
static void plan_events_off(struct plan *plan, const struct event_matches *matches)
{
	char path[512];

	for (size_t i = 0; i < matches->count; i++) {
		if (starts_whole_system(matches, i))
			snprintf(path, sizeof(path), "events/%.*s/enable",
				 (int)strcspn(matches->items[i].name, ":"), matches->items[i].name);
		else if (matches->items[i].whole_system)
			continue;
		else
			event_file(matches->items[i].name, "enable", path, sizeof(path));
		plan_set(plan, NULL, path, NULL, "0");
	}
}

static void plan_filters(struct plan *plan, const struct event_matches *matches,
			 const char *instance)
{
	char path[512];

	for (size_t i = 0; i < matches->count; i++) {
		if (!matches->items[i].filter)
			continue;
		event_file(matches->items[i].name, "filter", path, sizeof(path));
		if (instance)
			plan_write(plan, instance, path, matches->items[i].filter);
		else
			plan_set(plan, NULL, path, matches->items[i].filter, "0");
	}
}

static void plan_events(struct plan *plan, const struct event_matches *matches,
			const char *instance)
{
	bool many = instance && matches->count > EVENTS_AT_ONCE;
	char path[512];
	size_t system = 0;

	if (!instance)
		plan_events_off(plan, matches);
	/* All filters first: a bad one fails before any event is enabled. */
	plan_filters(plan, matches, instance);
	for (size_t i = 0; i < matches->count; i++) {
		struct plan_step *s;

		if (!i || !matches_share_system(matches, i, i - 1))
			system = system_takes_one_write(matches, i)
					 ? plan_system(plan, matches->items[i].name, instance)
					 : 0;
		if (many && system)
			plan_disable(plan, &plan->steps[system - 1]);
		event_file(matches->items[i].name, "enable", path, sizeof(path));
		s = plan_write(plan, instance, path, "1");
		if (!s)
			return;
		s->tag = &matches->items[i];
		s->optional = !glob_is_exact(matches->items[i].spec->glob);
		s->by = system;
		if (many)
			plan_disable(plan, s);
	}
}

/* Task deaths only if the ring is read: in an overwritten ring they would displace births. */
static void plan_tasks(struct plan *plan, const char *instance, const char *clock, bool ring)
{
	static const char *const files[] = { "events/task/task_newtask/enable",
					     "events/task/task_rename/enable",
					     "events/sched/sched_process_free/enable" };

	plan_buffer(plan, instance, clock, ring ? TASKS_RING_BUFFER_KB : TASKS_BUFFER_KB);
	for (size_t i = 0; i < ARRAY_SIZE(files) - ring; i++) {
		struct plan_step *s = plan_write(plan, instance, files[i], "1");

		if (s)
			s->optional = true;
	}
}

static void plan_main_buffer(struct plan *plan, const struct capture_request *request,
			     const char *instance)
{
	uint64_t bytes = request->buffer_bytes ?: DEFAULT_BUFFER_BYTES;

	plan_buffer(plan, instance, request->clock ?: DEFAULT_CLOCK, (bytes + 1023) / 1024);
}

int request_plan_buffers(struct plan *plan, const struct capture_env *env,
			 const struct capture_request *request, const char *instance,
			 const char *tasks, struct error *err)
{
	int r = request_check_memory(env, request, 0, err);

	if (r < 0)
		return r;
	plan_main_buffer(plan, request, instance);
	if (tasks)
		plan_buffer(plan, tasks, request->clock ?: DEFAULT_CLOCK, TASKS_BUFFER_KB);
	return plan->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}

int request_plan(struct plan *plan, const struct capture_env *env,
		 const struct capture_request *request, const struct event_matches *matches,
		 const char *instance, const char *tasks, struct error *err)
{
	const char *clock = request->clock ?: DEFAULT_CLOCK;

	plan_main_buffer(plan, request, instance);
	plan_cpus(plan, request, instance);
	plan_event_pids(plan, request, instance);
	plan_events(plan, matches, instance);
	functions_plan(plan, env, request, instance);
	if (tasks)
		plan_tasks(plan, tasks, clock, request->ring);
	return plan->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}

int request_verify(const struct plan *plan, const struct tracefs *fs,
		   const struct capture_request *request, unsigned *ret_refused, struct error *err)
{
	*ret_refused = 0;
	for (size_t i = 0; i < request->event_count; i++) {
		const struct plan_step *refused = NULL;
		bool any = false;

		for (size_t k = 0; k < plan->count; k++) {
			const struct plan_step *s = &plan->steps[k];
			const struct event_match *m = s->tag;

			if (!m || m->spec != &request->events[i])
				continue;
			any |= s->done;
			if (s->refused) {
				refused = s;
				(*ret_refused)++;
			}
		}
		if (refused && !any) {
			plan_explain(refused, fs, refused->refused, err);
			return error_prefix(err, "none of the events of '%s' can be enabled",
					    request->events[i].glob);
		}
	}
	return 0;
}
