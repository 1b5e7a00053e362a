/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recording's events and their printing. Each format is parsed once, and its print fmt is
 * compiled to a straight-line program (program.h). Events that cannot be compiled are printed field
 * by field and counted.
 *
 * event_table_seal() makes the table read-only. Threads may then share it, each with its own struct
 * printer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "print/record.h"
#include "print/symbols.h"
#include "print/text_options.h"

enum pointer_mode {
	POINTER_HASHED, /* a keyed hash: equal pointers give equal ids; NULL and error values
			 * stay */
	POINTER_RAW,	/* as with the kernel's options/hash-ptr off */
};

struct event_table_env {
	unsigned word_size; /* 4 or 8 */
	bool big_endian;
	enum pointer_mode pointers;
	uint8_t pointer_key[16];
	/*
	 * The recorded kernel's version, (major << 16) | minor: its own texts differ by version. 0:
	 * 6.18 or newer.
	 */
	uint32_t kernel;
	struct text_options text;
};

/* A record has 16 bits for the id. */
#define EVENT_IDS 65536

struct field {
	const char *name;      /* borrowed from the table */
	const char *type;      /* as in the format */
	uint32_t offset, size; /* bytes */
	uint32_t element_size; /* of an array; otherwise equal to size */
	bool is_signed, is_array, is_string, is_pointer;
	bool is_dynamic;  /* __data_loc: the field holds offset and length of the data */
	bool is_relative; /* __rel_loc */
};

/* Fields are hostile input: only these sizes can be loaded as a number. */
static inline bool is_number_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

struct program;
struct funcgraph_layout;

struct event {
	uint16_t id;
	const char *system, *name;  /* terminated; borrowed from the table */
	const struct field *fields; /* without the common fields */
	size_t field_count;
	const struct field *common; /* the fields that start every event */
	size_t common_count;
	const struct program *program;		  /* NULL: the event is printed field by field */
	const char *why_fallback;		  /* why program is NULL */
	const struct funcgraph_layout *funcgraph; /* NULL: not an event of the function_graph
						   * tracer (funcgraph.h) */
};

/* Finds a field by name; common fields are not searched. NULL: no such field, or ev is NULL. */
const struct field *event_field(const struct event *ev, const char *name);

/* Offsets of the fields that all events share. */
struct common_fields {
	uint32_t flags_offset, preempt_offset, pid_offset;
	/* Kernels with the patches for PREEMPT_RT: 5.10 has both, 5.15 to 6.6 the first; else 0. */
	uint32_t lazy_offset, migrate_offset;
	uint32_t size; /* the shortest record */
};

struct event_table;

int event_table_new(struct event_table **ret, const struct event_table_env *env);
struct event_table *event_table_free(struct event_table *t);
DEFINE_CLEANUP_FUNC(struct event_table *, event_table_free);

/*
 * Adds the text of a format file. If an event comes twice, the first stays. -EBADMSG: not a format.
 */
int event_table_add(struct event_table *t, const char *system, const char *text, size_t len,
		    struct error *err);
/*
 * Adds constants, from lines "NAME value"; "HZ 250" is for jiffies_to_msecs(). Call it before
 * event_table_seal(). Returns 0 or -ENOMEM.
 */
int event_table_add_enums(struct event_table *t, const char *text, size_t len);
/* Appends such a line for each constant that was added. Returns 0 or -ENOMEM. */
int event_table_put_enums(const struct event_table *t, struct buf *out);
/*
 * Adds lines of printk_formats ("0xADDR : \"text\""). Call it before event_table_seal(). Returns 0
 * or -ENOMEM.
 */
int event_table_add_printk(struct event_table *t, const char *text, size_t len);
/* Adds the text of an ARGUMENTS chunk. Returns 0 or -ENOMEM. */
int event_table_add_arguments(struct event_table *t, const char *text, size_t len);
/* Appends the lines about one function. Returns 0 or -ENOMEM. */
int event_table_put_arguments(const struct event_table *t, const char *function, struct buf *out);
/*
 * Sets where symbols come from. The thread that makes the first look-up reads them: many recordings
 * have symbols but no event that names one.
 */
void event_table_set_symbols(struct event_table *t, symbol_source_t source, void *userdata);
/*
 * Announces that one thread may add modules' symbols while the table is in use. Until then unknown
 * addresses are looked up again each time.
 */
void event_table_expect_symbols(struct event_table *t);
/* Adds symbols as symbols_add() does. Returns 0, -ENOMEM or -EFBIG. */
int event_table_add_symbols(struct event_table *t, const char *text, size_t len);
bool event_table_has_symbols(const struct event_table *t);
/* The number of symbols read so far. */
size_t event_table_symbol_count(const struct event_table *t);
/*
 * Adds consecutive lines of the symbol table; addresses in them need no full table. Call it before
 * event_table_seal(). Returns 0, -ENOMEM or -EFBIG.
 */
int event_table_add_excerpt(struct event_table *t, const char *text, size_t len);
/* Like symbols_find(), but reads the full table only if needed. */
bool event_table_find_symbol(const struct event_table *t, uint64_t address, struct symbol *ret);
/* All symbols, read now if they were not. Borrowed. NULL: the recording has none. */
const struct symbols *event_table_symbols(const struct event_table *t);
/* The file that a process had mapped at an address, and the start of the mapping. */
struct user_place {
	const char *path; /* borrowed; not terminated */
	size_t path_len;
	uint64_t start;
};
/* Called by any thread if the recorded options ask for the names of user addresses. */
typedef bool (*user_place_source_t)(const void *userdata, int32_t tgid, uint64_t address,
				    struct user_place *ret);
void event_table_set_user_places(struct event_table *t, user_place_source_t source,
				 const void *userdata);
/* Compiles all programs and makes the table read-only. Returns 0 or -ENOMEM. */
int event_table_seal(struct event_table *t, struct error *err);

/* NULL: the id has no format. */
const struct event *event_table_find(const struct event_table *t, uint16_t id);
const struct event *event_table_find_name(const struct event_table *t, const char *system,
					  const char *name);
/* The text of the event's format file; not terminated; owned by the table. */
const char *event_format_text(const struct event *ev, size_t *ret_len);
const struct common_fields *event_table_common(const struct event_table *t);
const struct event *const *event_table_all(const struct event_table *t, size_t *ret_count);

/* Length of "NAME: " if everything printed of ev begins with it; otherwise 0. */
size_t event_name_len(const struct event *ev);
/* True if everything printed of ev is plain (base/plain.h), whatever its records hold. */
bool event_is_plain(const struct event *ev);

/*
 * How the kernel prints an address field of ev as a symbol: 's', 'S' or 'B' as by %p; 'f' or 'F' as
 * by seq_print_ip_sym(), without and with the offset; SYMBOL_STACK: the field is a stack of
 * addresses; 0: the field is not printed as a symbol.
 */
#define SYMBOL_STACK '*'
char event_symbol_kind(const struct event *ev, const struct field *f);

/* Reads an integer in the recording's byte order. False: it lies outside the record. */
bool record_read_uint(const struct event_table *t, const struct record *rec, uint32_t offset,
		      uint32_t size, uint64_t *ret);

/* One thread's state for printing: caches and scratch space. */
struct printer;
int printer_new(struct printer **ret, const struct event_table *t);
struct printer *printer_free(struct printer *p);
DEFINE_CLEANUP_FUNC(struct printer *, printer_free);

/*
 * Appends the part after "timestamp: " of the kernel's line, without the newline: "sched_switch:
 * prev_comm=..." for most events, other forms for ftrace's own events and system calls. A record
 * that is too short is printed as far as possible, marked "[truncated]", and returns -EBADMSG.
 * Returns 0, -EBADMSG or -ENOMEM.
 */
int event_print(struct printer *p, const struct event *ev, const struct record *rec,
		struct buf *out);
/* The number of events that this printer printed field by field. */
uint64_t printer_fallbacks(const struct printer *p);
