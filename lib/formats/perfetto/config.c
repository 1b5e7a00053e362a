/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/config.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/io.h"
#include "stream/poll_plan.h"

#define UNWIND_FRAME_POINTER 3

/* A data source with its own messages. */
struct config_source {
	PB(DataSourceConfig) config;
	PB(TraceConfig__DataSource) source;
};

/* The configuration's list of data sources. */
struct config_list {
	PB(TraceConfig__DataSource) * sources[4];
	size_t count;
};

/* The caller has set what belongs to the source. */
static void config_list_add(struct config_list *l, struct config_source *s, const char *name)
{
	s->config.name = (char *)(uintptr_t)name;
	s->source = (PB(TraceConfig__DataSource))PERFETTO__PROTOS__TRACE_CONFIG__DATA_SOURCE__INIT;
	s->source.config = &s->config;
	l->sources[l->count++] = &s->source;
}

struct config_ftrace {
	struct config_source source;
	PB(FtraceConfig) ftrace;
	PB(FtraceConfig__CompactSchedConfig) sched;
};

/* Expresses the request as Perfetto's configuration, as far as possible. */
static void config_add_ftrace(struct config_list *l, struct config_ftrace *c,
			      const struct trace_info *info, const struct perfetto_options *o)
{
	const Traced__Capture__Header *h = info->header;
	PB(FtraceConfig) *ftrace = &c->ftrace;

	perfetto__protos__data_source_config__init(&c->source.config);
	perfetto__protos__ftrace_config__init(ftrace);
	perfetto__protos__ftrace_config__compact_sched_config__init(&c->sched);
	ftrace->has_buffer_size_kb = h->request->buffer_bytes != 0;
	ftrace->buffer_size_kb = (uint32_t)(h->request->buffer_bytes >> 10);
	c->sched.has_enabled = true;
	c->sched.enabled = !o->plain_sched;
	ftrace->compact_sched = &c->sched;
	ftrace->has_symbolize_ksyms = true;
	ftrace->symbolize_ksyms = event_table_has_symbols(info->events);
	ftrace->has_denser_generic_event_encoding = true;
	ftrace->denser_generic_event_encoding = !o->legacy_generic;
	ftrace->has_enable_function_graph = ftrace->enable_function_graph =
		strcmp(h->tracer, "function_graph") == 0;
	ftrace->has_preserve_ftrace_buffer = ftrace->preserve_ftrace_buffer = h->request->ring;
	ftrace->has_use_monotonic_raw_clock = ftrace->use_monotonic_raw_clock =
		strcmp(h->trace_clock, "mono_raw") == 0;
	ftrace->n_tids_to_trace = h->request->n_pids;
	ftrace->tids_to_trace = (uint32_t *)h->request->pids;
	c->source.config.ftrace_config = ftrace;
	config_list_add(l, &c->source, "linux.ftrace");
}

static void config_set_period(const struct poll_plan *plan, unsigned source,
			      protobuf_c_boolean *has, uint32_t *ms)
{
	*has = plan->interval_ns[source] != 0;
	*ms = (uint32_t)MIN(plan->interval_ns[source] / NSEC_PER_MSEC, UINT32_MAX);
}

/* True if the recording polled files of the whole system. */
static bool config_fill_sys_stats(PB(SysStatsConfig) * c, const struct poll_plan *plan)
{
	config_set_period(plan, POLL_MEMINFO, &c->has_meminfo_period_ms, &c->meminfo_period_ms);
	config_set_period(plan, POLL_VMSTAT, &c->has_vmstat_period_ms, &c->vmstat_period_ms);
	config_set_period(plan, POLL_STAT, &c->has_stat_period_ms, &c->stat_period_ms);
	config_set_period(plan, POLL_CPUFREQ, &c->has_cpufreq_period_ms, &c->cpufreq_period_ms);
	config_set_period(plan, POLL_PSI, &c->has_psi_period_ms, &c->psi_period_ms);
	config_set_period(plan, POLL_THERMAL, &c->has_thermal_period_ms, &c->thermal_period_ms);
	config_set_period(plan, POLL_DISKSTATS, &c->has_diskstat_period_ms, &c->diskstat_period_ms);
	return c->has_meminfo_period_ms || c->has_vmstat_period_ms || c->has_stat_period_ms ||
	       c->has_cpufreq_period_ms || c->has_psi_period_ms || c->has_thermal_period_ms ||
	       c->has_diskstat_period_ms;
}

struct config_polls {
	struct config_source system, process;
	PB(SysStatsConfig) stats;
	PB(ProcessStatsConfig) processes;
};

static void config_add_polls(struct config_list *l, struct config_polls *c,
			     const Traced__Capture__Request *request)
{
	struct poll_plan plan = { 0 };

	/* A text with a group that only a newer traced knows is left out. */
	for (size_t i = 0; i < request->n_polls; i++)
		poll_plan_add(&plan, request->polls[i], NULL);
	perfetto__protos__data_source_config__init(&c->system.config);
	perfetto__protos__data_source_config__init(&c->process.config);
	perfetto__protos__sys_stats_config__init(&c->stats);
	perfetto__protos__process_stats_config__init(&c->processes);
	if (config_fill_sys_stats(&c->stats, &plan)) {
		c->system.config.sys_stats_config = &c->stats;
		config_list_add(l, &c->system, "linux.sys_stats");
	}
	config_set_period(&plan, POLL_PROCESS_MEMORY, &c->processes.has_proc_stats_poll_ms,
			  &c->processes.proc_stats_poll_ms);
	if (c->processes.has_proc_stats_poll_ms) {
		c->process.config.process_stats_config = &c->processes;
		config_list_add(l, &c->process, "linux.process_stats");
	}
}

/* PerfEvents.Counter of an event of perf_event_open(2); 0: none. */
static uint32_t config_perf_counter(uint32_t type, uint64_t config)
{
	static const uint8_t software[] = {
		[PERF_COUNT_SW_CPU_CLOCK] = 1,	     [PERF_COUNT_SW_PAGE_FAULTS] = 2,
		[PERF_COUNT_SW_TASK_CLOCK] = 3,	     [PERF_COUNT_SW_CONTEXT_SWITCHES] = 4,
		[PERF_COUNT_SW_CPU_MIGRATIONS] = 5,  [PERF_COUNT_SW_PAGE_FAULTS_MIN] = 6,
		[PERF_COUNT_SW_PAGE_FAULTS_MAJ] = 7,
	};

	/* Upstream's order of hardware events is the kernel's. */
	if (type == PERF_TYPE_HARDWARE && config <= PERF_COUNT_HW_REF_CPU_CYCLES)
		return 10 + (uint32_t)config;
	return type == PERF_TYPE_SOFTWARE && config < ARRAY_SIZE(software) ? software[config] : 0;
}

struct config_samples {
	struct config_source source;
	PB(PerfEventConfig) perf;
	PB(PerfEventConfig__CallstackSampling) stacks;
	PB(PerfEvents__Timebase) timebase;
	PB(PerfEvents__RawEvent) raw;
};

static void config_add_samples(struct config_list *l, struct config_samples *c,
			       const Traced__Capture__Sampler *sampler)
{
	perfetto__protos__data_source_config__init(&c->source.config);
	perfetto__protos__perf_event_config__init(&c->perf);
	perfetto__protos__perf_events__timebase__init(&c->timebase);
	c->timebase.has_frequency = true;
	c->timebase.frequency = sampler->hz;
	c->timebase.name = sampler->event;
	c->timebase.counter = config_perf_counter(sampler->type, sampler->config);
	c->timebase.has_counter = c->timebase.counter != 0;
	if (!c->timebase.has_counter) {
		perfetto__protos__perf_events__raw_event__init(&c->raw);
		c->raw.has_type = c->raw.has_config = true;
		c->raw.type = sampler->type;
		c->raw.config = sampler->config;
		c->timebase.raw_event = &c->raw;
	}
	c->perf.timebase = &c->timebase;
	if (sampler->sample_type & PERF_SAMPLE_CALLCHAIN) {
		perfetto__protos__perf_event_config__callstack_sampling__init(&c->stacks);
		c->stacks.has_kernel_frames = c->stacks.kernel_frames = true;
		c->stacks.has_user_frames = true;
		c->stacks.user_frames = UNWIND_FRAME_POINTER;
		c->perf.callstack_sampling = &c->stacks;
	}
	c->source.config.perf_event_config = &c->perf;
	config_list_add(l, &c->source, "linux.perf");
}

int pf_put_config(const struct trace_info *info, const struct perfetto_options *o, struct buf *out)
{
	struct config_list list = { 0 };
	struct config_ftrace ftrace;
	struct config_polls polls;
	struct config_samples samples;
	PB(TraceConfig) trace = PERFETTO__PROTOS__TRACE_CONFIG__INIT;
	struct pf_packet packet = { .field = PACKET_TRACE_CONFIG, .message = &trace.base };
	const Traced__Capture__Request *request = info->header->request;
	_cleanup_free_ char **events = NULL;

	if (!request)
		return 0;
	events = calloc(request->n_events + 1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	for (size_t i = 0; i < request->n_events; i++)
		events[i] = request->events[i]->glob;
	config_add_ftrace(&list, &ftrace, info, o);
	ftrace.ftrace.n_ftrace_events = request->n_events;
	ftrace.ftrace.ftrace_events = events;
	config_add_polls(&list, &polls, request);
	if (info->sampler)
		config_add_samples(&list, &samples, info->sampler);
	trace.n_data_sources = list.count;
	trace.data_sources = list.sources;
	trace.has_duration_ms = request->duration_ns != 0;
	trace.duration_ms = (uint32_t)(request->duration_ns / NSEC_PER_MSEC);
	if (*request->name)
		trace.unique_session_name = request->name;
	trace.has_compression_type = o->compression == PERFETTO_DEFLATE;
	trace.compression_type =
		PERFETTO__PROTOS__TRACE_CONFIG__COMPRESSION_TYPE__COMPRESSION_TYPE_DEFLATE;
	return pf_put_packet(&packet, out);
}
