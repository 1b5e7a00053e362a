/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `block`: how long requests to disks waited in their queue, and how long they took. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/group.h"

#define RWBS_BYTES 8

struct block_row {
	uint64_t dev;
	char operation[RWBS_BYTES + 1];
	bool used, is_rest;
	uint64_t count, bytes, errors;
	struct histogram queue, time;
	uint64_t max_at, cut, open;
};

/* A request from its insertion to its completion. */
struct block_request {
	uint64_t inserted, inserted_mark; /* 0: unknown */
	uint64_t issued, issued_mark;	  /* 0: it was not issued */
	uint64_t bytes;
	struct block_row *row; /* of its issue */
};

struct block_fields {
	struct field_at dev, sector, sectors, bytes, error;
	struct string_at rwbs;
};

struct block {
	struct report report;
	struct rows rows, requests; /* requests: by device and sector */
	bool too_many;		    /* were under way at once: some issues are forgotten */
	struct block_fields insert, issue, requeue, complete;
};

static const char *const block_by[] = { "device", NULL };

static struct block_row *block_row_get(struct block *b, uint64_t dev, struct text rwbs)
{
	struct row_key key = { dev, 0 };
	struct block_row *row;

	memcpy(&key.b, rwbs.data, MIN(rwbs.len, sizeof(key.b)));
	row = rows_get(&b->rows, key);
	if (!row || row->used)
		return row;
	row->used = true;
	row->is_rest = row == b->rows.rest;
	if (row->is_rest)
		return row;
	row->dev = dev;
	memcpy(row->operation, rwbs.data, MIN(rwbs.len, (uint32_t)RWBS_BYTES));
	return row;
}

/*
 * A request without a place on the disk, as a flush: its position is -1. The events before its
 * completion have sector 0 instead, and no length.
 */
#define NO_SECTOR UINT64_MAX

static bool block_has_no_length(const struct block_fields *f, const struct trace_event *ev)
{
	return f->sectors.size && !field_at_read(&f->sectors, &ev->rec);
}

/* NULL: out of memory. The block `rest` stands for requests beyond the bound: don't use it. */
static struct block_request *block_request_get(struct block *b, const struct block_fields *f,
					       const struct trace_event *ev)
{
	struct row_key key = { field_at_read(&f->dev, &ev->rec),
			       field_at_read(&f->sector, &ev->rec) };

	/* A zone that is reset has a place, and no length either. */
	if (!key.b && block_has_no_length(f, ev))
		key.b = NO_SECTOR;
	return rows_get(&b->requests, key);
}

/* A request whose completion was not seen. */
static void block_drop(struct block *b, struct block_request *q)
{
	if (!q->issued)
		return;
	if (report_is_whole(b->report.env, q->issued_mark))
		q->row->open++;
	else
		q->row->cut++;
	q->issued = 0;
}

/* The request is in the queue. After a loss, one that was issued before may be another one. */
static void block_queue(struct block *b, struct block_request *q, const struct trace_event *ev)
{
	if (!report_is_whole(b->report.env, q->issued_mark))
		block_drop(b, q);
	q->inserted = ev->rec.ts;
	q->inserted_mark = report_mark(b->report.env);
}

static int block_on_insert(struct report *report, const struct trace_event *ev)
{
	struct block *b = container_of(report, struct block, report);
	struct block_request *q = block_request_get(b, &b->insert, ev);

	if (!q)
		return -ENOMEM;
	block_queue(b, q, ev);
	return 0;
}

static int block_on_issue(struct report *report, const struct trace_event *ev)
{
	struct block *b = container_of(report, struct block, report);
	struct block_request *q = block_request_get(b, &b->issue, ev);
	struct block_row *row = block_row_get(b, field_at_read(&b->issue.dev, &ev->rec),
					      string_at_read(&b->issue.rwbs, &ev->rec));
	int r = 0;

	if (!q || !row)
		return -ENOMEM;
	if (q == b->requests.rest) {
		b->too_many = true;
		return 0;
	}
	block_drop(b, q);
	if (q->inserted && report_is_whole(report->env, q->inserted_mark))
		r = histogram_add(&row->queue, report_elapsed(q->inserted, ev->rec.ts));
	*q = (struct block_request){
		.issued = ev->rec.ts,
		.issued_mark = report_mark(report->env),
		.bytes = field_at_read(&b->issue.bytes, &ev->rec),
		.row = row,
	};
	return r;
}

/* A write that asked for a flush ends once more after it, without a length and an issue. */
static bool block_ends_unissued(const struct block *b, const struct trace_event *ev)
{
	const struct row_key key = { field_at_read(&b->complete.dev, &ev->rec),
				     field_at_read(&b->complete.sector, &ev->rec) };
	const struct block_request *q;

	if (key.b == NO_SECTOR || !block_has_no_length(&b->complete, ev))
		return false;
	q = rows_find(&b->requests, key);
	return !q || !q->issued || q->bytes;
}

static int block_on_complete(struct report *report, const struct trace_event *ev)
{
	struct block *b = container_of(report, struct block, report);
	struct block_request *q, was = { 0 };
	struct block_row *row;
	uint64_t ns;

	if (block_ends_unissued(b, ev))
		return 0;
	q = block_request_get(b, &b->complete, ev);
	if (!q)
		return -ENOMEM;
	if (q != b->requests.rest)
		was = *q;
	rows_remove(&b->requests, q);
	if (!was.issued) {
		row = block_row_get(b, field_at_read(&b->complete.dev, &ev->rec),
				    string_at_read(&b->complete.rwbs, &ev->rec));
		if (!row)
			return -ENOMEM;
		if (report->env->losses || b->too_many)
			row->cut++;
		else
			row->open++;
		return 0;
	}
	row = was.row;
	if (!report_is_whole(report->env, was.issued_mark)) {
		row->cut++;
		return 0;
	}
	ns = report_elapsed(was.issued, ev->rec.ts);
	row->count++;
	row->bytes += was.bytes;
	row->errors += field_at_read(&b->complete.error, &ev->rec) != 0;
	return histogram_add_at(&row->time, ns, ev->rec.ts, &row->max_at);
}

/* The driver could not take the request now: it waits in the queue again. */
static int block_on_requeue(struct report *report, const struct trace_event *ev)
{
	struct block *b = container_of(report, struct block, report);
	struct block_request *q = block_request_get(b, &b->requeue, ev);

	if (!q)
		return -ENOMEM;
	block_queue(b, q, ev);
	q->issued = 0;
	return 0;
}

static struct block_fields block_fields_of(const struct event *ev, bool big)
{
	struct block_fields f = {
		.dev = field_at_find(ev, "dev", big),
		.sector = field_at_find(ev, "sector", big),
		.sectors = field_at_find(ev, "nr_sector", big),
		.bytes = field_at_find(ev, "bytes", big),
		.error = field_at_find(ev, "error", big),
		.rwbs = string_at_find(ev, "rwbs", big),
	};

	/* Linux 5.12 renamed it. */
	if (!f.error.size)
		f.error = field_at_find(ev, "errors", big);
	return f;
}

static bool block_find_events(struct block *b, struct report_env *env)
{
	const struct event *ev;

	if (!report_on(env, &b->report, "block", "block_rq_complete", block_on_complete, &ev))
		return false;
	b->complete = block_fields_of(ev, env->big_endian);
	if (report_on(env, &b->report, "block", "block_rq_insert", block_on_insert, &ev))
		b->insert = block_fields_of(ev, env->big_endian);
	if (report_on(env, &b->report, "block", "block_rq_issue", block_on_issue, &ev))
		b->issue = block_fields_of(ev, env->big_endian);
	if (report_on(env, &b->report, "block", "block_rq_requeue", block_on_requeue, &ev))
		b->requeue = block_fields_of(ev, env->big_endian);
	return true;
}

static void block_row_deinit(void *data)
{
	struct block_row *row = data;

	histogram_deinit(&row->queue);
	histogram_deinit(&row->time);
}

static int block_open(struct report **ret, struct report_env *env)
{
	struct block *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->report.env = env;
	rows_init(&b->rows, sizeof(struct block_row), block_row_deinit);
	rows_init(&b->requests, sizeof(struct block_request), NULL);
	*ret = &b->report;
	return block_find_events(b, env) ? 0 : -ENODATA;
}

static const struct column block_columns[] = {
	COLUMN("device", COLUMN_TEXT),
	COLUMN("operation", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("bytes", COLUMN_BYTES),
	COLUMN("errors", COLUMN_COUNT),
	COLUMN("queue", COLUMN_HISTOGRAM),
	COLUMN("time", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "time"),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static void block_put_row(struct table *t, const struct block_row *row)
{
	char device[32];
	/* MAJOR() and MINOR() of include/linux/kdev_t.h. */
	int len = row->is_rest ? snprintf(device, sizeof(device), "(others)")
			       : snprintf(device, sizeof(device), "%u,%u",
					  (unsigned)(row->dev >> 20) & 0xfff,
					  (unsigned)row->dev & 0xfffff);

	table_put_text(t, (struct text){ device, (uint32_t)len });
	table_put_text(t, (struct text){ row->operation, (uint32_t)strlen(row->operation) });
	table_put_count(t, row->count);
	table_put_count(t, row->bytes);
	table_put_count(t, row->errors);
	table_put_histogram(t, &row->queue);
	table_put_histogram(t, &row->time);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut);
	table_put_count(t, row->open);
}

static int block_close(struct report *report, struct table **ret)
{
	struct block *b = container_of(report, struct block, report);
	int r = table_new(ret, "block", block_columns, ARRAY_SIZE(block_columns), "time-max");

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < b->requests.count; i++)
		block_drop(b, rows_at(&b->requests, i));
	for (uint32_t i = 0; i < rows_all(&b->rows); i++)
		block_put_row(*ret, rows_each(&b->rows, i));
	return 0;
}

static void block_report_free(struct report *report)
{
	struct block *b = container_of(report, struct block, report);

	rows_deinit(&b->rows);
	rows_deinit(&b->requests);
	free(b);
}

const struct report_kind report_block = {
	.about = {
		.name = "block",
		.summary = "how long requests to disks waited and took",
		.is_usual = true,
		.events = "block",
		.by = block_by,
	},
	.open = block_open,
	.close = block_close,
	.free = block_report_free,
};
