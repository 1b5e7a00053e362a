/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "merge.h"

#include <fcntl.h>
#include <sys/stat.h>

static int open_file(const char *option, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return error_errno(err, -errno, "--%s %s", option, path);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close_fd(fd);
		return error_errno(err, -EISDIR, "--%s %s", option, path);
	}
	return fd;
}

/* Where there is no room for one, what memory holds has to do. */
static int open_scratch(void)
{
	const char *dir = getenv("TMPDIR") ?: "/var/tmp";
	int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	return fd < 0 ? 0 : fd;
}

int merge_files_open(struct merge_files *ret, const struct options *o, struct error *err)
{
	*ret = (struct merge_files){ 0 };
	for (size_t i = 0; i < o->merge_count; i++) {
		int fd = open_file("merge", o->merges[i].path, err);

		if (fd < 0)
			return fd;
		ret->files[ret->count++] = (struct export_merge){
			.fd = fd,
			.name = o->merges[i].path,
			.clock = o->merges[i].clock,
			.sync_name = o->merges[i].syncs,
		};
		if (!o->merges[i].syncs)
			continue;
		fd = open_file("sync-file", o->merges[i].syncs, err);
		if (fd < 0)
			return fd;
		ret->files[i].sync_fd = fd;
	}
	if (ret->count)
		ret->scratch_fd = open_scratch();
	return 0;
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
