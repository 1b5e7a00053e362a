/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/ledger.h"

#include <inttypes.h>
#include <string.h>

#include "base/plural.h"
#include "base/vec.h"

#define PHASE_START 0

static const Traced__Capture__CpuStats *stats_find_cpu(const Traced__Capture__Stats *stats,
						       uint32_t cpu)
{
	for (size_t i = 0; stats && i < stats->n_cpus; i++)
		if (stats->cpus[i]->cpu == cpu)
			return stats->cpus[i];
	return NULL;
}

static const Traced__Capture__Stats *stats_of_start(const struct trace_info *info)
{
	return info->stats_count && info->stats[0]->phase == PHASE_START ? info->stats[0] : NULL;
}

static const Traced__Capture__Stats *stats_of_end(const struct trace_info *info)
{
	const Traced__Capture__Stats *s =
		info->stats_count ? info->stats[info->stats_count - 1] : NULL;

	return s && s->phase != PHASE_START ? s : NULL;
}

/* Changes of one CPU's ring buffer during the recording. */
struct change {
	uint64_t written, overrun, other, unread, read;
	bool earlier; /* the ring held or had lost events before the recording began */
	bool anew;    /* the counts decreased */
};

static void change_get(struct change *ret, const Traced__Capture__CpuStats *from,
		       const Traced__Capture__CpuStats *to)
{
	static const Traced__Capture__CpuStats none;

	bool anew = from && (to->read < from->read || to->overrun < from->overrun);

	from = from && !anew ? from : &none;
	*ret = (struct change){
		.anew = anew,
		.overrun = to->overrun - from->overrun,
		.other = to->commit_overrun - from->commit_overrun + to->dropped - from->dropped,
		.unread = to->entries,
		.read = to->read - from->read,
		.earlier = from->entries || from->overrun || from->read,
	};
	ret->written = ret->overrun + ret->other + ret->unread + ret->read;
}

bool ledger_begins_late(const struct trace_info *info, uint32_t cpu)
{
	const Traced__Capture__CpuStats *from = stats_find_cpu(stats_of_start(info), cpu);

	return from && (from->overrun || from->read);
}

void ledger_totals_get(struct ledger_totals *ret, const struct trace_info *info)
{
	const Traced__Capture__Stats *from = stats_of_start(info), *to = stats_of_end(info);

	*ret = (struct ledger_totals){ .known = to };
	for (size_t i = 0; to && i < to->n_cpus; i++) {
		struct change c;

		change_get(&c, stats_find_cpu(from, to->cpus[i]->cpu), to->cpus[i]);
		ret->in_buffer += c.read;
		/* The kernel does not count an uncommitted event as written. */
		ret->written += c.read + to->cpus[i]->overrun;
	}
}

static int ledger_by_cpu(const void *a, const void *b)
{
	const struct ledger_cpu *x = a, *y = b;

	return x->row.cpu < y->row.cpu ? -1 : x->row.cpu > y->row.cpu;
}

static bool ledger_has(const struct ledger *l, size_t count, uint32_t cpu)
{
	struct ledger_cpu key = { .row.cpu = cpu };

	return count && bsearch(&key, l->cpus, count, sizeof(key), ledger_by_cpu);
}

/* known: rows that were there before, sorted. */
static void ledger_add(struct ledger *l, size_t known, uint32_t cpu)
{
	if (!ledger_has(l, known, cpu))
		l->cpus[l->count++] = (struct ledger_cpu){ .row.cpu = cpu };
}

int ledger_extend(struct ledger *l, const struct stream_index *index)
{
	const struct ring_index *ring = &index->rings[BUFFER_MAIN];
	const Traced__Capture__Stats *stats = stats_of_end(&index->info);
	size_t counted = stats ? stats->n_cpus : 0, known = l->count;

	if (vec_reserve_exact(l->cpus, known, ring->count + counted) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < ring->count; i++)
		if (!i || ring->cpus[i - 1].cpu != ring->cpus[i].cpu)
			ledger_add(l, known, ring->cpus[i].cpu);
	for (size_t i = 0; stats && i < counted; i++)
		if (!ring_index_has(ring, stats->cpus[i]->cpu))
			ledger_add(l, known, stats->cpus[i]->cpu);
	if (l->count)
		qsort(l->cpus, l->count, sizeof(*l->cpus), ledger_by_cpu);
	return 0;
}

void ledger_deinit(struct ledger *l)
{
	free(l->cpus);
	*l = (struct ledger){ 0 };
}

struct ledger_cpu *ledger_search(struct ledger *l, uint32_t cpu)
{
	struct ledger_cpu key = { .row.cpu = cpu };

	return bsearch(&key, l->cpus, l->count, sizeof(key), ledger_by_cpu);
}

void ledger_loss(struct ledger *l, const struct merge_item *item)
{
	struct ledger_cpu *c = ledger_find(l, item->event.cpu);

	if (!c)
		return;
	c->row.gaps++;
	c->damaged |= item->damaged;
	if (item->count == UINT64_MAX)
		c->unannounced = true;
	else
		c->announced += item->count;
}

void ledger_pass(struct ledger *l, const struct merge_item *item)
{
	struct ledger_cpu *c = ledger_find(l, item->event.cpu);

	if (!c)
		return;
	if (item->count == UINT64_MAX)
		c->unannounced = true;
	else
		c->passed += item->count;
}

/*
 * Losses whose place is known are in the part or not. Those after the last sub-buffer are in it if
 * it has no end.
 */
static int ledger_close_part(const struct ledger *l, struct ledger_cpu *c, const struct change *ch,
			     ledger_loss_func loss, void *userdata, struct error *err)
{
	const struct ledger_part *p = &l->part;
	bool open = !p->ends && (!p->cpus || cpu_set_has(p->cpus, c->row.cpu));
	uint64_t lost = ch->overrun + ch->other, placed = c->announced + c->passed, in;
	uint64_t late =
		open && !c->unannounced && !ch->earlier && lost > placed ? lost - placed : 0;
	struct ledger_row *row = &c->row;

	row->lost_overrun = c->announced + late;
	row->unread = open ? ch->unread : 0;
	in = row->events + row->lost_overrun + row->unread;
	row->written = MAX(ch->written, in);
	row->left_out = row->written - in;
	if (!late)
		return 0;
	row->gaps++;
	return loss(userdata, row->cpu, row->last_ts, late, err);
}

static int ledger_close_cpu(struct ledger_cpu *c, const struct change *ch,
			    struct stream_index *index, ledger_loss_func loss, void *userdata,
			    struct error *err)
{
	struct ledger_row *row = &c->row;
	uint64_t accounted = row->events + ch->overrun + ch->other + ch->unread;
	uint64_t lost = ch->overrun + ch->other;

	row->written = ch->written;
	row->lost_overrun = ch->overrun;
	row->lost_other = ch->other;
	row->unread = ch->unread;
	if (c->damaged && accounted < ch->written) {
		row->lost_other += ch->written - accounted;
		accounted = ch->written;
	}
	/* More events were read than the kernel counts: it reset its counts in between. */
	c->emptied = ch->anew || accounted > ch->written;
	if (c->emptied)
		row->written = accounted;
	else if (accounted != ch->written && !index->incomplete)
		stream_index_warn(index,
				  "the counts of CPU %u do not add up: the kernel wrote %" PRIu64
				  " events, %" PRIu64 " are in the file, %" PRIu64
				  " were lost, %" PRIu64 " not read",
				  row->cpu, ch->written, row->events, lost, ch->unread);
	/*
	 * Sub-buffers announce overruns that were found while reading. The other losses came after
	 * the last sub-buffer, or at an unknown place.
	 */
	if (c->unannounced || ch->earlier || lost <= c->announced)
		return 0;
	row->gaps++;
	return loss(userdata, row->cpu, row->last_ts, lost - c->announced, err);
}

/*
 * The kernel empties a ring when a module with recorded events is unloaded
 * (trace_module_remove_events()), or when somebody writes to "trace". Counts of imported files are
 * used unchanged.
 */
static void warn_of_emptied(const struct ledger *l, struct stream_index *index)
{
	unsigned count = 0;

	for (size_t i = 0; i < l->count; i++)
		count += l->cpus[i].emptied;
	if (!count)
		return;
	stream_index_warn(
		index,
		"the counts of %u CPU%s decreased, or are below the number of events read: the "
		"kernel resets them when it empties its ring buffers, for example when a module "
		"with recorded events is unloaded; the events removed then are not counted",
		count, plural_s(count));
	index->incomplete = true;
}

int ledger_close(struct ledger *l, struct stream_index *index, ledger_loss_func loss,
		 void *userdata, struct error *err)
{
	const Traced__Capture__Stats *from = stats_of_start(&index->info);
	const Traced__Capture__Stats *to = stats_of_end(&index->info);

	for (size_t i = 0; i < l->count; i++) {
		struct ledger_cpu *c = &l->cpus[i];
		const Traced__Capture__CpuStats *cpu = stats_find_cpu(to, c->row.cpu);
		struct change ch;
		int r;

		if (!cpu || (index->incomplete && !index->info.end)) {
			c->row.lost_overrun = c->announced;
			c->row.written = c->row.events + c->announced;
			/* Events left out count as far as they were read. */
			c->row.written += c->row.left_out;
			continue;
		}
		change_get(&ch, stats_find_cpu(from, c->row.cpu), cpu);
		r = l->part.is_part ? ledger_close_part(l, c, &ch, loss, userdata, err)
				    : ledger_close_cpu(c, &ch, index, loss, userdata, err);
		if (r < 0)
			return r;
	}
	warn_of_emptied(l, index);
	return 0;
}

void ledger_cut(struct ledger *l, struct ledger_row *rows)
{
	for (size_t i = 0; i < l->count; i++) {
		struct ledger_cpu *c = &l->cpus[i];

		rows[i] = (struct ledger_row){
			.cpu = c->row.cpu,
			.events = c->row.events - c->cut.events,
			.lost_overrun = c->announced - c->cut.announced,
			.gaps = c->row.gaps - c->cut.gaps,
		};
		rows[i].written = rows[i].events + rows[i].lost_overrun;
		c->cut = (struct ledger_cut){
			.events = c->row.events,
			.announced = c->announced,
			.gaps = c->row.gaps,
		};
	}
}

void ledger_rest(const struct ledger *l, struct ledger_row *rows)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct ledger_cpu *c = &l->cpus[i];

		rows[i] = c->row;
		rows[i].events -= c->cut.events;
		/* Announced losses are nearly always overruns, and at most all of those. */
		rows[i].lost_overrun -= MIN(rows[i].lost_overrun, c->cut.announced);
		rows[i].written -= MIN(rows[i].written, c->cut.events + c->cut.announced);
		rows[i].gaps -= c->cut.gaps;
	}
}
