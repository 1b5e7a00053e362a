/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The capture stream: STREAM_MAGIC, then chunks. A chunk is a struct chunk_header and its payload,
 * padded with zeros to a multiple of 8 bytes. The framing is little-endian; raw sub-buffers keep
 * their machine's byte order. Streams are only appended to: a stream that was cut is valid up to
 * its last whole chunk. docs/capture-format.md has a description for people.
 *
 * Formats of others: sub-buffers are those of the kernel's ring buffer (events/header_page in
 * tracefs, include/linux/ring_buffer.h), event formats those of tracefs, samples those of
 * perf_event_open(2). Messages "traced.capture.X" are in proto/capture.proto. Compression is zstd
 * (RFC 8878), the checksum XXH3 (xxHash 0.8).
 */
#pragma once

#include <endian.h>
#include <stdint.h>

#define STREAM_MAGIC "\x89traced\n" /* 8 bytes, without the terminator */
#define STREAM_MAGIC_SIZE 8
#define STREAM_VERSION 1

enum chunk_type {
	CHUNK_HEADER = 1,	     /* traced.capture.Header */
	CHUNK_HEADER_PAGE = 2,	     /* text of events/header_page */
	CHUNK_FORMAT = 3,	     /* system, NUL, text of the event's format file */
	CHUNK_KALLSYMS = 4,	     /* text of /proc/kallsyms */
	CHUNK_PRINTK = 5,	     /* text of printk_formats */
	CHUNK_ENUMS = 6,	     /* lines "NAME value": constants used in print formats */
	CHUNK_TASKS = 7,	     /* traced.capture.Tasks */
	CHUNK_CLOCKS = 8,	     /* traced.capture.Clocks */
	CHUNK_STATS = 9,	     /* traced.capture.Stats */
	CHUNK_SUBBUFS = 10,	     /* struct subbufs_header, whole sub-buffers */
	CHUNK_NOTE = 11,	     /* traced.capture.Note */
	CHUNK_END = 12,		     /* traced.capture.End */
	CHUNK_PRODUCER = 13,	     /* traced.capture.Producer */
	CHUNK_MARKS = 14,	     /* struct marks_header, records: traced/mark_record.h */
	CHUNK_FLUSH = 15,	     /* traced.capture.Flush */
	CHUNK_SAMPLER = 16,	     /* traced.capture.Sampler */
	CHUNK_MAPPINGS = 17,	     /* traced.capture.Mappings */
	CHUNK_SAMPLES = 18,	     /* whole records of one CPU's perf_event_open(2) ring */
	CHUNK_SAMPLE_COUNTS = 19,    /* traced.capture.SampleCounts */
	CHUNK_ARGUMENTS = 20,	     /* lines "FUNCTION NAME:TYPE ...": functions' arguments */
	CHUNK_KALLSYMS_EXCERPT = 21, /* consecutive lines of KALLSYMS */
	CHUNK_POLLS = 22,	     /* traced.capture.Polls */
	CHUNK_LAST_BOOT = 23,	     /* traced.capture.LastBoot */
	CHUNK_HISTOGRAM = 24,	     /* traced.capture.Histogram */
	CHUNK_HOST = 25,	     /* traced.capture.Host */
	CHUNK_TYPES_END,
};

enum chunk_flags {
	CHUNK_ZSTD = 1 << 0, /* the payload is a sequence of zstd frames */
};

#define CHUNK_MAGIC UINT32_C(0x4b4e4843) /* "CHNK" */
#define CHUNK_ALIGN 8
#define CHUNK_PAYLOAD_MAX (64U << 20)	/* bytes as stored; a longer one is corrupt */
#define CHUNK_EXPANDED_MAX (256U << 20) /* bytes, after decompression */

/*
 * Limits, in bytes of an expanded payload and in chunks per stream. A recorder writes no more, and
 * a reader accepts at least as much. Data beyond is cut, and a NOTE says so.
 */
#define STREAM_KALLSYMS_MAX (64U << 20)
#define STREAM_TASKS_MAX (16U << 20)
#define STREAM_NOTE_MAX (4U << 10)
#define STREAM_NOTES_MAX 64
#define STREAM_POLLS_MAX (4U << 20)
#define STREAM_LAST_BOOT_MAX (4U << 20)
#define STREAM_HISTOGRAM_MAX (32U << 20)

struct chunk_header {
	uint32_t magic;
	uint16_t type;
	uint16_t flags;
	uint32_t length; /* bytes of the stored payload, without padding */
	uint32_t cpu;	 /* the CPU of SUBBUFS and SAMPLES; otherwise 0 */
	uint64_t hash;	 /* XXH3_64bits of this header with hash 0 and the stored payload */
};

/* The ring buffers of a recording. */
enum subbufs_buffer {
	BUFFER_MAIN = 0,
	BUFFER_TASKS = 1, /* births and renames of tasks, for names only: not part of the trace */
	/* This and higher numbers: further rings whose events are part of the trace. */
	BUFFER_MORE = 2,
};
#define BUFFER_COUNT 2
#define BUFFER_MORE_MAX 64

struct subbufs_header {
	uint32_t buffer; /* enum subbufs_buffer */
	/*
	 * Bytes of the first sub-buffer's data that an earlier chunk already has: it was read while
	 * the kernel was still filling it.
	 */
	uint32_t skip;
};
