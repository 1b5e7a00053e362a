/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sql_parse.h"

#if HAVE_LIBTRACEFS

#include <ctype.h>
#include <event-parse.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <trace-seq.h>
#include <tracefs.h>

#include "base/caret.h"
#include "base/io.h"
#include "daemon/service/sandbox.h"
#include "sql.h"

#define RESULT_MAX (64U << 10)
#define MEMORY_MAX (256U << 20)
/* The exporter's user may own recordings; this one owns nothing. */
#define NOBODY 65534

/* First byte of the result. */
enum { SQL_DONE = 'd', SQL_WRONG = 'w', SQL_CONFINEMENT = 'c', SQL_MOUNT = 'm' };

struct sql_work {
	const char *name, *typed;
	struct sql_translation sql;
	bool counts;
	const struct sql_format *formats;
	size_t count;
};

static void sql_work_deinit(struct sql_work *w)
{
	sql_translation_deinit(&w->sql);
}

static struct tep_handle *sql_load(const struct sql_work *w)
{
	struct tep_handle *tep = tep_alloc();

	if (!tep)
		return NULL;
	/* libtracefs would print its own messages. */
	tep_set_loglevel(TEP_LOG_NONE);
	tracefs_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(tep, sizeof(long));
	for (size_t i = 0; i < w->count; i++)
		tep_parse_event(tep, w->formats[i].text, strlen(w->formats[i].text),
				w->formats[i].system);
	return tep;
}

static int sql_put_commands(const struct sql_work *w, struct tracefs_synth *synth,
			    struct trace_seq *seq)
{
	struct tracefs_hist *hist;

	if (!w->counts || tracefs_synth_complete(synth))
		return tracefs_synth_echo_cmd(seq, synth);
	hist = tracefs_synth_get_start_hist(synth);
	return hist ? tracefs_hist_echo_cmd(seq, NULL, hist, TRACEFS_HIST_CMD_START) : -1;
}

/* In the confined process. Appends the kind of the result and its text. */
static void sql_work_run(const struct sql_work *w, struct buf *out)
{
	struct tep_handle *tep = sql_load(w);
	struct tracefs_synth *synth;
	struct trace_seq seq;
	char *wrong = NULL;

	errno = 0;
	synth = tep ? tracefs_sql(tep, w->name, w->sql.sql.data, &wrong) : NULL;
	if (!synth || !(w->counts || tracefs_synth_complete(synth))) {
		buf_putc(out, SQL_WRONG);
		if (wrong)
			buf_puts(out, wrong);
		else if (synth)
			buf_puts(out, "\n^\nit needs a second event: JOIN ... ON ...");
		return;
	}
	trace_seq_init(&seq);
	if (sql_put_commands(w, synth, &seq) < 0) {
		buf_putc(out, SQL_MOUNT);
		return;
	}
	buf_putc(out, SQL_DONE);
	buf_append(out, seq.buffer, seq.len);
}

/*
 * libtracefs looks for a mounted tracefs, whose path is in its text. Where traced has a mount of
 * its own, root's process gets one that nobody else sees; others are told to mount it.
 */
static void sql_mount_tracefs(void)
{
	if (!tracefs_tracing_dir_is_mounted(false, NULL) && unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		(void)!mount("nodev", "/sys/kernel/tracing", "tracefs", 0, NULL);
}

static void sql_work_in_child(const struct sql_work *w, pid_t parent, int pipe)
{
	const struct sandbox sandbox = {
		.drop = geteuid() == 0,
		.uid = NOBODY,
		.memory = MEMORY_MAX,
		.cpu_s = 2,
		.files = 16,
		.reads = true,
		.parent = parent,
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	/* Among the others is a connection to the daemon, with the rights of who opened it. */
	int r = close_fds_from_except(STDERR_FILENO + 1, &pipe, 1);

	sql_mount_tracefs();
	if (r < 0)
		error_errno(&err, r, "/proc/self/fd");
	if (r < 0 || sandbox_enter(&sandbox, &err) < 0) {
		buf_putc(&out, SQL_CONFINEMENT);
		buf_puts(&out, err.message);
	} else {
		sql_work_run(w, &out);
	}
	_exit(buf_error(&out) == 0 && write_full(pipe, out.data, out.len) == 0 ? 0 : 1);
}

/* The first quote without its end; NULL: there is none. */
static const char *sql_find_open_quote(const char *sql)
{
	for (const char *p = sql + strcspn(sql, "'\""); *p; p += strcspn(p, "'\"")) {
		const char *end = sql_quote_end(p);

		if (!end)
			return p;
		p = end + 1;
	}
	return NULL;
}

/* Events that other SQL of the request makes have no list of fields. */
static bool sql_is_own_event(const struct sql_work *w, const char *event)
{
	const size_t len = strlen(event);

	for (size_t i = 0; i < w->count; i++) {
		const char *name = strstr(w->formats[i].text, "name: ");

		if (name && strcmp(w->formats[i].system, SQL_OWN_SYSTEM) == 0 &&
		    strncmp(name + strlen("name: "), event, len) == 0 &&
		    name[strlen("name: ") + len] == '\n')
			return true;
	}
	return false;
}

static int sql_hint(const struct sql_work *w, const char *why, struct error *err)
{
	static const char no_field[] = " not part of event ";
	const char *event = strstr(why, no_field);

	if (strcmp(why, "event not found") == 0)
		return error_hint(err, "'tracectl events' lists the kernel's events");
	if (strcmp(why, SQL_NO_FIELD) == 0)
		return error_hint(err, "'tracectl events -v EVENT' lists an event's fields");
	if (event && !sql_is_own_event(w, event + strlen(no_field)))
		return error_hint(err, "'tracectl events -v %.100s' lists its fields",
				  event + strlen(no_field));
	return error_hint(err, SQL_EXAMPLE);
}

/* libtracefs ends its message so: LINE, blanks and a caret, "ERROR: 'WORD'", the reason. */
static int sql_take_wrong(const struct sql_work *w, const char *text, struct error *err)
{
	const char *caret = strchr(text, '\n'), *reason = caret ? strchr(caret + 1, '\n') : NULL;
	_cleanup_buf_ struct buf place = BUF_INIT, why = BUF_INIT;
	const char *sql = w->sql.sql.data, *unknown = NULL, *quote = NULL;
	const char *said, *unknown_why = NULL;
	size_t at = caret ? strspn(caret + 1, " ") : 0;

	/* The word may have any character, so take what follows the last line break. */
	if (reason) {
		const char *end = reason + strlen(reason);

		while (end > reason && isspace((unsigned char)end[-1]))
			end--;
		for (const char *p = reason; p < end; p++)
			if (*p == '\n')
				reason = p + 1;
		buf_append(&why, reason, (size_t)(end - reason));
	}
	said = why.len ? buf_string(&why) ?: "" : "libtracefs makes no event of it";
	/* libtracefs prints "(null)" for some fields, and says nothing of others. */
	if (!reason)
		unknown = sql_find_unknown(sql, w->formats, w->count, &unknown_why);
	if (unknown || strstr(said, "(null)"))
		said = unknown_why ?: SQL_NO_FIELD;
	/* libtracefs points behind the word that follows the quote. */
	if (strcmp(said, "syntax error") == 0)
		quote = sql_find_open_quote(sql);
	if (quote || unknown)
		at = (size_t)((quote ?: unknown) - sql);
	if (reason || unknown)
		buf_put_caret(&place, w->typed, w->typed + sql_translation_place(&w->sql, at));
	error_set(err, -EINVAL, "the SQL of '%s': %.200s%s%s", w->name, said,
		  quote ? ": a quote has no end" : "", buf_string(&place) ?: "");
	return sql_hint(w, said, err);
}

static int sql_take(const struct sql_work *w, const struct buf *result, int status, struct buf *out,
		    struct error *err)
{
	const char *text = result->data ? result->data + 1 : "";

	if (!WIFEXITED(status) || WEXITSTATUS(status) || !result->len) {
		error_set(err, -ECHILD, "the SQL of '%s': libtracefs failed on it", w->name);
		return error_hint(err, "write it shorter, with fewer parentheses");
	}
	switch (*result->data) {
	case SQL_DONE:
		sql_put_numbers_back(text, out);
		return 0;
	case SQL_WRONG:
		return sql_take_wrong(w, text, err);
	case SQL_MOUNT:
		error_set(err, -ENOENT, "libtracefs finds no mounted tracefs");
		return error_hint(err, "mount -t tracefs nodev /sys/kernel/tracing");
	default:
		return error_set(err, -EPERM, "cannot confine the parser of SQL: %s", text);
	}
}

static void sql_read_result(int pipe, struct buf *result)
{
	while (result->len < RESULT_MAX) {
		char *to = buf_reserve(result, 4096);
		ssize_t n = to ? read(pipe, to, 4096) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		result->len += (size_t)n;
	}
}

int sql_parse(const char *name, const char *sql, bool counts, const struct sql_format *formats,
	      size_t count, struct buf *out, struct error *err)
{
	_cleanup_(sql_work_deinit) struct sql_work work = {
		.name = name, .typed = sql, .counts = counts, .formats = formats, .count = count
	};
	_cleanup_buf_ struct buf result = BUF_INIT;
	int pipes[2], status = 0;
	pid_t parent = getpid(), pid;

	if (sql_translate(sql, &work.sql) < 0)
		return error_set(err, -ENOMEM, "out of memory");
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	pid = fork();
	if (pid == 0)
		sql_work_in_child(&work, parent, pipes[1]);
	close(pipes[1]);
	if (pid > 0)
		sql_read_result(pipes[0], &result);
	close(pipes[0]);
	if (pid < 0)
		return error_errno(err, -errno, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!buf_string(&result))
		return error_set(err, -ENOMEM, "out of memory");
	return sql_take(&work, &result, status, out, err);
}

#else

int sql_parse(const char *name, const char *sql _unused_, bool counts _unused_,
	      const struct sql_format *formats _unused_, size_t count _unused_,
	      struct buf *out _unused_, struct error *err)
{
	error_set(err, -EOPNOTSUPP,
		  "this build of tracectl has no libtracefs, which --sql needs "
		  "for '%s'",
		  name);
	return error_hint(err, "build it with -Dlibtracefs=enabled");
}

#endif
