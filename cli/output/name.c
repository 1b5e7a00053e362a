/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life of an output's name.
 *
 * The problem: an output can be recorded only once, so it must not get lost. Nobody may see an
 * incomplete file under its name, and an old file there stays until the new one is whole. Meanwhile
 * a signal may end us, the disk may fill, the folder may go, and somebody else may take the name.
 * Some filesystems lack nameless files, hard links, or renames without replacement.
 *
 *     OUTPUT_FILE ──────▶ nameless ──┐                 ┌──▶ NAME
 *       │ without O_TMPFILE          ▼                 │
 *       └─────────────▶ .NAME.XXXXXXXX ───── commit ───┼──▶ NAME.XXXXXXXX: kept; a file also as
 *                        ▲       ▲                     │    a copy in $TMPDIR
 *     OUTPUT_DIRECTORY ──┘       │ rehearse            │
 *                                │                     │
 *     OUTPUT_PART ─────▶ NAME.part ──────────── commit ┘
 *                                └───────────── leave ────▶ NAME.part: recovered later (part.c)
 *
 * Before commit or leave, output_name_deinit() and fatal signals remove it.
 *
 * Invariants:
 * - `base` is set until the output has its last name. `temp` is set while it has a name that we
 *   must remove.
 * - name_step() makes every change of a name: with signals blocked, it changes the name and
 *   registers it for removal by a fatal signal. One name of the process is registered at a time.
 * - Once the content is synced, signals wait until the output has its last name.
 * - The final rename replaces only the caller's files; with `fresh`, nothing.
 * - An output that commit cannot sync or rename is kept under another name. If a `fresh` name is
 *   taken, nothing changes, and the caller tries another.
 * - A part is locked while a descriptor of it is open. An unlocked part was left by a killed
 *   recording.
 * - A process that writes a directory inherits dir_fd only (framed.c), and opens the directory by
 *   its hidden name.
 */
#include "output/name.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/io.h"
#include "output/path.h"
#include "output/walk.h"

#define HIDE_TRIES 16

/* The name that a fatal signal must remove; dir -1: none. */
static struct {
	char name[NAME_MAX + 1];
	volatile int dir;
	int flags;   /* of unlinkat() */
	pid_t owner; /* its children inherit this, but must not remove the name */
} doomed = { .dir = -1 };

static const int fatal_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void doomed_remove(int sig)
{
	if (doomed.dir >= 0 && doomed.owner == getpid())
		unlinkat(doomed.dir, doomed.name, doomed.flags);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void doomed_set(const struct output_name *n)
{
	strcpy(doomed.name, n->temp);
	doomed.flags = n->kind == OUTPUT_DIRECTORY ? AT_REMOVEDIR : 0;
	doomed.owner = getpid();
	doomed.dir = n->dir_fd;
	for (size_t i = 0; i < ARRAY_SIZE(fatal_signals); i++) {
		struct sigaction old;

		/* Keep ignored signals ignored (nohup). */
		if (!sigaction(fatal_signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			signal(fatal_signals[i], doomed_remove);
	}
}

void output_signals_block(sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(fatal_signals); i++)
		sigaddset(&set, fatal_signals[i]);
	sigprocmask(SIG_BLOCK, &set, old);
}

bool output_signals_pending(void)
{
	sigset_t pending;
	bool any = false;

	if (sigpending(&pending) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(fatal_signals); i++)
		any |= sigismember(&pending, fatal_signals[i]) > 0;
	return any;
}

void output_signals_ignore(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(fatal_signals); i++)
		signal(fatal_signals[i], SIG_IGN);
}

/* Gives the output the name `to` in n->dir_fd: 0 or -errno. */
typedef int (*name_step_fn)(struct output_name *n, const char *to);

static int name_step(struct output_name *n, name_step_fn step, const char *to)
{
	_cleanup_free_ char *name = strdup(to);
	bool final = !strcmp(to, n->base);
	sigset_t old;
	int r;

	if (!name)
		return -ENOMEM;
	output_signals_block(&old);
	r = step(n, name);
	if (r == 0) {
		free(n->temp);
		n->temp = final ? NULL : TAKE_PTR(name);
		if (final)
			doomed.dir = -1;
		else
			doomed_set(n);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (r == 0 && final) {
		free(n->base);
		n->base = NULL;
	}
	return r;
}

/* ".NAME.XXXXXXXX", with NAME cut if too long. Owned. */
static int name_make_hidden(const char *base, char **ret)
{
	unsigned noise;

	if (getrandom(&noise, sizeof(noise), 0) != sizeof(noise))
		return -errno;
	return asprintf(ret, ".%.*s.%08x", NAME_MAX - 16, base, noise) < 0 ? -ENOMEM : 0;
}

static int name_hide(struct output_name *n, name_step_fn step)
{
	int r = -EEXIST;

	for (int tries = 0; r == -EEXIST && tries < HIDE_TRIES; tries++) {
		_cleanup_free_ char *name = NULL;

		r = name_make_hidden(n->base, &name);
		if (r == 0)
			r = name_step(n, step, name);
	}
	return r;
}

static int step_create_file(struct output_name *n, const char *to)
{
	n->fd = openat(n->dir_fd, to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (n->fd < 0)
		return -errno;
	/* part_take() leaves every part alone where locks are not supported. */
	if (n->kind == OUTPUT_PART)
		flock(n->fd, LOCK_EX);
	return 0;
}

static int step_create_directory(struct output_name *n, const char *to)
{
	return mkdirat(n->dir_fd, to, 0777) < 0 ? -errno : 0;
}

static int step_link(struct output_name *n, const char *to)
{
	char proc[32];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", n->fd);
	return linkat(AT_FDCWD, proc, n->dir_fd, to, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* rename(2) replaces an empty directory only. */
static int step_rename(struct output_name *n, const char *to)
{
	return renameat(n->dir_fd, n->temp, n->dir_fd, to) < 0 ? -errno : 0;
}

static int step_rename_fresh(struct output_name *n, const char *to)
{
	int r = output_rename_fresh(n->dir_fd, n->temp, to);

	/* Only files have a substitute; a fresh directory's random name is free anyway. */
	return r < 0 && n->kind == OUTPUT_DIRECTORY ? step_rename(n, to) : r;
}

static int rename_by_link(int dir_fd, const char *from, const char *to)
{
	if (linkat(dir_fd, from, dir_fd, to, 0) < 0)
		return -errno;
	unlinkat(dir_fd, from, 0);
	return 0;
}

/* Creates the name exclusively first, so that no other file is replaced. */
static int rename_by_claim(int dir_fd, const char *from, const char *to)
{
	int fd = openat(dir_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	int r = fd < 0 ? -errno : 0;

	close_fd(fd);
	if (r == 0 && renameat(dir_fd, from, dir_fd, to) < 0) {
		r = -errno;
		unlinkat(dir_fd, to, 0);
	}
	return r;
}

/* Errors of filesystems that lack such a call (vfat in older kernels, some FUSE). */
static bool rename_is_lacking(int r)
{
	return r == -EINVAL || r == -ENOSYS || r == -EOPNOTSUPP || r == -EPERM || r == -EMLINK;
}

int output_rename_fresh(int dir_fd, const char *from, const char *to)
{
	int r = renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;

	if (rename_is_lacking(r))
		r = rename_by_link(dir_fd, from, to);
	if (rename_is_lacking(r))
		r = rename_by_claim(dir_fd, from, to);
	return r;
}

/* Somebody may have taken the name since output_name_open(). */
static int name_check_final(const struct output_name *n)
{
	struct stat st;

	if (n->fresh || fstatat(n->dir_fd, n->base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return path_owner_is_caller(st.st_uid) ? 0 : -EPERM;
}

int output_name_explain(const struct output_name *n, int r, struct error *err)
{
	if (r >= 0)
		return 0;
	error_errno(err, r, "%s", n->path);
	if (r == -ENOSPC || r == -EDQUOT)
		error_hint(err, "free some space or name an output on another disk with -o");
	return r;
}

/* Explains why nothing could be created in dir. */
static int name_explain_folder(const struct output_name *n, int r, const char *dir,
			       struct error *err)
{
	switch (r) {
	case -ENOENT:
		if (access(dir, F_OK) < 0) {
			error_set(err, r, "%s: the directory %s does not exist", n->path, dir);
			return error_hint(err, "create it (mkdir -p) or " OTHER_OUTPUT);
		}
		error_set(err, r, "%s: cannot create a %s in %s", n->path,
			  n->kind == OUTPUT_DIRECTORY ? "directory" : "file", dir);
		return error_hint(err, OTHER_OUTPUT);
	case -ENOTDIR:
		error_set(err, r, "%s: %s is not a directory", n->path, dir);
		return error_hint(err, OTHER_OUTPUT);
	case -ENAMETOOLONG:
		error_errno(err, r, "%s%s", n->path, n->kind == OUTPUT_PART ? PART : "");
		return error_hint(err, "use a shorter name");
	case -EACCES:
	case -EPERM:
	case -EROFS:
		error_errno(err, r, "%s: cannot write to the directory %s", n->path, dir);
		return error_hint(err, OTHER_OUTPUT);
	default:
		return output_name_explain(n, r, err);
	}
}

static int name_create_hidden(struct output_name *n)
{
	_cleanup_free_ char *part = NULL;

	if (n->kind == OUTPUT_DIRECTORY)
		return name_hide(n, step_create_directory);
	if (n->kind == OUTPUT_PART)
		return asprintf(&part, "%s" PART, n->base) < 0
			       ? -ENOMEM
			       : name_step(n, step_create_file, part);
	n->fd = openat(n->dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
	/* Without O_TMPFILE (overlayfs, FUSE) it fails with EOPNOTSUPP, EISDIR or EINVAL. */
	return n->fd < 0 ? name_hide(n, step_create_file) : 0;
}

/* Explains why the folder of n->path, or where links of that name lead, was not found. */
static int name_explain_way(const struct output_name *n, bool follow, int r, struct error *err)
{
	_cleanup_free_ char *dir = NULL, *base = NULL;
	_cleanup_free_ char *path = follow ? path_follow_links(n->path) : strdup(n->path);
	int split = path ? path_split(path, &dir, &base) : -ENOMEM;

	return name_explain_folder(n, r, split < 0 ? "?" : dir, err);
}

/* Creates the output in the folder of n->path, or where links of that name lead. */
static int name_create_beside(struct output_name *n, bool follow, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	_cleanup_place_ struct place place = PLACE_INIT;
	const char *dir;
	size_t ending = n->kind == OUTPUT_PART ? strlen(PART) : 0;
	int r = place_find(&place, n->path, follow, &why);

	if (r < 0 && why.message)
		return error_move(err, &why);
	if (r < 0)
		return name_explain_way(n, follow, r, err);
	n->base = TAKE_PTR(place.base);
	dir = place.dir;
	/* Filesystems that count characters (vfat) take more bytes than `doomed` has room for. */
	if (strlen(n->base) + ending > NAME_MAX)
		return name_explain_folder(n, -ENAMETOOLONG, dir, err);
	if (!*n->base)
		return name_explain_folder(n, -ENOENT, dir, err);
	n->dir_fd = place_open_folder(&place);
	r = n->dir_fd < 0 ? n->dir_fd : name_create_hidden(n);
	return r < 0 ? name_explain_folder(n, r, dir, err) : 0;
}

/* Replaces the target of a link, not the link. */
static int name_open_file(struct output_name *n, struct error *err)
{
	int r = place_check_owner(n->path, err);

	return r < 0 ? r : name_create_beside(n, true, err);
}

static int name_duplicate(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return copy < 0 ? -errno : copy;
}

/* Keeps the position and content of an inherited descriptor: its opener chose them. */
static int name_open_in_place(struct output_name *n, const char *path, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	int fd = strcmp(path, "-") ? path_descriptor(path) : STDOUT_FILENO;

	if (fd == -ENOENT)
		n->fd = place_open_special(path, &why);
	else if (fd >= 0)
		n->fd = name_duplicate(fd);
	else
		n->fd = fd;
	if (why.message)
		return error_move(err, &why);
	return n->fd < 0 ? error_errno(err, n->fd, "%s", n->path) : 0;
}

static int name_open_directory(struct output_name *n, const char *path, struct error *err)
{
	size_t len = strlen(n->path);
	const char *base;
	int r;

	while (len > 1 && n->path[len - 1] == '/')
		n->path[--len] = '\0';
	base = strrchr(n->path, '/');
	base = base ? base + 1 : n->path;
	if (!strcmp(path, "-") || !*base || !strcmp(base, ".") || !strcmp(base, ".."))
		return error_set(err, -EINVAL, "%s: not a name for a new directory", n->path);
	r = path_check_directory(n->path, err);
	return r < 0 ? r : name_create_beside(n, false, err);
}

int output_name_open(struct output_name *ret, const char *path, enum output_kind kind,
		     struct error *err)
{
	_cleanup_output_name_ struct output_name n = OUTPUT_NAME_INIT;
	enum path_kind found = path_kind(path);
	int r;

	n.kind = kind;
	n.path = strdup(strcmp(path, "-") ? path : "standard output");
	if (!n.path)
		return error_errno(err, -ENOMEM, "%s", path);
	if (kind == OUTPUT_DIRECTORY)
		r = name_open_directory(&n, path, err);
	else if (found == PATH_FILE)
		r = name_open_file(&n, err);
	else
		r = found == PATH_IN_PLACE ? name_open_in_place(&n, path, err)
					   : path_refuse_directory(path, err);
	if (r < 0)
		return r;
	*ret = n;
	n = OUTPUT_NAME_INIT;
	return 0;
}

int output_name_folder(struct output_name *n)
{
	struct stat st;

	if (n->fd < 0)
		n->fd = openat(n->dir_fd, n->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (n->fd < 0)
		return -errno;
	/* The owner of the outer folder can put another one there. */
	return fstat(n->fd, &st) < 0 || st.st_uid != geteuid() ? -EPERM : n->fd;
}

int output_name_rehearse(struct output_name *n, struct error *err)
{
	int r = name_hide(n, step_rename_fresh);

	return r < 0 ? error_errno(err, r, "%s: cannot rename files there", n->path) : 0;
}

int output_name_change(struct output_name *n, const char *path, struct error *err)
{
	_cleanup_free_ char *dir = NULL, *base = NULL, *copy = strdup(path);

	if (!copy || path_split(path, &dir, &base) < 0)
		return error_errno(err, -ENOMEM, "%s", path);
	free(n->path);
	free(n->base);
	n->path = TAKE_PTR(copy);
	n->base = TAKE_PTR(base);
	return 0;
}

/* Calls `each` for all files of the directory, even after an error. Returns the first error. */
static int name_for_files(struct output_name *n, int (*each)(int dir_fd, const char *name))
{
	int folder = output_name_folder(n), r = 0;
	DIR *d = folder < 0 ? NULL : folder_at(folder, ".");
	const struct dirent *entry;

	if (!d)
		return folder < 0 ? folder : -errno;
	while ((entry = readdir(d))) {
		int e = *entry->d_name == '.' ? 0 : each(folder, entry->d_name);

		r = r ?: e;
	}
	closedir(d);
	return r;
}

static int name_sync_file(int dir_fd, const char *name)
{
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int name_remove_file(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
}

static int name_sync(struct output_name *n)
{
	int r = n->kind == OUTPUT_DIRECTORY ? name_for_files(n, name_sync_file) : 0;

	return r == 0 && fsync(n->fd) < 0 ? -errno : r;
}

static int name_finish(struct output_name *n)
{
	int r = name_check_final(n);

	if (r == 0 && !n->temp)
		r = name_hide(n, step_link);
	if (r == 0)
		r = name_step(n, n->fresh ? step_rename_fresh : step_rename, n->base);
	return r;
}

static int name_copy_content(int to, int from)
{
	struct stat st;
	int r = fstat(from, &st) < 0 ? -errno : copy_range(to, from, 0, (uint64_t)st.st_size);

	return r < 0 ? r : fsync(to) < 0 ? -errno : 0;
}

/* Copies the file to dir; readable by its owner only, since others use that folder, too. */
static int name_keep_copy(const struct output_name *n, const char *dir, const char *name)
{
	_cleanup_output_name_ struct output_name copy = OUTPUT_NAME_INIT;
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	r = output_name_open(&copy, path, OUTPUT_FILE, NULL);
	if (r < 0)
		return r;
	/* The name is taken. */
	if (!copy.base)
		return -EEXIST;
	copy.fresh = true;
	r = fchmod(copy.fd, 0600) < 0 ? -errno : name_copy_content(copy.fd, n->fd);
	return r < 0 ? r : name_finish(&copy);
}

/* Path of the folder, wherever it is by now. Owned. NULL: it is gone, or we may not know it. */
static char *name_folder_path(const struct output_name *n)
{
	char proc[32];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", n->dir_fd);
	return realpath(proc, NULL);
}

/* Keeps it as NAME.XXXXXXXX, in its folder or else in the temporary one. Returns why. */
static int name_keep(struct output_name *n, int why, bool whole, struct error *err)
{
	_cleanup_free_ char *hidden = NULL, *folder = name_folder_path(n);
	const char *dir = folder;
	char *base;
	int r = name_make_hidden(n->base, &hidden);

	error_errno(err, why, "%s", n->path);
	base = r == 0 ? strdup(hidden + 1) : NULL;
	if (!base)
		return why;
	free(n->base);
	n->base = base;
	n->fresh = true;
	r = name_finish(n);
	if (r < 0 && n->kind == OUTPUT_DIRECTORY)
		return why;
	if (r < 0) {
		dir = getenv("TMPDIR") ?: "/var/tmp";
		r = name_keep_copy(n, dir, hidden + 1);
	}
	if (r < 0)
		error_hint(err,
			   "it could not be saved in %s either (%s): set TMPDIR to another folder",
			   dir, strerror(-r));
	else
		error_hint(err,
			   whole ? "it is complete, and saved as %s%s%s"
				 : "the part written so far is saved as %s%s%s",
			   dir ?: "", dir ? "/" : "", hidden + 1);
	return why;
}

static int name_finish_or_keep(struct output_name *n, struct error *err)
{
	int r = name_finish(n);

	if (r == -EEXIST && n->fresh)
		return error_errno(err, r, "%s", n->path);
	return r < 0 ? name_keep(n, r, true, err) : 0;
}

int output_name_commit(struct output_name *n, struct error *err)
{
	sigset_t old;
	int r;

	if (!n->base)
		return 0;
	r = name_sync(n);
	/* A signal between two steps would remove the only copy under its hidden name. */
	output_signals_block(&old);
	r = r < 0 ? name_keep(n, r, false, err) : name_finish_or_keep(n, err);
	sigprocmask(SIG_SETMASK, &old, NULL);
	/* Sync the name as well. Failure is ignored: some filesystems can't sync directories. */
	if (r == 0)
		fsync(n->dir_fd);
	return r;
}

bool output_name_leave(struct output_name *n)
{
	if (!n->temp || n->kind == OUTPUT_FILE)
		return false;
	doomed.dir = -1;
	free(n->temp);
	n->temp = NULL;
	return true;
}

void output_name_deinit(struct output_name *n)
{
	if (n->temp) {
		if (n->kind == OUTPUT_DIRECTORY)
			name_for_files(n, name_remove_file);
		unlinkat(n->dir_fd, n->temp, n->kind == OUTPUT_DIRECTORY ? AT_REMOVEDIR : 0);
		doomed.dir = -1;
	}
	close_fd(n->fd);
	close_fd(n->dir_fd);
	free(n->path);
	free(n->base);
	free(n->temp);
	*n = OUTPUT_NAME_INIT;
}
