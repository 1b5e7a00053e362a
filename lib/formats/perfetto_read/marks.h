/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The marks and samples of a Perfetto trace that lib/formats/perfetto wrote, as a file of the
 * Trace Event Format: traceEvents, samples, stackFrames. Times are the packets' own.
 *
 * What the trace does not hold, or not as it was:
 * - slices: a B whose E comes next and says nothing but when is an X, and so is what was an X;
 *   an X that was written to begin a nanosecond earlier begins then; tdur and tidelta of 0 are not
 *   there, nor are they without tts and ticount; an E has the category of its B;
 * - ids: of async events the track's uuid, of flows the flow's; scopes are gone. What is not a
 *   thread's (async events, counters, instants of a process) is the first thread's of its
 *   process, and global async events, global instants and memory dumps are process 0's;
 * - objects (N O D) are async events; R, P, v and samples without a CPU instants; of a link (=)
 *   there is its effect;
 * - a flow's end that is bound to the next slice stands right before it; what goes on without
 *   having begun in the file begins there;
 * - a counter is one event for each series, called "counter id series [unit]";
 * - arguments: members that the format does not know and cname are among them; [] is {}, null is
 *   "null", a pointer is a string;
 * - no category is "default";
 * - samples: their name is what the recording's own are taken by; there is a pid;
 * - of processes without a number that readers take (0 and less): threads that are named and
 *   above 255, and named processes below 0, have async events for slices.
 */
#pragma once

#include "formats/perfetto_read/packets.h"

struct pf_mark_writer;

/* fd: an empty file, borrowed; the JSON object is written to it by and by. limit: bytes; 0: any */
int pf_mark_writer_new(struct pf_mark_writer **ret, int fd, uint64_t limit);
struct pf_mark_writer *pf_mark_writer_free(struct pf_mark_writer *w);
DEFINE_CLEANUP_FUNC(struct pf_mark_writer *, pf_mark_writer_free);

/*
 * Packets in the file's order; takes track_descriptor, track_event, interned, defaults,
 * perf_sample. What makes no sense, or finds no room, is left out. Memory: 64 MiB for what packets
 * refer to, 48 MiB for stacks, and a few times the largest packet. -EDQUOT: over limit.
 */
int pf_mark_writer_add(struct pf_mark_writer *w, const struct pf_packet *p, struct error *err);
/*
 * Ends the object. ret_count: marks and samples that were written; 0: there was nothing. The file
 * may be twice as long for a moment.
 */
int pf_mark_writer_close(struct pf_mark_writer *w, uint64_t *ret_count, struct error *err);
/* What was left out, marks or parts of them; ret_why: of the first one. */
uint64_t pf_mark_writer_left_out(const struct pf_mark_writer *w, const char **ret_why);
