/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/origin.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/json.h"

static void origin_put_words(const char *key, const struct string_list *words, struct buf *out)
{
	json_put_key(out, key);
	buf_putc(out, '[');
	for (size_t i = 0; i < words->count; i++) {
		json_put_comma(out);
		json_put_string(out, words->items[i]);
	}
	buf_putc(out, ']');
}

/* The first label of a name counts, as orders have it. */
static bool origin_has_label(const struct string_list *labels, size_t count, size_t name_len)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(labels->items[i], labels->items[count], name_len + 1) == 0)
			return true;
	return false;
}

static void origin_put_labels(const struct string_list *labels, struct buf *out)
{
	json_put_key(out, "labels");
	buf_putc(out, '{');
	for (size_t i = 0; i < labels->count; i++) {
		const char *label = labels->items[i], *equals = strchr(label, '=');

		if (origin_has_label(labels, i, (size_t)(equals - label)))
			continue;
		json_put_comma(out);
		buf_putc(out, '"');
		json_escape(out, label, (size_t)(equals - label));
		buf_puts(out, "\":");
		json_put_string(out, equals + 1);
	}
	buf_putc(out, '}');
}

void origin_put(const struct policy *policy, const struct order *order, uint64_t started_s,
		struct buf *out)
{
	time_t t = (time_t)started_s;
	struct utsname kernel = { 0 };
	struct tm tm = { 0 };
	char time[32] = "";

	uname(&kernel);
	gmtime_r(&t, &tm);
	strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_puts(out, ",\"origin\":{");
	json_put_string_key(out, "board", policy->id);
	json_put_string_key(out, "fleet", policy->fleet);
	json_put_u64_key(out, "order", order->serial);
	json_put_string_key(out, "started", time);
	json_put_string_key(out, "kernel", kernel.release);
	json_put_string_key(out, "arch", kernel.machine);
	origin_put_words("groups", &policy->groups, out);
	origin_put_labels(&policy->labels, out);
	buf_putc(out, '}');
}
