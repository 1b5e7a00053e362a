/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frames that carry several files through one socket. The exporter can create no files; the process
 * that owns the names creates them from the frames.
 *
 * - DATA: bytes of the current file.
 * - END: the file is complete.
 * - LAST: the last file is complete. Answered by one byte once all files exist.
 * - SYNC, while recording: answered once all earlier data is written, so that the recording's data
 *   may be freed.
 * - FILE, for formats that are directories, instead of END: the name of the file to which the
 *   following data is appended.
 *
 * A socket that ends without LAST was cut off. A pipe can't answer.
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

/* Host byte order: both ends are on one machine. */
struct segment_frame {
	uint32_t kind, len; /* a SEGMENT_DATA or SEGMENT_FILE is followed by len bytes */
};
#define SEGMENT_FRAME_MAX (256U << 10)
/* Lower case letters, digits and underscores; not NUL-terminated. */
#define SEGMENT_NAME_MAX 64

/* The segment being written. */
struct segment {
	struct export_rotate limit; /* zeros: none */
	bool watched;		    /* segment_is_full() is asked before each event */
	bool full;		    /* says the sink: its readers can't open much more */
	uint64_t from_bytes;
	uint64_t first_ts; /* time of its first event; 0: none yet */
	uint64_t end_ts;   /* of the last event; 0: not known yet */
};
/* A rest of the recording below this part of a segment stays in it. */
#define SEGMENT_REST 10

static inline bool segment_wanted(const struct export_rotate *limit)
{
	return limit->bytes || limit->ns;
}

/* Call after the head was written, before its events. */
static inline void segment_begin(struct segment *s, const struct output *out)
{
	s->from_bytes = out->bytes + output_expect(out, out->buf.len);
	s->first_ts = 0;
	s->watched = segment_wanted(&s->limit);
	s->full = false;
}

/* Called by the sink: the next event or mark begins another segment. */
static inline void segment_fill(struct segment *s)
{
	s->watched = s->full = true;
}

static inline bool segment_rest_is_short(const struct segment *s, uint64_t ts)
{
	return s->end_ts && (ts >= s->end_ts || s->end_ts - ts < (ts - s->first_ts) / SEGMENT_REST);
}

/* Whether the event at ts belongs to the next segment. No segment is empty. */
static inline bool segment_is_full(struct segment *s, const struct output *out,
				   const struct sink *sink, uint64_t ts)
{
	uint64_t held, bytes = s->limit.bytes, ns = s->limit.ns;

	if (!s->first_ts) {
		s->first_ts = ts;
		return false;
	}
	if (ts > s->first_ts && segment_rest_is_short(s, ts)) {
		bytes += bytes / SEGMENT_REST;
		ns += ns / SEGMENT_REST;
	}
	if (s->full || (ns && ts >= s->first_ts && ts - s->first_ts >= ns))
		return true;
	/* A limit of bytes has one thread. Without it another one may be writing to the output. */
	if (!bytes)
		return false;
	held = out->buf.len + (sink->ops->held ? sink->ops->held(sink) : 0);
	return out->bytes + output_expect(out, held) >= s->from_bytes + bytes;
}

/* -EINVAL: that format, in that trace clock (NULL: any), can't be split into files. */
int segment_check(const struct sink_ops *ops, const char *clock, const struct export_rotate *rotate,
		  struct error *err);

/*
 * Ends the segment and begins the next with the event at ts. result: the result to write at its
 * end; its account is filled in here. The last segment's account is what remains in ledger, which
 * must be closed.
 */
int segment_cut(struct segment *s, struct sink *sink, struct output *out, struct ledger *ledger,
		struct export_result *result, uint64_t ts, struct error *err);
int segment_close(struct sink *sink, struct output *out, const struct ledger *ledger,
		  struct export_result *result, struct error *err);
