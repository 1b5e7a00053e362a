/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "merge.h"
#include "base/vec.h"
#include "formats/formats.h"

#include <fcntl.h>
#include <sys/stat.h>

int merge_set_file(struct options *o, const char *value, struct error *err)
{
	struct merge_option *merge;

	if (!*value)
		return error_set(err, -EINVAL, "the file name is empty");
	if (o->merge_count == EXPORT_MERGES_MAX)
		return error_set(err, -EINVAL, "more than %d files to merge", EXPORT_MERGES_MAX);
	merge = vec_add_exact(o->merges, o->merge_count);
	if (!merge)
		return error_errno(err, -ENOMEM, "%s", value);
	*merge = (struct merge_option){ .path = value };
	return 0;
}

/* A --sync-file without --merge is merged itself, so that its ties are shown. */
int merge_set_syncs(struct options *o, const char *value, struct error *err)
{
	struct merge_option *last = o->merge_count ? &o->merges[o->merge_count - 1] : NULL;

	if (!last)
		return merge_set_file(o, value, err);
	if (last->syncs)
		return error_set(err, -EINVAL, "%s already has the sync file %s", last->path,
				 last->syncs);
	if (!*value)
		return error_set(err, -EINVAL, "the file name is empty");
	last->syncs = value;
	return 0;
}

int merge_set_clock(struct options *o, const char *value, struct error *err)
{
	int unused, r;

	if (!o->merge_count) {
		error_set(err, -EINVAL, "'%s' must follow a --merge", value);
		return error_hint(err, "it applies to the --merge before it: "
				       "--merge app.json --merge-clock realtime");
	}
	r = merge_clock_find(value, &unused, err);
	if (r >= 0)
		o->merges[o->merge_count - 1].clock = value;
	return r;
}

static int merge_check(const char *option, const char *path, struct error *err)
{
	struct stat st;
	int r = 0;

	if (!path || stat(path, &st) < 0)
		return 0;
	r = input_check(&st, path, err);
	if (r == 0 && S_ISFIFO(st.st_mode)) {
		r = error_set(err, -EINVAL, "%s is a pipe", path);
		error_hint(err, "it is read after the recording: write it to a file first");
	}
	if (r == 0 && access(path, R_OK) < 0)
		r = error_errno(err, -errno, "%s", path);
	return r < 0 ? error_prefix(err, "--%s", option) : 0;
}

int merge_files_check(const struct options *o, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < o->merge_count; i++) {
		r = merge_check("merge", o->merges[i].path, err);
		if (r >= 0)
			r = merge_check("sync-file", o->merges[i].syncs, err);
	}
	return r;
}

int merge_open_file(const char *option, const char *path, enum input_kind kind, struct error *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 ? error_errno(err, -errno, "%s", path) : input_keep(&fd, path, kind, err);

	return r < 0 ? error_prefix(err, "--%s", option) : TAKE_FD(fd);
}

/* Without room for a file, memory must suffice. */
int merge_open_scratch(void)
{
	int fd = open(input_temp_place(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	return fd < 0 ? 0 : fd;
}

static void merge_add(struct merge_files *m, const struct export_merge *file, const char *clock)
{
	m->clocks[m->count] = clock ?: "";
	m->files[m->count++] = *file;
	if (!m->scratch_fd)
		m->scratch_fd = merge_open_scratch();
}

static int merge_open_one(struct merge_files *m, const struct merge_option *o, struct error *err)
{
	struct export_merge file = { .clock = -1, .name = o->path, .sync_name = o->syncs };

	if (o->clock)
		merge_clock_find(o->clock, &file.clock, NULL);
	file.fd = merge_open_file("merge", o->path, INPUT_MARKS, err);
	if (file.fd < 0)
		return file.fd;
	if (o->syncs) {
		file.sync_fd = merge_open_file("sync-file", o->syncs, INPUT_MARKS, err);
		if (file.sync_fd < 0) {
			close_fd(file.fd);
			return file.sync_fd;
		}
	}
	merge_add(m, &file, o->clock);
	return 0;
}

int merge_files_open(struct merge_files *ret, const struct options *o, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < o->merge_count; i++)
		r = merge_open_one(ret, &o->merges[i], err);
	return r;
}

void merge_files_open_some(struct merge_files *ret, const struct options *o)
{
	for (size_t i = 0; i < o->merge_count; i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		if (merge_open_one(ret, &o->merges[i], &err) >= 0)
			continue;
		ret->missing = true;
		cli_warn("%s: not in the trace", err.message);
	}
}

void merge_files_deinit(struct merge_files *m)
{
	for (size_t i = 0; i < m->count; i++) {
		close_fd(m->files[i].fd);
		if (m->files[i].sync_fd)
			close_fd(m->files[i].sync_fd);
	}
	if (m->scratch_fd)
		close_fd(m->scratch_fd);
	*m = (struct merge_files){ 0 };
}
