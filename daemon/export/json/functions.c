/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/json/functions.h"

#include <inttypes.h>
#include <string.h>

#include "export/bytes.h"
#include "export/json/function_stack.h"
#include "export/json/json.h"
#include "export/text/line.h"
#include "print/funcgraph.h"
#include "print/printer.h"
#include "util/io.h"
#include "util/plain.h"

#define THREADS 256 /* a power of two */

/* The idle task is one number and as many threads as there are CPUs: numbers above PID_MAX_LIMIT.
 */
#define IDLE_TID 4194304

/* The members that name a thread, as they are written. */
struct thread_text {
	int32_t tid;
	uint64_t from_ts, until_ts;
	uint32_t len; /* 0: empty */
	char text[64];
};

struct json_functions {
	const struct trace_info *info;
	struct printer *printer;
	struct json_spool *spool;
	enum function_view view;
	struct function_stacks *stacks; /* owned */
	const struct event *function;
	const struct field *ip, *parent;
	uint64_t last_ts; /* of the last event */
	uint64_t lost_ts; /* of the last event before events were missing; 0: none were */
	uint64_t idle_named[8192 / 64]; /* a bit for each CPU */
	struct thread_text threads[THREADS];
};

int json_functions_new(struct json_functions **ret, const struct trace_info *info,
		       struct printer *printer, struct json_spool *spool, enum function_view view)
{
	struct json_functions *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->info = info;
	f->printer = printer;
	f->spool = spool;
	f->view = view;
	f->function = event_table_find_name(info->events, "ftrace", "function");
	f->ip = event_field(f->function, "ip");
	f->parent = event_field(f->function, "parent_ip");
	if (!f->ip || !f->parent)
		f->function = NULL;
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

bool json_functions_has(const struct json_functions *f, const struct trace_event *ev)
{
	return ev->desc && (ev->desc->funcgraph || ev->desc == f->function);
}

/* A text that stands behind start, which is w: escaped where it must be. */
static char *escape(struct buf *b, char *start, char *w)
{
	_cleanup_buf_ struct buf copy = BUF_INIT;
	size_t at = (size_t)(start - b->data);

	if (likely(is_plain(start, (size_t)(w - start))))
		return w;
	buf_append(&copy, start, (size_t)(w - start));
	b->len = at;
	json_escape(b, copy.data, copy.len);
	/* As much room as there was. */
	return buf_reserve(b, 1024) ? b->data + b->len : NULL;
}

/* Microseconds with all three decimals. */
static char *put_us(char *w, uint64_t ns)
{
	unsigned rest = (unsigned)(ns % 1000);

	w = format_dec(w, ns / 1000);
	*w++ = '.';
	*w++ = (char)('0' + rest / 100);
	*w++ = (char)('0' + rest / 10 % 10);
	*w++ = (char)('0' + rest % 10);
	return w;
}

static int32_t thread_of(const struct trace_event *ev)
{
	return ev->pid > 0 ? ev->pid : (int32_t)(IDLE_TID + (ev->cpu & 0xffff));
}

static void name_idle(struct json_functions *f, uint32_t cpu)
{
	if (cpu >= 8192 || f->idle_named[cpu / 64] & UINT64_C(1) << cpu % 64)
		return;
	f->idle_named[cpu / 64] |= UINT64_C(1) << cpu % 64;
	buf_printf(json_spool_buf(f->spool),
		   ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"cat\":\"__metadata\",\"pid\":0,"
		   "\"tid\":%u,\"args\":{\"name\":\"idle, CPU %u\"}}",
		   IDLE_TID + cpu, cpu);
}

_cold_ static void fill_thread(struct json_functions *f, struct thread_text *t,
			       const struct trace_event *ev, int32_t tid)
{
	struct task *task =
		ev->pid > 0 ? task_table_find(f->info->tasks, ev->pid, ev->rec.ts) : NULL;
	int32_t pid = ev->pid > 0 ? tid : 0;

	t->tid = tid;
	t->from_ts = 0;
	t->until_ts = UINT64_MAX;
	if (task) {
		task_see(task);
		t->from_ts = task_is_oldest(task) ? 0 : task->from_ts;
		t->until_ts = task_table_until(f->info->tasks, task);
		pid = task->tgid ?: tid;
	}
	t->len = (uint32_t)snprintf(t->text, sizeof(t->text), ",\"pid\":%d,\"tid\":%d,\"ts\":", pid,
				    tid);
	if (ev->pid <= 0)
		name_idle(f, ev->cpu);
}

static const struct thread_text *thread_text(struct json_functions *f, const struct trace_event *ev)
{
	int32_t tid = thread_of(ev);
	struct thread_text *t = &f->threads[(uint32_t)tid & (THREADS - 1)];

	if (unlikely(t->tid != tid || !t->len || ev->rec.ts < t->from_ts ||
		     ev->rec.ts >= t->until_ts))
		fill_thread(f, t, ev, tid);
	return t;
}

/* Room for an element without what is long in it by number. */
#define ELEMENT_MAX (2 * SYMBOL_TEXT_MAX + 1024)

/*
 * Begins an element up to and with its time: what, as far as the name; func 0: none.
 * Returns where to write on, or NULL.
 */
static char *begin(struct json_functions *f, const struct trace_event *ev, const char *what,
		   uint64_t func, uint64_t ts)
{
	const struct thread_text *t = thread_text(f, ev);
	struct buf *b = json_spool_buf(f->spool);
	char *w = buf_reserve(b, ELEMENT_MAX), *name;

	if (unlikely(!w))
		return NULL;
	w = stpcpy(w, what);
	if (func) {
		name = w;
		w = escape(b, name, print_symbol(f->printer, w, func, 's'));
		if (unlikely(!w))
			return NULL;
		*w++ = '"';
	}
	memcpy(w, t->text, sizeof(t->text));
	return put_us(w + t->len, ts);
}

static void end(struct json_functions *f, char *w, const char *text)
{
	struct buf *b = json_spool_buf(f->spool);

	w = stpcpy(w, text);
	b->len = (size_t)(w - b->data);
}

#define SLICE(phase) ",\n{\"ph\":\"" phase "\",\"cat\":\"func\",\"name\":\""

/* ,"args":{...}: what the exit tells; nothing if that is nothing. */
static char *put_exit_args(const struct json_functions *f, char *w, const struct funcgraph *exit,
			   bool entry_lost)
{
	bool retval = exit->has_retval && (f->info->text.graph & GRAPH_RETVAL);

	if (!retval && !entry_lost)
		return w;
	w = stpcpy(w, entry_lost ? ",\"args\":{\"entry\":\"missing\"" : ",\"args\":{");
	if (retval) {
		w = stpcpy(w, entry_lost ? ",\"ret\":\"0x" : "\"ret\":\"0x");
		w = format_hex(w, exit->retval);
		*w++ = '"';
	}
	*w++ = '}';
	return w;
}

/*
 * Trace processor puts what has one time on one thread into its own order: ends, complete slices
 * by falling length, begins. What an interrupt wrote in the midst of another record has
 * that one's time (6.1), and some clocks are coarse: so each slice begins 1 ns after the one
 * before it at least, and ends later than what it encloses began.
 */
static uint64_t next_time(struct function_stack *t, uint64_t ts, bool begins)
{
	t->now = MAX(MAX(ts, t->now), t->begun + 1);
	if (begins)
		t->begun = t->now;
	return t->now;
}

static void put_slice(struct json_functions *f, const struct trace_event *ev,
		      const struct funcgraph *exit, uint64_t ts, uint64_t dur, bool entry_lost)
{
	char *w = begin(f, ev, SLICE("X"), exit->func, ts);

	if (!w)
		return;
	w = stpcpy(w, ",\"dur\":");
	w = put_us(w, dur);
	end(f, put_exit_args(f, w, exit, entry_lost), "}");
}

static void put_begin(struct json_functions *f, const struct trace_event *ev,
		      const struct funcgraph *entry, uint64_t ts)
{
	char *w = begin(f, ev, SLICE("B"), entry->func, ts);

	if (w)
		end(f, w, "}");
}

static void put_end(struct json_functions *f, const struct trace_event *ev, uint64_t ts,
		    const struct funcgraph *exit)
{
	char *w = begin(f, ev, ",\n{\"ph\":\"E\"", 0, ts);

	if (!w)
		return;
	if (exit)
		end(f, put_exit_args(f, w, exit, false), "}");
	else
		end(f, w, ",\"args\":{\"exit\":\"missing\"}}");
}

/* Ends what is open from depth on, whose exit was not seen: by then it was over. */
static void close_from(struct json_functions *f, const struct trace_event *ev,
		       struct function_stack *t, uint32_t depth, uint64_t ts)
{
	for (uint32_t i = t->depth; i-- > depth;) {
		struct level *l = &t->levels[i];

		if (l->func) {
			put_end(f, ev, next_time(t, ts, false), NULL);
			l->func = 0;
		}
	}
	t->depth = MIN(t->depth, depth);
}

/* By the kernel's own reading, without what it took to write the record; never longer than seen. */
static uint64_t duration(const struct json_functions *f, const struct funcgraph *exit,
			 uint64_t seen)
{
	uint64_t told = exit->rettime - exit->calltime;

	return f->info->text.no_sleep_time ? seen : MIN(told, seen);
}

static void graph_entry(struct json_functions *f, const struct trace_event *ev,
			struct function_stack *t, const struct funcgraph *entry)
{
	uint32_t depth = (uint32_t)MAX(entry->depth, 0);
	struct funcgraph exit;
	struct level *l;
	uint64_t ts;

	/* What is open in this depth or deeper is over; what is known of this depth stays. */
	close_from(f, ev, t, depth + 1, ev->rec.ts);
	if (t->depth > depth && t->levels[depth].func) {
		put_end(f, ev, next_time(t, ev->rec.ts, false), NULL);
		t->levels[depth].func = 0;
		t->levels[depth].end = t->now;
	}
	if (!function_stack_reach(f->stacks, t, depth))
		return;
	ts = next_time(t, ev->rec.ts, true);
	l = &t->levels[depth];
	l->first = l->first ?: ts;
	if (funcgraph_read_leaf(f->info->events, &ev->rec, ev->next, entry, &exit)) {
		uint64_t seen = MAX(ev->next->ts, ts) - ts;

		put_slice(f, ev, &exit, ts, duration(f, &exit, seen), false);
		l->end = t->now = ts + seen;
		t->skips_exit = true;
		return;
	}
	put_begin(f, ev, entry, ts);
	l->func = entry->func;
	l->ts = ts;
}

/*
 * Whether an entry is too old to be that of the exit, where events are missing between: then the
 * exit of its own call is among them, and the entry of this one. The kernel measured by another
 * clock; and what an interrupt wrote in the midst of another record has that one's time (6.1), so
 * that the two differ without a loss, too.
 */
static bool is_another_call(const struct json_functions *f, const struct level *l,
			    const struct funcgraph *exit, uint64_t ts)
{
	uint64_t told = exit->rettime - exit->calltime, seen = MAX(ts, l->ts) - l->ts;

	return l->ts <= f->lost_ts && !f->info->text.no_sleep_time && seen > NSEC_PER_MSEC &&
	       (seen - NSEC_PER_MSEC) / 2 > told;
}

/* When a function without an entry began: it encloses what it called, and nothing else. */
static uint64_t estimate_start(const struct function_stack *t, uint32_t depth,
			       const struct funcgraph *exit, uint64_t ts)
{
	uint64_t told = exit->rettime - exit->calltime, start = ts > told ? ts - told : 0;

	if (depth + 1 < t->depth && t->levels[depth + 1].first)
		start = MIN(start, t->levels[depth + 1].first - 1);
	if (depth < t->depth)
		start = MAX(start, t->levels[depth].end);
	if (depth && depth <= t->depth && t->levels[depth - 1].func)
		start = MAX(start, t->levels[depth - 1].ts);
	return MIN(start, ts);
}

static void graph_exit(struct json_functions *f, const struct trace_event *ev,
		       struct function_stack *t, const struct funcgraph *exit)
{
	uint32_t depth = (uint32_t)MAX(exit->depth, 0);
	struct level *l = depth < t->depth ? &t->levels[depth] : NULL;
	uint64_t ts = ev->rec.ts, start;

	if (l && l->func && l->func == exit->func && !is_another_call(f, l, exit, ts)) {
		uint64_t last = depth + 1 < t->depth ? t->levels[depth + 1].end : l->ts;

		close_from(f, ev, t, depth + 1, ts);
		/* What the exit's own record took is not the function's; what it called is. */
		start = l->ts + duration(f, exit, MAX(ts, l->ts) - l->ts);
		put_end(f, ev, next_time(t, MAX(start, last), false), exit);
		l->func = 0;
		l->end = MAX(ts, t->now);
		return;
	}
	start = estimate_start(t, depth, exit, ts);
	for (uint32_t i = t->depth; i-- > depth + 1;)
		if (t->levels[i].func) {
			put_end(f, ev, next_time(t, ts, false), NULL);
			t->levels[i].func = 0;
		}
	if (l && l->func) {
		start = MAX(start, l->ts + 1);
		put_end(f, ev, start, NULL);
		l->func = 0;
	}
	ts = t->now = MAX(MAX(ts, t->now), start);
	put_slice(f, ev, exit, start, ts - start, true);
	t->depth = MIN(t->depth, depth + 1);
	if (function_stack_reach(f->stacks, t, depth)) {
		l = &t->levels[depth];
		l->first = l->first ?: start;
		l->end = ts;
	}
}

static void graph_event(struct json_functions *f, const struct trace_event *ev)
{
	struct function_stack *t = function_stacks_get(f->stacks, thread_of(ev));
	struct funcgraph g;

	if (!t || !funcgraph_read(f->info->events, ev->desc, &ev->rec, &g))
		return;
	if (g.kind == FUNCGRAPH_ENTRY)
		graph_entry(f, ev, t, &g);
	else if (t->skips_exit)
		t->skips_exit = false;
	else
		graph_exit(f, ev, t, &g);
}

static char *put_parent(struct json_functions *f, char *w, uint64_t parent)
{
	char *name;

	w = stpcpy(w, ",\"args\":{\"from\":\"");
	name = w;
	w = escape(json_spool_buf(f->spool), name, print_symbol(f->printer, w, parent, 's'));
	if (!w)
		return NULL;
	*w++ = '"';
	return w;
}

static void put_hit(struct json_functions *f, const struct trace_event *ev, uint64_t ip,
		    uint64_t parent)
{
	char *w = begin(f, ev, ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"func\",\"name\":\"", ip,
			ev->rec.ts);

	if (w && parent)
		w = put_parent(f, w, parent);
	if (w)
		end(f, w, parent ? "}}" : "}");
}

/* A slice from the first call to the last; its name is the caller's. One call is no run. */
static void put_run(struct json_functions *f, const struct trace_event *ev,
		    struct function_stack *t)
{
	struct call_run *run = t->run;
	struct trace_event first = *ev;
	struct buf *b = json_spool_buf(f->spool);
	uint64_t ts;
	char *w;

	first.rec.ts = run->first_ts;
	if (run->calls == 1) {
		put_hit(f, &first, run->functions[0].func, run->parent);
		run->calls = 0;
		return;
	}
	ts = next_time(t, run->first_ts, true);
	t->now = MAX(run->last_ts, ts);
	w = begin(f, &first, SLICE("X"), run->parent, ts);
	if (!w)
		return;
	w = stpcpy(w, ",\"dur\":");
	w = put_us(w, t->now - ts);
	w = stpcpy(w, ",\"args\":{\"calls\":");
	w = format_dec(w, run->calls);
	end(f, w, "");
	for (unsigned i = 0; i < run->count; i++) {
		char *name;

		w = buf_reserve(b, ELEMENT_MAX);
		if (!w)
			return;
		w = stpcpy(w, ",\"");
		name = w;
		w = escape(b, name, print_symbol(f->printer, w, run->functions[i].func, 's'));
		if (!w)
			return;
		w = stpcpy(w, "\":");
		end(f, format_dec(w, run->functions[i].calls), "");
	}
	buf_puts(b, "}}");
	run->calls = 0;
}

/* Calls from one place with more time between them are no run. */
#define RUN_GAP (1000 * NSEC_PER_USEC)

static void add_to_run(struct call_run *run, uint64_t ip, uint64_t ts)
{
	run->last_ts = MAX(run->last_ts, ts);
	run->calls++;
	for (unsigned i = 0; i < run->count; i++) {
		if (run->functions[i].func == ip) {
			run->functions[i].calls++;
			return;
		}
	}
	if (run->count == RUN_FUNCTIONS)
		return;
	run->functions[run->count].func = ip;
	run->functions[run->count++].calls = 1;
}

static void group_hit(struct json_functions *f, const struct trace_event *ev, uint64_t ip,
		      uint64_t parent)
{
	struct function_stack *t = function_stacks_get(f->stacks, thread_of(ev));
	struct call_run *run;

	if (t && !t->run)
		t->run = calloc(1, sizeof(*t->run));
	if (!t || !t->run) {
		put_hit(f, ev, ip, parent);
		return;
	}
	run = t->run;
	if (run->calls && (run->parent != parent || run->count == RUN_FUNCTIONS ||
			   ev->rec.ts - run->last_ts > RUN_GAP))
		put_run(f, ev, t);
	if (!run->calls)
		*run = (struct call_run){ .parent = parent, .first_ts = ev->rec.ts };
	add_to_run(run, ip, ev->rec.ts);
}

/* Where the function begins that address is in. */
static uint64_t function_at(const struct json_functions *f, uint64_t address)
{
	struct symbol s;

	return event_table_find_symbol(f->info->events, address, &s) ? s.address : address;
}

static void function_event(struct json_functions *f, const struct trace_event *ev)
{
	uint64_t ip, parent;

	if (!record_read_uint(f->info->events, &ev->rec, f->ip->offset, f->ip->size, &ip) ||
	    !record_read_uint(f->info->events, &ev->rec, f->parent->offset, f->parent->size,
			      &parent))
		return;
	if (f->view == FUNCTION_SLICES && parent)
		group_hit(f, ev, ip, function_at(f, parent));
	else
		put_hit(f, ev, ip, parent);
}

int json_functions_event(struct json_functions *f, const struct trace_event *ev)
{
	f->last_ts = ev->rec.ts;
	if (ev->desc->funcgraph)
		graph_event(f, ev);
	else
		function_event(f, ev);
	return json_spool_settle(f->spool);
}

void json_functions_loss(struct json_functions *f, uint64_t ts)
{
	f->lost_ts = MAX(f->lost_ts, ts);
}

void json_functions_forget(struct json_functions *f)
{
	for (size_t i = 0; i < THREADS; i++)
		f->threads[i].len = 0;
}

int json_functions_end(struct json_functions *f)
{
	struct function_stack *t;
	size_t cursor = 0;

	while ((t = function_stacks_next(f->stacks, &cursor))) {
		const struct trace_event ev = {
			.pid = t->tid >= IDLE_TID ? 0 : t->tid,
			.cpu = t->tid >= IDLE_TID ? (uint32_t)(t->tid - IDLE_TID) : 0,
			.rec.ts = f->last_ts,
		};

		if (t->run && t->run->calls)
			put_run(f, &ev, t);
		/* What comes behind is of other times; Trace Viewer drops it if these are open. */
		close_from(f, &ev, t, 0, f->last_ts);
		if (json_spool_settle(f->spool) < 0)
			return -ENOMEM;
	}
	return 0;
}
