/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/order.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "fleet/keys.h"
#include "fleet/result_name.h"
#include "fleet/word.h"

/* The message's name in errors. */
#define ORDER_PATH "order"
#define SHARE_DECIMALS 6
/* A line of libinih has 198 bytes, with the key. */
#define LINE_MAX_LEN 180

static int order_set_serial(void *field, const char *value, struct error *err)
{
	char *end;

	errno = 0;
	*(uint64_t *)field = strtoull(value, &end, 10);
	if (errno || *end || value[0] < '1' || value[0] > '9')
		return error_set(err, -EINVAL, "the value is not a number above 0");
	return 0;
}

/* Only "2026-11-28T15:04:05Z": no zone but UTC, and no date that timegm() would have to mend. */
static int order_set_time(void *field, const char *value, struct error *err)
{
	struct tm tm = { 0 }, again;
	const char *end = strptime(value, "%Y-%m-%dT%H:%M:%SZ", &tm);
	char text[32];
	time_t t;

	if (!end || *end)
		return error_set(err, -EINVAL, "the value is not a time like 2026-11-28T15:04:05Z");
	t = timegm(&tm);
	if (t <= 0 || !gmtime_r(&t, &again) ||
	    !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &again) || strcmp(text, value) != 0)
		return error_set(err, -EINVAL, "there is no such time");
	*(uint64_t *)field = (uint64_t)t;
	return 0;
}

/* "1", "0.25", "100": per cent, exact. */
static int order_set_share(void *field, const char *value, struct error *err)
{
	uint64_t share = 0;
	int decimals = -1;

	if (strlen(value) > 3 + 1 + SHARE_DECIMALS)
		return error_set(err, -EINVAL, "the value is too long");
	for (const char *p = value; *p; p++) {
		if (*p == '.' && decimals < 0 && p > value && p[1]) {
			decimals = 0;
			continue;
		}
		if (*p < '0' || *p > '9')
			return error_set(err, -EINVAL, "the value is not a share in per cent");
		share = share * 10 + (uint64_t)(*p - '0');
		decimals += decimals >= 0;
	}
	for (int i = decimals < 0 ? 0 : decimals; i < SHARE_DECIMALS; i++)
		share *= 10;
	if (!share || share > ORDER_SHARE_ALL || decimals > SHARE_DECIMALS)
		return error_set(err, -EINVAL, "a share is above 0 and at most 100 per cent");
	*(uint64_t *)field = share;
	return 0;
}

static int order_set_text(void *field, const char *value, struct error *err)
{
	if (!*value || !word_is_printable(value))
		return error_set(err, -EINVAL, "the value is empty or too long");
	return setting_string(field, value, err);
}

/* "10m" is minutes, as in `record --rotate`: what is no time is a size. */
static int order_take_limit(struct order_segments *s, const char *word, struct error *err)
{
	uint64_t ns = 0, bytes = 0;

	/* A number alone would be a time in seconds. */
	if (strchr("0123456789", word[strlen(word) - 1]))
		return error_set(err, -EINVAL, "'%s' has no unit", word);
	if (parse_duration(word, &ns, NULL) < 0 && parse_size(word, &bytes, NULL) < 0)
		return error_set(err, -EINVAL, "'%s' is neither a time nor a size", word);
	if ((ns && s->ns) || (bytes && s->bytes))
		return error_set(err, -EINVAL, "there are two limits of a kind");
	if (ns ? ns < ORDER_SEGMENT_NS_MIN : bytes < ORDER_SEGMENT_BYTES_MIN)
		return error_set(err, -EINVAL, "a segment has at least one second, or 64K");
	s->ns = MAX(s->ns, ns);
	s->bytes = MAX(s->bytes, bytes);
	return 0;
}

/* A time, a size, or both. */
static int order_set_segments(void *field, const char *value, struct error *err)
{
	_cleanup_(string_list_deinit) struct string_list words = { 0 };
	int r = string_list_add_words(&words, value);

	if (r < 0)
		return error_errno(err, r, "the segments");
	if (!words.count)
		return error_set(err, -EINVAL, "the value is empty");
	for (size_t i = 0; i < words.count && r == 0; i++)
		r = order_take_limit(field, words.items[i], err);
	return r;
}

static int order_set_format(void *field, const char *value, struct error *err)
{
	if (!result_is_segment_format(value))
		return error_set(err, -EINVAL, "segments can't have this format");
	return setting_string(field, value, err);
}

static const struct setting settings[] = {
	{ "order", "serial", offsetof(struct order, serial), order_set_serial },
	{ "order", "fleet", offsetof(struct order, fleet), keys_set_name },
	{ "order", "group", offsetof(struct order, group), keys_set_name },
	{ "order", "not_before", offsetof(struct order, not_before), order_set_time },
	{ "order", "expires", offsetof(struct order, expires), order_set_time },
	{ "order", "share", offsetof(struct order, share), order_set_share },
	{ "order", "salt", offsetof(struct order, salt), keys_set_name },
	{ "order", "labels", offsetof(struct order, labels), keys_set_labels },
	{ "order", "window", offsetof(struct order, window_ns), keys_set_duration },
	{ "order", "duration", offsetof(struct order, duration_ns), keys_set_duration },
	{ "order", "until", offsetof(struct order, until), keys_set_text },
	{ "order", "profile", offsetof(struct order, profile), keys_set_name },
	{ "order", "events", offsetof(struct order, events), keys_set_events },
	{ "order", "filter", offsetof(struct order, filter), order_set_text },
	{ "order", "sql", offsetof(struct order, sql), keys_set_text },
	{ "order", "as", offsetof(struct order, as), keys_set_name },
	{ "order", "hist", offsetof(struct order, hist), keys_set_text },
	{ "order", "reports", offsetof(struct order, reports), keys_set_names },
	{ "order", "capture", offsetof(struct order, capture), setting_switch },
	{ "order", "cpu_max", offsetof(struct order, cpu_permille), keys_set_percent },
	{ "order", "bytes_max", offsetof(struct order, bytes_max), setting_size },
	{ "order", "presigned", offsetof(struct order, presigned), keys_set_query },
	{ "order", "segments", offsetof(struct order, segments), order_set_segments },
	{ "order", "format", offsetof(struct order, format), order_set_format },
};

void order_begin(struct buf *text)
{
	buf_puts(text, "[order]\n");
}

static bool order_has_byte(char c)
{
	return (c >= ' ' && c <= '~') || c == '\n' || c == '\t';
}

/* libinih takes what follows a blank and a semicolon for a comment. */
static int order_check_value(const char *key, const char *value, struct error *err)
{
	const struct setting *setting = setting_find(settings, ARRAY_SIZE(settings), "order", key);
	_cleanup_order_ struct order unused = { 0 };

	if (strpbrk(value, "\r\n") || *value == ';' || strstr(value, " ;") || strstr(value, "\t;"))
		return error_set(err, -EINVAL,
				 "an order's value has neither a new line nor \" ;\"");
	for (const char *p = value; *p; p++)
		if (!order_has_byte(*p))
			return error_set(err, -EINVAL, "'%s' is not text in ASCII", value);
	return setting->set((char *)&unused + setting->offset, value, err);
}

int order_put(struct buf *text, const char *key, const char *value, struct error *err)
{
	return order_put_words(text, key, &value, value != NULL, err);
}

int order_put_words(struct buf *text, const char *key, const char *const *words, size_t count,
		    struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		int r = order_check_value(key, words[i], err);

		if (r < 0)
			return r;
		if (i)
			buf_printf(text, "  %s\n", words[i]);
		else
			buf_printf(text, "%s = %s\n", key, words[i]);
	}
	return 0;
}

/*
 * A line ends at a single blank, so that the lines, joined again, are the same text. libinih takes
 * a line that begins with one of its marks for a comment.
 */
static size_t order_line_len(const char *text)
{
	size_t len = strlen(text), best = 0;

	if (len <= LINE_MAX_LEN)
		return len;
	for (size_t i = 1; i <= LINE_MAX_LEN; i++)
		if (text[i] == ' ' && text[i - 1] != ' ' && text[i + 1] &&
		    !strchr(" #;", text[i + 1]))
			best = i;
	return best ?: len;
}

/* Makes one blank of each line break or tab, and the blanks behind it. */
static void order_join_lines(char *text)
{
	char *to = text;

	for (const char *p = text; *p;) {
		const bool ends = strchr("\r\n\t", *p);

		*to++ = ends ? ' ' : *p;
		p += ends ? strspn(p, " \r\n\t") : 1;
	}
	*to = '\0';
}

int order_put_text(struct buf *text, const char *key, const char *value, struct error *err)
{
	_cleanup_buf_ struct buf lines = BUF_INIT;
	_cleanup_free_ char *flat = strdup(value ?: "");
	size_t len;
	int r;

	if (!value)
		return 0;
	if (!flat)
		return error_errno(err, -ENOMEM, "%s", key);
	if (!value[strspn(value, " \r\n\t")])
		return error_set(err, -EINVAL, "the value is empty");
	order_join_lines(flat);
	r = order_check_value(key, flat, err);
	for (const char *p = flat + strspn(flat, " "); r == 0 && *p; p += len + (p[len] != '\0')) {
		len = order_line_len(p);
		if (len > LINE_MAX_LEN)
			return error_set(err, -EINVAL,
					 "it has %d characters without a single blank",
					 LINE_MAX_LEN);
		if (p == flat + strspn(flat, " "))
			buf_printf(&lines, "%s = %.*s\n", key, (int)len, p);
		else
			buf_printf(&lines, "  %.*s\n", (int)len, p);
	}
	buf_append(text, lines.data, lines.len);
	return r;
}

static int order_check_bytes(const char *text, size_t len, struct error *err)
{
	if (!len || len > ORDER_MAX)
		return error_set(err, -EINVAL, "an order has 1 to %d bytes", ORDER_MAX);
	for (size_t i = 0; i < len; i++)
		if (!order_has_byte(text[i]))
			return error_set(err, -EINVAL, "byte %zu is not text in ASCII", i);
	return 0;
}

static bool order_has_report(const struct order *o, const char *name)
{
	for (size_t i = 0; i < o->reports.count; i++)
		if (strcmp(o->reports.items[i], name) == 0)
			return true;
	return false;
}

/* The daemon reads it so, too: the event's name ends at the last colon before the first '='. */
static int order_find_hist_event(struct order *o, struct error *err)
{
	size_t len = strcspn(o->hist, "= ");

	while (len && o->hist[len] != ':')
		len--;
	o->hist_event = strndup(o->hist, len);
	if (!o->hist_event)
		return error_errno(err, -ENOMEM, "the histogram");
	if (o->as && strcmp(o->hist_event, o->as) == 0)
		return 0;
	if (word_is_event(o->hist_event) && !strchr(o->hist_event, '*'))
		return 0;
	error_set(err, -EINVAL,
		  "a histogram begins with SYSTEM:EVENT, or with the name of the SQL");
	return error_hint(err, "write it as in 'sched:sched_switch:keys=next_comm'");
}

/* Others than an event are of the scheduler, of interrupts and of marks. */
static int order_find_until_event(struct order *o, struct error *err)
{
	const char *name = o->until + strcspn(o->until, " ");

	if (strncmp(o->until, "lost", strlen("lost")) == 0)
		return error_set(err, -EINVAL, "an order can't wait for losses");
	if (strncmp(o->until, "event", strlen("event")) != 0)
		return 0;
	name += strspn(name, " ");
	o->until_event = strndup(name, strcspn(name, " "));
	if (!o->until_event)
		return error_errno(err, -ENOMEM, "the condition");
	if (word_is_event(o->until_event) && !strchr(o->until_event, '*'))
		return 0;
	error_set(err, -EINVAL, "until has no SYSTEM:EVENT");
	return error_hint(err, "write it as in 'event sched:sched_process_exit if comm == \"x\"'");
}

static int order_check_segments(const struct order *o, struct error *err)
{
	if (o->format && !order_has_segments(o))
		return error_set(err, -EINVAL, "only segments have a format");
	if (!order_has_segments(o))
		return 0;
	if (!o->capture)
		return error_set(err, -EINVAL, "segments need a capture");
	/* Segments leave the board before anybody knows how many there will be. */
	if (o->bytes_max)
		return error_set(err, -EINVAL, "segments and bytes_max exclude each other");
	/* Reports need the whole recording, which nobody keeps; a ring can't be cut. */
	if (o->reports.count || o->until)
		return error_set(err, -EINVAL, "segments and %s exclude each other",
				 o->until ? "until" : "reports");
	return 0;
}

static int order_check(const struct order *o, struct error *err)
{
	const char *missing = !o->serial	? "serial"
			      : !o->fleet	? "fleet"
			      : !o->expires	? "expires"
			      : !o->duration_ns ? "duration"
						: NULL;

	if (missing)
		return error_set(err, -EINVAL, "the key %s is missing", missing);
	if (o->group && strcmp(o->group, "all") == 0)
		return error_set(err, -EINVAL,
				 "no group is called all: an order without one is for all");
	if (!o->reports.count && !o->capture)
		return error_set(err, -EINVAL, "neither reports nor a capture is wanted");
	if (o->profile && o->events.count)
		return error_set(err, -EINVAL, "there are a profile and events");
	if (!o->sql != !o->as)
		return error_set(err, -EINVAL, "sql and as need each other");
	/* Without one, the report would have the daemon record its default events. */
	if (!o->hist && order_has_report(o, "hist"))
		return error_set(err, -EINVAL, "the report hist needs a histogram");
	if (o->hist && !o->capture && !order_has_report(o, "hist"))
		return error_set(err, -EINVAL, "a histogram needs the report hist, or a capture");
	if (!o->profile && !o->events.count && !o->reports.count && !o->sql && !o->hist)
		return error_set(err, -EINVAL, "there are no events");
	if (o->filter && o->events.count != 1)
		return error_set(err, -EINVAL, "a filter needs exactly one event");
	if (o->cpu_permille && o->until)
		return error_set(err, -EINVAL,
				 "until and cpu_max exclude each other: nothing reads a ring");
	return order_check_segments(o, err);
}

int order_parse(struct order *ret, const char *text, size_t len, struct error *err)
{
	_cleanup_order_ struct order o = { .share = ORDER_SHARE_ALL };
	_cleanup_fclose_ FILE *file = NULL;
	int r = order_check_bytes(text, len, err);

	if (r < 0)
		return r;
	file = fmemopen((void *)(uintptr_t)text, len, "r");
	if (!file)
		return error_errno(err, -errno, ORDER_PATH);
	r = keys_read(file, ORDER_PATH, settings, ARRAY_SIZE(settings), &o, err);
	if (r >= 0)
		r = order_check(&o, err);
	if (r >= 0 && o.hist)
		r = order_find_hist_event(&o, err);
	if (r >= 0 && o.until)
		r = order_find_until_event(&o, err);
	if (r < 0)
		return r;
	*ret = o;
	o = (struct order){ 0 };
	return 0;
}

void order_deinit(struct order *o)
{
	free(o->fleet);
	free(o->group);
	free(o->salt);
	free(o->profile);
	free(o->filter);
	free(o->sql);
	free(o->as);
	free(o->hist);
	free(o->hist_event);
	free(o->until);
	free(o->until_event);
	free(o->format);
	string_list_deinit(&o->presigned);
	string_list_deinit(&o->labels);
	string_list_deinit(&o->events);
	string_list_deinit(&o->reports);
	*o = (struct order){ 0 };
}
