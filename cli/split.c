/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "split.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "export/mend.h"
#include "export/segment.h"
#include "names.h"
#include "part.h"
#include "result_file.h"

/* Seven digits: eight are a date. */
#define NUMBER_MAX 9999999

struct split_report {
	struct framed_report common;
	unsigned first, last; /* last 0: no file was written */
	unsigned removed, own_removed;
	uint8_t made[NUMBER_MAX / 8 + 1]; /* bit set of files; mostly untouched pages */
};

/* State of the writer process. */
struct splitter {
	const struct split *split;
	const struct export_format *format;
	unsigned keep, oldest; /* oldest: lowest existing number; 0: none */
	unsigned number;       /* of the current or next file */
	struct result_file file;
	bool open;
	struct buf notes;
};

static struct split_report *report_of(const struct split *s)
{
	return container_of(s->process.report, struct split_report, common);
}

void split_name(const struct split *s, unsigned number, struct buf *out)
{
	buf_printf(out, "%s.%04u%s", s->stem, number, s->ending);
}

static int make_path(const struct split *s, unsigned number, char **ret, struct error *err)
{
	_cleanup_buf_ struct buf path = BUF_INIT;

	split_name(s, number, &path);
	if (!buf_string(&path))
		return error_errno(err, -ENOMEM, "the file's name");
	*ret = strdup(path.data);
	return *ret ? 0 : error_errno(err, -ENOMEM, "the file's name");
}

/* The number in "STEM.0001ENDING"; 0: another name. */
static unsigned number_of(const char *name, const char *stem, const char *ending)
{
	size_t len = strlen(stem);
	unsigned long number;
	char *end;

	if (strncmp(name, stem, len) != 0 || name[len] != '.' || name[len + 1] < '0' ||
	    name[len + 1] > '9')
		return 0;
	number = strtoul(name + len + 1, &end, 10);
	/* Same width as make_path() writes, and not a date. */
	if (end - (name + len + 1) != snprintf(NULL, 0, "%04lu", number) || number > NUMBER_MAX ||
	    strcmp(end, ending) != 0)
		return 0;
	return (unsigned)number;
}

static bool has_ending(const char *name, const char *ending)
{
	size_t len = strlen(name), n = strlen(ending);

	return len > n && strcmp(name + len - n, ending) == 0;
}

/* Renames "STEM.0003ENDING.part" of a killed recording to its number, or to the next free one. */
static void recover(struct splitter *p, int dir_fd, const char *base)
{
	const char *stem = strrchr(p->split->stem, '/');
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *name = NULL;
	unsigned number;
	int r = -EEXIST;

	stem = stem ? stem + 1 : p->split->stem;
	name = strndup(base, strlen(base) - strlen(PART));
	number = name ? number_of(name, stem, p->split->ending) : 0;
	if (!number)
		return;
	fd = part_take(dir_fd, name, p->format);
	for (; fd >= 0 && r == -EEXIST && number <= NUMBER_MAX; number++) {
		_cleanup_buf_ struct buf to = BUF_INIT;

		buf_printf(&to, "%s.%04u%s", stem, number, p->split->ending);
		r = buf_string(&to) ? name_rename_fresh(dir_fd, base, to.data) : -ENOMEM;
		if (r == 0)
			buf_printf(&p->notes,
				   "%s%s, left by a recording that was killed, is now %s",
				   p->notes.len ? "\n" : "", base, to.data);
	}
}

/* Recovers parts of killed recordings, then finds the existing numbers. */
static int find_numbers(struct splitter *p, struct error *err)
{
	const char *stem = strrchr(p->split->stem, '/');
	_cleanup_free_ char *dir = NULL;
	const struct dirent *entry;
	DIR *d;

	dir = stem ? strndup(p->split->stem, (size_t)(stem - p->split->stem) + 1) : strdup(".");
	if (!dir)
		return error_errno(err, -ENOMEM, "the files' names");
	stem = stem ? stem + 1 : p->split->stem;
	p->number = 1;
	d = opendir(dir);
	/* Creating the first file reports a missing directory. */
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? 0
							   : error_errno(err, -errno, "%s", dir);
	while ((entry = readdir(d)))
		if (has_ending(entry->d_name, PART))
			recover(p, dirfd(d), entry->d_name);
	rewinddir(d);
	while ((entry = readdir(d))) {
		unsigned number = number_of(entry->d_name, stem, p->split->ending);

		p->number = MAX(p->number, number + 1);
		if (number && (!p->oldest || number < p->oldest))
			p->oldest = number;
	}
	closedir(d);
	return 0;
}

static int no_number(struct error *err)
{
	error_set(err, -EOVERFLOW, "there are no numbers left for files of that name");
	return error_hint(err, "move them away, or give -o another name");
}

/* Opens the part with the next number that no other recording uses. */
static int open_file(struct splitter *p, struct error *err)
{
	int r = -EEXIST;

	for (; r == -EEXIST && p->number <= NUMBER_MAX; p->number += r == -EEXIST) {
		_cleanup_error_ struct error why = ERROR_INIT;
		_cleanup_free_ char *path = NULL;

		r = make_path(p->split, p->number, &path, &why);
		if (r == 0)
			r = result_file_open_part(&p->file, path, &why);
		if (r < 0 && r != -EEXIST)
			return error_move(err, &why);
	}
	p->file.fresh = true;
	p->open = r == 0;
	return r < 0 ? no_number(err) : 0;
}

static bool was_made(const struct split_report *report, unsigned number)
{
	return number <= NUMBER_MAX && report->made[number / 8] & 1U << number % 8;
}

/* Removes the oldest files above the limit. */
static void remove_old(struct splitter *p)
{
	struct split_report *report = report_of(p->split);

	for (; p->keep && p->number - p->oldest >= p->keep; p->oldest++) {
		_cleanup_free_ char *path = NULL;

		if (make_path(p->split, p->oldest, &path, NULL) < 0 || unlink(path) < 0)
			continue;
		report->removed++;
		report->own_removed += was_made(report, p->oldest);
	}
	report->first = MAX(report->first, p->oldest);
}

/* If another recording took the number, its file stays. */
static int name_file(struct splitter *p, struct error *err)
{
	for (; p->number <= NUMBER_MAX; p->number++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		_cleanup_free_ char *path = NULL;
		int r = make_path(p->split, p->number, &path, &why);

		if (r == 0)
			r = result_file_rename(&p->file, path, &why);
		if (r == 0)
			r = result_file_commit(&p->file, &why);
		if (r != -EEXIST)
			return r < 0 ? error_move(err, &why) : 0;
	}
	return no_number(err);
}

static int commit_file(struct splitter *p, struct error *err)
{
	struct split_report *report = report_of(p->split);
	int r = name_file(p, err);

	result_file_deinit(&p->file);
	p->open = false;
	if (r < 0)
		return r;
	report->last = p->number;
	report->first = report->first ?: p->number;
	report->made[p->number / 8] |= (uint8_t)(1U << p->number % 8);
	p->oldest = p->oldest ?: p->number;
	remove_old(p);
	p->number++;
	return 0;
}

/* The writer is gone or the disk is full: keep the part of the last file. */
static void keep_rest(void *maker)
{
	struct splitter *p = maker;
	int r = 0;

	if (!p->open)
		return;
	if (!p->split->process.report->give_up)
		r = mend_file(p->format, p->file.fd, NULL);
	if (r > 0)
		commit_file(p, NULL);
	else if (r < 0)
		result_file_leave(&p->file);
	result_file_deinit(&p->file);
	p->open = false;
}

static int take_data(struct splitter *p, const struct frame *frame, struct error *err)
{
	int r = p->open ? 0 : open_file(p, err);

	if (r == 0)
		r = write_full(p->file.fd, frame->data, frame->len);
	if (r < 0 && p->open) {
		error_errno(err, r, "%s", p->file.path);
		if (r == -ENOSPC || r == -EDQUOT)
			error_hint(err, "free some space, or keep fewer files (--keep)");
	}
	return r;
}

static int take(void *maker, const struct frame *frame, struct error *err)
{
	struct splitter *p = maker;

	switch (frame->kind) {
	case SEGMENT_DATA:
		return take_data(p, frame, err);
	case SEGMENT_END:
	case SEGMENT_LAST:
		return p->open ? commit_file(p, err) : 0;
	default:
		return error_set(err, -EPROTO, "the exporter writes what is no such trace");
	}
}

static const struct framed_ops ops = { .take = take, .end = keep_rest };

/* Reports errors now that would occur later. */
static int prepare(struct splitter *p, struct error *err)
{
	int r = find_numbers(p, err);

	if (r == 0)
		r = open_file(p, err);
	if (r == 0)
		r = result_file_rehearse(&p->file, err);
	result_file_deinit(&p->file);
	p->open = false;
	return r;
}

int split_start(struct split *ret, const char *path, const struct export_format *format,
		unsigned keep, struct error *err)
{
	_cleanup_(split_deinit) struct split s = SPLIT_INIT;
	struct splitter p = {
		.split = &s, .format = format, .keep = keep, .file = RESULT_FILE_INIT
	};
	int r = name_take_apart(path, format, &s.stem, &s.ending);

	if (r == 0)
		r = framed_init(&s.process, sizeof(struct split_report));
	if (r < 0)
		return error_errno(err, r, "%s", path);
	r = prepare(&p, err);
	s.notes = p.notes;
	if (r == 0)
		r = framed_start(&s.process, &ops, &p, -EBADF, err);
	if (r < 0)
		return r;
	*ret = s;
	s = SPLIT_INIT;
	return 0;
}

void split_deinit(struct split *s)
{
	framed_deinit(&s->process);
	free(s->stem);
	free(s->ending);
	buf_deinit(&s->notes);
	*s = SPLIT_INIT;
}

bool split_has(const struct split *s, unsigned number)
{
	_cleanup_free_ char *path = NULL;

	/* Another recording or user may have removed it. */
	return was_made(report_of(s), number) && make_path(s, number, &path, NULL) == 0 &&
	       access(path, F_OK) == 0;
}

bool split_range(const struct split *s, unsigned *ret_first, unsigned *ret_last)
{
	unsigned first = report_of(s)->first, last = report_of(s)->last;

	while (last && first <= last && !split_has(s, first))
		first++;
	while (last && last > first && !split_has(s, last))
		last--;
	*ret_first = first;
	*ret_last = first <= last ? last : 0;
	return *ret_last;
}

unsigned split_removed(const struct split *s, unsigned *ret_own)
{
	*ret_own = report_of(s)->own_removed;
	return report_of(s)->removed;
}
