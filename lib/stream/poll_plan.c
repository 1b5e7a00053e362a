/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stream/poll_plan.h"

#include <string.h>

#include "base/io.h"
#include "base/parse.h"

/* A scan of all processes takes milliseconds. */
#define INTERVAL_MIN_MS 10
#define INTERVAL_MIN_PROCESSES_MS 100

static unsigned plan_find_source(const char *name, size_t len)
{
	for (unsigned s = 1; s < POLL_SOURCES; s++)
		if (strlen(poll_source_name(s)) == len && !memcmp(poll_source_name(s), name, len))
			return s;
	return 0;
}

static int plan_refuse_name(const char *name, size_t len, struct error *err)
{
	_cleanup_buf_ struct buf all = BUF_INIT;

	for (unsigned s = 1; s < POLL_SOURCES; s++)
		buf_printf(&all, "%s%s", s > 1 ? ", " : "", poll_source_name(s));
	error_set(err, -EINVAL, "there are no files '%.*s' to poll", (int)len, name);
	return error_hint(err, "there are: %s", buf_string(&all) ?: "");
}

static int plan_add_source(struct poll_plan *plan, unsigned source, uint64_t interval_ns,
			   struct error *err)
{
	uint64_t min_ms =
		source == POLL_PROCESS_MEMORY ? INTERVAL_MIN_PROCESSES_MS : INTERVAL_MIN_MS;

	if (interval_ns < min_ms * NSEC_PER_MSEC) {
		error_set(err, -EINVAL, "%s can't be polled that often", poll_source_name(source));
		return error_hint(err, "use at least %llums", (unsigned long long)min_ms);
	}
	plan->interval_ns[source] = interval_ns;
	return 0;
}

/* One "SOURCE,SOURCE@INTERVAL". */
static int plan_add_group(struct poll_plan *plan, const char *group, size_t len, struct error *err)
{
	const char *at = memchr(group, '@', len), *end = at ?: group + len;
	_cleanup_free_ char *interval =
		at ? strndup(at + 1, len - (size_t)(at + 1 - group)) : strdup(POLL_INTERVAL_USUAL);
	uint64_t interval_ns;
	int r = interval ? parse_duration(interval, &interval_ns, err)
			 : error_errno(err, -ENOMEM, "polling");

	while (r == 0 && group <= end) {
		size_t name = MIN(strcspn(group, ","), (size_t)(end - group));
		unsigned source = plan_find_source(group, name);

		r = source ? plan_add_source(plan, source, interval_ns, err)
			   : plan_refuse_name(group, name, err);
		group += name + 1;
	}
	return r;
}

int poll_plan_add(struct poll_plan *plan, const char *text, struct error *err)
{
	static const char blanks[] = " \t";
	struct poll_plan changed = *plan;
	int r = 0;

	text += strspn(text, blanks);
	if (!*text)
		return plan_refuse_name(text, 0, err);
	while (r == 0 && *text) {
		size_t len = strcspn(text, blanks);

		r = plan_add_group(&changed, text, len, err);
		text += len;
		text += strspn(text, blanks);
	}
	if (r == 0)
		*plan = changed;
	return r;
}

bool poll_plan_is_empty(const struct poll_plan *plan)
{
	for (unsigned s = 1; s < POLL_SOURCES; s++)
		if (plan->interval_ns[s])
			return false;
	return true;
}
