/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON, or the page, of several machines. Their numbers of tasks and CPUs differ already
 * (trace/host_numbers.h): here the lines are ordered by their times, and the members put together.
 */
#include "formats/json/join.h"

#include <string.h>

#include "base/json.h"
#include "formats/html/html.h"
#include "formats/json/other_data.h"
#include "formats/json/part.h"
#include "formats/json/tail.h"
#include "trace/host_clock.h"
#include "trace/host_numbers.h"

struct json_join {
	const struct export_part *origins;
	struct json_part *parts;
	size_t count;
	const struct export_result *result;
	struct output *out;
	bool page;
};

/* A viewer opens a text as one string. */
static int join_settle(const struct json_join *j, struct error *err)
{
	int r;

	if (j->out->raw_bytes + j->out->buf.len > EXPORT_JSON_MAX) {
		error_set(
			err, -EOVERFLOW,
			"the machines' traces are together longer than the %llu characters that a "
			"viewer can open",
			(unsigned long long)EXPORT_JSON_MAX);
		return error_hint(err, "write them as .pftrace or .txt");
	}
	r = output_settle(j->out);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static int join_fail(struct error *err, int r)
{
	return r < 0 && !err->message ? error_errno(err, r, "can't join the machines' parts") : r;
}

/* The first part's comments serve all: readers look for the first lines. */
static int join_heads(struct json_join *j)
{
	const char *end = j->page ? "\n" : "\\n";
	struct buf *b = &j->out->buf;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < j->count; i++)
		r = json_part_begin(&j->parts[i], i ? NULL : j->out);
	for (size_t i = 0; r >= 0 && i < j->count; i++) {
		const struct export_part *o = &j->origins[i];

		buf_printf(b, "# %s: CPUs from %u, pids from %d; %s%s", o->label,
			   o->numbers->first_cpu, host_pid(o->numbers, 0), o->tie, end);
		r = json_part_next_line(&j->parts[i]);
	}
	return r;
}

static int join_texts(struct json_join *j, struct error *err)
{
	int r = join_heads(j);

	while (r >= 0) {
		struct json_part *next = NULL;

		for (size_t i = 0; i < j->count; i++)
			if (j->parts[i].len && (!next || j->parts[i].ts < next->ts))
				next = &j->parts[i];
		if (!next)
			return 0;
		buf_append(&j->out->buf, next->line, next->len);
		r = json_part_next_line(next);
		if (r == 0)
			r = join_settle(j, err);
	}
	return r;
}

/* Appends what the machines have in a member, from the place where their readers are. */
static int join_member(struct json_join *j, const char *key, const char *open, const char *close,
		       struct error *err)
{
	bool any = false;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < j->count; i++) {
		struct json_part *p = &j->parts[i];

		if (strcmp(p->key, key) != 0)
			continue;
		buf_puts(&j->out->buf, any ? "," : open);
		any = true;
		r = json_part_value(p, j->out);
		if (r == 0)
			r = json_part_next_key(p);
		if (r == 0)
			r = join_settle(j, err);
	}
	if (any)
		buf_puts(&j->out->buf, close);
	return r;
}

/* Goes on to the member otherData. */
static int join_skip_members(struct json_join *j)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < j->count; i++)
		while (r >= 0 && strcmp(j->parts[i].key, "otherData") != 0)
			r = *j->parts[i].key ? json_part_value(&j->parts[i], NULL)
						       ?: json_part_next_key(&j->parts[i])
					     : -EBADMSG;
	return r;
}

static void join_put_host(struct buf *b, const struct export_part *o)
{
	const struct host_clock *c = o->clock;

	buf_puts(b, "\n{");
	json_put_string_key(b, "label", o->label);
	json_put_u64_key(b, "first_cpu", o->numbers->first_cpu);
	json_put_u64_key(b, "cpus", o->numbers->cpus);
	json_put_i64_key(b, "first_pid", host_pid(o->numbers, 0));
	json_put_string_key(b, "clock", o->tie);
	json_put_key(b, "bound_ns");
	if (c->by_wall)
		buf_puts(b, "null");
	else
		buf_printf(b, "%llu", (unsigned long long)c->bound);
	json_put_key(b, "drift_ppb");
	if (c->by_wall || !c->drift_known)
		buf_puts(b, "null");
	else
		buf_printf(b, "%.3f", c->drift);
	json_put_key(b, "recording");
	buf_putc(b, '{');
}

static int join_other_data(struct json_join *j, struct error *err)
{
	struct buf *b = &j->out->buf;
	int r = join_skip_members(j);

	buf_puts(b, ",\n\"displayTimeUnit\":\"ns\",\n\"metadata\":{\"clock-domain\":"
		    "\"LINUX_FTRACE_GLOBAL\"},\n\"otherData\":{\"hosts\":[");
	for (size_t i = 0; r >= 0 && i < j->count; i++) {
		if (i)
			buf_putc(b, ',');
		join_put_host(b, &j->origins[i]);
		r = json_part_value(&j->parts[i], j->out);
		buf_puts(b, "}}");
		if (r == 0)
			r = join_settle(j, err);
	}
	buf_putc(b, ']');
	if (j->result->begins_apart_ns)
		json_put_u64_key(b, "begins_apart_ns", j->result->begins_apart_ns);
	json_put_account(b, j->result);
	buf_puts(b, "}}\n");
	return r;
}

static int join_members(struct json_join *j, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < j->count; i++)
		r = json_part_begin_members(&j->parts[i]) ?: json_part_next_key(&j->parts[i]);
	buf_puts(&j->out->buf, ",\n\"traceEvents\":[");
	json_put_process_0(&j->out->buf);
	if (r >= 0)
		r = join_member(j, "traceEvents", ",", "]", err);
	if (r >= 0)
		r = join_member(j, "samples", ",\n\"samples\":[", "]", err);
	if (r >= 0)
		r = join_member(j, "stackFrames", ",\n\"stackFrames\":{", "}", err);
	return r < 0 ? r : join_other_data(j, err);
}

static int join_page_members(struct json_join *j, struct error *err)
{
	int r = output_rewrite(j->out, NULL);

	buf_puts(&j->out->buf, HTML_BLOCK_END HTML_MORE_BEGIN);
	if (r >= 0)
		r = output_rewrite(j->out, html_divide_more);
	if (r >= 0)
		r = join_members(j, err);
	if (r >= 0)
		r = output_rewrite(j->out, NULL);
	buf_puts(&j->out->buf, HTML_END);
	return r;
}

static int join_all(struct json_join *j, struct error *err)
{
	struct buf *b = &j->out->buf;
	int r;

	if (j->page)
		html_put_page(b);
	buf_puts(b, j->page ? HTML_TEXT_BEGIN : JSON_TEXT_HEAD);
	r = j->page ? output_rewrite(j->out, html_divide_text) : 0;
	if (r >= 0)
		r = join_texts(j, err);
	if (r < 0)
		return r;
	if (j->page)
		return join_page_members(j, err);
	buf_putc(b, '"');
	return join_members(j, err);
}

static int join_as(const struct export_part *parts, size_t count,
		   const struct export_result *result, struct output *out, bool page,
		   struct error *err)
{
	struct json_join j = { parts, calloc(count, sizeof(*j.parts)), count, result, out, page };
	int r = j.parts ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		j.parts[i].reader.fd = parts[i].fd;
		j.parts[i].page = page;
	}
	if (r == 0)
		r = join_all(&j, err);
	for (size_t i = 0; j.parts && i < count; i++)
		json_part_deinit(&j.parts[i]);
	free(j.parts);
	return join_fail(err, r);
}

int json_join(const struct export_part *parts, size_t count, const struct export_result *result,
	      struct output *out, struct error *err)
{
	return join_as(parts, count, result, out, false, err);
}

int html_join(const struct export_part *parts, size_t count, const struct export_result *result,
	      struct output *out, struct error *err)
{
	return join_as(parts, count, result, out, true, err);
}
