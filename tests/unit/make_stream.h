/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small synthetic captures for tests, of any word size and byte order, written
 * through the stream writer. Every failure fails the test.
 */
#pragma once

#include "base/buf.h"
#include "proto/capture.pb-c.h"
#include "stream/writer.h"

struct maker {
	int fd; /* owned: a file in memory */
	struct stream_writer writer;
	unsigned word_size;
	bool big_endian;
	uint32_t subbuf_size;
	struct buf page;    /* the current sub-buffer */
	struct buf subbufs; /* finished ones, not yet in a chunk */
	uint64_t ts;	    /* of the sub-buffer's last record */
	/* For maker_head; "boot", "6.18.0" and "" unless set. */
	const char *clock, *release, *trace_header;
	/* NULL, or changes what maker_head writes about the machine and the request. */
	void (*header)(Traced__Capture__Header *h);
	bool few_formats;   /* maker_head writes the formats of print and number only */
	const char *common; /* the common fields' lines in formats; NULL: the usual ones */
};

/* The four kinds of machines. */
extern const struct machine {
	unsigned word_size;
	bool big_endian;
} machines[4];

/* Does not write to the stream yet. */
void maker_init(struct maker *m, unsigned word_size, bool big_endian, uint32_t subbuf_size);
/* The same into a file, which it then owns. */
void maker_init_fd(struct maker *m, int fd, unsigned word_size, bool big_endian,
		   uint32_t subbuf_size);
/* maker_init() for a 64-bit little-endian machine, then maker_head(). */
void maker_begin(struct maker *m, uint32_t subbuf_size);
void maker_deinit(struct maker *m);

/* Bytes of a sub-buffer's header: 16 with 8-byte words, 12 with 4-byte ones. */
uint32_t maker_data_offset(const struct maker *m);
/* The text of events/header_page. */
void maker_header_page(const struct maker *m, struct buf *out);

/* Append integers in the machine's byte order. */
void maker_u16(const struct maker *m, struct buf *out, uint16_t v);
void maker_u32(const struct maker *m, struct buf *out, uint32_t v);
void maker_u64(const struct maker *m, struct buf *out, uint64_t v);
/* An integer of its word size. */
void maker_word(const struct maker *m, struct buf *out, uint64_t v);

/* One sub-buffer: begin, then records, then end. missed 0: none; UINT64_MAX: an unknown number. */
void page_begin(struct maker *m, uint64_t ts);
/* The 32 bits of a record's header: 5 bits of type_len, 27 of time_delta. */
void page_head(struct maker *m, unsigned type_len, uint32_t delta);
void page_u32(struct maker *m, uint32_t v);
/* A data record at ts, with a time extend before it where the delta needs one. */
void page_record(struct maker *m, uint64_t ts, const void *data, uint32_t len);
void page_end(struct maker *m, uint64_t missed);
/* Writes all finished sub-buffers as one chunk. */
void maker_flush(struct maker *m, uint32_t cpu, enum subbufs_buffer buffer, uint32_t skip);

/* page_end(), then maker_flush() of a CPU's main buffer. */
void page_flush(struct maker *m, uint64_t missed, uint32_t cpu);
/* page_flush() of CPU 0 without a loss, then maker_end(). */
void maker_finish(struct maker *m);

/* Writes a recording's usual head: HEADER, HEADER_PAGE and FORMAT chunks. */
void maker_head(struct maker *m);

/* Writes one more format. fields: the lines after the common ones; print: the print fmt. */
void maker_format(struct maker *m, const char *system, const char *name, int id, const char *fields,
		  const char *print);
/* Writes lines of /proc/kallsyms. */
void maker_symbols(struct maker *m, const char *text);
/* Writes the lines of a KALLSYMS_EXCERPT chunk. */
void maker_excerpt(struct maker *m, const char *text);
/* Writes a record of any event. data: what follows the common fields. */
void maker_event(struct maker *m, uint64_t ts, uint16_t id, int32_t pid, const void *data,
		 size_t len);

/* Events of the formats of maker_head, at ts. */
#define ID_PRINT 5
#define ID_NUMBER 100
#define ID_SWITCH 101
#define ID_NEWTASK 102
#define ID_RENAME 103
void event_number(struct maker *m, uint64_t ts, int32_t pid, uint32_t value);
void event_print_mark(struct maker *m, uint64_t ts, int32_t pid, const char *text);
void event_switch(struct maker *m, uint64_t ts, int32_t prev, const char *prev_comm, int64_t state,
		  int32_t prio, int32_t next, const char *next_comm);
void event_newtask(struct maker *m, uint64_t ts, int32_t creator, int32_t tid, const char *comm,
		   uint64_t flags);
void event_rename(struct maker *m, uint64_t ts, int32_t tid, const char *from, const char *to);

struct maker_task {
	int32_t tid, tgid;
	const char *comm;
	uint64_t start_ns;
	bool kthread;
};
void maker_tasks(struct maker *m, uint64_t boot_ns, uint32_t origin, const struct maker_task *tasks,
		 size_t count);

struct maker_stats {
	uint32_t cpu;
	uint64_t entries, overrun, commit_overrun, dropped, read;
};
void maker_stats(struct maker *m, uint32_t phase, const struct maker_stats *stats, size_t count);
/* Writes a reading of CLOCK_MONOTONIC, which equals BOOTTIME here. */
void maker_clocks(struct maker *m, uint64_t boot_ns, uint32_t phase);
void maker_end(struct maker *m);

/* Gives the stream to the exporter in slices, and overwrites at once what it no longer needs. */
struct feed {
	int from, to;
	uint64_t size, given, gone;
	unsigned seed, slice_max;
	unsigned waits;
	size_t memory_max;   /* of the heap, while it waited */
	size_t memory_early; /* the same, until a tenth was given */
	unsigned dies_at;    /* the wait that fails; 0: none */
};

/* Begins with the file from; the exporter finds the magic at its start. */
void feed_begin(struct feed *f, int from);
/* The wait of struct export_follow; userdata: a struct feed. */
int give_slice(void *userdata, uint64_t from, uint64_t to);
