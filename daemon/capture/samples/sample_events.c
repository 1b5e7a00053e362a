/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/samples/sample_events.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/buf.h"

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} events[] = {
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
	{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
	{ "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ },
	{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
	{ "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES },
	{ "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
};

static int hint_names(struct error *err)
{
	_cleanup_buf_ struct buf names = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		buf_printf(&names, "%s%s", i ? ", " : "", events[i].name);
	return error_hint(err, "use one of %s, or a raw one in hexadecimal: r1a8",
			  buf_string(&names) ?: "");
}

int sample_event_find(const char *name, struct sample_event *ret, struct error *err)
{
	char *end;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (strcmp(events[i].name, name) != 0)
			continue;
		*ret = (struct sample_event){ events[i].type, events[i].config };
		return 0;
	}
	if (name[0] == 'r' && strspn(name + 1, "0123456789abcdef") == strlen(name + 1) && name[1] &&
	    strlen(name) <= 17) {
		*ret = (struct sample_event){ PERF_TYPE_RAW, strtoull(name + 1, &end, 16) };
		return 0;
	}
	error_set(err, -EINVAL, "'%s' is not an event to sample by", name);
	return hint_names(err);
}
