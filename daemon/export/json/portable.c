/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/json/portable.h"

#include <ctype.h>
#include <string.h>

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

/* Replaces old_len bytes at offset at by text. */
static void replace(struct buf *out, size_t at, size_t old_len, const char *text, size_t len)
{
	size_t rest = out->len - at - old_len;

	if (!buf_reserve(out, len))
		return;
	memmove(out->data + at + len, out->data + at + old_len, rest);
	if (len)
		memcpy(out->data + at, text, len);
	out->len = at + len + rest;
}

/* Where text lies in out from offset from on; SIZE_MAX: nowhere. */
static size_t find(const struct buf *out, size_t from, const char *text)
{
	const char *p = memmem(out->data + from, out->len - from, text, strlen(text));

	return p ? (size_t)(p - out->data) : SIZE_MAX;
}

/* As Trace Viewer's cpu_state and thread_slice know them. */
static bool known_state(const char *state, size_t len)
{
	switch (len) {
	case 1:
		return *state && strchr("SRDTtZXxKW", *state);
	case 2:
		return state[0] == 'R' && state[1] == '+';
	case 3:
		return state[0] == 'D' && state[1] == '|' && (state[2] == 'K' || state[2] == 'W');
	default:
		return false;
	}
}

/* Where out has the arrow and what follows it; the first, as comms may look like anything. */
static size_t find_arrow(const struct buf *out, size_t text)
{
	static const char arrow[] = " ==> next_comm=";
	const char *begin = out->data + text, *end = out->data + out->len, *p = begin;

	for (; (p = memchr(p, '>', (size_t)(end - p))); p++)
		if (p - begin >= 3 && (size_t)(end - p) >= sizeof(arrow) - 1 - 3 &&
		    memcmp(p - 3, arrow, sizeof(arrow) - 1) == 0)
			return (size_t)(p - 3 - out->data);
	return SIZE_MAX;
}

/* Whether key lies in out before offset at, and after offset from. */
static bool stands_before(const struct buf *out, size_t from, size_t at, const char *key,
			  size_t len)
{
	return at >= from + len && memcmp(out->data + at - len, key, len) == 0;
}

/* The number that ends at offset end, behind key: 0 if it is negative. */
static void fix_prio(struct buf *out, size_t from, size_t end, const char *key, size_t len)
{
	size_t at = end;

	while (at > from && (unsigned)(out->data[at - 1] - '0') < 10)
		at--;
	if (at > from && at < end && out->data[at - 1] == '-' &&
	    stands_before(out, from, at - 1, key, len))
		replace(out, at - 1, end - at + 1, "0", 1);
}

/*
 * "prev_comm=... prev_prio=N prev_state=X ==> next_comm=... next_prio=N", read from the ends of its
 * two halves: what stands before them are comms.
 */
static void fix_sched_switch(struct buf *out, size_t text)
{
	static const char key[] = " prev_state=", prev_prio[] = " prev_prio=";
	static const char next_prio[] = " next_prio=";
	size_t arrow = find_arrow(out, text), at, len;

	if (arrow == SIZE_MAX)
		return;
	fix_prio(out, arrow, out->len, next_prio, sizeof(next_prio) - 1);
	for (at = arrow; at > text && out->data[at - 1] != '='; at--)
		;
	if (!stands_before(out, text, at, key, sizeof(key) - 1))
		return;
	len = arrow - at;
	/* "X+" is X to a reader that doesn't know the plus; I and P are asleep, as far as it goes.
	 */
	if (!known_state(out->data + at, len)) {
		char state = len && known_state(out->data + at, 1) ? out->data[at] : 'S';

		replace(out, at, len, &state, 1);
	}
	fix_prio(out, text, at - (sizeof(key) - 1), prev_prio, sizeof(prev_prio) - 1);
}

/* B|1|name E E|1 C|1|name|3 S|1|name|cookie F|1|name|cookie, and the G, H, I, N of newer writers.
 */
static bool known_mark(const char *p, size_t len)
{
	size_t i = 2;

	if (len == 1)
		return *p == 'E';
	if (len < 3 || !strchr("BECSF", *p) || p[1] != '|')
		return false;
	while (i < len && isdigit((unsigned char)p[i]))
		i++;
	if (i == 2)
		return false;
	return *p == 'E' ? i == len || p[i] == '|' : i + 1 < len && p[i] == '|';
}

static bool is_mark(const struct buf *out, size_t text, size_t colon)
{
	static const char name[] = "tracing_mark";
	const char *p = out->data + text;
	size_t len = colon - text;

	/* trace_printk() of a constant string is a print as well, and has its function's name. */
	if (len >= sizeof(name) - 1 && memcmp(p, name, sizeof(name) - 1) == 0)
		return true;
	/* No symbols: the marker's address stands there. */
	return len && (isdigit((unsigned char)*p) || strspn(p, "0123456789abcdefx") >= len);
}

/* The mark that the recorder writes at its start, with this recording's id; the first one only. */
static bool take_own_sync(struct portable *p, const struct trace_event *ev, const char *text,
			  size_t len)
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

/* A controller's sync: the first of its id, and a bounded number of them. */
static bool take_other_sync(struct portable *p, const struct trace_event *ev, const char *text,
			    size_t len)
{
	struct other_sync *all;
	const char *id;
	size_t n = sync_id_length(text, len, &id);

	if (!n || p->sync.other_count == OTHER_SYNCS_MAX ||
	    (n == strlen(p->info->sync_id) && memcmp(id, p->info->sync_id, n) == 0))
		return false;
	for (size_t i = 0; i < p->sync.other_count; i++)
		if (strlen(p->sync.others[i].id) == n && !memcmp(p->sync.others[i].id, id, n))
			return false;
	all = reallocarray(p->sync.others, p->sync.other_count + 1, sizeof(*all));
	if (!all)
		return false;
	p->sync.others = all;
	all[p->sync.other_count] = (struct other_sync){ .ts = ev->rec.ts };
	memcpy(all[p->sync.other_count++].id, id, n);
	return true;
}

static enum portable_line fix_mark(struct portable *p, const struct trace_event *ev,
				   struct buf *out, size_t text)
{
	size_t colon = find(out, text, ": "), body, sync;
	const struct task *task;
	char head[32];
	int n;

	if (colon == SIZE_MAX || !is_mark(out, text, colon))
		return PORTABLE_EVENT;
	replace(out, text, colon + 2 - text, MARK_NAME, sizeof(MARK_NAME) - 1);
	body = text + sizeof(MARK_NAME) - 1;
	if (take_own_sync(p, ev, out->data + body, out->len - body) ||
	    take_other_sync(p, ev, out->data + body, out->len - body))
		return PORTABLE_EVENT;
	while ((sync = find(out, body, SYNC_WORD)) != SIZE_MAX)
		out->data[sync + sizeof("trace_event_clock") - 1] = '-';
	if (known_mark(out->data + body, out->len - body))
		return PORTABLE_EVENT;

	task = task_table_find(p->info->tasks, ev->pid, ev->rec.ts);
	p->mark_pid = task && task->tgid ? task->tgid : ev->pid;
	if (body == out->len)
		buf_putc(out, '-');
	/* A bar would end the name. */
	for (size_t i = body; i < out->len; i++)
		if (out->data[i] == '|')
			out->data[i] = '/';
	n = snprintf(head, sizeof(head), "B|%d|", p->mark_pid);
	replace(out, body, 0, head, (size_t)n);
	return PORTABLE_SLICE;
}

enum portable_line portable_fix(struct portable *p, const struct trace_event *ev, struct buf *out,
				size_t text)
{
	const struct event *desc = ev->desc;
	size_t len;

	if (likely(desc)) {
		if (desc == p->sched_switch) {
			fix_sched_switch(out, text);
			return PORTABLE_EVENT;
		}
		if (desc == p->print && p->print)
			return fix_mark(p, ev, out, text);
	}
	len = desc ? strlen(desc->name) : 0;
	if (!desc) {
		replace(out, text, 0, "unknown: ", sizeof("unknown: ") - 1);
	} else if (out->len - text < len + 2 || out->data[text + len] != ':' ||
		   memcmp(out->data + text, desc->name, len) != 0) {
		replace(out, text, 0, ": ", 2);
		replace(out, text, 0, desc->name, len);
	}
	/* Details there must be. */
	while (out->len > text && out->data[out->len - 1] == '\n')
		out->len--;
	if (out->len == text + len + 2 && desc)
		buf_putc(out, '-');
	return PORTABLE_EVENT;
}

void portable_end_mark(const struct portable *p, struct buf *out)
{
	buf_printf(out, MARK_NAME "E|%d", p->mark_pid);
}
