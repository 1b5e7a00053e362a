/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/merging.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "control/frame.h"
#include "formats/formats.h"

_Static_assert(CONTROL_FDS_MAX >= MERGING_FDS_MAX + 1, "an output and all that is merged into it");

void merging_deinit(struct merging *m, struct closer *closer, uid_t account)
{
	for (size_t i = 0; i < m->fd_count; i++)
		closer_close(closer, account, CLOSER_FILE, m->fds[i]);
	*m = (struct merging){ 0 };
}

/* Refuses pipes: one that nobody fills would block an exporter forever. */
static int merging_check_file(int fd, int mode, const char *name, struct error *err)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && !(flags & O_PATH) && fd_type(fd) == S_IFREG &&
	    ((flags & O_ACCMODE) == O_RDWR || (flags & O_ACCMODE) == mode))
		return 0;
	return error_set(err, -EBADF, "%s: not a regular file with the right access mode", name);
}

static int merging_take_file(struct merging *m, int *fds, size_t fd_count, int mode,
			     const char *name, struct error *err)
{
	int *fd = &fds[m->fd_count];

	if (m->fd_count >= fd_count)
		return error_set(err, -EBADF,
				 "%s: the request names it but has no descriptor for it", name);
	if (merging_check_file(*fd, mode, name, err) < 0)
		return -EBADF;
	m->fds[m->fd_count++] = TAKE_FD(*fd);
	return 0;
}

static int merging_take_merge(struct merging *m, const Traced__Control__Merge *merge, int *fds,
			      size_t fd_count, struct error *err)
{
	int clock, r = 0;

	if (*merge->clock)
		r = merge_clock_find(merge->clock, &clock, err);
	if (r >= 0 && merge->syncs && !*merge->sync_name)
		r = error_set(err, -EINVAL, "%s: its sync file has no name", merge->name);
	if (r >= 0)
		r = merging_take_file(m, fds, fd_count, O_RDONLY, merge->name, err);
	if (r >= 0 && merge->syncs)
		r = merging_take_file(m, fds, fd_count, O_RDONLY, merge->sync_name, err);
	return r;
}

int merging_take(struct merging *ret, const Traced__Control__Output *output, int *fds,
		 size_t fd_count, struct error *err)
{
	size_t wanted = 0;
	bool scratch;
	int r = 0;

	*ret = (struct merging){ 0 };
	if (!output->n_merges)
		return 0;
	if (output->n_merges > EXPORT_MERGES_MAX)
		return error_set(err, -EINVAL, "more than %d files to be merged",
				 EXPORT_MERGES_MAX);
	if (output->stream || output->rotate_bytes || output->rotate_ns)
		return error_set(err, -EINVAL,
				 "files are merged into a recording that has ended, in one file");
	for (size_t i = 0; i < output->n_merges; i++)
		wanted += output->merges[i]->syncs ? 2 : 1;
	scratch = fd_count > wanted;
	ret->scratch = scratch;
	for (size_t i = 0; r >= 0 && i < output->n_merges; i++)
		r = merging_take_merge(ret, output->merges[i], fds, fd_count, err);
	if (r >= 0 && scratch)
		r = merging_take_file(ret, fds, fd_count, O_RDWR, "scratch", err);
	return r;
}

int merging_count(const Traced__Control__Output *output, bool scratch)
{
	int count = scratch;

	for (size_t i = 0; i < output->n_merges; i++)
		count += output->merges[i]->syncs ? 2 : 1;
	return count;
}

int merging_read(struct export_options *options, struct export_merge *files,
		 const Traced__Control__Output *output, bool scratch, int first_fd,
		 struct error *err)
{
	int fd = first_fd;

	if (output->n_merges > EXPORT_MERGES_MAX)
		return error_set(err, -EINVAL, "too many files to be merged");
	for (size_t i = 0; i < output->n_merges; i++) {
		const Traced__Control__Merge *from = output->merges[i];
		struct export_merge *m = &files[options->merge_count++];
		int r = 0;

		*m = (struct export_merge){ .fd = fd++, .clock = -1, .name = from->name };
		if (*from->clock)
			r = merge_clock_find(from->clock, &m->clock, err);
		if (r < 0)
			return r;
		if (from->syncs) {
			m->sync_name = from->sync_name;
			m->sync_fd = fd++;
		}
	}
	options->merges = files;
	if (scratch)
		options->scratch_fd = fd;
	return 0;
}
