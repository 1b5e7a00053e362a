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
 * Five kinds of steps, by what undoes them:
 * - PLAN_INSTANCE creates an instance; removing it undoes the step and all writes within it.
 * - PLAN_WRITE writes within our own instance. It ends with the instance and needs no journal.
 *   Many enabled events are disabled one by one before: removal would disable them all in one
 *   call, for seconds.
 * - PLAN_SET writes a setting that outlives us. Its old value is read first and restored.
 * - PLAN_ADD adds a line to a shared file (a probe); another line removes it.
 * - PLAN_TRIGGER adds a trigger to an event of our own instance; the same line after '!' removes
 *   it. Most triggers would end with the instance. But a histogram with variables holds a
 *   reference on it (save_hist_vars()), so that its removal fails with -EBUSY. One that uses
 *   another's variables must go before that one.
 *
 * Invariants:
 * - The journal line is written before its step. A crash between the two undoes a step that never
 *   happened, which is harmless: restoring an unchanged value, or removing what is not there.
 * - Undo runs in reverse order, so what depends on a step is undone before it: a probe's event is
 *   in use until its instance is gone.
 * - A refused PLAN_SET counts as done once its old value is known: the write may have had effect
 *   in part.
 * - One refusal of a step that is not optional undoes the whole plan: plan_apply() does it, and
 *   after plan_apply_slice() the caller, in slices. Optional steps keep their error in .refused,
 *   and request_verify() decides what it means.
 * - What is global and must be nobody else's is asked for right before it is set (.check): other
 *   plans are applied between two slices.
 * - After the write of a PLAN_SET the journal gets the value that was read back. An undo after a
 *   crash restores only settings that still have it; the others were changed by somebody.
 * - Undo continues after an error. A step that could not be undone stays `done`, and its journal
 *   stays for the next start.
 * - Both loops can stop after a step and go on later, so that the worker serves other users
 *   between two slices. A size is changed in several slices. Any other step takes as long as the
 *   kernel does, and the removal of an instance that somebody still reads waits a second.
 *
 * A plan can be applied in two parts: a spare's plan makes the instances early, and the recording
 * that takes it adds the rest. plan_find_done() leaves out steps that already stand: writing a
 * clock or a size makes the kernel wait for all CPUs, even if nothing changes. For the same reason
 * whole systems of events are enabled by one write, unless they have many events; the single events
 * follow only if the kernel refuses it (.by).
 *
 * Old values cannot be written back as they were read: tracefs reads back another syntax than it
 * accepts. setting_text() converts them.
 *
 * explain.c says why the kernel refused a step.
 */
#include "daemon/capture/plan/plan.h"

#include <fcntl.h>

#include "base/io.h"
#include "base/vec.h"
#include "daemon/capture/tracefs/setting.h"

static void step_release(struct plan_step *s)
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
		step_release(&p->steps[i]);
	}
	free(p->steps);
	*p = (struct plan){ 0 };
}

static struct plan_step *plan_add_step(struct plan *p, enum plan_kind kind, const char *instance,
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

static bool same_string(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/*
 * Returns the step that made the instance, or the last step that wrote this value to the file; or
 * NULL.
 */
static struct plan_step *plan_find_done(struct plan *p, enum plan_kind kind, const char *instance,
					const char *file, const char *value)
{
	for (size_t i = p->tried; i-- > 0;) {
		struct plan_step *s = &p->steps[i];

		if (!s->done || s->kind != kind || !same_string(s->file, file) ||
		    !same_string(s->instance, instance))
			continue;
		if (!s->outdated && !s->append && same_string(s->value, value))
			return s;
		s->outdated = true;
		return NULL;
	}
	return NULL;
}

void plan_instance(struct plan *p, const char *instance)
{
	if (!plan_find_done(p, PLAN_INSTANCE, instance, NULL, NULL))
		plan_add_step(p, PLAN_INSTANCE, instance, NULL, NULL);
}

struct plan_step *plan_write(struct plan *p, const char *instance, const char *file,
			     const char *value)
{
	return plan_find_done(p, PLAN_WRITE, instance, file, value)
		       ?: plan_add_step(p, PLAN_WRITE, instance, file, value);
}

struct plan_step *plan_set(struct plan *p, const char *instance, const char *file,
			   const char *value, const char *old)
{
	struct plan_step *s = plan_add_step(p, PLAN_SET, instance, file, value);

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
	struct plan_step *s = plan_add_step(p, PLAN_ADD, NULL, file, line);

	if (s) {
		s->old = strdup(undo);
		p->failed |= !s->old;
	}
}

struct plan_step *plan_trigger(struct plan *p, const char *instance, const char *file,
			       const char *trigger)
{
	struct plan_step *s = plan_add_step(p, PLAN_TRIGGER, instance, file, trigger);

	if (s && asprintf(&s->old, "!%s", trigger) < 0) {
		s->old = NULL;
		p->failed = true;
	}
	return s;
}

/* 1: until_ns is over, and the step is not. */
static int step_write(const struct plan_step *s, const struct tracefs *fs, uint64_t until_ns)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, s->instance);

	if (dir < 0)
		return dir;
	if (strcmp(s->file, "buffer_size_kb") == 0)
		return tracefs_resize_buffers(dir, strtoull(s->value, NULL, 10), until_ns);
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
	r = s->value ? step_write(s, fs, UINT64_MAX) : 0;
	/* The value of `trace` is empty: that file's text is events, and no setting. */
	return r < 0 || !s->value || !*s->value ? r : journal_wrote(j, fs, s->file);
}

static int step_add(const struct plan_step *s, const struct tracefs *fs, struct journal *j)
{
	int r = journal_append(j, s->file, s->old);

	return r < 0 ? r : tracefs_append(tracefs_root(fs), s->file, s->value);
}

/* To open the file without O_APPEND would remove other triggers. */
static int step_append(const struct plan_step *s, const struct tracefs *fs, const char *line)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, s->instance);

	return dir < 0 ? dir : tracefs_append(dir, s->file, line);
}

static int step_trigger(const struct plan_step *s, const struct tracefs *fs, struct journal *j)
{
	_cleanup_free_ char *file = NULL;
	int r;

	if (asprintf(&file, "instances/%s/%s", s->instance, s->file) < 0) {
		file = NULL;
		return -ENOMEM;
	}
	r = journal_append(j, file, s->old);
	return r < 0 ? r : step_append(s, fs, s->value);
}

static int step_make_instance(struct plan_step *s, const struct tracefs *fs)
{
	int r = tracefs_make_instance(fs, s->instance), fd;

	if (r < 0)
		return r;
	fd = tracefs_open_file(tracefs_root(fs), O_WRONLY, "instances/%s/tracing_on", s->instance);
	s->hold = fd < 0 ? 0 : fd + 1;
	return 0;
}

static int step_apply(struct plan_step *s, const struct tracefs *fs, struct journal *j,
		      uint64_t until_ns)
{
	int r;

	switch (s->kind) {
	case PLAN_INSTANCE:
		r = journal_instance(j, s->instance);
		return r < 0 ? r : step_make_instance(s, fs);
	case PLAN_SET:
		return step_set(s, fs, j);
	case PLAN_ADD:
		return step_add(s, fs, j);
	case PLAN_TRIGGER:
		return step_trigger(s, fs, j);
	case PLAN_WRITE:
		return step_write(s, fs, until_ns);
	}
	return -EINVAL;
}

/* The instance's removal undoes the write in any case. */
static void step_write_old(const struct plan_step *s, const struct tracefs *fs)
{
	_cleanup_close_ int dir = s->old ? tracefs_open_instance(fs, s->instance) : -EBADF;

	if (dir >= 0)
		tracefs_write(dir, s->file, s->old);
}

static int step_undo(struct plan_step *s, const struct tracefs *fs, uint64_t until_ns)
{
	int r = 0;

	if (s->kind == PLAN_INSTANCE && tracefs_shrink_instance(fs, s->instance, until_ns))
		return 1;
	step_release(s);
	/* One that was busy for a second may stay so. */
	if (s->kind == PLAN_INSTANCE)
		r = s->stuck ? tracefs_try_remove_instance(fs, s->instance)
			     : tracefs_remove_instance(fs, s->instance);
	else if (s->kind == PLAN_WRITE)
		step_write_old(s, fs);
	else if (s->kind == PLAN_SET)
		r = tracefs_write(tracefs_root(fs), s->file, s->old);
	else if (s->kind == PLAN_ADD)
		r = tracefs_append(tracefs_root(fs), s->file, s->old);
	else if (s->kind == PLAN_TRIGGER)
		r = step_append(s, fs, s->old);
	/* -ENOENT: somebody else removed it first. */
	return r == -ENOENT ? 0 : r;
}

/* True if the step that makes s unnecessary is done. */
static bool step_is_covered(const struct plan *p, const struct plan_step *s)
{
	return s->by && p->steps[s->by - 1].done;
}

int plan_apply_slice(struct plan *p, const struct tracefs *fs, struct journal *j, uint64_t until_ns,
		     struct error *err)
{
	if (p->failed)
		return error_set(err, -ENOMEM, "out of memory");
	p->tried = p->count;
	for (size_t i = 0; i < p->count; i++) {
		struct plan_step *s = &p->steps[i];
		bool due = !s->done && !s->refused && !step_is_covered(p, s);
		int r = due && s->check ? s->check(fs, s->file, err) : 0;

		if (r < 0)
			return r;
		r = due ? step_apply(s, fs, j, until_ns) : 0;
		if (r > 0)
			return 1;
		if (r < 0)
			s->refused = r;
		if (r < 0 && !s->optional) {
			if (r == j->full)
				journal_explain_full(j, err);
			else
				plan_explain(s, fs, r, err);
			return r;
		}
		s->done |= !s->refused;
		if (due && !s->joined && i + 1 < p->count && now_ns(CLOCK_MONOTONIC) >= until_ns)
			return 1;
	}
	return 0;
}

int plan_apply(struct plan *p, const struct tracefs *fs, struct journal *j, struct error *err)
{
	int r = plan_apply_slice(p, fs, j, UINT64_MAX, err);

	if (r < 0)
		plan_undo(p, fs);
	return r;
}

/* again: also the steps that could not be undone before. */
static bool plan_undo_steps(struct plan *p, const struct tracefs *fs, uint64_t until_ns, bool again)
{
	for (size_t i = p->count; i-- > 0;) {
		struct plan_step *s = &p->steps[i];
		int r;

		if (!s->done || (s->stuck && !again))
			continue;
		r = step_is_covered(p, s) ? 0 : step_undo(s, fs, until_ns);
		if (r > 0)
			return true;
		s->stuck = r;
		s->done = r < 0;
		if (i && now_ns(CLOCK_MONOTONIC) >= until_ns)
			return true;
	}
	return false;
}

bool plan_undo_slice(struct plan *p, const struct tracefs *fs, uint64_t until_ns)
{
	return plan_undo_steps(p, fs, until_ns, false);
}

int plan_undo(struct plan *p, const struct tracefs *fs)
{
	plan_undo_steps(p, fs, UINT64_MAX, true);
	for (size_t i = p->count; i-- > 0;)
		if (p->steps[i].stuck)
			return p->steps[i].stuck;
	return 0;
}

void plan_end(struct plan *p, const struct tracefs *fs, struct journal *j)
{
	if (plan_undo(p, fs) == 0)
		journal_drop(j);
	else
		journal_close(j);
	plan_deinit(p);
}
