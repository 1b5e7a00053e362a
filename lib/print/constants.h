/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named constants in print formats: the recorded kernel's enumerators, which the stream holds, and
 * a few values of the kernel ABI.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/table.h"

struct constant {
	char *name; /* owned; NULL: a free slot */
	int64_t value;
};
DECLARE_TABLE(constant_slots, struct constant);

struct constants {
	struct constant_slots all;
};

void constants_deinit(struct constants *c);
/* If a name is added twice, the first value stays. Returns 0 or -ENOMEM. */
int constants_add(struct constants *c, const char *name, size_t len, int64_t value);
/* Adds lines "NAME value", decimal or 0x. Skips other lines. Returns 0 or -ENOMEM. */
int constants_add_text(struct constants *c, const char *text, size_t len);
/* Appends such lines, in no particular order. Returns 0 or -ENOMEM. */
int constants_put_text(const struct constants *c, struct buf *out);
bool constants_find(const struct constants *c, const char *name, size_t len, int64_t *ret);
