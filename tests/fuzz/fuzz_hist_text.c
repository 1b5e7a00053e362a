/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of an event's hist file, as a recording has it. */
#include "fuzz.h"

#include <stdlib.h>

#include "report/hist_text.h"
#include "report/sink.h"

static void check_inside(struct text t, const uint8_t *data, size_t size)
{
	if (t.len && (t.data < (const char *)data || t.data + t.len > (const char *)data + size))
		abort();
}

/* All parts are parts of the text, and each entry takes something off it. */
static void check_parts(const uint8_t *data, size_t size)
{
	struct text rest = { (const char *)data, (uint32_t)size };
	struct hist_text h;

	while (hist_text_next(&rest, &h) > 0) {
		struct text at = h.entries;
		struct hist_text_entry e;
		uint32_t before = at.len + 1;

		while (at.len < before && (before = at.len, hist_entry_next(&h, &at, &e)))
			for (size_t i = 0; i < HIST_TEXT_FIELDS_MAX; i++) {
				check_inside(e.keys[i], data, size);
				check_inside(e.values[i], data, size);
			}
		if (at.len)
			abort();
	}
}

static void write_tables(const uint8_t *data, size_t size)
{
	Traced__Capture__Histogram message = TRACED__CAPTURE__HISTOGRAM__INIT, *all = &message;
	const struct trace_info info = { .histograms = &all, .histogram_count = 1 };
	const struct report_kind *kind = report_kind_find("hist");
	struct report_env env = { .info = &info };
	size_t count;

	message.event = (char *)"sched:sched_switch";
	message.text = (ProtobufCBinaryData){ size, (uint8_t *)(uintptr_t)data };
	count = kind->count(&env);
	for (env.number = 0; env.number < count && env.number < 4; env.number++) {
		const struct report_options options = { .form = (enum report_form)(env.number %
										   3) };
		_cleanup_(table_freep) struct table *table = NULL;
		_cleanup_buf_ struct buf out = BUF_INIT;
		struct report *report = NULL;

		if (kind->open(&report, &env) < 0 || kind->close(report, &table) < 0 ||
		    table_write(table, &options, true, &out, NULL) < 0)
			abort();
		kind->free(report);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_parts(data, size);
	write_tables(data, size);
	return 0;
}
