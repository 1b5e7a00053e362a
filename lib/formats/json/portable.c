/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/portable.h"

#include <ctype.h>
#include <string.h>

#include "base/vec.h"
#include "trace/host_numbers.h"

#define MARK_NAME "tracing_mark_write: "
#define SYNC_WORD "trace_event_clock_sync"

bool portable_may_sync(const struct record *rec)
{
	return memmem(rec->data, rec->len, SYNC_WORD, sizeof(SYNC_WORD) - 1);
}

void portable_init(struct portable *p, const struct trace_info *info)
{
	*p = (struct portable){
		.info = info,
		.sched_switch = event_table_find_name(info->events, "sched", "sched_switch"),
		.print = event_table_find_name(info->events, "ftrace", "print"),
	};
	switch_line_init(&p->switch_line, p->sched_switch, info->layout.big_endian);
}

void portable_deinit(struct portable *p)
{
	free(p->sync.others);
	*p = (struct portable){ 0 };
}

void portable_restart(struct portable *p)
{
	p->sync.seen = false;
	p->sync.other_count = 0;
}

/* Offset of text in out, from `from` on; SIZE_MAX: not found. */
static size_t portable_find(const struct buf *out, size_t from, const char *text)
{
	const char *p = memmem(out->data + from, out->len - from, text, strlen(text));

	return p ? (size_t)(p - out->data) : SIZE_MAX;
}

/*
 * atrace forms: B|1|name E E|1 C|1|name|3 S|1|name|cookie F|1|name|cookie, and G, H, I, N of newer
 * writers.
 */
static bool portable_known_mark(const char *p, size_t len)
{
	size_t i = 2;

	/* Readers take an end whatever follows it, and a slice without a name. */
	if (len && *p == 'E')
		return len == 1 || p[1] == '|';
	if (len < 3 || !strchr("BCSF", *p) || p[1] != '|')
		return false;
	while (i < len && isdigit((unsigned char)p[i]))
		i++;
	if (i == 2)
		return false;
	return i < len && p[i] == '|' && (*p == 'B' || i + 1 < len);
}

static bool portable_is_mark(const struct buf *out, size_t text, size_t colon)
{
	static const char name[] = "tracing_mark";
	const char *p = out->data + text;
	size_t len = colon - text;

	/* trace_printk() of a constant is a print, too, but with its function's name. */
	if (len >= sizeof(name) - 1 && memcmp(p, name, sizeof(name) - 1) == 0)
		return true;
	/* Without symbols, the function's address. */
	return len && (isdigit((unsigned char)*p) || strspn(p, "0123456789abcdefx") >= len);
}

/* The mark with this recording's id, written by the recorder at its start; the first one only. */
static bool portable_take_own_sync(struct portable *p, const struct trace_event *ev,
				   const char *text, size_t len)
{
	static const char own[] = SYNC_WORD ": name=";
	const char *id = p->info->sync_id;
	size_t id_len = strlen(id);

	if (p->sync.seen || !id_len || len != sizeof(own) - 1 + id_len ||
	    memcmp(text, own, sizeof(own) - 1) != 0 ||
	    memcmp(text + sizeof(own) - 1, id, id_len) != 0)
		return false;
	p->sync.seen = true;
	p->sync.ts = ev->rec.ts;
	return true;
}

/* A controller's sync: the first of each id, in a bounded number. */
static bool portable_take_other_sync(struct portable *p, const struct trace_event *ev,
				     const char *text, size_t len)
{
	struct other_sync *sync;
	const char *id;
	size_t n = sync_id_length(text, len, &id);

	if (!n || p->sync.other_count == OTHER_SYNCS_MAX ||
	    (n == strlen(p->info->sync_id) && memcmp(id, p->info->sync_id, n) == 0))
		return false;
	for (size_t i = 0; i < p->sync.other_count; i++)
		if (strlen(p->sync.others[i].id) == n && !memcmp(p->sync.others[i].id, id, n))
			return false;
	sync = vec_add_exact(p->sync.others, p->sync.other_count);
	if (!sync)
		return false;
	*sync = (struct other_sync){ .ts = ev->rec.ts };
	memcpy(sync->id, id, n);
	return true;
}

/* Moves the pid of "B|PID|name" to its machine's range. */
static void portable_move_pid(const struct portable *p, struct buf *out, size_t mark)
{
	size_t at = mark + 2, end = at;
	uint32_t pid = 0;
	char moved[16];

	if (!p->info->host)
		return;
	for (; end < out->len && isdigit((unsigned char)out->data[end]); end++)
		pid = pid * 10 + (uint32_t)(out->data[end] - '0');
	if (end > at)
		buf_replace(out, at, end - at, moved,
			    (size_t)snprintf(moved, sizeof(moved), "%d",
					     host_task(p->info->host, (int32_t)pid)));
}

static enum portable_line portable_fix_mark(struct portable *p, const struct trace_event *ev,
					    struct buf *out, size_t text)
{
	size_t colon = portable_find(out, text, ": "), body, sync;
	const struct task *task;
	char head[32];
	int n;

	if (colon == SIZE_MAX || !portable_is_mark(out, text, colon))
		return PORTABLE_EVENT;
	buf_replace(out, text, colon + 2 - text, MARK_NAME, sizeof(MARK_NAME) - 1);
	body = text + sizeof(MARK_NAME) - 1;
	/* Several machines' lines are on one clock already, and share no ids. */
	if ((portable_take_own_sync(p, ev, out->data + body, out->len - body) ||
	     portable_take_other_sync(p, ev, out->data + body, out->len - body)) &&
	    !p->info->host)
		return PORTABLE_EVENT;
	while ((sync = portable_find(out, body, SYNC_WORD)) != SIZE_MAX)
		out->data[sync + sizeof("trace_event_clock") - 1] = '-';
	if (portable_known_mark(out->data + body, out->len - body)) {
		portable_move_pid(p, out, body);
		return PORTABLE_EVENT;
	}
	task = task_table_find(p->info->tasks, ev->pid, ev->rec.ts);
	p->mark_pid = host_task(p->info->host, task && task->tgid ? task->tgid : ev->pid);
	if (body == out->len)
		buf_putc(out, '-');
	/* A bar would end the name. */
	for (size_t i = body; i < out->len; i++)
		if (out->data[i] == '|')
			out->data[i] = '/';
	n = snprintf(head, sizeof(head), "B|%d|", p->mark_pid);
	buf_replace(out, body, 0, head, (size_t)n);
	return PORTABLE_SLICE;
}

/* Prepends the event's name where the kernel's text is not "NAME: details". */
_cold_ static void give_form(const struct event *desc, struct buf *out, size_t text)
{
	size_t len = desc ? strlen(desc->name) : 0;

	if (!desc) {
		buf_replace(out, text, 0, "unknown: ", sizeof("unknown: ") - 1);
	} else if (out->len - text < len + 2 || out->data[text + len] != ':' ||
		   memcmp(out->data + text, desc->name, len) != 0) {
		buf_replace(out, text, 0, ": ", 2);
		buf_replace(out, text, 0, desc->name, len);
	}
	/* Details must not be empty. */
	while (out->len > text && out->data[out->len - 1] == '\n')
		out->len--;
	if (out->len == text + len + 2 && desc)
		buf_putc(out, '-');
}

enum portable_line portable_fix(struct portable *p, const struct trace_event *ev, struct buf *out,
				size_t text)
{
	const struct event *desc = ev->desc;
	size_t len = likely(desc) ? event_name_len(desc) : 0;

	if (desc && desc == p->sched_switch)
		switch_line_fix(&p->switch_line, &ev->rec, out, text);
	else if (desc && desc == p->print)
		return portable_fix_mark(p, ev, out, text);
	else if (unlikely(!len || out->len <= text + len || out->data[out->len - 1] == '\n'))
		give_form(desc, out, text);
	return PORTABLE_EVENT;
}

void portable_end_mark(const struct portable *p, struct buf *out)
{
	buf_printf(out, MARK_NAME "E|%d", p->mark_pid);
}
