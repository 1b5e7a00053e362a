/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Addresses for what a trace tells only by name: symbols, and the kernel's strings. They are
 * not those of the recorded machine, which the trace does not have; what stands at each is
 * the same, as are offsets and sizes.
 */
#pragma once

#include "import/perfetto/wire_read.h"
#include "util/buf.h"

#define PLACES_BYTES_MAX (64U << 20)

struct places {
	struct places_item *items;     /* owned; by id */
	size_t count, cap;	       /* no id is from count on */
	struct places_symbol *symbols; /* owned, in the order in which they were told */
	size_t symbol_count, symbol_cap;
	uint32_t *slots; /* owned; open addressing: index into symbols + 1 */
	size_t slot_count;
	struct buf names; /* of the symbols: name, tab, module */
	unsigned word_size;
	uint64_t next_text; /* address */
	uint64_t seed;	    /* of the hash: names are hostile */
	bool full;	    /* some were left out */
	/* The texts of these files, and of an ARGUMENTS chunk. */
	struct buf kallsyms, printk, arguments;
};

void places_init(struct places *p, unsigned word_size);
void places_deinit(struct places *p);
/* A traced.origin.Place. 0, -EBADMSG: it is left out; or -ENOMEM. */
int places_add(struct places *p, const struct wire_field *message);
/* All are there: now they have addresses, and the texts are whole. 0 or -ENOMEM. */
int places_seal(struct places *p);
/* 0: there is none of that number. */
uint64_t places_address(const struct places *p, uint64_t id);
