/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/source.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/plural.h"
#include "base/vec.h"

/* Clock name in files that were made from the trace itself. */
static const char own_clock[] = "TRACE";

static const char *source_clock_name(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return "REALTIME";
	case CLOCK_BOOTTIME:
		return "BOOTTIME";
	default:
		return "MONOTONIC";
	}
}

int mark_syncs_add(struct mark_syncs *s, const char *id, size_t len, const struct mark_sync *sync)
{
	struct mark_sync *own = vec_add_exact(s->all, s->count);

	if (!own)
		return -ENOMEM;
	*own = *sync;
	own->id = strndup(id, len);
	return own->id ? 0 : -ENOMEM;
}

void mark_syncs_deinit(struct mark_syncs *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->all[i].id);
	free(s->all);
	*s = (struct mark_syncs){ 0 };
}

static uint64_t sync_middle(const struct trace_file_sync *s, uint64_t *ret_bound)
{
	/* Issued, received, answered: the receiver's time lies in between. */
	if (!s->issue_ts || s->issue_ts > s->ts) {
		*ret_bound = 0;
		return s->ts;
	}
	*ret_bound = (s->ts - s->issue_ts + 1) / 2;
	return s->issue_ts + (s->ts - s->issue_ts) / 2;
}

/* Ties the file's clock by the sync ids that occur in both the file and the kernel's ring. */
static int source_tie_by_syncs(struct mark_source *s, const struct source_env *env)
{
	for (size_t i = 0; i < s->file.sync_count; i++) {
		const struct kernel_sync *k =
			sync_scan_find(&env->index->info.syncs, s->file.syncs[i].id);
		struct clock_point p = { .to = k ? k->ts : 0, .id = s->file.syncs[i].id };

		if (!k)
			continue;
		p.from = sync_middle(&s->file.syncs[i], &p.bound);
		if (clock_map_add(&s->map, &p) < 0)
			return -ENOMEM;
	}
	clock_map_seal(&s->map);
	s->map.own_rate = true;
	return 0;
}

static int source_tie_by_clock(struct mark_source *s, clockid_t clock, struct stream_index *index)
{
	int r = clock_map_of(&s->map, &index->info, clock);

	s->origin.clock = source_clock_name(clock);
	if (r != -ENOENT)
		return r;
	s->map.identity = true;
	index->incomplete = true;
	return stream_index_warn(
		index,
		"%s: its times are taken as they are: nothing in the recording ties "
		"CLOCK_%s to the trace clock '%s'",
		s->origin.name, s->origin.clock, index->info.header->trace_clock);
}

static int source_tie(struct mark_source *s, const struct export_merge *merge,
		      const struct source_env *env, struct error *err)
{
	int r = s->file.sync_count ? sync_scan_once(env->index, env->reader, err) : 0;

	if (r < 0)
		return r;
	if (merge->clock == MERGE_CLOCK_TRACE) {
		s->origin.clock = own_clock;
		s->map.identity = true;
		return 0;
	}
	s->named = merge->clock >= 0;
	if (s->named)
		return source_tie_by_clock(s, merge->clock, env->index);
	r = source_tie_by_syncs(s, env);
	if (r < 0 || s->map.count)
		return r;
	if (s->file.sync_count && !s->file.clock_monotonic)
		stream_index_warn(env->index,
				  "%s: none of its clock_sync events is in the kernel's part: its "
				  "clock is taken for CLOCK_MONOTONIC",
				  s->origin.name);
	return source_tie_by_clock(s, CLOCK_MONOTONIC, env->index);
}

static uint64_t source_to_trace(const struct mark_source *s, uint64_t ts)
{
	uint64_t bound;

	return clock_map_apply(&s->map, ts, &bound);
}

static int source_warn_of_tie(const struct mark_source *s, const struct source_env *env)
{
	if (s->origin.bound <= env->bound_max)
		return 0;
	return stream_index_warn(
		env->index,
		"%s: its clock is tied to the trace only within %" PRIu64 " microsecond%s%s",
		s->origin.name, (s->origin.bound + 999) / 1000,
		plural_s((s->origin.bound + 999) / 1000),
		s->map.own_rate && s->map.count == 1 ? ": a second sync would tell its rate"
		: clock_map_stepped(&s->map)	     ? ": it was set, or the machine slept"
						     : "");
}

static int source_warn_of_file(const struct mark_source *s, int code, const struct error *why,
			       struct stream_index *index)
{
	const struct trace_file *f = &s->file;
	int r = 0;

	index->incomplete |= code < 0 || f->cut || f->left_out;
	if (code == -ENODATA || (code >= 0 && f->cut))
		r = stream_index_warn(index, "%s: %s: what came before is merged", s->origin.name,
				      why->message ?: "it ends in the middle");
	else if (code < 0)
		r = stream_index_warn(index, "%s: %s: it is merged up to there", s->origin.name,
				      why->message);
	if (r == 0 && f->left_out)
		r = stream_index_warn(index, "%s: %" PRIu64 " event%s left out, the first: %s",
				      s->origin.name, f->left_out,
				      plural(f->left_out, " is", "s are"), f->why_left_out);
	if (r == 0 && f->kernel_text)
		r = stream_index_warn(index, "%s: its own kernel text is left out", s->origin.name);
	else if (r == 0 && code >= 0 && !f->count && !f->sync_count && !f->cut && !f->left_out)
		r = stream_index_warn(index, "%s: there is not one event in it", s->origin.name);
	if (r == 0 && f->unknown_unit)
		r = stream_index_warn(
			index, "%s: its displayTimeUnit is left out: it is neither ms nor ns",
			s->origin.name);
	if (r == 0 && f->no_text)
		r = stream_index_warn(index, "%s: its %s is left out: it is no string",
				      s->origin.name, f->no_text);
	return r;
}

static int source_add_syncs(const struct mark_source *s, uint32_t number,
			    const struct source_env *env)
{
	for (size_t i = 0; i < s->file.sync_count; i++) {
		const struct trace_file_sync *from = &s->file.syncs[i];
		const struct kernel_sync *k = sync_scan_find(&env->index->info.syncs, from->id);
		const struct mark_sync sync = {
			.ts = source_to_trace(s, from->ts),
			.issue_ts = from->issue_ts ? source_to_trace(s, from->issue_ts) : 0,
			.kernel_ts = k ? k->ts : 0,
			.source = number,
		};

		if (mark_syncs_add(env->syncs, from->id, strlen(from->id), &sync) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Whether a line of the power trace has the id of one of the file's clock_sync events. */
static bool source_power_is_tied(const struct trace_file *f)
{
	for (size_t i = 0; i < f->sync_count; i++) {
		_cleanup_buf_ struct buf id = BUF_INIT;

		buf_printf(&id, "<%s>", f->syncs[i].id);
		if (!buf_error(&id) && memmem(f->power.data, f->power.len, id.data, id.len))
			return true;
	}
	return false;
}

/* Drops a power trace for which Trace Viewer would refuse the whole trace. */
static int source_check_power(struct mark_source *s, struct stream_index *index)
{
	static const char head[] = "# BattOr";
	struct buf *power = &s->file.power;
	const char *why = NULL;

	if (!power->len)
		return 0;
	if (power->len < strlen(head) || memcmp(power->data, head, strlen(head)) != 0)
		why = "it does not begin with '# BattOr'";
	else if (!source_power_is_tied(&s->file))
		why = "none of the file's clock_sync events is in it";
	if (!why)
		return 0;
	buf_clear(power);
	return stream_index_warn(
		index,
		"%s: its power trace is left out, as Trace Viewer would refuse the "
		"whole trace: %s",
		s->origin.name, why);
}

/* Adds the clock_sync events of another file to the source's own. */
static int source_add_sync_file(struct mark_source *s, const struct export_merge *merge,
				const struct source_env *env, struct error *err)
{
	struct mark_source other = { .origin.name = merge->sync_name };
	_cleanup_error_ struct error why = ERROR_INIT;
	struct trace_file *to = &s->file;
	int r = trace_file_read(&other.file, merge->sync_fd, 0, env->scratch, &why);

	if (r == -ENOMEM || r == -EIO || r == -ENOSPC)
		error_move(err, &why);
	else
		r = source_warn_of_file(&other, r, &why, env->index);
	if (r == 0)
		r = vec_reserve_exact(to->syncs, to->sync_count, other.file.sync_count);
	if (r == 0) {
		memcpy(to->syncs + to->sync_count, other.file.syncs,
		       other.file.sync_count * sizeof(*to->syncs));
		to->sync_count += other.file.sync_count;
		other.file.sync_count = 0;
	}
	trace_file_deinit(&other.file);
	return r;
}

/* Converts a mark's times from the file's clock to the trace clock. Names have no time. */
static void source_place(struct mark *mark, void *userdata)
{
	const struct mark_source *s = userdata;
	uint64_t ts = mark->ts;

	if (mark_class(mark->phase) < 2)
		return;
	mark->ts = source_to_trace(s, ts);
	/* Clock steps must not change durations. */
	if (mark->has & HAS_DUR) {
		int64_t change =
			(int64_t)(source_to_trace(s, ts + mark->dur) - mark->ts - mark->dur);

		if (!clock_is_step(change < 0 ? -(uint64_t)change : (uint64_t)change, mark->dur, 0))
			mark->dur += (uint64_t)change;
	}
}

/*
 * Converts all marks, then sorts again: with a clock that was set back, later marks may have
 * earlier times.
 */
static int source_place_all(struct mark_source *s, struct scratch *scratch, struct error *err)
{
	s->placed = clock_map_stepped(&s->map);
	return s->placed ? mark_sort_again(&s->file.marks, scratch, source_place, s, err) : 0;
}

static void source_fill_origin(struct mark_source *s)
{
	struct mark_origin *o = &s->origin;

	clock_map_sum(&s->map, &o->sum);
	o->bound = o->sum.bound;
	if (s->file.last_ts)
		o->bound =
			MAX(o->bound, clock_map_worst(&s->map, s->file.first_ts, s->file.last_ts));
	o->ties = s->map.count;
	o->points = s->map.points;
	o->members = (struct text){ s->file.members.data, (uint32_t)s->file.members.len };
}

int mark_source_read(struct mark_source *s, uint32_t number, const struct export_merge *merge,
		     const struct source_env *env, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	int r;

	s->origin.name = merge->name;
	r = trace_file_read(&s->file, merge->fd, number, env->scratch, &why);
	if (r == -ENOMEM || r == -EIO || r == -ENOSPC)
		return error_move(err, &why);
	r = source_warn_of_file(s, r, &why, env->index);
	if (r == 0 && merge->sync_fd)
		r = source_add_sync_file(s, merge, env, err);
	if (r == 0)
		r = source_check_power(s, env->index);
	if (r == 0)
		r = source_tie(s, merge, env, err);
	if (r < 0)
		return r;
	source_fill_origin(s);
	r = source_add_syncs(s, number, env);
	if (r == 0)
		r = source_place_all(s, env->scratch, err);
	return r ?: source_warn_of_tie(s, env);
}

void mark_source_deinit(struct mark_source *s)
{
	trace_file_deinit(&s->file);
	clock_map_deinit(&s->map);
}

int mark_source_fetch(struct mark_source *s, struct error *err)
{
	struct mark *n = &s->next;
	int r = mark_sort_next(s->file.marks, n, err);

	s->have_next = r > 0;
	if (r <= 0)
		return r;
	s->class = mark_class(n->phase);
	if (s->class < 2 || s->placed)
		return 1;
	source_place(n, s);
	/* Keep times monotonic between contradicting points. */
	if (s->class == 2)
		n->ts = s->last_ts = MAX(n->ts, s->last_ts);
	return 1;
}

/* Events further outside the recording than this, and than its span, make it too small to see. */
#define FAR_NS (60 * NSEC_PER_SEC)

int mark_source_warn_of_time(const struct mark_source *s, struct stream_index *index,
			     uint64_t first_ts, uint64_t last_ts)
{
	uint64_t far = MAX(FAR_NS, last_ts - first_ts), first, last, before, after;

	if (!s->file.last_ts)
		return 0;
	first = source_to_trace(s, s->file.first_ts);
	last = source_to_trace(s, s->file.last_ts);
	before = MAX(first_ts, first) - first;
	after = MAX(last_ts, last) - last_ts;
	if (last >= first_ts && first <= last_ts) {
		if (MAX(before, after) <= far)
			return 0;
		return stream_index_warn(index,
					 "%s: an event lies %" PRIu64 " seconds %s the recording: "
					 "viewers show it all, so the rest is small",
					 s->origin.name, MAX(before, after) / NSEC_PER_SEC,
					 before > after ? "before" : "after");
	}
	if (s->origin.clock == own_clock)
		return 0;
	return stream_index_warn(index,
				 "%s: all that it tells of happened before or after the "
				 "recording%s%s",
				 s->origin.name, s->named ? ", by CLOCK_" : "",
				 s->named
					 ? s->origin.clock
					 : ": if its clock is another one, --merge-clock names it");
}
