/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changing the kernel's settings so that every change can be undone.
 *
 * The problem: a recording writes dozens of tracefs files. Any write may be refused, the process
 * may be killed between two of them, and some settings belong to everybody. Whatever happens, the
 * machine must be left as it was. Code that writes and remembers along the way gets this wrong in
 * the error path that nobody tests. So nothing here writes at once: callers add steps to a list,
 * and one loop applies them, and another undoes them.
 *
 *	request_plan()      plan_apply()              plan_undo()
 *	functions_plan()    ───────────▶              ◀───────────
 *	probes_plan()       add probe ─ make instance ─ write ─ write ─ set ─ enable
 *	                        │            │                           │
 *	                        ▼            ▼                           ▼
 *	                    the journal: one line before each step that needs an undo
 *
 * Four kinds of steps, by what undoes them:
 * - PLAN_INSTANCE creates an instance; removing it undoes the step and all writes within it.
 * - PLAN_WRITE writes within our own instance. It ends with the instance and needs no journal.
 * - PLAN_SET writes a setting that outlives us. Its old value is read first and restored.
 * - PLAN_ADD adds a line to a shared file (a probe); another line removes it.
 *
 * Invariants:
 * - The journal line is written before its step. A crash between the two undoes a step that never
 *   happened, which is harmless: restoring an unchanged value, or removing what is not there.
 * - Undo runs in reverse order, so what depends on a step is undone before it: a probe's event is
 *   in use until its instance is gone.
 * - A refused PLAN_SET counts as done once its old value is known: the write may have had effect
 *   in part.
 * - One refusal of a step that is not optional undoes the whole plan. Optional steps keep their
 *   error in .refused, and request_verify() decides what it means.
 * - Undo continues after an error. A step that could not be undone stays `done`, and its journal
 *   stays for the next start.
 *
 * A plan can be applied in two parts: a spare's plan makes the instances early, and the recording
 * that takes it adds the rest. find_done() leaves out steps that already stand. That is no mere
 * economy: writing a clock or a size makes the kernel wait for all CPUs, even if nothing changes.
 * For the same reason whole systems of events are enabled by one write; the single events follow
 * only if the kernel refuses it (.by).
 *
 * Old values cannot be written back as they were read: tracefs reads back another syntax than it
 * accepts. setting_text() converts them.
 */
#include "daemon/capture/plan/plan.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/sysinfo.h>

#include "base/parse.h"
#include "base/vec.h"
#include "daemon/capture/plan/probes.h"
#include "daemon/capture/tracefs/fields.h"
#include "daemon/capture/tracefs/setting.h"

static void let_go(struct plan_step *s)
{
	if (s->hold)
		close_fd(s->hold - 1);
	s->hold = 0;
}

void plan_deinit(struct plan *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->steps[i].instance);
		free(p->steps[i].file);
		free(p->steps[i].value);
		free(p->steps[i].old);
		let_go(&p->steps[i]);
	}
	free(p->steps);
	*p = (struct plan){ 0 };
}

static struct plan_step *add(struct plan *p, enum plan_kind kind, const char *instance,
			     const char *file, const char *value)
{
	struct plan_step *s;

	s = vec_add(p->steps, p->count, p->cap);
	if (!s) {
		p->failed = true;
		return NULL;
	}
	*s = (struct plan_step){ .kind = kind };
	s->instance = instance ? strdup(instance) : NULL;
	s->file = file ? strdup(file) : NULL;
	s->value = value ? strdup(value) : NULL;
	if ((instance && !s->instance) || (file && !s->file) || (value && !s->value))
		p->failed = true;
	return s;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/*
 * Returns the step that made the instance, or the last step that wrote this value to the file; or
 * NULL.
 */
static struct plan_step *find_done(struct plan *p, enum plan_kind kind, const char *instance,
				   const char *file, const char *value)
{
	for (size_t i = p->tried; i-- > 0;) {
		struct plan_step *s = &p->steps[i];

		if (!s->done || s->kind != kind || !same(s->file, file) ||
		    !same(s->instance, instance))
			continue;
		if (!s->outdated && !s->append && same(s->value, value))
			return s;
		s->outdated = true;
		return NULL;
	}
	return NULL;
}

void plan_instance(struct plan *p, const char *instance)
{
	if (!find_done(p, PLAN_INSTANCE, instance, NULL, NULL))
		add(p, PLAN_INSTANCE, instance, NULL, NULL);
}

struct plan_step *plan_write(struct plan *p, const char *instance, const char *file,
			     const char *value)
{
	return find_done(p, PLAN_WRITE, instance, file, value)
		       ?: add(p, PLAN_WRITE, instance, file, value);
}

struct plan_step *plan_writef(struct plan *p, const char *instance, const char *file,
			      const char *fmt, ...)
{
	_cleanup_free_ char *value = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&value, fmt, ap);
	va_end(ap);
	if (n < 0) {
		value = NULL;
		p->failed = true;
		return NULL;
	}
	return plan_write(p, instance, file, value);
}

struct plan_step *plan_set(struct plan *p, const char *instance, const char *file,
			   const char *value, const char *old)
{
	struct plan_step *s = add(p, PLAN_SET, instance, file, value);

	if (s && old) {
		s->old = strdup(old);
		p->failed |= !s->old;
	}
	return s;
}

struct plan_step *plan_put(struct plan *p, const char *instance, const char *file,
			   const char *value)
{
	return instance ? plan_write(p, instance, file, value)
			: plan_set(p, NULL, file, value, NULL);
}

void plan_add(struct plan *p, const char *file, const char *line, const char *undo)
{
	struct plan_step *s = add(p, PLAN_ADD, NULL, file, line);

	if (s) {
		s->old = strdup(undo);
		p->failed |= !s->old;
	}
}

static int write_value(const struct plan_step *s, const struct tracefs *fs)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, s->instance);

	if (dir < 0)
		return dir;
	return s->append ? tracefs_append(dir, s->file, s->value)
			 : tracefs_write(dir, s->file, s->value);
}

static int step_set(struct plan_step *s, const struct tracefs *fs, struct journal *j)
{
	_cleanup_buf_ struct buf now = BUF_INIT, old = BUF_INIT;
	int r = 0;

	if (!s->old) {
		r = tracefs_read(tracefs_root(fs), s->file, &now);
		if (r == 0)
			r = setting_text(s->file, buf_string(&now), &old);
		if (r < 0)
			return r;
		if (!buf_string(&old))
			return -ENOMEM;
		s->old = old.data;
		old = BUF_INIT;
	}
	r = journal_restore(j, s->file, s->old);
	if (r < 0)
		return r;
	/* Set before the write: a refused write may have taken effect in part. */
	s->done = true;
	return s->value ? write_value(s, fs) : 0;
}

static int step_add(const struct plan_step *s, const struct tracefs *fs, struct journal *j)
{
	int r = journal_append(j, s->file, s->old);

	return r < 0 ? r : tracefs_append(tracefs_root(fs), s->file, s->value);
}

static int make_instance(struct plan_step *s, const struct tracefs *fs)
{
	int r = tracefs_make_instance(fs, s->instance), fd;

	if (r < 0)
		return r;
	fd = tracefs_open_file(tracefs_root(fs), O_WRONLY, "instances/%s/tracing_on", s->instance);
	s->hold = fd < 0 ? 0 : fd + 1;
	return 0;
}

static int step_apply(struct plan_step *s, const struct tracefs *fs, struct journal *j)
{
	int r;

	switch (s->kind) {
	case PLAN_INSTANCE:
		r = journal_instance(j, s->instance);
		return r < 0 ? r : make_instance(s, fs);
	case PLAN_SET:
		return step_set(s, fs, j);
	case PLAN_ADD:
		return step_add(s, fs, j);
	case PLAN_WRITE:
		return write_value(s, fs);
	}
	return -EINVAL;
}

static int step_undo(struct plan_step *s, const struct tracefs *fs)
{
	int r = 0;

	let_go(s);
	if (s->kind == PLAN_INSTANCE)
		r = tracefs_remove_instance(fs, s->instance);
	else if (s->kind == PLAN_SET)
		r = tracefs_write(tracefs_root(fs), s->file, s->old);
	else if (s->kind == PLAN_ADD)
		r = tracefs_append(tracefs_root(fs), s->file, s->old);
	/* -ENOENT: somebody else removed it first. */
	return r == -ENOENT ? 0 : r;
}

int plan_apply(struct plan *p, const struct tracefs *fs, struct journal *j, struct error *err)
{
	if (p->failed)
		return error_set(err, -ENOMEM, "out of memory");
	p->tried = p->count;
	for (size_t i = 0; i < p->count; i++) {
		struct plan_step *s = &p->steps[i];
		int r = 0;

		if (!s->done && !s->refused && (!s->by || !p->steps[s->by - 1].done))
			r = step_apply(s, fs, j);
		if (r < 0)
			s->refused = r;
		if (r < 0 && !s->optional) {
			plan_explain(s, fs, r, err);
			plan_undo(p, fs);
			return r;
		}
		s->done |= !s->refused;
	}
	return 0;
}

int plan_undo(struct plan *p, const struct tracefs *fs)
{
	int failed = 0;

	for (size_t i = p->count; i-- > 0;) {
		int r;

		if (!p->steps[i].done)
			continue;
		r = step_undo(&p->steps[i], fs);
		if (r < 0) {
			failed = failed ?: r;
			continue;
		}
		p->steps[i].done = false;
	}
	return failed;
}

void plan_take_down(struct plan *p, const struct tracefs *fs, struct journal *j)
{
	if (plan_undo(p, fs) == 0)
		journal_drop(j);
	else
		journal_close(j);
	plan_deinit(p);
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

/* Appends error_log's last message verbatim, on its own lines: the caret must keep its column. */
static void add_error_log(const struct plan_step *s, const struct tracefs *fs, struct buf *out)
{
	_cleanup_free_ char *log = tracefs_last_error(fs, s->instance);
	char *save = NULL;

	if (!log)
		return;
	for (char *p = strtok_r(log, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
		buf_printf(out, "\n%s", p);
}

static void add_fields(const struct plan_step *s, const struct tracefs *fs, struct buf *out)
{
	_cleanup_buf_ struct buf format = BUF_INIT;
	_cleanup_free_ char *path = NULL;

	/* An event's filter and format are in one directory. */
	if (asprintf(&path, "%.*s/format", (int)(strrchr(s->file, '/') - s->file), s->file) < 0)
		return;
	if (tracefs_read(tracefs_root(fs), path, &format) == 0 && buf_string(&format))
		fields_hint(format.data, s->value, out);
}

static int explain_filter(const struct plan_step *s, const struct tracefs *fs, int code,
			  struct error *err)
{
	/* events/SYSTEM/EVENT/filter */
	_cleanup_free_ char *event = strdup(s->file + strlen("events/"));
	_cleanup_buf_ struct buf log = BUF_INIT, fields = BUF_INIT;
	char *slash = event ? strchr(event, '/') : NULL, *end = event ? strrchr(event, '/') : NULL;

	if (!slash || end == slash)
		return error_errno(err, code, "cannot write %s", s->file);
	*slash = ':';
	*end = '\0';
	add_error_log(s, fs, &log);
	add_fields(s, fs, &fields);
	error_set(err, code, "the kernel refuses the filter '%s' for event %s%s", s->value, event,
		  buf_string(&log) ?: "");
	if (fields.len)
		buf_puts(&fields, "; ");
	return error_hint(err, "%sa filter applies to every event that its glob matches",
			  buf_string(&fields) ?: "");
}

static int explain_clock(const struct plan_step *s, const struct tracefs *fs, int code,
			 struct error *err)
{
	_cleanup_buf_ struct buf clocks = BUF_INIT;

	error_set(err, code, "this kernel has no trace clock '%s'", s->value);
	if (tracefs_read(tracefs_root(fs), "trace_clock", &clocks) == 0 && buf_string(&clocks)) {
		for (char *p = clocks.data; *p; p++)
			if (*p == '[' || *p == ']')
				*p = ' ';
		return error_hint(err, "it has: %s", clocks.data + strspn(clocks.data, " "));
	}
	return -err->code;
}

static int explain_buffer(const struct plan_step *s, int code, struct error *err)
{
	uint64_t bytes = strtoull(s->value, NULL, 10) * 1024;
	_cleanup_buf_ struct buf size = BUF_INIT;

	format_bytes(bytes, &size);
	error_errno(err, code, "the kernel cannot allocate a ring buffer of %s for each of %d CPUs",
		    buf_string(&size) ?: "?", get_nprocs_conf());
	return error_hint(err, "ask for a smaller buffer (-b)");
}

static int explain_tracer(const struct plan_step *s, int code, struct error *err)
{
	error_set(err, code, "this kernel runs the tracer '%s' only in the top-level buffer",
		  s->value);
	return error_hint(err, "--top-level uses that buffer, with its tracer, filters, options, "
			       "clock and sizes, and restores all of them at the end");
}

static int explain_option(const struct plan_step *s, int code, struct error *err)
{
	error_set(err, code, "the option '%s' exists only in the top-level buffer",
		  s->file + strlen("options/"));
	return error_hint(err, "--top-level uses that buffer during the recording");
}

static const char *reason(int code)
{
	switch (code) {
	case -EPERM:
		return "the kernel may be locked down (see 'tracectl doctor')";
	case -EACCES:
		return "run as root";
	case -EBUSY:
		return "another tool may be using it";
	case -ENOENT:
		return "this kernel does not have it, or somebody removed the instance";
	case -EINVAL:
		return "this kernel does not take that value";
	default:
		return NULL;
	}
}

int plan_explain(const struct plan_step *s, const struct tracefs *fs, int code, struct error *err)
{
	if (!err)
		return code;
	if (s->file && strncmp(s->file, PROBE_EVENTS, strlen(PROBE_EVENTS)) == 0)
		return probe_enable_explain(s, code, err);
	if (s->kind == PLAN_ADD && probes_are_in(s->file))
		return probes_explain(s, fs, code, err);
	if (s->kind == PLAN_INSTANCE) {
		if (code == -EEXIST)
			return error_set(
				err, code,
				"a recording of that name is already running (tracefs instance %s)",
				s->instance);
		error_errno(err, code, "cannot create the tracefs instance %s", s->instance);
	} else if (ends_with(s->file, "/filter") && (code == -EINVAL || code == -ENOENT)) {
		return explain_filter(s, fs, code, err);
	} else if (ends_with(s->file, "trace_clock") && code == -EINVAL) {
		return explain_clock(s, fs, code, err);
	} else if (ends_with(s->file, "tracing_cpumask") && code != -EACCES && code != -EPERM) {
		error_set(err, code, "the list of CPUs names CPUs that this machine does not have");
		return error_hint(err, "it has 0 to %d", get_nprocs_conf() - 1);
	} else if (ends_with(s->file, "buffer_size_kb") && s->value) {
		return explain_buffer(s, code, err);
	} else if (strcmp(s->file, "current_tracer") == 0 && s->instance && code == -EINVAL) {
		return explain_tracer(s, code, err);
	} else if (strncmp(s->file, "options/", 8) == 0 && s->instance && code == -ENOENT) {
		return explain_option(s, code, err);
	} else {
		error_errno(err, code, "cannot write '%.60s' to %s", s->value ?: "", s->file);
	}
	if (reason(code))
		error_hint(err, "%s", reason(code));
	return code;
}
