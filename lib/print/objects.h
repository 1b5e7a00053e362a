/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What %pI4, %pU, %pM, %*ph and the like print of memory: lib/vsprintf.c. */
#pragma once

#include "base/buf.h"
#include "print/conversion.h"

struct object_env {
	unsigned word_size;
	bool big_endian;
};

/*
 * data, avail: the memory that is there. count: the width, that %*ph and %*pb
 * take as bytes and bits; -1: none. Appends; false where the memory ends too
 * early or the suffix is not known.
 */
bool object_print(const struct object_env *env, const struct conversion *spec, const uint8_t *data,
		  size_t avail, int count, struct buf *out);
/* Bits in groups of 32, as %*pb prints them. */
void bitmask_print(const struct object_env *env, const uint8_t *data, unsigned bits,
		   struct buf *out);
