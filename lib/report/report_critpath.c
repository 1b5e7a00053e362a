/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The report `critpath`: what one thread did, backwards from the end of the recording, and for each
 * of its sleeps what the thread that ended it did meanwhile; and so on.
 *
 * 	level 0   T  |-- ran --|------------ slept ------------|- waited -|-- ran --|
 * 	level 1   W            |- ran -|---- slept ----|- ran -|
 * 	level 2   V                    |---- ran ------|
 *
 * The spans of all threads are kept in a ring, each with a link to the one before it of its thread,
 * and sleeps with a link to their waker's. So the walk back at the end costs nothing but its rows.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/scheduler.h"

/* About 32 MiB of spans; less with many tasks, which need memory themselves. */
#define CRITPATH_CHUNK (1U << 12)
#define CRITPATH_CHUNKS 128U
#define CRITPATH_RING ((uint64_t)CRITPATH_CHUNK * CRITPATH_CHUNKS)
#define CRITPATH_CHUNKS_LEAST 16U
#define CRITPATH_TASKS_PER_CHUNK 1024U
/* The first span: it is the first one that is forgotten. */
#define CRITPATH_FORGOTTEN 1
#define CRITPATH_ROWS_MAX 100000U
#define CRITPATH_LEVELS 32U

enum critpath_kind { CRITPATH_RUN, CRITPATH_WAIT, CRITPATH_SLEEP };

struct critpath_span {
	uint64_t from, to;
	uint64_t before; /* number of the task's span before it, from 1; 0: none is known */
	/* If it is a sleep: the waker ran since waker_since, after its span waker_before. */
	uint64_t waker_since, waker_before;
	int32_t tid, waker; /* waker -1: unknown */
	uint32_t cpu;
	uint8_t kind, state; /* enum span_state */
	bool by_interrupt, has_waker_run;
	char letter; /* of the state in which it slept */
};

struct critpath {
	struct report report;
	/* Owned; a ring. Chunk n is at n % CRITPATH_CHUNKS. */
	struct critpath_span *chunks[CRITPATH_CHUNKS];
	uint64_t first_chunk; /* the oldest one that is kept */
	uint64_t count;	      /* spans of all times */
	uint64_t rows, forgotten;
	bool has_deeper;
	int index;	    /* of sched_task.row */
	int64_t wanted_tid; /* -1: the thread is wanted by its name */
	/* The thread, as it was seen last. */
	int32_t tid;	 /* 0: none yet */
	uint64_t last;	 /* number of its last span */
	bool has_others; /* of its name */
};

/* The walk at a level: back to `until`, from span `at` on. */
struct critpath_walk {
	uint64_t at, until;
};

static bool critpath_is_tid(const char *task)
{
	const char *p = task;

	while (isdigit((unsigned char)*p))
		p++;
	return *task && !*p;
}

static bool critpath_is_wanted(const struct critpath *c, const struct sched_task *t)
{
	const char *wanted = c->report.env->options->task;

	if (c->wanted_tid >= 0)
		return c->wanted_tid == t->tid;
	return text_equal(report_task_name(t->known, t->tid),
			  (struct text){ wanted, (uint32_t)strlen(wanted) });
}

/* Remembers the thread of the option --task. */
static void critpath_see(struct critpath *c, const struct sched_span *span)
{
	const int32_t tid = span->task->tid;

	if (!critpath_is_wanted(c, span->task))
		return;
	c->has_others |= c->tid && c->tid != tid;
	/* At the end of the recording, all threads have an open span. */
	if (c->tid && c->tid != tid && span->state == SPAN_OPEN)
		return;
	c->tid = tid;
	c->last = c->count;
}

/* NULL: it is forgotten, or there is none. */
static struct critpath_span *critpath_at(const struct critpath *c, uint64_t number)
{
	const uint64_t chunk = (number - 1) / CRITPATH_CHUNK;

	if (!number || chunk < c->first_chunk)
		return NULL;
	return &c->chunks[chunk % CRITPATH_CHUNKS][(number - 1) % CRITPATH_CHUNK];
}

/* A task's pointer holds the place of its last span in the ring, plus 1. */
static void *critpath_place(uint64_t number)
{
	return (void *)(uintptr_t)((number - 1) % CRITPATH_RING + 1);
}

/*
 * The number of a task's last span; 0: none. If the task's span is not in its place any more, a
 * span of another task is: any later one of this task would be its last.
 */
static uint64_t critpath_last(const struct critpath *c, const struct sched_task *t)
{
	const uint64_t place = (uintptr_t)t->row[c->index];
	const struct critpath_span *s;
	uint64_t number;

	if (!place || !c->count)
		return 0;
	number = c->count - (c->count + CRITPATH_RING - place) % CRITPATH_RING;
	s = critpath_at(c, number);
	return s && s->tid == t->tid ? number : CRITPATH_FORGOTTEN;
}

static uint64_t critpath_chunks_max(const struct critpath *c)
{
	uint32_t less = scheduler_tasks(c->report.env->scheduler) / CRITPATH_TASKS_PER_CHUNK;

	return MAX(CRITPATH_CHUNKS - MIN(less, CRITPATH_CHUNKS), CRITPATH_CHUNKS_LEAST);
}

/* Makes room for a chunk, of the oldest ones if there are enough. */
static int critpath_make_chunk(struct critpath *c)
{
	const uint64_t chunk = c->count / CRITPATH_CHUNK, max = critpath_chunks_max(c);
	struct critpath_span *room = NULL;

	while (chunk - c->first_chunk >= max) {
		free(room);
		room = TAKE_PTR(c->chunks[c->first_chunk % CRITPATH_CHUNKS]);
		c->first_chunk++;
	}
	if (!room)
		room = malloc(CRITPATH_CHUNK * sizeof(*room));
	if (!room)
		return -ENOMEM;
	c->chunks[chunk % CRITPATH_CHUNKS] = room;
	return 0;
}

/* The next span. NULL: out of memory. */
static struct critpath_span *critpath_new(struct critpath *c)
{
	if (c->count % CRITPATH_CHUNK == 0 && critpath_make_chunk(c) < 0)
		return NULL;
	c->count++;
	return &c->chunks[(c->count - 1) / CRITPATH_CHUNK % CRITPATH_CHUNKS]
			 [(c->count - 1) % CRITPATH_CHUNK];
}

static int critpath_keep(struct critpath *c, const struct sched_span *span, enum critpath_kind kind,
			 struct critpath_span **ret)
{
	const uint64_t before = critpath_last(c, span->task);
	struct critpath_span *s;

	s = critpath_new(c);
	if (!s)
		return -ENOMEM;
	*s = (struct critpath_span){
		.from = span->from,
		.to = span->to,
		.before = before,
		.tid = span->task->tid,
		.waker = -1,
		.cpu = span->cpu,
		.kind = (uint8_t)kind,
		.state = (uint8_t)span->state,
		.letter = sched_task_letter(span->task),
	};
	span->task->row[c->index] = critpath_place(c->count);
	critpath_see(c, span);
	*ret = s;
	return 0;
}

static int critpath_on_ran(struct report *report, const struct sched_span *span,
			   const struct sched_task *next _unused_)
{
	struct critpath *c = container_of(report, struct critpath, report);
	struct critpath_span *s;

	return critpath_keep(c, span, CRITPATH_RUN, &s);
}

static int critpath_on_waited(struct report *report, const struct sched_span *span)
{
	struct critpath *c = container_of(report, struct critpath, report);
	struct critpath_span *s;

	return critpath_keep(c, span, CRITPATH_WAIT, &s);
}

static int critpath_on_slept(struct report *report, const struct sched_span *span)
{
	struct critpath *c = container_of(report, struct critpath, report);
	const struct sched_task *t = span->task;
	struct sched_task *waker;
	struct critpath_span *s;
	int r = critpath_keep(c, span, CRITPATH_SLEEP, &s);

	if (r < 0 || span->state != SPAN_WHOLE)
		return r;
	s->waker = t->waker;
	s->by_interrupt = t->woken_by_interrupt;
	waker = t->waker > 0 ? scheduler_find(c->report.env->scheduler, t->waker) : NULL;
	if (!waker || s->by_interrupt)
		return 0;
	/* Its run is known if no event is missing on its CPU since the switch to it. */
	s->has_waker_run = scheduler_running(c->report.env->scheduler, t->waker_cpu) == waker &&
			   waker->state == SCHED_RUNS;
	s->waker_since = waker->since;
	s->waker_before = critpath_last(c, waker);
	return 0;
}

static int critpath_open(struct report **ret, struct report_env *env)
{
	struct critpath *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->report.env = env;
	c->wanted_tid =
		critpath_is_tid(env->options->task) ? strtol(env->options->task, NULL, 10) : -1;
	*ret = &c->report;
	c->index = scheduler_listen(env->scheduler, &(struct sched_listener){
							    .report = &c->report,
							    .wants_all = true,
							    .ran = critpath_on_ran,
							    .waited = critpath_on_waited,
							    .slept = critpath_on_slept,
						    });
	if (c->index < 0)
		return c->index;
	return scheduler_has_wakeups(env->scheduler) ? 0 : -ENODATA;
}

static const struct column critpath_columns[] = {
	COLUMN("at", COLUMN_AT),     COLUMN("level", COLUMN_NUMBER), COLUMN("cpu", COLUMN_NUMBER),
	COLUMN("task", COLUMN_TEXT), COLUMN("tid", COLUMN_NUMBER),   COLUMN("what", COLUMN_TEXT),
	COLUMN("time", COLUMN_TIME), COLUMN("state", COLUMN_TEXT),   COLUMN("waker", COLUMN_TEXT),
};

/* time TABLE_UNKNOWN: what says why. */
static void critpath_put(struct critpath *c, struct table *t, unsigned level,
			 const struct critpath_span *s, struct text what, uint64_t time)
{
	const struct report_env *env = c->report.env;
	struct text waker = s->waker < 0 ? TEXT("")
			    : s->by_interrupt
				    ? TEXT("(interrupt)")
				    : report_task_name(report_task(env, s->waker, s->to), s->waker);
	const bool slept = s->kind == CRITPATH_SLEEP && s->state == SPAN_WHOLE;

	c->rows++;
	table_put_count(t, s->to);
	table_put_number(t, level);
	table_put_number(t, s->cpu == UINT32_MAX ? -1 : (int64_t)s->cpu);
	table_put_text(t, report_task_name(report_task(env, s->tid, s->to), s->tid));
	table_put_number(t, s->tid);
	table_put_text(t, what);
	table_put_count(t, time);
	table_put_text(t, slept ? (struct text){ &s->letter, 1 } : TEXT(""));
	table_put_text(t, waker);
}

static struct text critpath_what(const struct critpath_span *s)
{
	if (s->state != SPAN_WHOLE)
		return s->state == SPAN_CUT ? TEXT("cut") : TEXT("open");
	switch ((enum critpath_kind)s->kind) {
	case CRITPATH_RUN:
		return TEXT("run");
	case CRITPATH_WAIT:
		return TEXT("wait");
	default:
		return TEXT("sleep");
	}
}

/* The run in which the waker woke the sleeper up: it went on after that. */
static void critpath_put_waker_run(struct critpath *c, struct table *t, unsigned level,
				   const struct critpath_span *sleep, uint64_t until)
{
	struct critpath_span run = {
		.to = sleep->to,
		.tid = sleep->waker,
		.waker = -1,
		.cpu = sleep->cpu,
		.state = sleep->has_waker_run ? SPAN_WHOLE : SPAN_CUT,
	};
	uint64_t from = MAX(sleep->waker_since, until);

	critpath_put(c, t, level, &run, critpath_what(&run),
		     sleep->has_waker_run ? report_elapsed(from, sleep->to) : TABLE_UNKNOWN);
}

/*
 * A span, as far as it is after `until`. Returns true if it is a sleep whose waker is to be
 * followed.
 */
static bool critpath_put_span(struct critpath *c, struct table *t, unsigned level,
			      const struct critpath_span *s, uint64_t until)
{
	critpath_put(c, t, level, s, critpath_what(s),
		     s->state == SPAN_WHOLE ? report_elapsed(MAX(s->from, until), s->to)
					    : TABLE_UNKNOWN);
	return s->state == SPAN_WHOLE && s->kind == CRITPATH_SLEEP && s->waker > 0 &&
	       !s->by_interrupt;
}

/* Backwards through the thread's spans. A sleep's waker has a level of its own. */
static void critpath_walk(struct critpath *c, struct table *t, uint64_t last)
{
	struct critpath_walk walks[CRITPATH_LEVELS] = { { last, 0 } };
	unsigned level = 0;

	while (c->rows < CRITPATH_ROWS_MAX) {
		struct critpath_walk *w = &walks[level];
		const struct critpath_span *s = critpath_at(c, w->at);
		uint64_t from;

		c->forgotten += w->at && !s;
		if (!s || s->to <= w->until) {
			if (!level)
				return;
			level--;
			continue;
		}
		w->at = s->before;
		if (!critpath_put_span(c, t, level, s, w->until))
			continue;
		if (level + 1 == CRITPATH_LEVELS) {
			c->has_deeper = true;
			continue;
		}
		from = MAX(s->from, w->until);
		critpath_put_waker_run(c, t, level + 1, s, from);
		/* Without that run, nobody knows what came before it. */
		if (s->has_waker_run)
			walks[++level] = (struct critpath_walk){ s->waker_before, from };
	}
}

static void critpath_note(const struct critpath *c, struct table *t)
{
	const char *wanted = c->report.env->options->task;

	if (c->has_others)
		table_note(t,
			   "several threads are named %.64s: this is the one that was seen last, "
			   "%d",
			   wanted, c->tid);
	if (c->forgotten)
		table_note(t,
			   "only the last %" PRIu64 " spans of all threads are known: what is "
			   "before them is missing",
			   c->count - c->first_chunk * CRITPATH_CHUNK);
	if (c->rows >= CRITPATH_ROWS_MAX)
		table_note(t, "the chain goes on beyond %u rows", CRITPATH_ROWS_MAX);
	if (c->has_deeper)
		table_note(t, "wakers beyond level %u are not followed", CRITPATH_LEVELS - 1);
}

static int critpath_close(struct report *report, struct table **ret)
{
	struct critpath *c = container_of(report, struct critpath, report);
	int r = table_new(ret, "critpath", critpath_columns, ARRAY_SIZE(critpath_columns), NULL);

	if (r < 0)
		return r;
	if (!c->tid)
		return -ESRCH;
	critpath_walk(c, *ret, c->last);
	critpath_note(c, *ret);
	return 0;
}

static void critpath_free(struct report *report)
{
	struct critpath *c = container_of(report, struct critpath, report);

	for (size_t i = 0; i < CRITPATH_CHUNKS; i++)
		free(c->chunks[i]);
	free(c);
}

const struct report_kind report_critpath = {
	.about = {
		.name = "critpath",
		.summary = "what a thread waited for, backwards through those who woke it up",
		.events = "sched",
		.needs_task = true,
	},
	.open = critpath_open,
	.close = critpath_close,
	.free = critpath_free,
};
