/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/sample_reader.h"

#include <inttypes.h>

#include <string.h>
#include <time.h>

#include "base/plural.h"
#include "marks/clock_map.h"
#include "trace/chunk_cursor.h"

/* Bytes of one chunk, and of all chunks held at one time. A recorder's ring has 8 MiB. */
#define CHUNK_BYTES_MAX (16U << 20)
#define HELD_BYTES_MAX (1U << 30)

struct cursor {
	const struct chunk_list *list; /* borrowed */
	struct chunk_cursor chunks;
	struct perf_record record; /* the next one */
	bool have;
	struct sample_cpu *sum;
};

struct sample_reader {
	const struct stream_index *index;
	struct chunk_source source;
	struct perf_format format;
	struct cursor *cursors;	 /* owned; by CPU */
	struct sample_cpu *sums; /* owned */
	size_t count;
	struct cursor *given; /* owner of the record returned last; NULL: none */
	bool begun;
	struct address_spaces spaces;
	struct clock_map map;
	bool untied;
	uint64_t damaged;
};

static struct perf_format stream_perf_format(const struct stream_index *index)
{
	return (struct perf_format){
		.sample_type = index->info.sampler ? index->info.sampler->sample_type : 0,
		.big_endian = index->info.header->big_endian,
	};
}

bool sample_reader_wanted(const struct stream_index *index)
{
	struct perf_format f = stream_perf_format(index);

	return index->samples.count && perf_format_known(&f);
}

struct sample_reader *sample_reader_free(struct sample_reader *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; r->cursors && i < r->count; i++)
		chunk_cursor_release(&r->cursors[i].chunks, &r->source);
	chunk_source_deinit(&r->source);
	free(r->cursors);
	free(r->sums);
	address_spaces_deinit(&r->spaces);
	clock_map_deinit(&r->map);
	free(r);
	return NULL;
}

/* Takes the mappings at the start of sampling; they hold until a record replaces them. */
static int samples_take_mappings(struct sample_reader *r)
{
	const struct trace_info *info = &r->index->info;

	for (size_t i = 0; i < info->mapping_count; i++) {
		const Traced__Capture__Mappings *all = info->mappings[i];

		for (size_t j = 0; j < all->n_processes; j++) {
			const Traced__Capture__ProcessMappings *p = all->processes[j];

			for (size_t k = 0; k < p->n_mappings; k++) {
				const Traced__Capture__Mapping *m = p->mappings[k];
				struct new_mapping new = {
					.start = m->start,
					.length = m->end - m->start,
					.offset = m->offset,
					.path = (const char *)m->path.data,
					.path_len = m->path.len,
					.build_id = m->build_id.data,
					.build_id_len = m->build_id.len,
				};

				if (m->end > m->start &&
				    address_spaces_map(&r->spaces, p->pid, &new) < 0)
					return -ENOMEM;
			}
		}
	}
	return 0;
}

static int samples_tie_clock(struct sample_reader *r)
{
	const struct trace_info *info = &r->index->info;
	int32_t clock = info->sampler->clock;
	const char *trace_clock = info->header->trace_clock;
	int n;

	if (clock < 0 && (!strcmp(trace_clock, "local") || !strcmp(trace_clock, "perf"))) {
		r->map.identity = true;
		return 0;
	}
	n = clock < 0 ? -ENOENT : clock_map_of_recorded(&r->map, info, clock);
	if (n == -ENOENT) {
		r->untied = r->map.identity = true;
		n = 0;
	}
	return n;
}

uint64_t sample_reader_time(const struct sample_reader *r, uint64_t time)
{
	uint64_t bound;

	return clock_map_apply(&r->map, time, &bound);
}

int sample_reader_tie(const struct sample_reader *r, uint64_t *ret_bound)
{
	struct clock_sum tie;

	clock_map_sum(&r->map, &tie);
	*ret_bound = tie.bound;
	return r->untied ? -ENOENT : 0;
}

int sample_reader_new(struct sample_reader **ret, const struct stream_index *index,
		      const struct stream_reader *stream)
{
	_cleanup_(sample_reader_freep) struct sample_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->index = index;
	r->source = (struct chunk_source){
		.reader = stream,
		.type = CHUNK_SAMPLES,
		.whole_max = UINT32_MAX, /* longer ones than CHUNK_BYTES_MAX are not read at all */
		.held_max = HELD_BYTES_MAX,
	};
	r->format = stream_perf_format(index);
	r->cursors = calloc(index->samples.count + 1, sizeof(*r->cursors));
	r->sums = calloc(index->samples.count + 1, sizeof(*r->sums));
	if (!r->cursors || !r->sums)
		return -ENOMEM;
	r->count = index->samples.count;
	for (size_t i = 0; i < r->count; i++) {
		r->cursors[i].list = &index->samples.cpus[i].list;
		r->cursors[i].sum = &r->sums[i];
		r->sums[i].cpu = index->samples.cpus[i].cpu;
	}
	if (samples_tie_clock(r) < 0 || samples_take_mappings(r) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(r);
	return 0;
}

/* Loads the CPU's next chunk. Returns 1; 0: there is none; or -ENOMEM. */
static int samples_load_chunk(struct sample_reader *r, struct cursor *c)
{
	struct chunk_cursor *w = &c->chunks;
	int n = chunk_cursor_enter(w, &r->source, c->list, UINT64_MAX, NULL);

	if (n == 0) {
		chunk_cursor_release(w, &r->source);
		return 0;
	}
	if (n > 0 && w->chunk.length > CHUNK_BYTES_MAX)
		n = -EFBIG;
	else if (n > 0)
		n = chunk_cursor_reserve(w, &r->source, w->chunk.length)
			    ?: chunk_cursor_load(w, &r->source, NULL);
	if (n < 0) {
		chunk_cursor_skip(w);
		r->damaged++;
	}
	return n == -ENOMEM ? n : 1;
}

/* Reads the CPU's next usable record. */
static int samples_fetch(struct sample_reader *r, struct cursor *c)
{
	c->have = false;
	for (;;) {
		size_t left = chunk_cursor_left(&c->chunks), size;
		int n;

		if (!left) {
			n = samples_load_chunk(r, c);
			if (n <= 0)
				return n;
			continue;
		}
		size = perf_record_read(&c->record, &r->format,
					(const uint8_t *)c->chunks.window.data + c->chunks.used,
					left);
		if (!size) {
			r->damaged++;
			chunk_cursor_skip(&c->chunks);
			continue;
		}
		c->chunks.used += size;
		if (c->record.kind == PERF_NOTHING)
			continue;
		c->have = true;
		return 0;
	}
}

static int samples_take(struct sample_reader *r, struct cursor *c)
{
	const struct perf_record *p = &c->record;

	switch (p->kind) {
	case PERF_MAPPED:
		return address_spaces_map(&r->spaces, p->pid,
					  &(struct new_mapping){
						  .start = p->map.start,
						  .length = p->map.length,
						  .offset = p->map.offset,
						  .path = p->map.path,
						  .path_len = strlen(p->map.path),
						  .build_id = p->map.build_id,
						  .build_id_len = p->map.build_id_len,
					  });
	case PERF_EXECED:
	case PERF_EXITED:
		address_spaces_clear(&r->spaces, p->pid);
		return 0;
	case PERF_FORKED:
		return address_spaces_fork(&r->spaces, p->parent, p->pid);
	case PERF_LOST:
		c->sum->lost = c->sum->lost + p->lost;
		return 0;
	case PERF_THROTTLED:
		c->sum->throttled++;
		return 0;
	default:
		c->sum->samples++;
		return 0;
	}
}

static int samples_begin(struct sample_reader *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (samples_fetch(r, &r->cursors[i]) < 0)
			return -ENOMEM;
	r->begun = true;
	return 0;
}

int sample_reader_next(struct sample_reader *r, struct perf_record *ret)
{
	int n = 0;

	if (!r->begun)
		n = samples_begin(r);
	else if (r->given)
		n = samples_fetch(r, r->given);
	r->given = NULL;
	while (n == 0) {
		struct cursor *best = NULL;

		for (size_t i = 0; i < r->count; i++) {
			struct cursor *c = &r->cursors[i];

			if (c->have && (!best || c->record.time < best->record.time))
				best = c;
		}
		if (!best)
			return 0;
		n = samples_take(r, best);
		if (n < 0)
			break;
		if (best->record.kind == PERF_SAMPLED) {
			*ret = best->record;
			r->given = best;
			return 1;
		}
		n = samples_fetch(r, best);
	}
	return n;
}

const struct perf_format *sample_reader_format(const struct sample_reader *r)
{
	return &r->format;
}

const struct address_spaces *sample_reader_spaces(const struct sample_reader *r)
{
	return &r->spaces;
}

void sample_reader_sum(const struct sample_reader *r, struct sample_sum *ret)
{
	const Traced__Capture__SampleCounts *counts = r->index->info.sample_counts;

	*ret = (struct sample_sum){ .damaged = r->damaged,
				    .refused = r->spaces.refused,
				    .cpus = r->sums,
				    .cpu_count = r->count };
	for (size_t i = 0; i < r->count; i++) {
		struct sample_cpu *c = &r->sums[i];

		/*
		 * The kernel's own count includes losses at the end, which no LOST record reports.
		 */
		for (size_t j = 0; counts && j < counts->n_cpus; j++)
			if (counts->cpus[j]->cpu == c->cpu && counts->cpus[j]->counted)
				c->lost = MAX(c->lost, counts->cpus[j]->lost);
		ret->samples += c->samples;
		ret->lost += c->lost;
		ret->throttled += c->throttled;
	}
}

int sample_sum_warn(const struct sample_sum *sum, struct stream_index *index)
{
	int r;

	index->incomplete |= sum->damaged > 0;
	r = stream_index_warn_count(index, sum->lost,
				    "record of a sample was lost: its ring was full",
				    "records of samples were lost: their rings were full");
	if (r == 0 && sum->throttled)
		r = stream_index_warn(index,
				      "the kernel held samples back %" PRIu64
				      " time%s, as they took too long: a lower rate is exact",
				      sum->throttled, plural_s(sum->throttled));
	return r
		       ?: stream_index_warn_count(index, sum->damaged,
						  "chunk of samples is damaged",
						  "chunks of samples are damaged");
}
