/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/tracer_options.h"

#include <string.h>

#include "daemon/capture/tracefs/feature.h"
#include "daemon/capture/tracefs/setting.h"

#define HINT "before Linux 6.19 all recordings share this tracer's options: wait for its end"
#define HINT_OF_OPTION HINT ", or leave out -O"
#define HINT_OF_VALUE HINT ", or write the option's usual value to its file in tracefs"

/* Options that change what is recorded, and their values after a boot. */
static const struct {
	const char *name;
	bool on;
} recorded[] = {
	{ "func_stack_trace", false }, { "func-no-repeats", false }, { "func-args", false },
	{ "funcgraph-args", false },   { "funcgraph-irqs", true },   { "funcgraph-retaddr", false },
	{ "funcgraph-retval", false }, { "sleep-time", true },
};

static bool is_function(const char *tracer)
{
	return strcmp(tracer, "function") == 0;
}

static bool is_graph(const char *tracer)
{
	return strcmp(tracer, "function_graph") == 0;
}

/* For the option's tracer. */
static bool (*option_tracer(const char *name))(const char *tracer)
{
	return strncmp(name, "func_", 5) == 0 || strncmp(name, "func-", 5) == 0 ? is_function
										: is_graph;
}

bool tracer_options_are_global(const struct capture_env *env)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	return feature_kernel(env->proc, &text) < FEATURE_KERNEL(6, 19);
}

int tracer_check_unused(const struct tracefs *fs, bool (*is)(const char *tracer), const char *hint,
			struct error *err)
{
	char **names = NULL;
	size_t count = 0;
	int r = tracefs_list_instances(fs, &names, &count);

	if (r < 0)
		return error_errno(err, r, "cannot list the tracefs instances");
	for (size_t i = 0; i <= count && r == 0; i++) {
		const char *instance = i < count ? names[i] : NULL;
		_cleanup_close_ int dir = tracefs_open_instance(fs, instance);
		_cleanup_buf_ struct buf tracer = BUF_INIT;

		/* An instance may end meanwhile. */
		if (dir < 0 || tracefs_read(dir, "current_tracer", &tracer) < 0 ||
		    !buf_string(&tracer) || !is(tracer.data))
			continue;
		error_set(err, -EBUSY, "the tracer '%s' is already on in %s%s", tracer.data,
			  instance ? "the instance " : "the top-level buffer", instance ?: "");
		r = error_hint(err, "%s", hint);
	}
	tracefs_free_names(names, count);
	return r;
}

int tracer_options_check(const struct capture_env *env, const struct capture_request *request,
			 struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < request->options.count && r == 0; i++) {
		bool on;
		const char *name = setting_option_name(request->options.items[i], &on);

		if (setting_is_tracer_option(name) && tracer_options_are_global(env))
			r = tracer_check_unused(env->tracefs, option_tracer(name), HINT_OF_OPTION,
						err);
	}
	return r;
}

static int check_option(const struct tracefs *fs, const char *file, struct error *err)
{
	return tracer_check_unused(fs, option_tracer(file + strlen("options/")), HINT_OF_OPTION,
				   err);
}

/* An option that somebody else's recording has set would count for this one, too, until it ends. */
static int check_values(const struct tracefs *fs, bool (*is)(const char *tracer), struct error *err)
{
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		char file[64];

		if (option_tracer(recorded[i].name) != is)
			continue;
		snprintf(file, sizeof(file), "options/%s", recorded[i].name);
		if (tracefs_read(tracefs_root(fs), file, &text) < 0 || !buf_string(&text) ||
		    (*text.data == '1') == recorded[i].on)
			continue;
		r = tracer_check_unused(fs, is, HINT_OF_VALUE, err);
		if (r == -EBUSY)
			error_prefix(err, "somebody else has set the option '%s%s'",
				     recorded[i].on ? "no" : "", recorded[i].name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_function(const struct tracefs *fs, const char *file _unused_, struct error *err)
{
	return check_values(fs, is_function, err);
}

static int check_graph(const struct tracefs *fs, const char *file _unused_, struct error *err)
{
	return check_values(fs, is_graph, err);
}

void tracer_options_plan_unused(struct plan *plan, size_t first)
{
	bool any = false;

	for (size_t i = first; i < plan->count; i++) {
		struct plan_step *s = &plan->steps[i];
		const bool is_option = strncmp(s->file, "options/", strlen("options/")) == 0;

		if (is_option && setting_is_tracer_option(s->file + strlen("options/")))
			s->check = check_option;
		else if (strcmp(s->file, "current_tracer") == 0 && is_function(s->value))
			s->check = check_function;
		else if (strcmp(s->file, "current_tracer") == 0 && is_graph(s->value))
			s->check = check_graph;
		any |= s->check == check_option;
		s->joined |= any;
	}
}
