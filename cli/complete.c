/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl __complete -- WORD... CURRENT`: prints candidates for CURRENT, one per line, for the
 * shell's completion; for "--name=VALUE", candidates for VALUE. Uses the parser's tables, so it
 * can't become outdated. A line ":file" or ":command" lets the shell complete file or program
 * names.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "daemon/service/profiles.h"
#include "formats/formats.h"
#include "kernel/clocks.h"
#include "kernel/event_list.h"
#include "stream/poll_source.h"

static void complete_offer(const char *candidate, const char *current)
{
	if (!strncmp(candidate, current, strlen(current)))
		cli_line(stdout, "%s", candidate);
}

static void offer_events(const struct options *o, const char *current)
{
	_cleanup_event_list_ struct event_list list = { 0 };
	size_t last = 0;

	if (event_list_init(&list, o, NULL) < 0)
		return;
	for (size_t i = 0; i < list.count; i++) {
		size_t system = strcspn(list.names[i], ":");

		/* The list is sorted: offer each system once, then its events. */
		if (system != last || strncmp(list.names[i], list.names[i - 1], system) != 0) {
			if (!strncmp(list.names[i], current, MIN(system, strlen(current))) &&
			    strlen(current) <= system)
				cli_line(stdout, "%.*s", (int)system, list.names[i]);
			last = system;
		}
		complete_offer(list.names[i], current);
	}
}

static void offer_sessions(const struct options *o, const char *current)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	_cleanup_link_ struct link link = { 0 };

	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STATUS;
	request.status = &query;
	if (link_open(&link, o, LINK_LISTENING, NULL) < 0 ||
	    link_call(&link, &request, NULL, 0, &reply, NULL) < 0 ||
	    reply->body_case != TRACED__CONTROL__REPLY__BODY_STATUS)
		return;
	for (size_t i = 0; i < reply->status->n_sessions; i++)
		if (!reply->status->sessions[i]->for_conditions)
			complete_offer(reply->status->sessions[i]->name, current);
}

static void offer_formats(const char *current)
{
	const struct export_format *formats;
	size_t count;

	formats = export_formats(&count);
	for (size_t i = 0; i < count; i++)
		complete_offer(formats[i].name, current);
}

static void offer_clocks(const char *current)
{
	_cleanup_buf_ struct buf clocks = BUF_INIT;
	char *save = NULL;

	clocks_list(&clocks);
	if (!buf_string(&clocks))
		return;
	for (char *p = strtok_r(clocks.data, " ", &save); p; p = strtok_r(NULL, " ", &save))
		complete_offer(p, current);
}

static void offer_profiles(const char *current)
{
	_cleanup_(string_list_deinit) struct string_list names = { 0 };

	if (profile_names(&names, profile_search_path()) < 0)
		return;
	for (size_t i = 0; i < names.count; i++)
		complete_offer(names.items[i], current);
}

/* Completes the last word of a list. */
static void offer_polls(const char *current)
{
	const char *comma = strrchr(current, ',');
	int before = comma ? (int)(comma + 1 - current) : 0;

	for (unsigned s = 1; s < POLL_SOURCES; s++) {
		_cleanup_buf_ struct buf word = BUF_INIT;

		buf_printf(&word, "%.*s%s", before, current, poll_source_name(s));
		if (buf_string(&word))
			complete_offer(word.data, current);
	}
}

static void offer_instances(const char *current)
{
	DIR *dir = opendir("/sys/kernel/tracing/instances");
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			complete_offer(entry->d_name, current);
	}
	closedir(dir);
}

static void offer_commands(const char *current)
{
	const struct command *const *list;
	size_t count;

	list = commands(&count);
	for (size_t i = 0; i < count; i++) {
		if (!list[i]->hidden)
			complete_offer(list[i]->name, current);
	}
}

static void offer_words(const char *const *words, const char *current)
{
	for (; *words; words++)
		complete_offer(*words, current);
}

static void offer_kind(const struct options *o, enum completion kind, const char *current)
{
	switch (kind) {
	case COMPLETE_NOTHING:
		break;
	case COMPLETE_FILE:
		puts(":file");
		break;
	case COMPLETE_SHELL:
		puts(":command");
		break;
	case COMPLETE_EVENT:
		offer_events(o, current);
		break;
	case COMPLETE_SESSION:
		offer_sessions(o, current);
		break;
	case COMPLETE_FORMAT:
		offer_formats(current);
		break;
	case COMPLETE_CLOCK:
		offer_clocks(current);
		break;
	case COMPLETE_PROFILE:
		offer_profiles(current);
		break;
	case COMPLETE_POLL:
		offer_polls(current);
		break;
	case COMPLETE_INSTANCE:
		offer_instances(current);
		break;
	case COMPLETE_COMMAND:
		offer_commands(current);
		break;
	}
}

static void offer_options(const struct command *command, const char *current)
{
	for (int id = 0; id < OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];
		char text[64];

		if (!command_takes(command, id))
			continue;
		snprintf(text, sizeof(text), "--%s", spec->name);
		complete_offer(text, current);
		if (spec->letter && strlen(current) < 2) {
			snprintf(text, sizeof(text), "-%c", spec->letter);
			complete_offer(text, current);
		}
	}
}

static const struct option_spec *awaits_by_name(const char *word, const struct command *command)
{
	for (int id = 0; id < OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];

		if (command_takes(command, id) && spec->arg && *spec->arg != '[' &&
		    !strcmp(word, spec->name))
			return spec;
	}
	return NULL;
}

/* Of "-vo": -o; of "-ofile": none, since its value is present. */
static const struct option_spec *last_letter_awaits(const char *letters,
						    const struct command *command)
{
	for (; *letters; letters++) {
		for (int id = 0; id < OPT_COUNT; id++) {
			const struct option_spec *spec = &option_specs[id];

			if (command_takes(command, id) && spec->arg && spec->letter == *letters)
				return letters[1] ? NULL : spec;
		}
	}
	return NULL;
}

/* The allowed option whose value is the next word; or NULL. */
static const struct option_spec *awaits_value(const char *word, const struct command *command)
{
	if (word[0] != '-')
		return NULL;
	return word[1] == '-' ? awaits_by_name(word + 2, command)
			      : last_letter_awaits(word + 1, command);
}

/* For "--name=VALUE": the option; *ret_value is VALUE. */
static const struct option_spec *has_value(const char *word, const struct command *command,
					   const char **ret_value)
{
	const char *equals = strchr(word, '=');
	_cleanup_free_ char *name = NULL;

	if (!equals || strncmp(word, "--", 2) != 0)
		return NULL;
	name = strndup(word + 2, (size_t)(equals - word - 2));
	*ret_value = equals + 1;
	return name ? awaits_by_name(name, command) : NULL;
}

static int complete_run(const struct options *o)
{
	const struct command *command = NULL;
	const struct option_spec *awaited = NULL;
	const char *current;
	char **word = o->command;
	size_t args = 0; /* of the command */

	if (!word)
		return CLI_WHOLE;
	for (; word[1]; word++) {
		if (awaited) {
			awaited = NULL;
			continue;
		}
		if (command && !strcmp(*word, "--")) {
			offer_kind(o, command->takes_command ? COMPLETE_SHELL : COMPLETE_NOTHING,
				   "");
			return CLI_WHOLE;
		}
		awaited = awaits_value(*word, command);
		if (awaited || **word == '-')
			continue;
		args += command != NULL;
		if (!command) {
			command = command_find(*word);
			if (!command)
				return CLI_WHOLE;
		}
	}
	current = *word;
	if (!awaited)
		awaited = has_value(current, command, &current);
	if (awaited)
		offer_kind(o, awaited->complete, current);
	else if (*current == '-')
		offer_options(command, current);
	else if (command && command->words && !args)
		offer_words(command->words, current);
	else
		offer_kind(o, command ? command->complete : COMPLETE_COMMAND, current);
	return CLI_WHOLE;
}

const struct command command_complete = {
	.name = "__complete",
	.synopsis = "-- WORD...",
	.summary = "for the shell's completion",
	.text = "Lists what may stand in place of the last WORD.",
	.takes_command = true,
	.hidden = true,
	.run = complete_run,
};
