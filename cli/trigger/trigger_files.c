/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trigger_files.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/vec.h"

#define NAME_PART_MAX 32
/* A digit for each 0. */
#define TRIGGER_TIME "00000000T000000.000Z"

static void trigger_put_plain(struct buf *out, const char *name)
{
	for (size_t i = 0; name[i] && i < NAME_PART_MAX; i++)
		buf_putc(out,
			 isalnum((unsigned char)name[i]) || strchr("_.-", name[i]) ? name[i] : '_');
}

void snapshot_put_time(struct buf *out, uint64_t real_ns)
{
	time_t s = (time_t)(real_ns / NSEC_PER_SEC);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&s, &tm))
		strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &tm);
	buf_printf(out, "%s.%03uZ", text, (unsigned)(real_ns / NSEC_PER_MSEC % 1000));
}

void trigger_file_name(struct buf *out, const char *session, uint64_t real_ns,
		       const struct watch_condition *c, const char *ending)
{
	buf_printf(out, "%s-", session);
	snapshot_put_time(out, real_ns);
	buf_printf(out, "-%s", watch_kind_name(c->kind));
	if (c->kind == WATCH_EVENT || c->kind == WATCH_MARK) {
		buf_putc(out, '-');
		trigger_put_plain(out, c->kind == WATCH_EVENT ? c->event : c->name);
	}
	buf_puts(out, ending);
}

struct trigger_file {
	char *name; /* owned */
	uint64_t bytes;
};

/* Whether it is a name of trigger_file_name(). */
static bool trigger_file_is_ours(const char *name, const char *session, const char *ending)
{
	static const char time[] = TRIGGER_TIME;
	size_t len = strlen(name), at = strlen(session), end = strlen(ending);

	if (len < at + 1 + strlen(time) + 1 + end || strncmp(name, session, at) != 0 ||
	    name[at] != '-' || strcmp(name + len - end, ending) != 0)
		return false;
	for (size_t i = 0; time[i]; i++) {
		char is = name[at + 1 + i];

		if (time[i] == '0' ? !isdigit((unsigned char)is) : is != time[i])
			return false;
	}
	return name[at + 1 + strlen(time)] == '-';
}

static int trigger_file_compare(const void *a, const void *b)
{
	const struct trigger_file *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void trigger_files_list(DIR *dir, const char *session, const char *ending,
			       struct trigger_file **ret, size_t *ret_count)
{
	struct trigger_file *files = NULL;
	size_t count = 0, cap = 0;
	const struct dirent *entry;
	struct stat st;

	while ((entry = readdir(dir))) {
		struct trigger_file file = { 0 };

		if (!trigger_file_is_ours(entry->d_name, session, ending) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		file = (struct trigger_file){ strdup(entry->d_name), (uint64_t)st.st_size };
		if (!file.name || vec_push(files, count, cap, file) < 0) {
			free(file.name);
			break;
		}
	}
	if (count)
		qsort(files, count, sizeof(*files), trigger_file_compare);
	*ret = files;
	*ret_count = count;
}

int trigger_files_keep(const char *folder, const char *session, const char *ending,
		       const char *newest, unsigned keep, uint64_t bytes)
{
	DIR *dir = opendir(folder);
	struct trigger_file *files;
	uint64_t sum = 0;
	size_t count;
	int removed = 0;

	if (!dir)
		return -errno;
	trigger_files_list(dir, session, ending, &files, &count);
	for (size_t i = 0; i < count; i++)
		sum += files[i].bytes;
	for (size_t i = 0; i < count; i++) {
		if ((!keep || count - (size_t)removed <= keep) && (!bytes || sum <= bytes))
			break;
		if (!strcmp(files[i].name, newest) || unlinkat(dirfd(dir), files[i].name, 0) < 0)
			continue;
		removed++;
		sum -= files[i].bytes;
	}
	for (size_t i = 0; i < count; i++)
		free(files[i].name);
	free(files);
	closedir(dir);
	return removed;
}
