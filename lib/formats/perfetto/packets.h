/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets that occur once or rarely: machine, clocks, tasks, counts. Built with protobuf-c; the hot
 * path is in bundle.c and write.c. All return 0 or -ENOMEM.
 */
#pragma once

#include "base/buf.h"
#include "export/sink.h"
#include "trace/trace_info.h"

/* The sequence of all packets with interned data or track events. */
#define PF_SEQUENCE 1
/*
 * Sequence of the applications' tracks. Separate, since readers attribute what follows in a
 * sequence to the thread that it described last.
 */
#define PF_SEQUENCE_TRACKS 2

#define PF_BUILTIN_BOOTTIME 6 /* BuiltinClock */
/* TracePacket.timestamp_clock_id: the clock of a packet's timestamp. */
enum pf_clock {
	PF_CLOCK_BOOT = 0, /* default of packets */
	PF_CLOCK_MONO_RAW = 5,
	PF_CLOCK_TRACE = 64, /* a clock of our sequence: the kernel's "local" or "global" */
};

/*
 * Writes the sequence's begin, TraceUuid, SystemInfo, TraceConfig, CpuInfo and ClockSnapshots.
 * segment: number of the file, from 0; each has its own uuid. until: time in BOOTTIME, or in
 * mono_raw if that is the trace clock; of the ClockSnapshots until then, the first and the last few
 * are written; UINT64_MAX: all. ret_from: pass it to pf_put_clocks.
 */
int pf_put_head(const struct sink_env *env, uint32_t segment, uint64_t until, uint64_t *ret_from,
		struct buf *out);
/*
 * Writes the FtraceStats of the start. Before it, no packet of the file has a time but the
 * ClockSnapshots, so readers take packets without one, like those of the first tasks, for older
 * than any event.
 */
int pf_put_start(const struct trace_info *info, struct buf *out);
/* Writes the ClockSnapshots after *from until `until`; advances *from. */
int pf_put_clocks(const struct trace_info *info, uint64_t *from, uint64_t until, struct buf *out);
#define PF_TASKS_PER_PACKET 256
/* Writes a ProcessTree of at most PF_TASKS_PER_PACKET tasks, as of ts in `clock`. */
int pf_put_tasks(const struct task_table *table, struct task *const *tasks, size_t count,
		 uint64_t ts, enum pf_clock clock, struct buf *out);
/* A thread's new name, from ts on. */
int pf_put_rename(const struct task *task, uint64_t ts, enum pf_clock clock, struct buf *out);
/*
 * Ties a clock of the sequence, at ts, to a builtin clock (PF_BUILTIN_), at builtin_ts. Write it
 * before any time in that clock: readers reject what they can't convert.
 */
int pf_put_clock_tie(uint32_t clock, uint64_t ts, uint32_t builtin, uint64_t builtin_ts,
		     struct buf *out);
/*
 * Writes when tracing began and ended. first_ts: of the first event, in clock; 0: none. Readers
 * apply it to all events, also to those before it in the file.
 */
int pf_put_end(const struct trace_info *info, uint64_t first_ts, enum pf_clock clock,
	       struct buf *out);
/* Writes the FtraceStats of the end, if last, and TraceStats. bytes: of all packets before. */
int pf_put_tail(const struct trace_info *info, const struct export_result *result, bool last,
		uint64_t bytes, struct buf *out);

/* Base of the loss tracks' uuids, to which the CPU is added: "lost". */
#define PF_LOSS_TRACKS UINT64_C(0x6c6f737400000000)
/* Writes the track for a CPU's gaps, and one gap. count UINT64_MAX: unknown. */
int pf_put_loss_track(uint32_t cpu, struct buf *out);
int pf_put_loss(uint32_t cpu, uint64_t before_ts, uint64_t after_ts, uint64_t count,
		enum pf_clock clock, struct buf *out);
