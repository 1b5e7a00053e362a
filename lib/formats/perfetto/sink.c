/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sink for the Perfetto trace: a head of rare packets, then bundles of each CPU's events, tasks
 * when they are born, gaps as slices, counts at the end. Each packet is complete, so a truncated
 * file is a valid prefix. Memory: one bundle per CPU, all within PF_BUNDLES_BYTES.
 */
#include "export/sink.h"
#include "export/segment.h"
#include "formats/perfetto/bundle.h"
#include "formats/perfetto/calls.h"
#include "formats/perfetto/compress.h"
#include "formats/perfetto/join.h"
#include "formats/perfetto/marks.h"
#include "formats/perfetto/mend.h"
#include "formats/perfetto/op.h"
#include "formats/perfetto/origin.h"
#include "formats/perfetto/packets.h"
#include "formats/perfetto/polls.h"
#include "formats/perfetto/ties.h"
#include "trace/ledger.h"

#define CPUS_MAX 1024 /* readers skip bundles of higher CPUs */

struct sink_perfetto {
	struct sink sink;
	const struct sink_env *env;
	const struct trace_info *info;
	struct output *out;
	struct buf *to;			/* receives packets: the output's buffer, or: */
	struct buf packets;		/* packets to compress */
	uint64_t compressed;		/* size of the packets already compressed */
	uint32_t scale;			/* latest compression ratio, in 65536ths */
	uint64_t waiting;		/* with segments: bytes of events in bundles */
	struct pf_compressor *compress; /* NULL: no compression */
	struct pf_schema *schema;
	struct pf_sched_layout layout;
	struct pf_bundle *bundles; /* by CPU */
	uint32_t cpus_end;	   /* all CPUs with a bundle are below */
	uint32_t bundle_count;	   /* number of bundles */
	size_t bundle_max;	   /* limit of each */
	struct pf_bundle *current; /* bundle of the last event; NULL: none */
	bool *loss_tracks;	   /* by CPU: the track was described */
	struct pf_tasks tasks;
	const struct perfetto_options *options;
	bool raw_addresses;
	uint32_t segment;  /* number of the file, from 0 */
	uint64_t raw_from; /* begin of the file, in bytes of the output */
	uint64_t first_ts; /* of an event; 0: none */
	uint64_t last_ts;
	bool segments;	      /* this file may be one of several */
	uint64_t clocks_from; /* snapshots after this time are not yet written */
	struct pf_marks marks;
	struct pf_polls polls;
	struct pf_calls calls;
	unsigned clock;		      /* FtraceClock; 0: boot */
	enum pf_clock packet_clock;   /* clock of packets */
	bool tied;		      /* readers can convert the trace clock */
	uint64_t tie_ts, tie_boot_ns; /* the tie by which they do; 0: none */
	const struct event *print;
};

static void perfetto_free(struct sink *s)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);

	for (uint32_t i = 0; p->bundles && i < p->cpus_end; i++)
		pf_bundle_deinit(&p->bundles[i]);
	free(p->bundles);
	free(p->loss_tracks);
	pf_tasks_deinit(&p->tasks);
	pf_marks_deinit(&p->marks);
	pf_polls_deinit(&p->polls);
	pf_calls_deinit(&p->calls);
	buf_deinit(&p->packets);
	pf_compressor_free(p->compress);
	pf_schema_free(p->schema);
	free(p);
}

/* Fewer bytes don't predict the compression ratio. */
#define SCALE_BYTES (16U << 10)

static int perfetto_compress_all(struct sink_perfetto *p)
{
	size_t raw = p->packets.len, before = p->out->buf.len;
	int r = p->compress ? pf_compress(p->compress, &p->packets, &p->out->buf) : 0;

	p->compressed += raw;
	if (raw >= SCALE_BYTES)
		p->scale = (uint32_t)((((uint64_t)p->out->buf.len - before) << 16) / raw);
	return r;
}

/* Call after each packet. */
static int perfetto_settle(struct sink_perfetto *p)
{
	int r = p->packets.len >= PF_COMPRESS_BYTES ? perfetto_compress_all(p) : 0;

	return r < 0 ? r : output_settle(p->out);
}

/* Readers take a missing clock for BOOTTIME and have no name for MONOTONIC. */
static const char *const perfetto_clocks[] = { "boot", "global", "local", "mono_raw", NULL };

static void perfetto_find_clock(struct sink_perfetto *p, const char *trace_clock)
{
	static const struct {
		unsigned ftrace;
		enum pf_clock packet;
	} clocks[] = {
		{ 0, PF_CLOCK_BOOT },
		{ 2, PF_CLOCK_TRACE },
		{ 3, PF_CLOCK_TRACE },
		{ 4, PF_CLOCK_MONO_RAW },
	};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		if (strcmp(trace_clock, perfetto_clocks[i]) != 0)
			continue;
		p->clock = clocks[i].ftrace;
		p->packet_clock = clocks[i].packet;
	}
	p->tied = p->packet_clock != PF_CLOCK_TRACE;
}

/* The recorder writes its mark right after it read BOOTTIME for the start. */
static uint64_t perfetto_mark_boot_ns(const struct trace_info *info)
{
	if (info->end && info->end->start_boot_ns)
		return info->end->start_boot_ns;
	return info->clock_count && info->clocks[0]->n_readings
		       ? info->clocks[0]->readings[0]->boot_before_ns
		       : 0;
}

static int perfetto_tie(struct sink_perfetto *p, uint64_t ts, uint64_t boot_ns)
{
	p->tied = true;
	p->tie_ts = ts;
	p->tie_boot_ns = boot_ns;
	return pf_put_clock_tie(PF_CLOCK_TRACE, ts, PF_BUILTIN_BOOTTIME, boot_ns, p->to);
}

/* Uses the kernel's counts, which have both clocks; without any, the clocks count as equal. */
static int perfetto_tie_without_mark(struct sink_perfetto *p, uint64_t ts)
{
	for (size_t i = p->info->stats_count; i-- > 0;) {
		const Traced__Capture__Stats *s = p->info->stats[i];

		if (s->boot_ns && s->n_cpus && s->cpus[0]->now_ns)
			return perfetto_tie(p, s->cpus[0]->now_ns, s->boot_ns);
	}
	return perfetto_tie(p, ts, ts);
}

static int perfetto_tie_with_mark(struct sink_perfetto *p, const struct trace_event *ev)
{
	const char *id = p->info->sync_id;
	uint64_t boot_ns;

	if (!ev->desc || ev->desc != p->print || !*id ||
	    !memmem(ev->rec.data, ev->rec.len, id, strlen(id)))
		return 0;
	boot_ns = perfetto_mark_boot_ns(p->info);
	return boot_ns ? perfetto_tie(p, ev->rec.ts, boot_ns) : 0;
}

/* Time limit for ClockSnapshots written at ts: with several files, each gets those of its time. */
static uint64_t perfetto_clocks_until(const struct sink_perfetto *p, uint64_t ts)
{
	if (!p->segments || ts == UINT64_MAX)
		return UINT64_MAX;
	if (!p->tied)
		return 0;
	return p->tie_ts ? ts - p->tie_ts + p->tie_boot_ns : ts;
}

/*
 * Writes all tasks alive at last_ts, at time 0: a packet without a time is for readers as late as
 * the latest one before it, of any machine.
 */
static int perfetto_write_first_tasks(struct sink_perfetto *p)
{
	int r = pf_tasks_learn(&p->tasks);
	struct task *const *all;
	size_t count;

	if (r < 0)
		return r;
	all = pf_tasks_there(&p->tasks, p->last_ts, &count);
	for (size_t at = 0; r >= 0 && at < count; at += PF_TASKS_PER_PACKET) {
		r = pf_put_tasks(p->tasks.table, all + at,
				 MIN(count - at, (size_t)PF_TASKS_PER_PACKET), 0, PF_CLOCK_BOOT,
				 p->to);
		if (r >= 0)
			r = perfetto_settle(p);
	}
	return r;
}

/* Writes everything before a segment's first event. */
static int perfetto_begin_segment(struct sink_perfetto *p)
{
	uint32_t scale = p->scale;
	int r = pf_put_head(p->env, p->segment, perfetto_clocks_until(p, p->last_ts),
			    &p->clocks_from, p->to);

	if (r >= 0)
		r = pf_put_origin(p->info, p->options->legacy_generic, p->raw_addresses, p->to);
	if (r >= 0 && p->tie_ts)
		r = pf_put_clock_tie(PF_CLOCK_TRACE, p->tie_ts, PF_BUILTIN_BOOTTIME, p->tie_boot_ns,
				     p->to);
	if (r >= 0)
		r = perfetto_write_first_tasks(p);
	if (r >= 0)
		r = pf_put_start(p->info, p->to);
	/* From here on only events are held back, and the ratio is theirs. */
	if (r >= 0)
		r = perfetto_compress_all(p);
	p->scale = scale;
	return r;
}

static int perfetto_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	const struct trace_info *info = env->info;
	const struct export_options *o = env->options;
	struct output *out = env->out;
	struct pf_schema_env schema_env = {
		.table = info->events,
		.word_size = info->layout.word_size,
		.big_endian = info->layout.big_endian,
		.raw_addresses = o->raw_addresses,
		.legacy_generic = o->perfetto.legacy_generic,
		.generic_graph = pf_calls_wanted(info),
	};
	struct sink_perfetto *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_errno(err, -ENOMEM, "can't write the trace");
	p->env = env;
	p->info = info;
	p->out = out;
	p->options = &o->perfetto;
	p->raw_addresses = o->raw_addresses;
	p->segments = segment_wanted(&o->rotate);
	p->tasks.table = info->tasks;
	perfetto_find_clock(p, info->header->trace_clock);
	pf_marks_init(&p->marks, p->packet_clock, info->tasks);
	if (info->sampler) {
		p->marks.perf.event = info->sampler->event;
		p->marks.perf.hz = info->sampler->hz;
	}
	p->print = event_table_find_name(info->events, "ftrace", "print");
	p->bundles = calloc(CPUS_MAX, sizeof(*p->bundles));
	p->loss_tracks = calloc(CPUS_MAX, sizeof(*p->loss_tracks));
	r = p->bundles && p->loss_tracks ? 0 : -ENOMEM;
	if (r >= 0 && o->perfetto.compression != PERFETTO_PLAIN)
		r = pf_compressor_new(&p->compress, o->perfetto.compression);
	p->to = p->compress ? &p->packets : &out->buf;
	p->scale = 1 << 15; /* assumed until measured */
	if (r >= 0)
		r = pf_schema_new(&p->schema, &schema_env);
	if (r >= 0 && schema_env.generic_graph)
		p->calls = (struct pf_calls){ .info = info, .printer = p->schema->printer };
	if (r >= 0)
		r = perfetto_begin_segment(p);
	if (r < 0) {
		perfetto_free(&p->sink);
		return error_errno(err, r, "can't write the trace");
	}
	pf_sched_layout_init(&p->layout, info->events, info->layout.big_endian,
			     o->perfetto.plain_sched);
	*ret = &p->sink;
	return 0;
}

static int perfetto_write_bundle(struct sink_perfetto *p, struct pf_bundle *b)
{
	int r;

	if (!b->start_ts)
		return 0;
	p->first_ts = MIN(p->first_ts ?: b->start_ts, b->start_ts);
	if (p->segments)
		p->waiting -= pf_bundle_bytes(b);
	r = p->tied ? 0 : perfetto_tie_without_mark(p, b->start_ts);
	return r < 0 ? r : pf_bundle_finish(b, p->clock, p->schema, p->to);
}

/* Divides PF_BUNDLES_BYTES by the CPUs. There may be more than the header says. */
static void perfetto_share_bytes(struct sink_perfetto *p)
{
	uint32_t online = MIN(p->info->header->cpus_online, (uint32_t)CPUS_MAX);

	p->bundle_max = MIN(PF_BUNDLES_BYTES / MAX(MAX(online, p->bundle_count), 1U),
			    (uint32_t)PF_BUNDLE_BYTES);
}

/* Created at a CPU's first event: the header's number of CPUs is not trusted. */
static int perfetto_find_bundle(struct sink_perfetto *p, uint32_t cpu, struct pf_bundle **ret,
				struct error *err)
{
	struct pf_bundle *b;

	if (cpu >= CPUS_MAX) {
		error_set(err, -EOVERFLOW, "a Perfetto trace can't have events of CPU %u", cpu);
		return error_hint(err, "its readers take CPUs below %d: write .json or .txt",
				  CPUS_MAX);
	}
	b = &p->bundles[cpu];
	if (!b->begun) {
		pf_bundle_init(b, cpu, ledger_begins_late(p->info, cpu));
		p->bundle_count++;
		perfetto_share_bytes(p);
	}
	p->cpus_end = MAX(p->cpus_end, cpu + 1);
	*ret = p->current = b;
	return 0;
}

static int perfetto_write_births(struct sink_perfetto *p, uint64_t until)
{
	int r = pf_tasks_see_births(&p->tasks, p->schema->births, p->schema->birth_count);
	struct task *t;

	p->schema->birth_count = 0;
	if (r >= 0)
		r = pf_tasks_learn(&p->tasks);
	while (r >= 0 && (t = pf_tasks_next(&p->tasks, until))) {
		uint64_t ts = pf_tasks_written_at(&p->tasks, t);

		if (!p->tied)
			r = perfetto_tie_without_mark(p, ts);
		if (r >= 0)
			r = pf_put_tasks(p->tasks.table, &t, 1, ts, p->packet_clock, p->to);
		if (r >= 0)
			r = perfetto_settle(p);
	}
	return r;
}

static int perfetto_write_renames(struct sink_perfetto *p, uint64_t until)
{
	const struct task *t;
	uint64_t ts;
	int r = 0;

	while (r >= 0 && (t = pf_tasks_next_rename(&p->tasks, until, &ts))) {
		if (!p->tied)
			r = perfetto_tie_without_mark(p, ts);
		if (r >= 0)
			r = pf_put_rename(t, ts, p->packet_clock, p->to);
		if (r >= 0)
			r = perfetto_settle(p);
	}
	return r;
}

/* Writes the counters of marks for which events have no room. */
static int perfetto_write_counters(struct sink_perfetto *p)
{
	struct pf_schema *s = p->schema;
	_cleanup_buf_ struct buf args = BUF_INIT;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < s->counter_count; i++) {
		const struct pf_noted_counter *c = &s->counters[i];
		struct mark mark = { .phase = PHASE_COUNTER, .pid = c->pid, .ts = c->ts };
		uint64_t bits;

		memcpy(&bits, &c->value, sizeof(bits));
		buf_clear(&args);
		value_put_u64(&args, &TEXT("value"), VALUE_DOUBLE, bits);
		mark.part[PART_NAME] =
			(struct text){ s->counter_names.data + c->at, (uint32_t)c->len };
		mark.part[PART_ARGS] = (struct text){ args.data, (uint32_t)args.len };
		r = buf_error(&args);
		if (r >= 0 && !p->tied)
			r = perfetto_tie_without_mark(p, c->ts);
		if (r >= 0)
			r = pf_marks_put(&p->marks, &mark, p->to);
		if (r >= 0)
			r = perfetto_settle(p);
	}
	s->counter_count = 0;
	buf_clear(&s->counter_names);
	return r;
}

/* Writes tasks, their names and clock readings that became known, up to `until`. */
static int perfetto_write_news(struct sink_perfetto *p, uint64_t until, bool last)
{
	int r = pf_put_clocks(p->info, &p->clocks_from, perfetto_clocks_until(p, until), p->to);

	/* The trace's event of a task's birth may follow. */
	if (!last)
		until = p->last_ts - MIN(p->last_ts, PF_BIRTH_NS);
	if (r >= 0)
		r = perfetto_write_births(p, until);
	if (r >= 0)
		r = perfetto_write_counters(p);
	return r < 0 ? r : perfetto_write_renames(p, until);
}

static _noinline_ int perfetto_write_ripe(struct sink_perfetto *p, struct pf_bundle *b,
					  uint64_t now_ts)
{
	int r = perfetto_write_news(p, now_ts, false);

	if (r >= 0)
		r = perfetto_write_bundle(p, b);
	return r >= 0 ? perfetto_settle(p) : r;
}

static _noinline_ int perfetto_call(struct sink_perfetto *p, const struct trace_event *ev)
{
	int r = p->tied ? 0 : perfetto_tie_without_mark(p, ev->rec.ts);

	if (r >= 0)
		r = pf_calls_put(&p->calls, &p->marks, ev, p->to);
	return r < 0 ? r : perfetto_settle(p);
}

_hot_ static int perfetto_event(struct sink *s, const struct trace_event *ev, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	struct pf_bundle *b = p->current;
	int r = likely(b && b->cpu == ev->cpu) ? 0 : perfetto_find_bundle(p, ev->cpu, &b, err);

	if (unlikely(r < 0))
		return r;
	p->last_ts = MAX(p->last_ts, ev->rec.ts);
	if (unlikely(!p->tied) && perfetto_tie_with_mark(p, ev) < 0)
		return error_errno(err, -ENOMEM, "can't write the trace");
	if (unlikely(p->segments))
		p->waiting -= pf_bundle_bytes(b);
	r = pf_bundle_add(b, p->schema, &p->layout, ev);
	if (unlikely(p->segments))
		p->waiting += pf_bundle_bytes(b);
	if (r == -EBADMSG) /* written as far as valid; the caller counts damage */
		r = 0;
	if (unlikely(r >= 0 && p->calls.info && ev->desc && ev->desc->funcgraph))
		r = perfetto_call(p, ev);
	if (unlikely(r >= 0 && pf_bundle_is_ripe(b, p->bundle_max, ev->rec.ts)))
		r = perfetto_write_ripe(p, b, ev->rec.ts);
	return unlikely(r < 0) ? error_errno(err, r, "can't write the trace") : 0;
}

/* A gap without a following event lasts until the recording's end. */
static uint64_t perfetto_gap_end(const struct sink_perfetto *p, uint64_t before_ts,
				 uint64_t after_ts)
{
	if (after_ts != UINT64_MAX)
		return after_ts;
	return MAX(before_ts, p->info->end && !p->clock ? p->info->end->boot_ns : 0);
}

static int perfetto_loss(struct sink *s, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
			 uint64_t count, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	struct pf_bundle *b = NULL;
	int r;

	if (cpu >= CPUS_MAX)
		return 0;
	r = perfetto_find_bundle(p, cpu, &b, err);
	if (!b)
		return r;
	/* The flag means a loss before the bundle: end the current one. */
	r = perfetto_write_bundle(p, b);
	pf_bundle_lost(b, count);
	if (r >= 0 && !p->tied)
		r = perfetto_tie_without_mark(p, perfetto_gap_end(p, before_ts, after_ts));
	if (r >= 0 && !p->loss_tracks[cpu])
		r = pf_put_loss_track(cpu, p->to);
	p->loss_tracks[cpu] = true;
	if (r >= 0)
		r = pf_put_loss(cpu, before_ts, perfetto_gap_end(p, before_ts, after_ts), count,
				p->packet_clock, p->to);
	if (r >= 0)
		r = perfetto_settle(p);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static int perfetto_mark(struct sink *s, const struct mark *mark, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	int r = p->tied || !mark->ts ? 0 : perfetto_tie_without_mark(p, mark->ts);

	if (r >= 0)
		r = pf_marks_put(&p->marks, mark, p->to);
	if (r >= 0)
		r = perfetto_settle(p);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static int perfetto_poll(struct sink *s, const struct poll *poll, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	int r = p->tied ? 0 : perfetto_tie_without_mark(p, poll->ts);

	if (r >= 0)
		r = pf_polls_put(&p->polls, &p->marks, poll, p->to);
	if (r >= 0)
		r = perfetto_settle(p);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static uint64_t perfetto_marks_left_out(struct sink *s)
{
	return container_of(s, struct sink_perfetto, sink)->marks.left_out;
}

static int perfetto_warn(struct sink *s, struct stream_index *index)
{
	return pf_marks_warn(&container_of(s, struct sink_perfetto, sink)->marks, index);
}

static uint64_t perfetto_bytes_before(const struct sink_perfetto *p)
{
	return p->compress ? p->compressed + p->packets.len
			   : p->out->raw_bytes + p->to->len - p->raw_from;
}

/* last: of the file. */
static int perfetto_write_all(struct sink_perfetto *p, uint64_t until, bool last)
{
	int r = perfetto_write_news(p, until, last);

	if (r >= 0)
		r = pf_marks_put_names(&p->marks, p->tied, p->to);
	for (uint32_t cpu = 0; r >= 0 && cpu < p->cpus_end; cpu++) {
		r = perfetto_write_bundle(p, &p->bundles[cpu]);
		if (r >= 0)
			r = perfetto_settle(p);
	}
	return r;
}

static int perfetto_sync(struct sink *s, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	int r = perfetto_write_all(p, UINT64_MAX, false);

	if (r >= 0)
		r = perfetto_compress_all(p);
	pf_tasks_forget(&p->tasks, p->last_ts);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static int perfetto_put_end(struct sink_perfetto *p)
{
	/* Readers know the clock of a sequence in its own packets only. */
	if (p->first_ts && p->packet_clock == PF_CLOCK_TRACE)
		return pf_put_end(p->info, p->first_ts - p->tie_ts + p->tie_boot_ns, PF_CLOCK_BOOT,
				  p->to);
	return pf_put_end(p->info, p->first_ts, p->packet_clock, p->to);
}

static int perfetto_end_segment(struct sink_perfetto *p, const struct export_result *result,
				bool last)
{
	int r = perfetto_write_all(p, last ? UINT64_MAX : p->last_ts, true);

	if (r >= 0 && last)
		r = pf_put_origin_end(p->info, result, !p->segment, p->to);
	if (r >= 0 && last)
		r = perfetto_put_end(p);
	if (r >= 0)
		r = pf_put_tail(p->info, result, last, perfetto_bytes_before(p), p->to);
	return r < 0 ? r : perfetto_compress_all(p);
}

static uint64_t perfetto_held(const struct sink *s)
{
	const struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);

	return p->compress ? (p->waiting + p->packets.len) * p->scale >> 16 : p->waiting;
}

static int perfetto_cut(struct sink *s, const struct export_result *result, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	int r = perfetto_end_segment(p, result, false);

	if (r >= 0)
		r = output_cut(p->out, false);
	if (p->env->followed)
		pf_tasks_forget(&p->tasks, p->last_ts);
	p->segment++;
	p->compressed = 0;
	p->raw_from = p->out->raw_bytes;
	for (uint32_t cpu = 0; cpu < p->cpus_end; cpu++)
		if (p->bundles[cpu].begun)
			pf_bundle_restart(&p->bundles[cpu]);
	memset(p->loss_tracks, 0, CPUS_MAX * sizeof(*p->loss_tracks));
	pf_schema_restart(p->schema);
	pf_marks_restart(&p->marks);
	if (r >= 0)
		r = perfetto_begin_segment(p);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static int perfetto_close(struct sink *s, const struct export_result *result, struct error *err)
{
	struct sink_perfetto *p = container_of(s, struct sink_perfetto, sink);
	int r = p->segment ? 0 : pf_marks_put_ties(&p->marks, p->env, p->to);

	if (r >= 0)
		r = perfetto_end_segment(p, result, true);
	if (r >= 0)
		r = output_flush(p->out, true);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

/* Shared by the plain and the compressed format. */
#define OPEN_HINT "open it in https://ui.perfetto.dev"
#define OPS                                                                                        \
	.open = perfetto_open, .event = perfetto_event, .loss = perfetto_loss,                     \
	.mark = perfetto_mark, .poll = perfetto_poll, .marks_left_out = perfetto_marks_left_out,   \
	.warn = perfetto_warn, .sync = perfetto_sync, .cut = perfetto_cut, .held = perfetto_held,  \
	.shows_state = true, .close = perfetto_close, .free = perfetto_free

const struct sink_ops sink_perfetto_ops = {
	.format = {
		.name = "pftrace",
		.extension = ".pftrace",
		.summary = "Perfetto protobuf trace",
		.open_hint = OPEN_HINT,
		.clocks = perfetto_clocks,
		.perfetto_layout = true,
		.frames_by_address = true,
		.packings = 1U << PERFETTO_DEFLATE | 1U << PERFETTO_ZSTD,
		.mend = pf_mend,
		.join = perfetto_join,
		.part = "pftrace",
	},
	OPS,
};

const struct sink_ops sink_perfetto_gz_ops = {
	.format = {
		.name = "pftrace.gz",
		.extension = ".pftrace.gz",
		.summary = "Perfetto protobuf trace, compressed",
		.open_hint = OPEN_HINT,
		.join = perfetto_join,
		.part = "pftrace",
		.clocks = perfetto_clocks,
		.perfetto_layout = true,
		.frames_by_address = true,
	},
	.gzip = true,
	OPS,
};
