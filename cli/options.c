/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses a command line with the table of option_specs.c. */
#include <getopt.h>
#include <string.h>

#include "base/nearest.h"
#include "base/vec.h"
#include "cli.h"
#include "daemon/service/start.h"
#include "hints.h"

void options_deinit(struct options *o)
{
	free(o->events);
	free(o->probes);
	free(o->sql);
	for (size_t i = 0; i < o->key_count; i++)
		free((char *)(uintptr_t)o->keys[i].modifier);
	free((char *)(uintptr_t)o->lone_buckets.modifier);
	free(o->keys);
	free(o->hists.items);
	free(o->vals.items);
	for (size_t i = 0; i < o->trigger_count; i++)
		free(o->triggers[i].text);
	free(o->triggers);
	free(o->merges);
	free(o->pids);
	free(o->threads);
	free(o->event_filters.items);
	free(o->functions.items);
	free(o->not_functions.items);
	free(o->graph_roots.items);
	free(o->trace_options.items);
	free(o->shed.items);
	free(o->reports.items);
	free(o->on.items);
	free(o->polls.items);
	free(o->cpu_profiles.items);
	free(o->hosts.items);
	free(o->host_files.items);
	free(o->labels.items);
	free(o->typed);
	free(o->args);
	*o = (struct options){ 0 };
}

/* Tables for getopt; a long option's value is its id above all letters. */
#define LONG_BASE 256
struct getopt_tables {
	char letters[2 + 2 * OPT_COUNT + 1];
	struct option longs[OPT_COUNT + 1];
};

static void options_make_tables(struct getopt_tables *t, const struct command *command)
{
	size_t letters = 0, longs = 0;

	/* '-': return positionals in order, as code 1; ':': report a missing value separately. */
	t->letters[letters++] = command ? '-' : '+';
	t->letters[letters++] = ':';
	for (int id = 0; id < OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];

		if (!command_takes(command, id))
			continue;
		if (spec->letter) {
			t->letters[letters++] = spec->letter;
			if (spec->arg)
				t->letters[letters++] = ':';
		}
		t->longs[longs++] = (struct option){
			.name = spec->name,
			.has_arg = !spec->arg	       ? no_argument
				   : *spec->arg == '[' ? optional_argument
						       : required_argument,
			.val = LONG_BASE + id,
		};
	}
	t->letters[letters] = '\0';
	t->longs[longs] = (struct option){ 0 };
}

/* code must come from the tables. */
static const struct option_spec *spec_of_code(int code)
{
	int id = 0;

	if (code >= LONG_BASE)
		return &option_specs[code - LONG_BASE];
	while (id < OPT_COUNT - 1 && option_specs[id].letter != code)
		id++;
	return &option_specs[id];
}

/* Searches all options, allowed or not; OPT_COUNT: not found. */
static int option_find(int letter, const char *name)
{
	int id = 0;

	while (id < OPT_COUNT &&
	       !(name ? !strcmp(option_specs[id].name, name) : option_specs[id].letter == letter))
		id++;
	return id;
}

/* Whether the word, taken for the start of spec's name, is another command's option. */
static bool option_is_another(const char *word, const struct option_spec *spec)
{
	_cleanup_free_ char *name =
		strncmp(word, "--", 2) ? NULL : strndup(word + 2, strcspn(word + 2, "="));

	return name && strcmp(name, spec->name) != 0 && option_find(0, name) < OPT_COUNT;
}

/* The word that getopt_long() rejected is words[0]. */
struct stumble {
	char *const *words;
	int letter;  /* getopt's optopt */
	bool before; /* before the command */
};

static int option_unknown(const struct stumble *at, const struct getopt_tables *t,
			  struct error *err)
{
	const char *names[OPT_COUNT], *best[NEAREST_MAX], *candidate = NULL;
	const char *typed = at->words[0];
	_cleanup_free_ char *name = NULL;
	size_t count = 0, prefixes = 0;

	if (at->letter > 0 && at->letter < LONG_BASE) {
		error_set(err, -EINVAL, "unknown option -%c", at->letter);
		hint_foreign_option(option_find(at->letter, NULL), at->letter, at->before,
				    at->words + 1, err);
		return -EINVAL;
	}
	name = strndup(typed + 2, strcspn(typed + 2, "="));
	if (!name)
		return error_errno(err, -ENOMEM, "%s", typed);
	if (at->letter >= LONG_BASE) {
		error_set(err, -EINVAL, "--%s takes no value", name);
		return -EINVAL;
	}
	for (const struct option *l = t->longs; l->name; l++) {
		names[count++] = l->name;
		if (!strncmp(l->name, name, strlen(name))) {
			prefixes++;
			candidate = l->name;
		}
	}
	if (prefixes > 1) {
		error_set(err, -EINVAL, "--%s may mean several options", name);
		return error_hint(err, "write it in full, for example --%s", candidate);
	}
	error_set(err, -EINVAL, "unknown option --%s", name);
	if (hint_other_name(name, err))
		return -EINVAL;
	count = nearest_names(name, names, count, best);
	if (count)
		return error_hint(err, "did you mean --%s?", best[0]);
	hint_foreign_option(option_find(0, name), 0, at->before, at->words + 1, err);
	return -EINVAL;
}

static int option_apply(struct options *o, const struct option_spec *spec, const char *value,
			struct error *err)
{
	int r = spec->set(o, value, err);

	if (r < 0 && spec->arg && spec != &option_specs[OPT_FILTER] &&
	    spec != &option_specs[OPT_EVENT] && spec != &option_specs[OPT_PID] &&
	    spec != &option_specs[OPT_THREAD])
		error_prefix(err, "--%s", spec->name);
	if (r == 0 && vec_push(o->typed, o->typed_count, o->typed_cap,
			       (struct typed_option){ (int)(spec - option_specs), value }) < 0)
		r = error_errno(err, -ENOMEM, "--%s", spec->name);
	return r;
}

static int options_add_arg(struct options *o, char *arg, struct error *err)
{
	if (vec_reserve_exact(o->args, o->arg_count, 2) < 0)
		return error_errno(err, -ENOMEM, "%s", arg);
	o->args[o->arg_count++] = arg;
	o->args[o->arg_count] = NULL;
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, const struct command *command,
		  int *ret_next, struct error *err)
{
	struct getopt_tables tables;
	int r = 0, code;

	options_make_tables(&tables, command);
	o->of_recording = command && command_takes(command, OPT_FROM);
	opterr = 0;
	optind = 0; /* glibc: reinitialise */
	while (!r) {
		int at = optind ?: 1;

		code = getopt_long(argc, argv, tables.letters, tables.longs, NULL);
		if (code < 0)
			break;
		if (code == 1) {
			r = options_add_arg(o, optarg, err);
		} else if (code >= LONG_BASE && option_is_another(argv[at], spec_of_code(code))) {
			const struct stumble stumble = { argv + at, 0, !command };

			r = option_unknown(&stumble, &tables, err);
		} else if (code == '?') {
			const struct stumble stumble = { argv + at, optopt, !command };

			r = option_unknown(&stumble, &tables, err);
		} else if (code == ':') {
			const struct option_spec *spec = spec_of_code(optopt);

			r = error_set(err, -EINVAL, "--%s takes a value: %s", spec->name,
				      spec->arg);
		} else {
			r = option_apply(o, spec_of_code(code), optarg, err);
		}
	}
	if (r == 0 && o->lone_filter && (!command || command_takes(command, OPT_EVENT))) {
		error_set(err, -EINVAL, "-f '%.200s' has no event before it", o->lone_filter);
		return error_hint(err, "a filter applies to the -e or the probe before it: "
				       "-e sched:sched_switch -f 'next_prio < 100'");
	}
	if (r < 0)
		return r;
	/* Only this tracer has them. */
	if (!o->tracer && (o->graph_roots.count || o->graph_depth))
		o->tracer = "function_graph";
	if (command && optind < argc)
		o->command = argv + optind;
	*ret_next = optind;
	return 0;
}

/* The rules of `start`. */
static int options_check_start(const struct options *o, struct error *err)
{
	if (!o->on.count && (o->before_ns || o->after_ns || o->at_most || o->max_size || o->hook)) {
		error_set(err, -EINVAL,
			  "--before, --after, --at-most, --max-size and --hook go "
			  "only with --on");
		return error_hint(err, "for example: --ring --on 'sched.delay > 5ms'");
	}
	if (!o->on.count && !o->rotate_bytes && !o->rotate_ns && (o->output || o->format)) {
		error_set(err, -EINVAL, "start writes files only with --rotate or --on");
		return error_hint(err, "'tracectl stop -o FILE' writes the recording");
	}
	return 0;
}

static bool options_have(const struct options *o, int id)
{
	size_t i = 0;

	while (i < o->typed_count && o->typed[i].id != id)
		i++;
	return i < o->typed_count;
}

/* Options of the report that `record` makes only if one is named. */
static int options_check_report(const struct options *o, struct error *err)
{
	static const int of_report[] = { OPT_BY, OPT_SORT, OPT_TOP, OPT_MIN, OPT_TASK, OPT_CSV };

	for (size_t i = 0; i < o->typed_count; i++) {
		const struct typed_option *typed = &o->typed[i];
		size_t k = 0;

		while (k < ARRAY_SIZE(of_report) && of_report[k] != typed->id)
			k++;
		if (k == ARRAY_SIZE(of_report))
			continue;
		error_set(err, -EINVAL, "record: --%s is of a report, and there is none",
			  option_specs[typed->id].name);
		return error_hint(err, "name the report: --report sched");
	}
	return 0;
}

int options_check(const struct options *o, const struct command *command, struct error *err)
{
	if (o->command && !command->takes_command) {
		error_set(err, -EINVAL, "%s: it runs no command, but '%.200s' follows --",
			  command->name, o->command[0]);
		return error_hint(err, "tracectl record -- COMMAND runs one");
	}
	if (o->arg_count > command->args_max) {
		error_set(err, -EINVAL, "%s: '%s' is one argument too many", command->name,
			  o->args[command->args_max]);
		hint_stray_word(o, command, err);
		return -EINVAL;
	}
	if (o->arg_count < command->args_min) {
		error_set(err, -EINVAL, "%s: an argument is missing", command->name);
		return error_hint(err, "tracectl %s %s", command->name, command->synopsis);
	}
	if (o->event_filters.count && !command->options.has[OPT_FROM]) {
		error_set(err, -EINVAL,
			  "-f '%s': the kernel's filters have no event before a colon",
			  o->event_filters.items[0]);
		return error_hint(err, "a filter applies to the -e or the probe before it: "
				       "-e sched:sched_switch -f 'next_prio < 100'");
	}
	/* mark and sync name a session that is there: root, UID/NAME, too. */
	if (o->name && command != &command_mark && command != &command_sync &&
	    start_check_name(o->name, err) < 0)
		return -EINVAL;
	if (o->follow && !o->command && !o->pid_count && !o->thread_count) {
		error_set(err, -EINVAL, "-F needs a command or a process");
		return error_hint(err, "tracectl record -F -- COMMAND, or -F -P PID");
	}
	if (options_have(o, OPT_STATUS) && !o->command) {
		error_set(err, -EINVAL, "--status needs a command");
		return error_hint(err, "tracectl record --status ours -- COMMAND");
	}
	if (o->keep && !o->rotate_bytes && !o->rotate_ns && !o->on.count) {
		error_set(err, -EINVAL, "--keep needs --rotate%s",
			  command->options.has[OPT_ON] ? " or --on" : "");
		return error_hint(err, "for example: --rotate 100M --keep %u", o->keep);
	}
	if (command == &command_start && options_check_start(o, err) < 0)
		return -EINVAL;
	if (command == &command_record && !o->reports.count && options_check_report(o, err) < 0)
		return -EINVAL;
	/* A conversion reads complete files only. */
	if (o->merge_count && command != &command_convert &&
	    (o->stream || o->rotate_bytes || o->rotate_ns)) {
		error_set(err, -EINVAL, "--merge and --%s exclude each other",
			  o->stream ? "stream" : "rotate");
		return error_hint(err,
				  "record a .traced; 'tracectl convert' can merge and rotate it");
	}
	if (o->cpu_profiles.count && (o->rotate_bytes || o->rotate_ns))
		return error_set(err, -EINVAL, "--cpu-profile and --rotate exclude each other");
	if ((o->sample_event || o->call_graph) && !o->sample_hz) {
		error_set(err, -EINVAL, "--%s needs --sample",
			  o->sample_event ? "sample-event" : "call-graph");
		return error_hint(err, "add --sample 997hz");
	}
	if (o->sample_hz && (o->ring || o->stream || o->rotate_bytes || o->rotate_ns)) {
		error_set(err, -EINVAL, "--sample and --%s exclude each other",
			  o->ring     ? "ring"
			  : o->stream ? "stream"
				      : "rotate");
		return error_hint(err, "a recording with samples is written at its end");
	}
	if (o->polls.count && o->ring) {
		error_set(err, -EINVAL, "--poll and --ring exclude each other");
		return error_hint(err, "a flight recorder keeps the kernel's events only");
	}
	if (o->ring && (o->stream || o->rotate_bytes || o->rotate_ns)) {
		error_set(err, -EINVAL, "--ring and --%s exclude each other",
			  o->stream ? "stream" : "rotate");
		return error_hint(
			err,
			"--ring is written on request, by 'tracectl snapshot' or 'tracectl stop'");
	}
	return 0;
}
