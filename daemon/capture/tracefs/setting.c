/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/setting.h"

#include <string.h>

#include "base/cleanup.h"

static bool begins_with(const char *s, const char *start)
{
	return strncmp(s, start, strlen(start)) == 0;
}

bool setting_file_ends(const char *file, const char *end)
{
	size_t len = strlen(file), tail = strlen(end);

	return len >= tail && strcmp(file + len - tail, end) == 0;
}

/*
 * Reads a list of functions or tasks, one per line. "####" and "no pid" mean an empty list.
 * Triggers ("schedule:traceoff:unlimited") are listed among the functions but survive truncation;
 * globs for modules not loaded yet ("*:mod:ext4") do not.
 */
static void words_text(const char *text, struct buf *out)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		const char *colon = memchr(text, ':', len);

		if (*text != '#' && len && strncmp(text, "no pid", 6) != 0 &&
		    (!colon || begins_with(colon, ":mod:"))) {
			/* Keep only the name of "vfs_read [module]". */
			buf_append(out, text, MIN(len, strcspn(text, " \n")));
			buf_putc(out, '\n');
		}
		text += len + (text[len] == '\n');
	}
}

/* Returns "global" for "local [global] boot". */
static void chosen_text(const char *text, struct buf *out)
{
	const char *open = strchr(text, '[');

	if (open)
		buf_append(out, open + 1, strcspn(open + 1, "]"));
}

int setting_text(const char *file, const char *text, struct buf *out)
{
	static const char *const words[] = { "set_ftrace_", "set_graph_", "set_event_pid" };

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (begins_with(file, words[i])) {
			words_text(text, out);
			return 0;
		}
	}
	if (strcmp(file, "buffer_size_kb") == 0) {
		/* "7 (expanded: 1408)": the buffer gets the second size on first use. */
		const char *expanded = strstr(text, "(expanded: ");

		if (*text == 'X')
			return -EBUSY;
		if (expanded)
			text = expanded + strlen("(expanded: ");
		buf_append(out, text, strspn(text, "0123456789"));
	} else if (strcmp(file, "trace_clock") == 0) {
		chosen_text(text, out);
	} else if (setting_file_ends(file, "/enable")) {
		/* "0*": a trigger of somebody else may enable the event. */
		buf_append(out, text, MIN(strlen(text), (size_t)1));
	} else {
		buf_puts(out, text);
	}
	return 0;
}

const char *setting_option_name(const char *option, bool *on)
{
	*on = strncmp(option, "no", 2) != 0;
	return *on ? option : option + 2;
}

bool setting_is_tracer_option(const char *name)
{
	if (strcmp(name, "function-fork") == 0 || strcmp(name, "function-trace") == 0)
		return false;
	return begins_with(name, "func") || strcmp(name, "sleep-time") == 0 ||
	       strcmp(name, "graph-time") == 0;
}

const char *setting_chosen(char *text)
{
	char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

	if (!close)
		return text;
	*close = '\0';
	return open + 1;
}
