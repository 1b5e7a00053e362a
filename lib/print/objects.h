/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints memory for %pI4, %pU, %pM, %*ph and others, as lib/vsprintf.c does. */
#pragma once

#include "base/buf.h"
#include "print/conversion.h"

struct object_env {
	unsigned word_size;
	bool big_endian;
};

/*
 * data, avail: the memory and its size. count: the width, which %*ph and %*pb take as a count of
 * bytes and bits; -1: none. Appends. False: the memory is too short, or the suffix is unknown.
 */
bool object_print(const struct object_env *env, const struct conversion *spec, const uint8_t *data,
		  size_t avail, int count, struct buf *out);
/* Prints bits in groups of 32, as %*pb does. */
void bitmask_print(const struct object_env *env, const uint8_t *data, unsigned bits,
		   struct buf *out);
