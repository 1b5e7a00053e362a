/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "export/segment.h"
#include "names.h"
#include "result_file.h"

/* State of the writer process. */
struct maker {
	const char *path;  /* for messages */
	char *base, *temp; /* final and current name, both in FRAMED_KEPT */
	int temp_fd, file_fd;
	bool named;
};

static int cant(const struct maker *m, int r, struct error *err)
{
	if (r >= 0)
		return 0;
	error_errno(err, r, "%s", m->path);
	if (r == -ENOSPC || r == -EDQUOT)
		error_hint(err, "free some space or name another output with -o");
	return r;
}

/* The name comes from the exporter, which may be compromised. */
static bool is_good_name(const char *name, size_t len)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

	if (!len || len > SEGMENT_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!memchr(good, name[i], sizeof(good) - 1))
			return false;
	return true;
}

static int open_temp(struct maker *m)
{
	if (m->temp_fd < 0)
		m->temp_fd = openat(FRAMED_KEPT, m->temp,
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return m->temp_fd < 0 ? -errno : 0;
}

static int begin_file(struct maker *m, const struct frame *frame, struct error *err)
{
	char name[SEGMENT_NAME_MAX + 1] = "";

	if (!is_good_name(frame->data, frame->len))
		return error_set(err, -EPROTO, "the exporter writes what is no trace");
	memcpy(name, frame->data, frame->len);
	if (open_temp(m) < 0)
		return cant(m, -errno, err);
	m->file_fd = close_fd(m->file_fd);
	m->file_fd = openat(m->temp_fd, name,
			    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
	return cant(m, m->file_fd < 0 ? -errno : 0, err);
}

/* Calls `each` for all files, even after an error. Returns the first error. */
static int for_files(const struct maker *m, int (*each)(int dir_fd, const char *name))
{
	int fd = openat(m->temp_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	const struct dirent *entry;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		r = -errno;
		close_fd(fd);
		return r;
	}
	while ((entry = readdir(d))) {
		int e = *entry->d_name == '.' ? 0 : each(m->temp_fd, entry->d_name);

		r = r ?: e;
	}
	closedir(d);
	return r;
}

static int sync_file(int dir_fd, const char *name)
{
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int remove_file(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
}

/*
 * Keeps the result if it can't be renamed or synced: it was expensive to record. Makes its
 * temporary name visible.
 */
static int save(struct maker *m, int why, bool whole, struct error *err)
{
	error_errno(err, why, "%s", m->path);
	/* Without RENAME_NOREPLACE only files have a fallback. The random name is free anyway. */
	if (name_rename_fresh(FRAMED_KEPT, m->temp, m->temp + 1) < 0 &&
	    renameat(FRAMED_KEPT, m->temp, FRAMED_KEPT, m->temp + 1) < 0)
		return why;
	m->named = true;
	error_hint(err,
		   whole ? "it is whole, and saved beside as %s"
			 : "what the disk took of it is saved beside as %s",
		   m->temp + 1);
	return why;
}

static int commit(struct maker *m, struct error *err)
{
	int r;

	m->file_fd = close_fd(m->file_fd);
	r = open_temp(m);
	if (r < 0)
		return cant(m, r, err);
	r = for_files(m, sync_file);
	if (r == 0 && fsync(m->temp_fd) < 0)
		r = -errno;
	if (r < 0)
		return save(m, r, false, err);
	/* rename(2) replaces empty directories only. */
	if (renameat(FRAMED_KEPT, m->temp, FRAMED_KEPT, m->base) < 0)
		return save(m, -errno, true, err);
	m->named = true;
	fsync(FRAMED_KEPT);
	return 0;
}

static int take(void *maker, const struct frame *frame, struct error *err)
{
	struct maker *m = maker;

	switch (frame->kind) {
	case SEGMENT_FILE:
		return begin_file(m, frame, err);
	case SEGMENT_DATA:
		if (m->file_fd >= 0)
			return cant(m, write_full(m->file_fd, frame->data, frame->len), err);
		break;
	case SEGMENT_LAST:
		return commit(m, err);
	}
	return error_set(err, -EPROTO, "the exporter writes what is no trace");
}

static void end(void *maker)
{
	struct maker *m = maker;

	if (m->named)
		return;
	if (open_temp(m) == 0)
		for_files(m, remove_file);
	unlinkat(FRAMED_KEPT, m->temp, AT_REMOVEDIR);
}

static const struct framed_ops ops = { .take = take, .end = end };

/* 1: empty; 0; or -errno. */
static int is_empty(const char *path)
{
	const struct dirent *entry;
	DIR *d = opendir(path);
	bool empty = true;

	if (!d)
		return -errno;
	while (empty && (entry = readdir(d)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(d);
	return empty;
}

/* Refuses to replace a file or a directory with content. */
static int check_name(const char *path, struct error *err)
{
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : error_errno(err, -errno, "%s", path);
	if (S_ISDIR(st.st_mode)) {
		r = result_file_refuse_others(path, 0, &st, err);
		if (r < 0)
			return r;
		r = is_empty(path);
		if (r > 0)
			return 0;
		r = r < 0 ? error_errno(err, r, "%s is there already", path)
			  : error_set(err, -EEXIST, "%s is there already, and is not empty", path);
	} else {
		r = error_set(err, -EEXIST, "%s is there already, and is no directory", path);
	}
	error_hint(err, "remove it, or name another output with -o");
	return r;
}

/* Splits the path, without trailing slashes, into "DIR" and "BASE". */
static int take_apart(const char *path, char **ret_dir, char **ret_base)
{
	size_t len = strlen(path);
	const char *slash;

	while (len > 1 && path[len - 1] == '/')
		len--;
	slash = memrchr(path, '/', len);
	*ret_base =
		slash ? strndup(slash + 1, len - (size_t)(slash + 1 - path)) : strndup(path, len);
	*ret_dir = !slash	   ? strdup(".")
		   : slash == path ? strdup("/")
				   : strndup(path, (size_t)(slash - path));
	return *ret_dir && *ret_base ? 0 : -ENOMEM;
}

static int explain(struct error *err, int r, const char *path, const char *dir)
{
	if (r == -ENOENT) {
		error_set(err, r, "%s: there is no directory %s", path, dir);
		error_hint(err, "make it (mkdir -p) or name another output with -o");
	} else {
		error_errno(err, r, "%s: nothing can be made in %s", path, dir);
		error_hint(err, "name another output with -o");
	}
	return r;
}

/*
 * Creates m->temp and the process that removes it. Signals are blocked: one in between would leave
 * it behind.
 */
static int start(struct directory *d, struct maker *m, int dir_fd, const char *dir,
		 struct error *err)
{
	sigset_t old;
	int r;

	result_file_block_fatal(&old);
	if (mkdirat(dir_fd, m->temp, 0777) < 0) {
		r = explain(err, -errno, m->path, dir);
	} else {
		r = framed_start(&d->process, &ops, m, dir_fd, err);
		if (r < 0)
			unlinkat(dir_fd, m->temp, AT_REMOVEDIR);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r;
}

int directory_start(struct directory *ret, const char *path, struct error *err)
{
	_cleanup_(directory_deinit) struct directory d = DIRECTORY_INIT;
	_cleanup_free_ char *dir = NULL, *base = NULL, *temp = NULL, *clean = NULL;
	_cleanup_close_ int dir_fd = -EBADF;
	struct maker m = { .path = path, .temp_fd = -EBADF, .file_fd = -EBADF };
	int r = take_apart(path, &dir, &base);

	if (r < 0)
		return error_errno(err, r, "%s", path);
	if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
		return error_set(err, -EINVAL, "%s: a new directory is made, with a name", path);
	if (asprintf(&clean, "%s/%s", dir, base) < 0) {
		clean = NULL;
		return error_errno(err, -ENOMEM, "%s", path);
	}
	r = check_name(clean, err);
	if (r < 0)
		return r;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return explain(err, -errno, path, dir);
	r = name_hidden(base, &temp);
	if (r == 0)
		r = framed_init(&d.process, sizeof(struct framed_report));
	if (r < 0)
		return error_errno(err, r, "%s", path);
	m.base = base;
	m.temp = temp;
	r = start(&d, &m, dir_fd, dir, err);
	if (r < 0)
		return r;
	*ret = d;
	d = DIRECTORY_INIT;
	return 0;
}

void directory_deinit(struct directory *d)
{
	framed_deinit(&d->process);
}
