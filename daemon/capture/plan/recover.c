/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cleans up after crashed recordings. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "daemon/capture/capture.h"
#include "daemon/capture/plan/journal.h"

/* Returns the steps undone, 0 if the journal's owner lives, or -errno. */
static int recover_journal(const struct tracefs *fs, int dirfd, const char *name, struct buf *kept)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
		return errno == EAGAIN || errno == EACCES ? 0 : -errno;
	r = read_file_at(dirfd, name, 1 << 20, &text);
	if (r == -ENOENT)
		return 0;
	if (r == 0 && text.len)
		r = journal_undo(fs, text.data, text.len, kept);
	/* If something could not be undone, keep the journal for the next try. */
	if (r >= 0)
		unlinkat(dirfd, name, 0);
	return r;
}

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && strcmp(s + n - m, suffix) == 0;
}

static int recover_journals(const struct capture_env *env, struct buf *kept, int *failed)
{
	DIR *dir = opendir(env->state_dir);
	struct dirent *e;
	int undone = 0;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(dir))) {
		int r;

		if (!has_suffix(e->d_name, JOURNAL_SUFFIX))
			continue;
		r = recover_journal(env->tracefs, dirfd(dir), e->d_name, kept);
		if (r < 0)
			*failed = r;
		else
			undone += r;
	}
	closedir(dir);
	return undone;
}

/* The pid in "traced-PID-name"; 0: not ours. */
pid_t capture_instance_owner(const char *instance)
{
	char *end;
	long pid;

	if (strncmp(instance, CAPTURE_INSTANCE_PREFIX, strlen(CAPTURE_INSTANCE_PREFIX)) != 0)
		return 0;
	instance += strlen(CAPTURE_INSTANCE_PREFIX);
	if (*instance < '1' || *instance > '9')
		return 0;
	errno = 0;
	pid = strtol(instance, &end, 10);
	return errno || *end != '-' || pid > INT32_MAX ? 0 : (pid_t)pid;
}

/* A creator in another pid namespace looks dead, and opens a file of its instance only then. */
#define ORPHAN_AGE_S 10

/* tracefs dates an instance at its creation. A date in the future is of a clock that was set. */
static bool recover_is_young(const struct tracefs *fs, const char *instance)
{
	time_t now = (time_t)(now_ns(CLOCK_REALTIME) / NSEC_PER_SEC);
	char path[512];
	struct stat st;

	if ((size_t)snprintf(path, sizeof(path), "instances/%s", instance) >= sizeof(path) ||
	    fstatat(tracefs_root(fs), path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return st.st_mtime <= now && now - st.st_mtime < ORPHAN_AGE_S;
}

/*
 * Removes instances with our prefix whose creator is dead and whose journal is lost (a state
 * directory on a remounted tmpfs). A live creator in another pid namespace holds one of its files
 * open, so rmdir returns EBUSY; it may not have opened one yet in a young instance.
 */
static int recover_orphans(const struct capture_env *env)
{
	size_t count = 0;
	int removed = 0;
	char **names;

	if (tracefs_list_instances(env->tracefs, &names, &count) < 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		pid_t pid = capture_instance_owner(names[i]);
		char path[512];
		struct stat st;

		if (!pid)
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%s" JOURNAL_SUFFIX, env->state_dir,
				     names[i]) >= sizeof(path) ||
		    stat(path, &st) == 0)
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%d", env->proc, pid) >= sizeof(path) ||
		    stat(path, &st) == 0)
			continue;
		if (recover_is_young(env->tracefs, names[i]))
			continue;
		removed += tracefs_try_remove_instance(env->tracefs, names[i]) == 0;
	}
	tracefs_free_names(names, count);
	return removed;
}

int capture_recover(const struct capture_env *env, struct buf *kept, struct error *err)
{
	int failed = 0, undone;

	undone = recover_journals(env, kept, &failed);
	if (undone < 0)
		return error_errno(err, undone, "cannot read the state folder %s", env->state_dir);
	undone += recover_orphans(env);
	if (failed) {
		error_errno(err, failed, "cannot undo all settings of a crashed recording");
		return error_hint(err,
				  "its journal stays in %s for the next try; instances are in "
				  "%s/instances",
				  env->state_dir, tracefs_path(env->tracefs));
	}
	return undone;
}
