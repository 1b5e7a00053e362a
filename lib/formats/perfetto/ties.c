/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/ties.h"

#include <string.h>

#include "formats/perfetto/packet.h"

#define TEXT_OF(string) ((struct text){ (string), (uint32_t)strlen(string) })

void pf_tie_cursor_init(struct pf_tie_cursor *c, const struct mark_feed *marks)
{
	*c = (struct pf_tie_cursor){ 0 };
	if (marks)
		c->origins = mark_feed_origins(marks, &c->count);
}

/* The earliest next tie over all files. NULL: none. */
static const struct clock_point *next_tie(struct pf_tie_cursor *c, size_t *ret_file)
{
	const struct clock_point *best = NULL;

	for (size_t i = 0; i < c->count; i++) {
		const struct clock_point *p = c->origins[i].points + c->next[i];

		if (c->origins[i].clock || c->next[i] >= c->origins[i].ties ||
		    (best && best->to <= p->to))
			continue;
		best = p;
		*ret_file = i;
	}
	return best;
}

int pf_put_ties(struct pf_tie_cursor *c, uint64_t before, uint32_t builtin, struct buf *out)
{
	const struct clock_point *p;
	size_t file = 0;
	int r = 0;

	while (r >= 0 && (p = next_tie(c, &file)) && p->to < before) {
		/* A tie that goes back would make readers distrust the trace clock. */
		if (!c->next[file] || p->to > p[-1].to)
			r = pf_put_clock_tie(PF_CLOCK_MERGED + (uint32_t)file, p->from, builtin,
					     p->to, out);
		c->next[file]++;
	}
	return r;
}

static int tie_put_instant(struct pf_marks *m, struct text name, uint64_t ts, struct buf *args,
			   struct buf *out)
{
	struct mark mark = { .phase = PHASE_INSTANT, .instant = 'g', .ts = ts };

	if (buf_error(args) < 0)
		return -ENOMEM;
	mark.part[PART_NAME] = name;
	mark.part[PART_CAT] = TEXT("clock_sync");
	mark.part[PART_ARGS] = (struct text){ args->data, (uint32_t)args->len };
	return pf_marks_put_shared(m, &mark, TEXT("clocks"), out);
}

static void tie_put_number(struct buf *args, const char *key, enum value_type type, int64_t value)
{
	value_put_u64(args, &TEXT_OF(key), type, (uint64_t)value);
}

static void tie_put_double(struct buf *args, const char *key, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	value_put_u64(args, &TEXT_OF(key), VALUE_DOUBLE, bits);
}

static int tie_put_file(struct pf_marks *m, const struct mark_origin *o,
			const struct clock_point *p, struct buf *out)
{
	_cleanup_buf_ struct buf args = BUF_INIT;

	value_put_text(&args, &TEXT("file"), TEXT_OF(o->name));
	value_put_text(&args, &TEXT("clock"), TEXT_OF(o->clock ?: p->id));
	tie_put_number(&args, "clock_ns", VALUE_UINT, (int64_t)p->from);
	tie_put_number(&args, "offset_ns", VALUE_INT, (int64_t)(p->to - p->from));
	tie_put_number(&args, "bound_ns", VALUE_UINT, (int64_t)p->bound);
	tie_put_number(&args, "worst_bound_ns", VALUE_UINT, (int64_t)o->bound);
	tie_put_number(&args, "ties", VALUE_UINT, (int64_t)o->ties);
	if (o->sum.drift_known) {
		tie_put_double(&args, "drift_ppb", o->sum.drift);
		tie_put_double(&args, "drift_bound_ppb", o->sum.drift_bound);
	}
	return tie_put_instant(m, TEXT("clock tied"), p->to, &args, out);
}

/* Syncs of `tracectl sync`, if the trace clock is the one they were taken by. */
static int tie_put_noted(struct pf_marks *m, const struct trace_info *info, struct buf *out)
{
	int r = 0;

	if (strcmp(info->header->trace_clock, "boot") != 0)
		return 0;
	for (size_t i = 0; r >= 0 && i < info->clock_count; i++) {
		const Traced__Capture__Clocks *c = info->clocks[i];
		_cleanup_buf_ struct buf args = BUF_INIT;
		uint64_t apart = c->sync_after_ns - c->sync_before_ns;

		if (!*c->sync_id || strcmp(c->sync_id, info->sync_id) == 0 ||
		    c->sync_after_ns < c->sync_before_ns)
			continue;
		value_put_text(&args, &TEXT("sync_id"), TEXT_OF(c->sync_id));
		tie_put_number(&args, "issue_boottime_ns", VALUE_UINT, (int64_t)c->sync_before_ns);
		tie_put_number(&args, "answer_boottime_ns", VALUE_UINT, (int64_t)c->sync_after_ns);
		tie_put_number(&args, "bound_ns", VALUE_UINT, (int64_t)((apart + 1) / 2));
		r = tie_put_instant(m, TEXT("clock sync"), c->sync_before_ns + apart / 2, &args,
				    out);
	}
	return r;
}

int pf_marks_put_ties(struct pf_marks *m, const struct sink_env *env, struct buf *out)
{
	struct pf_tie_cursor c;
	int r = tie_put_noted(m, env->info, out);

	pf_tie_cursor_init(&c, env->marks);
	for (size_t i = 0; r >= 0 && i < c.count; i++) {
		const struct mark_origin *o = &c.origins[i];
		/* There may be one per second for the machine's own clocks: one is enough. */
		size_t ties = o->clock ? MIN(o->ties, (size_t)1) : o->ties;

		for (size_t k = 0; r >= 0 && k < ties; k++)
			r = tie_put_file(m, o, &o->points[k], out);
	}
	return r == -ENOMEM ? r : buf_error(out);
}
