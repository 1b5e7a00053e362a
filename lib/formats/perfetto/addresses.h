/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers for addresses, with the text that the kernel shows for them: traced.origin.Address. */
#pragma once

#include "formats/perfetto/schema.h"

/* How an address is looked up. */
enum {
	LOOKUP_SYMBOL = 's',
	LOOKUP_BEFORE = 'B',
	LOOKUP_TEXT = '"',
	LOOKUP_PRINT = 'P', /* a symbol, except the function that writes marks */
};

/* Four times the functions of a kernel with all modules: no more are numbered. */
#define PF_ADDRESSES_MAX (1U << 20)
/* Numbers of addresses with a symbol or string. */
struct pf_known_address {
	uint64_t address, id; /* id 0: free slot */
	char kind;	      /* kind of lookup */
};

/*
 * Returns the address's number; a new one goes out with the next bundle. 0: nothing known at that
 * address, or too many numbers; also if out of memory, then s->new_addresses has failed.
 */
uint64_t pf_address(struct pf_schema *s, uint64_t address, char lookup);
