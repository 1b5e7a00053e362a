/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A histogram as users may ask for one, of an event with fields of all kinds. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/capture/plan/hists.h"
#include "daemon/capture/tracefs/event_field.h"

static const char format[] =
	"name: kmalloc\nID: 1\nformat:\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:int node;\toffset:32;\tsize:4;\tsigned:1;\n"
	"\tfield:__data_loc char[] name;\toffset:36;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"%pS %p %zu %d %s\", (void *)REC->call_site, REC->ptr, REC->bytes_req, "
	"REC->node, __get_str(name)\n";

/* A histogram that a user may have names no address. */
static void check_open(const struct hist_field *fields, size_t count)
{
	static const char *const own[] = { "common_timestamp", "common_cpu", "cpu", "hitcount" };

	for (size_t i = 0; i < count; i++) {
		const struct hist_field *f = &fields[i];
		bool known = event_field_judge(format, f->name, f->len) == EVENT_FIELD_OPEN;

		for (size_t k = 0; k < ARRAY_SIZE(own); k++)
			known |= strlen(own[k]) == f->len && memcmp(own[k], f->name, f->len) == 0;
		if (!known || (f->modifier_len && (strncmp(f->modifier, "sym", 3) == 0 ||
						   strncmp(f->modifier, "stack", 5) == 0)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = malloc(size + 1);
	_cleanup_buf_ struct buf trigger = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct hist_spec s, again;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (hist_spec_parse(&s, text, &err) < 0)
		return 0;
	if (hist_spec_memory(&s) > UINT64_C(1) << 30)
		abort();
	hist_spec_put_trigger(&s, "pause", &trigger);
	if (!buf_string(&trigger) || strncmp(trigger.data, "hist:keys=", 10) != 0 ||
	    !strstr(trigger.data, ":pause"))
		abort();
	hist_check(&s, "kmem:kmalloc", format, false, &err);
	if (hist_check(&s, "kmem:kmalloc", format, true, &err) < 0)
		return 0;
	check_open(s.keys, s.key_count);
	check_open(s.values, s.value_count);
	if (hist_spec_parse(&again, text, NULL) < 0 || again.key_count != s.key_count)
		abort();
	return 0;
}
