/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operations that schema.c compiles and write.c and rest.c run. */
#pragma once

#include "base/table.h"
#include "formats/perfetto/schema.h"
#include "formats/perfetto/tasks.h"
#include "marks/value.h"

enum pf_kind {
	PF_UINT,
	PF_INT,	     /* sign-extended: protobuf's int32 and int64 alike */
	PF_STRING,   /* up to its NUL */
	PF_LINE,     /* the same without a final newline */
	PF_POINTER,  /* hashed unless raw addresses were asked for */
	PF_FUNCTION, /* an interned kernel symbol */
	PF_DEVICE,   /* dev_t, in user space's encoding as the reader expects */
	PF_REPEATED, /* numbers, one field for each */
	PF_NUMBERS,  /* numbers as text with commas: a generic field has one value */
	PF_MASK,     /* bits as a list: "0-3,8" */
	PF_SYMBOL,   /* an address as in the kernel's text: "schedule+0x1c/0xa0" */
	PF_STACK,    /* addresses, innermost first: "a <- b <- c" */
	PF_KERNEL,   /* address of a string in the kernel's memory: its text */
	PF_PRINTED,  /* the event as the kernel prints it */
	PF_HEX,	     /* anything else: its bytes in hexadecimal */
	PF_RAW,	     /* unchanged bytes */
	/* Only in pf_event.rest. */
	PF_ADDRESS,   /* an address, by the number of its Address */
	PF_ADDRESSES, /* several of these */
	PF_BLOCK,     /* the same; empty if the message's string has it all */
};

/* Fast paths for common fields. */
enum pf_quick {
	PF_ASK,	   /* none: go by kind */
	PF_TEXT,   /* up to its NUL */
	PF_NUMBER, /* this and later: little-endian, at a fixed offset */
	PF_LONGS,  /* several of eight bytes each */
};

/* Location of a field's bytes. */
enum pf_place {
	PF_FIXED,
	PF_DYNAMIC,	     /* __data_loc: offset from the record's start */
	PF_DYNAMIC_RELATIVE, /* __rel_loc: offset from the end of the field itself */
	PF_DYNAMIC_TAIL,     /* from the field to the record's end */
};

/* Longest output of PF_NUMBER or PF_REPEATED, per byte of the record. */
#define PF_NUMBER_MAX 24
/* Characters per byte of a mask, at worst: "8388600-8388601," for three of its bits. */
#define PF_MASK_MAX 48

struct pf_op {
	uint8_t kind, dynamic, quick; /* enum pf_kind, enum pf_place, enum pf_quick */
	char symbol; /* PF_SYMBOL: as event_symbol_kind(); PF_ADDRESS: see rest.c */
	bool is_signed;
	bool hide;		 /* numbers that look like the kernel's addresses are hashed */
	bool narrow;		 /* the message has a 32-bit unsigned field for it */
	uint8_t tag[4], tag_len; /* field numbers of messages are far below 2^25 */
	uint32_t field;
	uint32_t offset, size, element_size;
	/* PF_NUMBER: load the eight bytes that end with the field, shift right with sign, mask. */
	uint8_t shift;
	uint64_t mask;
	/* NULL, or wire bytes before the value, in a submessage: the field's name. */
	const uint8_t *lead; /* owned by the event */
	uint32_t lead_len;
};

/* An interned function; iid 0: a free slot. */
struct pf_function {
	uint64_t address, iid;
};
DECLARE_TABLE(pf_functions, struct pf_function);
DECLARE_TABLE(pf_addresses, struct pf_known_address);

/* Hashes of the counters that had a fraction; 0: a free slot. */
DECLARE_TABLE(pf_fractions, uint64_t);
#define PF_FRACTIONS_MAX 4096

/* A value of a counter in a mark, for which no typed event has room. */
struct pf_noted_counter {
	uint64_t ts;
	int32_t pid;
	double value;
	size_t at, len; /* of its name in counter_names */
};

struct pf_schema {
	struct pf_schema_env env;
	bool swap;
	struct pf_event **events;	/* owned; by event id */
	unsigned events_end;		/* all ids are below */
	struct printer *printer;	/* owned */
	int32_t pid;			/* pid of the last event, */
	uint8_t pid_wire[8], pid_len;	/* its encoded field; pid_len 0: none yet */
	uint64_t time_high;		/* time of the last event without its low 28 bits, not 0, */
	uint8_t time_wire[8], time_len; /* encoded as a varint */
	struct buf made;		/* text of the current event's PF_STACK or PF_PRINTED */
	struct pf_functions functions;
	struct pf_addresses addresses;
	uint64_t mark_ip;	 /* function address in marks; 0: unknown */
	struct pf_birth *births; /* owned; those of the events written, until the sink takes them */
	size_t birth_count, birth_cap;
	struct pf_noted_counter *counters; /* owned; likewise */
	size_t counter_count, counter_cap;
	struct buf counter_names;
	struct pf_fractions fractions;
	struct shares fraction_shares; /* among the programs that wrote the marks */
	/* For the next bundle: content of an InternedData, and fields of the bundle. */
	struct buf new_symbols, new_formats, new_addresses;
};

/* System calls have numbers and addresses of the program, none of the kernel. */
bool pf_event_is_syscall(const struct event *desc);

/* Derives the operation from the field, independent of the message. */
struct pf_op pf_op_for(const struct event *desc, const struct field *f);

/* For a noticed event: decides which form it has, and notes what else it tells. NULL: no memory. */
const struct pf_event *pf_schema_notice(struct pf_schema *s, const struct pf_event *e,
					const struct trace_event *ev);
