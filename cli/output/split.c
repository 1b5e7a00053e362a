/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output/split.h"

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
#include "output/name.h"
#include "output/part.h"
#include "output/path.h"
#include "output/walk.h"

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
	unsigned keep, oldest;	 /* oldest: lowest existing number; 0: none */
	unsigned number;	 /* of the current or next file */
	unsigned before;	 /* as in struct split */
	struct output_name file; /* its fd is negative between files */
	struct buf notes;
};

static struct split_report *split_report_of(const struct split *s)
{
	return container_of(s->process.report, struct split_report, common);
}

void split_name(const struct split *s, unsigned number, struct buf *out)
{
	buf_printf(out, "%s.%04u%s", s->stem, number, s->ending);
}

static int split_path(const struct split *s, unsigned number, char **ret, struct error *err)
{
	if (asprintf(ret, "%s.%04u%s", s->stem, number, s->ending) >= 0)
		return 0;
	*ret = NULL;
	return error_errno(err, -ENOMEM, "the file's name");
}

/* The number in "STEM.0001ENDING"; 0: another name. */
static unsigned split_number(const char *name, const char *stem, const char *ending)
{
	size_t len = strlen(stem);
	unsigned long number;
	char *end;

	if (strncmp(name, stem, len) != 0 || name[len] != '.' || name[len + 1] < '0' ||
	    name[len + 1] > '9')
		return 0;
	number = strtoul(name + len + 1, &end, 10);
	/* Same width as split_path() writes, and not a date. */
	if (end - (name + len + 1) != snprintf(NULL, 0, "%04lu", number) || number > NUMBER_MAX ||
	    strcmp(end, ending) != 0)
		return 0;
	return (unsigned)number;
}

/* Renames a part of a killed recording to its number, or to the next free one. */
static void split_recover(struct splitter *p, int dir_fd, const char *stem, const char *part,
			  unsigned number)
{
	_cleanup_close_ int fd = part_take(dir_fd, part, p->format, NULL, NULL);
	int r = -EEXIST;

	for (; fd >= 0 && r == -EEXIST && number <= NUMBER_MAX; number++) {
		_cleanup_buf_ struct buf to = BUF_INIT;

		buf_printf(&to, "%s.%04u%s", stem, number, p->split->ending);
		r = buf_string(&to) ? output_rename_fresh(dir_fd, part, to.data) : -ENOMEM;
		if (r == 0)
			buf_printf(&p->notes, "%s%s of a killed recording is now %s",
				   p->notes.len ? "\n" : "", part, to.data);
	}
}

/* Recovers parts of killed recordings, then finds the existing numbers. */
static int split_find_numbers(struct splitter *p, struct error *err)
{
	_cleanup_place_ struct place place = PLACE_INIT;
	_cleanup_free_ char *part_ending = NULL;
	const char *ending = p->split->ending, *stem;
	const struct dirent *entry;
	int fd, r = place_find(&place, p->split->stem, false, NULL);
	DIR *d;

	p->number = 1;
	/* Creating the first file reports a missing directory, or another user's link. */
	if (r < 0)
		return r == -ENOMEM ? error_errno(err, r, "the files' names") : 0;
	stem = place.base;
	if (asprintf(&part_ending, "%s" PART, ending) < 0)
		return error_errno(err, -ENOMEM, "the files' names");
	fd = place_open_folder(&place);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		r = fd < 0 ? fd : -errno;
		close_fd(fd);
		return error_errno(err, r, "%s", place.dir);
	}
	while ((entry = readdir(d))) {
		unsigned number = split_number(entry->d_name, stem, part_ending);

		if (number)
			split_recover(p, dirfd(d), stem, entry->d_name, number);
	}
	rewinddir(d);
	while ((entry = readdir(d))) {
		unsigned number = split_number(entry->d_name, stem, ending);

		p->number = MAX(p->number, number + 1);
		if (number && (!p->oldest || number < p->oldest))
			p->oldest = number;
	}
	closedir(d);
	p->before = p->number - 1;
	return 0;
}

/* Calls `use` for this number's path, and for the next ones while it returns -EEXIST. */
static int split_use_number(struct splitter *p,
			    int (*use)(struct output_name *file, const char *path,
				       struct error *err),
			    struct error *err)
{
	for (; p->number <= NUMBER_MAX; p->number++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		_cleanup_free_ char *path = NULL;
		int r = split_path(p->split, p->number, &path, &why);

		if (r == 0)
			r = use(&p->file, path, &why);
		if (r != -EEXIST)
			return r < 0 ? error_move(err, &why) : 0;
	}
	error_set(err, -EOVERFLOW, "no file numbers are left for this name");
	return error_hint(err, "move the files away, or name another output with -o");
}

/* -EEXIST: another recording writes a file of that number. */
static int split_open(struct output_name *file, const char *path, struct error *err)
{
	int r = output_name_open(file, path, OUTPUT_PART, err);

	file->fresh = true;
	return r;
}

/* -EEXIST: there is such a file by now; it stays. */
static int split_name_file(struct output_name *file, const char *path, struct error *err)
{
	int r = output_name_change(file, path, err);

	return r < 0 ? r : output_name_commit(file, err);
}

static bool split_made(const struct split_report *report, unsigned number)
{
	return number <= NUMBER_MAX && report->made[number / 8] & 1U << number % 8;
}

/* Removes the oldest files above the limit. */
static void split_remove_old(struct splitter *p)
{
	struct split_report *report = split_report_of(p->split);

	for (; p->keep && p->number - p->oldest >= p->keep; p->oldest++) {
		_cleanup_free_ char *path = NULL;

		if (split_path(p->split, p->oldest, &path, NULL) < 0 || unlink(path) < 0)
			continue;
		report->removed++;
		report->own_removed += split_made(report, p->oldest);
	}
	report->first = MAX(report->first, p->oldest);
}

static int split_commit(struct splitter *p, struct error *err)
{
	struct split_report *report = split_report_of(p->split);
	int r = split_use_number(p, split_name_file, err);

	output_name_deinit(&p->file);
	if (r < 0)
		return r;
	report->last = p->number;
	report->first = report->first ?: p->number;
	report->made[p->number / 8] |= (uint8_t)(1U << p->number % 8);
	p->oldest = p->oldest ?: p->number;
	split_remove_old(p);
	p->number++;
	return 0;
}

/* The writer is gone or the disk is full: keep the part of the last file. */
static void split_keep_rest(void *maker)
{
	struct splitter *p = maker;
	int r = 0;

	if (p->file.fd < 0)
		return;
	if (!p->split->process.report->give_up)
		r = mend_file(p->format, p->file.fd, NULL);
	if (r > 0)
		split_commit(p, NULL);
	else if (r < 0)
		output_name_leave(&p->file);
	output_name_deinit(&p->file);
}

static int split_take_data(struct splitter *p, const struct frame *frame, struct error *err)
{
	int r = p->file.fd >= 0 ? 0 : split_use_number(p, split_open, err);

	if (r == 0)
		r = write_full(p->file.fd, frame->data, frame->len);
	if (r < 0 && p->file.fd >= 0) {
		error_errno(err, r, "%s", p->file.path);
		if (r == -ENOSPC || r == -EDQUOT)
			error_hint(err, "free some space, or keep fewer files (--keep)");
	}
	return r;
}

static int split_take(void *maker, const struct frame *frame, struct error *err)
{
	struct splitter *p = maker;

	switch (frame->kind) {
	case SEGMENT_DATA:
		return split_take_data(p, frame, err);
	case SEGMENT_END:
	case SEGMENT_LAST:
		return p->file.fd >= 0 ? split_commit(p, err) : 0;
	default:
		return framed_refuse(err);
	}
}

static const struct framed_ops split_ops = {
	.report_size = sizeof(struct split_report),
	.take = split_take,
	.end = split_keep_rest,
};

/* Reports errors now that would occur later. */
static int split_prepare(struct splitter *p, struct error *err)
{
	int r = split_find_numbers(p, err);

	if (r == 0)
		r = split_use_number(p, split_open, err);
	if (r == 0)
		r = output_name_rehearse(&p->file, err);
	output_name_deinit(&p->file);
	return r;
}

int split_start(struct split *ret, const char *path, const struct export_format *format,
		unsigned keep, struct error *err)
{
	_cleanup_(split_deinit) struct split s = SPLIT_INIT;
	struct splitter p = {
		.split = &s, .format = format, .keep = keep, .file = OUTPUT_NAME_INIT
	};
	int r = path_split_ending(path, format, &s.stem, &s.ending);

	if (r < 0)
		return error_errno(err, r, "%s", path);
	r = split_prepare(&p, err);
	s.notes = p.notes;
	s.before = p.before;
	if (r == 0)
		r = framed_start(&s.process, &split_ops, &p, path, -EBADF, err);
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

	if (!split_made(split_report_of(s), number))
		return false;
	/* Another recording or user may have removed it. A file system that hangs does not say. */
	return s->process.left ||
	       (split_path(s, number, &path, NULL) == 0 && access(path, F_OK) == 0);
}

bool split_range(const struct split *s, unsigned *ret_first, unsigned *ret_last)
{
	unsigned first = split_report_of(s)->first, last = split_report_of(s)->last;

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
	*ret_own = split_report_of(s)->own_removed;
	return split_report_of(s)->removed;
}
