/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `counts`: what the recording's events are, and the bytes that they took. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/kind.h"

struct count_row {
	uint64_t events, bytes;
};

struct counts {
	struct report report;
	struct count_row *rows; /* owned; by event id */
};

static int counts_on_event(struct report *report, const struct trace_event *ev)
{
	struct counts *c = container_of(report, struct counts, report);
	struct count_row *row = &c->rows[ev->id];

	row->events++;
	row->bytes += ev->rec.len;
	return 0;
}

static int counts_open(struct report **ret, struct report_env *env)
{
	struct counts *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->report.env = env;
	*ret = &c->report;
	c->rows = calloc(EVENT_IDS, sizeof(*c->rows));
	report_on_all(env, &c->report, counts_on_event);
	return c->rows ? 0 : -ENOMEM;
}

static const struct column counts_columns[] = {
	COLUMN("event", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("bytes", COLUMN_BYTES),
	COLUMN("per-second", COLUMN_COUNT, .adds = ADDS_PER_SECOND, .of = "count"),
	COLUMN("share", COLUMN_PERMILLE, .adds = ADDS_SHARE, .of = "bytes"),
};

static void counts_put_row(struct table *t, const struct event *ev, uint32_t id,
			   const struct count_row *row)
{
	char name[128];
	int len = ev ? snprintf(name, sizeof(name), "%s:%s", ev->system, ev->name)
		     : snprintf(name, sizeof(name), "id %u", id);

	table_put_text(t, (struct text){ name, MIN((uint32_t)len, (uint32_t)sizeof(name) - 1) });
	table_put_count(t, row->events);
	table_put_count(t, row->bytes);
	table_put_count(t, TABLE_DERIVED);
	table_put_count(t, TABLE_DERIVED);
}

static int counts_close(struct report *report, struct table **ret)
{
	struct counts *c = container_of(report, struct counts, report);
	const struct report_env *env = report->env;
	int r = table_new(ret, "counts", counts_columns, ARRAY_SIZE(counts_columns), "bytes");

	if (r < 0)
		return r;
	for (uint32_t id = 0; id < EVENT_IDS; id++)
		if (c->rows[id].events)
			counts_put_row(*ret, event_table_find(env->info->events, (uint16_t)id), id,
				       &c->rows[id]);
	if (env->losses && !env->goes_on)
		table_note(*ret,
			   "events were lost, and nobody knows which: rows have the recorded "
			   "ones only; the recording's message, and \"lost\" in JSON, say how "
			   "many");
	return 0;
}

static int counts_renew(struct report *report)
{
	struct counts *c = container_of(report, struct counts, report);

	memset(c->rows, 0, EVENT_IDS * sizeof(*c->rows));
	return 0;
}

static void counts_free(struct report *report)
{
	struct counts *c = container_of(report, struct counts, report);

	free(c->rows);
	free(c);
}

const struct report_kind report_counts = {
	.about = {
		.name = "counts",
		.summary = "what the recording consists of",
		.takes_any = true,
		.events = "sched",
	},
	.open = counts_open,
	.close = counts_close,
	.renew = counts_renew,
	.free = counts_free,
};
