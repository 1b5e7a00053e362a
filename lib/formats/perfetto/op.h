/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What schema.c compiles and write.c runs, and rest.c beside them; import/perfetto runs the same
 * backwards.
 */
#pragma once

#include "base/table.h"
#include "formats/perfetto/schema.h"

enum pf_kind {
	PF_UINT,
	PF_INT,	     /* sign-extended: protobuf's int32 and int64 alike */
	PF_STRING,   /* up to its NUL */
	PF_LINE,     /* the same without the newline at its end */
	PF_POINTER,  /* hashed unless raw addresses were asked for */
	PF_FUNCTION, /* an interned kernel symbol */
	PF_DEVICE,   /* dev_t, in user space's encoding as the reader expects */
	PF_REPEATED, /* numbers, one field each */
	PF_NUMBERS,  /* numbers, as text with commas: a generic field has one value */
	PF_MASK,     /* bits, as a list: "0-3,8" */
	PF_SYMBOL,   /* an address, as the kernel's text has it: "schedule+0x1c/0xa0" */
	PF_STACK,    /* addresses, innermost first: "a <- b <- c" */
	PF_PRINTED,  /* the event as the kernel prints it */
	PF_HEX,	     /* anything else: its bytes in hexadecimal */
	/* In pf_event.rest alone. */
	PF_ADDRESS,   /* an address, by the number of what is there */
	PF_ADDRESSES, /* several */
	PF_RAW,	      /* bytes as they are */
	PF_BLOCK,     /* the same, or nothing where the message's string is all of it */
};

/* How the usual fields are written, without asking what they are. */
enum pf_quick {
	PF_ASK,	   /* by kind */
	PF_TEXT,   /* up to its NUL */
	PF_NUMBER, /* this and what follows: of a little-endian machine, at a fixed place */
	PF_LONGS,  /* several of eight bytes */
};

/* Where the bytes of a field are. */
enum pf_place {
	PF_FIXED,
	PF_DYNAMIC,	     /* __data_loc: offset from the record's start */
	PF_DYNAMIC_RELATIVE, /* __rel_loc: from behind the field itself */
	PF_DYNAMIC_TAIL,     /* from the field to the record's end */
};

/* The longest form of one number in PF_NUMBERS or PF_REPEATED, per byte of the record or element.
 */
#define PF_NUMBER_MAX 24
/* Characters for a byte of a mask: "8388600-8388601," for three of its bits, at worst. */
#define PF_MASK_MAX 48

struct pf_op {
	uint8_t kind, dynamic, quick; /* enum pf_kind, enum pf_place, enum pf_quick */
	char symbol; /* PF_SYMBOL: as event_symbol_kind; PF_ADDRESS: rest.c's own */
	bool is_signed;
	bool narrow;		 /* the message has 32 unsigned bits for it */
	uint8_t tag[4], tag_len; /* fields of messages have numbers far below 2^25 */
	uint32_t field;
	uint32_t offset, size, element_size;
	/* PF_NUMBER: the eight bytes up to its end are shifted down, with their sign, and masked.
	 */
	uint8_t shift;
	uint64_t mask;
	/* NULL, or what stands before it in a submessage of its own: the field's name. */
	const uint8_t *lead; /* owned by the event */
	uint32_t lead_len;
};

/* A function that was interned; iid 0: free. */
struct pf_function {
	uint64_t address, iid;
};
DECLARE_TABLE(pf_functions, struct pf_function);
DECLARE_TABLE(pf_addresses, struct pf_known_address);

struct pf_schema {
	struct pf_schema_env env;
	bool swap;
	struct pf_event **events; /* owned; by id */
	unsigned events_end;	  /* above all their ids */
	struct printer *printer;  /* owned */
	int32_t pid;		  /* of the last event that was written, */
	uint8_t pid_wire[8],
		pid_len;    /* and its field as the wire has it; pid_len 0: there was none */
	uint64_t time_high; /* the last event's time without its low 28 bits, not 0, */
	uint8_t time_wire[8], time_len; /* and these bits as a varint */
	struct buf made; /* the text of PF_STACK or PF_PRINTED in the event at hand */
	struct pf_functions functions;
	struct pf_addresses addresses;
	uint64_t mark_ip; /* that marks have; 0: not known yet */
	/* For the next bundle: an InternedData's content, and fields of the bundle. */
	struct buf new_symbols, new_formats, new_addresses;
};

/* What a field is, whatever it is written as. */
struct pf_op pf_op_for(const struct event *desc, const struct field *f);

/* Of an event that has free_text: which of both ev is. */
const struct pf_event *pf_schema_choose(const struct pf_schema *s, const struct pf_event *e,
					const struct trace_event *ev);
