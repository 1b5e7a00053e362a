/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "result_file.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "names.h"
#include "part.h"

/* Bytes copied by one call. */
#define COPY_MAX (64U << 20)

bool result_file_force_named;

/* The file that a fatal signal must remove; one at a time. */
static char doomed_name[NAME_MAX + 1];
static volatile int doomed_dir = -1;

static const int fatal_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void remove_doomed(int sig)
{
	if (doomed_dir >= 0)
		unlinkat(doomed_dir, doomed_name, 0);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void doom(int dir_fd, const char *name)
{
	strcpy(doomed_name, name);
	doomed_dir = dir_fd;
	for (size_t i = 0; i < ARRAY_SIZE(fatal_signals); i++) {
		struct sigaction old;

		/* Keep ignored signals ignored (nohup). */
		if (!sigaction(fatal_signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			signal(fatal_signals[i], remove_doomed);
	}
}

static void spare(void)
{
	doomed_dir = -1;
}

void result_file_block_fatal(sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(fatal_signals); i++)
		sigaddset(&set, fatal_signals[i]);
	sigprocmask(SIG_BLOCK, &set, old);
}

static int open_named(struct result_file *f)
{
	for (int tries = 0; tries < 16; tries++) {
		_cleanup_free_ char *name = NULL;
		int r = name_hidden(f->base, &name);
		sigset_t old;

		if (r < 0)
			return r;
		/* A signal between creation and registration would leave the file behind. */
		result_file_block_fatal(&old);
		f->fd = openat(f->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			       0666);
		r = f->fd < 0 ? -errno : 0;
		if (r == 0) {
			doom(f->dir_fd, name);
			f->temp = TAKE_PTR(name);
		}
		sigprocmask(SIG_SETMASK, &old, NULL);
		if (r != -EEXIST)
			return r;
	}
	return -EEXIST;
}

static int open_part(struct result_file *f)
{
	char *name = NULL;
	sigset_t old;
	int r;

	result_file_block_fatal(&old);
	r = f->fd = part_open(f->dir_fd, f->base, &name);
	if (r >= 0) {
		doom(f->dir_fd, name);
		f->temp = name;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return MIN(r, 0);
}

static int explain(struct error *err, int r, const char *path, const char *dir)
{
	switch (r) {
	case -ENOENT:
		if (access(dir, F_OK) == 0) {
			error_set(err, r, "%s: no file can be made in %s", path, dir);
			return error_hint(err, "name another output with -o");
		}
		error_set(err, r, "%s: there is no directory %s", path, dir);
		return error_hint(err, "make it (mkdir -p) or name another output with -o");
	case -ENOTDIR:
		error_set(err, r, "%s: %s is no directory", path, dir);
		return error_hint(err, "name another output with -o");
	case -EACCES:
	case -EPERM:
	case -EROFS:
		error_errno(err, r, "%s: the directory %s can't be written", path, dir);
		return error_hint(err, "name another output with -o");
	case -ENOSPC:
	case -EDQUOT:
		error_errno(err, r, "%s", path);
		return error_hint(err, "free some space or name another output with -o");
	default:
		return error_errno(err, r, "%s", path);
	}
}

/* An existing non-regular file must never be replaced: above all not /dev/null. */
static int open_in_place(struct result_file *f, const char *path, struct error *err)
{
	f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return f->fd < 0 ? error_errno(err, -errno, "%s", path) : 0;
}

/* The rule of fs.protected_symlinks, which may be off: see proc_sys_fs(5). */
static bool link_is_trusted(const char *path, const struct stat *link)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	struct stat st;

	if (name_is_callers(link->st_uid))
		return true;
	if (!dir || stat(dir, &st) < 0)
		return false;
	return !(st.st_mode & S_ISVTX) || !(st.st_mode & S_IWOTH) || st.st_uid == link->st_uid;
}

int result_file_refuse_others(const char *path, int r, const struct stat *st, struct error *err)
{
	struct stat link;

	if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && !link_is_trusted(path, &link))
		error_set(err, -EPERM, "%s is a symbolic link of uid %u, and all may write there",
			  path, link.st_uid);
	else if (r == 0 && !name_is_callers(st->st_uid))
		error_set(err, -EPERM, "%s is there already, and is uid %u's", path, st->st_uid);
	else
		return 0;
	error_hint(err, "remove it, or name another output with -o");
	return -EPERM;
}

/* Splits the target of f->path into f->dir_fd and f->base. A link stays, its target is replaced. */
static int locate(struct result_file *f, bool part, struct error *err)
{
	_cleanup_free_ char *target = name_target(f->path), *dir = NULL;
	const char *slash;
	int r;

	if (!target)
		return error_errno(err, -ENOMEM, "%s", f->path);
	slash = strrchr(target, '/');
	dir = slash ? strndup(target, slash == target ? 1 : (size_t)(slash - target)) : strdup(".");
	f->base = strdup(slash ? slash + 1 : target);
	if (!dir || !f->base)
		return error_errno(err, -ENOMEM, "%s", f->path);
	if (!*f->base)
		return explain(err, -ENOENT, f->path, dir);
	if (strlen(f->base) > NAME_MAX)
		return error_errno(err, -ENAMETOOLONG, "%s", f->path);
	f->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dir_fd < 0)
		return explain(err, -errno, f->path, dir);
	if (part) {
		r = open_part(f);
		return r < 0 ? explain(err, r, f->path, dir) : 0;
	}
	if (!result_file_force_named) {
		f->fd = openat(f->dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
		if (f->fd >= 0)
			return 0;
	}
	/*
	 * Filesystems without O_TMPFILE, such as overlayfs and FUSE, fail with EOPNOTSUPP, EISDIR
	 * or EINVAL.
	 */
	r = open_named(f);
	return r < 0 ? explain(err, r, f->path, dir) : 0;
}

/* The offset and content of an inherited descriptor are its opener's business. */
static int open_handed(struct result_file *f, int fd, struct error *err)
{
	if (fd >= 0)
		f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return f->fd < 0 ? error_errno(err, fd < 0 ? fd : -errno, "%s", f->path) : 0;
}

int result_file_refuse_directory(const char *path, struct error *err)
{
	error_set(err, -EISDIR, "%s is a directory", path);
	return error_hint(err, "name a file in it: -o %s%strace.json", path,
			  path[strlen(path) - 1] == '/' ? "" : "/");
}

static int open_path(struct result_file *f, const char *path, bool part, struct error *err)
{
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : 0;

	if (r < 0 || S_ISREG(st.st_mode))
		return result_file_refuse_others(path, r, &st, err) ?: locate(f, part, err);
	if (!S_ISDIR(st.st_mode))
		return open_in_place(f, path, err);
	return result_file_refuse_directory(path, err);
}

static int open_file(struct result_file *ret, const char *path, bool part, struct error *err)
{
	_cleanup_result_file_ struct result_file f = RESULT_FILE_INIT;
	bool is_stdout = !strcmp(path, "-");
	int handed = is_stdout ? STDOUT_FILENO : name_descriptor(path), r;

	f.path = strdup(is_stdout ? "standard output" : path);
	if (!f.path)
		return error_errno(err, -ENOMEM, "%s", path);
	r = handed == -ENOENT ? open_path(&f, path, part, err) : open_handed(&f, handed, err);
	if (r < 0)
		return r;
	*ret = f;
	f = RESULT_FILE_INIT;
	return 0;
}

int result_file_open(struct result_file *ret, const char *path, struct error *err)
{
	return open_file(ret, path, false, err);
}

int result_file_open_part(struct result_file *ret, const char *path, struct error *err)
{
	return open_file(ret, path, true, err);
}

int result_file_rehearse(struct result_file *f, struct error *err)
{
	_cleanup_free_ char *name = NULL;
	sigset_t old;
	int r = name_hidden(f->base, &name);

	if (r < 0)
		return error_errno(err, r, "%s", f->path);
	result_file_block_fatal(&old);
	r = name_rename_fresh(f->dir_fd, f->temp, name);
	if (r == 0) {
		doom(f->dir_fd, name);
		free(f->temp);
		f->temp = TAKE_PTR(name);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r < 0 ? error_errno(err, r, "%s: files can't be given their names there", f->path)
		     : 0;
}

/* Links the unnamed file under a temporary name, from which it can replace an old file. */
static int give_temp_name(struct result_file *f)
{
	char proc[32];
	int r;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", f->fd);
	for (int tries = 0; tries < 16; tries++) {
		_cleanup_free_ char *name = NULL;

		r = name_hidden(f->base, &name);
		if (r < 0)
			return r;
		if (!linkat(AT_FDCWD, proc, f->dir_fd, name, AT_SYMLINK_FOLLOW)) {
			f->temp = TAKE_PTR(name);
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* The name may have been taken since result_file_open(). */
static int check_name(const struct result_file *f)
{
	struct stat st;

	if (f->fresh || fstatat(f->dir_fd, f->base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return name_is_callers(st.st_uid) ? 0 : -EPERM;
}

static int give_name(struct result_file *f)
{
	sigset_t old;
	int r;

	result_file_block_fatal(&old);
	r = check_name(f);
	if (!r && !f->temp)
		r = give_temp_name(f);
	if (!r && f->fresh)
		r = name_rename_fresh(f->dir_fd, f->temp, f->base);
	else if (!r && renameat(f->dir_fd, f->temp, f->dir_fd, f->base) < 0)
		r = -errno;
	if (!r) {
		spare();
		free(f->temp);
		f->temp = NULL;
		free(f->base);
		f->base = NULL;
	} else if (f->temp) {
		doom(f->dir_fd, f->temp);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r;
}

/* "NAME.XXXXXXXX" */
static int other_name(const char *base, char **ret)
{
	_cleanup_free_ char *hidden = NULL;
	int r = name_hidden(base, &hidden);

	if (r < 0)
		return r;
	*ret = strdup(hidden + 1);
	return *ret ? 0 : -ENOMEM;
}

/* Saves it in the intended directory under another name. */
static int save_beside(struct result_file *f, char **ret)
{
	_cleanup_free_ char *name = NULL, *dir = NULL, *path = NULL;
	char proc[32];
	int r = other_name(f->base, &name);

	if (r < 0)
		return r;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", f->dir_fd);
	dir = realpath(proc, NULL);
	if (!dir)
		return -errno;
	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	free(f->base);
	f->base = TAKE_PTR(name);
	f->fresh = true;
	r = give_name(f);
	if (r >= 0)
		*ret = TAKE_PTR(path);
	return r;
}

static int copy_content(int to, int from)
{
	off_t at = 0;
	ssize_t n;

	while ((n = sendfile(to, from, &at, COPY_MAX)) > 0)
		;
	return n < 0 || fsync(to) < 0 ? -errno : 0;
}

/*
 * Copies it to the temporary folder; readable by the owner only, since others use that folder, too.
 */
static int save_elsewhere(const struct result_file *f, char **ret)
{
	_cleanup_result_file_ struct result_file copy = RESULT_FILE_INIT;
	_cleanup_free_ char *name = NULL, *path = NULL;
	int r = other_name(f->base, &name);

	if (r < 0)
		return r;
	if (asprintf(&path, "%s/%s", getenv("TMPDIR") ?: "/var/tmp", name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = result_file_open(&copy, path, NULL);
	if (r < 0)
		return r;
	/* The name is taken. */
	if (!copy.base)
		return -EEXIST;
	copy.fresh = true;
	if (fchmod(copy.fd, 0600) < 0)
		return -errno;
	r = copy_content(copy.fd, f->fd);
	if (r >= 0)
		r = give_name(&copy);
	if (r >= 0)
		*ret = TAKE_PTR(path);
	return r;
}

/* Keeps the result if it can't be renamed or synced: it was expensive to record. */
static int save(struct result_file *f, int why, bool whole, struct error *err)
{
	_cleanup_free_ char *path = NULL;
	int r = save_beside(f, &path);

	if (r < 0)
		r = save_elsewhere(f, &path);
	error_errno(err, why, "%s", f->path);
	if (r < 0)
		return error_hint(err,
				  "it could not be saved in %s either (%s): TMPDIR names "
				  "another place",
				  getenv("TMPDIR") ?: "/var/tmp", strerror(-r));
	return error_hint(err,
			  whole ? "it is whole, and saved as %s"
				: "what the disk took of it is saved as %s",
			  path);
}

int result_file_commit(struct result_file *f, struct error *err)
{
	int r;

	if (!f->base)
		return 0;
	if (fsync(f->fd) < 0)
		return save(f, -errno, false, err);
	r = give_name(f);
	if (r == -EEXIST && f->fresh)
		return error_errno(err, r, "%s", f->path);
	if (r < 0)
		return save(f, r, true, err);
	/* Sync the name as well. Failure is ignored: some filesystems can't sync directories. */
	fsync(f->dir_fd);
	return 0;
}

int result_file_rename(struct result_file *f, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/');
	char *copy = strdup(path), *base = strdup(slash ? slash + 1 : path);

	if (!copy || !base) {
		free(copy);
		free(base);
		return error_errno(err, -ENOMEM, "%s", path);
	}
	free(f->path);
	free(f->base);
	f->path = copy;
	f->base = base;
	return 0;
}

bool result_file_leave(struct result_file *f)
{
	if (!f->temp || *f->temp == '.')
		return false;
	spare();
	free(f->temp);
	f->temp = NULL;
	return true;
}

void result_file_deinit(struct result_file *f)
{
	if (f->temp) {
		unlinkat(f->dir_fd, f->temp, 0);
		spare();
	}
	close_fd(f->fd);
	close_fd(f->dir_fd);
	free(f->path);
	free(f->base);
	free(f->temp);
	*f = RESULT_FILE_INIT;
}
