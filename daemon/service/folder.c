/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/folder.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

int make_dir(const char *dir, unsigned mode, struct error *err)
{
	_cleanup_free_ char *path = strdup(dir);

	if (!path)
		return error_errno(err, -ENOMEM, "%s", dir);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return error_errno(err, -errno, "cannot create %s", path);
		*slash = '/';
	}
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return error_errno(err, -errno, "cannot create %s", path);
	return 0;
}

int folder_take(struct folder *ret, const char *path, unsigned mode, struct error *err)
{
	_cleanup_(folder_deinit) struct folder f = FOLDER_INIT;
	struct stat st = { 0 };
	int r;

	f.path = strdup(path);
	if (!f.path)
		return error_errno(err, -ENOMEM, "%s", path);
	/* Before the lock is taken, another daemon may remove the folder: try again. */
	for (int tries = 0; tries < 10 && !st.st_nlink; tries++) {
		f.made = access(path, F_OK) < 0;
		r = make_dir(path, mode, err);
		if (r < 0)
			return r;
		close_fd(f.fd);
		f.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (f.fd < 0 && errno == ENOENT)
			continue;
		if (f.fd < 0 || flock(f.fd, LOCK_SH) < 0 || fstat(f.fd, &st) < 0)
			return error_errno(err, -errno, "%s", path);
	}
	*ret = f;
	f = FOLDER_INIT;
	return 0;
}

void folder_remove(const struct folder *f)
{
	if (f->made && f->fd >= 0 && flock(f->fd, LOCK_EX | LOCK_NB) == 0)
		rmdir(f->path);
}

void folder_deinit(struct folder *f)
{
	close_fd(f->fd);
	free(f->path);
	*f = FOLDER_INIT;
}
