/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named constants that print formats leave open: enumerators of the recorded
 * kernel, as the stream brings them, and a few whose values are kernel ABI.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct constants {
	struct constant {
		char *name; /* owned */
		int64_t value;
	} * items; /* open addressing; owned */
	size_t count, cap;
};

void constants_deinit(struct constants *c);
/* The first value of a name stays. */
int constants_add(struct constants *c, const char *name, size_t len, int64_t value);
/* Lines "NAME value", decimal or 0x; others are skipped. */
int constants_add_text(struct constants *c, const char *text, size_t len);
/* The same lines, in no order. */
int constants_put_text(const struct constants *c, struct buf *out);
bool constants_find(const struct constants *c, const char *name, size_t len, int64_t *ret);
