/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Undoing a recording whose process has died.
 *
 * The problem: tracefs keeps its settings when the process that made them is killed. Instances
 * hold memory, probes and top-level settings disturb others. Only a file can tell the next start
 * what is left to undo, so each step is noted in a file before it is done.
 *
 *	recorder                      state directory             next start
 *	──────────────────────────    ──────────────────────      ─────────────────────────
 *	create, lock ───────────────▶ traced-1-x journal (locked)
 *	"instance traced-1-x" ──────▶ line 1
 *	   mkdir instances/traced-1-x
 *	"restore FILE OLD" ─────────▶ line 2
 *	   write FILE
 *	   killed                     (the kernel unlocks) ─────▶ lock succeeds: owner is dead
 *	                                                          undo line 2, then line 1
 *	                                                          unlink
 *
 * Invariants:
 * - A line is in the file before its step begins, so no step is ever without its undo. The reverse
 *   happens: a line whose step was never done. All undo steps are idempotent for that reason, and
 *   -ENOENT counts as success.
 * - The lock says whether the owner lives. It is an open file description lock: it belongs to the
 *   descriptor, is not lost when another descriptor of the file is closed, and ends with the
 *   process, however that ends. A pid in the file would be ambiguous: pids are used again, and
 *   differ between pid namespaces.
 * - Whoever undoes a journal holds its lock, so two starts never undo the same file. A journal that
 *   was created but is not locked yet may be deleted by such a start; journal_create() notices by
 *   the link count and tries again.
 * - The file is deleted only after everything was undone. What failed is tried at each next start.
 * - Lines are undone last first. A line is complete only with its newline; an incomplete last one
 *   was cut by the crash, before its step.
 * - FILE must lie below tracefs: absolute paths and ".." are refused. The state directory is
 *   writable by its owner only, but a damaged file must not write elsewhere.
 *
 * Why no fsync: the journal must outlive its writer, not the kernel. After a crash of the machine
 * the page cache and the settings are both gone. So noting a step costs one write(2) into the page
 * cache, and a start of a recording never waits for a disk.
 *
 * Why text: an administrator can read what is left, and undo it by hand with echo and rmdir.
 */
#include "daemon/capture/plan/journal.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"

static int journal_lock(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

int journal_create(struct journal *j, const char *state_dir, const char *name, struct error *err)
{
	struct stat st;
	int r;

	*j = JOURNAL_INIT;
	if (asprintf(&j->name, "%s" JOURNAL_SUFFIX, name) < 0) {
		j->name = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	j->dirfd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->dirfd < 0) {
		r = error_errno(err, -errno, "cannot open the state folder %s", state_dir);
		goto fail;
	}
	/*
	 * Before the lock is taken, a concurrent capture_recover may delete the new file: try
	 * again.
	 */
	for (int tries = 0; tries < 10; tries++) {
		j->fd = openat(j->dirfd, j->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (j->fd < 0) {
			r = -errno;
			break;
		}
		r = journal_lock(j->fd);
		if (r == 0 && fstat(j->fd, &st) == 0 && st.st_nlink > 0)
			return 0;
		j->fd = close_fd(j->fd);
		r = -EAGAIN;
	}
	if (r == -EEXIST)
		error_set(err, r, "a recording of that name is already running (%s/%s)", state_dir,
			  j->name);
	else
		error_errno(err, r, "cannot write a journal into %s", state_dir);
fail:
	journal_close(j);
	return r;
}

static int journal_write_line(struct journal *j, struct buf *line)
{
	int r = buf_error(line);

	if (r == 0)
		r = write_full(j->fd, line->data, line->len);
	return r;
}

int journal_instance(struct journal *j, const char *instance)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_printf(&line, "instance %s\n", instance);
	return journal_write_line(j, &line);
}

static int journal_write_value(struct journal *j, const char *verb, const char *file,
			       const char *value)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_printf(&line, "%s %s ", verb, file);
	for (; *value; value++) {
		if (*value == '\n')
			buf_puts(&line, "\\n");
		else if (*value == '\\')
			buf_puts(&line, "\\\\");
		else
			buf_putc(&line, *value);
	}
	buf_putc(&line, '\n');
	return journal_write_line(j, &line);
}

int journal_restore(struct journal *j, const char *file, const char *old)
{
	return journal_write_value(j, "restore", file, old);
}

int journal_append(struct journal *j, const char *file, const char *line)
{
	return journal_write_value(j, "append", file, line);
}

void journal_drop(struct journal *j)
{
	/* Unlink while locked, so that nobody takes the file for a crashed owner's. */
	if (j->fd >= 0)
		unlinkat(j->dirfd, j->name, 0);
	journal_close(j);
}

void journal_close(struct journal *j)
{
	j->fd = close_fd(j->fd);
	j->dirfd = close_fd(j->dirfd);
	free(j->name);
	j->name = NULL;
}

static void journal_unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1]) {
			s++;
			*to++ = *s == 'n' ? '\n' : *s;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static int journal_undo_value(const struct tracefs *fs, char *args, bool append)
{
	char *value = strchr(args, ' ');

	if (!value || args[0] == '/' || strstr(args, ".."))
		return -EBADMSG;
	*value++ = '\0';
	journal_unescape(value);
	return append ? tracefs_append(tracefs_root(fs), args, value)
		      : tracefs_write(tracefs_root(fs), args, value);
}

static int journal_undo_line(const struct tracefs *fs, char *line)
{
	if (strncmp(line, "instance ", 9) == 0)
		return tracefs_remove_instance(fs, line + 9);
	if (strncmp(line, "restore ", 8) == 0)
		return journal_undo_value(fs, line + 8, false);
	if (strncmp(line, "append ", 7) == 0)
		return journal_undo_value(fs, line + 7, true);
	return -EBADMSG;
}

int journal_undo(const struct tracefs *fs, char *text, size_t len)
{
	int undone = 0, failed = 0;

	/* Ignore a last line without its newline: a crash cut it. */
	while (len && text[len - 1] != '\n')
		len--;
	while (len) {
		size_t start = --len;
		int r;

		text[len] = '\0';
		while (start && text[start - 1] != '\n')
			start--;
		r = journal_undo_line(fs, text + start);
		len = start;
		if (r == 0)
			undone++;
		else if (r != -ENOENT && !failed)
			failed = r;
	}
	return failed ?: undone;
}
