/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report_events.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#define TRACER "-p "

#if defined(__x86_64__) || defined(__i386__)
#define HAS_VECTORS true
#else
#define HAS_VECTORS false
#endif

/* The names are checked. */
static const struct report_about *report_events_of(const char *name)
{
	const struct report_about *about;
	size_t count;

	about = report_all(&count);
	while (--count && strcmp(about->name, name) != 0)
		about++;
	return about;
}

/* The options of report_about.events, as words: "sched -e irq" are two events. */
static int report_events_take(struct report_events *e, const struct report_options *reports)
{
	_cleanup_buf_ struct buf all = BUF_INIT;
	char *rest, *word;

	for (size_t i = 0; i < reports->count; i++)
		buf_printf(&all, "%s ", report_events_of(reports->names[i])->events);
	if (!buf_string(&all))
		return -ENOMEM;
	e->words = rest = TAKE_PTR(all.data);
	while ((word = strsep(&rest, " "))) {
		size_t i = 0;

		/* A histogram has to be chosen. */
		if (!strcmp(word, "--hist")) {
			(void)strsep(&rest, " ");
			continue;
		}
		if (!strcmp(word, "-p")) {
			e->tracer = strsep(&rest, " ");
			continue;
		}
		if (!HAS_VECTORS && !strcmp(word, "irq_vectors"))
			continue;
		while (i < e->count && strcmp(e->events[i].glob, word) != 0)
			i++;
		if (!*word || *word == '-' || i < e->count || i == REPORT_EVENTS_MAX)
			continue;
		e->events[e->count++].glob = word;
	}
	return 0;
}

/* The length of the first word of a report's events: without them it has nothing. */
static size_t report_events_first(const char *events)
{
	return strcspn(events, " ");
}

static bool report_events_is_system(const char *word)
{
	const struct report_about *all;
	size_t count;

	all = report_all(&count);
	for (size_t i = 0; i < count; i++) {
		size_t first = report_events_first(all[i].events);

		if (strlen(word) == first && !memcmp(word, all[i].events, first))
			return true;
	}
	return false;
}

/* Whether events of that -e may be of the system. A word without a colon may name an event. */
static bool report_events_has(const char *glob, const char *system)
{
	const char *colon = strchr(glob, ':');
	char of[64];

	if (!colon)
		return strstr(system, glob) || !report_events_is_system(glob);
	snprintf(of, sizeof(of), "%.*s", (int)(colon - glob), glob);
	/* System calls have events in two systems. */
	return fnmatch(of, system, 0) == 0 || strstr(system, of);
}

static bool report_events_suffice(const struct options *o, const char *needed)
{
	char first[64];

	if (!strncmp(needed, TRACER, strlen(TRACER)))
		return o->tracer && !strcmp(o->tracer, needed + strlen(TRACER));
	if (!strncmp(needed, "--hist", 6))
		return o->hists.count > 0 || o->counts_sql;
	snprintf(first, sizeof(first), "%.*s", (int)report_events_first(needed), needed);
	for (size_t i = 0; i < o->event_count; i++)
		if (report_events_has(o->events[i].glob, first))
			return true;
	return false;
}

const struct report_about *report_events_missing(const struct options *o, const char *report)
{
	const struct report_about *about = report_events_of(report);

	return about->takes_any || report_events_suffice(o, about->events) ? NULL : about;
}

int report_events_choose(struct report_events *ret, const struct options *o,
			 const struct report_options *reports, struct options *changed)
{
	*ret = (struct report_events){ 0 };
	/* Only the daemon knows the events of a profile. */
	if (o->profile)
		return 0;
	if (!o->event_count && !o->tracer && !o->probe_count && !o->sample_hz) {
		if (report_events_take(ret, reports) < 0)
			return -ENOMEM;
		changed->events = ret->events;
		changed->event_count = ret->count;
		changed->tracer = ret->tracer;
		return 0;
	}
	for (size_t i = 0; i < reports->count; i++) {
		const struct report_about *about = report_events_missing(o, reports->names[i]);

		if (!about)
			continue;
		cli_warn("there will be no events for the report %s", about->name);
		fprintf(stderr, "  hint: add %s%s\n", *about->events == '-' ? "" : "-e ",
			about->events);
	}
	return 0;
}

void report_events_deinit(struct report_events *e)
{
	free(e->words);
}
