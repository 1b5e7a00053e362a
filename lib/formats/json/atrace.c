/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/atrace.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/json.h"
#include "base/secret_hash.h"
#include "base/table.h"
#include "marks/value.h"
#include "trace/host_numbers.h"

/* Open slices tracked at one time; beyond that, ends don't get their names. */
#define OPEN_MAX 4095

struct open_slice {
	uint64_t key; /* 0: free slot */
	char *name;   /* owned */
};
DECLARE_TABLE(open_slices, struct open_slice);
DEFINE_TABLE(open_slices, struct open_slice, uint64_t, slot->key != 0, hash_number(slot->key),
	     slot->key == key);

struct json_atrace {
	const struct trace_info *info;
	const struct event *print;
	const struct field *text;
	struct open_slices open;
};

struct atrace {
	char kind;
	int32_t pid;
	struct text track, name, cookie;
};

int json_atrace_new(struct json_atrace **ret, const struct trace_info *info,
		    const struct event *print)
{
	struct json_atrace *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->info = info;
	a->print = print;
	a->text = event_field(print, "buf");
	*ret = a;
	return 0;
}

struct json_atrace *json_atrace_free(struct json_atrace *a)
{
	if (!a)
		return NULL;
	TABLE_FOR_EACH(open_slices, &a->open, slot)
	free(slot->name);
	TABLE_DEINIT(&a->open);
	free(a);
	return NULL;
}

/* Takes the text up to the next bar or the end. */
static struct text atrace_take_word(struct text *rest)
{
	const char *bar = memchr(rest->data, '|', rest->len);
	struct text word = { rest->data, bar ? (uint32_t)(bar - rest->data) : rest->len };
	uint32_t taken = word.len + (bar != NULL);

	rest->data += taken;
	rest->len -= taken;
	return word;
}

static bool atrace_is_number(struct text t, size_t digits)
{
	size_t i = t.len && t.data[0] == '-';

	for (size_t at = i; at < t.len; at++)
		if (!isdigit((unsigned char)t.data[at]))
			return false;
	return t.len > i && t.len - i <= digits;
}

static bool atrace_parse(struct text rest, struct atrace *ret)
{
	struct text kind = atrace_take_word(&rest), pid = atrace_take_word(&rest), last;
	char digits[12] = "";

	*ret = (struct atrace){ .kind = kind.data[0] };
	if (!atrace_is_number(pid, 9) || pid.data[0] == '-')
		return false;
	memcpy(digits, pid.data, pid.len);
	ret->pid = (int32_t)strtol(digits, NULL, 10);
	if (ret->kind != 'I')
		ret->track = atrace_take_word(&rest);
	/* An instant's name is the rest, bars too. */
	if (ret->kind == 'I' || ret->kind == 'N') {
		ret->name = rest;
		return rest.len && (ret->kind == 'I' || ret->track.len);
	}
	ret->name = atrace_take_word(&rest);
	/* "H|PID|TRACK|COOKIE", or with a name, as "G". */
	last = atrace_take_word(&rest);
	ret->cookie = ret->kind == 'H' && !last.len ? ret->name : last;
	return ret->track.len && ret->name.len && atrace_is_number(ret->cookie, 19);
}

static uint64_t atrace_key_of(const struct atrace *t)
{
	uint64_t seed = XXH3_64bits_withSeed(t->track.data, t->track.len, (uint64_t)t->pid);

	return XXH3_64bits_withSeed(t->cookie.data, t->cookie.len, seed) ?: 1;
}

static int atrace_remember(struct json_atrace *a, const struct atrace *t)
{
	uint64_t key = atrace_key_of(t);
	struct open_slice *o;
	char *name;

	if (a->open.count == OPEN_MAX)
		return 0;
	name = strndup(t->name.data, t->name.len);
	o = name ? open_slices_place(&a->open, hash_number(key), key) : NULL;
	if (!o) {
		free(name);
		return -ENOMEM;
	}
	a->open.count += !o->key;
	free(o->name);
	*o = (struct open_slice){ key, name };
	return 0;
}

/* Removes the slice and returns its name, to be freed; NULL: not open. */
static char *atrace_forget(struct json_atrace *a, uint64_t key)
{
	struct open_slice *o = open_slices_find(&a->open, hash_number(key), key);
	char *name;

	if (!o)
		return NULL;
	name = o->name;
	open_slices_remove(&a->open, o);
	return name;
}

static void atrace_put_text(struct buf *b, struct text t)
{
	buf_putc(b, '"');
	json_escape(b, t.data, t.len);
	buf_putc(b, '"');
}

/* The writer, unless it writes for another process, as the daemon does for `tracectl mark`. */
static int32_t atrace_thread(const struct trace_event *ev, const struct atrace *t,
			     const struct task *task)
{
	return ev->pid > 0 && (!task || !task->tgid || task->tgid == t->pid) ? ev->pid : t->pid;
}

static void atrace_put_element(const struct json_atrace *a, struct buf *b,
			       const struct trace_event *ev, const struct atrace *t,
			       struct text name, int32_t tid)
{
	bool slice = t->kind == 'G' || t->kind == 'H';

	buf_printf(b, ",\n{\"ph\":\"%c\",\"cat\":",
		   t->kind == 'G'   ? 'b'
		   : t->kind == 'H' ? 'e'
				    : 'i');
	atrace_put_text(b, slice ? t->track : TEXT("atrace"));
	buf_puts(b, ",\"name\":");
	atrace_put_text(b, name);
	buf_printf(b, ",\"pid\":%" PRId32 ",\"tid\":%" PRId32 ",\"ts\":%" PRIu64 ".%03u",
		   host_task(a->info->host, t->pid), host_task(a->info->host, tid),
		   ev->rec.ts / 1000, (unsigned)(ev->rec.ts % 1000));
	if (slice)
		buf_printf(b, ",\"id2\":{\"local\":\"%.*s\"}}", (int)t->cookie.len, t->cookie.data);
	else if (t->kind == 'I')
		buf_puts(b, ",\"s\":\"t\"}");
	else {
		buf_puts(b, ",\"s\":\"p\",\"args\":{\"track\":");
		atrace_put_text(b, t->track);
		buf_puts(b, "}}");
	}
}

int json_atrace_event(struct json_atrace *a, const struct trace_event *ev, struct buf *out)
{
	struct text text = { 0 };
	_cleanup_free_ char *begun = NULL;
	struct task *task;
	struct atrace t;
	int r = 0;

	if (!ev->desc || ev->desc != a->print || !a->text || ev->rec.len < a->text->offset + 4)
		return 0;
	text.data = (const char *)ev->rec.data + a->text->offset;
	if (!memchr("INGH", text.data[0], 4) || text.data[1] != '|')
		return 0;
	text.len = (uint32_t)strnlen(text.data, ev->rec.len - a->text->offset);
	while (text.len && text.data[text.len - 1] == '\n')
		text.len--;
	if (!atrace_parse(text, &t))
		return 0;
	if (t.kind == 'H') {
		begun = atrace_forget(a, atrace_key_of(&t));
		if (!begun)
			return 0;
	}
	if (t.kind == 'G')
		r = atrace_remember(a, &t);
	task = ev->pid > 0 ? task_table_find(a->info->tasks, ev->pid, ev->rec.ts) : NULL;
	if (task)
		task_see(task);
	atrace_put_element(a, out, ev, &t,
			   begun ? (struct text){ begun, (uint32_t)strlen(begun) } : t.name,
			   atrace_thread(ev, &t, task));
	return r < 0 || out->failed ? -ENOMEM : 1;
}
