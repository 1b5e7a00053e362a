/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The part of a recording, as people type it: a time, and a filter of events. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "export/moment.h"
#include "filter/filter.h"

#define TEXT_BYTES_MAX 400
#define RECORD 64

static const char *const formats[] = {
	"name: sched_switch\n"
	"ID: 1\n"
	"format:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\n"
	"print fmt: \"prev_comm=%s prev_pid=%d\", REC->prev_comm, REC->prev_pid\n",
	"name: work\n"
	"ID: 2\n"
	"format:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u8 kind;\toffset:12;\tsize:1;\tsigned:0;\n"
	"\n"
	"print fmt: \"name=%s kind=%u\", __get_str(name), REC->kind\n",
};

/* Records of both events, all bytes alike; in blocks of their own, so that a sanitizer sees reads
 * beyond. */
static void match_all(const struct event_filter *filter)
{
	static const uint8_t fill[] = { 0x00, 0x41, 0xff };
	static const uint32_t lengths[] = { 8, 14, 20, RECORD };
	const size_t events = ARRAY_SIZE(formats), fills = ARRAY_SIZE(fill);

	for (size_t i = 0; i < events * fills * ARRAY_SIZE(lengths); i++) {
		const uint32_t len = lengths[i / events / fills];
		_cleanup_free_ uint8_t *data = malloc(len);
		struct trace_event ev = { .id = (uint16_t)(1 + i % events), .pid = 7 };

		if (!data)
			return;
		memset(data, fill[i / events % fills], len);
		data[0] = (uint8_t)ev.id;
		data[1] = 0;
		ev.rec.data = data;
		ev.rec.len = len;
		filter->takes(filter->userdata, &ev);
	}
}

static void try_filter(const char *text, const struct trace_info *info)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_(filter_freep) struct filter *filter = NULL;
	const struct event_filter *ops;

	if (filter_new(&filter, &text, 1, &err) < 0)
		return;
	ops = filter_event_filter(filter);
	if (ops->begin(ops->userdata, info, &err) == 0)
		match_all(ops);
	else if (!err.message)
		abort();
}

static void try_moment(const char *text)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct moment m = { 0 };
	int r = moment_parse(text, &m, &err);

	if (r < 0 ? !err.hint : m.kind == MOMENT_NONE || (m.kind == MOMENT_MARK && !*m.mark))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Traced__Capture__Header header = TRACED__CAPTURE__HEADER__INIT;
	const struct event_table_env env = { .word_size = 8 };
	struct trace_info info = { .header = &header };
	_cleanup_free_ char *text = NULL;

	if (size > TEXT_BYTES_MAX)
		return 0;
	text = strndup((const char *)data, size);
	header.word_size = 8;
	if (!text || event_table_new(&info.events, &env) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		event_table_add(info.events, i ? "work" : "sched", formats[i], strlen(formats[i]),
				NULL);
	if (event_table_seal(info.events, NULL) == 0 && task_table_new(&info.tasks) == 0) {
		try_moment(text);
		try_filter(text, &info);
	}
	task_table_free(info.tasks);
	event_table_free(info.events);
	return 0;
}
