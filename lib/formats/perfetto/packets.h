/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The packets that come once, or now and then: who recorded what where, the
 * clocks, the tasks, the counts. Built and packed by protobuf-c; the hot path
 * is in bundle.c and write.c. All return 0 or -ENOMEM.
 */
#pragma once

#include "base/buf.h"
#include "export/sink.h"
#include "trace/trace_info.h"

/* Every packet is of one sequence: it has the interned data and the track events. */
#define PF_SEQUENCE 1
/* But the tracks of applications: a reader takes the thread that a sequence described last for
 * the origin of all that follows in it. */
#define PF_SEQUENCE_TRACKS 2

#define PF_BUILTIN_BOOTTIME 6 /* BuiltinClock */
/* TracePacket.timestamp_clock_id: whose time a time stamp is. */
enum pf_clock {
	PF_CLOCK_BOOT = 0, /* unless a packet says otherwise */
	PF_CLOCK_MONO_RAW = 5,
	PF_CLOCK_TRACE = 64, /* of our sequence alone: the kernel's "local" and "global" */
};

/*
 * The sequence's begin, TraceUuid, SystemInfo, TraceConfig, CpuInfo, ClockSnapshots, FtraceStats
 * of the start. segment: of the recording, from 0; each has a uuid of its own. until, by
 * BOOTTIME or mono_raw, if that is the trace's clock: of the ClockSnapshots the first and the
 * last few by then; UINT64_MAX: all. ret_from: for pf_put_clocks.
 */
int pf_put_head(const struct sink_env *env, uint32_t segment, uint64_t until, uint64_t *ret_from,
		struct buf *out);
/* The ClockSnapshots taken after *from and by until; *from moves on. */
int pf_put_clocks(const struct trace_info *info, uint64_t *from, uint64_t until, struct buf *out);
#define PF_TASKS_PER_PACKET 256
/* A ProcessTree of these tasks, as of ts by clock; no more of them than that. */
int pf_put_tasks(struct task *const *tasks, size_t count, uint64_t ts, enum pf_clock clock,
		 struct buf *out);
/*
 * That a clock of the sequence read ts when one that readers know, PF_BUILTIN_, read builtin_ts.
 * Has to come before all that tells a time of that clock, as the reader refuses what it can't
 * convert.
 */
int pf_put_clock_tie(uint32_t clock, uint64_t ts, uint32_t builtin, uint64_t builtin_ts,
		     struct buf *out);
/* FtraceStats of the end, where it is the recording's; TraceStats. bytes: of all packets before. */
int pf_put_tail(const struct trace_info *info, const struct export_result *result, bool last,
		uint64_t bytes, struct buf *out);

/* Of the tracks' uuids, to which the CPU is added: "lost". */
#define PF_LOSS_TRACKS UINT64_C(0x6c6f737400000000)
/* The track on which a CPU's gaps are shown, and one gap. count UINT64_MAX: not known. */
int pf_put_loss_track(uint32_t cpu, struct buf *out);
int pf_put_loss(uint32_t cpu, uint64_t before_ts, uint64_t after_ts, uint64_t count,
		enum pf_clock clock, struct buf *out);
