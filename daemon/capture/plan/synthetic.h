/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events that the kernel makes of pairs of others, as SQL describes them: a synthetic event, and on
 * each of the two events a histogram that matches them by its keys.
 *
 * tracectl has parsed the SQL, by libtracefs. It sends the pieces, which are checked here and put
 * together: whatever the client sends, no other trigger comes out.
 *
 * Names: synthetic events belong to the whole kernel. Ours are called "sql_", eight digits of the
 * recording, "_", and the requested name. Globs skip them; the stream has the requested name.
 *
 * Start: a histogram also sees events while tracing is off. Their times are then another clock's,
 * and would make wrong differences. So it is made paused, and the mark that each recording begins
 * with lets it go on, by triggers on ftrace:print.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/plan/probes.h"
#include "daemon/capture/report.h"

#define SYNTHETIC_EVENTS "synthetic_events"
#define SYNTHETIC_SYSTEM "synthetic:"
#define SYNTHETIC_PREFIX "sql_"
/* "sql_", eight hexadecimal digits, "_". */
#define SYNTHETIC_PREFIX_LEN 13

/* Entries of each table of keys. The kernel never frees one. */
#define SYNTHETIC_KEYS 16384
/* Upper bound of the kernel memory of one event's two tables, with one text in each. */
#define SYNTHETIC_MEMORY (UINT64_C(24) << 20)
#define SYNTHETIC_MAX 16

struct synthetic_event {
	char *wanted;	   /* name in the request; owned, like the rest */
	char *event;	   /* in the kernel: "synthetic:sql_1a2b3c4d_wakeup" */
	const char *name;  /* part of event, without the system */
	char *start, *end; /* "system:event" */
	bool only_counted;
};

struct synthetic_list {
	struct synthetic_event *items; /* owned */
	size_t count;
};
void synthetic_list_deinit(struct synthetic_list *l);

/* The event of that name in the request; NULL: there is none. */
const struct synthetic_event *synthetic_find(const struct synthetic_list *l, const char *wanted);
/* Appends "system:event" as the recording has it: ours with the requested name. */
void synthetic_put_shown(const char *event, struct buf *out);

/* True if one of them is made of the event "system:event". */
bool synthetic_uses(const struct synthetic_list *l, const char *event);

/* True for names that synthetic_plan() makes: the event's name, without its system. */
bool synthetic_is_ours(const char *name);

/* In synthetic_check.c. Checks all pieces of the request. Changes nothing in the kernel. */
int synthetic_check(const struct tracefs *fs, const struct capture_request *request,
		    struct error *err);
/* The part of it that needs no kernel, for one event. */
int synthetic_check_pieces(const struct capture_sql *sql, struct error *err);
/* Checks what users may use, once the events exist: their bounds, and open fields only. */
int synthetic_check_user(const struct tracefs *fs, const struct capture_request *request,
			 const struct synthetic_list *l, struct error *err);

/*
 * Adds a step for each event. group: the recording's group of probes; probes: its probes, which the
 * SQL may name.
 */
int synthetic_plan(struct plan *plan, const struct capture_request *request, const char *group,
		   const struct probe_list *probes, struct synthetic_list *ret, struct error *err);
/* Adds the triggers, when the events have been made. */
int synthetic_plan_triggers(struct plan *plan, const struct capture_request *request,
			    const struct synthetic_list *l, const char *clock, const char *instance,
			    struct error *err);
/* Warns of events that found no room in a table. */
void synthetic_report_drops(const struct synthetic_list *l, const struct tracefs *fs,
			    const char *instance, struct capture_report *report);
/* True for a step that synthetic_plan() or synthetic_plan_triggers() has added. */
bool synthetic_makes(const struct plan_step *s);
/* Explains why the kernel refused a step that makes an event or a trigger. */
int synthetic_explain(const struct plan_step *s, const struct tracefs *fs, int code,
		      struct error *err);

/* The next piece of a list, up to sep; false: no more. Empty pieces count. */
struct synthetic_piece {
	const char *text;
	size_t len;
};
bool synthetic_next_piece(const char **at, char sep, struct synthetic_piece *ret);
