/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl hist`: a recording of a histogram and of no events, and the report of it. With --watch
 * the report comes each second, by `top`.
 */
#include <string.h>

#include "hist.h"

/* No event comes into the ring buffers. */
#define BUFFER_BYTES (64U << 10)

static void hist_put_list(const char *name, const struct word_list *words, struct buf *out)
{
	for (size_t i = 0; i < words->count; i++)
		buf_printf(out, "%s%s", i ? "," : name, words->items[i]);
}

void hist_put(const struct options *o, const char *event, const struct key_option *keys,
	      size_t key_count, struct buf *out)
{
	buf_puts(out, event);
	for (size_t i = 0; i < key_count; i++) {
		buf_printf(out, "%s%s", i ? "," : ":keys=", keys[i].field);
		if (keys[i].modifier)
			buf_printf(out, ".%s", keys[i].modifier);
	}
	hist_put_list(":vals=", &o->vals, out);
	if (o->entries)
		buf_printf(out, ":size=%u", o->entries);
	if (o->lone_filter)
		buf_printf(out, " if %s", o->lone_filter);
}

static int hist_check_event(const struct options *o, struct error *err)
{
	if (!o->arg_count != !!o->sql_count) {
		error_set(err, -EINVAL, "%s",
			  o->arg_count ? "hist: EVENT and --sql exclude each other"
				       : "hist: there is no event to count");
		return error_hint(err, "tracectl hist EVENT --key FIELD, or tracectl hist --sql "
				       "'SELECT ...'");
	}
	if (o->sql_count)
		return 0;
	if (!*o->args[0]) {
		error_set(err, -EINVAL, "hist: the event's name is empty");
		return error_hint(err, "'tracectl events' lists all events");
	}
	if (o->lone_buckets.modifier) {
		error_set(err, -EINVAL, "--buckets has no key before it");
		return error_hint(err, "--key latency --buckets 100us");
	}
	if (o->key_count)
		return 0;
	error_set(err, -EINVAL, "hist: there is no field to count by");
	return error_hint(err,
			  "tracectl hist %s --key FIELD; 'tracectl events -v %s' lists the fields",
			  o->args[0], o->args[0]);
}

static int hist_check_options(const struct options *o, struct error *err)
{
	int r = hist_check_event(o, err);

	if (r == 0 && o->watch && (o->json || o->csv || o->output)) {
		error_set(err, -EINVAL, "--watch and --%s exclude each other",
			  o->json  ? "json"
			  : o->csv ? "csv"
				   : "output");
		return error_hint(err, "give a time instead: -t 10s");
	}
	return r;
}

static int hist_run(const struct options *o)
{
	static const char *const report = "hist";
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct options changed = *o;
	const char *hist;

	if (hist_check_options(o, &err) < 0)
		return cli_usage(&err);
	if (!o->sql_count) {
		hist_put(o, o->args[0], o->keys, o->key_count, &text);
		hist = buf_string(&text);
		if (!hist) {
			error_errno(&err, -ENOMEM, "hist");
			return cli_fail(&err);
		}
		changed.hists = (struct word_list){ &hist, 1 };
	}
	changed.counts_sql = o->sql_count;
	changed.buffer_bytes = BUFFER_BYTES;
	changed.args = (char *[]){ (char *)(uintptr_t)report, NULL };
	changed.arg_count = 1;
	if (o->watch)
		return command_top.run(&changed);
	changed.arg_count = 0;
	changed.reports = (struct word_list){ (const char **)(uintptr_t)&report, 1 };
	return command_record.run(&changed);
}

static const struct option_text hist_texts[] = {
	{ OPT_FILTER, "count only events of which this holds: 'count > 4096'" },
	{ OPT_SQL, "count an event made of two: 'SELECT ... FROM A JOIN B ON ...'" },
	{ OPT_OUTPUT, "also write the recording, for report hist" },
	{ OPT_TOP, "only the first N rows of the table" },
	{ 0 },
};

const struct command command_hist = {
	.name = "hist",
	.synopsis = "EVENT --key FIELD | --sql SELECT [-t TIME] [--watch]",
	.summary = "count an event by its fields, in the kernel",
	.text = "The kernel counts the events by the values of up to three fields, and adds up "
		"the\n"
		"numbers of --val. No event is recorded. It ends after TIME, or with Ctrl-C.\n"
		"A field may have a modifier: .log2 .buckets=N .hex .sym .sym-offset .execname\n"
		".syscall .usecs .stacktrace; a value: .hex .percent .graph.\n"
		"--sql counts what SQL makes of two events: the selected fields, or those of "
		"--key.\n"
		"SQL of one event names keys, and values by CAST(FIELD AS _COUNTER_).\n"
		"\n"
		"  tracectl hist sched_switch --key next_comm -t 10s\n"
		"  tracectl hist kmalloc --key bytes_req --buckets log2 --val bytes_alloc --watch\n"
		"  tracectl hist sys_enter_read --key common_pid.execname --filter 'count > 4096'\n"
		"  tracectl hist --sql 'SELECT (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS "
		"lat\n"
		"    FROM sched_waking AS start JOIN sched_switch AS end\n"
		"    ON start.pid = end.next_pid' --buckets log2 -t 10s",
	.texts = hist_texts,
	.options =
		OPTION_SET(OPTION(KEY), OPTION(VAL), OPTION(BUCKETS), OPTION(FILTER),
			   OPTION(ENTRIES), OPTION(SQL), OPTION(AS), OPTION(DURATION),
			   OPTION(WATCH), OPTION(BATCH), OPTION(SORT), OPTION(TOP), OPTION(OUTPUT),
			   OPTION(CSV), OPTION(JSON), OPTION(NAME), OPTION(QUIET)),
	.own = OPTION_SET(OPTION(KEY), OPTION(VAL), OPTION(BUCKETS), OPTION(FILTER),
			  OPTION(ENTRIES)),
	.args_min = 0,
	.args_max = 1,
	.complete = COMPLETE_EVENT,
	.run = hist_run,
};
