/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Perfetto trace: a head of rare packets, then bundles of each CPU's
 * events as they ripen, tasks as they are born, gaps as slices, a tail of
 * counts. Every packet is whole in itself, so that a file that was cut is a
 * valid prefix. Memory: one bundle a CPU.
 */
#include "export/perfetto/bundle.h"
#include "export/perfetto/packets.h"
#include "export/perfetto/schema.h"
#include "export/sinks.h"

#define CPUS_MAX 1024 /* the reader skips bundles of CPUs beyond */

struct sink_perfetto {
	struct sink sink;
	const struct trace_info *info;
	struct output *out;
	struct pf_schema *schema;
	struct pf_sched_layout layout;
	struct pf_bundle *bundles; /* by CPU */
	bool *loss_tracks;	   /* by CPU: its track was described */
	struct task **born;	   /* lives that begin within the trace, in order; borrowed tasks */
	size_t born_count, born_next;
	struct buf bundle;
	unsigned clock; /* FtraceClock; 0: boot */
};

static void perfetto_free(struct sink *s)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);

	for (uint32_t i = 0; p->bundles && i < CPUS_MAX; i++)
		pf_bundle_deinit(&p->bundles[i]);
	free(p->bundles);
	free(p->loss_tracks);
	free(p->born);
	buf_deinit(&p->bundle);
	pf_schema_free(p->schema);
	free(p);
}

/* The reader takes an absent clock for BOOTTIME and has no name for MONOTONIC. */
static const char *const perfetto_clocks[] = { "boot", "global", "local", "mono_raw", NULL };

static unsigned ftrace_clock(const char *trace_clock)
{
	static const unsigned numbers[] = { 0, 2, 3, 4 };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(trace_clock, perfetto_clocks[i]))
			return numbers[i];
	return 0;
}

static int by_birth(const void *a, const void *b)
{
	const struct task *x = *(struct task *const *)a, *y = *(struct task *const *)b;

	return x->from_ts < y->from_ts ? -1 : x->from_ts > y->from_ts;
}

static int write_first_tasks(struct sink_perfetto *p)
{
	size_t count, there = 0;
	struct task *const *all = task_table_all(p->info->tasks, &count);
	_cleanup_free_ struct task **first = calloc(count + 1, sizeof(*first));

	p->born = calloc(count + 1, sizeof(*p->born));
	if (!first || !p->born)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (all[i]->from_ts)
			p->born[p->born_count++] = all[i];
		else
			first[there++] = all[i];
	}
	qsort(p->born, p->born_count, sizeof(*p->born), by_birth);
	return pf_put_tasks(first, there, 0, &p->out->buf);
}

static int perfetto_open(struct sink **ret, const struct trace_info *info,
			 const struct export_options *o, struct output *out, struct error *err)
{
	struct pf_schema_env env = {
		.table = info->events,
		.symbols = event_table_symbols(info->events),
		.word_size = info->layout.word_size,
		.big_endian = info->layout.big_endian,
		.raw_addresses = o->raw_addresses,
	};
	struct sink_perfetto *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_errno(err, -ENOMEM, "perfetto");
	p->sink.ops = &sink_perfetto_ops;
	p->info = info;
	p->out = out;
	r = export_format_check_clock(&sink_perfetto_ops.format, info->header->trace_clock, err);
	if (r < 0)
		goto failed;
	p->clock = ftrace_clock(info->header->trace_clock);
	if (info->header->pointer_key.len)
		memcpy(env.pointer_key, info->header->pointer_key.data,
		       MIN(info->header->pointer_key.len, sizeof(env.pointer_key)));
	p->bundles = calloc(CPUS_MAX, sizeof(*p->bundles));
	p->loss_tracks = calloc(CPUS_MAX, sizeof(*p->loss_tracks));
	r = p->bundles && p->loss_tracks ? 0 : -ENOMEM;
	if (r >= 0)
		r = pf_schema_new(&p->schema, &env);
	if (r >= 0)
		r = pf_put_head(info, &out->buf);
	if (r >= 0)
		r = write_first_tasks(p);
	if (r < 0) {
		error_errno(err, r, "perfetto");
		goto failed;
	}
	pf_sched_layout_init(&p->layout, info->events, info->layout.big_endian);
	*ret = &p->sink;
	return 0;

failed:
	perfetto_free(&p->sink);
	return r;
}

static int write_bundle(struct sink_perfetto *p, struct pf_bundle *b)
{
	struct buf *symbols = pf_schema_new_symbols(p->schema);
	int r;

	if (!b->start_ts)
		return 0;
	buf_clear(&p->bundle);
	r = pf_bundle_finish(b, p->clock, &p->bundle);
	if (r >= 0)
		r = buf_error(symbols);
	if (r >= 0)
		r = pf_put_bundle(&p->bundle, symbols, &p->out->buf);
	buf_clear(symbols);
	return r;
}

/* Made at a CPU's first event: the header's count of CPUs is only a word. */
static struct pf_bundle *find_bundle(struct sink_perfetto *p, uint32_t cpu)
{
	struct pf_bundle *b = &p->bundles[cpu];

	return b->comms || pf_bundle_init(b, cpu) == 0 ? b : NULL;
}

static int write_births(struct sink_perfetto *p, uint64_t until)
{
	int r = 0;

	for (; r >= 0 && p->born_next < p->born_count && p->born[p->born_next]->from_ts <= until;
	     p->born_next++)
		r = pf_put_tasks(&p->born[p->born_next], 1, p->born[p->born_next]->from_ts,
				 &p->out->buf);
	return r;
}

static int perfetto_event(struct sink *s, const struct trace_event *ev, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	struct pf_bundle *b;
	int r;

	if (ev->cpu >= CPUS_MAX) {
		error_set(err, -EOVERFLOW, "a Perfetto trace can't have events of CPU %u", ev->cpu);
		return error_hint(err, "its readers take CPUs below %d: write .json or .txt",
				  CPUS_MAX);
	}
	b = find_bundle(p, ev->cpu);
	if (!b)
		return error_errno(err, -ENOMEM, "perfetto");
	r = pf_bundle_add(b, p->schema, &p->layout, ev);
	if (r == -EBADMSG) /* written as far as it goes; the caller counts damage */
		r = 0;
	if (r >= 0 && pf_bundle_is_ripe(b, ev->rec.ts)) {
		r = write_births(p, ev->rec.ts);
		if (r >= 0)
			r = write_bundle(p, b);
		if (r >= 0)
			r = output_settle(p->out);
	}
	return r < 0 ? error_errno(err, r, "perfetto") : 0;
}

/* A gap that no event ends lasts until the recording's end. */
static uint64_t gap_end(const struct sink_perfetto *p, uint64_t before_ts, uint64_t after_ts)
{
	if (after_ts != UINT64_MAX)
		return after_ts;
	return MAX(before_ts, p->info->end && !p->clock ? p->info->end->boot_ns : 0);
}

static int perfetto_loss(struct sink *s, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
			 uint64_t count, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	struct pf_bundle *b;
	int r;

	if (cpu >= CPUS_MAX)
		return 0;
	b = find_bundle(p, cpu);
	if (!b)
		return error_errno(err, -ENOMEM, "perfetto");
	/* The flag says that events are missing before the bundle: so this one ends here. */
	r = write_bundle(p, b);
	pf_bundle_lost(b);
	if (r >= 0 && !p->loss_tracks[cpu])
		r = pf_put_loss_track(cpu, &p->out->buf);
	p->loss_tracks[cpu] = true;
	if (r >= 0)
		r = pf_put_loss(cpu, before_ts, gap_end(p, before_ts, after_ts), count,
				&p->out->buf);
	if (r >= 0)
		r = output_settle(p->out);
	return r < 0 ? error_errno(err, r, "perfetto") : 0;
}

static int perfetto_close(struct sink *s, const struct export_result *result, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	int r = write_births(p, UINT64_MAX);

	for (uint32_t cpu = 0; r >= 0 && cpu < CPUS_MAX; cpu++)
		r = write_bundle(p, &p->bundles[cpu]);
	if (r >= 0)
		r = pf_put_tail(p->info, result, &p->out->buf);
	if (r >= 0)
		r = output_flush(p->out, true);
	return r < 0 ? error_errno(err, r, "perfetto") : 0;
}

const struct sink_ops sink_perfetto_ops = {
	.format = { "pftrace", ".pftrace", "Perfetto protobuf trace", perfetto_clocks },
	.open = perfetto_open,
	.event = perfetto_event,
	.loss = perfetto_loss,
	.close = perfetto_close,
	.free = perfetto_free,
};

const struct sink_ops sink_perfetto_gz_ops = {
	.format = { "pftrace.gz", ".pftrace.gz", "Perfetto protobuf trace, compressed",
		    perfetto_clocks },
	.gzip = true,
	.open = perfetto_open,
	.event = perfetto_event,
	.loss = perfetto_loss,
	.close = perfetto_close,
	.free = perfetto_free,
};
