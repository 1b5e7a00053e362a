/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks as an application writes them and CHUNK_MARKS stores them: phases of the Trace Event Format
 * (traced.h names its source) in binary. docs/capture-format.md has a description for people.
 *
 * A record is a struct mark_record, then fields up to its end. A field is a struct mark_field and
 * its value, padded with zeros. Everything is aligned to 8 bytes, in the byte order of the
 * recording machine (Header.big_endian), and independent of its word size.
 *
 * Readers must not trust records: any application may write them. A reader checks each length
 * against the enclosing one. It skips unknown phases, kinds and types by their length, and drops
 * the rest of a chunk after a record that does not fit.
 */
#pragma once

#include <stdint.h>

#define MARK_VERSION 1 /* changes only if old readers would misread new records */
#define MARK_ALIGN 8

struct mark_record {
	uint16_t words; /* in units of 8 bytes, including this header; at least 2 */
	uint8_t phase;	/* an enum mark_control, or the phase's letter: 'B', 'E', 'X' ... */
	uint8_t flags;	/* enum mark_flags */
	uint32_t label; /* number from a MARK_DEFINE with name and category; 0: fields have them */
	uint64_t time;	/* time of writing, by the producer's clock; never decreases */
};

/* Records that are not marks. COUNT, NAME, CATEGORY and PARENT are fields (enum mark_kind). */
enum mark_control {
	/*
	 * The producer has seen recording number `label` begin. All definitions before it are void.
	 * Records before the first EPOCH with the recording's number (Producer.generation) or a
	 * later one belong to earlier recordings. COUNT: marks dropped so far in the ring's life.
	 */
	MARK_EPOCH = 1,
	/*
	 * From here on `label` means NAME and CATEGORY. With PARENT it is a frame of a stack, whose
	 * parent was defined before. Definitions hold for one ring; a process uses the same number
	 * for a label in all its rings.
	 */
	MARK_DEFINE = 2,
	/* COUNT marks were dropped between the previous record and the next. */
	MARK_LOST = 3,
	/* Padding: skip it. */
	MARK_PAD = 4,
	/* Values from here on are a phase's letter. */
	MARK_PHASE_MIN = 0x20,
};

enum mark_flags {
	/* Scope of an 'i'. */
	MARK_SCOPE_THREAD = 0,
	MARK_SCOPE_PROCESS = 1,
	MARK_SCOPE_GLOBAL = 2,
	MARK_SCOPE_MASK = 3,
	/* An 'f' binds to the enclosing slice ("bp": "e"), not to the next one. */
	MARK_BIND_ENCLOSING = 1 << 2,
};

struct mark_field {
	uint16_t words; /* in units of 8 bytes, including this header; at least 1 */
	uint8_t kind;	/* enum mark_kind */
	uint8_t type;	/* enum mark_type */
	uint32_t key;	/* for ARG: the label whose NAME is the argument's name; otherwise 0 */
};

/*
 * Type of a value. Numbers have 8 bytes. A text is its length as uint32_t, then that many bytes of
 * any kind, not terminated.
 */
enum mark_type {
	MARK_NONE = 0,	     /* null */
	MARK_INT = 1,	     /* int64_t */
	MARK_UINT = 2,	     /* uint64_t */
	MARK_DOUBLE = 3,     /* may be infinite or NaN */
	MARK_BOOL = 4,	     /* uint64_t, 0: false */
	MARK_POINTER = 5,    /* uint64_t, shown in hexadecimal */
	MARK_STRING = 6,     /* text, meant as UTF-8 */
	MARK_JSON = 7,	     /* text that should be one JSON value */
	MARK_REF = 8,	     /* uint64_t: the id of an object, {"id_ref": "0x..."} */
	MARK_LABEL = 9,	     /* uint64_t: a label, which stands for its NAME; in a STACK for the
			      * frame */
	MARK_ADDRESSES = 10, /* uint64_t program counters up to the field's end, outermost first */
};

/* Purposes of a value. If a kind other than ARG is repeated in a record, the last one counts. */
enum mark_kind {
	/*
	 * An argument; for 'C' one series. With key 0 the value follows a name: a text, padded to 8
	 * bytes.
	 */
	MARK_ARG = 1,
	MARK_NAME = 2,	   /* STRING; overrides the label's */
	MARK_CATEGORY = 3, /* STRING; overrides the label's */

	/* A number (INT, UINT, POINTER) or STRING. At most one of these three. */
	MARK_ID = 4,	    /* "id" */
	MARK_ID_LOCAL = 5,  /* "id2": {"local": ...} */
	MARK_ID_GLOBAL = 6, /* "id2": {"global": ...} */
	MARK_ID_SCOPE = 7,  /* STRING: "scope" */
	MARK_LINKED_ID = 8, /* like ID; for '=' */

	/* UINT, in units of the producer's clock. */
	MARK_DURATION = 9, /* for 'X', which is written at its end: start is time - DURATION */
	MARK_TIME = 10,	   /* time of the event, if not written at once; for 'X' its end */
	MARK_ISSUED = 11,  /* for 'c': "issue_ts" */

	/* UINT: ns of CLOCK_THREAD_CPUTIME_ID, and instructions. For 'X' the values at its end. */
	MARK_THREAD_TIME = 12,
	MARK_THREAD_DURATION = 13,
	MARK_INSTRUCTIONS = 14,
	MARK_INSTRUCTIONS_DELTA = 15,

	MARK_STACK = 16,     /* LABEL: "sf"; ADDRESSES: "stack"; for 'X' at its start */
	MARK_END_STACK = 17, /* the same at the end of 'X': "esf", "estack" */
	MARK_CNAME = 18,     /* STRING or LABEL: the colour's name */
	MARK_SYNC_ID = 19,   /* STRING, for 'c' */

	/* Fields of an 'O'. */
	MARK_SNAPSHOT = 20,	     /* any value: args.snapshot; if missing, the ARGs are the
				      * snapshot */
	MARK_BASE_TYPE = 21,	     /* STRING: args.snapshot.base_type */
	MARK_SNAPSHOT_CATEGORY = 22, /* STRING: args.snapshot.cat */

	MARK_COUNT = 23,  /* UINT, for EPOCH and LOST */
	MARK_PARENT = 24, /* LABEL, for DEFINE */
};

/* Clocks of a producer: numbers of clock_gettime(2), in ns, and: */
#define MARK_CLOCK_BOOTTIME 7
#define MARK_CLOCK_TSC 256 /* the time stamp counter of x86 CPUs, in ticks */

/* Payload of CHUNK_MARKS: this header, then whole records. Little-endian, like the framing. */
struct marks_header {
	uint64_t dropped; /* marks dropped in the ring's life when the records were taken */
	uint32_t ring;	  /* number from an earlier CHUNK_PRODUCER */
	uint32_t zero;
};
