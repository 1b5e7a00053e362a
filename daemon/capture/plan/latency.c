/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/latency.h"

#include <inttypes.h>
#include <string.h>

#include "base/io.h"
#include "base/parse.h"
#include "daemon/capture/plan/tracer_options.h"

#define SETTING_LEN_MAX 128
#define THRESH_FILE "tracing_thresh"

static const struct {
	const char *tracer;
	bool recorded;
} tracers[] = {
	{ "timerlat", true }, { "osnoise", true },     { "hwlat", true },
	{ "wakeup", false },  { "wakeup_rt", false },  { "wakeup_dl", false },
	{ "irqsoff", false }, { "preemptoff", false }, { "preemptirqsoff", false },
};

/* Files take microseconds, except lists of CPUs. */
static const struct setting {
	const char *tracer, *name, *file;
	bool is_list;
} settings[] = {
	{ "timerlat", "period", "osnoise/timerlat_period_us", false },
	{ "timerlat", "print-stack", "osnoise/print_stack", false },
	{ "timerlat", "cpus", "osnoise/cpus", true },
	{ "osnoise", "period", "osnoise/period_us", false },
	{ "osnoise", "runtime", "osnoise/runtime_us", false },
	{ "osnoise", "threshold", THRESH_FILE, false },
	{ "osnoise", "cpus", "osnoise/cpus", true },
	{ "hwlat", "window", "hwlat_detector/window", false },
	{ "hwlat", "width", "hwlat_detector/width", false },
	{ "hwlat", "threshold", THRESH_FILE, false },
};

bool latency_is(const char *tracer)
{
	for (size_t i = 0; i < ARRAY_SIZE(tracers); i++)
		if (strcmp(tracers[i].tracer, tracer) == 0)
			return tracers[i].recorded;
	return false;
}

bool latency_is_known(const char *tracer)
{
	for (size_t i = 0; i < ARRAY_SIZE(tracers); i++)
		if (strcmp(tracers[i].tracer, tracer) == 0)
			return true;
	return false;
}

int latency_check_name(const char *tracer, struct error *err)
{
	if (latency_is(tracer))
		return 0;
	error_set(err, -EOPNOTSUPP, "traced does not support the tracer '%s'", tracer);
	if (!latency_is_known(tracer))
		return error_hint(err, "use function, function_graph, timerlat, osnoise or hwlat; "
				       "most of what other tracers show is in events, too");
	/*
	 * In instances as at the top level, the kernel swaps the ring buffer with the snapshot's at
	 * each new maximum. snapshot_raw is busy while the tracer is on, and then the snapshot is
	 * freed. For a wakeup the kernel also empties the ring buffer.
	 */
	error_prefix(err, "the kernel gives this tracer's events as text only");
	if (strncmp(tracer, "wakeup", strlen("wakeup")) == 0)
		return error_hint(err, "'tracectl record -e sched --report runq' has the latencies "
				       "of all wakeups; 'tracectl start --ring -e sched --on "
				       "\"sched.delay > 1ms\"' keeps the events before long ones");
	return error_hint(err, "use -p timerlat, or -e preemptirq where the kernel has these "
			       "events");
}

/* Splits "NAME=VALUE" and formats the value for the kernel. */
static int setting_parse(const char *tracer, const char *text, const struct setting **ret,
			 struct buf *value, struct error *err)
{
	_cleanup_buf_ struct buf names = BUF_INIT;
	size_t len = strcspn(text, "=");
	uint64_t ns;
	int r;

	*ret = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		if (strcmp(settings[i].tracer, tracer) != 0)
			continue;
		buf_printf(&names, "%s%s", names.len ? ", " : "", settings[i].name);
		if (strlen(settings[i].name) == len && strncmp(settings[i].name, text, len) == 0)
			*ret = &settings[i];
	}
	if (!*ret || !text[len]) {
		error_set(err, -EINVAL, "'%.100s' is not a setting of %s", text, tracer);
		return error_hint(err, "write NAME=VALUE; it has: %s", buf_string(&names) ?: "?");
	}
	if ((*ret)->is_list) {
		_cleanup_(cpu_set_deinit) struct cpu_set cpus = { 0 };

		r = parse_cpu_list(text + len + 1, &cpus, err);
		if (r == 0 && !cpu_set_count(&cpus))
			r = error_set(err, -EINVAL, "'%.100s' names no CPU", text);
		if (r == 0)
			cpu_set_format(&cpus, value);
	} else {
		r = parse_duration(text + len + 1, &ns, err);
		if (r == 0 && (ns % NSEC_PER_USEC || ns / NSEC_PER_USEC > INT32_MAX)) {
			error_set(err, -EINVAL, "'%.100s': the kernel counts microseconds", text);
			return error_hint(err, "use us, ms or s: period=1ms");
		}
		if (r == 0)
			buf_printf(value, "%" PRIu64, ns / NSEC_PER_USEC);
	}
	if (r == 0 && (!buf_string(value) || value->len > SETTING_LEN_MAX))
		r = error_set(err, -E2BIG, "'%.100s': the value is too long", text);
	return r;
}

/* Refuses new settings while anybody's tracer uses the old ones. */
static int check_unused(const struct tracefs *fs, const char *file _unused_, struct error *err)
{
	return tracer_check_unused(fs, latency_is,
				   "its settings are global: wait for its end, or leave out "
				   "--tracer-option and --stop-us",
				   err);
}

int latency_check(const struct tracefs *fs, const struct capture_functions *f, struct error *err)
{
	if (!f->tracer || !latency_is(f->tracer)) {
		if (!f->settings.count && !f->stop_us)
			return 0;
		error_set(err, -EINVAL, "%s needs a tracer of latencies",
			  f->settings.count ? "--tracer-option" : "--stop-us");
		return error_hint(err, "add -p timerlat, -p osnoise or -p hwlat");
	}
	if (f->only.count || f->never.count) {
		error_set(err, -EINVAL, "-l and -n select functions, which %s does not trace",
			  f->tracer);
		return error_hint(err, "leave them out");
	}
	if (f->stop_us && strcmp(f->tracer, "hwlat") == 0) {
		error_set(err, -EINVAL, "hwlat cannot stop the tracing");
		return error_hint(err, "use --stop-us with timerlat or osnoise");
	}
	for (size_t i = 0; i < f->settings.count; i++) {
		_cleanup_buf_ struct buf value = BUF_INIT;
		const struct setting *s;
		int r = setting_parse(f->tracer, f->settings.items[i], &s, &value, err);

		if (r < 0)
			return r;
	}
	return f->settings.count || f->stop_us ? check_unused(fs, NULL, err) : 0;
}

/* hwlat replaces the threshold when it is turned on, and restores it when it ends. */
static bool setting_comes_after(const struct setting *s)
{
	return strcmp(s->tracer, "hwlat") == 0 && strcmp(s->file, THRESH_FILE) == 0;
}

static void plan_settings(struct plan *plan, const struct capture_functions *f, bool after)
{
	if (!f->tracer || !latency_is(f->tracer))
		return;
	for (size_t i = 0; i < f->settings.count; i++) {
		_cleanup_buf_ struct buf value = BUF_INIT;
		const struct setting *s = NULL;

		if (setting_parse(f->tracer, f->settings.items[i], &s, &value, NULL) < 0 || !s)
			plan->failed = true;
		else if (setting_comes_after(s) == after)
			plan_set(plan, NULL, s->file, value.data, NULL);
	}
}

void latency_plan_before(struct plan *plan, const struct capture_functions *f)
{
	char us[16];

	plan_settings(plan, f, false);
	if (!f->stop_us)
		return;
	snprintf(us, sizeof(us), "%u", f->stop_us);
	plan_set(plan, NULL, "osnoise/stop_tracing_us", us, NULL);
	plan_set(plan, NULL, "osnoise/stop_tracing_total_us", us, NULL);
}

void latency_plan_after(struct plan *plan, const struct capture_functions *f)
{
	plan_settings(plan, f, true);
}

void latency_plan_unused(struct plan *plan, const struct capture_functions *f, size_t first)
{
	if ((!f->settings.count && !f->stop_us) || first >= plan->count)
		return;
	for (size_t i = first; i < plan->count; i++)
		plan->steps[i].joined = true;
	/* Options of function tracers have a check of their own. */
	while (first + 1 < plan->count && plan->steps[first].check)
		first++;
	plan->steps[first].check = check_unused;
}
