/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Addresses for what a trace tells only by name: symbols, and the kernel's strings. They are
 * not those of the recorded machine, which the trace does not have; what stands at each is
 * the same, as are offsets and sizes.
 */
#pragma once

#include "base/buf.h"
#include "formats/perfetto_read/wire_read.h"

#define ADDRESSES_BYTES_MAX (64U << 20)

struct addresses {
	struct address_item *items;	/* owned; by id */
	size_t count, cap;		/* no id is from count on */
	struct address_symbol *symbols; /* owned, in the order in which they were told */
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

void addresses_init(struct addresses *p, unsigned word_size);
void addresses_deinit(struct addresses *p);
/* A traced.origin.Address. 0, -EBADMSG: it is left out; or -ENOMEM. */
int addresses_add(struct addresses *p, const struct wire_field *message);
/* All are there: now they have addresses, and the texts are whole. 0 or -ENOMEM. */
int addresses_seal(struct addresses *p);
/* 0: there is none of that number. */
uint64_t addresses_find(const struct addresses *p, uint64_t id);
