/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of event tables and printers, for the files that print. */
#pragma once

#include <pthread.h>
#include <string.h>

#include "print/arguments.h"
#include "print/constants.h"
#include "print/event_table.h"
#include "print/printk_formats.h"
#include "print/program.h"
#include "print/symbol_store.h"

struct event_entry {
	struct event event;
	const char *text, *print_fmt; /* the format's text, in the arena */
	size_t len, print_fmt_len;
};

struct event_table {
	struct event_table_env env;
	struct arena arena;
	struct event_entry **by_id; /* by id; NULL: no such event */
	size_t id_count;
	const struct event **all;
	size_t count, cap;
	struct common_fields common;
	struct constants constants;
	struct symbol_store *symbols;	 /* owned */
	struct arguments *arguments;	 /* owned; NULL: none */
	user_place_source_t user_places; /* NULL: none */
	const void *user_places_data;
	struct printk_formats printk; /* sorted by event_table_seal() */
	bool swap;		      /* the recorded machine has the other byte order */
	bool sealed;
};

#define SYMBOL_CACHE_BITS 14
#define SYMBOL_CACHE_SIZE (1U << SYMBOL_CACHE_BITS)
/* Name and other members together fill one cache line. */
#define SYMBOL_NAME_NEAR 48

/* Functions come in random order, so a look-up must cost one CPU cache miss at most. */
struct symbol_cache_entry {
	uint64_t address;
	uint16_t name_len;
	bool known, found;
	bool is_trampoline;	     /* trampoline of return probes */
	bool is_plain;		     /* ftrace's own events show only its name */
	char name[SYMBOL_NAME_NEAR]; /* its first bytes; not terminated */
} __attribute__((aligned(64)));

struct printer {
	const struct event_table *table;
	const struct event *event; /* being printed */
	uint64_t fallbacks;
	unsigned misses; /* look-ups that were not in the cache; counted up to CACHE_WRITTEN */
	struct symbol symbols[SYMBOL_CACHE_SIZE]; /* by cache slot: the rest of each symbol */
	struct symbol_cache_entry cache[SYMBOL_CACHE_SIZE];
};

/* Loads an integer in the recorded machine's byte order, without bounds checks. */
static inline uint64_t load_uint(const void *p, unsigned size, bool swap)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 1:
		return *(const uint8_t *)p;
	case 2:
		memcpy(&v2, p, 2);
		return swap ? __builtin_bswap16(v2) : v2;
	case 4:
		memcpy(&v4, p, 4);
		return swap ? __builtin_bswap32(v4) : v4;
	default:
		memcpy(&v8, p, 8);
		return swap ? __builtin_bswap64(v8) : v8;
	}
}

/* NULL: no such format. */
static inline const char *table_printk(const struct event_table *t, uint64_t address)
{
	return printk_formats_find(&t->printk, address);
}

/*
 * The text of %s for a string in the recorded kernel's memory. Borrowed from the table or from
 * `room`, for strings that are not in the recording.
 */
#define KERNEL_STRING_ROOM 24
const char *print_kernel_string(const struct printer *p, uint64_t address,
				char room[KERNEL_STRING_ROOM]);

/* Fills and returns the cache slot for the address. */
const struct symbol_cache_entry *printer_find_symbol(struct printer *p, uint64_t address);

static inline const struct symbol_cache_entry *printer_slot(const struct printer *p,
							    uint64_t address)
{
	return &p->cache[(address * 0x9e3779b97f4a7c15) >> (64 - SYMBOL_CACHE_BITS)];
}

/* Uses the printer's cache. Valid until the next look-up. */
static inline const struct symbol_cache_entry *printer_lookup(struct printer *p, uint64_t address)
{
	const struct symbol_cache_entry *e = printer_slot(p, address);

	return likely(e->known && e->address == address) ? e : printer_find_symbol(p, address);
}

/* False: no symbol contains the address. The names in ret are borrowed. */
bool printer_symbol(struct printer *p, uint64_t address, struct symbol *ret);
/*
 * FTRACE_TRAMPOLINE_MARKER of kernel/trace/trace.h is INT_MAX: a stack entry without an address.
 * The kernel prints this text for it.
 */
#define TRAMPOLINE_ADDRESS 0x7fffffff
#define TRAMPOLINE_TEXT "[FTRACE TRAMPOLINE]"
/*
 * Writes a symbol at w, at most SYMBOL_TEXT_MAX bytes, and returns the end. kind: 's', 'S', 'B' as
 * the kernel's %p; 'f', 'F' as trace_seq_print_sym(), without and with the offset.
 */
#define SYMBOL_TEXT_MAX 640
char *print_symbol(struct printer *p, char *w, uint64_t address, char kind);
/* Prints as seq_print_ip_sym() does. Writes at most SYMBOL_TEXT_MAX bytes. */
char *print_ip_by(struct printer *p, char *w, uint64_t ip, bool offset);

/* Like print_ip_by(), with or without the offset as the recording's options say. */
static inline char *print_ip(struct printer *p, char *w, uint64_t ip)
{
	const struct symbol_cache_entry *e = printer_lookup(p, ip);

	if (unlikely(!e->is_plain))
		return print_ip_by(p, w, ip, p->table->env.text.sym_offset);
	/* Most names are short: a copy of constant size is fast. */
	memcpy(w, e->name, SYMBOL_NAME_NEAR);
	if (unlikely(e->name_len > SYMBOL_NAME_NEAR))
		memcpy(w, p->symbols[e - p->cache].name, e->name_len);
	return w + e->name_len;
}

/*
 * True if a number that is no pointer by its type may be a kernel address. These fill the upper
 * part of a 64-bit address space (x86-64 with five levels of page tables starts at 0xff00...). The
 * topmost values are excluded: they are negative numbers.
 */
static inline bool number_is_address(uint64_t value)
{
	return value >> 56 == 0xff && value < UINT64_C(0xffffffffff600000);
}

/* The number to print for a pointer: itself, or its keyed hash. */
uint64_t printer_pointer(const struct printer *p, uint64_t address);

/* The same for a number that no format marks as a pointer, in a 64-bit address space. */
static inline uint64_t printer_number(const struct printer *p, uint64_t value)
{
	return unlikely(number_is_address(value)) ? printer_pointer(p, value) : value;
}
/* bprint.c: prints binary printk. Appends. */
int bprint_format(struct printer *p, const char *format, const uint8_t *args, size_t len,
		  struct buf *out);

/* fallback.c: prints events without a program. */
int fallback_print(struct printer *p, const struct event *ev, const struct record *rec,
		   struct buf *out);
