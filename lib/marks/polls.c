/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/polls.h"

#include <time.h>

#include "marks/clock_map.h"
#include "trace/bounds.h"
#include "trace/chunk_cursor.h"

/* Bytes of one chunk's messages: each file takes more memory than in the stream. */
#define MEMORY_MAX (64U << 20)
/* Default of a stream that does not say: every architecture but alpha has it. */
#define USUAL_HZ 100

struct polls {
	const struct trace_info *info;
	struct chunk_source source;
	struct chunk_list *list;
	struct chunk_cursor chunks;
	uint64_t limit, latest, last_ts;
	size_t clocks_seen;
	struct clock_map map;
	struct budget budget;
	Traced__Capture__Polls *message; /* owned; of the current chunk */
	size_t next;			 /* in message */
	struct poll poll;		 /* returned last */
	struct polls_sum sum;
};

static int polls_tie(struct polls *p)
{
	int r;

	clock_map_deinit(&p->map);
	r = clock_map_of_recorded(&p->map, p->info, CLOCK_BOOTTIME);
	p->sum.untied = r == -ENOENT;
	p->map.identity |= r < 0;
	p->clocks_seen = p->info->clock_count;
	return r == -ENOMEM ? r : 0;
}

int polls_new(struct polls **ret, struct chunk_list *chunks, const struct trace_info *info,
	      const struct stream_reader *reader, uint64_t limit)
{
	_cleanup_(polls_freep) struct polls *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->info = info;
	p->source = (struct chunk_source){ .reader = reader,
					   .type = CHUNK_POLLS,
					   .whole_max = STREAM_POLLS_MAX };
	p->list = chunks;
	p->limit = limit;
	p->latest = UINT64_MAX;
	p->poll.hz = info->header->hz ?: USUAL_HZ;
	budget_init(&p->budget, MEMORY_MAX);
	if (polls_tie(p) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(p);
	return 0;
}

static void polls_leave_chunk(struct polls *p)
{
	if (p->message)
		traced__capture__polls__free_unpacked(p->message, &p->budget.allocator);
	p->message = NULL;
	p->next = 0;
}

struct polls *polls_free(struct polls *p)
{
	if (!p)
		return NULL;
	polls_leave_chunk(p);
	chunk_cursor_release(&p->chunks, &p->source);
	chunk_source_deinit(&p->source);
	clock_map_deinit(&p->map);
	free(p);
	return NULL;
}

int polls_extend(struct polls *p, uint64_t limit)
{
	p->limit = limit;
	return p->clocks_seen == p->info->clock_count ? 0 : polls_tie(p);
}

void polls_set_latest(struct polls *p, uint64_t latest)
{
	p->latest = latest;
}

/* Loads the next chunk that can be read. 1; 0: the end; -ENOMEM. */
static int polls_next_chunk(struct polls *p)
{
	int r;

	polls_leave_chunk(p);
	while ((r = chunk_cursor_enter(&p->chunks, &p->source, p->list, p->limit, NULL)) > 0) {
		r = chunk_cursor_load(&p->chunks, &p->source, NULL);
		if (r == 0)
			p->message = traced__capture__polls__unpack(
				&p->budget.allocator, p->chunks.window.len,
				(const uint8_t *)p->chunks.window.data);
		if (r == 0 && !p->message)
			r = budget_error(&p->budget);
		if (r == 0)
			return 1;
		if (r == -ENOMEM)
			return r;
		chunk_cursor_skip(&p->chunks);
		p->sum.damaged++;
	}
	chunk_list_forget(p->list, p->chunks.next);
	return r;
}

int polls_next(struct polls *p, const struct poll **ret, struct error *err)
{
	uint64_t bound;

	for (;;) {
		if (!p->message || p->next == p->message->n_polls) {
			int r = polls_next_chunk(p);

			if (r <= 0)
				return r < 0 ? error_errno(err, r, "can't read the polled files")
					     : r;
			continue;
		}
		p->poll.message = p->message->polls[p->next++];
		p->poll.ts = clock_map_apply(&p->map, p->poll.message->boot_ns, &bound);
		if (p->poll.ts > p->latest) {
			p->sum.impossible++;
			continue;
		}
		/* Keep the order monotonic even if the clock was stepped. */
		p->last_ts = p->poll.ts = MAX(p->poll.ts, p->last_ts);
		*ret = &p->poll;
		return 1;
	}
}

uint64_t polls_needs(const struct polls *p)
{
	return chunk_cursor_needs(&p->chunks, p->list);
}

void polls_sum(const struct polls *p, struct polls_sum *ret)
{
	*ret = p->sum;
}
