/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes polled files as SysStats and ProcessStats, and values that these have no field for as
 * counters of TrackEvents. docs/perfetto.md lists them.
 */
#pragma once

#include "formats/perfetto/marks.h"
#include "marks/poll.h"

struct pf_polls {
	struct buf stats; /* the message being built */
	struct buf text;
};

void pf_polls_deinit(struct pf_polls *p);
/* Appends the packets of one reading to out. 0 or -ENOMEM. */
int pf_polls_put(struct pf_polls *p, struct pf_marks *marks, const struct poll *poll,
		 struct buf *out);
