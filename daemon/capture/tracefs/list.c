/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the kernel's lists of words, and formats of events. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/capture/tracefs/tracefs.h"

static void list_add(struct buf *out, const char *word)
{
	if (out->len)
		buf_putc(out, ' ');
	buf_puts(out, word);
}

static int list_words(const struct tracefs *fs, const char *file, struct buf *out)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *save = NULL;
	int r = tracefs_read(tracefs_root(fs), file, &text);

	if (r < 0)
		return r;
	if (!buf_string(&text))
		return -ENOMEM;
	/* The kernel sets brackets around the selected clock. */
	for (char *p = strtok_r(text.data, " []\n", &save); p; p = strtok_r(NULL, " []\n", &save))
		list_add(out, p);
	return buf_error(out);
}

static int list_is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* trace_options has the options of tracers only while those are chosen. */
static int list_folder(const struct tracefs *fs, const char *folder, struct buf *out)
{
	struct dirent **entries;
	int count = scandirat(tracefs_root(fs), folder, &entries, list_is_visible, alphasort);

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		list_add(out, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return buf_error(out);
}

int tracefs_list(const struct tracefs *fs, enum tracefs_list what, struct buf *out)
{
	switch (what) {
	case TRACEFS_CLOCKS:
		return list_words(fs, "trace_clock", out);
	case TRACEFS_TRACERS:
		return list_words(fs, "available_tracers", out);
	case TRACEFS_OPTIONS:
		return list_folder(fs, "options", out);
	}
	return -EINVAL;
}

int tracefs_format(const struct tracefs *fs, const char *event, struct buf *out)
{
	const char *colon = strchr(event, ':');
	char path[512];

	if (!colon || strchr(event, '/') ||
	    (size_t)snprintf(path, sizeof(path), "events/%.*s/%s/format", (int)(colon - event),
			     event, colon + 1) >= sizeof(path))
		return -ENOENT;
	return tracefs_read(tracefs_root(fs), path, out);
}
