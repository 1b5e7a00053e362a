/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The inside of event tables and printers: for the files that print. */
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
	const char *text, *print_fmt; /* of the format; in the arena */
	size_t len, print_fmt_len;
};

struct event_table {
	struct event_table_env env;
	struct arena arena;
	struct event_entry **by_id; /* by id; NULL where there is none */
	size_t id_count;
	const struct event **all;
	size_t count, cap;
	struct common_fields common;
	struct constants constants;
	struct symbol_store *symbols;	 /* owned */
	struct arguments *arguments;	 /* owned; NULL: none */
	user_place_source_t user_places; /* NULL: none */
	const void *user_places_data;
	struct printk_formats printk; /* sorted once sealed */
	bool swap;		      /* the recorded machine's byte order is not ours */
	bool sealed;
};

#define SYMBOL_CACHE_BITS 14
#define SYMBOL_CACHE_SIZE (1U << SYMBOL_CACHE_BITS)
/* With the rest of its entry one line of the CPU's cache. */
#define SYMBOL_NAME_NEAR 48

/* Which function comes next is chance: a look-up should miss the CPU's cache once at most. */
struct symbol_cache_entry {
	uint64_t address;
	uint16_t name_len;
	bool known, found;
	bool is_trampoline;	     /* of return probes */
	bool is_plain;		     /* ftrace's own events show its name and nothing else */
	char name[SYMBOL_NAME_NEAR]; /* its beginning; not ended */
} __attribute__((aligned(64)));

struct printer {
	const struct event_table *table;
	const struct event *event; /* the one that is being printed */
	uint64_t fallbacks;
	unsigned misses; /* looked for behind the cache, which follows; at most CACHE_WRITTEN */
	struct symbol symbols[SYMBOL_CACHE_SIZE]; /* beside the cache: what else is known */
	struct symbol_cache_entry cache[SYMBOL_CACHE_SIZE];
};

/* Loads an integer in the recorded machine's byte order; not checked. */
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

/* Fills the address's slot of the cache; returns it. */
const struct symbol_cache_entry *printer_find_symbol(struct printer *p, uint64_t address);

static inline const struct symbol_cache_entry *printer_slot(const struct printer *p,
							    uint64_t address)
{
	return &p->cache[(address * 0x9e3779b97f4a7c15) >> (64 - SYMBOL_CACHE_BITS)];
}

/* Through the printer's cache; good until the next look-up. */
static inline const struct symbol_cache_entry *printer_lookup(struct printer *p, uint64_t address)
{
	const struct symbol_cache_entry *e = printer_slot(p, address);

	return likely(e->known && e->address == address) ? e : printer_find_symbol(p, address);
}

bool printer_symbol(struct printer *p, uint64_t address, struct symbol *ret);
/*
 * A symbol's text at w, at most SYMBOL_TEXT_MAX bytes; returns the end.
 * kind: 's', 'S', 'B' as the kernel's %p; 'f', 'F' as trace_seq_print_sym(),
 * without and with the offset.
 */
#define SYMBOL_TEXT_MAX 640
/* FTRACE_TRAMPOLINE_MARKER of kernel/trace/trace.h, INT_MAX: a stack's entry without an address,
 * and its text. */
#define TRAMPOLINE_ADDRESS 0x7fffffff
#define TRAMPOLINE_TEXT "[FTRACE TRAMPOLINE]"
char *print_symbol(struct printer *p, char *w, uint64_t address, char kind);
/* As seq_print_ip_sym(), with the offset or without; at most SYMBOL_TEXT_MAX bytes. */
char *print_ip_by(struct printer *p, char *w, uint64_t ip, bool offset);

/* The same as the recording's options say. */
static inline char *print_ip(struct printer *p, char *w, uint64_t ip)
{
	const struct symbol_cache_entry *e = printer_lookup(p, ip);

	if (unlikely(!e->is_plain))
		return print_ip_by(p, w, ip, p->table->env.text.sym_offset);
	/* Most names are short: a copy of known size is a few moves. */
	memcpy(w, e->name, SYMBOL_NAME_NEAR);
	if (unlikely(e->name_len > SYMBOL_NAME_NEAR))
		memcpy(w, p->symbols[e - p->cache].name, e->name_len);
	return w + e->name_len;
}

/*
 * Whether a number that is no pointer by its type is perhaps one of the kernel's: of its part of
 * an address space of 64 bits, of whatever depth (x86-64 has them from 0xff00... on with five
 * levels of tables), but below its very end, where negative numbers are.
 */
static inline bool number_is_address(uint64_t value)
{
	return value >> 56 == 0xff && value < UINT64_C(0xffffffffff600000);
}

/* What a pointer shows as: itself, or its keyed hash. */
uint64_t printer_pointer(const struct printer *p, uint64_t address);
/* Binary printk: bprint.c. Appends. */
int bprint_format(struct printer *p, const char *format, const uint8_t *args, size_t len,
		  struct buf *out);

/* fallback.c: what has no program. */
int fallback_print(struct printer *p, const struct event *ev, const struct record *rec,
		   struct buf *out);
