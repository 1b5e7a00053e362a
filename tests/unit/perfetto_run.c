/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfetto_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void perfetto_run_deinit(struct perfetto_run *r)
{
	exported_deinit(&r->out);
	if (r->trace)
		perfetto__protos__trace__free_unpacked(r->trace, NULL);
}

void perfetto_export(struct perfetto_run *r, int stream_fd)
{
	struct buf *file = &r->out.file;

	r->out.options.format = r->out.options.format ?: "pftrace";
	try_export(&r->out, stream_fd);
	if (r->out.code == 0) {
		r->trace = perfetto__protos__trace__unpack(NULL, file->len, (uint8_t *)file->data);
		assert_non_null(r->trace);
	}
}

bool perfetto_contains(const struct perfetto_run *r, const char *text)
{
	return memmem(r->out.file.data, r->out.file.len, text, strlen(text));
}

size_t perfetto_find(const struct perfetto_run *r, PB(TracePacket__DataCase) kind, size_t n)
{
	size_t i = 0;

	for (; i < r->trace->n_packet; i++)
		if (r->trace->packet[i]->data_case == kind && !n--)
			break;
	return i;
}

static void put_kernel_switch(struct maker *m, uint64_t ts, int32_t prev, int32_t next)
{
	event_switch(m, ts, prev, prev ? "task" : "swapper/0", 1, 120, next,
		     next ? "task" : "swapper/0");
}

void maker_symbol_formats(struct maker *m)
{
	maker_function_format(m);
	maker_stack_format(m);
	maker_format(m, "test", "kinds", ID_KINDS,
		     "\tfield:unsigned long site;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n"
		     "\tfield:unsigned long bare;\toffset:24;\tsize:8;\tsigned:0;\n"
		     "\tfield:s16 small;\toffset:32;\tsize:2;\tsigned:1;\n",
		     "\"site=%pS ptr=%p bare=%lu small=%d\", (void *)REC->site, REC->ptr, "
		     "REC->bare, REC->small");
	maker_symbols(m, "ffffffff81000000 T outer\n"
			 "ffffffff81000100 T inner\n"
			 "ffffffff81000200 T last\n"
			 "ffffffffc0000000 t hidden\t[module]\n"
			 "ffffffffc0001000 t hidden_end\t[module]\n");
}

void event_symbols(struct maker *m, uint64_t ts)
{
	const uint64_t function[] = { INNER, OUTER };
	const uint64_t stack[] = { 3, INNER, OUTER, MODULE, UINT64_MAX };
	const uint64_t kinds[] = { MODULE, UINT64_C(0xffff888012345678), OUTER, 0xfffe };

	maker_event(m, ts, ID_FUNCTION, 7, function, sizeof(function));
	maker_event(m, ts + 1, ID_STACK, 7, stack, sizeof(stack));
	maker_event(m, ts + 2, ID_KINDS, 7, kinds, sizeof(kinds));
}

void maker_kernel(struct maker *m, const char *clock)
{
	maker_init(m, 8, false, 4096);
	m->clock = clock;
	maker_head(m);
	maker_symbol_formats(m);
	page_begin(m, 100 * S);
	event_print_mark(m, 100 * S, 1, "trace_event_clock_sync: name=traced_abcdef01");
	for (unsigned i = 0; i < 20; i++) {
		put_kernel_switch(m, 100 * S + (i * 2 + 1) * MS, 0, 7);
		put_kernel_switch(m, 100 * S + (i * 2 + 2) * MS, 7, 0);
	}
	page_end(m, 0);
	page_begin(m, 101 * S);
	event_symbols(m, 101 * S);
	page_flush(m, 0, 0);
}
