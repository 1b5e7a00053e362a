/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks as an application writes them, and as CHUNK_MARKS carries them: records
 * of the Trace Event Format's phases in binary. docs/capture-format.md is the
 * description for people.
 *
 * A record is a struct mark_record and fields up to its end; a field is a struct
 * mark_field and its value, padded with zeros. Everything is aligned to 8 bytes
 * and in the byte order of the machine that recorded (Header.big_endian).
 * Nothing depends on its word size.
 *
 * Whoever reads one must not believe it: applications are strangers. A reader
 * checks each length against what encloses it, skips phases, kinds and types that it
 * does not know by their length, and gives up the rest of its chunk at a
 * record that does not fit.
 */
#pragma once

#include <stdint.h>

#define MARK_VERSION 1 /* changes only if an old reader would misread new records */
#define MARK_ALIGN 8

struct mark_record {
	uint16_t words; /* of 8 bytes, this header included: at least 2 */
	uint8_t phase;	/* an enum mark_control, or the phase's letter: 'B', 'E', 'X' ... */
	uint8_t flags;	/* enum mark_flags */
	uint32_t label; /* a MARK_DEFINE's: name and category; 0: as the fields say */
	uint64_t time;	/* when it was written, by the producer's clock; never runs backwards */
};

/* Records that are no marks. */
enum mark_control {
	/*
	 * The producer has seen recording number `label` begin. What a ring has
	 * before the first one whose number is that of the recording or later
	 * (Producer.generation) belongs to earlier recordings. COUNT: marks dropped
	 * until then in the ring's life. Whatever was defined is forgotten.
	 */
	MARK_EPOCH = 1,
	/*
	 * `label` is from here on NAME and CATEGORY; with PARENT, a frame of a stack, whose
	 * parent was defined before. A ring defines for itself; one process means
	 * the same by a label in all of its rings.
	 */
	MARK_DEFINE = 2,
	/* COUNT marks were dropped between the record before this one and the next. */
	MARK_LOST = 3,
	/* Nothing: skipped. */
	MARK_PAD = 4,
	/* Above this the phase's letter. */
	MARK_PHASE_MIN = 0x20,
};

enum mark_flags {
	/* Of 'i': whom it concerns. */
	MARK_SCOPE_THREAD = 0,
	MARK_SCOPE_PROCESS = 1,
	MARK_SCOPE_GLOBAL = 2,
	MARK_SCOPE_MASK = 3,
	/* Of 'f': binds to the slice around it ("bp": "e"), not to the next one. */
	MARK_BIND_ENCLOSING = 1 << 2,
};

struct mark_field {
	uint16_t words; /* of 8 bytes, this header included: at least 1 */
	uint8_t kind;	/* enum mark_kind */
	uint8_t type;	/* enum mark_type */
	uint32_t key;	/* of ARG: the label whose NAME is its name; else 0 */
};

/*
 * What a value is. Numbers have 8 bytes. A text is a uint32_t, its length, and as
 * many bytes of any kind, not terminated.
 */
enum mark_type {
	MARK_NONE = 0,	     /* null */
	MARK_INT = 1,	     /* int64_t */
	MARK_UINT = 2,	     /* uint64_t */
	MARK_DOUBLE = 3,     /* may be infinite or no number */
	MARK_BOOL = 4,	     /* uint64_t, 0: false */
	MARK_POINTER = 5,    /* uint64_t, for people in hexadecimal */
	MARK_STRING = 6,     /* text, meant as UTF-8 */
	MARK_JSON = 7,	     /* text that claims to be one JSON value */
	MARK_REF = 8,	     /* uint64_t: the id of an object, {"id_ref": "0x..."} */
	MARK_LABEL = 9,	     /* uint64_t: a label; its NAME is meant, of STACK the frame */
	MARK_ADDRESSES = 10, /* uint64_t program counters up to the field's end, outermost first */
};

/* What a value is for. Of each kind but ARG the last one in a record counts. */
enum mark_kind {
	/*
	 * An argument; of 'C' one series. With key 0 its name comes first: a text, padded
	 * to 8 bytes, and then the value.
	 */
	MARK_ARG = 1,
	MARK_NAME = 2,	   /* STRING; over that of the label */
	MARK_CATEGORY = 3, /* STRING; over that of the label */

	/* Number (INT, UINT, POINTER) or STRING. At most one of the three. */
	MARK_ID = 4,	    /* "id" */
	MARK_ID_LOCAL = 5,  /* "id2": {"local": ...} */
	MARK_ID_GLOBAL = 6, /* "id2": {"global": ...} */
	MARK_ID_SCOPE = 7,  /* STRING: "scope" */
	MARK_LINKED_ID = 8, /* as ID; of '=' */

	/* UINT, in units of the producer's clock. */
	MARK_DURATION = 9, /* of 'X', which is written at its end: it began at time - DURATION */
	MARK_TIME = 10,	   /* it happened then, not when it was written; of 'X' its end */
	MARK_ISSUED = 11,  /* of 'c': "issue_ts" */

	/* UINT, ns of CLOCK_THREAD_CPUTIME_ID, and instructions. Of 'X' those at its end. */
	MARK_THREAD_TIME = 12,
	MARK_THREAD_DURATION = 13,
	MARK_INSTRUCTIONS = 14,
	MARK_INSTRUCTIONS_DELTA = 15,

	MARK_STACK = 16,     /* LABEL: "sf"; ADDRESSES: "stack"; of 'X' at its beginning */
	MARK_END_STACK = 17, /* the same, of 'X': "esf", "estack" */
	MARK_CNAME = 18,     /* STRING or LABEL: the colour's name */
	MARK_SYNC_ID = 19,   /* STRING, of 'c' */

	/* Of 'O'. */
	MARK_SNAPSHOT = 20,	     /* any value: args.snapshot; without it, the ARGs are */
	MARK_BASE_TYPE = 21,	     /* STRING: args.snapshot.base_type */
	MARK_SNAPSHOT_CATEGORY = 22, /* STRING: args.snapshot.cat */

	MARK_COUNT = 23,  /* UINT, of EPOCH and LOST */
	MARK_PARENT = 24, /* LABEL, of DEFINE */
};

/* Clocks of a producer: those of clock_gettime(2) by their number, in ns, and of others: */
#define MARK_CLOCK_BOOTTIME 7
#define MARK_CLOCK_TSC 256 /* the counter of x86's CPUs, in its ticks */

/* Payload of CHUNK_MARKS: this, then whole records. Little-endian as the framing is. */
struct marks_header {
	uint64_t dropped; /* marks in the ring's life, when the records were taken */
	uint32_t ring;	  /* as in the CHUNK_PRODUCER before it */
	uint32_t zero;
};
