/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording in several files. The exporter can make none, so it writes frames into a socket; who
 * owns the names makes files of them: an END after each file, a LAST after the last one. This one
 * is answered by a byte when all are there, and a SYNC, of a recording that goes on, when all
 * before it was written: what was recorded may go then. A socket that ends without it was cut. What
 * is no socket (a pipe) can't answer. Of a format that is a directory there is no END: a FILE has
 * the name to whose file all that comes is appended, until the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/export.h"
#include "export/output.h"
#include "export/sink.h"
#include "trace/ledger.h"

enum segment_frame_kind {
	SEGMENT_DATA = 1,
	SEGMENT_END,
	SEGMENT_LAST,
	SEGMENT_FILE,
	SEGMENT_SYNC,
};

/* Both ends are of one machine. */
struct segment_frame {
	uint32_t kind, len; /* len bytes of a SEGMENT_DATA or SEGMENT_FILE follow */
};
#define SEGMENT_FRAME_MAX (256U << 10)
/* Lower case letters, digits and underscores; without a terminator. */
#define SEGMENT_NAME_MAX 64

/* The segment that is being written. */
struct segment {
	struct export_rotate limit; /* zeros: there is but one */
	uint64_t raw_max;	    /* before compression; 0: any */
	uint64_t from_bytes, from_raw;
	uint64_t first_ts; /* of its first event; 0: none yet */
};

static inline bool segment_wanted(const struct export_rotate *limit)
{
	return limit->bytes || limit->ns;
}

/* Its head was written, and events are next. */
static inline void segment_begin(struct segment *s, const struct output *out)
{
	s->from_bytes = out->bytes + output_expect(out, out->buf.len);
	s->from_raw = out->raw_bytes + out->buf.len;
	s->first_ts = 0;
}

/* The event at ts belongs into another one. No segment is without an event. */
static inline bool segment_is_full(struct segment *s, const struct output *out,
				   const struct sink *sink, uint64_t ts)
{
	uint64_t held;

	if (!s->first_ts) {
		s->first_ts = ts;
		return false;
	}
	held = out->buf.len + (sink->ops->held ? sink->ops->held(sink) : 0);
	return (s->limit.ns && ts >= s->first_ts && ts - s->first_ts >= s->limit.ns) ||
	       (s->limit.bytes &&
		out->bytes + output_expect(out, held) >= s->from_bytes + s->limit.bytes) ||
	       (s->raw_max && out->raw_bytes + held >= s->from_raw + s->raw_max);
}

/* -EINVAL: that format, in that trace clock (NULL: any), can't be followed by another file. */
int segment_check(const struct sink_ops *ops, const char *clock, const struct export_rotate *rotate,
		  struct error *err);

/*
 * Ends it, and begins another with the event at ts. said: what its end tells; its account is
 * filled in. The account of the last one is what is left of ledger, which was closed.
 */
int segment_cut(struct segment *s, struct sink *sink, struct output *out, struct ledger *ledger,
		struct export_result *said, uint64_t ts, struct error *err);
int segment_close(struct sink *sink, struct output *out, const struct ledger *ledger,
		  struct export_result *said, struct error *err);
