/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/functions.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/utsname.h>

#include "base/nearest.h"
#include "daemon/capture/plan/latency.h"
#include "daemon/capture/plan/tracer_options.h"
#include "daemon/capture/tracefs/feature.h"
#include "daemon/capture/tracefs/function_list.h"
#include "daemon/capture/tracefs/setting.h"

/* Commands of a function filter. "mod" is not one: it is part of the filter. */
static const char *const commands[] = { "traceon", "traceoff", "stacktrace", "enable_event",
					"disable_event" };
/* Commands whose effect reaches beyond the recording. */
static const char *const unwanted[] = { "snapshot", "dump", "cpudump" };

static bool functions_has_word(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}

#define TRACERS_MAX 64

/* names: those of the kernel, with room for those that only other kernels have. */
static int functions_offer_tracer(const char *tracer, const char *names[static TRACERS_MAX],
				  size_t count, const char *list, struct error *err)
{
	const size_t known =
		count + feature_names(FEATURE_TRACER, names + count, TRACERS_MAX - count);
	_cleanup_buf_ struct buf has = BUF_INIT, mend = BUF_INIT;
	const char *best[NEAREST_MAX];

	if (feature_needs(FEATURE_TRACER, tracer)) {
		buf_printf(&has, "this one has: %s", list);
		return feature_hint(err, FEATURE_TRACER, tracer, buf_string(&has));
	}
	if (!nearest_names(tracer, names, known, best) || strcmp(best[0], "nop") == 0)
		return error_hint(err, "it has: %s; events can still be recorded", list);
	if (functions_has_word(best[0], names, count))
		return error_hint(err, "did you mean '%s'? It has: %s", best[0], list);
	feature_put_mend(FEATURE_TRACER, best[0], &mend);
	return error_hint(err, "did you mean '%s'? For that, %s; this one has: %s", best[0],
			  buf_string(&mend) ?: "", list);
}

static int functions_check_tracer(const struct tracefs *fs, const char *tracer, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *names[TRACERS_MAX];
	_cleanup_free_ char *copy = NULL;
	char *save = NULL;
	size_t count = 0;
	int r = tracefs_read(tracefs_root(fs), "available_tracers", &text);

	if (r < 0)
		return tracefs_unreadable(err, r, "available_tracers");
	copy = buf_string(&text) ? strdup(text.data) : NULL;
	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	for (char *p = strtok_r(copy, " \n", &save); p && count < TRACERS_MAX;
	     p = strtok_r(NULL, " \n", &save))
		names[count++] = p;
	/* Another kernel would not help. */
	if (latency_is_known(tracer) && !latency_is(tracer))
		return latency_check_name(tracer, err);
	if (!functions_has_word(tracer, names, count)) {
		error_set(err, -ENOENT, "this kernel has no tracer '%s'", tracer);
		return functions_offer_tracer(tracer, names, count, text.data, err);
	}
	if (strcmp(tracer, "function") == 0 || strcmp(tracer, "function_graph") == 0)
		return 0;
	return latency_check_name(tracer, err);
}

/* A filter for an absent module is valid: the kernel keeps it until the module is loaded. */
static bool module_may_come(const char *module)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[256], file[160];
	struct utsname u;

	uname(&u);
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", u.release);
	if (tracefs_read(AT_FDCWD, path, &text) < 0 || !buf_string(&text))
		return false;
	snprintf(file, sizeof(file), "/%s.ko", module);
	for (char *p = text.data; *p; p++)
		if (*p == '-')
			*p = '_';
	for (char *p = file; *p; p++)
		if (*p == '-')
			*p = '_';
	return strstr(text.data, file) != NULL;
}

static int functions_check_trigger(const struct tracefs *fs, const char *text,
				   const struct function_word *word, struct error *err)
{
	const char *best[NEAREST_MAX];
	char path[256];
	int fd;

	if (functions_has_word(word->command, unwanted, ARRAY_SIZE(unwanted))) {
		error_set(err, -EOPNOTSUPP, "'%s': the output of %s would not be in the recording",
			  text, word->command);
		return error_hint(err,
				  "to keep the events before a function: --ring -l '%s:traceoff'",
				  word->glob);
	}
	if (!functions_has_word(word->command, commands, ARRAY_SIZE(commands))) {
		error_set(err, -EINVAL, "'%s': functions have no command '%s'", text,
			  word->command);
		if (nearest_names(word->command, commands, ARRAY_SIZE(commands), best) == 1)
			return error_hint(err, "did you mean '%s:%s'?", word->glob, best[0]);
		return error_hint(err, "the commands are traceon, traceoff, stacktrace, "
				       "enable_event, disable_event, and mod");
	}
	if (!strstr(word->command, "able_event"))
		return 0;
	if (word->parameters && strchr(word->parameters, ':')) {
		const char *event = strchr(word->parameters, ':') + 1;

		snprintf(path, sizeof(path), "events/%.*s/%.*s/enable",
			 (int)strcspn(word->parameters, ":"), word->parameters,
			 (int)strcspn(event, ":"), event);
		fd = tracefs_open_file(tracefs_root(fs), O_RDONLY, "%s", path);
		if (fd >= 0) {
			close(fd);
			return 0;
		}
	}
	error_set(err, -ENOENT, "'%s' names no event", text);
	return error_hint(err, "write it as in 'do_exit:%s:sched:sched_switch'", word->command);
}

/* Applies the filters to a flag per function, to find out whether any is left. */
struct selection {
	const struct tracefs *fs;
	struct function_list list;
	bool *kept;
	bool pending; /* a filter waits for its module to be loaded */
};

static void selection_deinit(struct selection *s)
{
	function_list_deinit(&s->list);
	free(s->kept);
}

static void selection_keep(struct selection *s, const struct function_word *word, bool kept)
{
	for (size_t i = 0; i < s->list.count; i++)
		if (function_matches(&s->list, i, word))
			s->kept[i] = kept;
}

static int selection_add_word(struct selection *s, const char *text, bool *any, struct error *err)
{
	struct function_word word;
	int r = function_word_parse(&word, text, err);

	if (r < 0)
		return r;
	if (!function_any_matches(&s->list, &word)) {
		if (!*word.command && *word.module && !word.negated &&
		    !function_module_is_loaded(&s->list, word.module) &&
		    module_may_come(word.module)) {
			s->pending = *any = true;
			return 0;
		}
		return function_no_match(&s->list, &word, err);
	}
	if (*word.command)
		return functions_check_trigger(s->fs, text, &word, err);
	if (!*any && !word.negated)
		memset(s->kept, 0, s->list.count * sizeof(*s->kept));
	*any |= !word.negated;
	selection_keep(s, &word, !word.negated);
	return 0;
}

static size_t selection_count(const struct selection *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->list.count; i++)
		n += s->kept[i];
	return n;
}

static int function_word_parse_plain(const char *text, struct function_word *word,
				     struct error *err)
{
	int r = function_word_parse(word, text, err);

	if (r == 0 && *word->command)
		return error_set(err, -EINVAL, "'%s' is a command, which only -l takes", text);
	return r;
}

static int functions_check_roots(const struct selection *s, const struct capture_functions *f,
				 struct error *err)
{
	bool reachable = !f->roots.count || s->pending;

	for (size_t i = 0; i < f->roots.count; i++) {
		struct function_word word;
		int r = function_word_parse_plain(f->roots.items[i], &word, err);

		if (r == 0 && !function_any_matches(&s->list, &word))
			r = function_no_match(&s->list, &word, err);
		if (r < 0)
			return r;
		for (size_t k = 0; k < s->list.count && !reachable; k++)
			reachable = s->kept[k] && function_matches(&s->list, k, &word);
	}
	if (reachable)
		return 0;
	error_set(err, -EINVAL, "the graph would be empty: -l and -n exclude the functions of -g");
	return error_hint(err, "add a root to what is traced: -l '%s'", f->roots.items[0]);
}

static int functions_check_selection(const struct tracefs *fs, const struct capture_functions *f,
				     struct error *err)
{
	_cleanup_(selection_deinit) struct selection s = { .fs = fs };
	bool any = false;
	int r = function_list_read(&s.list, fs, err);

	if (r < 0)
		return r;
	s.kept = malloc(s.list.count + 1);
	if (!s.kept)
		return error_set(err, -ENOMEM, "out of memory");
	memset(s.kept, 1, s.list.count);
	for (size_t i = 0; i < f->only.count && r == 0; i++)
		r = selection_add_word(&s, f->only.items[i], &any, err);
	for (size_t i = 0; i < f->never.count && r == 0; i++) {
		struct function_word word;

		r = function_word_parse_plain(f->never.items[i], &word, err);
		if (r == 0 && !function_any_matches(&s.list, &word))
			r = function_no_match(&s.list, &word, err);
		if (r == 0)
			selection_keep(&s, &word, false);
	}
	if (r < 0)
		return r;
	if (any && !f->tracer) {
		error_set(err, -EINVAL, "-l selects functions, but no tracer is requested");
		return error_hint(err, "choose -p function or -p function_graph");
	}
	if (f->tracer && !s.pending && !selection_count(&s))
		return error_set(err, -EINVAL, "-l and -n together leave no function to trace");
	return functions_check_roots(&s, f, err);
}

static int functions_no_option(const char *option, const char *name, int dirfd, struct error *err)
{
	_cleanup_free_ const char **names = calloc(512, sizeof(*names));
	const char *best[NEAREST_MAX], *needs = feature_needs(FEATURE_OPTION, name);
	const char *graph = feature_needs(FEATURE_TRACER, "function_graph");
	size_t count = 0;
	struct dirent *e;
	DIR *dir;

	error_set(err, -ENOENT, "this kernel has no trace option '%s'", option);
	dir = names ? fdopendir(tracefs_open_file(dirfd, O_RDONLY | O_DIRECTORY, ".")) : NULL;
	if (!dir)
		return -ENOENT;
	while ((e = readdir(dir)) && count < 512)
		if (e->d_name[0] != '.')
			names[count++] = e->d_name;
	/* The names belong to the directory stream, so use them before it is closed. */
	count = nearest_names(name, names, count, best);
	/* Any other name of function_graph's is a misspelt one, if the kernel has similar ones. */
	if (needs && (!count || strcmp(needs, graph) != 0))
		feature_hint(err, FEATURE_OPTION, name, NULL);
	else if (count)
		error_hint(err, "did you mean '%s'?", best[0]);
	else
		error_hint(err, "'tracectl list options' lists them");
	closedir(dir);
	return -ENOENT;
}

static int functions_check_options(const struct tracefs *fs, const struct capture_request *request,
				   struct error *err)
{
	_cleanup_close_ int dir =
		tracefs_open_file(tracefs_root(fs), O_RDONLY | O_DIRECTORY, "options");

	for (size_t i = 0; i < request->options.count; i++) {
		const char *name, *option = request->options.items[i];
		bool on;

		if (!*option || strpbrk(option, "/. \n") || strlen(option) > 100)
			return error_set(err, -EINVAL, "'%s' is not a trace option", option);
		name = setting_option_name(option, &on);
		if (faccessat(dir, name, F_OK, 0) < 0)
			return functions_no_option(option, name, dir, err);
		if (strcmp(option, "func_stack_trace") != 0 || request->functions.only.count)
			continue;
		error_set(err, -EINVAL,
			  "recording the stack of every function would freeze the machine");
		return error_hint(err, "choose some with -l: -l vfs_open");
	}
	return 0;
}

#define GRAPH_ROOTS "set_graph_function"
#define GRAPH_DEPTH "max_graph_depth"

/* Graph roots and depth are global, not per instance. */
static int functions_check_graph_free(const struct tracefs *fs, const char *file, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = tracefs_read(tracefs_root(fs), file, &text);

	if (r < 0)
		return tracefs_unreadable(err, r, file);
	if (!buf_string(&text))
		return error_set(err, -ENOMEM, "out of memory");
	if (text.data[0] == '#' || !text.data[0] || strcmp(text.data, "0") == 0)
		return 0;
	error_set(err, -EBUSY, "somebody else has set %s, which is global to all recordings", file);
	return error_hint(err, "wait for its end, or clear it: echo %s > %s/%s",
			  strcmp(file, GRAPH_DEPTH) == 0 ? "0" : "", tracefs_path(fs), file);
}

int functions_check(const struct capture_env *env, const struct capture_request *request,
		    struct error *err)
{
	const struct capture_functions *f = &request->functions;
	const struct tracefs *fs = env->tracefs;
	bool graph = f->tracer && strcmp(f->tracer, "function_graph") == 0;
	int r = f->tracer ? functions_check_tracer(fs, f->tracer, err) : 0;

	if (r < 0)
		return r;
	if (!f->tracer && f->never.count) {
		error_set(err, -EINVAL, "-n excludes functions, but no tracer is requested");
		return error_hint(err, "choose -p function or -p function_graph");
	}
	if (!graph && (f->roots.count || f->depth)) {
		error_set(err, -EINVAL, "%s needs the function_graph tracer",
			  f->roots.count ? "-g" : "--max-graph-depth");
		return f->tracer ? error_hint(err, "leave out -p %s", f->tracer)
				 : error_hint(err, "add -p function_graph");
	}
	r = latency_check(fs, f, err);
	if (r < 0)
		return r;
	if ((f->tracer && !latency_is(f->tracer)) || f->only.count)
		r = functions_check_selection(fs, f, err);
	if (r == 0)
		r = functions_check_options(fs, request, err);
	if (r == 0)
		r = tracer_options_check(env, request, err);
	if (r == 0 && f->roots.count)
		r = functions_check_graph_free(fs, GRAPH_ROOTS, err);
	if (r == 0 && f->depth)
		r = functions_check_graph_free(fs, GRAPH_DEPTH, err);
	return r;
}

/* file: global, and refused if somebody else has set it. */
static void plan_graph(struct plan *plan, const char *file, const char *value)
{
	struct plan_step *s = plan_set(plan, NULL, file, value, NULL);

	if (s)
		s->check = functions_check_graph_free;
}

static void plan_words(struct plan *plan, const struct capture_words *words, const char *instance,
		       const char *file, bool global)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	for (size_t i = 0; i < words->count; i++) {
		struct function_word word;

		if (function_word_parse(&word, words->items[i], NULL) == 0 && !*word.command)
			buf_printf(&text, "%s\n", words->items[i]);
	}
	if (!text.len)
		return;
	if (!buf_string(&text))
		plan->failed = true;
	else if (global)
		plan_graph(plan, file, text.data);
	else
		plan_put(plan, instance, file, text.data);
}

/* The length of SYSTEM:EVENT in parameters, which a count may follow. */
static size_t event_length(const char *parameters)
{
	const char *colon = strchr(parameters, ':');

	return colon ? (size_t)(colon - parameters) + 1 + strcspn(colon + 1, ":")
		     : strlen(parameters);
}

static void plan_set_back_event(struct plan *plan, const char *parameters, size_t len)
{
	const size_t system = strcspn(parameters, ":");
	char file[256];

	if (system >= len || len > 128)
		return;
	snprintf(file, sizeof(file), "events/%.*s/%.*s/enable", (int)system, parameters,
		 (int)(len - system - 1), parameters + system + 1);
	plan_set(plan, NULL, file, NULL, NULL);
}

/* The kernel removes a trigger that has a count only by a line that has one, too. */
static void plan_trigger_of(struct plan *plan, const char *text, const struct function_word *word,
			    const char *instance)
{
	const char *parameters = word->parameters ?: "";
	size_t event = strstr(word->command, "able_event") ? event_length(parameters) : 0;
	char file[256], line[600], undo[600];

	snprintf(file, sizeof(file), "%s%s%sset_ftrace_filter", instance ? "instances/" : "",
		 instance ?: "", instance ? "/" : "");
	snprintf(line, sizeof(line), "%.500s\n", text);
	snprintf(undo, sizeof(undo), "!%s:%s%s%.*s%s\n", word->glob, word->command,
		 event ? ":" : "", (int)MIN(event, (size_t)128), parameters,
		 parameters[event] ? ":0" : "");
	/* The event stays as the trigger left it, unless its instance goes. */
	if (event && !instance)
		plan_set_back_event(plan, parameters, event);
	plan_add(plan, file, line, undo);
}

/* on: those that turn tracing on. */
static void plan_triggers(struct plan *plan, const struct capture_words *words,
			  const char *instance, bool on)
{
	for (size_t i = 0; i < words->count; i++) {
		struct function_word word;

		if (function_word_parse(&word, words->items[i], NULL) == 0 && *word.command &&
		    on == !strcmp(word.command, "traceon"))
			plan_trigger_of(plan, words->items[i], &word, instance);
	}
}

int functions_find_targets(const struct capture_request *request, const char *const *names,
			   size_t name_count, struct trigger_targets *ret, struct error *err)
{
	const struct capture_words *only = &request->functions.only;
	const char **grown =
		reallocarray(ret->names, ret->count + only->count + 1, sizeof(*ret->names));

	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	ret->names = grown;
	for (size_t i = 0; i < only->count; i++) {
		struct function_word word;
		size_t len;

		if (function_word_parse(&word, only->items[i], NULL) < 0 || !word.parameters ||
		    !strstr(word.command, "able_event"))
			continue;
		len = event_length(word.parameters);
		for (size_t k = 0; k < name_count; k++)
			if (strlen(names[k]) == len && !memcmp(names[k], word.parameters, len)) {
				ret->names[ret->count++] = names[k];
				break;
			}
	}
	return 0;
}

static void plan_options(struct plan *plan, const struct capture_words *options,
			 const char *instance, bool are_global)
{
	for (size_t i = 0; i < options->count; i++) {
		bool on;
		const char *name = setting_option_name(options->items[i], &on);
		char path[160];

		snprintf(path, sizeof(path), "options/%.100s", name);
		if (instance && !(are_global && setting_is_tracer_option(name)))
			plan_write(plan, instance, path, on ? "1" : "0");
		else
			plan_set(plan, instance, path, on ? "1" : "0", NULL);
	}
}

/*
 * Leaves out the recorder itself, or its own work would fill the rings that it empties: its
 * threads, and what they start later.
 */
static void plan_no_recorder(struct plan *plan, const char *proc, const char *instance)
{
	_cleanup_buf_ struct buf tids = BUF_INIT;
	char path[PATH_MAX];
	const struct dirent *entry;
	struct plan_step *s;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/self/task", proc);
	buf_printf(&tids, "%d", getpid());
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			buf_printf(&tids, " %s", entry->d_name);
	if (dir)
		closedir(dir);
	buf_puts(&tids, "\n");
	if (!buf_string(&tids)) {
		plan->failed = true;
		return;
	}
	s = plan_put(plan, instance, "options/function-fork", "1");
	if (s)
		s->optional = true;
	s = plan_put(plan, instance, "set_ftrace_notrace_pid", tids.data);
	/* Linux 5.8+. */
	if (s)
		s->optional = true;
}

static void plan_function_pids(struct plan *plan, const struct capture_request *request,
			       const char *instance)
{
	_cleanup_buf_ struct buf pids = BUF_INIT;

	for (size_t i = 0; i < request->pid_count; i++)
		buf_printf(&pids, "%d ", request->pids[i]);
	buf_puts(&pids, "\n");
	if (request->follow_forks)
		plan_put(plan, instance, "options/function-fork", "1");
	if (buf_string(&pids))
		plan_put(plan, instance, "set_ftrace_pid", pids.data);
	else
		plan->failed = true;
}

void functions_plan(struct plan *plan, const struct capture_env *env,
		    const struct capture_request *request, const char *instance)
{
	const struct capture_functions *f = &request->functions;
	const bool are_global = tracer_options_are_global(env);
	size_t first;
	char depth[16];

	plan_words(plan, &f->only, instance, "set_ftrace_filter", false);
	plan_words(plan, &f->never, instance, "set_ftrace_notrace", false);
	plan_words(plan, &f->roots, instance, GRAPH_ROOTS, true);
	if (f->depth) {
		snprintf(depth, sizeof(depth), "%u", f->depth);
		plan_graph(plan, GRAPH_DEPTH, depth);
	}
	if (f->tracer && !latency_is(f->tracer) && request->pid_count)
		plan_function_pids(plan, request, instance);
	else if (f->tracer && !latency_is(f->tracer))
		plan_no_recorder(plan, env->proc, instance);
	first = plan->count;
	latency_plan_before(plan, f);
	plan_options(plan, &request->options, instance, are_global);
	if (f->tracer)
		plan_put(plan, instance, "current_tracer", f->tracer);
	latency_plan_after(plan, f);
	if (are_global)
		tracer_options_plan_unused(plan, first);
	latency_plan_unused(plan, f, first);
	/* Triggers come after the tracer: they act as soon as they are set. */
	plan_triggers(plan, &f->only, instance, false);
}

void functions_plan_on(struct plan *plan, const struct capture_request *request,
		       const char *instance)
{
	plan_triggers(plan, &request->functions.only, instance, true);
}

int functions_verify(const struct capture_request *request, int dir, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (!request->options.count || tracefs_read(dir, "trace_options", &text) < 0)
		return 0;
	buf_puts(&text, "\n");
	if (!buf_string(&text))
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < request->options.count; i++) {
		const char *option = request->options.items[i], *at = text.data;
		size_t len = strlen(option);

		while (at && (strncmp(at, option, len) != 0 || at[len] != '\n')) {
			at = strchr(at, '\n');
			at = at && at[1] ? at + 1 : NULL;
		}
		if (at)
			continue;
		error_set(err, -EINVAL, "the option '%s' has no effect on this recording", option);
		return error_hint(err, "it belongs to another tracer: func... to function, "
				       "funcgraph-... to function_graph (-p)");
	}
	return 0;
}

bool functions_set_option(const struct capture_request *request, const char *name)
{
	bool on;

	for (size_t i = 0; i < request->options.count; i++)
		if (strcmp(setting_option_name(request->options.items[i], &on), name) == 0)
			return true;
	return false;
}

bool functions_want_mappings(const struct capture_request *request)
{
	for (size_t i = 0; i < request->options.count; i++)
		if (strcmp(request->options.items[i], "sym-userobj") == 0)
			return true;
	return false;
}

bool functions_have_command(const struct capture_request *request, const char *command)
{
	const struct capture_words *only = &request->functions.only;
	struct function_word word;

	for (size_t i = 0; i < only->count; i++)
		if (function_word_parse(&word, only->items[i], NULL) == 0 &&
		    strcmp(word.command, command) == 0)
			return true;
	return false;
}

static bool toplevel_cpu_is_empty(const struct tracefs *fs, unsigned cpu, uint64_t *entries)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	if (tracefs_read(tracefs_root(fs), path, &text) < 0 || !buf_string(&text) ||
	    strncmp(text.data, "entries: ", 9) != 0)
		return true;
	*entries = strtoull(text.data + 9, NULL, 10);
	return *entries == 0;
}

int toplevel_check(const struct tracefs *fs, struct error *err)
{
	_cleanup_buf_ struct buf tracer = BUF_INIT, events = BUF_INIT;
	_cleanup_close_ int pipe = -EBADF;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t entries;

	if (tracefs_read(tracefs_root(fs), "current_tracer", &tracer) < 0 || !buf_string(&tracer) ||
	    tracefs_read(tracefs_root(fs), "events/enable", &events) < 0 || !buf_string(&events))
		return error_set(err, -EIO, "cannot see who uses the top-level buffer");
	if (strcmp(tracer.data, "nop") != 0) {
		error_set(err, -EBUSY,
			  "somebody else uses the top-level buffer: its tracer '%s' is on",
			  tracer.data);
		return error_hint(err, "turn it off: echo nop > %s/current_tracer",
				  tracefs_path(fs));
	}
	if (strcmp(events.data, "0") != 0) {
		error_set(err, -EBUSY,
			  "somebody else uses the top-level buffer: it has events enabled");
		return error_hint(err, "turn them off: echo 0 > %s/events/enable",
				  tracefs_path(fs));
	}
	for (unsigned cpu = 0; cpu < (unsigned)MAX(cpus, 0L); cpu++) {
		if (toplevel_cpu_is_empty(fs, cpu, &entries))
			continue;
		error_set(err, -EBUSY, "the top-level buffer holds somebody else's events");
		return error_hint(err,
				  "save them: tracectl extract -o FILE; or throw them away: "
				  "echo > %s/trace",
				  tracefs_path(fs));
	}
	pipe = tracefs_open_file(tracefs_root(fs), O_RDONLY | O_NONBLOCK, "trace_pipe");
	if (pipe == -EBUSY)
		return error_set(err, -EBUSY, "another program is reading the top-level buffer");
	return 0;
}
