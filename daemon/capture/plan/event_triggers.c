/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/event_triggers.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "base/caret.h"
#include "base/io.h"
#include "base/nearest.h"
#include "daemon/capture/plan/user_filter.h"
#include "daemon/capture/tracefs/events.h"
#include "daemon/capture/tracefs/feature.h"

/* The kernel takes a trigger in one write of less than a page. */
#define ACTION_LEN_MAX 3900
#define TARGET_LEN 200

/* An event has one trigger of each type, and of TYPE_ENABLE one for each target. */
enum type { TYPE_ONOFF, TYPE_STACK, TYPE_ENABLE };

static const struct command {
	const char *name;
	enum type type;
} commands[] = {
	{ "traceon", TYPE_ONOFF },	  { "traceoff", TYPE_ONOFF },
	{ "stacktrace", TYPE_STACK },	  { "enable_event", TYPE_ENABLE },
	{ "disable_event", TYPE_ENABLE },
};

struct action {
	const struct command *command;
	char target[TARGET_LEN]; /* "SYSTEM:EVENT"; "": none */
	const char *filter;	 /* in the text; NULL: none */
	bool counted;
};

void trigger_plans_deinit(struct trigger_plans *p)
{
	plan_deinit(&p->before);
	plan_deinit(&p->after);
}

void trigger_targets_deinit(struct trigger_targets *t)
{
	free(t->names);
	*t = (struct trigger_targets){ 0 };
}

static int action_wrong(const char *text, const char *at, const char *what, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;

	buf_put_caret(&place, text, at);
	error_set(err, -EINVAL, "the trigger: %s%s", what, buf_string(&place) ?: "");
	return error_hint(err, "write it as in 'traceoff', 'stacktrace:3 if prev_state & 2' or "
			       "'enable_event:irq:softirq_entry:1'");
}

static int action_unknown(const char *text, size_t len, struct error *err)
{
	_cleanup_free_ char *name = strndup(text, len);
	const char *names[ARRAY_SIZE(commands)], *best[NEAREST_MAX];
	size_t near;

	if (!name)
		return error_set(err, -ENOMEM, "out of memory");
	if (strcmp(name, "snapshot") == 0) {
		error_set(err, -EOPNOTSUPP,
			  "the trigger '%.200s': a snapshot of the kernel takes the events out of "
			  "the recording",
			  text);
		return error_hint(err, "to keep the events before another: --ring with the trigger "
				       "traceoff; 'tracectl start --ring --on' takes many");
	}
	if (strcmp(name, "hist") == 0 || strcmp(name, "enable_hist") == 0 ||
	    strcmp(name, "disable_hist") == 0) {
		error_set(err, -EOPNOTSUPP,
			  "the trigger '%.200s': its result would not be in the recording", text);
		return error_hint(err, "--hist 'EVENT:keys=FIELD' records a histogram");
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].name;
	error_set(err, -EINVAL, "events have no trigger '%.100s'", name);
	near = nearest_names(name, names, ARRAY_SIZE(names), best);
	if (near)
		return error_hint(err, "did you mean '%s'%s%s%s?", best[0], near > 1 ? " or '" : "",
				  near > 1 ? best[1] : "", near > 1 ? "'" : "");
	return error_hint(err, "they have traceon, traceoff, stacktrace, enable_event and "
			       "disable_event");
}

/* Takes ":SYSTEM:EVENT" at *p. */
static int action_take_target(struct action *a, const char *text, const char **p, struct error *err)
{
	const char *system = *p + 1, *event;
	size_t len;

	if (**p != ':')
		return action_wrong(text, *p, "it lacks ':SYSTEM:EVENT'", err);
	event = system + strcspn(system, ": \t");
	if (event == system || *event != ':')
		return action_wrong(text, event, "an event is written as SYSTEM:EVENT", err);
	len = strcspn(event + 1, ": \t");
	if (!len)
		return action_wrong(text, event + 1, "the event's name is missing", err);
	for (const char *c = system; c < event + 1 + len; c++)
		if (c != event && !isalnum((unsigned char)*c) && !strchr("_-.", *c))
			return action_wrong(text, c, "the name of one event is needed", err);
	*p = event + 1 + len;
	if ((size_t)(*p - system) >= sizeof(a->target))
		return action_wrong(text, system, "the event's name is too long", err);
	snprintf(a->target, sizeof(a->target), "%.*s", (int)(*p - system), system);
	return 0;
}

/* Takes ":N" at *p, where there is one. The kernel would read octal and hexadecimal numbers. */
static int action_take_count(struct action *a, const char *text, const char **p, struct error *err)
{
	const char *digits = *p + 1;
	size_t len;

	if (**p != ':')
		return 0;
	len = strspn(digits, "0123456789");
	if (!len || len > 9 || *digits == '0')
		return action_wrong(text, digits, "a count is a number from 1 to 999999999", err);
	*p = digits + len;
	a->counted = true;
	return 0;
}

static int action_parse(struct action *ret, const char *text, struct error *err)
{
	size_t len = strcspn(text, ": \t");
	struct action a = { 0 };
	const char *p = text + len;
	int r;

	if (strlen(text) > ACTION_LEN_MAX) {
		error_set(err, -E2BIG, "the trigger '%.100s...' has more than %d bytes", text,
			  ACTION_LEN_MAX);
		return error_hint(err, "give its filter fewer conditions");
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strlen(commands[i].name) == len && strncmp(commands[i].name, text, len) == 0)
			a.command = &commands[i];
	if (!a.command)
		return action_unknown(text, len, err);
	r = a.command->type == TYPE_ENABLE ? action_take_target(&a, text, &p, err) : 0;
	if (r == 0)
		r = action_take_count(&a, text, &p, err);
	if (r < 0)
		return r;
	p += strspn(p, " \t");
	if (*p && (strncmp(p, "if", 2) != 0 || (p[2] != ' ' && p[2] != '\t')))
		return action_wrong(text, p, "only 'if FILTER' may follow", err);
	if (*p) {
		a.filter = p + 2 + strspn(p + 2, " \t");
		if (!*a.filter)
			return action_wrong(text, a.filter, "a filter is missing", err);
	}
	*ret = a;
	return 0;
}

/*
 * In an instance, before Linux 5.17, traceon and traceoff switch the top level's buffer, and
 * stacktrace writes there.
 */
static int check_version(const struct capture_env *env, const struct action *a, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned major, minor;
	char path[256];

	snprintf(path, sizeof(path), "%s/sys/kernel/osrelease", env->proc);
	if (a->command->type == TYPE_ENABLE || read_file_at(AT_FDCWD, path, 4096, &text) < 0 ||
	    !buf_string(&text) || sscanf(text.data, "%u.%u", &major, &minor) != 2 || major > 5 ||
	    (major == 5 && minor >= 17))
		return 0;
	error_set(err, -EOPNOTSUPP,
		  "this is Linux %.*s: its trigger '%s' acts on the top-level buffer",
		  (int)strcspn(text.data, "\n"), text.data, a->command->name);
	return error_hint(err, "Linux 5.17 and newer have it for a recording");
}

int event_triggers_check(const struct capture_env *env, const struct capture_request *request,
			 struct error *err)
{
	int r = 0;

	if (request->trigger_count && request->top_level) {
		error_set(err, -EINVAL, "--trigger and --top-level exclude each other");
		return error_hint(err, "triggers that others set there could not be told from "
				       "those of a recording");
	}
	for (size_t i = 0; i < request->trigger_count && r == 0; i++) {
		const struct capture_trigger *t = &request->triggers[i];
		struct action a;

		if (!(t->event && *t->event) && (!t->probe || t->probe > request->probe_count)) {
			error_set(err, -EINVAL, "the trigger '%.200s' has no event", t->action);
			return error_hint(err, "write it as in 'sched:sched_switch: stacktrace'");
		}
		r = action_parse(&a, t->action, err);
		if (r == 0)
			r = check_version(env, &a, err);
	}
	return r;
}

static bool trigger_has(const struct capture_trigger *t, const char *command, struct action *a)
{
	return action_parse(a, t->action, NULL) == 0 && strcmp(a->command->name, command) == 0;
}

bool event_triggers_have(const struct capture_request *request, const char *command)
{
	struct action a;

	for (size_t i = 0; i < request->trigger_count; i++)
		if (trigger_has(&request->triggers[i], command, &a))
			return true;
	return false;
}

void event_triggers_put_off(const struct capture_request *request, struct buf *out)
{
	struct action a;

	for (size_t i = 0; i < request->trigger_count; i++) {
		const struct capture_trigger *t = &request->triggers[i];

		if (trigger_has(t, "traceoff", &a))
			buf_printf(out, "%s%s%s%.200s", out->len ? "; " : "", t->event ?: "",
				   t->event ? ": " : "", t->action);
	}
}

size_t event_triggers_specs(const struct capture_request *request, struct capture_event_spec *specs)
{
	size_t count = 0;
	struct action a;

	for (size_t i = 0; i < request->trigger_count; i++)
		if (request->triggers[i].event &&
		    trigger_has(&request->triggers[i], "traceoff", &a))
			specs[count++] = (struct capture_event_spec){
				.glob = request->triggers[i].event,
				.filter = a.filter,
			};
	return count;
}

/* Finds the target's name in the kernel's list, within what the caller may record. */
static int find_target(struct trigger_targets *ret, const struct action *a,
		       const struct capture_request *request, const char *const *names,
		       size_t name_count, struct error *err)
{
	const struct capture_event_spec spec = { .glob = a->target };
	_cleanup_event_matches_ struct event_matches matches = { 0 };
	int r;

	if (!*a->target)
		return 0;
	r = event_matches_find(&matches, &spec, 1, &request->bounds, names, name_count, err);
	if (r < 0)
		return r;
	ret->names[ret->count++] = matches.items[0].name;
	return 0;
}

static int check_count(const struct trigger_plans *plans, const struct event_matches *matches,
		       const struct capture_trigger *t, struct error *err)
{
	if (plans->before.count + plans->after.count + matches->count <= TRIGGERS_MAX)
		return 0;
	error_set(err, -E2BIG, "the trigger '%.200s' is for %zu events: a recording has %d at most",
		  t->action, matches->count, TRIGGERS_MAX);
	return error_hint(err, "name fewer events: the kernel takes long to remove a trigger");
}

static int check_twice(const struct plan *plan, const char *file, const char *name,
		       const struct action *a, struct error *err)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct action other;

		if (strcmp(plan->steps[i].file, file) != 0 ||
		    action_parse(&other, plan->steps[i].value, NULL) < 0 ||
		    other.command->type != a->command->type || strcmp(other.target, a->target) != 0)
			continue;
		error_set(
			err, -EEXIST,
			"the event %s has the triggers '%s%s%s' and '%s': the kernel takes one of "
			"both",
			name, other.command->name, *a->target ? ":" : "", a->target,
			a->command->name);
		return other.command == a->command
			       ? error_hint(err, "join their filters: if (...) || (...)")
			       : error_hint(err, "put one of them on another event");
	}
	return 0;
}

/*
 * A trigger without a filter runs before the record is made. traceoff would keep the event that it
 * acts on out of the recording, so it gets a filter that is always met.
 */
static const char *always(const struct action *a)
{
	return strcmp(a->command->name, "traceoff") == 0 && !a->filter ? " if common_pid >= 0" : "";
}

static int plan_one(struct trigger_plans *plans, const struct capture_trigger *t,
		    const struct action *a, const char *name, const char *instance,
		    struct error *err)
{
	/* traceon and traceoff count only what they change. */
	struct plan *plan =
		a->counted && a->command->type != TYPE_ONOFF ? &plans->after : &plans->before;
	_cleanup_free_ char *action = NULL;
	char path[512];
	int r;

	event_file(name, "trigger", path, sizeof(path));
	r = check_twice(&plans->before, path, name, a, err);
	if (r == 0)
		r = check_twice(&plans->after, path, name, a, err);
	if (r < 0)
		return r;
	if (asprintf(&action, "%s%s", t->action, always(a)) < 0) {
		action = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	plan_trigger(plan, instance, path, action);
	return plan->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}

int event_triggers_plan(struct trigger_plans *plans, const struct tracefs *fs,
			const struct capture_request *request, const struct probe_list *probes,
			const char *instance, const char *const *names, size_t name_count,
			struct trigger_targets *ret, struct error *err)
{
	int r = 0;

	ret->names = calloc(request->trigger_count + 1, sizeof(*ret->names));
	if (!ret->names)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < request->trigger_count && r == 0; i++) {
		const struct capture_trigger *t = &request->triggers[i];
		_cleanup_event_matches_ struct event_matches matches = { 0 };
		struct capture_event_spec spec = { .glob = t->event };
		struct action a;

		if (!spec.glob)
			spec.glob = probes->specs[t->probe - 1].glob;
		r = action_parse(&a, t->action, err);
		spec.filter = a.filter;
		if (r == 0)
			r = event_matches_find(&matches, &spec, 1, &request->bounds, names,
					       name_count, err);
		if (r == 0)
			r = check_count(plans, &matches, t, err);
		if (r == 0 && request->bounds.hide_addresses)
			r = user_filters_check(fs, &matches, err);
		if (r == 0)
			r = find_target(ret, &a, request, names, name_count, err);
		for (size_t k = 0; k < matches.count && r == 0; k++)
			r = plan_one(plans, t, &a, matches.items[k].name, instance, err);
	}
	return r;
}

int event_trigger_explain(const struct plan_step *s, const struct tracefs *fs, struct error *err)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, s->instance);
	_cleanup_buf_ struct buf set = BUF_INIT;
	const char *list, *needs;
	struct action a;

	/* A file without triggers lists the commands. */
	if (dir < 0 || tracefs_read(dir, s->file, &set) < 0 || !buf_string(&set) ||
	    *set.data != '#' || action_parse(&a, s->value, NULL) < 0 ||
	    strstr(set.data, a.command->name))
		return 0;
	needs = feature_needs(FEATURE_TRIGGER, a.command->name);
	error_set(err, -EOPNOTSUPP, "this kernel has no trigger '%s'%s%s", a.command->name,
		  needs ? ": it lacks " : "", needs ?: "");
	list = strstr(set.data, "\n# ");
	return error_hint(err, "it has: %s", list ? list + 3 : "none");
}
