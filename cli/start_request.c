/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "start_request.h"

#include <signal.h>
#include <string.h>

#include "kernel/probe.h"

/* Without events, the daemon uses those of its configuration. */
static int start_fill_events(struct start_request *s, const struct options *o)
{
	s->specs = calloc(o->event_count ?: 1, sizeof(*s->specs));
	s->spec_list = calloc(o->event_count ?: 1, sizeof(*s->spec_list));
	if (!s->specs || !s->spec_list)
		return -ENOMEM;
	for (size_t i = 0; i < o->event_count; i++) {
		Traced__Control__EventSpec *spec = &s->specs[i];

		*spec = (Traced__Control__EventSpec)TRACED__CONTROL__EVENT_SPEC__INIT;
		spec->glob = (char *)o->events[i].glob;
		if (o->events[i].filter)
			spec->filter = (char *)o->events[i].filter;
		s->spec_list[i] = spec;
	}
	s->message.events = s->spec_list;
	s->message.n_events = o->event_count;
	return 0;
}

static int start_fill_triggers(struct start_request *s, const struct options *o)
{
	s->triggers = calloc(o->trigger_count + 1, sizeof(*s->triggers));
	s->trigger_list = calloc(o->trigger_count + 1, sizeof(*s->trigger_list));
	if (!s->triggers || !s->trigger_list)
		return -ENOMEM;
	for (size_t i = 0; i < o->trigger_count; i++) {
		Traced__Control__EventTrigger *t = &s->triggers[i];

		*t = (Traced__Control__EventTrigger)TRACED__CONTROL__EVENT_TRIGGER__INIT;
		if (o->triggers[i].event)
			t->event = (char *)o->triggers[i].event;
		t->probe = (uint32_t)o->triggers[i].probe;
		t->action = (char *)o->triggers[i].action;
		s->trigger_list[i] = t;
	}
	s->message.triggers = s->trigger_list;
	s->message.n_triggers = o->trigger_count;
	return 0;
}

static int start_check_alive(const int32_t *tasks, size_t count, const char *option,
			     const char *what, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		if (kill(tasks[i], 0) == 0 || errno != ESRCH)
			continue;
		error_set(err, -ESRCH, "%s %d: no such %s", option, (int)tasks[i], what);
		return error_hint(err, "%s",
				  strcmp(option, "-P") == 0
					  ? "pgrep NAME shows process ids"
					  : "ps -L -p PID shows the threads of a process (LWP)");
	}
	return 0;
}

static int start_fill_pids(struct start_request *s, const struct options *o, pid_t child,
			   struct error *err)
{
	int r = start_check_alive(o->pids, o->pid_count, "-P", "process", err);

	if (r == 0)
		r = start_check_alive(o->threads, o->thread_count, "--thread", "thread", err);
	if (r < 0)
		return r;
	s->pids = calloc(o->thread_count + 1, sizeof(*s->pids));
	if (!s->pids)
		return error_errno(err, -ENOMEM, "--thread");
	for (size_t i = 0; i < o->thread_count; i++)
		s->pids[s->message.n_pids++] = o->threads[i];
	if (o->follow && o->command)
		s->pids[s->message.n_pids++] = child;
	s->message.pids = s->pids;
	s->message.processes = o->pids;
	s->message.n_processes = o->pid_count;
	s->message.follow_forks = o->follow;
	return 0;
}

static int start_fill_probes(struct start_request *s, const struct options *o, struct error *err)
{
	s->probes = calloc(o->probe_count + 1, sizeof(*s->probes));
	s->probe_list = calloc(o->probe_count + 1, sizeof(*s->probe_list));
	if (!s->probes || !s->probe_list)
		return error_errno(err, -ENOMEM, "the probes");
	for (size_t i = 0; i < o->probe_count; i++) {
		Traced__Control__Probe *p = &s->probes[i];
		int r;

		*p = (Traced__Control__Probe)TRACED__CONTROL__PROBE__INIT;
		r = probe_definition(&p->definition, &o->probes[i], err);
		if (r < 0)
			return r;
		p->kind = (Traced__Control__Probe__Kind)o->probes[i].kind;
		if (o->probes[i].filter)
			p->filter = (char *)o->probes[i].filter;
		s->probe_list[s->message.n_probes++] = p;
	}
	s->message.probes = s->probe_list;
	return 0;
}

int start_request_init(struct start_request *ret, const struct options *o, pid_t child,
		       struct error *err)
{
	_cleanup_start_request_ struct start_request s = { 0 };
	int r;

	s.message = (Traced__Control__Start)TRACED__CONTROL__START__INIT;
	r = start_fill_events(&s, o);
	if (r == 0)
		r = start_fill_triggers(&s, o);
	if (r < 0)
		return error_errno(err, r, "the events");
	r = start_fill_pids(&s, o, child, err);
	if (r == 0)
		r = start_fill_probes(&s, o, err);
	if (r == 0)
		r = sql_request_fill(&s.sql, o, err);
	if (r < 0)
		return r;
	if (o->tracer)
		s.message.tracer = (char *)o->tracer;
	s.message.functions = (char **)o->functions.items;
	s.message.n_functions = o->functions.count;
	s.message.functions_not = (char **)o->not_functions.items;
	s.message.n_functions_not = o->not_functions.count;
	s.message.graph_roots = (char **)o->graph_roots.items;
	s.message.n_graph_roots = o->graph_roots.count;
	s.message.options = (char **)o->trace_options.items;
	s.message.n_options = o->trace_options.count;
	s.message.conditions = (char **)o->on.items;
	s.message.n_conditions = o->on.count;
	s.message.tracer_options = (char **)o->tracer_options.items;
	s.message.n_tracer_options = o->tracer_options.count;
	s.message.sql = s.sql.list;
	s.message.n_sql = s.sql.count;
	s.message.hists = (char **)o->hists.items;
	s.message.n_hists = o->hists.count;
	if (s.sql.hist) {
		/* It moves with the request. */
		s.hist = calloc(1, sizeof(*s.hist));
		if (!s.hist)
			return error_errno(err, -ENOMEM, "the histogram");
		*s.hist = s.sql.hist;
		s.message.hists = s.hist;
		s.message.n_hists = 1;
	}
	s.message.stop_us = o->stop_us;
	s.message.graph_depth = o->graph_depth;
	s.message.top_level = o->top_level;
	if (o->name)
		s.message.name = (char *)o->name;
	if (o->clock)
		s.message.clock = (char *)o->clock;
	if (o->cpus)
		s.message.cpus = (char *)o->cpus;
	if (o->profile)
		s.message.profile = (char *)o->profile;
	s.message.buffer_bytes = o->buffer_bytes;
	s.message.duration_ns = o->duration_ns;
	s.message.max_cpu_permille = o->max_cpu_permille;
	s.message.max_memory = o->max_memory;
	s.message.shed = (char **)o->shed.items;
	s.message.n_shed = o->shed.count;
	s.message.polls = (char **)o->polls.items;
	s.message.n_polls = o->polls.count;
	s.message.ring = o->ring;
	s.message.sample_hz = o->sample_hz;
	if (o->sample_event)
		s.message.sample_event = (char *)o->sample_event;
	s.message.call_graph = o->call_graph;
	s.message.tgid = o->tgid;
	if (o->command) {
		s.message.command = o->command;
		while (o->command[s.message.n_command])
			s.message.n_command++;
	}
	*ret = s;
	s = (struct start_request){ 0 };
	return 0;
}

void start_request_deinit(struct start_request *s)
{
	free(s->specs);
	free(s->spec_list);
	free(s->triggers);
	free(s->trigger_list);
	free(s->pids);
	for (size_t i = 0; i < s->message.n_probes; i++)
		free(s->probes[i].definition);
	free(s->probes);
	free(s->probe_list);
	free(s->hist);
	sql_request_deinit(&s->sql);
	*s = (struct start_request){ 0 };
}
