/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/other_data.h"

#include <time.h>

#include "base/io.h"
#include "base/json.h"
#include "export/mark_feed.h"
#include "formats/json/mark.h"
#include "marks/clock_map.h"
#include "marks/value_json.h"
#include "trace/syscall_name.h"

/* Above the largest number on most machines: 32-bit Arm has a few more, mips begins at 4000. */
#define SYSCALLS_MAX 512

static const struct {
	clockid_t id;
	const char *name;
} clock_names[] = {
	{ CLOCK_REALTIME, "REALTIME" },
	{ CLOCK_MONOTONIC, "MONOTONIC" },
	{ CLOCK_MONOTONIC_RAW, "MONOTONIC_RAW" },
	{ CLOCK_BOOTTIME, "BOOTTIME" },
	{ CLOCK_TAI, "TAI" },
};

static const char *other_data_clock_name(uint32_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(clock_names); i++)
		if (clock_names[i].id == (clockid_t)id)
			return clock_names[i].name;
	return NULL;
}

/* Drift in ns per second: one clock advanced by `went`, the other by `base`; base 0: unknown. */
static void other_data_put_drift(struct buf *b, uint64_t went, uint64_t base)
{
	json_put_key(b, "drift_ppb");
	if (base)
		buf_printf(b, "%.3f", ((double)went / (double)base - 1) * 1e9);
	else
		buf_puts(b, "null");
}

static uint64_t other_data_boot_of(const Traced__Capture__ClockReading *r)
{
	return r->boot_before_ns + (r->boot_after_ns - r->boot_before_ns) / 2;
}

/* Change of the offset since the start. */
static void other_data_put_change(struct buf *b, const Traced__Capture__ClockReading *start,
				  const Traced__Capture__ClockReading *r)
{
	uint64_t span = other_data_boot_of(r) - other_data_boot_of(start),
		 went = r->value_ns - start->value_ns;
	int64_t change = (int64_t)(went - span);
	uint64_t bounds =
		r->boot_after_ns - r->boot_before_ns + start->boot_after_ns - start->boot_before_ns;

	if (clock_is_step(change < 0 ? -(uint64_t)change : (uint64_t)change, span, bounds))
		json_put_i64_key(b, "stepped_ns", change);
	else
		other_data_put_drift(b, went, span);
}

/* value = BOOTTIME + offset, within ±bound. */
static void other_data_put_reading(struct buf *b, const struct trace_info *info,
				   const Traced__Capture__ClockReading *r, uint32_t phase)
{
	const Traced__Capture__ClockReading *start =
		phase ? clock_map_reading(info->clocks[0], (clockid_t)r->clock) : NULL;
	uint64_t bracket = r->boot_after_ns - r->boot_before_ns, boot = other_data_boot_of(r);
	const char *name = other_data_clock_name(r->clock);

	if (!name || r->boot_after_ns < r->boot_before_ns)
		return;
	json_put_comma(b);
	buf_puts(b, "\n{");
	json_put_string_key(b, "clock", name);
	json_put_string_key(b, "when", phase == 0 ? "start" : "end");
	json_put_u64_key(b, "boottime_ns", boot);
	json_put_i64_key(b, "offset_ns", (int64_t)(r->value_ns - boot));
	json_put_u64_key(b, "bound_ns", (bracket + 1) / 2);
	if (start && boot > other_data_boot_of(start))
		other_data_put_change(b, start, r);
	buf_puts(b, "}");
}

/* Readings of start and end; the capture stream has those in between. */
static void other_data_put_clocks(struct buf *b, const struct trace_info *info)
{
	json_put_key(b, "clock_offsets");
	buf_puts(b, "[");
	for (size_t i = 0; i < info->clock_count; i++) {
		const Traced__Capture__Clocks *c = info->clocks[i];

		if (i && i + 1 < info->clock_count)
			continue;
		for (size_t j = 0; j < c->n_readings; j++)
			other_data_put_reading(b, info, c->readings[j], i == 0 ? 0 : 2);
	}
	buf_puts(b, "]");
}

static void other_data_put_ledger(struct buf *b, const struct export_result *result)
{
	json_put_key(b, "cpus");
	buf_puts(b, "[");
	for (size_t i = 0; i < result->ledger_count; i++) {
		const struct ledger_row *row = &result->ledger[i];

		json_put_comma(b);
		buf_puts(b, "\n{");
		json_put_u64_key(b, "cpu", row->cpu);
		json_put_u64_key(b, "written", row->written);
		json_put_u64_key(b, "events", row->events);
		json_put_u64_key(b, "lost_overrun", row->lost_overrun);
		json_put_u64_key(b, "lost_other", row->lost_other);
		json_put_u64_key(b, "gaps", row->gaps);
		json_put_u64_key(b, "unread", row->unread);
		if (row->left_out)
			json_put_u64_key(b, "left_out", row->left_out);
		if (row->samples_lost)
			json_put_u64_key(b, "samples_lost", row->samples_lost);
		buf_puts(b, "}");
	}
	buf_puts(b, "]");
}

static void other_data_put_words(struct buf *b, const char *key, char *const *words, size_t count)
{
	json_put_key(b, key);
	buf_puts(b, "[");
	for (size_t i = 0; i < count; i++) {
		json_put_comma(b);
		json_put_string(b, words[i]);
	}
	buf_puts(b, "]");
}

static void other_data_put_probes(struct buf *b, const Traced__Capture__Request *r)
{
	json_put_key(b, "probes");
	buf_puts(b, "[");
	for (size_t i = 0; i < r->n_probes; i++) {
		json_put_comma(b);
		buf_puts(b, "{");
		json_put_string_key(b, "kind", r->probes[i]->kind);
		json_put_string_key(b, "definition", r->probes[i]->definition);
		if (r->probes[i]->filter[0])
			json_put_string_key(b, "filter", r->probes[i]->filter);
		buf_puts(b, "}");
	}
	buf_puts(b, "]");
}

static void other_data_put_request(struct buf *b, const Traced__Capture__Request *r)
{
	json_put_key(b, "request");
	buf_puts(b, "{");
	json_put_string_key(b, "name", r->name);
	json_put_key(b, "events");
	buf_puts(b, "[");
	for (size_t i = 0; i < r->n_events; i++) {
		json_put_comma(b);
		buf_puts(b, "{");
		json_put_string_key(b, "events", r->events[i]->glob);
		if (r->events[i]->filter[0])
			json_put_string_key(b, "filter", r->events[i]->filter);
		buf_puts(b, "}");
	}
	buf_puts(b, "]");
	other_data_put_words(b, "command", r->command, r->n_command);
	if (r->n_probes)
		other_data_put_probes(b, r);
	if (r->n_triggers)
		other_data_put_words(b, "triggers", r->triggers, r->n_triggers);
	if (r->n_sql) {
		other_data_put_words(b, "sql_names", r->sql_names, r->n_sql_names);
		other_data_put_words(b, "sql", r->sql, r->n_sql);
	}
	json_put_string_key(b, "tracer", r->tracer);
	json_put_u64_key(b, "duration_ns", r->duration_ns);
	json_put_u64_key(b, "buffer_bytes_per_cpu", r->buffer_bytes);
	json_put_bool_key(b, "ring", r->ring);
	if (r->cpus[0])
		json_put_string_key(b, "cpu_list", r->cpus);
	buf_puts(b, "}");
}

static const char *other_data_end_reason(const Traced__Capture__End *end)
{
	static const char *const names[] = {
		"stopped",  "duration", "command exited", "snapshot", "extracted",
		"shutdown", "no space", "failed",	  "trigger",
	};

	if (!end)
		return "not closed";
	return (size_t)end->reason < ARRAY_SIZE(names) ? names[end->reason] : "unknown";
}

/* Start of the recording in ISO 8601; "" if unknown. */
static void other_data_start_time(const struct trace_info *info, char text[static 40])
{
	const Traced__Capture__Clocks *c = info->clock_count ? info->clocks[0] : NULL;

	text[0] = '\0';
	for (size_t i = 0; c && i < c->n_readings; i++) {
		time_t t = (time_t)(c->readings[i]->value_ns / NSEC_PER_SEC);
		struct tm tm;

		if (c->readings[i]->clock != CLOCK_REALTIME || !gmtime_r(&t, &tm))
			continue;
		strftime(text, 40, "%Y-%m-%dT%H:%M:%SZ", &tm);
		return;
	}
}

static void other_data_put_machine(struct buf *b, const struct trace_info *info)
{
	const Traced__Capture__Header *h = info->header;
	char uuid[33] = "", started[40];

	for (size_t i = 0; i < h->uuid.len && i < 16; i++)
		snprintf(uuid + 2 * i, 3, "%02x", h->uuid.data[i]);
	other_data_start_time(info, started);
	json_put_string_key(b, "recorder", h->program);
	json_put_string_key(b, "recording", uuid);
	json_put_string_key(b, "started", started);
	json_put_string_key(b, "hostname", h->nodename);
	json_put_string_key(b, "system", h->sysname);
	json_put_string_key(b, "kernel", h->release);
	json_put_string_key(b, "kernel_version", h->kernel_version);
	json_put_string_key(b, "machine", h->machine);
	json_put_u64_key(b, "cpus_possible", h->cpus);
	json_put_u64_key(b, "cpus_online", h->cpus_online);
	json_put_u64_key(b, "word_size", h->word_size);
	json_put_bool_key(b, "big_endian", h->big_endian);
	json_put_string_key(b, "trace_clock", h->trace_clock);
	json_put_string_key(b, "lockdown", h->lockdown);
	json_put_u64_key(b, "kptr_restrict", h->kptr_restrict);
	json_put_string_key(b, "ended", other_data_end_reason(info->end));
}

/* Text and events have the numbers alone. */
static void other_data_put_syscalls(struct buf *b, const struct trace_info *info)
{
	uint32_t table;

	if (!event_table_find_name(info->events, "raw_syscalls", "sys_enter"))
		return;
	table = syscall_table(info->header->machine ?: "");
	if (!table)
		return;
	json_put_key(b, "syscalls");
	buf_puts(b, "{");
	for (uint64_t nr = 0; nr < SYSCALLS_MAX; nr++) {
		_cleanup_free_ char *name = syscall_name(table, nr);
		char key[24];

		if (!name)
			continue;
		snprintf(key, sizeof(key), "%llu", (unsigned long long)nr);
		json_put_string_key(b, key, name);
	}
	buf_puts(b, "}");
}

static void other_data_put_warnings(struct buf *b, const struct export_result *result)
{
	json_put_key(b, "warnings");
	buf_puts(b, "[");
	for (size_t i = 0; i < result->warning_count; i++) {
		json_put_comma(b);
		json_put_string(b, result->warnings[i]);
	}
	buf_puts(b, "]");
}

const Traced__Capture__Clocks *json_find_noted(const struct trace_info *info, const char *id)
{
	for (size_t i = 0; i < info->clock_count; i++)
		if (info->clocks[i]->sync_id[0] && strcmp(info->clocks[i]->sync_id, id) == 0)
			return info->clocks[i];
	return NULL;
}

/* First sync: the base for the drift of later ones. boot 0: none. */
struct sync_base {
	uint64_t ts, boot;
};

static uint64_t other_data_sync_boot(const Traced__Capture__Clocks *noted)
{
	return noted->sync_before_ns + (noted->sync_after_ns - noted->sync_before_ns) / 2;
}

/* The recorder's syncs: trace clock = BOOTTIME + offset, within ±bound. */
static void other_data_put_sync(struct buf *b, const struct sync_base *base, const char *id,
				uint64_t ts, const Traced__Capture__Clocks *noted)
{
	uint64_t apart = noted->sync_after_ns - noted->sync_before_ns;
	uint64_t boot = other_data_sync_boot(noted);

	json_put_comma(b);
	buf_puts(b, "\n{");
	json_put_string_key(b, "sync_id", id);
	json_put_u64_key(b, "issue_boottime_ns", noted->sync_before_ns);
	json_put_u64_key(b, "answer_boottime_ns", noted->sync_after_ns);
	json_put_u64_key(b, "trace_ns", ts);
	json_put_i64_key(b, "offset_ns", (int64_t)(ts - boot));
	json_put_u64_key(b, "bound_ns", (apart + 1) / 2);
	other_data_put_drift(b, ts - base->ts,
			     base->boot && boot > base->boot ? boot - base->boot : 0);
	buf_puts(b, "}");
}

static void other_data_put_syncs(struct buf *b, const struct trace_info *info,
				 const struct clock_sync *sync)
{
	const Traced__Capture__Clocks *noted = json_find_noted(info, info->sync_id);
	struct sync_base base = { 0 };

	json_put_key(b, "kernel_syncs");
	buf_puts(b, "[");
	if (sync->seen && noted) {
		other_data_put_sync(b, &base, info->sync_id, sync->ts, noted);
		base.ts = sync->ts;
		base.boot = other_data_sync_boot(noted);
	}
	for (size_t i = 0; i < sync->other_count; i++) {
		noted = json_find_noted(info, sync->others[i].id);
		if (noted)
			other_data_put_sync(b, &base, sync->others[i].id, sync->others[i].ts,
					    noted);
	}
	buf_puts(b, "]");
}

/* All ties of a file's clock; drift: since the previous tie. */
static void other_data_put_ties(struct buf *b, const struct mark_origin *o)
{
	json_put_key(b, "tied");
	buf_puts(b, "[");
	for (size_t i = 0; i < o->ties; i++) {
		const struct clock_point *p = &o->points[i], *last = i ? p - 1 : NULL;
		/* The drift needs points far enough apart. */
		bool known = last && p->bound + last->bound <
					     (p->from - last->from) / 1000000 * CLOCK_DRIFT_MAX_PPM;

		json_put_comma(b);
		buf_puts(b, "{");
		json_put_string_key(b, "sync_id", p->id);
		json_put_u64_key(b, "clock_ns", p->from);
		json_put_i64_key(b, "offset_ns", (int64_t)(p->to - p->from));
		json_put_u64_key(b, "bound_ns", p->bound);
		other_data_put_drift(b, known ? p->to - last->to : 0,
				     known ? p->from - last->from : 0);
		buf_puts(b, "}");
	}
	buf_puts(b, "]");
}

/* Merged files: their clock ties and their own metadata. */
static void other_data_put_merged(struct buf *b, const struct mark_feed *marks)
{
	size_t count;
	const struct mark_origin *all = mark_feed_origins(marks, &count);

	json_put_key(b, "merged");
	buf_puts(b, "[");
	for (size_t i = 0; i < count; i++) {
		json_put_comma(b);
		buf_puts(b, "\n{");
		json_put_string_key(b, "file", all[i].name);
		json_put_string_key(b, "clock", all[i].clock ?: "clock_sync");
		json_put_u64_key(b, "ties", all[i].ties);
		json_put_i64_key(b, "offset_ns", all[i].sum.offset);
		json_put_u64_key(b, "bound_ns", all[i].bound);
		json_put_u64_key(b, "tie_bound_ns", all[i].sum.bound);
		json_put_key(b, "drift_ppb");
		if (all[i].sum.drift_known)
			buf_printf(b, "%.3f,\"drift_bound_ppb\":%.3f", all[i].sum.drift,
				   all[i].sum.drift_bound);
		else
			buf_puts(b, "null");
		if (!all[i].clock)
			other_data_put_ties(b, &all[i]);
		json_put_key(b, "says");
		buf_puts(b, "{");
		json_put_members(b, all[i].members);
		buf_puts(b, "}}");
	}
	buf_puts(b, "]");
}

/* Profiles: their samples' times are artificial. */
static void other_data_put_profiles(struct buf *b, const struct mark_feed *marks)
{
	size_t count;
	const struct profile_sum *all = mark_feed_profiles(marks, &count);

	json_put_key(b, "cpu_profiles");
	buf_puts(b, "[");
	for (size_t i = 0; i < count; i++) {
		json_put_comma(b);
		buf_puts(b, "\n{");
		json_put_string_key(b, "file", all[i].name);
		json_put_i64_key(b, "tid", all[i].tid);
		json_put_u64_key(b, "period_us", all[i].period_us);
		json_put_u64_key(b, "samples", all[i].samples);
		json_put_u64_key(b, "stacks", all[i].stacks);
		json_put_u64_key(b, "frames_without_name", all[i].unnamed);
		json_put_u64_key(b, "placed_from_ns", all[i].from_ts);
		json_put_u64_key(b, "placed_ns", all[i].placed_ns);
		json_put_string_key(b, "times",
				    all[i].squeezed
					    ? "none: its samples are spread over the recording by "
					      "their weights"
					    : "none: its samples follow each other from the "
					      "recording's begin, each as long as its weight");
		buf_puts(b, "}");
	}
	buf_puts(b, "]");
}

static void other_data_put_samples(struct buf *b, const struct trace_info *info,
				   const struct mark_feed *marks)
{
	struct sample_feed_sum sum;

	if (!mark_feed_samples(marks, &sum))
		return;
	json_put_key(b, "samples");
	buf_puts(b, "{");
	json_put_string_key(b, "event", info->sampler->event);
	json_put_u64_key(b, "hz", info->sampler->hz);
	json_put_u64_key(b, "samples", sum.samples.samples);
	json_put_u64_key(b, "lost", sum.samples.lost);
	json_put_u64_key(b, "throttled", sum.samples.throttled);
	json_put_u64_key(b, "places_without_name", sum.unnamed);
	json_put_u64_key(b, "bound_ns", sum.bound);
	json_put_key(b, "cpus");
	buf_puts(b, "[");
	for (size_t i = 0; i < sum.samples.cpu_count; i++) {
		const struct sample_cpu *c = &sum.samples.cpus[i];

		json_put_comma(b);
		buf_puts(b, "{");
		json_put_u64_key(b, "cpu", c->cpu);
		json_put_u64_key(b, "samples", c->samples);
		json_put_u64_key(b, "lost", c->lost);
		json_put_u64_key(b, "throttled", c->throttled);
		buf_puts(b, "}");
	}
	buf_puts(b, "]}");
}

/* All syncs, including those without a partner. */
static void other_data_put_all_syncs(struct buf *b, const struct mark_feed *marks)
{
	size_t count;
	const struct mark_sync *all = mark_feed_syncs(marks, &count);

	json_put_key(b, "clock_syncs");
	buf_puts(b, "[");
	for (size_t i = 0; i < count; i++) {
		json_put_comma(b);
		buf_puts(b, "{");
		json_put_string_key(b, "sync_id", all[i].id);
		json_put_u64_key(b, "ts_ns", all[i].ts);
		if (all[i].issue_ts)
			json_put_u64_key(b, "issue_ts_ns", all[i].issue_ts);
		if (all[i].kernel_ts)
			json_put_u64_key(b, "kernel_ts_ns", all[i].kernel_ts);
		buf_puts(b, "}");
	}
	buf_puts(b, "]");
}

static void other_data_put_marks(struct buf *b, const struct trace_info *info,
				 const struct mark_feed *marks, uint64_t count)
{
	struct mark_rings_sum sum;

	mark_feed_rings(marks, &sum);
	other_data_put_merged(b, marks);
	other_data_put_profiles(b, marks);
	other_data_put_samples(b, info, marks);
	other_data_put_all_syncs(b, marks);
	json_put_key(b, "marks");
	buf_puts(b, "{");
	json_put_u64_key(b, "marks", count);
	json_put_u64_key(b, "rings", sum.rings);
	json_put_u64_key(b, "lost", sum.lost);
	json_put_u64_key(b, "bound_ns", sum.bound);
	buf_puts(b, "}");
}

void json_put_account(struct buf *b, const struct export_result *result)
{
	json_put_u64_key(b, "events", result->events);
	json_put_u64_key(b, "lost", result->lost);
	json_put_u64_key(b, "span_ns", result->span_ns);
	json_put_bool_key(b, "incomplete", result->incomplete);
	other_data_put_warnings(b, result);
}

void json_put_other_data(struct buf *b, const struct trace_info *info,
			 const struct mark_feed *marks, const struct clock_sync *sync,
			 const struct export_result *result)
{
	other_data_put_machine(b, info);
	other_data_put_syscalls(b, info);
	if (info->header->request)
		other_data_put_request(b, info->header->request);
	other_data_put_clocks(b, info);
	other_data_put_syncs(b, info, sync);
	if (marks)
		other_data_put_marks(b, info, marks, result->marks);
	other_data_put_ledger(b, result);
	json_put_account(b, result);
}
