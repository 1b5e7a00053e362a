/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Internal to the sink for the Common Trace Format 1.8. sink.c builds the directory, stream.c the
 * packets; event_class.c maps events to classes, metadata.c describes everything, marks.c handles
 * application marks and samples.
 *
 * Nothing is decoded: an event is its timestamp, class and task, plus the kernel's record, field
 * after field without padding. Added at the end: what a reader can't find by itself, such as
 * function names and texts that the kernel formats on reading.
 */
#pragma once

#include "export/sink.h"
#include "print/printer.h"
#include "trace/index.h"

/* The event header has 16 bits for the class. */
#define CTF_CLASSES_MAX UINT32_C(65536)
#define CTF_UUID_LEN 16

enum ctf_stream_class { CTF_KERNEL, CTF_MARKS, CTF_SAMPLES, CTF_STREAM_CLASSES };

/*
 * One file: of a CPU, of marks, or of the samples of one source. Its times must never go back:
 * readers fail.
 */
struct ctf_stream {
	char name[32]; /* its name in the directory */
	enum ctf_stream_class stream_class;
	uint32_t cpu;
	bool begun;	   /* a packet exists or is being built */
	struct buf packet; /* the current packet; empty: none */
	uint64_t first_ts; /* begin of the current packet */
	uint64_t last_ts;  /* end of the last event, over all packets */
	uint64_t packets, discarded;
};

/* State shared by all parts. */
struct ctf {
	const struct trace_info *info;
	struct output *out;
	bool swap;	     /* the recording has the other byte order */
	uint32_t packet_max; /* packet size in bytes; one event may exceed it */
	uint64_t start_ts;   /* begin of the recording; 0: unknown */
	uint64_t max_ts;     /* readers fail at a later time: the year 2262, or 2^63 - 1 */
	uint64_t times_cut;  /* events later than that */
	struct buf classes;  /* metadata text of all event classes so far */
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

/* Appended to a packet in the recording's byte order. */
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

/* Appends any bytes as a NUL-terminated string; an embedded NUL becomes U+FFFD. */
void ctf_put_text(struct buf *b, const char *text, size_t len);

/* stream.c. All return 0 or -errno. */
/*
 * Begins an event: writes its header. Append its fields to s->packet. An event before s->last_ts
 * gets that time; one after c->max_ts gets that, and is counted.
 */
int ctf_stream_event(struct ctf *c, struct ctf_stream *s, uint64_t ts, uint32_t event_class);
/* Ends the event; writes the packet if it is full. */
int ctf_stream_settle(const struct ctf *c, struct ctf_stream *s);
/*
 * Begins a packet that records `count` lost events between two times. Between the two calls put one
 * event, at `from`, that describes the loss: Trace Compass rejects empty packets except the first.
 */
int ctf_stream_begin_gap(const struct ctf *c, struct ctf_stream *s, uint64_t from, uint64_t count);
int ctf_stream_end_gap(const struct ctf *c, struct ctf_stream *s, uint64_t to);
/* Writes what is left. */
int ctf_stream_flush(const struct ctf *c, struct ctf_stream *s);
void ctf_stream_deinit(struct ctf_stream *s);

/* event_class.c */
/* One copy from the record to the packet; kind and place are event_class.c's enums. */
struct ctf_op {
	uint8_t kind, place;
	char symbol;
	uint32_t offset, size;
	uint32_t element;
};

struct ctf_class {
	const struct event *desc; /* NULL: the event has no captured format */
	uint32_t id;
	bool plain;	/* fixed layout: copied as one run of fields */
	bool raw;	/* the fields don't fit the format: the bytes are written as an array */
	uint32_t least; /* records shorter than this lack fields */
	uint32_t bytes; /* size of a plain event */
	size_t op_count;
	struct ctf_op ops[];
};
/* Appends the class's description to c->classes. 0; -ENOMEM; -EOVERFLOW: too many classes. */
int ctf_class_new(struct ctf_class **ret, struct ctf *c, uint16_t kernel_id,
		  const struct event *desc, bool raw);
struct ctf_class *ctf_class_free(struct ctf_class *k);
/* Appends the fields of rec. 0; -ENOMEM; -EBADMSG: damaged, nothing was appended. */
int ctf_class_put(const struct ctf *c, const struct ctf_class *k, struct printer *printer,
		  const struct record *rec, struct buf *out);

/* metadata.c */
/* Begins the description of an event class; returns its id. -EOVERFLOW as above. */
int64_t ctf_begin_class(struct ctf *c, enum ctf_stream_class stream_class, const char *name,
			size_t len);
void ctf_end_class(struct ctf *c);
/* The last time that readers take. */
uint64_t ctf_max_time(const struct ctf *c);
/* The metadata without c->classes, which must follow it. */
int ctf_put_metadata(const struct ctf *c, const struct export_result *result, struct buf *b);

/* Application marks and samples, in streams of their own: marks.c. */
struct ctf_marks;

int ctf_marks_new(struct ctf_marks **ret, struct ctf *c);
struct ctf_marks *ctf_marks_free(struct ctf_marks *m);
/* 0; -ENOMEM; -EOVERFLOW: too many classes; or the error of writing. */
int ctf_marks_put(struct ctf_marks *m, const struct mark *mark);
int ctf_marks_flush(struct ctf_marks *m);
