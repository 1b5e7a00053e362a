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
 *	"wrote FILE NEW" ───────────▶ line 3
 *	   killed                     (the kernel unlocks) ─────▶ lock succeeds: owner is dead
 *	                                                          undo line 2 if FILE still has
 *	                                                          NEW, then line 1; unlink
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
 * - A setting that somebody changed after the crash is theirs. So a value is restored only if the
 *   file still reads as after our last write. A crash within a write leaves its value unknown: then
 *   the old value is restored.
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
#include <inttypes.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/vec.h"
#include "daemon/capture/tracefs/setting.h"

/* A longer value is compared by its length and hash: some lists name every kernel function. */
#define VALUE_MAX 200

static int journal_lock(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

int journal_explain_full(const struct journal *j, struct error *err)
{
	error_set(err, j->full, "the state folder %s is full", j->state_dir);
	return error_hint(err, "make room there, or set state_dir in traced.conf");
}

int journal_create(struct journal *j, const char *state_dir, const char *name, struct error *err)
{
	struct stat st;
	int r;

	*j = JOURNAL_INIT;
	j->state_dir = state_dir;
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
	j->full = r == -ENOSPC || r == -EDQUOT ? r : 0;
	if (j->full)
		journal_explain_full(j, err);
	else if (r == -EEXIST)
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
	if (r == -ENOSPC || r == -EDQUOT)
		j->full = r;
	return r;
}

int journal_instance(struct journal *j, const char *instance)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_printf(&line, "instance %s\n", instance);
	return journal_write_line(j, &line);
}

static void journal_escape(const char *value, struct buf *out)
{
	for (; *value; value++) {
		if (*value == '\n')
			buf_puts(out, "\\n");
		else if (*value == '\\')
			buf_puts(out, "\\\\");
		else
			buf_putc(out, *value);
	}
}

static int journal_write_value(struct journal *j, const char *verb, const char *file,
			       const char *value)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_printf(&line, "%s %s ", verb, file);
	journal_escape(value, &line);
	buf_putc(&line, '\n');
	return journal_write_line(j, &line);
}

/* Appends what identifies a value, on one line: the value, escaped, or its length and FNV-1a hash.
 */
static void journal_identify(const char *value, struct buf *out)
{
	size_t len = strlen(value);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	if (len <= VALUE_MAX) {
		journal_escape(value, out);
		return;
	}
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)value[i]) * UINT64_C(0x100000001b3);
	buf_printf(out, "\\%zu bytes, hash %016" PRIx64, len, hash);
}

/* Appends what identifies the file's present value. */
static int journal_read_back(const struct tracefs *fs, const char *file, struct buf *out)
{
	_cleanup_buf_ struct buf now = BUF_INIT, value = BUF_INIT;
	int r = tracefs_read(tracefs_root(fs), file, &now);

	if (r == 0)
		r = setting_text(file, buf_string(&now), &value);
	if (r < 0)
		return r;
	if (!buf_string(&value))
		return -ENOMEM;
	journal_identify(value.data, out);
	return buf_string(out) ? 0 : -ENOMEM;
}

int journal_restore(struct journal *j, const char *file, const char *old)
{
	return journal_write_value(j, "restore", file, old);
}

int journal_writes(struct journal *j, const char *file)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_printf(&line, "writes %s\n", file);
	return journal_write_line(j, &line);
}

int journal_wrote(struct journal *j, const struct tracefs *fs, const char *file)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_printf(&line, "wrote %s ", file);
	/* Without the line the value counts as ours. */
	if (journal_read_back(fs, file, &line) < 0)
		return 0;
	buf_putc(&line, '\n');
	return journal_write_line(j, &line);
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

/* Our last write of a file. */
struct last_write {
	const char *file;
	const char *value; /* as journal_identify() puts it; NULL: unknown */
};

struct undoing {
	const struct tracefs *fs;
	struct last_write *writes; /* owned; the strings belong to the journal's text */
	size_t count, cap;
	struct buf *kept; /* a line for each value that stays; or NULL */
	bool any_kept;
};

static struct last_write *undoing_find(struct undoing *u, const char *file)
{
	for (size_t i = 0; i < u->count; i++)
		if (strcmp(u->writes[i].file, file) == 0)
			return &u->writes[i];
	return NULL;
}

/* Lines come last first, so a file's first line is about its last write. */
static int undoing_note(struct undoing *u, const char *file, const char *value)
{
	const struct last_write w = { file, value };

	return undoing_find(u, file) ? 0 : vec_push(u->writes, u->count, u->cap, w);
}

static void undoing_keep(struct undoing *u, const char *what)
{
	u->any_kept = true;
	if (u->kept)
		buf_printf(u->kept, "%s\n", what);
}

/* True if another tool now uses the top-level buffer. */
static bool toplevel_is_used(const struct tracefs *fs)
{
	_cleanup_buf_ struct buf tracer = BUF_INIT, events = BUF_INIT;
	bool traces = tracefs_read(tracefs_root(fs), "current_tracer", &tracer) == 0 &&
		      strcmp(buf_string(&tracer) ?: "nop", "nop") != 0;

	return traces || (tracefs_read(tracefs_root(fs), "events/enable", &events) == 0 &&
			  strcmp(buf_string(&events) ?: "0", "0") != 0);
}

/*
 * True if the setting is somebody else's now, or has its old value. Reports the former. An empty
 * value is written again: the kernel still filters by a list whose tasks have all ended.
 */
static bool undoing_is_over(struct undoing *u, const char *file, const char *old, const char *value)
{
	_cleanup_buf_ struct buf now = BUF_INIT, before = BUF_INIT, text = BUF_INIT;

	if (!value || journal_read_back(u->fs, file, &now) < 0 || strcmp(now.data, value) == 0)
		return false;
	journal_identify(old, &before);
	if (strcmp(now.data, buf_string(&before) ?: "") == 0)
		return *old;
	buf_printf(&text, "%s stays '%s': it was changed after the crash", file, now.data);
	undoing_keep(u, buf_string(&text) ?: file);
	return true;
}

/* Returns 1 if the old value was written. */
static int undoing_restore(struct undoing *u, const char *file, const char *old)
{
	struct last_write *last = undoing_find(u, file);

	/* The first step of a recording in the top-level buffer, so it is undone last. */
	if (strcmp(file, "trace") == 0 && (u->any_kept || toplevel_is_used(u->fs))) {
		undoing_keep(u, "the events in the top-level buffer stay: somebody uses it");
		return 0;
	}
	if (last) {
		const char *value = last->value;

		/* An earlier step on the same file has a write of its own. */
		vec_remove(u->writes, u->count, (size_t)(last - u->writes), 1);
		if (undoing_is_over(u, file, old, value))
			return 0;
	}
	return tracefs_write(tracefs_root(u->fs), file, old) ?: 1;
}

/* The name of a recording, and so of its instance, may have two dots in a row. */
static bool path_is_below(const char *path)
{
	if (*path == '/')
		return false;
	for (const char *p = path; *p;) {
		size_t len = strcspn(p, "/");

		if (len == 2 && strncmp(p, "..", 2) == 0)
			return false;
		p += len + (p[len] == '/');
	}
	return true;
}

/* Splits "FILE VALUE", or takes FILE alone. NULL: FILE is not below tracefs. */
static const char *journal_take_file(char *args, char **ret_value)
{
	char *blank = strchr(args, ' ');

	*ret_value = blank ? blank + 1 : NULL;
	if (blank)
		*blank = '\0';
	return path_is_below(args) ? args : NULL;
}

/*
 * Returns 1 if the line was written. -EINVAL: the kernel can't read the line of a trigger. It had
 * refused the trigger, too, or somebody removed the one whose variables this one uses. If it
 * stands nevertheless, its instance can't be removed, which is an error.
 */
static int undoing_append(const struct undoing *u, const char *file, const char *line)
{
	int r = tracefs_append(tracefs_root(u->fs), file, line);

	return r == -EINVAL && *line == '!' ? 0 : r ?: 1;
}

/* Returns 1 if the line was a step that is undone now, 0 if it only tells about one. */
static int undoing_line(struct undoing *u, char *line)
{
	static const char *const verbs[] = { "restore", "append", "wrote", "writes" };
	char *args = strchr(line, ' '), *value;
	const char *file;
	size_t verb = 0;

	if (strncmp(line, "instance ", 9) == 0)
		return tracefs_remove_instance(u->fs, line + 9) ?: 1;
	if (!args)
		return -EBADMSG;
	*args++ = '\0';
	while (verb < ARRAY_SIZE(verbs) && strcmp(line, verbs[verb]) != 0)
		verb++;
	file = journal_take_file(args, &value);
	if (!file || verb == ARRAY_SIZE(verbs) || (!value && verb < 3))
		return -EBADMSG;
	if (verb >= 2)
		return undoing_note(u, file, verb == 2 ? value : NULL);
	journal_unescape(value);
	return verb ? undoing_append(u, file, value) : undoing_restore(u, file, value);
}

int journal_undo(const struct tracefs *fs, char *text, size_t len, struct buf *kept)
{
	struct undoing u = { .fs = fs, .kept = kept };
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
		r = undoing_line(&u, text + start);
		len = start;
		if (r >= 0)
			undone += r;
		else if (r != -ENOENT && !failed)
			failed = r;
	}
	free(u.writes);
	return failed ?: undone;
}
