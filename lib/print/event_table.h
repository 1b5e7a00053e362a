/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What each event of the recording is, and how to print it. Formats are parsed
 * once; for each event a straight-line program is compiled from its print fmt
 * (program.h). What can't be compiled is printed field by field and counted.
 *
 * Once event_table_seal() was called the table is read-only and may be shared
 * by threads, each with a struct printer of its own.
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
	POINTER_HASHED, /* a keyed hash: same pointer, same id; NULL and errors as they are */
	POINTER_RAW,	/* as the kernel prints with options/hash-ptr off */
};

struct event_table_env {
	unsigned word_size; /* 4 or 8 */
	bool big_endian;
	enum pointer_mode pointers;
	uint8_t pointer_key[16];
	/* major << 16 | minor of the recorded kernel, whose own texts change; 0: 6.18 or newer. */
	uint32_t kernel;
	struct text_options text;
};

struct field {
	const char *name;      /* borrowed from the table */
	const char *type;      /* as the format declares it */
	uint32_t offset, size; /* bytes */
	uint32_t element_size; /* of arrays; else size */
	bool is_signed, is_array, is_string, is_pointer;
	bool is_dynamic;  /* __data_loc: offset and length in the record */
	bool is_relative; /* __rel_loc */
};

/* A field is hostile input too: only these sizes can be loaded as a number. */
static inline bool is_number_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

struct program;
struct funcgraph_layout;

struct event {
	uint16_t id;
	const char *system, *name;  /* terminated; borrowed from the table */
	const struct field *fields; /* without the common ones */
	size_t field_count;
	const struct field *common; /* those that all events begin with */
	size_t common_count;
	const struct program *program;		  /* NULL: printed field by field */
	const char *why_fallback;		  /* NULL, or why there is no program */
	const struct funcgraph_layout *funcgraph; /* NULL: none of that tracer (funcgraph.h) */
};

/* By its name, not one of the common ones; NULL: there is none, or ev is NULL. */
const struct field *event_field(const struct event *ev, const char *name);

/* Where the fields that all events share lie. */
struct common_fields {
	uint32_t flags_offset, preempt_offset, pid_offset;
	uint32_t size; /* no record is shorter */
};

struct event_table;

int event_table_new(struct event_table **ret, const struct event_table_env *env);
struct event_table *event_table_free(struct event_table *t);
DEFINE_CLEANUP_FUNC(struct event_table *, event_table_free);

/* text: of a format file. The same event twice: the first stays. -EBADMSG: no format. */
int event_table_add(struct event_table *t, const char *system, const char *text, size_t len,
		    struct error *err);
/* Lines "NAME value", among them "HZ 250" for jiffies_to_msecs(); lines of printk_formats ("0xADDR
 * : \"text\""). Before event_table_seal. */
int event_table_add_enums(struct event_table *t, const char *text, size_t len);
/* The same lines of all that were added, or are known anyway. 0 or -ENOMEM. */
int event_table_put_enums(const struct event_table *t, struct buf *out);
int event_table_add_printk(struct event_table *t, const char *text, size_t len);
/* Lines of an ARGUMENTS chunk. */
int event_table_add_arguments(struct event_table *t, const char *text, size_t len);
/* Those of them that tell of one function. 0 or -ENOMEM. */
int event_table_put_arguments(const struct event_table *t, const char *function, struct buf *out);
/*
 * Most recordings have more symbols than events that name one: they are read when the first
 * is looked for, by whichever thread does.
 */
void event_table_set_symbols(struct event_table *t, symbol_source_t source, void *userdata);
/*
 * Some of modules may come while the table is in use, by one thread: until then what has no
 * name is looked for each time.
 */
void event_table_expect_symbols(struct event_table *t);
/* They come: symbols_add(). 0, -ENOMEM or -EFBIG. */
int event_table_add_symbols(struct event_table *t, const char *text, size_t len);
bool event_table_has_symbols(const struct event_table *t);
/* Those that were read so far. */
size_t event_table_symbol_count(const struct event_table *t);
/* Before event_table_seal: lines of them in succession, which name addresses without the rest. 0,
 * -ENOMEM or -EFBIG. */
int event_table_add_excerpt(struct event_table *t, const char *text, size_t len);
/* As symbols_find(), and reads no more than it must. */
bool event_table_find_symbol(const struct event_table *t, uint64_t address, struct symbol *ret);
/* All, read now if they were not. Borrowed; NULL: the recording has none. */
const struct symbols *event_table_symbols(const struct event_table *t);
/* The file that a process had mapped at that address, and where the mapping begins. */
struct user_place {
	const char *path; /* borrowed; not ended */
	size_t path_len;
	uint64_t start;
};
/* Asked by any thread, where the recorded options want places of programs' code named. */
typedef bool (*user_place_source_t)(const void *userdata, int32_t tgid, uint64_t address,
				    struct user_place *ret);
void event_table_set_user_places(struct event_table *t, user_place_source_t source,
				 const void *userdata);
/* Compiles all programs. */
int event_table_seal(struct event_table *t, struct error *err);

/* NULL: no format for this id. */
const struct event *event_table_find(const struct event_table *t, uint16_t id);
const struct event *event_table_find_name(const struct event_table *t, const char *system,
					  const char *name);
/* The text of its format file, not terminated; the table's. */
const char *event_format_text(const struct event *ev, size_t *ret_len);
const struct common_fields *event_table_common(const struct event_table *t);
const struct event *const *event_table_all(const struct event_table *t, size_t *ret_count);

/* Bytes of "NAME: ", where all that is printed of ev begins with it; else 0. */
size_t event_name_len(const struct event *ev);
/* Whether all that is printed of ev is plain (base/plain.h), whatever its records hold. */
bool event_is_plain(const struct event *ev);

/*
 * NULL, or the first name in ev's print fmt that the recording says nothing
 * of: what depends on it is printed as "<unknown>", or with a "?" behind it.
 */
const char *event_unknown_part(const struct event *ev);

/*
 * How the kernel shows the field of ev that holds an address: 's', 'S' or 'B' as its
 * %p does, 'f' or 'F' as seq_print_ip_sym() without and with the offset, or that it
 * holds a stack of them; 0: not as a symbol.
 */
#define SYMBOL_STACK '*'
char event_symbol_kind(const struct event *ev, const struct field *f);

/* Integer fields, either byte order; bounds-checked against the record: false if it lies outside.
 */
bool record_read_uint(const struct event_table *t, const struct record *rec, uint32_t offset,
		      uint32_t size, uint64_t *ret);

/* What one thread needs to print: caches and scratch space. */
struct printer;
int printer_new(struct printer **ret, const struct event_table *t);
struct printer *printer_free(struct printer *p);
DEFINE_CLEANUP_FUNC(struct printer *, printer_free);

/*
 * Appends what follows "timestamp: " on the kernel's line, without the
 * newline: "sched_switch: prev_comm=..." for most events, the special forms
 * of ftrace's own events and of syscalls. A record too short for its event is
 * printed as far as it goes and marked "[truncated]", as -EBADMSG tells.
 * Returns 0, -EBADMSG or -ENOMEM.
 */
int event_print(struct printer *p, const struct event *ev, const struct record *rec,
		struct buf *out);
/* How many events this printer printed field by field. */
uint64_t printer_fallbacks(const struct printer *p);
