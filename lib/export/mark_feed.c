/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/mark_feed.h"

#include <inttypes.h>
#include <time.h>

#include "base/io.h"
#include "base/plural.h"
#include "export/sink.h"
#include "marks/crash_log.h"
#include "marks/nesting.h"

/* A member that a trace has once, though each file may have it: the first file's counts. */
struct single_member {
	struct text value; /* borrowed from a file; empty: none has it */
	const char *file;
};

struct mark_feed {
	const struct trace_info *info;
	struct scratch scratch;
	struct mark_source *sources; /* owned; merged files, then profiles */
	size_t source_count, file_count;
	struct profile_sum profiles[EXPORT_MERGES_MAX];
	size_t profile_count;
	struct sample_feed *samples; /* owned; NULL: no samples */
	struct mark_source *current; /* source of the mark returned last */
	struct mark_rings *rings;    /* owned; NULL: the stream has no rings */
	struct mark ring_mark;	     /* the rings' next mark */
	uint64_t ring_order;
	bool have_ring_mark, ring_given;
	struct mark_origin *origins; /* owned; copies from the sources */
	struct mark_syncs syncs;     /* owned */
	struct shares ring_syncs;    /* those that programs made */
	struct polls *polls;	     /* owned; NULL: the stream has no polled files */
	const struct poll *poll;     /* the next reading; NULL: none */
	bool poll_given;
	struct crash_log log; /* owned */
	struct mark log_mark; /* the log's next line */
	bool have_log_mark;
	struct nesting *nesting; /* owned */
	uint64_t given, left_out, unopened, bound_max;
	struct single_member unit, controller_key, power;
};

struct mark_feed *mark_feed_free(struct mark_feed *m)
{
	if (!m)
		return NULL;
	mark_rings_free(m->rings);
	polls_free(m->polls);
	crash_log_deinit(&m->log);
	sample_feed_free(m->samples);
	for (size_t i = 0; i < m->source_count; i++)
		mark_source_deinit(&m->sources[i]);
	mark_syncs_deinit(&m->syncs);
	shares_deinit(&m->ring_syncs);
	free(m->sources);
	free(m->origins);
	nesting_free(m->nesting);
	free(m);
	return NULL;
}

/* Begin and end of the recording, in the trace clock. */
static int mark_feed_find_span(const struct trace_info *info, uint64_t *ret_from, uint64_t *ret_to)
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

/* A file that is no profile fails the export: the user named it explicitly. */
static int mark_feed_add_profiles(struct mark_feed *m, const struct export_options *options,
				  struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	struct profile_where where = { 0 };
	int r = options->profile_count ? mark_feed_find_span(m->info, &where.from_ts, &where.to_ts)
				       : 0;

	for (size_t i = 0; r == 0 && i < options->profile_count; i++) {
		struct mark_source *s = &m->sources[m->source_count];

		where.source = (uint32_t)m->source_count++;
		where.tid = PROFILE_TID_FIRST + (int32_t)i;
		s->map.identity = true;
		s->origin.name = options->profiles[i].name;
		r = profile_marks_read(&s->file, &m->profiles[m->profile_count++],
				       &options->profiles[i], &where, options->symbols, &m->scratch,
				       &why);
		/* The capture itself is intact: don't return -EBADMSG. */
		if (r < 0)
			return error_set(err, r == -EBADMSG ? -EINVAL : r, "%s: %s",
					 options->profiles[i].name, why.message);
		r = MIN(mark_source_fetch(s, err), 0);
	}
	return r;
}

static int mark_feed_add_arrows(struct mark_feed *m, const struct export_options *options,
				struct error *err)
{
	struct mark_source *s = &m->sources[m->source_count];

	if (!options->arrows || !*options->arrows)
		return 0;
	m->source_count++;
	s->map.identity = true;
	s->placed = true;
	s->file.marks = TAKE_PTR(*options->arrows);
	return MIN(mark_source_fetch(s, err), 0);
}

/* A program's clock sync: becomes the JSON's counterpart of the kernel's mark. */
static int mark_feed_take_ring_sync(struct mark_feed *m)
{
	const struct mark *mark = &m->ring_mark;
	const struct mark_sync sync = {
		.ts = mark->ts + mark->dur,
		.issue_ts = mark->has & HAS_DUR ? mark->ts : 0,
		.source = UINT32_MAX,
	};
	const struct share_owner owner = mark_owner_of(mark);
	struct value id;
	int r;

	if (!value_find(mark->part[PART_ARGS], "sync_id", &id) || id.type != VALUE_STRING)
		return 0;
	m->ring_syncs.max = TRACE_FILE_SYNCS_MAX;
	r = shares_take(&m->ring_syncs, &owner, 1);
	if (r < 0)
		return r == -ENOSPC ? 0 : r;
	return mark_syncs_add(&m->syncs, id.text.data, id.text.len, &sync);
}

/* Fetches the rings' next mark. */
static int mark_feed_fetch_ring(struct mark_feed *m, struct error *err)
{
	int r;

	do {
		r = mark_rings_next(m->rings, &m->ring_mark, &m->ring_order, err);
		if (r > 0 && m->ring_mark.phase == PHASE_CLOCK_SYNC &&
		    mark_feed_take_ring_sync(m) < 0)
			return error_errno(err, -ENOMEM, "can't keep a clock sync");
	} while (r > 0 && m->ring_mark.phase == PHASE_CLOCK_SYNC);
	m->have_ring_mark = r > 0;
	return MIN(r, 0);
}

/* At equal times, files come first. */
static bool mark_feed_ring_is_first(const struct mark_feed *m, const struct mark_source *best)
{
	if (!m->have_ring_mark || !best)
		return m->have_ring_mark;
	return best->class > 2 || (best->class == 2 && m->ring_order < best->next.ts);
}

/* Marks can't be later than the recording's end, plus the error of the clock tie. */
static uint64_t mark_feed_latest(const struct trace_info *info)
{
	uint64_t bound, end = clock_map_end(info, &bound);

	return end ? end + bound + NSEC_PER_SEC : UINT64_MAX;
}

static int single_member_take(struct single_member *m, const char *name, struct text value,
			      const char *file, struct stream_index *index)
{
	if (!value.len || text_equal(value, m->value))
		return 0;
	if (m->value.len)
		return stream_index_warn(
			index, "%s: its %s is left out: a trace has one, and %s came first", file,
			name, m->file);
	*m = (struct single_member){ value, file };
	return 0;
}

static struct text member_text(const char *string)
{
	return (struct text){ string ?: "", string ? (uint32_t)strlen(string) : 0 };
}

static int mark_feed_take_members(struct mark_feed *m, const struct mark_source *s,
				  struct stream_index *index)
{
	const struct trace_file *f = &s->file;
	const char *unit = f->unit_ms ? "ms" : "ns", *file = s->origin.name;
	int r = single_member_take(&m->unit, "displayTimeUnit",
				   member_text(f->has_unit ? unit : NULL), file, index);

	if (r == 0)
		r = single_member_take(&m->controller_key, "controllerTraceDataKey",
				       member_text(f->controller_key), file, index);
	if (r == 0)
		r = single_member_take(&m->power, "powerTraceAsString",
				       (struct text){ f->power.data, (uint32_t)f->power.len }, file,
				       index);
	return r;
}

/* Reads the files and fetches the first mark of each. */
static int mark_feed_add_files(struct mark_feed *m, const struct export_options *options,
			       const struct source_env *env, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < options->merge_count; i++) {
		struct mark_source *s = &m->sources[m->source_count++];

		r = mark_source_read(s, (uint32_t)i, &options->merges[i], env, err);
		if (r == 0)
			r = mark_feed_take_members(m, s, env->index);
		if (r == 0 && mark_source_fetch(s, err) < 0)
			return -EIO;
		m->origins[i] = s->origin;
	}
	m->file_count = m->source_count;
	return r;
}

static int mark_feed_add_rings(struct mark_feed *m, struct stream_index *index,
			       const struct stream_reader *reader, struct error *err)
{
	int r = mark_rings_new(&m->rings, &index->marks, m->info, reader, index->ripe);

	if (r < 0)
		return r;
	mark_rings_set_latest(m->rings, mark_feed_latest(m->info));
	return mark_feed_fetch_ring(m, err);
}

static int mark_feed_fetch_poll(struct mark_feed *m, struct error *err)
{
	int r = polls_next(m->polls, &m->poll, err);

	if (r <= 0)
		m->poll = NULL;
	return MIN(r, 0);
}

static int mark_feed_add_polls(struct mark_feed *m, struct stream_index *index,
			       const struct stream_reader *reader, struct error *err)
{
	int r = polls_new(&m->polls, &index->polls, m->info, reader, index->ripe);

	if (r < 0)
		return r;
	polls_set_latest(m->polls, mark_feed_latest(m->info));
	return mark_feed_fetch_poll(m, err);
}

int mark_feed_new(struct mark_feed **ret, const struct export_options *options,
		  const struct export_format *format, struct stream_index *index,
		  const struct stream_reader *reader, struct error *err)
{
	_cleanup_(mark_feed_freep) struct mark_feed *m = calloc(1, sizeof(*m));
	struct source_env env = { .index = index, .reader = reader };
	int r = 0;

	if (m) {
		m->info = &index->info;
		m->scratch.fd = options->scratch_fd ?: -EBADF;
		m->sources = calloc(options->merge_count + options->profile_count + 2,
				    sizeof(*m->sources));
		m->origins = calloc(options->merge_count + 1, sizeof(*m->origins));
	}
	if (!m || !m->sources || !m->origins || nesting_new(&m->nesting) < 0)
		return error_errno(err, -ENOMEM, "can't begin with the marks");
	m->bound_max = options->bound_max_ns ?: EXPORT_BOUND_NS;
	env.scratch = &m->scratch;
	env.syncs = &m->syncs;
	env.bound_max = m->bound_max;
	if (!options->follow && clock_map_wants_marks(m->info))
		r = sync_scan_once(index, reader, err);
	if (r == 0)
		r = mark_feed_add_files(m, options, &env, err);
	if (r == 0)
		r = mark_feed_add_profiles(m, options, err);
	if (r == 0)
		r = mark_feed_add_arrows(m, options, err);
	if (r == 0 && sample_reader_wanted(index) && !options->follow)
		r = sample_feed_new(&m->samples, index, reader, options->symbols,
				    options->raw_addresses, format->frames_by_address,
				    (uint32_t)m->source_count);
	if (r == 0 && (index->marks.count || options->follow))
		r = mark_feed_add_rings(m, index, reader, err);
	if (r == 0 && (index->polls.count || options->follow))
		r = mark_feed_add_polls(m, index, reader, err);
	/* A recording of the last boot has neither. */
	if (r == 0 && !m->rings && !m->polls)
		r = crash_log_read(&m->log, m->info);
	if (r < 0)
		return err && !err->code ? error_errno(err, r, "can't read the marks") : r;
	m->have_log_mark = crash_log_next(&m->log, &m->log_mark);
	*ret = TAKE_PTR(m);
	return 0;
}

static bool mark_feed_is_earlier(const struct mark_source *a, const struct mark_source *b)
{
	return a->class != b->class ? a->class < b->class : a->next.ts < b->next.ts;
}

static bool mark_feed_log_is_first(const struct mark_feed *m, const struct mark_source *best)
{
	if (!m->have_log_mark)
		return false;
	return !best || best->class > 2 || (best->class == 2 && best->next.ts > m->log_mark.ts);
}

/* At equal times, files and rings come first. */
static bool mark_feed_poll_is_first(const struct mark_feed *m, const struct mark_source *best)
{
	if (!m->poll || (m->have_ring_mark && m->ring_order <= m->poll->ts))
		return false;
	return !best || best->class > 2 || (best->class == 2 && best->next.ts > m->poll->ts);
}

int mark_feed_next(struct mark_feed *m, struct mark *ret, struct error *err)
{
	for (;;) {
		struct mark_source *best = NULL;
		struct mark *next;
		int r;

		if (m->ring_given && mark_feed_fetch_ring(m, err) < 0)
			return -EIO;
		m->ring_given = false;
		if (m->poll_given && mark_feed_fetch_poll(m, err) < 0)
			return -EIO;
		m->poll_given = false;
		if (m->current && mark_source_fetch(m->current, err) < 0)
			return -EIO;
		m->current = NULL;
		for (size_t i = 0; i < m->source_count; i++) {
			struct mark_source *s = &m->sources[i];

			if (s->have_next && (!best || mark_feed_is_earlier(s, best)))
				best = s;
		}
		m->poll_given = mark_feed_poll_is_first(m, best);
		if (m->poll_given) {
			*ret = (struct mark){ .phase = PHASE_POLLED,
					      .ts = m->poll->ts,
					      .poll = m->poll };
			return 1;
		}
		if (mark_feed_log_is_first(m, best)) {
			*ret = m->log_mark;
			m->have_log_mark = crash_log_next(&m->log, &m->log_mark);
			return 1;
		}
		next = &m->ring_mark;
		m->ring_given = mark_feed_ring_is_first(m, best);
		if (!m->ring_given) {
			if (!best) {
				r = m->samples ? sample_feed_next(m->samples, ret) : 0;
				return r < 0 ? error_errno(err, r, "can't read the samples") : r;
			}
			m->current = best;
			next = &best->next;
		}
		r = nesting_check(m->nesting, next);
		if (r == -ENOSPC)
			continue;
		if (r < 0)
			return error_errno(err, r, "can't sort the marks");
		m->unopened += r == 0;
		if (r == 0)
			continue;
		m->given += next->phase != PHASE_FRAME;
		*ret = *next;
		return 1;
	}
}

int mark_feed_reopen(struct mark_feed *m, const struct mark *ahead, uint64_t ts,
		     int (*give)(void *userdata, const struct mark *mark, struct error *err),
		     void *userdata, struct error *err)
{
	return nesting_reopen(m->nesting, ahead, ts, give, userdata, err);
}

int mark_feed_see_tasks(struct mark_feed *m, const struct stream_index *index,
			const struct stream_reader *reader)
{
	return m->samples ? sample_feed_see_tasks(m->samples, index, reader) : 0;
}

int mark_feed_extend(struct mark_feed *m, uint64_t limit, struct error *err)
{
	int r = 0;

	if (m->rings && !m->have_ring_mark) {
		if (mark_rings_extend(m->rings, limit) < 0)
			return error_errno(err, -ENOMEM, "can't read the marks");
		r = mark_feed_fetch_ring(m, err);
	}
	if (r < 0 || !m->polls || m->poll)
		return r;
	if (polls_extend(m->polls, limit) < 0)
		return error_errno(err, -ENOMEM, "can't read the polled files");
	return mark_feed_fetch_poll(m, err);
}

uint64_t mark_feed_needs(const struct mark_feed *m)
{
	uint64_t rings = m->rings ? mark_rings_needs(m->rings) : UINT64_MAX;

	return m->polls ? MIN(rings, polls_needs(m->polls)) : rings;
}

uint64_t mark_feed_count(const struct mark_feed *m)
{
	return m->given;
}

void mark_feed_leave_out(struct mark_feed *m)
{
	/* Polled files and samples do not count as marks. */
	if (!m->ring_given && !m->current)
		return;
	m->given--;
	m->left_out++;
}

uint64_t mark_feed_left_out(const struct mark_feed *m)
{
	return m->left_out;
}

/* bound_max: ns; warn of clocks tied with a larger error. 0 or -ENOMEM. */
static int mark_feed_warn_of_rings(struct stream_index *index, const struct mark_rings_sum *sum,
				   uint64_t bound_max)
{
	int r = 0;

	index->incomplete |= sum->damaged > 0;
	index->marks_lost |= sum->lost > 0;
	if (sum->lost)
		r = stream_index_warn(
			index, "applications dropped %" PRIu64 " mark%s: their rings were full",
			sum->lost, plural_s(sum->lost));
	r = r
		?: stream_index_warn_count(index, sum->overstated,
					   "thread claims more lost marks than a thread can make: "
					   "its count is cut to that",
					   "threads claim more lost marks than a thread can make: "
					   "their count is cut to that")
		?: stream_index_warn_count(index, sum->damaged, "chunk of marks is damaged",
					   "chunks of marks are damaged")
		?: stream_index_warn_count(index, sum->garbled,
					   "chunk of marks makes no sense from some place on: "
					   "a program wrote something else there",
					   "chunks of marks make no sense from some place on: "
					   "a program wrote something else there")
		?: stream_index_warn_count(index, sum->impossible,
					   "mark is left out: it says that it was made after the "
					   "recording's end",
					   "marks are left out: they say that they were made "
					   "after the recording's end")
		?: stream_index_warn_count(index, sum->unknown,
					   "mark is left out: the Trace Event Format does not "
					   "know its phase",
					   "marks are left out: the Trace Event Format does not "
					   "know their phase");
	if (r == 0 && sum->untied)
		r = stream_index_warn(
			index,
			"the times of marks of %" PRIu64
			" thread%s are taken as they are: nothing ties %s clock to the "
			"trace clock '%s'",
			sum->untied, plural_s(sum->untied), plural(sum->untied, "its", "their"),
			index->info.header->trace_clock);
	if (r == 0 && sum->bound > bound_max)
		r = stream_index_warn(
			index,
			"applications' marks are tied to the trace only within %" PRIu64
			" microseconds",
			(sum->bound + 999) / 1000);
	if (r == 0 && sum->labels_refused)
		r = stream_index_warn(index,
				      "names of marks are missing %" PRIu64
				      " time%s: programs never told them, or there were too many",
				      sum->labels_refused, plural_s(sum->labels_refused));
	return r;
}

static int mark_feed_warn_of_samples(struct stream_index *index, const struct sample_feed_sum *sum)
{
	int r = sample_sum_warn(&sum->samples, index);

	if (r == 0 && sum->untied)
		r = stream_index_warn(index,
				      "the times of samples are taken as they are: nothing ties "
				      "their clock to the trace clock '%s'",
				      index->info.header->trace_clock);
	if (r == 0 && sum->cut + sum->samples.refused)
		r = stream_index_warn(index, "there are more stacks, or mappings of programs, than "
					     "are taken: some stacks are cut");
	return r;
}

static int mark_feed_warn_of_polls(struct stream_index *index, const struct polls_sum *sum)
{
	int r;

	index->incomplete |= sum->damaged > 0;
	r = stream_index_warn_count(index, sum->damaged, "chunk of polled files is damaged",
				    "chunks of polled files are damaged")
		    ?: stream_index_warn_count(
			       index, sum->impossible,
			       "reading of polled files is left out: it says that it was made "
			       "after the recording's end",
			       "readings of polled files are left out: they say that "
			       "they were made after the recording's end");
	if (r == 0 && sum->untied)
		r = stream_index_warn(index,
				      "the times of polled files are taken as they are: nothing "
				      "ties their clock to the trace clock '%s'",
				      index->info.header->trace_clock);
	return r;
}

int mark_feed_warn(struct mark_feed *m, struct stream_index *index, uint64_t first_ts,
		   uint64_t last_ts)
{
	struct sample_feed_sum samples;
	struct polls_sum polls = { 0 };
	struct mark_rings_sum rings;
	int r;

	mark_feed_rings(m, &rings);
	r = mark_feed_warn_of_rings(index, &rings, m->bound_max);
	if (r == 0)
		r = stream_index_warn_count(index, m->unopened,
					    "mark ends what never began: it is left out",
					    "marks end what never began: they are left out");
	if (r == 0 && m->rings)
		r = mark_rings_warn(m->rings, index);
	if (r == 0)
		r = shares_warn(&m->ring_syncs, "clock syncs", NULL, index);
	if (r == 0)
		r = nesting_warn(m->nesting, index);
	if (r == 0 && mark_feed_samples(m, &samples))
		r = mark_feed_warn_of_samples(index, &samples);
	if (m->polls)
		polls_sum(m->polls, &polls);
	if (r == 0)
		r = mark_feed_warn_of_polls(index, &polls);
	if (r == 0)
		r = stream_index_warn_count(
			index, m->log.untimed,
			"line of the kernel's log is left out: it has no time by "
			"the trace clock",
			"lines of the kernel's log are left out: they have "
			"no time by the trace clock");
	if (r == 0 && m->log.too_many)
		r = stream_index_warn(
			index,
			"only the first %d lines of the kernel's log are taken: a .traced "
			"keeps the others (%" PRIu64 "), too",
			CRASH_LINES_MAX, m->log.too_many);
	for (size_t i = 0; r == 0 && first_ts && i < m->file_count; i++)
		r = mark_source_warn_of_time(&m->sources[i], index, first_ts, last_ts);
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
	*ret_count = m->syncs.count;
	return m->syncs.all;
}

const char *mark_feed_controller_key(const struct mark_feed *m)
{
	return m->controller_key.value.len ? m->controller_key.value.data : NULL;
}

struct text mark_feed_power(const struct mark_feed *m)
{
	return m->power.value;
}

bool mark_feed_unit_ms(const struct mark_feed *m)
{
	return text_equal(m->unit.value, TEXT("ms"));
}

void mark_feed_rings(const struct mark_feed *m, struct mark_rings_sum *ret)
{
	*ret = (struct mark_rings_sum){ 0 };
	if (m->rings)
		mark_rings_sum(m->rings, ret);
}
