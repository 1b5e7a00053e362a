/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel's text shows for an address, by number: traced.origin.Address. */
#pragma once

#include "formats/perfetto/schema.h"

/* How an address is looked up. */
enum {
	LOOKUP_SYMBOL = 's',
	LOOKUP_BEFORE = 'B',
	LOOKUP_TEXT = '"',
	LOOKUP_PRINT = 'P', /* a symbol, but of the function that writes marks */
};

/* As many as a kernel with all modules has functions, four times: no more are numbered. */
#define PF_ADDRESSES_MAX (1U << 20)
/* Numbers of addresses that have a symbol or a string. */
struct pf_known_address {
	uint64_t address, id; /* id 0: free */
	char kind;	      /* how it was looked up */
};

/*
 * The address's number, which goes with the next bundle where it is new. 0: nothing is there, or no
 * more are numbered; for want of memory also, and s->new_addresses has failed then.
 */
uint64_t pf_address(struct pf_schema *s, uint64_t address, char lookup);
