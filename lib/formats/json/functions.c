/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/functions.h"

#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "formats/json/function_stack.h"
#include "print/funcgraph.h"

#define IDLE_CPUS 8192

struct json_functions {
	const struct trace_info *info;
	enum function_view view;
	function_emit_t *emit;
	void *userdata;
	struct error *err;		/* of the current call */
	int failure;			/* first error of functions_emit() */
	struct function_stacks *stacks; /* owned */
	struct function_hits hits;
	uint64_t last_ts;	       /* time of the last event */
	uint64_t lost_ts;	       /* time of the last event before a loss; 0: none */
	uint64_t idle[IDLE_CPUS / 64]; /* bit set of CPUs whose idle task has an element */
};

int json_functions_new(struct json_functions **ret, const struct trace_info *info,
		       enum function_view view, function_emit_t *emit, void *userdata)
{
	struct json_functions *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->info = info;
	f->view = view;
	f->emit = emit;
	f->userdata = userdata;
	f->hits = function_hits_of(info);
	if (function_stacks_new(&f->stacks) < 0)
		return json_functions_free(f), -ENOMEM;
	*ret = f;
	return 0;
}

struct json_functions *json_functions_free(struct json_functions *f)
{
	if (f) {
		function_stacks_free(f->stacks);
		free(f);
	}
	return NULL;
}

static void functions_see_idle(struct json_functions *f, uint32_t cpu)
{
	if (cpu < IDLE_CPUS)
		f->idle[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

bool json_functions_has(const struct json_functions *f, const struct trace_event *ev)
{
	return ev->desc && (ev->desc->funcgraph || ev->desc == f->hits.event);
}

bool json_functions_pass_hit(struct json_functions *f, const struct trace_event *ev)
{
	if (ev->desc != f->hits.event || f->view != FUNCTION_INSTANTS)
		return false;
	f->last_ts = ev->rec.ts;
	if (unlikely(ev->pid <= 0))
		functions_see_idle(f, ev->cpu);
	return true;
}

void json_functions_name_idle(const struct json_functions *f, struct buf *out)
{
	const struct host_numbers *host = f->info->host;

	for (unsigned cpu = 0; cpu < IDLE_CPUS; cpu++) {
		if (!(f->idle[cpu / 64] & UINT64_C(1) << cpu % 64))
			continue;
		buf_printf(out,
			   ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"cat\":\"__metadata\","
			   "\"pid\":0,\"tid\":%d,\"args\":{\"name\":\"",
			   function_idle_tid(host, (int32_t)(FUNCTION_IDLE_TID + cpu)));
		if (host) {
			json_escape(out, host->label, strlen(host->label));
			buf_puts(out, ": ");
		}
		buf_printf(out, "idle, CPU %u\"}}", cpu);
	}
}

static void functions_emit(struct json_functions *f, const struct function_element *e,
			   const void *more)
{
	if (unlikely(e->flags & FUNCTION_IDLE))
		functions_see_idle(f, (uint32_t)(e->tid - FUNCTION_IDLE_TID));
	if (likely(f->failure == 0))
		f->failure = f->emit(f->userdata, e, more, f->err);
}

/*
 * At equal times on one thread, trace processor uses its own order: ends, complete slices by
 * falling length, begins. Equal times are common: in 6.1, an interrupt's record within another
 * record gets that one's time, and some clocks are coarse. So each slice begins at least 1 ns after
 * the previous one, and ends after the begin of what it encloses.
 */
static uint64_t functions_next_time(struct function_stack *t, uint64_t ts, bool begins)
{
	t->now = MAX(MAX(ts, t->now), t->begun + 1);
	if (begins)
		t->begun = t->now;
	return t->now;
}

/* Takes the return value if the exit has one. */
static void functions_take_retval(const struct json_functions *f, const struct funcgraph *exit,
				  struct function_element *e)
{
	if (!exit->has_retval || !(f->info->text.graph & GRAPH_RETVAL))
		return;
	e->flags |= FUNCTION_RETVAL;
	e->arg = exit->retval;
}

/* Takes the arguments and the return address if the entry has any. */
static void functions_take_values(const struct json_functions *f, const struct funcgraph *entry,
				  struct function_element *e, struct function_values *ret)
{
	size_t count = MIN(entry->arg_count, (size_t)FUNCTION_WORDS_MAX);

	if (likely(!count && !entry->has_retaddr))
		return;
	e->flags |= FUNCTION_VALUES;
	e->count = (uint16_t)count;
	*ret = (struct function_values){ .retaddr = entry->retaddr };
	if (count)
		memcpy(ret->words, entry->args, count * f->info->header->word_size);
}

/* entry: NULL if lost. */
static void functions_put_slice(struct json_functions *f, const struct trace_event *ev,
				const struct funcgraph *entry, const struct funcgraph *exit,
				uint64_t ts, uint64_t dur)
{
	struct function_element e = function_element_of(FUNCTION_CALL, ev, ts);
	struct function_values values;

	e.dur = dur;
	e.func = exit->func;
	if (entry)
		functions_take_values(f, entry, &e, &values);
	else
		e.flags |= FUNCTION_ENTRY_MISSING;
	functions_take_retval(f, exit, &e);
	functions_emit(f, &e, &values);
}

static void functions_put_begin(struct json_functions *f, const struct trace_event *ev,
				const struct funcgraph *entry, uint64_t ts)
{
	struct function_element e = function_element_of(FUNCTION_BEGIN, ev, ts);
	struct function_values values;

	e.func = entry->func;
	functions_take_values(f, entry, &e, &values);
	functions_emit(f, &e, &values);
}

/* exit: NULL if missing. */
static void functions_put_end(struct json_functions *f, const struct trace_event *ev, uint64_t func,
			      uint64_t ts, const struct funcgraph *exit)
{
	struct function_element e = function_element_of(FUNCTION_END, ev, ts);

	e.func = func;
	if (exit)
		functions_take_retval(f, exit, &e);
	else
		e.flags |= FUNCTION_EXIT_MISSING;
	functions_emit(f, &e, NULL);
}

/* Closes the open functions from `depth` on, whose exits were not seen. */
static void functions_close_from(struct json_functions *f, const struct trace_event *ev,
				 struct function_stack *t, uint32_t depth, uint64_t ts)
{
	for (uint32_t i = t->depth; i-- > depth;) {
		struct level *l = &t->levels[i];

		if (l->func) {
			functions_put_end(f, ev, l->func, functions_next_time(t, ts, false), NULL);
			l->func = 0;
		}
	}
	t->depth = MIN(t->depth, depth);
}

/*
 * Duration by the kernel's own measurement, which excludes writing the record; never longer than
 * seen.
 */
static uint64_t functions_duration(const struct json_functions *f, const struct funcgraph *exit,
				   uint64_t seen)
{
	uint64_t measured = exit->rettime - exit->calltime;

	return f->info->text.no_sleep_time ? seen : MIN(measured, seen);
}

static void functions_graph_entry(struct json_functions *f, const struct trace_event *ev,
				  struct function_stack *t, const struct funcgraph *entry)
{
	uint32_t depth = (uint32_t)MAX(entry->depth, 0);
	struct funcgraph exit;
	struct level *l;
	uint64_t ts;

	/* Functions of this depth or deeper have ended; keep this depth's history. */
	functions_close_from(f, ev, t, depth + 1, ev->rec.ts);
	if (t->depth > depth && t->levels[depth].func) {
		functions_put_end(f, ev, t->levels[depth].func,
				  functions_next_time(t, ev->rec.ts, false), NULL);
		t->levels[depth].func = 0;
		t->levels[depth].end = t->now;
	}
	if (!function_stack_reach(f->stacks, t, depth))
		return;
	ts = functions_next_time(t, ev->rec.ts, true);
	l = &t->levels[depth];
	l->first = l->first ?: ts;
	if (ev->exit && funcgraph_read(ev->exit->desc, &ev->exit->rec, &exit)) {
		uint64_t seen = MAX(ev->exit->rec.ts, ts) - ts;

		functions_put_slice(f, ev, entry, &exit, ts, functions_duration(f, &exit, seen));
		l->end = t->now = ts + seen;
		t->skips_exit = true;
		return;
	}
	functions_put_begin(f, ev, entry, ts);
	l->func = entry->func;
	l->ts = ts;
}

/*
 * Whether the entry is too old for this exit because a loss removed an exit and an entry in
 * between. The kernel's durations use another clock, and in 6.1 an interrupt's record within
 * another record gets that one's time: so small differences occur without a loss.
 */
static bool functions_is_another_call(const struct json_functions *f, const struct level *l,
				      const struct funcgraph *exit, uint64_t ts)
{
	uint64_t measured = exit->rettime - exit->calltime, seen = MAX(ts, l->ts) - l->ts;

	return l->ts <= f->lost_ts && !f->info->text.no_sleep_time && seen > NSEC_PER_MSEC &&
	       (seen - NSEC_PER_MSEC) / 2 > measured;
}

/* Begin of a function without an entry: it must enclose its callees and nothing else. */
static uint64_t functions_estimate_start(const struct function_stack *t, uint32_t depth,
					 const struct funcgraph *exit, uint64_t ts)
{
	uint64_t measured = exit->rettime - exit->calltime,
		 start = ts > measured ? ts - measured : 0;

	if (depth + 1 < t->depth && t->levels[depth + 1].first)
		start = MIN(start, t->levels[depth + 1].first - 1);
	if (depth < t->depth)
		start = MAX(start, t->levels[depth].end);
	if (depth && depth <= t->depth && t->levels[depth - 1].func)
		start = MAX(start, t->levels[depth - 1].ts);
	return MIN(start, ts);
}

static void functions_graph_exit(struct json_functions *f, const struct trace_event *ev,
				 struct function_stack *t, const struct funcgraph *exit)
{
	uint32_t depth = (uint32_t)MAX(exit->depth, 0);
	struct level *l = depth < t->depth ? &t->levels[depth] : NULL;
	uint64_t ts = ev->rec.ts, start;

	if (l && l->func && l->func == exit->func && !functions_is_another_call(f, l, exit, ts)) {
		uint64_t last = depth + 1 < t->depth ? t->levels[depth + 1].end : l->ts;

		functions_close_from(f, ev, t, depth + 1, ts);
		/* Excludes the exit's own record from the function; includes its callees. */
		start = l->ts + functions_duration(f, exit, MAX(ts, l->ts) - l->ts);
		functions_put_end(f, ev, l->func, functions_next_time(t, MAX(start, last), false),
				  exit);
		l->func = 0;
		l->end = MAX(ts, t->now);
		return;
	}
	start = functions_estimate_start(t, depth, exit, ts);
	for (uint32_t i = t->depth; i-- > depth + 1;)
		if (t->levels[i].func) {
			functions_put_end(f, ev, t->levels[i].func,
					  functions_next_time(t, ts, false), NULL);
			t->levels[i].func = 0;
		}
	if (l && l->func) {
		start = MAX(start, l->ts + 1);
		functions_put_end(f, ev, l->func, start, NULL);
		l->func = 0;
	}
	ts = t->now = MAX(MAX(ts, t->now), start);
	functions_put_slice(f, ev, NULL, exit, start, ts - start);
	t->depth = MIN(t->depth, depth + 1);
	if (function_stack_reach(f->stacks, t, depth)) {
		l = &t->levels[depth];
		l->first = l->first ?: start;
		l->end = ts;
	}
}

static void functions_graph_event(struct json_functions *f, const struct trace_event *ev)
{
	struct function_stack *t = function_stacks_get(f->stacks, function_thread(ev));
	struct funcgraph g;

	if (!t || !funcgraph_read(ev->desc, &ev->rec, &g))
		return;
	if (g.kind == FUNCGRAPH_ENTRY)
		functions_graph_entry(f, ev, t, &g);
	else if (t->skips_exit)
		t->skips_exit = false;
	else
		functions_graph_exit(f, ev, t, &g);
}

/*
 * Writes a slice from the first call to the last, named after the caller. A single call is no run.
 */
static void functions_put_run(struct json_functions *f, const struct trace_event *ev,
			      struct function_stack *t)
{
	struct call_run *run = t->run;
	bool single = run->calls == 1;
	struct function_element e =
		function_element_of(single ? FUNCTION_HIT : FUNCTION_RUN, ev, run->first_ts);

	e.at = run->first_ts;
	if (single) {
		e.func = run->functions[0].func;
		e.arg = run->parent;
	} else {
		e.count = (uint16_t)run->count;
		e.ts = functions_next_time(t, run->first_ts, true);
		e.func = run->parent;
		e.arg = run->calls;
		t->now = MAX(run->last_ts, e.ts);
		e.dur = t->now - e.ts;
	}
	functions_emit(f, &e, run->functions);
	run->calls = 0;
}

/* Calls further apart than this are no run. */
#define RUN_GAP (1000 * NSEC_PER_USEC)

static void functions_add_to_run(struct call_run *run, uint64_t ip, uint64_t ts)
{
	run->last_ts = MAX(run->last_ts, ts);
	run->calls++;
	for (unsigned i = 0; i < run->count; i++) {
		if (run->functions[i].func == ip) {
			run->functions[i].calls++;
			return;
		}
	}
	if (run->count == FUNCTION_CALLS_MAX)
		return;
	run->functions[run->count].func = ip;
	run->functions[run->count++].calls = 1;
}

static void functions_group_hit(struct json_functions *f, const struct trace_event *ev,
				const struct function_element *hit, uint64_t caller)
{
	struct function_stack *t = function_stacks_get(f->stacks, hit->tid);
	struct call_run *run;

	if (t && !t->run)
		t->run = calloc(1, sizeof(*t->run));
	if (!t || !t->run) {
		functions_emit(f, hit, NULL);
		return;
	}
	run = t->run;
	if (run->calls && (run->parent != caller || run->count == FUNCTION_CALLS_MAX ||
			   hit->ts - run->last_ts > RUN_GAP))
		functions_put_run(f, ev, t);
	if (!run->calls)
		*run = (struct call_run){ .parent = caller, .first_ts = hit->ts };
	functions_add_to_run(run, hit->func, hit->ts);
}

/* Start of the function at that address. */
static uint64_t functions_name_at(const struct json_functions *f, uint64_t address)
{
	struct symbol s;

	return event_table_find_symbol(f->info->events, address, &s) ? s.address : address;
}

static void functions_hit_event(struct json_functions *f, const struct trace_event *ev)
{
	struct function_element hit;

	if (!function_hit_read(&f->hits, ev, &hit))
		return;
	if (f->view == FUNCTION_SLICES && hit.arg)
		functions_group_hit(f, ev, &hit, functions_name_at(f, hit.arg));
	else
		functions_emit(f, &hit, NULL);
}

int json_functions_event(struct json_functions *f, const struct trace_event *ev, struct error *err)
{
	f->err = err;
	f->failure = 0;
	f->last_ts = ev->rec.ts;
	if (ev->desc->funcgraph)
		functions_graph_event(f, ev);
	else
		functions_hit_event(f, ev);
	return f->failure;
}

void json_functions_loss(struct json_functions *f, uint64_t ts)
{
	f->lost_ts = MAX(f->lost_ts, ts);
}

int json_functions_end(struct json_functions *f, struct error *err)
{
	f->err = err;
	f->failure = 0;
	for (struct function_stack *t = function_stacks_first(f->stacks); t; t = t->next) {
		const struct trace_event ev = {
			.pid = t->tid >= FUNCTION_IDLE_TID ? 0 : t->tid,
			.cpu = t->tid >= FUNCTION_IDLE_TID ? (uint32_t)(t->tid - FUNCTION_IDLE_TID)
							   : 0,
			.rec.ts = f->last_ts,
		};

		if (t->run && t->run->calls)
			functions_put_run(f, &ev, t);
		/* Later times have no relation to these; Trace Viewer drops slices left open. */
		functions_close_from(f, &ev, t, 0, f->last_ts);
	}
	return f->failure;
}
