/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/hist_text.h"

#include <errno.h>
#include <string.h>

#define HEAD "# event histogram\n#\n# trigger info: "
#define TOTALS "\nTotals:\n"
/* The least width of a text that is a key: "%-50s". */
#define TEXT_WIDTH 50U
/* ": %20s" without the colon. */
#define BAR_WIDTH 21U
/* Three keys: a stack of 31 functions, whose names have 512 bytes at most, and two texts. */
#define ENTRY_MAX (32U << 10)
/* Names have 64 bytes at most, and values 20. Many places in a text may look like values. */
#define VALUES_MAX 512U

static struct text part_of(const char *data, size_t len)
{
	return (struct text){ data, (uint32_t)len };
}

static struct text text_skip(struct text t, size_t len)
{
	return part_of(t.data + len, t.len - len);
}

static bool text_begins(struct text t, const char *with)
{
	return t.len >= strlen(with) && memcmp(t.data, with, strlen(with)) == 0;
}

static bool text_is(struct text t, const char *other)
{
	return t.len == strlen(other) && text_begins(t, other);
}

static struct text text_trim(struct text t)
{
	while (t.len && (*t.data == ' ' || *t.data == '\n'))
		t = text_skip(t, 1);
	while (t.len && (t.data[t.len - 1] == ' ' || t.data[t.len - 1] == '\n'))
		t.len--;
	return t;
}

/* The offset of `what` at or behind `from`; SIZE_MAX: there is none. */
static size_t text_find(struct text t, size_t from, const char *what)
{
	const char *at =
		from > t.len ? NULL : memmem(t.data + from, t.len - from, what, strlen(what));

	return at ? (size_t)(at - t.data) : SIZE_MAX;
}

/* Without its newline. */
static struct text text_take_line(struct text *t)
{
	const char *end = memchr(t->data, '\n', t->len);
	struct text line = part_of(t->data, end ? (size_t)(end - t->data) : t->len);

	*t = text_skip(*t, end ? (size_t)line.len + 1 : line.len);
	return line;
}

bool hist_text_number(struct text t, uint64_t *ret)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < t.len; i++)
		if (t.data[i] < '0' || t.data[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(t.data[i] - '0'), &n))
			return false;
	*ret = n;
	return t.len > 0;
}

static bool name_is_plain(struct text t)
{
	for (uint32_t i = 0; i < t.len; i++) {
		char c = t.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_'))
			return false;
	}
	return t.len > 0 && t.len < 64;
}

static enum hist_text_kind field_kind(const struct hist_text_field *f, bool key)
{
	static const struct {
		const char *modifier;
		enum hist_text_kind kind;
	} kinds[] = {
		{ "sym", HIST_TEXT_SYMBOL },	{ "sym-offset", HIST_TEXT_SYMBOL },
		{ "execname", HIST_TEXT_EXEC }, { "syscall", HIST_TEXT_CALL },
		{ "log2", HIST_TEXT_LOG2 },	{ "stacktrace", HIST_TEXT_STACK },
		{ "hex", HIST_TEXT_PLAIN },	{ "percent", HIST_TEXT_PLAIN },
		{ "graph", HIST_TEXT_PLAIN },
	};

	if (key && (text_is(f->name, "stacktrace") || text_is(f->name, "common_stacktrace")))
		return HIST_TEXT_STACK;
	if (text_begins(f->modifier, "buckets="))
		return HIST_TEXT_RANGE;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (text_is(f->modifier, kinds[i].modifier))
			return kinds[i].kind;
	return HIST_TEXT_NUMBER;
}

/* "keys=a,b.log2" */
static bool trigger_take_fields(struct text part, bool key, struct hist_text_field *fields,
				size_t *count)
{
	for (; part.len; part = text_skip(part, 1)) {
		const char *comma = memchr(part.data, ',', part.len);
		struct text one =
			part_of(part.data, comma ? (size_t)(comma - part.data) : part.len);
		const char *dot = memchr(one.data, '.', one.len);
		struct hist_text_field *f = &fields[*count];

		if (*count == HIST_TEXT_FIELDS_MAX)
			return false;
		*f = (struct hist_text_field){
			.name = part_of(one.data, dot ? (size_t)(dot - one.data) : one.len)
		};
		if (dot)
			f->modifier = text_skip(one, (size_t)f->name.len + 1);
		/* Linux 7.2 writes the CPU's two names without a blank: "common_cpucpu". */
		if (text_is(f->name, "common_cpucpu") || text_is(f->name, "common_cpuCPU"))
			f->name.len = sizeof("common_cpu") - 1;
		if (!name_is_plain(f->name))
			return false;
		f->kind = field_kind(f, key);
		(*count)++;
		part = text_skip(part, one.len);
		if (!part.len)
			break;
	}
	return *count > 0;
}

/* The keys and values come before the filter, which may have any text. */
static bool trigger_parse(struct hist_text *h)
{
	struct text rest = h->trigger;

	while (rest.len) {
		size_t len = 0;
		struct text part;

		while (len < rest.len && rest.data[len] != ':' && rest.data[len] != ' ')
			len++;
		part = part_of(rest.data, len);
		if (text_begins(part, "keys=") &&
		    (h->key_count ||
		     !trigger_take_fields(text_skip(part, 5), true, h->keys, &h->key_count)))
			return false;
		if (text_begins(part, "vals=") &&
		    (h->value_count ||
		     !trigger_take_fields(text_skip(part, 5), false, h->values, &h->value_count)))
			return false;
		rest = text_skip(rest, len);
		if (!rest.len || *rest.data == ' ')
			break;
		rest = text_skip(rest, 1);
	}
	return h->key_count && h->value_count && text_is(h->values[0].name, "hitcount") &&
	       !h->values[0].modifier.len;
}

static bool totals_take(struct text *t, const char *name, uint64_t *ret)
{
	struct text line = text_take_line(t);

	return text_begins(line, name) && hist_text_number(text_skip(line, strlen(name)), ret);
}

/* The totals end the text, or another histogram follows. */
static bool totals_parse(struct text t, struct hist_text *h, struct text *rest)
{
	t = text_skip(t, strlen(TOTALS));
	if (!totals_take(&t, "    Hits: ", &h->hits) ||
	    !totals_take(&t, "    Entries: ", &h->entry_count) ||
	    !totals_take(&t, "    Dropped: ", &h->dropped))
		return false;
	*rest = text_trim(t);
	return !rest->len || text_begins(*rest, HEAD "hist:");
}

int hist_text_next(struct text *rest, struct hist_text *ret)
{
	struct text t = text_trim(*rest), behind;
	struct hist_text h = { 0 };
	size_t end = 0;

	*rest = part_of(NULL, 0);
	if (!t.len)
		return 0;
	if (!text_begins(t, HEAD))
		return -EBADMSG;
	t = text_skip(t, strlen(HEAD));
	h.trigger = text_take_line(&t);
	if (!trigger_parse(&h))
		return -EBADMSG;
	for (;; end++) {
		end = text_find(t, end, TOTALS);
		if (end == SIZE_MAX)
			return -EBADMSG;
		if (totals_parse(text_skip(t, end), &h, &behind))
			break;
	}
	h.entries = part_of(t.data, end);
	if (text_begins(h.entries, "#\n"))
		h.entries = text_skip(h.entries, 2);
	*rest = behind;
	*ret = h;
	return 1;
}

/* Skips blanks and "NAME:" or "NAME (%):". */
static bool value_skip_name(struct text *t, struct text name)
{
	while (t->len && *t->data == ' ')
		*t = text_skip(*t, 1);
	if (t->len <= name.len || memcmp(t->data, name.data, name.len) != 0)
		return false;
	*t = text_skip(*t, name.len);
	if (text_begins(*t, " (%)"))
		*t = text_skip(*t, 4);
	if (!t->len || *t->data != ':')
		return false;
	*t = text_skip(*t, 1);
	return true;
}

/* A value and its blanks; the last one ends with the line. */
static bool entry_take_value(struct text *t, const struct hist_text_field *f, bool last,
			     struct text *ret)
{
	uint64_t number;
	size_t len = 0;

	if (!value_skip_name(t, f->name))
		return false;
	while (len < t->len && t->data[len] == ' ')
		len++;
	/* A bar may be empty. */
	if (text_is(f->modifier, "graph"))
		len = t->len < BAR_WIDTH ? t->len : BAR_WIDTH;
	if (last)
		len = t->len;
	while (len < t->len && t->data[len] != ' ')
		len++;
	*ret = text_trim(part_of(t->data, len));
	*t = text_skip(*t, len);
	return f->kind != HIST_TEXT_NUMBER || hist_text_number(*ret, &number);
}

/* The values follow the keys: "} hitcount: ...", up to the end of the line. */
static bool entry_take_values(const struct hist_text *h, struct text *t,
			      struct hist_text_entry *ret)
{
	struct text begin, line;

	if (!text_begins(*t, "} "))
		return false;
	*t = text_skip(*t, 1);
	begin = part_of(t->data, t->len < VALUES_MAX ? t->len : VALUES_MAX);
	line = text_take_line(&begin);
	*t = text_skip(*t, (size_t)(begin.data - t->data));
	for (size_t i = 0; i < h->value_count; i++)
		if (!entry_take_value(&line, &h->values[i], i + 1 == h->value_count,
				      &ret->values[i]))
			return false;
	return true;
}

/* A number has ten digits, and ends with the first blank or comma behind it. */
static size_t key_least_width(const struct hist_text_field *f, struct text t)
{
	size_t len = 0;

	if (f->kind != HIST_TEXT_NUMBER)
		return f->kind == HIST_TEXT_EXEC ? 16 : 0;
	while (len < t.len && t.data[len] == ' ')
		len++;
	while (len < t.len && t.data[len] >= '0' && t.data[len] <= '9')
		len++;
	return len >= 10 && (text_begins(text_skip(t, len), " }") ||
			     text_begins(text_skip(t, len), ", "))
		       ? len
		       : TEXT_WIDTH;
}

static bool name_is_of_cpu(struct text t)
{
	return text_is(t, "cpu") || text_is(t, "CPU") || text_is(t, "common_cpu");
}

/* Length of the key's name; 0: another one. The trigger may give the CPU another name. */
static size_t key_name_length(struct text t, const struct hist_text_field *f)
{
	size_t len = 0;

	if (t.len > f->name.len && memcmp(t.data, f->name.data, f->name.len) == 0)
		return f->name.len;
	if (!name_is_of_cpu(f->name))
		return 0;
	while (len < t.len && len < sizeof("common_cpu") && t.data[len] != ':')
		len++;
	return len < t.len && name_is_of_cpu(part_of(t.data, len)) ? len : 0;
}

/* "next_comm: "; a stack: "stacktrace:\n", "NAME.stacktrace". */
static bool key_skip_name(struct text *t, const struct hist_text_field *f)
{
	size_t len = key_name_length(*t, f);

	if (!len)
		return false;
	*t = text_skip(*t, len);
	if (f->kind == HIST_TEXT_STACK && text_begins(*t, ".stacktrace")) {
		*t = text_skip(*t, strlen(".stacktrace"));
		return true;
	}
	if (*t->data != ':')
		return false;
	*t = text_skip(*t, 1);
	if (t->len && *t->data == ' ')
		*t = text_skip(*t, 1);
	return true;
}

/* Takes a key that another one follows. */
static bool key_take(struct text *t, const struct hist_text_field *f,
		     const struct hist_text_field *next, struct text *ret)
{
	size_t at = key_least_width(f, *t);

	while ((at = text_find(*t, at, ", ")) != SIZE_MAX) {
		struct text after = text_skip(*t, at + 2);

		if (key_skip_name(&after, next)) {
			*ret = text_trim(part_of(t->data, at));
			*t = text_skip(*t, at + 2);
			return true;
		}
		at++;
	}
	return false;
}

/* Takes the last key and the values. */
static bool key_take_last(struct text *t, const struct hist_text *h, struct hist_text_entry *ret)
{
	const size_t last = h->key_count - 1;
	size_t at = key_least_width(&h->keys[last], *t);

	while ((at = text_find(*t, at, "} ")) != SIZE_MAX) {
		struct text after = text_skip(*t, at);

		if (entry_take_values(h, &after, ret)) {
			ret->keys[last] = text_trim(part_of(t->data, at));
			*t = after;
			return true;
		}
		at++;
	}
	return false;
}

static bool entry_take(const struct hist_text *h, struct text *t, struct hist_text_entry *ret)
{
	if (!text_begins(*t, "{ "))
		return false;
	*t = text_skip(*t, 2);
	for (size_t i = 0; i + 1 < h->key_count; i++)
		if (!key_skip_name(t, &h->keys[i]) ||
		    !key_take(t, &h->keys[i], &h->keys[i + 1], &ret->keys[i]))
			return false;
	return key_skip_name(t, &h->keys[h->key_count - 1]) && key_take_last(t, h, ret);
}

int hist_entry_next(const struct hist_text *h, struct text *at, struct hist_text_entry *ret)
{
	struct text window;

	while (at->len && *at->data == '\n')
		*at = text_skip(*at, 1);
	if (!at->len)
		return 0;
	window = part_of(at->data, at->len < ENTRY_MAX ? at->len : ENTRY_MAX);
	*ret = (struct hist_text_entry){ 0 };
	if (!entry_take(h, &window, ret)) {
		text_take_line(at);
		return -EBADMSG;
	}
	*at = text_skip(*at, (size_t)(window.data - at->data));
	return 1;
}

/* "~ 2^10": 513 to 1024; a 0 counts as a 1. */
static bool range_of_power(struct text key, uint64_t *from, uint64_t *to)
{
	uint64_t power;

	if (!text_begins(key, "~ 2^") || !hist_text_number(text_skip(key, 4), &power) || power > 63)
		return false;
	*to = UINT64_C(1) << power;
	*from = power ? *to / 2 + 1 : 0;
	return true;
}

bool hist_text_range(const struct hist_text_field *f, struct text key, uint64_t *from, uint64_t *to)
{
	const char *dash;

	if (f->kind == HIST_TEXT_LOG2)
		return range_of_power(key, from, to);
	if (f->kind != HIST_TEXT_RANGE || !text_begins(key, "~ "))
		return false;
	key = text_skip(key, 2);
	dash = memchr(key.data, '-', key.len);
	return dash && hist_text_number(part_of(key.data, (size_t)(dash - key.data)), from) &&
	       hist_text_number(text_skip(key, (size_t)(dash - key.data) + 1), to) && *from <= *to;
}

/* "NAME   [NUMBER]" as "NAME", or as "NAME (NUMBER)". */
static void put_numbered(struct text key, bool numbered, struct buf *out)
{
	const char *bracket =
		key.len && key.data[key.len - 1] == ']' ? memrchr(key.data, '[', key.len) : NULL;
	struct text name, number;

	if (!bracket) {
		buf_append(out, key.data, key.len);
		return;
	}
	name = text_trim(part_of(key.data, (size_t)(bracket - key.data)));
	number = text_trim(part_of(bracket + 1, (size_t)(key.data + key.len - bracket) - 2));
	buf_append(out, name.data, name.len);
	if (numbered || !name.len)
		buf_printf(out, " (%.*s)", (int)number.len, number.data);
}

static void put_stack(struct text key, struct buf *out)
{
	const char *before = "";

	while (key.len) {
		struct text line = text_trim(text_take_line(&key));

		if (!line.len)
			continue;
		buf_puts(out, before);
		buf_append(out, line.data, line.len);
		before = " < ";
	}
}

void hist_text_put_key(const struct hist_text_field *f, struct text key, struct buf *out)
{
	size_t end;

	switch (f->kind) {
	case HIST_TEXT_SYMBOL:
		end = text_find(key, 0, "] ");
		if (end != SIZE_MAX && text_begins(key, "["))
			key = text_trim(text_skip(key, end + 2));
		buf_append(out, key.data, key.len);
		break;
	case HIST_TEXT_EXEC:
	case HIST_TEXT_CALL:
		put_numbered(key, f->kind == HIST_TEXT_EXEC, out);
		break;
	case HIST_TEXT_STACK:
		put_stack(key, out);
		break;
	default:
		buf_append(out, key.data, key.len);
	}
}
