/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Samples of CPUs as PerfSample packets, with interned callstacks, frames and mappings: what
 * readers make flame graphs of.
 */
#pragma once

#include "formats/perfetto/message.h"
#include "formats/perfetto/packets.h"
#include "marks/stack_frames.h"

struct pf_perf {
	const char *event; /* what the samples are taken by; borrowed; NULL: not known */
	uint32_t hz;
	bool said;			     /* that, in this file */
	struct pf_interner functions, paths; /* interned strings */
	struct pf_interner frames;	     /* "function\nmodule", by the frame's number */
	uint64_t stacks;
	struct buf scratch;
};
void pf_perf_init(struct pf_perf *p);
void pf_perf_deinit(struct pf_perf *p);
/* Nothing is interned in the file that comes now. */
void pf_perf_restart(struct pf_perf *p);

/* Whether a sample says which CPU took it, as a PerfSample has to. */
bool pf_perf_has_cpu(const struct mark *sample, uint32_t *ret_cpu);
/* pid: of the sample's process. Appends whole packets to out. 0 or -ENOMEM. */
int pf_perf_put(struct pf_perf *p, struct stack_frames *frames, const struct mark *sample,
		int32_t pid, enum pf_clock clock, struct buf *out);
