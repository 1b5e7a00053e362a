/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/info_messages.h"

#include "base/vec.h"
#include "traced/stream.h"

/* Room for a million tasks, and for 25000 readings of all clocks. */
#define TASKS_MEMORY (128U << 20)
#define CLOCKS_MEMORY (16U << 20)
#define STATS_MEMORY (32U << 20)
#define MAPPINGS_MEMORY (128U << 20)
#define HISTOGRAMS_MEMORY (128U << 20)
#define OTHERS_MEMORY (32U << 20)

struct payload {
	const uint8_t *data;
	size_t len;
};

/* Unpacks a message and appends it to an array of trace_info. */
#define ADD_MESSAGE(payload, budget, name, array, count, cap)                                      \
	({                                                                                         \
		void *_m = traced__capture__##name##__unpack(&(budget)->allocator, (payload)->len, \
							     (payload)->data);                     \
		int _r = _m ? vec_reserve(array, count, cap, 1) : budget_error(budget);            \
		if (_r == 0)                                                                       \
			(array)[(count)++] = _m;                                                   \
		else if (_m)                                                                       \
			traced__capture__##name##__free_unpacked(_m, &(budget)->allocator);        \
		_r;                                                                                \
	})

#define PHASE_PERIODIC 1
/* A recording has fewer: HISTS_MAX of daemon/capture/plan/hists.h. */
#define HISTOGRAMS_MAX 64

/* Drops every second reading. Half as many still relate the clocks well over a longer recording. */
static void thin_clocks(struct info_messages *m, struct trace_info *info)
{
	size_t kept = 0, count = info->clock_count;

	for (size_t i = 0; i < count; i++) {
		if (i % 2 && info->clocks[i]->phase == PHASE_PERIODIC)
			traced__capture__clocks__free_unpacked(info->clocks[i],
							       &m->clocks.allocator);
		else
			info->clocks[kept++] = info->clocks[i];
	}
	info->clock_count = kept;
	/* If little could be dropped, do not try again for each chunk that follows. */
	m->clocks_full = kept > count / 4 * 3;
}

static int add_clocks(struct info_messages *m, struct trace_info *info, const struct payload *p)
{
	int r = ADD_MESSAGE(p, &m->clocks, clocks, info->clocks, info->clock_count,
			    info->clock_cap);

	if (r != -EFBIG || m->clocks_full)
		return r;
	thin_clocks(m, info);
	return ADD_MESSAGE(p, &m->clocks, clocks, info->clocks, info->clock_count, info->clock_cap);
}

/* Only the last periodic counts are kept: they replace those at an end that never came. */
static int add_stats(struct info_messages *m, struct trace_info *info, const struct payload *p)
{
	int r = ADD_MESSAGE(p, &m->stats, stats, info->stats, info->stats_count, info->stats_cap);
	size_t n = info->stats_count;

	if (r < 0)
		return r;
	if (info->stats[n - 1]->buffer != BUFFER_MAIN) {
		traced__capture__stats__free_unpacked(info->stats[--info->stats_count],
						      &m->stats.allocator);
	} else if (n > 1 && info->stats[n - 2]->phase == PHASE_PERIODIC) {
		traced__capture__stats__free_unpacked(info->stats[n - 2], &m->stats.allocator);
		info->stats[n - 2] = info->stats[n - 1];
		info->stats_count--;
	}
	return 0;
}

/* Counts only grow: the last text of an event has all that the earlier ones had. */
static int add_histogram(struct info_messages *m, struct trace_info *info, const struct payload *p)
{
	int r = ADD_MESSAGE(p, &m->histograms, histogram, info->histograms, info->histogram_count,
			    info->histogram_cap);
	Traced__Capture__Histogram *last;
	size_t i = 0;

	if (r < 0)
		return r;
	last = info->histograms[info->histogram_count - 1];
	while (strcmp(info->histograms[i]->event, last->event) != 0)
		i++;
	if (i == info->histogram_count - 1 && i < HISTOGRAMS_MAX)
		return 0;
	info->histogram_count--;
	if (i == HISTOGRAMS_MAX) {
		traced__capture__histogram__free_unpacked(last, &m->histograms.allocator);
		return -EFBIG;
	}
	traced__capture__histogram__free_unpacked(info->histograms[i], &m->histograms.allocator);
	info->histograms[i] = last;
	return 0;
}

static int add_end(struct info_messages *m, struct trace_info *info, const struct payload *p)
{
	if (info->end)
		return -EBADMSG;
	info->end = traced__capture__end__unpack(&m->others.allocator, p->len, p->data);
	return info->end ? 0 : budget_error(&m->others);
}

/* For messages that come once. */
#define ADD_ONCE(payload, budget, name, to)                                                        \
	({                                                                                         \
		if (!(to))                                                                         \
			(to) = traced__capture__##name##__unpack(&(budget)->allocator,             \
								 (payload)->len, (payload)->data); \
		(to) ? 0 : budget_error(budget);                                                   \
	})

void info_messages_init(struct info_messages *m)
{
	*m = (struct info_messages){ 0 };
	budget_init(&m->tasks, TASKS_MEMORY);
	budget_init(&m->clocks, CLOCKS_MEMORY);
	budget_init(&m->stats, STATS_MEMORY);
	budget_init(&m->mappings, MAPPINGS_MEMORY);
	budget_init(&m->histograms, HISTOGRAMS_MEMORY);
	budget_init(&m->others, OTHERS_MEMORY);
}

int info_messages_add(struct info_messages *m, struct trace_info *info, unsigned type,
		      const void *data, size_t len)
{
	const struct payload payload = { data, len }, *p = &payload;

	switch (type) {
	case CHUNK_HEADER:
		return ADD_ONCE(p, &m->others, header, info->header);
	case CHUNK_TASKS:
		return ADD_MESSAGE(p, &m->tasks, tasks, info->task_readings,
				   info->task_reading_count, info->task_reading_cap);
	case CHUNK_CLOCKS:
		return add_clocks(m, info, p);
	case CHUNK_STATS:
		return add_stats(m, info, p);
	case CHUNK_NOTE:
		return ADD_MESSAGE(p, &m->others, note, info->notes, info->note_count,
				   info->note_cap);
	case CHUNK_END:
		return add_end(m, info, p);
	case CHUNK_SAMPLER:
		return ADD_ONCE(p, &m->others, sampler, info->sampler);
	case CHUNK_SAMPLE_COUNTS:
		return ADD_ONCE(p, &m->others, sample_counts, info->sample_counts);
	case CHUNK_LAST_BOOT:
		return ADD_ONCE(p, &m->others, last_boot, info->last_boot);
	case CHUNK_HISTOGRAM:
		return add_histogram(m, info, p);
	case CHUNK_MAPPINGS:
		return ADD_MESSAGE(p, &m->mappings, mappings, info->mappings, info->mapping_count,
				   info->mapping_cap);
	default:
		return 0;
	}
}

void info_messages_forget_readings(struct info_messages *m, struct trace_info *info)
{
	for (size_t i = 0; i < info->task_reading_count; i++)
		traced__capture__tasks__free_unpacked(info->task_readings[i], &m->tasks.allocator);
	info->task_reading_count = 0;
}

#define FREE_MESSAGES(name, array, count)                                                          \
	do {                                                                                       \
		for (size_t _i = 0; _i < (count); _i++)                                            \
			traced__capture__##name##__free_unpacked((array)[_i], NULL);               \
		free(array);                                                                       \
	} while (0)

void trace_info_deinit(struct trace_info *info)
{
	event_table_free(info->events);
	task_table_free(info->tasks);
	FREE_MESSAGES(tasks, info->task_readings, info->task_reading_count);
	FREE_MESSAGES(clocks, info->clocks, info->clock_count);
	FREE_MESSAGES(stats, info->stats, info->stats_count);
	FREE_MESSAGES(note, info->notes, info->note_count);
	FREE_MESSAGES(histogram, info->histograms, info->histogram_count);
	FREE_MESSAGES(mappings, info->mappings, info->mapping_count);
	traced__capture__sampler__free_unpacked(info->sampler, NULL);
	traced__capture__sample_counts__free_unpacked(info->sample_counts, NULL);
	traced__capture__last_boot__free_unpacked(info->last_boot, NULL);
	traced__capture__end__free_unpacked(info->end, NULL);
	traced__capture__header__free_unpacked(info->header, NULL);
	sync_scan_deinit(&info->syncs);
}
