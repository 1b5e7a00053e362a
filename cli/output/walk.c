/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to an output's folder, one name after the other.
 *
 * The problem: root writes where a path leads, and other users own parts of it. Whoever may write
 * in a folder can put a symbolic link there, to any file of root's, or a pipe whose reader they
 * are, at any time: between a check of the path and its use, too. The kernel's own rule
 * (fs.protected_symlinks) covers sticky folders only, and can be off.
 *
 * So no path is given to the kernel: each name is opened in its folder, without following links.
 * A link is followed here, if the caller or root owns both the link and its folder. RESOLVE flags
 * of openat2() know no owners, and are missing before Linux 5.6.
 */
#include "output/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "output/path.h"

/* The kernel's limit of links in a path. */
#define LINKS_MAX 40

struct walk {
	int fd;
	char *rest; /* owned: what is left of the path, from `at` on */
	size_t at;
	struct buf dir; /* the folder's path, for messages; empty: the current one */
	int links;
};

bool place_trusts(uid_t owner)
{
	return owner == 0 || path_owner_is_caller(owner);
}

void place_deinit(struct place *p)
{
	close_fd(p->dir_fd);
	free(p->base);
	free(p->dir);
	free(p->path);
	*p = PLACE_INIT;
}

static void walk_deinit(struct walk *w)
{
	close_fd(w->fd);
	free(w->rest);
	buf_deinit(&w->dir);
}

/* Takes rest. Starts at the root for an absolute path, otherwise where the walk is. */
static int walk_begin(struct walk *w, char *rest)
{
	int fd = -EBADF;

	free(w->rest);
	w->rest = rest;
	w->at = 0;
	if (!rest)
		return -ENOMEM;
	if (*rest == '/' || w->fd < 0) {
		fd = open(*rest == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close_fd(w->fd);
		w->fd = fd;
		buf_clear(&w->dir);
		buf_puts(&w->dir, *rest == '/' ? "/" : "");
	}
	return 0;
}

static int walk_refuse(const struct walk *w, const char *name, uid_t owner, bool folder,
		       struct error *err)
{
	error_set(err, -EPERM, "%.*s%s is a symbolic link %s uid %u", (int)w->dir.len,
		  w->dir.data ?: "", name, folder ? "in a folder of" : "of", owner);
	return error_hint(err, "name the file that it leads to, or " OTHER_OUTPUT);
}

/* Continues at the link's target. */
static int walk_follow(struct walk *w, int link, const char *name, const struct stat *st,
		       struct error *err)
{
	char target[PATH_MAX], *rest;
	struct stat folder;
	ssize_t len;

	if (fstat(w->fd, &folder) < 0)
		return -errno;
	if (!place_trusts(folder.st_uid))
		return walk_refuse(w, name, folder.st_uid, true, err);
	if (!place_trusts(st->st_uid))
		return walk_refuse(w, name, st->st_uid, false, err);
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	len = readlinkat(link, "", target, sizeof(target) - 1);
	if (len <= 0)
		return len < 0 ? -errno : -ENOENT;
	if (asprintf(&rest, "%.*s%s", (int)len, target, w->rest + w->at) < 0)
		return -ENOMEM;
	return walk_begin(w, rest);
}

/* Enters the folder `name`, or follows the link of that name. */
static int walk_enter(struct walk *w, const char *name, struct error *err)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_close_ int link = -EBADF;
	/* O_DIRECTORY also mounts what automount has there. */
	int fd = openat(w->fd, name, flags | O_DIRECTORY);
	struct stat st;

	if (fd >= 0) {
		close_fd(w->fd);
		w->fd = fd;
		buf_printf(&w->dir, "%s/", name);
		return buf_error(&w->dir);
	}
	if (errno != ENOTDIR)
		return -errno;
	link = openat(w->fd, name, flags);
	if (link < 0 || fstat(link, &st) < 0)
		return -errno;
	return S_ISLNK(st.st_mode) ? walk_follow(w, link, name, &st, err) : -ENOTDIR;
}

/* Returns 1 if `name`, the last one, was a link, which is followed now. */
static int walk_follow_last(struct walk *w, const char *name, struct error *err)
{
	_cleanup_close_ int link = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (link < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(link, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return 0;
	r = walk_follow(w, link, name, &st, err);
	return r < 0 ? r : 1;
}

/* Returns 1 at the last name, in name. */
static int walk_step(struct walk *w, bool follow, char name[static NAME_MAX + 1], struct error *err)
{
	const char *from = w->rest + w->at + strspn(w->rest + w->at, "/");
	size_t len = strcspn(from, "/");
	bool last = !from[len];
	int r;

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, from, len);
	name[len] = '\0';
	w->at = (size_t)(from - w->rest) + len;
	if (!last)
		return walk_enter(w, name, err);
	if (!len || !follow)
		return 1;
	r = walk_follow_last(w, name, err);
	return r < 0 ? r : !r;
}

static int place_fill(struct place *ret, struct walk *w, const char *base)
{
	struct place p = { .dir_fd = TAKE_FD(w->fd), .base = strdup(base) };
	size_t len = w->dir.len;

	if (asprintf(&p.path, "%.*s%s", (int)len, w->dir.data ?: "", base) < 0)
		p.path = NULL;
	while (len > 1 && w->dir.data[len - 1] == '/')
		len--;
	p.dir = len ? strndup(w->dir.data, len) : strdup(".");
	if (!p.base || !p.path || !p.dir) {
		place_deinit(&p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

int place_find(struct place *ret, const char *path, bool follow, struct error *err)
{
	_cleanup_(walk_deinit) struct walk w = { .fd = -EBADF };
	char name[NAME_MAX + 1] = "";
	int r = *path ? walk_begin(&w, strdup(path)) : -ENOENT;

	while (r == 0)
		r = walk_step(&w, follow, name, err);
	return r < 0 ? r : place_fill(ret, &w, name);
}

int place_open_folder(const struct place *p)
{
	int fd = openat(p->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int place_check_owner(const char *path, struct error *err)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	struct stat st;
	int r = place_find(&p, path, true, err);

	/* Other errors are reported by what creates the output. */
	if (r < 0)
		return r == -EPERM ? r : 0;
	if (fstatat(p.dir_fd, p.base, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    path_owner_is_caller(st.st_uid))
		return 0;
	error_set(err, -EPERM, "%s exists and belongs to uid %u", path, st.st_uid);
	return error_hint(err, "remove it, or " OTHER_OUTPUT);
}

static int place_check_special(const char *path, const struct stat *st, struct error *err)
{
	if (place_trusts(st->st_uid))
		return 0;
	error_set(err, -EPERM, "%s is a %s of uid %u", path,
		  S_ISFIFO(st->st_mode) ? "pipe" : "device", st->st_uid);
	return error_hint(err, "to write to it anyway, let your shell open it: -o - >%s", path);
}

int place_open_special(const char *path, struct error *err)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r = place_find(&p, path, true, err);

	if (r < 0)
		return r;
	if (fstatat(p.dir_fd, p.base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = place_check_special(path, &st, err);
	if (r < 0)
		return r;
	fd = openat(p.dir_fd, p.base, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	/* Another one may have come between. */
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	r = place_check_special(path, &st, err);
	return r < 0 ? r : TAKE_FD(fd);
}
