/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/setup.h"

#include <sys/random.h>

#include "base/plural.h"
#include "daemon/capture/plan/functions.h"
#include "daemon/capture/plan/user_filter.h"

void setup_events_deinit(struct setup_events *e)
{
	tracefs_free(e->listed);
	event_matches_deinit(&e->matches);
	trigger_targets_deinit(&e->targets);
	probe_list_deinit(&e->probes);
	free(e->specs);
}

static int copy_cpus(struct capture_setup *s, const struct cpu_set *cpus)
{
	if (!cpus)
		return 0;
	s->cpus.bits = calloc(cpus->words, sizeof(*cpus->bits));
	if (!s->cpus.bits)
		return -ENOMEM;
	memcpy(s->cpus.bits, cpus->bits, cpus->words * sizeof(*cpus->bits));
	s->cpus.words = cpus->words;
	return 0;
}

int setup_init(struct capture_setup *s, const struct capture_env *env,
	       const struct capture_request *request, struct error *err)
{
	_cleanup_buf_ struct buf off_by = BUF_INIT;
	int r;

	s->env = *env;
	s->stream_limit = request->stream_limit;
	s->ring_mode = request->ring;
	s->streamed = request->streamed && !request->ring;
	s->wants_mappings = functions_want_mappings(request);
	s->may_go_on = event_triggers_have(request, "traceon") ||
		       functions_have_command(request, "traceon");
	s->by_trigger = event_triggers_have(request, "traceoff") && !s->may_go_on &&
			!request->functions.stop_us;
	s->stops = request->functions.stop_us || s->by_trigger;
	s->may_go_off = s->stops || functions_have_command(request, "traceoff") ||
			event_triggers_have(request, "traceoff");
	event_triggers_put_off(request, &off_by);
	if (off_by.len && !buf_string(&off_by))
		return error_set(err, -ENOMEM, "out of memory");
	s->off_by = off_by.data;
	off_by = BUF_INIT;
	/* An option that the user names is set by the plan. */
	s->copies_marks = request->copies_marks && !request->top_level && !request->cpus &&
			  !s->may_go_off && !functions_set_option(request, "copy_trace_marker");
	s->main = request->top_level ? NULL : s->instance;
	if (getrandom(s->uuid, sizeof(s->uuid), 0) != sizeof(s->uuid))
		return error_errno(err, -errno, "cannot get random bytes");
	r = copy_cpus(s, request->cpus);
	return r < 0 ? error_errno(err, r, "cannot set up the recording") : 0;
}

int setup_name_instances(struct capture_setup *s, const char *name, uid_t owner)
{
	char user[16] = "";

	if (owner)
		snprintf(user, sizeof(user), "%u+", owner);
	snprintf(s->instance, sizeof(s->instance), CAPTURE_INSTANCE_PREFIX "%d-%s%s", getpid(),
		 user, name);
	return (size_t)snprintf(s->tasks, sizeof(s->tasks), "%s-tasks", s->instance) <
			       sizeof(s->tasks)
		       ? 0
		       : -ENAMETOOLONG;
}

/* Adds the events of probes, SQL and triggers to the request's. */
static int add_own_events(const struct capture_setup *s, const struct capture_request *request,
			  struct setup_events *e, struct error *err)
{
	const struct synthetic_list *synthetics = &s->synthetics;
	size_t count;

	e->specs = calloc(request->event_count + e->probes.count + synthetics->count +
				  request->trigger_count + 1,
			  sizeof(*e->specs));
	if (!e->specs)
		return error_set(err, -ENOMEM, "out of memory");
	/* First, as a later spec of the same event decides about its filter. */
	count = event_triggers_specs(request, e->specs);
	if (request->event_count)
		memcpy(e->specs + count, request->events, request->event_count * sizeof(*e->specs));
	count += request->event_count;
	memcpy(e->specs + count, e->probes.specs, e->probes.count * sizeof(*e->specs));
	count += e->probes.count;
	for (size_t i = 0; i < synthetics->count; i++)
		if (!synthetics->items[i].only_counted)
			e->specs[count++] =
				(struct capture_event_spec){ .glob = synthetics->items[i].event };
	e->request = *request;
	e->request.events = e->specs;
	e->request.event_count = count;
	return 0;
}

int setup_plan_probes(struct capture_setup *s, const struct capture_request *request,
		      struct setup_events *e, struct error *err)
{
	char group[PROBE_GROUP_LEN + 1];
	int r = 0;

	snprintf(group, sizeof(group), PROBE_GROUP_PREFIX "%02x%02x%02x%02x", s->uuid[0],
		 s->uuid[1], s->uuid[2], s->uuid[3]);
	/* The journal of a spare is made already. */
	if (s->journal.fd < 0)
		r = journal_create(&s->journal, s->env.state_dir, s->instance, err);
	if (r == 0)
		r = probes_plan(&s->plan, request, group, &e->probes, err);
	if (r == 0)
		r = synthetic_plan(&s->plan, request, group, &e->probes, &s->synthetics, err);
	return r;
}

int setup_apply_slice(struct capture_setup *s, uint64_t until_ns, struct error *err)
{
	return plan_apply_slice(&s->plan, s->env.tracefs, &s->journal, until_ns, err);
}

static bool has_event(const char *const *names, size_t count, const char *wanted)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], wanted) == 0)
			return true;
	return false;
}

/* The kernel shows all histograms of an event in one file, those of SQL among them. */
static int check_hists(const struct capture_setup *s, struct error *err)
{
	for (size_t i = 0; i < s->hists.count; i++) {
		const char *event = s->hists.items[i].event;

		if (!synthetic_uses(&s->synthetics, event))
			continue;
		error_set(err, -EINVAL, "--hist and --sql cannot both use the event %s", event);
		return error_hint(err, "count it in another recording at the same time");
	}
	return 0;
}

int setup_find_events(struct capture_setup *s, const struct capture_request *request,
		      struct setup_events *ret, struct error *err)
{
	const char *const *names;
	size_t count;
	int r = tracefs_dup(&ret->listed, s->env.tracefs);

	if (r < 0)
		return error_errno(err, r, "cannot list the events");
	r = add_own_events(s, request, ret, err);
	if (r == 0)
		r = tracefs_events(ret->listed, &names, &count, err);
	if (r < 0)
		return r;
	r = synthetic_check_user(s->env.tracefs, request, &s->synthetics, err);
	if (r < 0)
		return r;
	r = hists_find(&s->hists, s->env.tracefs, &ret->request, &s->synthetics, names, count, err);
	if (r == 0)
		r = check_hists(s, err);
	if (r < 0)
		return r;
	/* Without events there are no tasks to name. */
	s->counts_only = capture_counts_only(&ret->request);
	s->copies_marks = s->copies_marks && !s->counts_only;
	s->has_tasks = !s->counts_only && has_event(names, count, "task:task_newtask");
	r = event_matches_find(&ret->matches, ret->request.events, ret->request.event_count,
			       &request->bounds, names, count, err);
	if (r == 0 && request->bounds.hide_addresses)
		r = user_filters_check(s->env.tracefs, &ret->matches, err);
	if (r == 0)
		r = event_triggers_plan(&s->triggers, s->env.tracefs, request, &ret->probes,
					s->instance, names, count, &ret->targets, err);
	if (r == 0)
		r = functions_find_targets(request, names, count, &ret->targets, err);
	functions_plan_on(&s->triggers.before, request, s->main);
	return r;
}

static int verify_options(const struct capture_setup *s, const struct capture_request *request,
			  struct error *err)
{
	_cleanup_close_ int dir = tracefs_open_instance(s->env.tracefs, s->main);

	return dir < 0 ? error_errno(err, dir, "cannot open the buffer")
		       : functions_verify(request, dir, err);
}

int setup_plan(struct capture_setup *s, const struct setup_events *e, struct capture_report *report,
	       struct error *err)
{
	int r;

	if (e->matches.left_out)
		report_warn_missing(report, "left out %zu event%s that only root may record",
				    e->matches.left_out, plural_s(e->matches.left_out));
	if (!s->has_tasks && !s->counts_only)
		report_warn(report,
			    "this kernel has no task events: names of short-lived tasks may be "
			    "missing");
	r = request_plan(&s->plan, &s->env, &e->request, &e->matches, s->main,
			 s->has_tasks ? s->tasks : NULL, err);
	hists_plan(&s->hists, &s->plan, s->main);
	if (r == 0)
		r = synthetic_plan_triggers(&s->plan, &e->request, &s->synthetics,
					    e->request.clock ?: DEFAULT_CLOCK, s->main, err);
	return r;
}

int setup_verify(struct capture_setup *s, const struct setup_events *e,
		 struct capture_report *report, struct error *err)
{
	unsigned refused;
	int r = request_verify(&s->plan, s->env.tracefs, &e->request, &refused, err);

	if (r == 0)
		r = verify_options(s, &e->request, err);
	if (r < 0)
		return r;
	if (refused)
		report_warn_missing(report, "%u of %zu event%s could not be enabled", refused,
				    e->matches.count, plural_s(e->matches.count));
	report->event_types = (unsigned)e->matches.count - refused;
	return 0;
}

int setup_arm(struct capture_setup *s, bool after, struct error *err)
{
	return plan_apply(after ? &s->triggers.after : &s->triggers.before, s->env.tracefs,
			  &s->journal, err);
}

bool setup_undo_triggers(struct capture_setup *s, uint64_t until_ns)
{
	return plan_undo_slice(&s->triggers.after, s->env.tracefs, until_ns) ||
	       plan_undo_slice(&s->triggers.before, s->env.tracefs, until_ns);
}

bool setup_undo_plan(struct capture_setup *s, uint64_t until_ns)
{
	return plan_undo_slice(&s->plan, s->env.tracefs, until_ns);
}

void setup_deinit(struct capture_setup *s)
{
	/* Triggers that stay end with their instance, or are undone from the journal with it. */
	plan_undo(&s->triggers.after, s->env.tracefs);
	plan_undo(&s->triggers.before, s->env.tracefs);
	trigger_plans_deinit(&s->triggers);
	free(s->off_by);
	plan_end(&s->plan, s->env.tracefs, &s->journal);
	synthetic_list_deinit(&s->synthetics);
	hists_deinit(&s->hists);
	cpu_set_deinit(&s->cpus);
	buf_deinit(&s->header);
	buf_deinit(&s->header_page);
}
