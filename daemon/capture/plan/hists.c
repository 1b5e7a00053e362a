/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/hists.h"
#include "daemon/capture/plan/probes.h"
#include "daemon/capture/tracefs/feature.h"

#include <stdlib.h>

#define KNOWN "sched:sched_switch"

void hists_deinit(struct hists *h)
{
	for (size_t i = 0; i < h->count; i++) {
		free(h->items[i].event);
		free(h->items[i].paused);
		free(h->items[i].counting);
	}
	*h = (struct hists){ 0 };
}

bool capture_counts_only(const struct capture_request *request)
{
	for (size_t i = 0; i < request->sql_count; i++)
		if (!request->sql[i].only_counted)
			return false;
	return request->hists.count && !request->event_count && !request->functions.tracer &&
	       !request->probe_count && !request->trigger_count && !request->sampling.hz;
}

int hists_check(const struct capture_request *request, struct error *err)
{
	const char *other = request->top_level ? "the top-level buffer"
			    : request->pid_count || request->process_count || request->follow_forks
				    ? "a choice of tasks"
			    : request->cpus ? "a choice of CPUs"
					    : NULL;

	if (!request->hists.count)
		return 0;
	if (request->hists.count > HISTS_MAX)
		return error_set(err, -E2BIG, "more than %d histograms", HISTS_MAX);
	if (!other)
		return 0;
	error_set(err, -EINVAL, "histograms cannot be combined with %s", other);
	return error_hint(err,
			  "the kernel counts the events of all tasks and CPUs; a filter may choose "
			  "them: '... if common_pid == 42'");
}

uint64_t hists_memory(const struct capture_words *specs)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < specs->count; i++) {
		struct hist_spec s;

		if (hist_spec_parse(&s, specs->items[i], NULL) == 0)
			bytes += hist_spec_memory(&s);
	}
	return bytes;
}

static bool hist_exists(const struct tracefs *fs, const char *event)
{
	char path[512];

	event_file(event, "hist", path, sizeof(path));
	return tracefs_has_event(fs, path + strlen("events/"));
}

static int hist_check_kernel(const struct tracefs *fs, const char *event, struct error *err)
{
	if (hist_exists(fs, event))
		return 0;
	if (hist_exists(fs, KNOWN))
		return error_set(err, -EOPNOTSUPP, "the kernel makes no histograms of %s", event);
	error_set(err, -EOPNOTSUPP, "this kernel has no histograms of events");
	return feature_hint(err, FEATURE_PART, "histograms", NULL);
}

/* The events that a histogram may count. */
struct hist_events {
	const struct tracefs *fs;
	const struct capture_request *request;
	const struct synthetic_list *synthetics;
	const char *const *names; /* the kernel's */
	size_t name_count;
};

/*
 * NULL, or the whole name of an event by SQL or of a probe of the recording, whose prefix and group
 * only the recording knows.
 */
static const char *hist_find_own(const struct hist_events *e, const char *name)
{
	const struct synthetic_event *sql = name ? synthetic_find(e->synthetics, name) : NULL;
	const struct capture_request *request = e->request;

	if (sql)
		return sql->event;
	for (size_t i = 0; name && i < request->event_count; i++) {
		const char *glob = request->events[i].glob, *colon = strchr(glob, ':');

		if (strncmp(glob, PROBE_GROUP_PREFIX, strlen(PROBE_GROUP_PREFIX)) == 0 && colon &&
		    strcmp(colon + 1, name) == 0)
			return glob;
	}
	return NULL;
}

/* Finds the one event that is named. */
static int hist_find_event(const struct hist_spec *s, const struct hist_events *e, const char **ret,
			   struct error *err)
{
	_cleanup_free_ char *name = strndup(s->text, s->event_len);
	const struct capture_event_spec wanted = { .glob = hist_find_own(e, name) ?: name };
	_cleanup_event_matches_ struct event_matches found = { 0 };
	_cleanup_buf_ struct buf some = BUF_INIT;
	int r;

	if (!name)
		return error_set(err, -ENOMEM, "out of memory");
	r = event_matches_find(&found, &wanted, 1, &e->request->bounds, e->names, e->name_count,
			       err);
	if (r < 0)
		return r;
	*ret = found.items[0].name;
	if (found.count == 1)
		return 0;
	for (size_t i = 0; i < found.count && i < 3; i++)
		buf_printf(&some, "%s%s", i ? ", " : "", found.items[i].name);
	error_set(err, -EINVAL, "a histogram is of one event, and '%s' names %zu", name,
		  found.count);
	return error_hint(err, "name one of them: %s%s", buf_string(&some) ?: "?",
			  found.count > 3 ? ", ..." : "");
}

static int hist_fill(struct hist *ret, const struct hist_spec *s, const char *event)
{
	_cleanup_buf_ struct buf paused = BUF_INIT, counting = BUF_INIT;

	hist_spec_put_trigger(s, "pause", &paused);
	hist_spec_put_trigger(s, "continue", &counting);
	ret->event = strdup(event);
	if (!ret->event || !buf_string(&paused) || !buf_string(&counting))
		return -ENOMEM;
	ret->paused = TAKE_PTR(paused.data);
	ret->counting = TAKE_PTR(counting.data);
	return 0;
}

/* The kernel takes the second of two equal ones for a command to the first. */
static int hists_check_twice(const struct hists *h, struct error *err)
{
	const struct hist *last = &h->items[h->count - 1];

	for (size_t i = 0; i + 1 < h->count; i++)
		if (!strcmp(h->items[i].event, last->event) &&
		    !strcmp(h->items[i].paused, last->paused))
			return error_set(err, -EINVAL, "the same histogram of %s is there twice",
					 last->event);
	return 0;
}

static int hists_add(struct hists *h, const char *text, const struct hist_events *e,
		     struct error *err)
{
	_cleanup_buf_ struct buf format = BUF_INIT;
	const char *event = NULL;
	struct hist_spec s;
	int r = hist_spec_parse(&s, text, err);

	if (r == 0)
		r = hist_find_event(&s, e, &event, err);
	if (r == 0)
		r = hist_check_kernel(e->fs, event, err);
	if (r < 0)
		return r;
	r = tracefs_format(e->fs, event, &format);
	if (r < 0 || !buf_string(&format))
		return error_errno(err, r < 0 ? r : -ENOMEM, "cannot read the format of %s", event);
	r = hist_check(&s, event, format.data, e->request->bounds.hide_addresses, err);
	if (r < 0)
		return r;
	if (hist_fill(&h->items[h->count++], &s, event) < 0)
		return error_set(err, -ENOMEM, "out of memory");
	return hists_check_twice(h, err);
}

int hists_find(struct hists *ret, const struct tracefs *fs, const struct capture_request *request,
	       const struct synthetic_list *synthetics, const char *const *names, size_t name_count,
	       struct error *err)
{
	const struct hist_events e = { fs, request, synthetics, names, name_count };
	int r = 0;

	for (size_t i = 0; r == 0 && i < request->hists.count; i++)
		r = hists_add(ret, request->hists.items[i], &e, err);
	return r;
}

void hists_plan(const struct hists *h, struct plan *plan, const char *instance)
{
	char path[512];

	for (size_t i = 0; i < h->count; i++) {
		event_file(h->items[i].event, "trigger", path, sizeof(path));
		plan_trigger(plan, instance, path, h->items[i].paused);
	}
}

int hists_switch(const struct hists *h, int dir, bool on)
{
	char path[512];
	int failed = 0;

	for (size_t i = 0; i < h->count; i++) {
		int r;

		event_file(h->items[i].event, "trigger", path, sizeof(path));
		r = tracefs_append(dir, path, on ? h->items[i].counting : h->items[i].paused);
		failed = failed ?: r;
	}
	return failed;
}

int hists_explain(const struct plan_step *s, const char *error_log, int code, struct error *err)
{
	/* events/SYSTEM/EVENT/trigger */
	const char *event = s->file + strlen("events/");

	return error_set(err, code, "the kernel refuses the histogram '%s' of event %.*s%s",
			 s->value, (int)(strrchr(event, '/') - event), event, error_log ?: "");
}
