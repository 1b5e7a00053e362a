/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/marks/feed.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "export/marks/nesting.h"
#include "export/marks/sync_scan.h"
#include "util/io.h"

struct source {
	struct mark_origin origin;
	struct trace_file file;
	struct clock_map map;
	struct mark next;
	unsigned class; /* of next */
	bool have_next;
	bool placed; /* its marks have times of the trace already, and are in their order */
	uint64_t last_ts;
};

struct mark_feed {
	const struct trace_info *info;
	struct scratch scratch;
	struct source *sources; /* owned; files of events, behind them profiles */
	size_t source_count, file_count;
	struct profile_sum profiles[EXPORT_MERGES_MAX];
	size_t profile_count;
	struct sample_feed *samples; /* owned; NULL: there are none */
	struct source *current;	     /* whose mark was given out */
	struct mark_rings *rings;    /* owned; NULL: the stream has none */
	struct mark ring_mark;	     /* the next of them */
	uint64_t ring_order;
	bool have_ring_mark, ring_given;
	struct mark_origin *origins; /* owned; a copy of the sources' */
	struct mark_sync *syncs;     /* owned */
	size_t sync_count;
	struct sync_scan kernel;
	bool scanned;
	struct nesting *nesting; /* owned */
	uint64_t given, unopened, bound_max;
	bool unit_ms;
	const char *controller_key; /* borrowed from a file */
};

struct mark_feed *mark_feed_free(struct mark_feed *m)
{
	if (!m)
		return NULL;
	mark_rings_free(m->rings);
	sample_feed_free(m->samples);
	for (size_t i = 0; i < m->source_count; i++) {
		trace_file_deinit(&m->sources[i].file);
		clock_map_deinit(&m->sources[i].map);
	}
	for (size_t i = 0; i < m->sync_count; i++)
		free(m->syncs[i].id);
	free(m->syncs);
	free(m->sources);
	free(m->origins);
	nesting_free(m->nesting);
	sync_scan_deinit(&m->kernel);
	free(m);
	return NULL;
}

/* Of what was made of the trace itself. */
static const char own_clock[] = "TRACE";

static const char *clock_name(clockid_t clock)
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

static uint64_t sync_middle(const struct trace_file_sync *s, uint64_t *ret_bound)
{
	/* Issued, received, answered: it was received in between. */
	if (!s->issue_ts || s->issue_ts > s->ts) {
		*ret_bound = 0;
		return s->ts;
	}
	*ret_bound = (s->ts - s->issue_ts + 1) / 2;
	return s->issue_ts + (s->ts - s->issue_ts) / 2;
}

/* Ties the file's clock by the sync marks that both it and the kernel's ring have. */
static int tie_by_syncs(struct mark_feed *m, struct source *s)
{
	for (size_t i = 0; i < s->file.sync_count; i++) {
		const struct kernel_sync *k = sync_scan_find(&m->kernel, s->file.syncs[i].id);
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

static int scan_kernel(struct mark_feed *m, struct stream_index *index,
		       const struct stream_reader *reader, struct error *err)
{
	int r;

	if (m->scanned)
		return 0;
	m->scanned = true;
	r = sync_scan(&m->kernel, index, reader, err);
	index->info.syncs = r < 0 ? NULL : &m->kernel;
	return r;
}

static int tie_by_clock(struct mark_feed *m, struct source *s, clockid_t clock,
			struct stream_index *index)
{
	int r = clock_map_of(&s->map, m->info, clock);

	s->origin.clock = clock_name(clock);
	if (r != -ENOENT)
		return r;
	s->map.identity = true;
	index->incomplete = true;
	return stream_index_warn(
		index,
		"%s: its times are taken as they are: nothing in the recording ties "
		"CLOCK_%s to the trace clock '%s'",
		s->origin.name, s->origin.clock, m->info->header->trace_clock);
}

static int tie(struct mark_feed *m, struct source *s, const struct export_merge *merge,
	       struct stream_index *index, const struct stream_reader *reader, struct error *err)
{
	int r = s->file.sync_count ? scan_kernel(m, index, reader, err) : 0;

	if (r < 0)
		return r;
	if (merge->clock == MERGE_CLOCK_TRACE) {
		s->origin.clock = own_clock;
		s->map.identity = true;
		return 0;
	}
	if (merge->clock >= 0)
		return tie_by_clock(m, s, merge->clock, index);
	r = tie_by_syncs(m, s);
	if (r < 0 || s->map.count)
		return r;
	if (s->file.sync_count && !s->file.clock_monotonic)
		stream_index_warn(index,
				  "%s: none of its clock_sync events is in the kernel's part: its "
				  "clock is taken for CLOCK_MONOTONIC",
				  s->origin.name);
	return tie_by_clock(m, s, CLOCK_MONOTONIC, index);
}

static uint64_t to_trace(const struct source *s, uint64_t ts)
{
	uint64_t bound;

	return clock_map_apply(&s->map, ts, &bound);
}

static int warn_of_tie(const struct mark_feed *m, const struct source *s,
		       struct stream_index *index)
{
	if (s->origin.bound <= m->bound_max)
		return 0;
	return stream_index_warn(
		index, "%s: its clock is tied to the trace only within %" PRIu64 " microseconds%s",
		s->origin.name, (s->origin.bound + 999) / 1000,
		s->map.own_rate && s->map.count == 1 ? ": a second sync would tell its rate"
		: clock_map_stepped(&s->map)	     ? ": it was set, or the machine slept"
						     : "");
}

static int warn_of_file(const struct source *s, int code, const struct error *why,
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
		r = stream_index_warn(index, "%s: %" PRIu64 " events are left out, the first: %s",
				      s->origin.name, f->left_out, f->why_left_out);
	if (r == 0 && f->kernel_text)
		r = stream_index_warn(index, "%s: its own kernel text is left out", s->origin.name);
	else if (r == 0 && code >= 0 && !f->count && !f->sync_count && !f->cut && !f->left_out)
		r = stream_index_warn(index, "%s: there is not one event in it", s->origin.name);
	return r;
}

static int add_syncs(struct mark_feed *m, const struct source *s, uint32_t number)
{
	for (size_t i = 0; i < s->file.sync_count; i++) {
		const struct trace_file_sync *from = &s->file.syncs[i];
		const struct kernel_sync *k = sync_scan_find(&m->kernel, from->id);
		struct mark_sync *all = reallocarray(m->syncs, m->sync_count + 1, sizeof(*all));

		if (!all)
			return -ENOMEM;
		m->syncs = all;
		all[m->sync_count] = (struct mark_sync){
			.id = strdup(from->id),
			.ts = to_trace(s, from->ts),
			.issue_ts = from->issue_ts ? to_trace(s, from->issue_ts) : 0,
			.kernel_ts = k ? k->ts : 0,
			.source = number,
		};
		if (!all[m->sync_count++].id)
			return -ENOMEM;
	}
	return 0;
}

/* The clock_sync events of another file are the source's as well. */
static int add_sync_file(struct mark_feed *m, struct source *s, const struct export_merge *merge,
			 struct stream_index *index, struct error *err)
{
	struct source other = { .origin.name = merge->sync_name };
	_cleanup_error_ struct error why = ERROR_INIT;
	struct trace_file *to = &s->file;
	struct trace_file_sync *all;
	int r = trace_file_read(&other.file, merge->sync_fd, 0, &m->scratch, &why);

	if (r == -ENOMEM || r == -EIO || r == -ENOSPC)
		error_move(err, &why);
	else
		r = warn_of_file(&other, r, &why, index);
	all = reallocarray(to->syncs, to->sync_count + other.file.sync_count + 1, sizeof(*all));
	if (r == 0 && !all)
		r = -ENOMEM;
	if (all)
		to->syncs = all;
	if (r == 0) {
		memcpy(all + to->sync_count, other.file.syncs,
		       other.file.sync_count * sizeof(*all));
		to->sync_count += other.file.sync_count;
		other.file.sync_count = 0;
	}
	trace_file_deinit(&other.file);
	return r;
}

/* From the file's clock to the trace's; what is only a name has no time. */
static void place(struct mark *mark, void *userdata)
{
	const struct source *s = userdata;
	uint64_t ts = mark->ts;

	if (mark_class(mark->phase) < 2)
		return;
	mark->ts = to_trace(s, ts);
	/* How long something took is not changed by setting the clock. */
	if (mark->has & HAS_DUR) {
		int64_t change = (int64_t)(to_trace(s, ts + mark->dur) - mark->ts - mark->dur);

		if (!clock_is_step(change < 0 ? -(uint64_t)change : (uint64_t)change, mark->dur, 0))
			mark->dur += (uint64_t)change;
	}
}

/* By a clock that was set back what came later has the earlier time. */
static int place_all(struct mark_feed *m, struct source *s, struct error *err)
{
	s->placed = clock_map_stepped(&s->map);
	return s->placed ? mark_sort_again(&s->file.marks, &m->scratch, place, s, err) : 0;
}

static int add_file(struct mark_feed *m, uint32_t number, const struct export_merge *merge,
		    struct stream_index *index, const struct stream_reader *reader,
		    struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	struct source *s = &m->sources[number];
	int r;

	s->origin.name = merge->name;
	r = trace_file_read(&s->file, merge->fd, number, &m->scratch, &why);
	m->source_count = number + 1;
	if (r == -ENOMEM || r == -EIO || r == -ENOSPC)
		return error_move(err, &why);
	r = warn_of_file(s, r, &why, index);
	if (r == 0 && merge->sync_fd)
		r = add_sync_file(m, s, merge, index, err);
	if (r == 0)
		r = tie(m, s, merge, index, reader, err);
	if (r < 0)
		return r;
	clock_map_sum(&s->map, &s->origin.sum);
	s->origin.bound = s->origin.sum.bound;
	if (s->file.last_ts)
		s->origin.bound = MAX(s->origin.bound,
				      clock_map_worst(&s->map, s->file.first_ts, s->file.last_ts));
	s->origin.ties = s->map.count;
	s->origin.points = s->map.points;
	s->origin.members = (struct text){ s->file.members.data, (uint32_t)s->file.members.len };
	if (s->file.has_unit)
		m->unit_ms = s->file.unit_ms;
	if (s->file.controller_key)
		m->controller_key = s->file.controller_key;
	r = add_syncs(m, s, number);
	if (r == 0)
		r = place_all(m, s, err);
	return r ?: warn_of_tie(m, s, index);
}

/* When the recording began and ended, by the trace clock. */
static int find_span(const struct trace_info *info, uint64_t *ret_from, uint64_t *ret_to)
{
	const Traced__Capture__Clocks *last =
		info->clock_count ? info->clocks[info->clock_count - 1] : NULL;
	_cleanup_(clock_map_deinit) struct clock_map map = { 0 };
	uint64_t from = 0, to = 0, bound;
	int r = clock_map_of(&map, info, CLOCK_BOOTTIME);

	if (r == -ENOENT)
		map.identity = true;
	else if (r < 0)
		return r;
	if (info->clock_count && info->clocks[0]->n_readings)
		from = info->clocks[0]->readings[0]->boot_before_ns;
	if (last && last->n_readings)
		to = last->readings[0]->boot_before_ns;
	if (info->end && info->end->start_boot_ns) {
		from = info->end->start_boot_ns;
		to = info->end->boot_ns;
	}
	*ret_from = clock_map_apply(&map, from, &bound);
	*ret_to = MAX(*ret_from, clock_map_apply(&map, to, &bound));
	return 0;
}

/* What mark_sort has: frames, names, what has a time, samples. */
static int fetch(struct source *s, struct error *err)
{
	struct mark *n = &s->next;
	int r = mark_sort_next(s->file.marks, n, err);

	s->have_next = r > 0;
	if (r <= 0)
		return r;
	s->class = mark_class(n->phase);
	if (s->class < 2 || s->placed)
		return 1;
	place(n, s);
	/* Between points that contradict each other time does not run backwards, either. */
	if (s->class == 2)
		n->ts = s->last_ts = MAX(n->ts, s->last_ts);
	return 1;
}

/* A file that is no profile has nothing that could be merged: then there is no trace, either. */
static int add_profiles(struct mark_feed *m, const struct export_options *options,
			struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	struct profile_where where = { 0 };
	int r = options->profile_count ? find_span(m->info, &where.from_ts, &where.to_ts) : 0;

	for (size_t i = 0; r == 0 && i < options->profile_count; i++) {
		struct source *s = &m->sources[m->source_count];

		where.source = (uint32_t)m->source_count++;
		where.tid = PROFILE_TID_FIRST + (int32_t)i;
		s->map.identity = true;
		s->origin.name = options->profiles[i].name;
		r = profile_marks_read(&s->file, &m->profiles[m->profile_count++],
				       &options->profiles[i], &where, options->symbols, &m->scratch,
				       &why);
		/* The capture itself is good. */
		if (r < 0)
			return error_set(err, r == -EBADMSG ? -EINVAL : r, "%s: %s",
					 options->profiles[i].name, why.message);
		r = MIN(fetch(s, err), 0);
	}
	return r;
}

/* What a program said of a sync: for the JSON's counterpart of the kernel's mark. */
static int take_ring_sync(struct mark_feed *m)
{
	const struct mark *mark = &m->ring_mark;
	struct mark_sync *all;
	struct value id;

	if (m->sync_count >= TRACE_FILE_SYNCS_MAX ||
	    !value_find(mark->part[PART_ARGS], "sync_id", &id) || id.type != VALUE_STRING)
		return 0;
	all = reallocarray(m->syncs, m->sync_count + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	m->syncs = all;
	all[m->sync_count] = (struct mark_sync){
		.id = strndup(id.text.data, id.text.len),
		.ts = mark->ts + mark->dur,
		.issue_ts = mark->has & HAS_DUR ? mark->ts : 0,
		.source = UINT32_MAX,
	};
	return all[m->sync_count++].id ? 0 : -ENOMEM;
}

/* The rings' next mark into its place. */
static int fetch_ring(struct mark_feed *m, struct error *err)
{
	int r;

	do {
		r = mark_rings_next(m->rings, &m->ring_mark, &m->ring_order, err);
		if (r > 0 && m->ring_mark.phase == PHASE_CLOCK_SYNC && take_ring_sync(m) < 0)
			return error_errno(err, -ENOMEM, "can't keep a clock sync");
	} while (r > 0 && m->ring_mark.phase == PHASE_CLOCK_SYNC);
	m->have_ring_mark = r > 0;
	return MIN(r, 0);
}

/* Of equal times the files come first. */
static bool ring_is_first(const struct mark_feed *m, const struct source *best)
{
	if (!m->have_ring_mark || !best)
		return m->have_ring_mark;
	return best->class > 2 || (best->class == 2 && m->ring_order < best->next.ts);
}

/* What was marked was marked before the recording's end, give or take what ties the clocks. */
static uint64_t latest_mark(const struct trace_info *info)
{
	_cleanup_(clock_map_deinit) struct clock_map map = { 0 };
	uint64_t bound, end;

	if (!info->end || !info->end->boot_ns || clock_map_of(&map, info, CLOCK_BOOTTIME) < 0)
		return UINT64_MAX;
	end = clock_map_apply(&map, info->end->boot_ns, &bound);
	return end + bound + NSEC_PER_SEC;
}

int mark_feed_new(struct mark_feed **ret, const struct export_options *options,
		  struct stream_index *index, const struct stream_reader *reader, struct error *err)
{
	_cleanup_(mark_feed_freep) struct mark_feed *m = calloc(1, sizeof(*m));
	int r = 0;

	if (m) {
		m->info = &index->info;
		m->scratch.fd = options->scratch_fd ?: -EBADF;
		m->sources = calloc(options->merge_count + options->profile_count + 1,
				    sizeof(*m->sources));
		m->origins = calloc(options->merge_count + 1, sizeof(*m->origins));
	}
	if (!m || !m->sources || !m->origins || nesting_new(&m->nesting) < 0)
		return error_errno(err, -ENOMEM, "can't begin with the marks");
	m->bound_max = options->bound_max_ns ?: EXPORT_BOUND_NS;
	if (!options->follow && clock_map_wants_marks(m->info))
		r = scan_kernel(m, index, reader, err);
	for (size_t i = 0; r == 0 && i < options->merge_count; i++) {
		r = add_file(m, (uint32_t)i, &options->merges[i], index, reader, err);
		if (r == 0 && fetch(&m->sources[i], err) < 0)
			return -EIO;
		m->origins[i] = m->sources[i].origin;
	}
	m->file_count = m->source_count;
	if (r == 0)
		r = add_profiles(m, options, err);
	if (r == 0 && sample_reader_wanted(index) && !options->follow)
		r = sample_feed_new(&m->samples, index, reader, options, (uint32_t)m->source_count);
	if (r == 0 && (index->marks.count || options->follow)) {
		r = mark_rings_new(&m->rings, &index->marks, m->info, reader, index->ripe);
		if (r == 0)
			mark_rings_set_latest(m->rings, latest_mark(m->info));
		if (r == 0)
			r = fetch_ring(m, err);
	}
	if (r < 0)
		return err && !err->code ? error_errno(err, r, "can't read the marks") : r;
	*ret = TAKE_PTR(m);
	return 0;
}

static bool before(const struct source *a, const struct source *b)
{
	return a->class != b->class ? a->class < b->class : a->next.ts < b->next.ts;
}

int mark_feed_next(struct mark_feed *m, struct mark *ret, struct error *err)
{
	for (;;) {
		struct source *best = NULL;
		struct mark *next;
		int r;

		if (m->ring_given && fetch_ring(m, err) < 0)
			return -EIO;
		m->ring_given = false;
		if (m->current && fetch(m->current, err) < 0)
			return -EIO;
		m->current = NULL;
		for (size_t i = 0; i < m->source_count; i++) {
			struct source *s = &m->sources[i];

			if (s->have_next && (!best || before(s, best)))
				best = s;
		}
		next = &m->ring_mark;
		m->ring_given = ring_is_first(m, best);
		if (!m->ring_given) {
			if (!best) {
				r = m->samples ? sample_feed_next(m->samples, ret) : 0;
				return r < 0 ? error_errno(err, r, "can't read the samples") : r;
			}
			m->current = best;
			next = &best->next;
		}
		r = nesting_check(m->nesting, next);
		if (r < 0)
			return error_errno(err, r, "can't order the marks");
		m->unopened += r == 0;
		if (r == 0)
			continue;
		m->given += next->phase != PHASE_FRAME;
		*ret = *next;
		return 1;
	}
}

int mark_feed_see_tasks(struct mark_feed *m, const struct stream_index *index,
			const struct stream_reader *reader)
{
	return m->samples ? sample_feed_see_tasks(m->samples, index, reader) : 0;
}

int mark_feed_extend(struct mark_feed *m, uint64_t limit, struct error *err)
{
	if (!m->rings || m->have_ring_mark)
		return 0;
	if (mark_rings_extend(m->rings, limit) < 0)
		return error_errno(err, -ENOMEM, "can't read the marks");
	return fetch_ring(m, err);
}

uint64_t mark_feed_needs(const struct mark_feed *m)
{
	return m->rings ? mark_rings_needs(m->rings) : UINT64_MAX;
}

uint64_t mark_feed_count(const struct mark_feed *m)
{
	return m->given;
}

static int warn_of_samples(const struct mark_feed *m, struct stream_index *index)
{
	struct sample_feed_sum sum;
	int r = 0;

	if (!mark_feed_samples(m, &sum))
		return 0;
	index->incomplete |= sum.samples.damaged > 0;
	if (sum.samples.lost)
		r = stream_index_warn(index,
				      "%" PRIu64 " records of samples were lost: their rings were "
				      "full",
				      sum.samples.lost);
	if (r == 0 && sum.samples.throttled)
		r = stream_index_warn(index,
				      "the kernel held samples back %" PRIu64
				      " times, as they took too long: a lower rate is exact",
				      sum.samples.throttled);
	if (r == 0 && sum.samples.damaged)
		r = stream_index_warn(index, "%" PRIu64 " chunks of samples are damaged",
				      sum.samples.damaged);
	if (r == 0 && sum.untied)
		r = stream_index_warn(index,
				      "the times of samples are taken as they are: nothing ties "
				      "their clock to the trace clock '%s'",
				      m->info->header->trace_clock);
	if (r == 0 && sum.cut + sum.samples.refused)
		r = stream_index_warn(index, "there are more stacks, or mappings of programs, than "
					     "are taken: some stacks are cut");
	return r;
}

int mark_feed_warn(struct mark_feed *m, struct stream_index *index, uint64_t first_ts,
		   uint64_t last_ts)
{
	struct mark_rings_sum sum;
	int r = 0;

	mark_feed_rings(m, &sum);
	index->incomplete |= sum.damaged > 0;
	if (sum.lost)
		r = stream_index_warn(
			index, "applications dropped %" PRIu64 " marks: their rings were full",
			sum.lost);
	if (r == 0 && sum.damaged)
		r = stream_index_warn(index, "%" PRIu64 " chunks of marks are damaged",
				      sum.damaged);
	if (r == 0 && sum.garbled)
		r = stream_index_warn(index,
				      "%" PRIu64
				      " chunks of marks make no sense from some place on: "
				      "a program wrote something else there",
				      sum.garbled);
	if (r == 0 && sum.impossible)
		r = stream_index_warn(index,
				      "%" PRIu64
				      " marks are left out: they say that they were made "
				      "after the recording's end",
				      sum.impossible);
	if (r == 0 && sum.untied)
		r = stream_index_warn(
			index,
			"the times of marks of %" PRIu64
			" threads are taken as they are: nothing ties their clock to the "
			"trace clock '%s'",
			sum.untied, m->info->header->trace_clock);
	if (r == 0 && sum.bound > m->bound_max)
		r = stream_index_warn(
			index,
			"applications' marks are tied to the trace only within %" PRIu64
			" microseconds",
			(sum.bound + 999) / 1000);
	if (r == 0 && sum.labels_refused)
		r = stream_index_warn(index,
				      "names of marks are missing %" PRIu64
				      " times: programs never told them, or there were too many",
				      sum.labels_refused);
	if (r == 0 && m->unopened)
		r = stream_index_warn(index,
				      "%" PRIu64 " marks end what never began: they are left out",
				      m->unopened);
	if (r == 0)
		r = warn_of_samples(m, index);
	for (size_t i = 0; r == 0 && first_ts && i < m->file_count; i++) {
		const struct source *s = &m->sources[i];

		if (!s->file.last_ts || s->origin.clock == own_clock ||
		    (to_trace(s, s->file.last_ts) >= first_ts &&
		     to_trace(s, s->file.first_ts) <= last_ts))
			continue;
		r = stream_index_warn(
			index,
			"%s: all that it tells of happened before or after the "
			"recording: if its clock is another one, --merge-clock names it",
			s->origin.name);
	}
	return r;
}

const struct mark_origin *mark_feed_origins(const struct mark_feed *m, size_t *ret_count)
{
	*ret_count = m->file_count;
	return m->origins;
}

bool mark_feed_samples(const struct mark_feed *m, struct sample_feed_sum *ret)
{
	if (m->samples)
		sample_feed_sum(m->samples, ret);
	return m->samples;
}

const struct profile_sum *mark_feed_profiles(const struct mark_feed *m, size_t *ret_count)
{
	*ret_count = m->profile_count;
	return m->profiles;
}

const struct mark_sync *mark_feed_syncs(const struct mark_feed *m, size_t *ret_count)
{
	*ret_count = m->sync_count;
	return m->syncs;
}

const char *mark_feed_controller_key(const struct mark_feed *m)
{
	return m->controller_key;
}

bool mark_feed_unit_ms(const struct mark_feed *m)
{
	return m->unit_ms;
}

void mark_feed_rings(const struct mark_feed *m, struct mark_rings_sum *ret)
{
	*ret = (struct mark_rings_sum){ 0 };
	if (m->rings)
		mark_rings_sum(m->rings, ret);
}
