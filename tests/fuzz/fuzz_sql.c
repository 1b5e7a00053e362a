/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pieces of an event by SQL, as a client sends them: up to eleven texts, each ended by a line
 * break. Those that are missing are those of a usual event.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/capture/plan/synthetic.h"

#define PIECES 11
#define GROUP "traced_0123abcd"

static char *take_piece(const char **at, const char *end)
{
	const char *line = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
	char *piece = line ? strndup(*at, (size_t)(line - *at)) : NULL;

	if (line)
		*at = line + 1;
	return piece;
}

/* Outside of its filter an accepted trigger has one action, and nothing but what it is made of. */
static void check_trigger(const char *trigger, bool is_end)
{
	const char *filter = strstr(trigger, " if ");
	size_t len = filter ? (size_t)(filter - trigger) : strlen(trigger);
	size_t colons = 0;

	if (strncmp(trigger, "hist:keys=", 10) != 0 || strchr(trigger, '\n') ||
	    memchr(trigger, ' ', len) || memchr(trigger, '!', len))
		abort();
	for (size_t i = 0; i < len; i++)
		colons += trigger[i] == ':';
	/* hist, keys, variables, clock, size, pause, onmatch. */
	if (colons != (is_end ? 6 : 5))
		abort();
	if (is_end && (!strstr(trigger, ":pause:onmatch(") || trigger[len - 1] != ')'))
		abort();
}

static void check_plan(const struct capture_request *request)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture_event_spec spec = { .glob = GROUP ":opened" };
	struct probe_list probes = { &spec, 1 };
	struct synthetic_list list = { 0 };
	struct plan plan = { 0 };

	if (synthetic_plan(&plan, request, GROUP, &probes, &list, &err) == 0 &&
	    synthetic_plan_triggers(&plan, request, &list, "boot", "traced-1-x", &err) == 0) {
		const char *line = plan.steps[0].value;

		if (strncmp(line, "sql_0123abcd_", 13) != 0 || strchr(line, '\n')[1])
			abort();
		check_trigger(plan.steps[1].value, false);
		check_trigger(plan.steps[2].value, true);
		for (size_t i = 1; i < plan.count; i++)
			if (strstr(plan.steps[i].file, "..") || *plan.steps[i].file != 'e')
				abort();
	} else if (!err.message) {
		abort();
	}
	plan_deinit(&plan);
	synthetic_list_deinit(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct capture_sql sql = {
		.name = "wakeup",
		.text = "",
		.fields = "pid_t pid; char comm[16]; u64 lat;",
		.arguments = "c,d,e",
		.start = { "sched:sched_waking", "pid", "a=pid,b=common_timestamp.usecs", "" },
		.end = { ":opened", "next_pid", "c=$a,d=next_comm,e=common_timestamp.usecs-$b",
			 "" },
	};
	const char **const places[PIECES] = {
		&sql.name,	 &sql.fields,	       &sql.arguments,	  &sql.start.event,
		&sql.start.keys, &sql.start.variables, &sql.start.filter, &sql.end.event,
		&sql.end.keys,	 &sql.end.variables,   &sql.end.filter,
	};
	const struct capture_request request = { .name = "fuzz", .sql = &sql, .sql_count = 1 };
	const char *at = (const char *)data, *end = at + size;
	_cleanup_error_ struct error err = ERROR_INIT;
	char *owned[PIECES] = { NULL };
	int r;

	if (size > 16 << 10)
		return 0;
	for (size_t i = 0; i < PIECES; i++) {
		owned[i] = take_piece(&at, end);
		if (owned[i] && *owned[i])
			*places[i] = owned[i];
	}
	r = synthetic_check_pieces(&sql, &err);
	if (r == 0)
		check_plan(&request);
	else if (r != -EINVAL || !err.message)
		abort();
	for (size_t i = 0; i < PIECES; i++)
		free(owned[i]);
	return 0;
}
