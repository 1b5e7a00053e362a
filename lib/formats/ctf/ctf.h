/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside of the sink that writes a trace of the Common Trace Format 1.8: sink.c puts the directory
 * together, stream.c makes packets, event_class.c fits events into them, metadata.c describes it
 * all, marks.c has what applications and samples tell.
 *
 * Nothing is decoded: an event is its time stamp, its class, who it was, and the bytes of the
 * kernel's record, field after field without the gaps between them. What a reader can't find by
 * itself is added behind them: the names of functions, and texts that the kernel makes when they
 * are read.
 */
#pragma once

#include "export/sink.h"
#include "print/printer.h"
#include "trace/index.h"

/* An event's header has 16 bits for its class. */
#define CTF_CLASSES_MAX UINT32_C(65536)
#define CTF_UUID_LEN 16

enum ctf_stream_class { CTF_KERNEL, CTF_MARKS, CTF_SAMPLES, CTF_STREAM_CLASSES };

/* One file: of a CPU, or of marks, or of samples of one source. Times in it never go back, which no
 * reader stands. */
struct ctf_stream {
	char name[32]; /* in the directory */
	enum ctf_stream_class stream_class;
	uint32_t cpu;
	bool begun;	   /* it has a packet, or one is being made */
	struct buf packet; /* the one that is being made; empty: none */
	uint64_t first_ts; /* of the packet that is being made */
	uint64_t last_ts;  /* of all packets so far */
	uint64_t packets, discarded;
};

/* What all parts share. */
struct ctf {
	const struct trace_info *info;
	struct output *out;
	bool swap;	     /* the recorded machine's byte order is not ours */
	uint32_t packet_max; /* bytes; an event more than that */
	uint64_t start_ts;   /* of the recording; 0: not known */
	struct buf classes;  /* the text of all event classes so far */
	uint32_t class_count[CTF_STREAM_CLASSES];
};

static inline bool ctf_has_uuid(const struct ctf *c)
{
	return c->info->header->uuid.len == CTF_UUID_LEN;
}

static inline uint16_t ctf_u16(const struct ctf *c, uint16_t v)
{
	return c->swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t ctf_u32(const struct ctf *c, uint32_t v)
{
	return c->swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t ctf_u64(const struct ctf *c, uint64_t v)
{
	return c->swap ? __builtin_bswap64(v) : v;
}

/* Appended to a packet, in the recorded machine's byte order. */
static inline void ctf_put_u16(const struct ctf *c, struct buf *b, uint16_t v)
{
	v = ctf_u16(c, v);
	buf_append(b, &v, sizeof(v));
}

static inline void ctf_put_u32(const struct ctf *c, struct buf *b, uint32_t v)
{
	v = ctf_u32(c, v);
	buf_append(b, &v, sizeof(v));
}

static inline void ctf_put_u64(const struct ctf *c, struct buf *b, uint64_t v)
{
	v = ctf_u64(c, v);
	buf_append(b, &v, sizeof(v));
}

/* Any bytes as a string, which ends with the first NUL: one in the midst becomes U+FFFD. */
void ctf_put_text(struct buf *b, const char *text, size_t len);

/* stream.c. All return 0 or -errno. */
/* Begins an event, not before s->last_ts: its header is there, and what follows is to be appended
 * to s->packet. */
int ctf_stream_event(const struct ctf *c, struct ctf_stream *s, uint64_t ts, uint32_t event_class);
/* The event is whole: a packet that is full leaves. */
int ctf_stream_settle(const struct ctf *c, struct ctf_stream *s);
/*
 * A packet of its own from one time to the other, in which so many are lost: between the two calls
 * there is to be one event, from, which says so. Trace Compass takes no packet without any, but the
 * first.
 */
int ctf_stream_begin_gap(const struct ctf *c, struct ctf_stream *s, uint64_t from, uint64_t count);
int ctf_stream_end_gap(const struct ctf *c, struct ctf_stream *s, uint64_t to);
/* All that there is leaves. */
int ctf_stream_flush(const struct ctf *c, struct ctf_stream *s);
void ctf_stream_deinit(struct ctf_stream *s);

/* event_class.c */
/* One move from the record into the packet; kind, place: its own words. */
struct ctf_op {
	uint8_t kind, place;
	char symbol;
	uint32_t offset, size;
	uint32_t element;
};

struct ctf_class {
	const struct event *desc; /* NULL: no format was captured */
	uint32_t id;
	bool plain;	/* all of it is copied from where it always lies */
	bool raw;	/* not by its fields, which do not fit, but its bytes in a row */
	uint32_t least; /* a shorter record has not all of its fields */
	uint32_t bytes; /* of a plain one */
	size_t op_count;
	struct ctf_op ops[];
};
/* Appends the description to c->classes. 0, -ENOMEM; -EOVERFLOW: there are too many classes. */
int ctf_class_new(struct ctf_class **ret, struct ctf *c, uint16_t kernel_id,
		  const struct event *desc, bool raw);
struct ctf_class *ctf_class_free(struct ctf_class *k);
/*
 * Appends the fields of rec. 0, -ENOMEM; -EBADMSG: it is damaged, and nothing was
 * appended.
 */
int ctf_class_put(const struct ctf *c, const struct ctf_class *k, struct printer *printer,
		  const struct record *rec, struct buf *out);

/* metadata.c */
/* "text" in quotes, whatever is in it. */
void ctf_put_quoted(struct buf *b, const char *text, size_t len);
/* Begins the text of an event class; its id. -EOVERFLOW as above. */
int64_t ctf_begin_class(struct ctf *c, enum ctf_stream_class stream_class, const char *name,
			size_t len);
void ctf_end_class(struct ctf *c);
/* All of the metadata but c->classes, which belong behind it. */
int ctf_put_metadata(const struct ctf *c, const struct export_result *result, struct buf *b);
