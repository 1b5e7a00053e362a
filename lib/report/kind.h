/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One report, as a table of functions: a file, and a line in kinds.c. */
#pragma once

#include "export/sink.h"
#include "report/fields.h"
#include "report/report.h"
#include "report/rows.h"
#include "report/table.h"

struct scheduler;

/* The surroundings of a report; all borrowed. */
struct report_env {
	const struct trace_info *info;
	const struct report_options *options; /* NULL: not for tables */
	const struct export_watch *watch;     /* NULL: not for conditions */
	struct output *out;
	size_t number;		     /* of the report that opens, if its kind has several */
	bool is_first;		     /* no table comes before that of the report that opens */
	const char *by;		     /* the choice made; NULL: the report has none */
	struct selection *selection; /* tasks, CPUs and events to report on; NULL: all */
	bool is_part;		     /* somebody asked for a part of the recording */
	bool has_selected;	     /* an event or mark is in that part */
	struct scheduler *scheduler; /* what tasks did; reports may listen: scheduler.h */
	struct dispatch *dispatch;   /* of events, for report_on() */
	struct printer *printer;     /* names of functions */
	/* Until now: they grow. An interval that a loss may have cut has another count at its end.
	 */
	uint64_t losses;
	uint32_t losses_open; /* a place where events are missing has not ended */
	uint64_t first_ts,
		ts; /* times of the first event and of this one; of a window: its begin */
	bool big_endian;
	bool goes_on; /* tables are those of a window: intervals in progress are not open */
};

/* Flags of an event in an interrupt: TRACE_FLAG_HARDIRQ, _SOFTIRQ and _NMI. */
#define REPORT_FLAGS_INTERRUPT (0x08 | 0x10 | 0x40)

/* Higher CPU numbers are damage. */
#define REPORT_CPUS_MAX 65536U

/* Embedded as the first member of each report. */
struct report {
	const struct report_kind *kind;
	struct report_env *env;
	const char *by;	    /* env.by as it was opened */
	bool has_no_events; /* no table is made */
};

typedef int (*report_handler)(struct report *r, const struct trace_event *ev);

struct report_kind {
	struct report_about about;
	/* NULL: one, or the number of its reports, each with a table; 0: as open()'s -ENODATA. */
	size_t (*count)(const struct report_env *env);
	/*
	 * Allocates the report, also if it fails, and asks for its events by report_on(). Returns 0
	 * or -errno; -ENODATA: the recording has none of them.
	 */
	int (*open)(struct report **ret, struct report_env *env);
	/* NULL, or called when events were lost on that CPU, before its next event. */
	int (*loss)(struct report *r, uint32_t cpu);
	/* NULL, or takes an application's mark; in order of time among the events. */
	int (*mark)(struct report *r, const struct mark *mark);
	/* After the last event: makes the table. With env->goes_on, after the last of a window. */
	int (*close)(struct report *r, struct table **ret);
	/*
	 * NULL: it makes no tables of windows. Called once a window's table is written and gone:
	 * begins the next one. Intervals in progress go on.
	 */
	int (*renew)(struct report *r);
	void (*free)(struct report *r);
};

/* The reports, in the order of help. */
extern const struct report_kind *const report_kinds[];
extern const size_t report_kind_count;

/*
 * Has handler called for each event of that name. ret: NULL, or gets the event's format. False: the
 * recording has no such event. A failure of the handler ends the report.
 */
bool report_on(struct report_env *env, struct report *r, const char *system, const char *name,
	       report_handler handler, const struct event **ret);

/* The same for all events. */
void report_on_all(struct report_env *env, struct report *r, report_handler handler);

/*
 * The begin of an interval is kept as report_mark(). report_is_whole() is true at its end if no
 * event can be missing in between, on any CPU.
 */
static inline uint64_t report_mark(const struct report_env *env)
{
	return env->losses_open ? UINT64_MAX : env->losses;
}

static inline bool report_is_whole(const struct report_env *env, uint64_t mark)
{
	return mark == env->losses;
}

/* 0 if the trace clock stepped back in between. */
static inline uint64_t report_elapsed(uint64_t from, uint64_t to)
{
	return to - MIN(from, to);
}

/* NULL: unknown. Also of tid 0, the idle task, there is none. */
const struct task *report_task(const struct report_env *env, int32_t tid, uint64_t ts);
/* Its name, for people; "<...>" if it is unknown, "idle" for tid 0. */
struct text report_task_name(const struct task *task, int32_t tid);
