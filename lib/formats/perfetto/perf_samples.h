/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes CPU samples as PerfSample packets, with interned callstacks, frames and mappings: readers
 * draw flame graphs from them.
 */
#pragma once

#include "formats/perfetto/message.h"
#include "formats/perfetto/packets.h"
#include "marks/stack_frames.h"

struct pf_perf {
	const char *event; /* event that triggers samples; borrowed; NULL: unknown */
	uint32_t hz;
	bool said;					/* the defaults are in this file */
	struct pf_interner functions, paths, build_ids; /* interned strings */
	struct pf_interner mappings, frames; /* their keys, by number; field 0: not written */
	uint64_t stacks;
	struct buf scratch;
};
void pf_perf_init(struct pf_perf *p);
void pf_perf_deinit(struct pf_perf *p);
/* Begins another file: nothing is interned there. */
void pf_perf_restart(struct pf_perf *p);

/* Whether a sample has a CPU, which PerfSample requires. */
bool pf_perf_has_cpu(const struct mark *sample, uint32_t *ret_cpu);
/* pid: the sample's process. Appends whole packets to out. 0 or -ENOMEM. */
int pf_perf_put(struct pf_perf *p, struct stack_frames *frames, const struct mark *sample,
		int32_t pid, enum pf_clock clock, struct buf *out);
