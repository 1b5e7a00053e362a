/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hints.h"

#include <string.h>

#include "base/nearest.h"
#include "base/parse.h"
#include "formats/formats.h"
#include "reports/report.h"

/* Commands and options of other tools, with our equivalents. */
static const struct {
	const char *typed, *hint;
} other_words[] = {
	{ "ls", "'tracectl list'" },
	{ "version", "'tracectl --version'" },
	{ "show", "'tracectl extract -o trace.txt'" },
	{ "script", "'tracectl convert FILE.traced trace.txt'" },
	{ "reset", "'tracectl cancel'" },
	{ "destroy", "'tracectl cancel'" },
	{ "create", "'tracectl start'" },
	{ "restore", "'tracectl recover'" },
	{ "process", "-P PID is a process with all its threads, --thread TID a thread alone" },
	{ "split", "'tracectl convert --split 10s IN OUT', or --from TIME --to TIME" },
	{ "listen", "'tracectl -H HOST record'" },
	{ "check-events", "'tracectl events'" },
	{ "options", "'tracectl list options'" },
	{ "latency", "'tracectl report sched IN', with --sort delay-max" },
	{ "stream", "'tracectl record --stream -o out.txt'" },
};

static const struct {
	char letter;
	const char *hint;
} other_letters[] = {
	{ 'a', "-e '*:*' records all events" },
	{ 'B', "each recording has its own instance; --name names it" },
	{ 'i', "the input needs no option: name the file" },
	{ 'T', "-O stacktrace records the kernel's stack of each event" },
	{ 'c', "-F records COMMAND and its children" },
	{ 'M', "--cpus takes a list: --cpus 0-3,8" },
};

static bool hint_is_unit(const char *word)
{
	_cleanup_free_ char *text = NULL;
	uint64_t ns;

	if (!*word || asprintf(&text, "1%s", word) < 0)
		return false;
	return parse_duration(text, &ns, NULL) == 0;
}

static bool hint_is_time(const char *word, uint64_t *ret_ns)
{
	return parse_duration(word, ret_ns, NULL) == 0;
}

void hint_stray_word(const struct options *o, const struct command *command, struct error *err)
{
	const char *word = o->args[command->args_max];
	const char *more = o->arg_count > command->args_max + 1 ? " ..." : "";
	uint64_t ns;

	/* The words of others stand for actions. */
	if (!command->options.has[OPT_EVENT] || command->words)
		error_hint(err, "tracectl %s %s", command->name, command->synopsis);
	else if (o->duration_ns && hint_is_unit(word))
		error_hint(err, "write TIME as one word: -t 1%s", word);
	else if (!o->duration_ns && hint_is_time(word, &ns))
		error_hint(err, "a duration goes after -t: -t %s", word);
	else if (command->options.has[OPT_OUTPUT] && export_format_find(NULL, word))
		error_hint(err, "name the output file with -o: -o %s", word);
	else if (strchr(word, ':') || strchr(word, '*'))
		error_hint(err, "events go after -e: -e '%s'", word);
	else if (command->takes_command && !o->command)
		error_hint(err,
			   "put the command to record after --: tracectl %s -- %s%s (an event "
			   "after -e)",
			   command->name, word, more);
	else
		error_hint(err, "an event goes after -e: tracectl %s -e %s", command->name, word);
}

static const struct command *first_taker(int id, char *const *words)
{
	const struct command *const *list;
	size_t count;

	for (; words && *words; words++) {
		const struct command *c = command_find(*words);

		if (c && c->options.has[id])
			return c;
	}
	list = commands(&count);
	for (size_t i = 0; i < count; i++) {
		if (list[i]->options.has[id])
			return list[i];
	}
	return NULL;
}

static void hint_list_takers(int id, struct buf *out)
{
	const struct command *const *list;
	size_t count, takers = 0;

	list = commands(&count);
	for (size_t i = 0; i < count; i++) {
		if (list[i]->options.has[id] && takers++ < NEAREST_MAX)
			buf_printf(out, "%s%s", out->len ? ", " : "", list[i]->name);
	}
	if (takers > NEAREST_MAX)
		buf_puts(out, " ...");
}

/* Words of other programs for what an option does. */
static const struct {
	const char *name, *hint;
} other_names[] = {
	{ "process", "-P PID is a process with all its threads, --thread TID a thread alone" },
};

bool hint_other_name(const char *name, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++) {
		if (strcmp(other_names[i].name, name) != 0)
			continue;
		error_hint(err, "%s", other_names[i].hint);
		return true;
	}
	return false;
}

void hint_foreign_option(int id, int letter, bool before, char *const *words, struct error *err)
{
	_cleanup_buf_ struct buf takers = BUF_INIT;
	const struct option_spec *spec;
	const struct command *taker;
	char name[64];

	for (size_t i = 0; id == OPT_COUNT && i < ARRAY_SIZE(other_letters); i++) {
		if (other_letters[i].letter == letter)
			error_hint(err, "%s", other_letters[i].hint);
	}
	if (id == OPT_COUNT)
		return;
	spec = &option_specs[id];
	if (command_takes(NULL, id)) {
		error_hint(err, "it goes before the command: tracectl --%s", spec->name);
		return;
	}
	if (letter)
		snprintf(name, sizeof(name), "-%c", letter);
	else
		snprintf(name, sizeof(name), "--%s", spec->name);
	taker = first_taker(id, words);
	if (before && taker) {
		error_hint(err, "it goes after the command: tracectl %s %s%s%s", taker->name, name,
			   spec->arg ? " " : "", spec->arg ?: "");
		return;
	}
	hint_list_takers(id, &takers);
	if (takers.len)
		error_hint(err, "%s is an option of: %s", name, buf_string(&takers) ?: "");
}

/* Names that begin with `name`, else similar ones. */
static size_t hint_meant(const char *name, const char *const *names, size_t count,
			 const char *best[static NEAREST_MAX])
{
	size_t found = 0;

	for (size_t i = 0; i < count && found < NEAREST_MAX; i++) {
		if (*name && !strncmp(names[i], name, strlen(name)))
			best[found++] = names[i];
	}
	return found ?: nearest_names(name, names, count, best);
}

int command_unknown(const char *name, struct error *err)
{
	const struct command *const *list;
	_cleanup_free_ const char **names = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *best[NEAREST_MAX];
	size_t count, visible = 0, found;

	error_set(err, -EINVAL, "unknown command '%s'", name);
	for (size_t i = 0; i < ARRAY_SIZE(other_words); i++) {
		if (!strcmp(name, other_words[i].typed))
			return error_hint(err, "did you mean %s?", other_words[i].hint);
	}
	if (report_is_name(name))
		return error_hint(err, "did you mean 'tracectl report %s IN'?", name);
	list = commands(&count);
	names = calloc(count, sizeof(*names));
	for (size_t i = 0; names && i < count; i++) {
		if (!list[i]->hidden)
			names[visible++] = list[i]->name;
	}
	found = hint_meant(name, names, visible, best);
	for (size_t i = 0; i < found; i++)
		buf_printf(&text, "%s'%s'", !i ? "" : i + 1 < found ? ", " : " or ", best[i]);
	if (found)
		return error_hint(err, "did you mean %s? 'tracectl help' lists all",
				  buf_string(&text) ?: best[0]);
	return error_hint(err, "'tracectl help' lists all commands");
}
