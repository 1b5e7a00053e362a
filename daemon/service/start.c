/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/start.h"

#include <inttypes.h>
#include <string.h>

#include "base/plural.h"
#include "base/utf8.h"
#include "daemon/capture/plan/hists.h"
#include "daemon/capture/tracefs/events.h"
#include "daemon/service/policy.h"
#include "daemon/service/profiles.h"
#include "report/watch_condition.h"

#define DURATION_MAX (INT64_MAX / 2)
#define WHAT_MAX 4096
#define ROOT_SESSIONS 4U

void start_plan_deinit(struct start_plan *p)
{
	for (size_t i = 0; p->configured && p->configured[i]; i++)
		free(p->configured[i]);
	free(p->configured);
	if (p->start)
		traced__control__start__free_unpacked(p->start, NULL);
	free(p->clock);
	free(p->name);
	free(p->what);
	free(p->note);
	free(p->specs);
	free(p->sql);
	free(p->probes);
	free(p->triggers);
	free(p->pids);
	free(p->processes);
	free(p->command);
	cpu_set_deinit(&p->cpus);
	string_list_deinit(&p->polls);
	string_list_deinit(&p->events_allowed);
	string_list_deinit(&p->events_denied);
	profile_free(p->profile);
	*p = (struct start_plan){ 0 };
}

bool start_counts_only(const Traced__Control__Start *start)
{
	for (size_t i = 0; i < start->n_sql; i++)
		if (!start->sql[i]->only_counted)
			return false;
	return start->n_hists && !start->n_events && !*start->profile && !*start->tracer &&
	       !start->n_probes && !start->n_triggers && !start->sample_hz;
}

static bool start_name_is_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";

	return *name && name[0] != '.' && name[0] != '-' && strlen(name) <= START_NAME_MAX &&
	       !name[strspn(name, allowed)];
}

int start_check_name(const char *name, struct error *err)
{
	if (start_name_is_valid(name))
		return 0;
	error_set(err, -EINVAL, "\"%s\" is not a valid name of a session", name);
	return error_hint(err, "letters, digits, _ . - (not . or - first) and at most %d of them",
			  START_NAME_MAX);
}

static int start_choose_name(struct start_plan *p, struct manager *m, uid_t uid, const char *wanted,
			     struct error *err)
{
	char made_up[32];

	if (*wanted && start_check_name(wanted, err) < 0)
		return -EINVAL;
	if (*wanted && manager_find_session(m, uid, wanted)) {
		error_set(err, -EEXIST, "session \"%s\" exists already", wanted);
		return error_hint(err, "choose another name, or end it: tracectl stop %s", wanted);
	}
	if (*wanted) {
		p->name = strdup(wanted);
		return p->name ? 0 : error_errno(err, -ENOMEM, "session");
	}
	do {
		snprintf(made_up, sizeof(made_up), "session-%u", ++m->last_name);
	} while (manager_find_session(m, uid, made_up));
	p->name = strdup(made_up);
	return p->name ? 0 : error_errno(err, -ENOMEM, "session");
}

/*
 * `what` names the object in the error text. Control characters are refused: the kernel, the log
 * and config files are line based.
 */
static int start_check_text(const char *text, const char *allowed, const char *what,
			    struct error *err)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if ((*p >= 0x20 && *p != 0x7f) || strchr(allowed, *p))
			continue;
		error_set(err, -EINVAL, "the %s has a control character in it: %s", what, text);
		return error_hint(err, "leave out the byte 0x%02x", *p);
	}
	return 0;
}

static int start_check_word(const char *word, size_t max, const char *what, struct error *err)
{
	if (strlen(word) <= max)
		return start_check_text(word, "", what, err);
	error_set(err, -E2BIG, "the %s is longer than %zu bytes: '%.40s...'", what, max, word);
	return error_hint(err, "give a shorter one");
}

static int start_check_words(char *const *words, size_t count, size_t max, const char *what,
			     struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = start_check_word(words[i], max, what, err);
	return r;
}

static int start_check_sql(const Traced__Control__Sql *sql, struct error *err)
{
	const Traced__Control__SqlSide *start = sql->start, *end = sql->end;
	const char *texts[] = { sql->name,
				sql->text,
				sql->fields,
				sql->arguments,
				start ? start->event : "",
				start ? start->keys : "",
				start ? start->variables : "",
				start ? start->filter : "",
				end ? end->event : "",
				end ? end->keys : "",
				end ? end->variables : "",
				end ? end->filter : "" };
	int r = start && end ? 0 : error_set(err, -EINVAL, "SQL without its two events");

	for (size_t i = 0; i < ARRAY_SIZE(texts) && r >= 0; i++)
		r = start_check_word(texts[i], START_SQL_MAX, "text of SQL", err);
	return r;
}

static int start_check_probes(const Traced__Control__Start *start, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < start->n_probes && r >= 0; i++) {
		const Traced__Control__Probe *p = start->probes[i];

		if ((unsigned)p->kind >= PROBE_KINDS)
			return error_set(err, -EINVAL, "the probe '%.200s' is of no known kind",
					 p->definition);
		r = start_check_text(p->definition, "", "probe", err);
		if (r >= 0)
			r = start_check_text(p->filter, "", "filter", err);
	}
	return r;
}

static int start_check_events(const Traced__Control__Start *start, struct error *err)
{
	static const char what[] = "name of an event";
	int r = start_check_word(start->sample_event, START_GLOB_MAX, what, err);

	for (size_t i = 0; i < start->n_events && r >= 0; i++) {
		r = start_check_word(start->events[i]->glob, START_GLOB_MAX, what, err);
		if (r >= 0)
			r = start_check_text(start->events[i]->filter, "\t", "filter", err);
	}
	for (size_t i = 0; i < start->n_triggers && r >= 0; i++) {
		r = start_check_word(start->triggers[i]->event, START_GLOB_MAX, what, err);
		if (r >= 0)
			r = start_check_text(start->triggers[i]->action, "\t", "trigger", err);
	}
	return r < 0 ? r : start_check_words(start->shed, start->n_shed, START_GLOB_MAX, what, err);
}

static int start_check_texts(const Traced__Control__Start *start, struct error *err)
{
	static const char function[] = "name of a function";
	const struct {
		char *const *words;
		size_t count, max;
		const char *what;
	} lists[] = {
		{ start->functions, start->n_functions, START_FUNCTION_MAX, function },
		{ start->functions_not, start->n_functions_not, START_FUNCTION_MAX, function },
		{ start->graph_roots, start->n_graph_roots, START_FUNCTION_MAX, function },
		{ start->tracer_options, start->n_tracer_options, START_TEXT_MAX,
		  "setting of a tracer" },
		{ start->options, start->n_options, START_TEXT_MAX, "name of an option" },
		{ start->hists, start->n_hists, START_TEXT_MAX, "histogram" },
		{ start->polls, start->n_polls, START_TEXT_MAX, "name of a polled file" },
		{ start->conditions, start->n_conditions, START_TEXT_MAX, "condition" },
	};
	int r = start_check_word(start->profile, START_TEXT_MAX, "name of the profile", err);

	if (r >= 0)
		r = start_check_word(start->clock, START_TEXT_MAX, "name of the clock", err);
	if (r >= 0)
		r = start_check_word(start->tracer, START_TEXT_MAX, "name of the tracer", err);
	if (r >= 0)
		r = start_check_events(start, err);
	for (size_t i = 0; i < ARRAY_SIZE(lists) && r >= 0; i++)
		r = start_check_words(lists[i].words, lists[i].count, lists[i].max, lists[i].what,
				      err);
	if (r >= 0)
		r = start_check_probes(start, err);
	for (size_t i = 0; i < start->n_sql && r >= 0; i++)
		r = start_check_sql(start->sql[i], err);
	return r;
}

/* -EUSERS. Root may exceed the limit a little: users together could reach it. */
static int start_check_sessions(const struct manager *m, uid_t uid, struct error *err)
{
	if (m->session_count < m->config.sessions + (policy_trusts(uid) ? ROOT_SESSIONS : 0))
		return 0;
	error_set(err, -EUSERS, "%u session%s the limit", m->config.sessions,
		  plural(m->config.sessions, " is", "s are"));
	return error_hint(err, "end one (tracectl list), or raise \"sessions\" in "
			       "[limits] of traced.conf");
}

static int start_check_counts(const Traced__Control__Start *start, struct error *err)
{
	if (start->n_events > START_EVENTS_MAX || start->n_shed > START_EVENTS_MAX ||
	    start->n_triggers > START_EVENTS_MAX || start->n_pids > START_PIDS_MAX ||
	    start->n_command > START_WORDS_MAX)
		return error_set(err, -E2BIG,
				 "more than %d event names or triggers, %d tasks or %d words",
				 START_EVENTS_MAX, START_PIDS_MAX, START_WORDS_MAX);
	if (start->n_processes > CAPTURE_PROCESSES_MAX)
		return error_set(err, -E2BIG, "more than %d processes", CAPTURE_PROCESSES_MAX);
	if (start->stream && start->ring) {
		error_set(err, -EINVAL,
			  "a flight recorder is read on request and cannot be followed");
		return error_hint(err, "leave out either --ring or --stream");
	}
	if (start->max_cpu_permille && start->ring)
		return error_set(
			err, -EINVAL,
			"a flight recorder's ring is not read: it uses no CPU time to limit");
	if (start->n_shed && !start->max_cpu_permille) {
		error_set(err, -EINVAL, "there are events to shed, but no limit of the CPU time");
		return error_hint(err, "add --max-cpu");
	}
	if (start->n_hists > HISTS_MAX)
		return error_set(err, -E2BIG, "more than %d histograms", HISTS_MAX);
	if (start->n_probes > START_WORDS_MAX)
		return error_set(err, -E2BIG, "more than %d probes", START_WORDS_MAX);
	if (start->n_sql > START_WORDS_MAX)
		return error_set(err, -E2BIG, "more than %d events by SQL", START_WORDS_MAX);
	if (start->n_functions > START_WORDS_MAX || start->n_functions_not > START_WORDS_MAX ||
	    start->n_graph_roots > START_WORDS_MAX || start->n_options > START_WORDS_MAX ||
	    start->n_tracer_options > START_WORDS_MAX || start->n_polls > START_WORDS_MAX)
		return error_set(err, -E2BIG, "more than %d functions, options or polled files",
				 START_WORDS_MAX);
	/* Everybody's list of sessions has them. */
	if (start->n_conditions > WATCH_CONDITIONS_MAX)
		return error_set(err, -E2BIG, "more than %d conditions", WATCH_CONDITIONS_MAX);
	for (size_t i = 0; i < start->n_conditions; i++)
		if (strlen(start->conditions[i]) > WATCH_TEXT_MAX)
			return error_set(err, -E2BIG, "the condition has more than %d bytes",
					 WATCH_TEXT_MAX);
	return 0;
}

static void start_add_spec(struct start_plan *p, const char *glob, const char *filter)
{
	p->specs[p->request.event_count++] =
		(struct capture_event_spec){ .glob = glob,
					     .filter = filter && *filter ? filter : NULL };
}

/* Adds an optional event only if this kernel has it. */
static int start_add_optional(struct start_plan *p, struct manager *m, struct error *err)
{
	const struct capture_env *env;
	const char *const *names;
	size_t count;
	int r;

	if (!p->profile->optional.count)
		return 0;
	r = manager_env(m, &env, err);
	if (r < 0)
		return r;
	r = tracefs_events(env->tracefs, &names, &count, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->profile->optional.count; i++) {
		const char *glob = p->profile->optional.items[i];

		for (size_t n = 0; n < count; n++) {
			if (event_glob_matches(glob, names[n])) {
				start_add_spec(p, glob, NULL);
				break;
			}
		}
	}
	if (p->request.event_count || p->profile->tracer)
		return 0;
	error_set(err, -ENOENT, "this kernel has none of the events of profile \"%s\"",
		  p->profile->name);
	return error_hint(err, "'tracectl events' lists those that it has");
}

static int start_add_configured(struct start_plan *p, const struct string_list *events)
{
	p->configured = calloc(events->count + 1, sizeof(*p->configured));
	if (!p->configured)
		return -ENOMEM;
	for (size_t i = 0; i < events->count; i++) {
		p->configured[i] = strdup(events->items[i]);
		if (!p->configured[i])
			return -ENOMEM;
		start_add_spec(p, p->configured[i], NULL);
	}
	return 0;
}

static struct capture_words start_words(char *const *items, size_t count)
{
	return (struct capture_words){ .items = (const char *const *)items, .count = count };
}

/* The request's functions add to the profile's. */
static void start_choose_functions(struct start_plan *p)
{
	const Traced__Control__Start *start = p->start;
	struct capture_functions *f = &p->request.functions;
	const struct profile *profile = p->profile;

	f->tracer = *start->tracer ? start->tracer : NULL;
	if (!f->tracer && profile && profile->tracer)
		f->tracer = profile->tracer;
	if (f->tracer && strcmp(f->tracer, "nop") == 0)
		f->tracer = NULL;
	f->only = start_words(start->functions, start->n_functions);
	if (!f->only.count && profile)
		f->only = start_words(profile->functions.items, profile->functions.count);
	f->never = start_words(start->functions_not, start->n_functions_not);
	f->roots = start_words(start->graph_roots, start->n_graph_roots);
	f->depth = start->graph_depth;
	f->settings = start_words(start->tracer_options, start->n_tracer_options);
	f->stop_us = start->stop_us;
	p->request.sampling = (struct sampling){
		.hz = start->sample_hz,
		.event = *start->sample_event ? start->sample_event : NULL,
		.call_graph = start->call_graph,
	};
	p->request.options = start_words(start->options, start->n_options);
	p->request.hists = start_words(start->hists, start->n_hists);
	p->request.overhead.cpu_permille = start->max_cpu_permille;
	p->request.overhead.shed = start_words(start->shed, start->n_shed);
	p->request.top_level = start->top_level;
}

static struct capture_sql_side start_sql_side(const Traced__Control__SqlSide *side)
{
	return (struct capture_sql_side){ side->event, side->keys, side->variables, side->filter };
}

static int start_choose_sql(struct start_plan *p)
{
	const Traced__Control__Start *start = p->start;

	p->sql = calloc(start->n_sql + 1, sizeof(*p->sql));
	if (!p->sql)
		return -ENOMEM;
	for (size_t i = 0; i < start->n_sql; i++) {
		const Traced__Control__Sql *sql = start->sql[i];

		p->sql[i] = (struct capture_sql){
			.name = sql->name,
			.text = sql->text,
			.fields = sql->fields,
			.arguments = sql->arguments,
			.start = start_sql_side(sql->start),
			.end = start_sql_side(sql->end),
			.only_counted = sql->only_counted,
		};
	}
	p->request.sql = p->sql;
	p->request.sql_count = start->n_sql;
	return 0;
}

/* The request's polled files, or else the profile's, or else the configured ones. */
static int start_choose_polls(struct start_plan *p, const struct manager *m)
{
	const Traced__Control__Start *start = p->start;
	const char *usual = p->profile && p->profile->poll ? p->profile->poll : m->config.poll;

	if (start->n_polls || !usual || start->ring) {
		p->request.polls = start_words(start->polls, start->n_polls);
		return 0;
	}
	/* A copy: the worker reads it while the configuration may change. */
	p->polls.items = calloc(2, sizeof(*p->polls.items));
	if (!p->polls.items)
		return -ENOMEM;
	p->polls.items[0] = strdup(usual);
	if (!p->polls.items[0])
		return -ENOMEM;
	p->polls.count = 1;
	p->request.polls = start_words(p->polls.items, p->polls.count);
	return 0;
}

static int start_choose_events(struct start_plan *p, struct manager *m,
			       const Traced__Control__Start *start, struct error *err)
{
	static const char *const builtin[] = { "sched", "irq" };
	const struct string_list *configured = &m->config.events;
	size_t room = start->n_events + configured->count + ARRAY_SIZE(builtin);
	int r = 0;

	if (*start->profile) {
		r = profile_load(&p->profile, profile_search_path(), start->profile, err);
		if (r < 0)
			return r;
		room += p->profile->events.count + p->profile->optional.count;
	}
	start_choose_functions(p);
	p->specs = calloc(room, sizeof(*p->specs));
	if (!p->specs)
		return error_errno(err, -ENOMEM, "session");
	if (p->profile) {
		for (size_t i = 0; i < p->profile->events.count; i++)
			start_add_spec(p, p->profile->events.items[i], NULL);
		r = start_add_optional(p, m, err);
	} else if (p->request.functions.tracer || start->n_probes || start->n_sql ||
		   start->n_hists) {
		/*
		 * With functions, probes, SQL or histograms requested, configured events are not
		 * added.
		 */
	} else if (!start->n_events && configured->count) {
		r = start_add_configured(p, configured);
		if (r < 0)
			return error_errno(err, r, "session");
	} else if (!start->n_events) {
		for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
			start_add_spec(p, builtin[i], NULL);
	}
	for (size_t i = 0; i < start->n_events; i++)
		start_add_spec(p, start->events[i]->glob, start->events[i]->filter);
	p->request.events = p->specs;
	return r;
}

static int start_describe(struct start_plan *p, const Traced__Control__Start *start,
			  struct error *err)
{
	_cleanup_buf_ struct buf what = BUF_INIT;
	size_t from = 0, len;

	if (p->profile) {
		buf_printf(&what, "profile %s", start->profile);
		from = p->request.event_count - start->n_events;
	}
	if (p->request.functions.tracer && !p->profile)
		buf_puts(&what, p->request.functions.tracer);
	for (size_t i = 0; i < start->n_functions; i++)
		buf_printf(&what, "%s%s", what.len ? " " : "", start->functions[i]);
	for (size_t i = 0; i < start->n_probes; i++)
		buf_printf(&what, "%s%s", what.len ? "; " : "", start->probes[i]->definition);
	for (size_t i = 0; i < start->n_sql; i++)
		buf_printf(&what, "%s%s", what.len ? "; " : "", start->sql[i]->name);
	for (size_t i = 0; i < start->n_hists; i++)
		buf_printf(&what, "%s%s", what.len ? "; " : "", start->hists[i]);
	for (size_t i = from; i < p->request.event_count; i++)
		buf_printf(&what, "%s%s", what.len ? " " : "", p->specs[i].glob);
	for (size_t i = 0; i < start->n_triggers; i++)
		buf_printf(&what, "; %s%s%.100s", start->triggers[i]->event,
			   *start->triggers[i]->event ? ": " : "", start->triggers[i]->action);
	for (size_t i = 0; i < p->request.polls.count; i++)
		buf_printf(&what, "%s%s", i ? " " : "; polls ", p->request.polls.items[i]);
	for (size_t i = 0; i < start->n_conditions; i++)
		buf_printf(&what, "; on %s", start->conditions[i]);
	/* All sessions have to fit into one reply. */
	len = buf_string(&what) ? utf8_clip(what.data, WHAT_MAX) : 0;
	if (len < what.len)
		buf_replace(&what, len, what.len - len, " ...", strlen(" ..."));
	if (!buf_string(&what))
		return error_errno(err, -ENOMEM, "session");
	p->what = TAKE_PTR(what.data);
	return 0;
}

static int start_choose_duration(struct start_plan *p, const struct manager *m, uid_t uid,
				 uint64_t wanted, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *section;
	uint64_t max = policy_duration_max(m, uid, &section);

	/* Clock readings are added to the duration: keep the sum from overflowing. */
	if (wanted > DURATION_MAX) {
		error_set(err, -EINVAL, "a recording of more than a century is too long");
		return error_hint(err, "without a duration it goes on until it is stopped");
	}
	p->request.duration_ns = wanted;
	if (!max || (wanted && wanted <= max))
		return 0;
	format_duration(max, &text);
	if (!buf_string(&text))
		return error_errno(err, -ENOMEM, "session");
	if (wanted) {
		error_set(err, -EINVAL, "%s is the longest recording allowed here", text.data);
		return error_hint(err, "shorten it, or raise duration_max in [%s] of traced.conf",
				  section);
	}
	p->request.duration_ns = max;
	if (asprintf(&p->note,
		     "it will end by itself after %s: duration_max in [%s] of traced.conf",
		     text.data, section) < 0) {
		p->note = NULL;
		return error_errno(err, -ENOMEM, "session");
	}
	return 0;
}

static int start_copy_probes(struct start_plan *p, const Traced__Control__Start *start)
{
	p->probes = calloc(start->n_probes + 1, sizeof(*p->probes));
	if (!p->probes)
		return -ENOMEM;
	for (size_t i = 0; i < start->n_probes; i++) {
		const Traced__Control__Probe *from = start->probes[i];

		p->probes[i] = (struct capture_probe){
			.kind = (enum probe_kind_id)from->kind,
			.definition = from->definition,
			.filter = *from->filter ? from->filter : NULL,
		};
	}
	p->request.probes = p->probes;
	p->request.probe_count = start->n_probes;
	return 0;
}

static int start_copy_triggers(struct start_plan *p, const Traced__Control__Start *start)
{
	p->triggers = calloc(start->n_triggers + 1, sizeof(*p->triggers));
	if (!p->triggers)
		return -ENOMEM;
	for (size_t i = 0; i < start->n_triggers; i++) {
		const Traced__Control__EventTrigger *from = start->triggers[i];

		p->triggers[i] = (struct capture_trigger){
			.event = *from->event ? from->event : NULL,
			.probe = from->probe,
			.action = from->action,
		};
	}
	p->request.triggers = p->triggers;
	p->request.trigger_count = start->n_triggers;
	return 0;
}

static int start_copy_tasks(pid_t *to, const int32_t *from, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		if (from[i] <= 0)
			return error_set(err, -EINVAL, "%" PRId32 " is no task", from[i]);
		to[i] = from[i];
	}
	return 0;
}

static int start_copy_lists(struct start_plan *p, const Traced__Control__Start *start,
			    struct error *err)
{
	p->pids = calloc(start->n_pids + 1, sizeof(*p->pids));
	p->command = calloc(start->n_command + 1, sizeof(*p->command));
	p->processes = calloc(start->n_processes + 1, sizeof(*p->processes));
	if (!p->pids || !p->processes || !p->command || start_copy_probes(p, start) < 0 ||
	    start_copy_triggers(p, start) < 0)
		return error_errno(err, -ENOMEM, "session");
	if (start_copy_tasks(p->pids, start->pids, start->n_pids, err) < 0 ||
	    start_copy_tasks(p->processes, start->processes, start->n_processes, err) < 0)
		return -EINVAL;
	for (size_t i = 0; i < start->n_command; i++)
		p->command[i] = start->command[i];
	p->request.pids = start->n_pids ? p->pids : NULL;
	p->request.pid_count = start->n_pids;
	p->request.processes = start->n_processes ? p->processes : NULL;
	p->request.process_count = start->n_processes;
	p->request.command = start->n_command ? p->command : NULL;
	if (*start->cpus) {
		int r = parse_cpu_list(start->cpus, &p->cpus, err);

		if (r < 0)
			return r;
		p->request.cpus = &p->cpus;
	}
	return 0;
}

void start_plan_move(struct start_plan *to, struct start_plan *from)
{
	*to = *from;
	/* The request points into the plan: fix that pointer. */
	if (to->request.cpus)
		to->request.cpus = &to->cpus;
	*from = (struct start_plan){ 0 };
}

static int start_copy(struct start_plan *p, const Traced__Control__Start *start)
{
	size_t len = traced__control__start__get_packed_size(start);
	_cleanup_free_ uint8_t *packed = malloc(len ? len : 1);

	if (!packed)
		return -ENOMEM;
	traced__control__start__pack(start, packed);
	p->start = traced__control__start__unpack(NULL, len, packed);
	return p->start ? 0 : -ENOMEM;
}

static int start_choose_clock(struct start_plan *p, const struct manager *m)
{
	const char *clock = *p->start->clock ? p->start->clock : m->config.clock;

	if (!clock)
		return 0;
	p->clock = strdup(clock);
	p->request.clock = p->clock;
	return p->clock ? 0 : -ENOMEM;
}

/* Memory of the recorder besides the rings, with a reserve. */
#define RECORDER_MEMORY (8U << 20)
#define BUFFER_MIN (64U << 10)

/* Chooses the size per CPU. A size that the client asked for is never reduced silently. */
static int start_choose_buffer(struct start_plan *p, const struct manager *m,
			       const Traced__Control__Start *start, struct error *err)
{
	uint64_t cpus = (uint64_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), fits;
	uint64_t others = RECORDER_MEMORY + cpus * sampler_ring_bytes(start->sample_hz);
	const uint64_t least = start->buffer_bytes ?: BUFFER_MIN;

	p->request.buffer_bytes = start->buffer_bytes ?: m->config.buffer_size;
	if (!start->max_memory)
		return 0;
	fits = start->max_memory > others ? (start->max_memory - others) / cpus : 0;
	if (fits < least) {
		error_set(err, -ENOSPC,
			  "--max-memory is too little for buffers of %" PRIu64
			  " KiB for each of %" PRIu64 " CPUs, and the recorder",
			  least >> 10, cpus);
		return error_hint(err, "%" PRIu64 "K would do",
				  (least * cpus + others + 1023) >> 10);
	}
	if (!start->buffer_bytes)
		p->request.buffer_bytes = MIN(p->request.buffer_bytes, fits >> 10 << 10);
	return 0;
}

int start_plan_make(struct start_plan *ret, struct manager *m, uid_t uid,
		    const Traced__Control__Start *request, struct error *err)
{
	_cleanup_(start_plan_deinit) struct start_plan p = { 0 };
	const Traced__Control__Start *start;
	int r;

	r = start_copy(&p, request);
	if (r == 0)
		r = start_choose_clock(&p, m);
	if (r < 0)
		return error_errno(err, r, "session");
	start = p.start;
	p.request.reader = m->config.reader;
	p.request.ring = start->ring;
	p.request.tgid = start->tgid;
	p.request.streamed = start->stream;
	p.request.follow_forks = start->follow_forks;
	r = start_check_counts(start, err);
	if (r >= 0)
		r = start_check_sessions(m, uid, err);
	if (r >= 0)
		r = start_choose_buffer(&p, m, start, err);
	if (r >= 0)
		r = start_check_texts(start, err);
	if (r >= 0)
		r = start_choose_name(&p, m, uid, start->name, err);
	if (r >= 0)
		r = start_choose_duration(&p, m, uid, start->duration_ns, err);
	if (r >= 0)
		r = start_copy_lists(&p, start, err);
	if (r >= 0)
		r = start_choose_events(&p, m, start, err);
	if (r >= 0 && start_choose_sql(&p) < 0)
		r = error_errno(err, -ENOMEM, "session");
	if (r >= 0 && start_choose_polls(&p, m) < 0)
		r = error_errno(err, -ENOMEM, "session");
	if (r >= 0)
		r = policy_check_start(&p, m, uid, err);
	if (r >= 0)
		r = start_describe(&p, start, err);
	if (r < 0)
		return r;
	start_plan_move(ret, &p);
	return 0;
}
