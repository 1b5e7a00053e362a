/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/host_clock.h"

#include <math.h>
#include <time.h>

#include "base/io.h"
#include "base/parse.h"
#include "base/vec.h"
#include "base/wide.h"
#include "stream/writer.h"

#define MULT_SHIFT 31
/* 36 years; sums of such times do not overflow. */
#define TIME_BITS 60
/* The time of day may have more bits. */
#define WALL_BITS 62
/* A part has this length, or more, so that there are at most PARTS_MAX. */
#define PART_NS (2 * NSEC_PER_SEC)
#define PARTS_MAX 128
/* The best ones of a part: their pairs are compared. */
#define TIES_PER_PART 32
/* A larger bound is none. */
#define HOST_BOUND_MAX_NS (60 * NSEC_PER_SEC)
#define HOST_CHUNK_MAX (1U << 20)
/* Bytes of one reading of the clocks; a file may have many readings. */
#define CLOCKS_CHUNK_MAX 4096

int host_ties_add(struct host_ties *ties, const struct host_tie *tie)
{
	struct host_tie *t = ties->items;
	size_t kept = 0;

	if (ties->count == HOST_TIES_MAX) {
		for (size_t i = 0; i + 1 < ties->count; i += 2)
			t[kept++] = t[i].bound < t[i + 1].bound ? t[i] : t[i + 1];
		ties->count = kept;
	}
	return vec_push(ties->items, ties->count, ties->cap, *tie);
}

uint64_t host_clock_apply(const struct host_clock *c, uint64_t far)
{
	return mul_shift(far, c->mult, c->shift) + (uint64_t)c->offset;
}

/* The recording's parts. */
struct parts {
	uint64_t from, length; /* ns, by the recorded machine */
	size_t count;
};

static size_t part_at(const struct parts *p, uint64_t far)
{
	uint64_t at = far > p->from ? (far - p->from) / p->length : 0;

	return at < p->count ? (size_t)at : p->count - 1;
}

/* Puts the best tie of each part into best, in order of time. Returns their number. */
static size_t ties_choose(const struct host_tie *ties, size_t count, const struct parts *parts,
			  struct host_tie best[PARTS_MAX])
{
	struct host_tie chosen[PARTS_MAX] = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct host_tie *one = &chosen[part_at(parts, ties[i].far)];

		if (!one->far || ties[i].bound < one->bound)
			*one = ties[i];
	}
	for (size_t i = 0; i < parts->count; i++)
		if (chosen[i].far)
			best[kept++] = chosen[i];
	return kept;
}

static double weight_of(const struct host_tie *t)
{
	double bound = (double)t->bound + 1;

	return 1 / (bound * bound);
}

/* A weighted line. Times are relative to the first tie, which a double holds exactly. */
static void fit_line(struct host_clock *c, const struct host_tie *best, size_t count)
{
	double sum = 0, x = 0, y = 0, xx = 0, xy = 0, slope = 0;
	int64_t base = (int64_t)(best[0].near - best[0].far);
	uint64_t middle;

	for (size_t i = 0; i < count; i++) {
		sum += weight_of(&best[i]);
		x += weight_of(&best[i]) * (double)(int64_t)(best[i].far - best[0].far);
		y += weight_of(&best[i]) * (double)((int64_t)(best[i].near - best[i].far) - base);
	}
	x /= sum;
	y /= sum;
	for (size_t i = 0; i < count; i++) {
		double dx = (double)(int64_t)(best[i].far - best[0].far) - x;
		double dy = (double)((int64_t)(best[i].near - best[i].far) - base) - y;

		xx += weight_of(&best[i]) * dx * dx;
		xy += weight_of(&best[i]) * dx * dy;
	}
	if (xx > 0)
		slope = xy / xx;
	/* No clock drifts so much: it is the ties' error. */
	c->drift_known = xx > 0 && fabs(slope) < HOST_DRIFT_MAX_PPM * 1e-6;
	if (!c->drift_known)
		slope = 0;
	c->mult = (uint32_t)((1 + slope) * (double)(UINT32_C(1) << MULT_SHIFT) + 0.5);
	c->shift = MULT_SHIFT;
	c->drift = slope * 1e9;
	middle = best[0].far + (uint64_t)(int64_t)x;
	c->offset = base + (int64_t)y + (int64_t)(middle - mul_shift(middle, c->mult, c->shift));
}

/*
 * The largest error of the line at time `at`, if it is linear over these ties. sign -1: the
 * smallest, negated. Any two ties bound it, by a line through the one's upper and the other's lower
 * end; so does each alone, by the largest drift of the clock beside the line's own.
 */
static double error_limit(const struct host_clock *c, const struct host_tie *ties, size_t count,
			  uint64_t at, int sign)
{
	const double drift = HOST_DRIFT_MAX_PPM * 1e-6 + fabs(c->drift) * 1e-9;
	double best = INFINITY;

	for (size_t i = 0; i < count; i++) {
		double far = (double)(int64_t)(at - ties[i].far);
		double miss =
			sign * (double)(int64_t)(ties[i].near - host_clock_apply(c, ties[i].far));
		double top = miss + (double)ties[i].bound;

		best = MIN(best, top + fabs(far) * drift);
		for (size_t k = 0; k < count; k++) {
			double other = (double)(int64_t)(ties[i].far - ties[k].far);
			double low = sign * (double)(int64_t)(ties[k].near -
							      host_clock_apply(c, ties[k].far)) -
				     (double)ties[k].bound;

			/* The tie i lies between the other one and the time. */
			if (other != 0 && far / other >= 0)
				best = MIN(best, top + (top - low) * (far / other));
		}
	}
	return best;
}

static int tie_by_bound(const void *a, const void *b)
{
	const struct host_tie *x = a, *y = b;

	return x->bound < y->bound ? -1 : x->bound > y->bound;
}

/* The bound from `from` to `to`, by the ties there and the next ones around. */
static double part_bound(const struct host_clock *c, const struct host_tie *ties, size_t count,
			 uint64_t from, uint64_t to)
{
	struct host_tie best[TIES_PER_PART];
	size_t begin = 0, end, n;
	double worst = 0;

	while (begin < count && ties[begin].far < from)
		begin++;
	for (end = begin; end < count && ties[end].far <= to; end++)
		;
	/* A few more, where there are few. */
	while (end - begin < TIES_PER_PART / 2 && (begin > 0 || end < count)) {
		begin -= begin > 0;
		end += end < count;
	}
	n = MIN(end - begin, (size_t)TIES_PER_PART);
	if (end - begin <= TIES_PER_PART) {
		memcpy(best, ties + begin, n * sizeof(*best));
	} else {
		_cleanup_free_ struct host_tie *sorted = malloc((end - begin) * sizeof(*sorted));

		if (!sorted)
			return INFINITY;
		memcpy(sorted, ties + begin, (end - begin) * sizeof(*sorted));
		qsort(sorted, end - begin, sizeof(*sorted), tie_by_bound);
		memcpy(best, sorted, n * sizeof(*best));
	}
	for (int sign = -1; sign <= 1; sign += 2) {
		worst = MAX(worst, error_limit(c, best, n, from, sign));
		worst = MAX(worst, error_limit(c, best, n, to, sign));
	}
	/* The upper limit is below the lower one. */
	if (error_limit(c, best, n, from, 1) + error_limit(c, best, n, from, -1) < -1)
		return NAN;
	from = MIN(from, ties[begin].far);
	to = MAX(to, ties[end - 1].far);
	return worst + (double)(to - from) * HOST_WANDER_PPM * 1e-6;
}

int host_clock_fit(struct host_clock *ret, const struct host_tie *ties, size_t count, uint64_t from,
		   uint64_t to)
{
	struct host_tie best[PARTS_MAX] = { 0 };
	struct parts parts = { .from = from };
	double worst = 0;

	*ret = (struct host_clock){ 0 };
	if (!count || from > to)
		return -ENODATA;
	for (size_t i = 0; i < count; i++)
		if (ties[i].far <= (i ? ties[i - 1].far : 0) ||
		    (ties[i].far | ties[i].near | ties[i].bound) >> TIME_BITS)
			return -EBADMSG;
	parts.length = MAX((to - from) / PARTS_MAX + 1, (uint64_t)PART_NS);
	parts.count = (size_t)((to - from) / parts.length) + 1;
	fit_line(ret, best, ties_choose(ties, count, &parts, best));
	for (size_t i = 0; i < parts.count; i++) {
		uint64_t at = from + i * parts.length;
		double bound = part_bound(ret, ties, count, at, MIN(at + parts.length, to));

		if (isnan(bound))
			return -EBADMSG;
		worst = MAX(worst, bound);
	}
	if (worst > (double)HOST_BOUND_MAX_NS)
		return -ENODATA;
	ret->bound = (uint64_t)worst + 2;
	return 0;
}

/* At both ends of the recording the lines differ by no more than both bounds allow. */
static bool clocks_agree(const struct host_clock *a, const struct host_clock *b, uint64_t from,
			 uint64_t to)
{
	const uint64_t at[] = { from, to };

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		uint64_t x = host_clock_apply(a, at[i]), y = host_clock_apply(b, at[i]);

		if (MAX(x, y) - MIN(x, y) > a->bound + b->bound)
			return false;
	}
	return true;
}

int host_clock_choose(struct host_clock *ret, const struct host_ties ties[TIE_KINDS], uint64_t from,
		      uint64_t to)
{
	const struct host_ties *exchanges = &ties[TIES_EXCHANGES];
	struct host_clock by_exchanges, other;
	int r = host_clock_fit(&by_exchanges, exchanges->items, exchanges->count, from, to);

	*ret = by_exchanges;
	for (int kind = TIES_EXCHANGES + 1; r == 0 && kind < TIE_KINDS; kind++)
		if (host_clock_fit(&other, ties[kind].items, ties[kind].count, from, to) == 0 &&
		    other.bound < ret->bound && clocks_agree(&other, &by_exchanges, from, to)) {
			*ret = other;
			ret->by = (enum host_tie_kind)kind;
		}
	return r;
}

static int ties_unpack(struct host_ties *ret, Traced__Capture__Tie *const *ties, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < MIN(count, (size_t)HOST_TIES_MAX); i++)
		r = host_ties_add(ret, &(struct host_tie){ ties[i]->far_ns, ties[i]->near_ns,
							   ties[i]->bound_ns });
	return r;
}

static void origin_take_host(struct host_origin *ret, const Traced__Capture__Host *m)
{
	struct host_ties ties[TIE_KINDS] = { 0 };
	int r;

	snprintf(ret->label, sizeof(ret->label), "%s", m->label);
	ret->start = m->start_ns;
	if (m->timeline.len != HOST_TIMELINE_BYTES) {
		ret->lacks = "its HOST chunk does not name the clock to which it is tied";
		return;
	}
	memcpy(ret->timeline, m->timeline.data, HOST_TIMELINE_BYTES);
	r = ties_unpack(&ties[TIES_EXCHANGES], m->ties, m->n_ties);
	r = r ?: ties_unpack(&ties[TIES_UTC], m->utc_ties, m->n_utc_ties);
	r = r ?: ties_unpack(&ties[TIES_PHC], m->phc_ties, m->n_phc_ties);
	r = r ?: host_clock_choose(&ret->clock, ties, ret->first, ret->last);
	ret->tied = r == 0;
	if (r == -EBADMSG)
		ret->lacks = "the ties of its clock contradict each other, and are not used";
	for (size_t i = 0; i < TIE_KINDS; i++)
		free(ties[i].items);
}

static void origin_take_clocks(struct host_origin *ret, const Traced__Capture__Clocks *m)
{
	for (size_t i = 0; i < m->n_readings; i++) {
		const Traced__Capture__ClockReading *r = m->readings[i];

		ret->first = MIN(ret->first, r->boot_before_ns);
		ret->last = MAX(ret->last, r->boot_after_ns);
		if (r->clock != CLOCK_REALTIME || ret->wall_known ||
		    (r->value_ns | r->boot_before_ns) >> WALL_BITS)
			continue;
		ret->wall_known = true;
		ret->wall = (int64_t)(r->value_ns - r->boot_before_ns);
	}
}

static void origin_take_header(struct host_origin *ret, const struct buf *payload)
{
	Traced__Capture__Header *m =
		traced__capture__header__unpack(NULL, payload->len, (const uint8_t *)payload->data);

	if (m)
		ret->cpus = m->cpus;
	traced__capture__header__free_unpacked(m, NULL);
}

void host_label_tidy(char *label)
{
	for (; *label; label++)
		if (!(*label >= '0' && *label <= '9') &&
		    !((*label | 32) >= 'a' && (*label | 32) <= 'z') && *label != '.' &&
		    *label != '-')
			*label = '_';
}

/* NULL: it can't be read. */
static void origin_load_host(struct host_origin *ret, const struct stream_reader *reader,
			     const struct chunk *chunk, struct buf *payload)
{
	Traced__Capture__Host *host = NULL;

	if (stream_reader_load_max(reader, chunk, HOST_CHUNK_MAX, payload, NULL) == 0)
		host = traced__capture__host__unpack(NULL, payload->len,
						     (const uint8_t *)payload->data);
	if (host)
		origin_take_host(ret, host);
	else
		ret->lacks = "its HOST chunk is damaged: the machine's name and the ties of its "
			     "clock are missing";
	traced__capture__host__free_unpacked(host, NULL);
}

int host_origin_read(struct host_origin *ret, int fd, struct error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT;
	bool has_header = false, has_host = false;
	struct stream_reader reader;
	struct chunk chunk, last;
	int r = stream_reader_init(&reader, fd, err);

	*ret = (struct host_origin){ .first = UINT64_MAX };
	if (r < 0)
		return r;
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		Traced__Capture__Clocks *clocks;
		size_t max = chunk.type == CHUNK_CLOCKS ? CLOCKS_CHUNK_MAX : HOST_CHUNK_MAX;

		if ((chunk.type == CHUNK_SUBBUFS || chunk.type == CHUNK_SAMPLES) &&
		    chunk.cpu <= CPU_LIST_MAX)
			ret->cpus_seen = MAX(ret->cpus_seen, chunk.cpu + 1);
		if (chunk.type == CHUNK_HOST) {
			/* host_origin_append() puts ours last: a machine may forge others. */
			last = chunk;
			has_host = true;
		}
		if ((chunk.type != CHUNK_CLOCKS && (chunk.type != CHUNK_HEADER || has_header)) ||
		    stream_reader_load_max(&reader, &chunk, max, &payload, NULL) < 0)
			continue;
		if (chunk.type == CHUNK_HEADER) {
			has_header = true;
			origin_take_header(ret, &payload);
		} else if ((clocks = traced__capture__clocks__unpack(
				    NULL, payload.len, (const uint8_t *)payload.data))) {
			origin_take_clocks(ret, clocks);
			traced__capture__clocks__free_unpacked(clocks, NULL);
		}
	}
	if (has_host)
		origin_load_host(ret, &reader, &last, &payload);
	host_label_tidy(ret->label);
	ret->cpus = MAX(ret->cpus, ret->cpus_seen);
	return 0;
}

struct packed_ties {
	Traced__Capture__Tie *items, **list; /* owned */
};

static void packed_ties_deinit(struct packed_ties *p)
{
	free(p->items);
	free(p->list);
}

static int ties_pack(struct packed_ties *ret, const struct host_ties *ties)
{
	ret->items = calloc(ties->count + 1, sizeof(*ret->items));
	ret->list = calloc(ties->count + 1, sizeof(*ret->list));
	if (!ret->items || !ret->list)
		return -ENOMEM;
	for (size_t i = 0; i < ties->count; i++) {
		ret->list[i] = &ret->items[i];
		traced__capture__tie__init(ret->list[i]);
		ret->items[i].far_ns = ties->items[i].far;
		ret->items[i].near_ns = ties->items[i].near;
		ret->items[i].bound_ns = ties->items[i].bound;
	}
	return 0;
}

static int append_message(struct stream_writer *w, const struct host_origin *origin,
			  const struct host_ties ties[TIE_KINDS])
{
	_cleanup_(packed_ties_deinit) struct packed_ties packed = { 0 }, utc = { 0 }, phc = { 0 };
	Traced__Capture__Host host = TRACED__CAPTURE__HOST__INIT;

	if (ties_pack(&packed, &ties[TIES_EXCHANGES]) < 0 || ties_pack(&utc, &ties[TIES_UTC]) < 0 ||
	    ties_pack(&phc, &ties[TIES_PHC]) < 0)
		return -ENOMEM;
	host.label = (char *)origin->label;
	host.start_ns = origin->start;
	host.timeline.data = (uint8_t *)origin->timeline;
	host.timeline.len = HOST_TIMELINE_BYTES;
	host.n_ties = ties[TIES_EXCHANGES].count;
	host.ties = packed.list;
	host.n_utc_ties = ties[TIES_UTC].count;
	host.utc_ties = utc.list;
	host.n_phc_ties = ties[TIES_PHC].count;
	host.phc_ties = phc.list;
	return stream_write_message(w, CHUNK_HOST, &host.base);
}

int host_origin_append(int fd, const struct host_origin *origin,
		       const struct host_ties ties[TIE_KINDS], struct error *err)
{
	struct stream_writer w = { .fd = fd };
	struct stream_reader reader;
	struct chunk chunk;
	int r = stream_reader_init(&reader, fd, err);
	off_t end;

	if (r < 0)
		return r;
	while ((r = stream_reader_next(&reader, &chunk, NULL)) > 0)
		;
	end = (off_t)reader.offset;
	if (ftruncate(fd, end) < 0 || lseek(fd, end, SEEK_SET) < 0)
		return error_errno(err, -errno, "can't complete the capture");
	r = append_message(&w, origin, ties);
	return r < 0 ? error_errno(err, r, "can't complete the capture") : 0;
}

static void move_time(const struct host_clock *c, uint64_t *time)
{
	if (*time)
		*time = host_clock_apply(c, *time);
}

static void move_clocks(const struct host_clock *c, Traced__Capture__Clocks *m)
{
	move_time(c, &m->sync_before_ns);
	move_time(c, &m->sync_after_ns);
	for (size_t i = 0; i < m->n_readings; i++) {
		move_time(c, &m->readings[i]->boot_before_ns);
		move_time(c, &m->readings[i]->boot_after_ns);
		if (m->readings[i]->clock == CLOCK_BOOTTIME)
			move_time(c, &m->readings[i]->value_ns);
	}
}

int host_clock_move(const struct host_clock *c, struct trace_info *info, struct error *err)
{
	const struct page_clock clock = { true, c->mult, c->shift, c->offset };

	if (strcmp(info->header->trace_clock, "boot") != 0 || info->layout.clock.differs) {
		error_set(err, -EINVAL,
			  "its trace clock is '%s': only 'boot' can be tied to "
			  "another machine's",
			  info->header->trace_clock);
		return error_hint(err, "record with -C boot");
	}
	info->layout.clock = info->tasks_layout.clock = clock;
	info->moved = c;
	for (size_t i = 0; i < info->clock_count; i++)
		move_clocks(c, info->clocks[i]);
	for (size_t i = 0; i < info->task_reading_count; i++)
		move_time(c, &info->task_readings[i]->boot_ns);
	for (size_t i = 0; i < info->stats_count; i++)
		move_time(c, &info->stats[i]->boot_ns);
	if (info->end) {
		move_time(c, &info->end->boot_ns);
		move_time(c, &info->end->start_boot_ns);
	}
	return 0;
}
