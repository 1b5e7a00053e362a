/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A stream as a Perfetto trace, parsed by protobuf-c; and a capture for it. */
#pragma once

#include "exported.h"
#include "make_formats.h"
#include "proto/perfetto/trace.pb-c.h"

#define PB(name) Perfetto__Protos__##name
#define DATA(name) PERFETTO__PROTOS__TRACE_PACKET__DATA_##name

#define MS UINT64_C(1000000)
#define S (UINT64_C(1000) * MS)

struct perfetto_run {
	struct exported out;
	PB(Trace) * trace; /* NULL: the export failed */
};

void perfetto_run_deinit(struct perfetto_run *r);
#define _cleanup_perfetto_run_ _cleanup_(perfetto_run_deinit)

/* Exports a stream, to .pftrace unless r->out.options has another format. */
void perfetto_export(struct perfetto_run *r, int stream_fd);
bool perfetto_contains(const struct perfetto_run *r, const char *text);
/* The index of the n-th packet of that kind; the number of packets if there is none. */
size_t perfetto_find(const struct perfetto_run *r, PB(TracePacket__DataCase) kind, size_t n);

#define ID_KINDS 200
#define OUTER UINT64_C(0xffffffff81000010)
#define INNER UINT64_C(0xffffffff81000100)
#define MODULE UINT64_C(0xffffffffc0000008)

/* A kernel's events: a stack, a function, addresses shown as symbols. */
void maker_symbol_formats(struct maker *m);
void event_symbols(struct maker *m, uint64_t ts);
/* 40 switches, and event_symbols(); clock NULL: "boot". */
void maker_kernel(struct maker *m, const char *clock);
