/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of the addresses in a recording's stacks: kernel addresses by the symbols in the stream,
 * program addresses by the caller's resolver, else module and offset. Cached within bounds, since
 * few addresses repeat often.
 */
#pragma once

#include "base/code_place.h"
#include "base/table.h"
#include "marks/value.h"
#include "print/symbols.h"
#include "samples/address_space.h"

DECLARE_TABLE(place_slots, struct named_place);

struct sample_names {
	const struct symbols *kernel;	      /* borrowed, or NULL */
	const struct export_symbols *symbols; /* borrowed, or NULL */
	bool raw_addresses;
	struct place_slots places;
	struct buf texts;
	uint64_t unnamed; /* program addresses without a function name */
};
void sample_names_deinit(struct sample_names *n);

struct place_name {
	struct text function, module; /* valid until the next call */
	const struct code_file *file; /* of a program's address; NULL: unknown */
	uint64_t offset;	      /* in the file; without one the address itself */
};
/* 0 or -ENOMEM. */
int sample_names_kernel(struct sample_names *n, uint64_t address, struct place_name *ret);
int sample_names_user(struct sample_names *n, const struct address_spaces *spaces, int32_t pid,
		      uint64_t address, struct place_name *ret);
