/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the times of a selection, which may ask for the recording's begin and end, or for a mark.
 */
#include <inttypes.h>
#include <string.h>

#include "base/io.h"
#include "export/exporter.h"

/* The time of the first event, or of the last, for which all are read. */
static int moment_find_event(struct exporter *x, bool last, uint64_t *ret, struct error *err)
{
	_cleanup_(merge_freep) struct merge *m = NULL;
	struct merge_item item;
	int r;

	r = merge_new(&m, &x->index.info.layout, &x->index.rings[BUFFER_MAIN], &x->reader, err);
	*ret = 0;
	while (r >= 0 && (r = merge_next(m, &item, err)) > 0) {
		if (r != MERGE_RECORD)
			continue;
		*ret = MAX(*ret, item.event.rec.ts);
		if (!last)
			return 0;
	}
	return MIN(r, 0);
}

static bool moment_is_mark(const struct mark *mark, const char *name)
{
	const struct text *t = &mark->part[PART_NAME];

	return mark->ts && t->len == strlen(name) && !memcmp(t->data, name, t->len);
}

/* Skips bars; NULL: there are fewer. */
static const char *moment_behind_bars(const char *text, unsigned bars)
{
	while (bars-- && text) {
		text = strchr(text, '|');
		text = text ? text + 1 : NULL;
	}
	return text;
}

/*
 * A text in trace_marker, or the name in "B|PID|NAME" and the like, as atrace writes them; on a
 * track "N|PID|TRACK|NAME".
 */
static bool moment_is_text(const char *text, const char *name)
{
	const unsigned bars = *text == 'N' || *text == 'G' ? 3 : 2;
	const size_t len = strlen(name), whole = strcspn(text, "\n");
	const char *part = text[0] && text[1] == '|' ? moment_behind_bars(text, bars) : NULL;

	if (whole == len && !strncmp(text, name, len))
		return true;
	return part && strcspn(part, "|\n") == len && !strncmp(part, name, len);
}

/* Marks that were written into trace_marker, `tracectl mark` among them. */
static int moment_find_print(struct exporter *x, const char *name, uint64_t after, uint64_t *ret,
			     struct error *err)
{
	const struct field *buf = event_field(x->print, "buf");
	_cleanup_(merge_freep) struct merge *m = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct merge_item item;
	int r;

	if (!buf)
		return 0;
	r = merge_new(&m, &x->index.info.layout, &x->index.rings[BUFFER_MAIN], &x->reader, err);
	while (r >= 0 && (r = merge_next(m, &item, err)) > 0) {
		struct trace_event *ev = &item.event;

		if (r != MERGE_RECORD || ev->rec.ts <= after || ev->rec.len < x->head.least ||
		    ev->rec.len <= buf->offset)
			continue;
		event_head_read(&x->head, ev);
		if (ev->id != x->print->id)
			continue;
		buf_clear(&text);
		buf_append(&text, ev->rec.data + buf->offset, ev->rec.len - buf->offset);
		if (!buf_string(&text))
			return error_errno(err, -ENOMEM, "can't search for a mark");
		if (moment_is_text(text.data, name)) {
			*ret = ev->rec.ts;
			return 1;
		}
	}
	return MIN(r, 0);
}

/* Marks of applications: the recording's own, not of merged files. */
static int moment_find_feed(struct exporter *x, const char *name, uint64_t after, uint64_t *ret,
			    struct error *err)
{
	const struct export_options none = { .bound_max_ns = x->options->bound_max_ns };
	_cleanup_(mark_feed_freep) struct mark_feed *feed = NULL;
	struct mark mark;
	int r;

	r = mark_feed_new(&feed, &none, &x->ops->format, &x->index, &x->reader, err);
	while (r >= 0 && (r = mark_feed_next(feed, &mark, err)) > 0)
		if (mark.ts > after && moment_is_mark(&mark, name)) {
			*ret = mark.ts;
			return 1;
		}
	return MIN(r, 0);
}

/* The first mark of that name after a time; 0: the first one of all. */
static int moment_find_mark(struct exporter *x, const char *name, uint64_t after, uint64_t *ret,
			    struct error *err)
{
	uint64_t printed = UINT64_MAX, made = UINT64_MAX;
	int r;

	r = moment_find_print(x, name, after, &printed, err);
	if (r >= 0)
		r = moment_find_feed(x, name, after, &made, err);
	if (r < 0)
		return r;
	*ret = MIN(printed, made);
	if (*ret != UINT64_MAX)
		return 0;
	error_set(err, -EINVAL, "no mark of the recording%s has the name '%s'",
		  after ? " after --from" : "", name);
	return error_hint(err, "give a time as the text shows it (12.345678), +1.5s after the "
			       "begin, or -500ms before the end");
}

static int moment_check_clock(const struct moment *m, const char *clock, struct error *err)
{
	bool counts = trace_clock_counts(clock);

	if (!counts || m->kind == MOMENT_MARK || (m->kind == MOMENT_AT && !m->is_fraction))
		return 0;
	error_set(err, -EINVAL, "the trace clock '%s' counts no seconds", clock);
	return error_hint(err, "give a whole number, as the text shows it");
}

/* none: where nothing is asked for. after: a mark's time is later; 0: it is the first one. */
static int moment_find(struct exporter *x, const struct moment *m, uint64_t none, uint64_t after,
		       uint64_t *ret, struct error *err)
{
	const char *clock = x->index.info.header->trace_clock;
	int r = m->kind ? moment_check_clock(m, clock, err) : 0;

	*ret = none;
	if (r < 0)
		return r;
	switch (m->kind) {
	case MOMENT_NONE:
		return 0;
	case MOMENT_AT:
		*ret = trace_clock_counts(clock) ? m->count : m->ns;
		return 0;
	case MOMENT_MARK:
		return moment_find_mark(x, m->mark, after, ret, err);
	case MOMENT_AFTER_BEGIN:
		r = moment_find_event(x, false, ret, err);
		if (r == 0 && __builtin_add_overflow(*ret, m->ns, ret))
			*ret = UINT64_MAX;
		return r;
	case MOMENT_BEFORE_END:
		r = moment_find_event(x, true, ret, err);
		*ret -= MIN(*ret, m->ns);
		return r;
	}
	return 0;
}

/* "--from -10s" of events within 10 seconds leaves none out, as if the option were not there. */
static int moment_warn_if_short(struct exporter *x, uint64_t from, struct error *err)
{
	_cleanup_buf_ struct buf length = BUF_INIT;
	uint64_t first;
	int r = moment_find_event(x, false, &first, err);

	if (r < 0 || from >= first)
		return r;
	format_duration(x->options->selection.from.ns, &length);
	return stream_index_warn(
		&x->index,
		"the recording's events span less than %s: none is left out before "
		"them",
		buf_string(&length) ?: "that");
}

int exporter_open_selection(struct exporter *x, struct error *err)
{
	const struct export_selection *w = &x->options->selection;
	uint64_t from, to;
	bool twice;
	int r;

	if (!selection_is_wanted(w))
		return 0;
	if (x->ops->copy) {
		error_set(err, -EINVAL,
			  "a .%s holds whole sub-buffers: a part of a recording can't "
			  "be one",
			  x->ops->format.name);
		return error_hint(err, "keep the whole recording: 'tracectl convert' to another "
				       "format and 'tracectl report' take the same options");
	}
	r = moment_find(x, &w->from, 0, 0, &from, err);
	if (r == 0 && w->from.kind == MOMENT_BEFORE_END)
		r = moment_warn_if_short(x, from, err);
	/* Twice one mark: a slice from its begin to its end has its name at both. */
	twice = w->from.kind == MOMENT_MARK && w->to.kind == MOMENT_MARK &&
		!strcmp(w->from.mark, w->to.mark);
	if (r == 0)
		r = moment_find(x, &w->to, UINT64_MAX, twice ? from : 0, &to, err);
	if (r == 0 && from >= to)
		r = error_set(err, -EINVAL, "the part of the recording ends before it begins");
	if (r < 0)
		return r;
	r = selection_new(&x->selection, w, &x->index.info, from, to, err);
	if (r < 0)
		return r;
	x->env.selection = x->selection;
	if (x->ops->format.samples_only)
		return 0;
	x->gate = x->selection;
	if (x->ops->selects)
		selection_only_times(x->selection);
	x->ledger.part = (struct ledger_part){ true, w->to.kind != MOMENT_NONE,
					       x->ops->selects ? NULL : w->cpus };
	return 0;
}

int exporter_explain_nothing(struct exporter *x, struct error *err)
{
	const struct export_selection *w = &x->options->selection;
	const bool chosen = w->cpus || w->pid_count || w->thread_count || w->comm ||
			    w->event_count || w->filter;
	const char *others = chosen ? "; 'tracectl report counts IN' lists them" : "";
	_cleanup_buf_ struct buf wanted = BUF_INIT;
	uint64_t first, last;

	if (x->first_ts || (x->marks && mark_feed_count(x->marks)))
		return 0;
	if (moment_find_event(x, false, &first, err) < 0 ||
	    moment_find_event(x, true, &last, err) < 0)
		return err->code ? -err->code : -EIO;
	selection_describe(x->selection, &wanted);
	error_set(err, -ENODATA, "not one event of the recording is in that part (%s)",
		  buf_string(&wanted) ?: "");
	if (!w->from.kind && !w->to.kind)
		return error_hint(err, "'tracectl report counts IN' lists the recording's events");
	if (trace_clock_counts(x->index.info.header->trace_clock))
		return error_hint(err, "its events are from %" PRIu64 " to %" PRIu64 "%s", first,
				  last, others);
	return error_hint(
		err, "its events are from %" PRIu64 ".%09" PRIu64 " to %" PRIu64 ".%09" PRIu64 "%s",
		first / NSEC_PER_SEC, first % NSEC_PER_SEC, last / NSEC_PER_SEC,
		last % NSEC_PER_SEC, others);
}
