/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output/sequel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "export/mend.h"
#include "output/name.h"
#include "output/path.h"

#define NUMBER_MAX 9999999
/* A border between two segments is shorter. */
#define BORDER_MAX 256

void sequels_deinit(struct sequels *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->paths[i]);
	free(s->paths);
	*s = (struct sequels){ 0 };
}

void segment_ends_deinit(struct segment_ends *e)
{
	free(e->ends);
	*e = (struct segment_ends){ 0 };
}

/* Adds the borders that begin in the first `range` bytes of a piece of len bytes. */
static int segment_ends_add(struct segment_ends *e, const char *border, const char *piece,
			    size_t range, size_t len, uint64_t at)
{
	size_t own = strlen(border), end = (size_t)(strchr(border, '\n') - border) + 1;

	for (const char *p = piece;
	     (p = memmem(p, len - (size_t)(p - piece), border, own)) && (size_t)(p - piece) < range;
	     p += own)
		if (vec_push(e->ends, e->count, e->cap, at + (size_t)(p - piece) + end) < 0)
			return -ENOMEM;
	return 0;
}

int segment_ends_find(struct segment_ends *ret, int fd, const struct export_format *format,
		      uint64_t least)
{
	_cleanup_(segment_ends_deinit) struct segment_ends e = { 0 };
	_cleanup_free_ char *piece = malloc(MEND_PIECE + BORDER_MAX);
	struct stat st;

	if (!piece)
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!format->borders || (uint64_t)st.st_size < least)
		return 0;
	for (off_t at = 0; at < st.st_size; at += MEND_PIECE) {
		ssize_t n = pread_full(fd, piece, MEND_PIECE + BORDER_MAX, at);
		int r = n < 0 ? (int)n : 0;

		for (const char *const *b = format->borders; r == 0 && *b; b++)
			r = segment_ends_add(&e, *b, piece, MEND_PIECE, (size_t)n, (uint64_t)at);
		if (r < 0)
			return r;
	}
	*ret = e;
	e = (struct segment_ends){ 0 };
	return 0;
}

struct mover {
	struct sequels made;
	int fd;
	const char *path;
	const struct export_format *format;
	char *stem, *ending;
	unsigned number; /* of the last sequel */
};

static void mover_deinit(struct mover *m)
{
	sequels_deinit(&m->made);
	free(m->stem);
	free(m->ending);
}

/* Path of the next number that is free now. */
static int mover_next_path(struct mover *m, char **ret, struct error *err)
{
	while (++m->number <= NUMBER_MAX) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		if (asprintf(&path, "%s.%04u%s", m->stem, m->number, m->ending) < 0) {
			path = NULL;
			return error_errno(err, -ENOMEM, "%s", m->path);
		}
		if (lstat(path, &st) == 0)
			continue;
		*ret = TAKE_PTR(path);
		return 0;
	}
	return error_set(err, -EOVERFLOW, "%s: no file numbers are left for this name", m->path);
}

/* Commits the file; if another program took its name meanwhile, under a later number. */
static int mover_commit(struct mover *m, struct output_name *file, char **path, struct error *err)
{
	for (;;) {
		_cleanup_error_ struct error why = ERROR_INIT;
		int r = output_name_commit(file, &why);

		if (r == 0)
			r = vec_push(m->made.paths, m->made.count, m->made.cap, *path);
		if (r == 0)
			*path = NULL;
		if (r != -EEXIST)
			return r < 0 && why.message ? error_move(err, &why) : r;
		free(TAKE_PTR(*path));
		r = mover_next_path(m, path, err);
		if (r == 0)
			r = output_name_change(file, *path, err);
		if (r < 0)
			return r;
	}
}

static int mover_move(struct mover *m, uint64_t from, uint64_t end, bool mends, struct error *err)
{
	_cleanup_output_name_ struct output_name file = OUTPUT_NAME_INIT;
	_cleanup_free_ char *path = NULL;
	int r = mover_next_path(m, &path, err);

	if (r == 0)
		r = output_name_open(&file, path, OUTPUT_FILE, err);
	if (r < 0)
		return r;
	file.fresh = true;
	r = output_name_explain(&file, copy_range(file.fd, m->fd, from, end - from), err);
	if (r == 0 && mends)
		r = mend_file(m->format, file.fd, err);
	/* Mended: 0 says that nothing is left of it. */
	if (r < 0 || (mends && r == 0))
		return r;
	return mover_commit(m, &file, &path, err);
}

static int mover_run(struct mover *m, const struct segment_ends *e, bool mends, struct error *err)
{
	struct stat st;
	int r = 0;

	if (fstat(m->fd, &st) < 0)
		return error_errno(err, -errno, "%s", m->path);
	for (size_t i = 0; r == 0 && i < e->count; i++) {
		bool last = i + 1 == e->count;

		r = mover_move(m, e->ends[i], last ? (uint64_t)st.st_size : e->ends[i + 1],
			       mends && last, err);
	}
	if (r == 0 && ftruncate(m->fd, (off_t)e->ends[0]) < 0)
		r = error_errno(err, -errno, "%s", m->path);
	for (size_t i = 0; r < 0 && i < m->made.count; i++)
		unlink(m->made.paths[i]);
	return r;
}

/* They come from the exporter, which may be compromised. */
static bool ends_are_good(const struct segment_ends *e)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->ends[i] <= (i ? e->ends[i - 1] : 0) || e->ends[i] > INT64_MAX)
			return false;
	return true;
}

int sequels_move(struct sequels *ret, int fd, const char *path, const struct export_format *format,
		 const struct segment_ends *ends, bool mends, struct error *err)
{
	_cleanup_(mover_deinit) struct mover m = {
		.fd = fd, .path = path, .format = format, .number = 1
	};
	int r;

	if (!ends->count)
		return 0;
	if (!ends_are_good(ends))
		return error_set(err, -EPROTO, "invalid data from the exporter");
	if (path_split_ending(path, format, &m.stem, &m.ending) < 0)
		return error_errno(err, -ENOMEM, "%s", path);
	r = mover_run(&m, ends, mends, err);
	if (r < 0)
		return r;
	*ret = m.made;
	m.made = (struct sequels){ 0 };
	return 0;
}

int sequels_mend(struct sequels *ret, int fd, const char *path, const struct export_format *format,
		 struct error *err)
{
	_cleanup_(segment_ends_deinit) struct segment_ends ends = { 0 };
	int r = segment_ends_find(&ends, fd, format, EXPORT_PAGE_BYTES_MIN / 16 * 15);

	if (r < 0)
		return error_errno(err, r, "%s", path);
	if (!ends.count)
		return mend_file(format, fd, err);
	r = sequels_move(ret, fd, path, format, &ends, true, err);
	return r < 0 ? r : 1;
}

void sequels_put(const struct sequels *s, struct buf *out)
{
	if (!s->count)
		return;
	buf_puts(out, s->paths[0]);
	if (s->count > 1)
		buf_printf(out, " to %s", s->paths[s->count - 1]);
}
