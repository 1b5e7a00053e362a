/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What functions were called with (trace options func-args and funcgraph-args, Linux 6.15). */
#pragma once

#include "print/event_table.h"

struct arguments; /* of a recorded kernel's functions */

/* text: of an ARGUMENTS chunk; copied. *t NULL: the first one. 0 or -ENOMEM. */
int arguments_add(struct arguments **t, const char *text, size_t len);
struct arguments *arguments_free(struct arguments *t);

/* Appends the line of that function, and those of what it refers to; nothing if there is none. */
void arguments_put_lines(const struct arguments *t, const char *function, struct buf *out);

/*
 * Appends "(name=value, ...)": args are count words as the machine recorded them. "()" of a
 * function that the recording says nothing of, as the kernel does where its BTF has none.
 */
void print_arguments(struct printer *p, uint64_t func, const uint8_t *args, size_t count,
		     struct buf *out);
